//! The API over HTTP. A handler translates a request into a call of the store, and the outcome into
//! a response; it makes no decisions.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::api::discovery::aggregated;
use crate::api::negotiate::{Params, Shape};
use crate::api::read::list::page;
use crate::api::read::watch::RunningWatch;
use crate::api::read::{Filter, ResponseFormat};
use crate::api::route::{self, ResourcePath, Route, Verb};
use crate::api::status::{About, ApiError, json_response};
use crate::api::write::apply::Configuration;
use crate::api::write::delete::{self, DeleteOptions};
use crate::api::write::patch::{APPLY, Patch};
use crate::api::write::update::{self, NewState, WrittenPart};
use crate::api::write::{Body, Content, Mode, RequestScope, WriteResponse, create};
use crate::api::{discovery, openapi, review};
use crate::formats::{json, protobuf};
use crate::hub::HubState;
use crate::security::access::{Access, Extent, allowed};
use crate::security::tokens::{Identity, Tokens};

/// The largest request body, as in Kubernetes.
const LARGEST_BODY: usize = 3 << 20;
/// The time limit for receiving a body.
const SLOWEST_BODY: Duration = Duration::from_secs(60);
/// The limit for all warnings together, in characters, and for each warning if that is exceeded.
const MOST_WARNINGS: usize = 4 << 10;
const LONGEST_WARNING: usize = 256;
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Handles a request. Every error becomes a `Status`.
pub(crate) async fn handle(hub: Arc<HubState>, request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match AssertUnwindSafe(answer(hub, request)).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(failure)) => failure.into_response(),
        Err(_) => {
            tracing::error!(%method, path, "a request made the hub panic; the hub continues");
            ApiError::internal("the hub could not handle this request").into_response()
        }
    }
}

async fn answer(hub: Arc<HubState>, request: Request) -> Result<Response, ApiError> {
    let path = request.uri().path();
    let route = route::parse(path).ok_or_else(|| not_there(route::group_of(path)))?;
    let identity = request.extensions().get::<Identity>().cloned();
    if matches!(route, Route::Health | Route::Version) {
        only_get(request.method())?;
        return Ok(match route {
            Route::Version => json_response(StatusCode::OK, discovery::version().to_string()),
            _ => "ok".into_response(),
        });
    }
    let identity = identity.ok_or_else(ApiError::unauthorized)?;
    let Route::Objects(target) = route else {
        only_get(request.method())?;
        let path = request.uri().path();
        check_access(&identity, &Access { verb: "get", non_resource_path: Some(path), ..Access::default() })?;
        let accept = request.headers();
        return about_the_api(&hub, &route, accept);
    };
    if let Some(kind) = review::ReviewKind::of(&target) {
        let (parts, body) = request.into_parts();
        let about = kind.check(&parts.method)?;
        let object = read_object(&parts.headers, body, about.kind, true).await?;
        let tokens = parts.extensions.get::<Arc<Tokens>>().map(|tokens| &**tokens);
        let reviewed = about.answer(review::Asking { identity: &identity, tokens }, &object.object)?;
        return Ok(json_response(StatusCode::CREATED, reviewed.to_string()));
    }
    objects(&hub, &identity, &target, request).await
}

/// The error for an unknown path, below an existing API or below none.
fn not_there(group: Option<&str>) -> ApiError {
    match group {
        Some(group) if discovery::is_built_in(group) => ApiError::no_such_path(),
        _ => ApiError::page_not_found(),
    }
}

/// The error for a method that the path does not support. For custom resources Kubernetes checks in
/// a different order.
fn no_verb(scope: &RequestScope, target: &ResourcePath, method: &Method) -> ApiError {
    match method.as_str() {
        _ if !scope.resource.is_custom() => ApiError::method_not_allowed(),
        "PUT" | "PATCH" => ApiError::bad_request("name must be provided"),
        "POST" if target.subresource.is_some() => ApiError::not_supported("create", scope.about("")),
        _ => ApiError::method_not_allowed(),
    }
}

fn only_get(method: &Method) -> Result<(), ApiError> {
    if method == Method::GET || method == Method::HEAD { Ok(()) } else { Err(ApiError::method_not_allowed()) }
}

fn about_the_api(hub: &HubState, route: &Route, headers: &HeaderMap) -> Result<Response, ApiError> {
    let table = hub.table();
    if aggregated::is_asked(headers) {
        match route {
            Route::CoreVersions => return Ok(aggregated::core(&table, headers)),
            Route::Groups => return Ok(aggregated::groups(&table, headers)),
            _ => {}
        }
    }
    if matches!(route, Route::CoreVersions | Route::Groups | Route::Group(_) | Route::Resources { .. }) {
        aggregated::check_plain(headers)?;
    }
    let body = match route {
        Route::CoreVersions => discovery::core_versions(),
        Route::Groups => discovery::groups(&table),
        Route::Group(name) => discovery::group(&table, name).ok_or_else(|| not_there(Some(name)))?,
        Route::Resources { group, version } => {
            discovery::resources(&table, group, version).ok_or_else(|| not_there(Some(group)))?
        }
        Route::OpenApiV2 => return Ok(openapi::v2(&table, headers)),
        Route::OpenApiV3Index => openapi::index(&table),
        Route::OpenApiV3 { group, version } => {
            openapi::document(&table, group, version).ok_or_else(ApiError::no_such_path)?
        }
        Route::Version | Route::Health | Route::Objects(_) => return Err(ApiError::no_such_path()),
    };
    Ok(json_response(StatusCode::OK, body.to_string()))
}

fn check_access(identity: &Identity, access: &Access<'_>) -> Result<Extent, ApiError> {
    allowed(&identity.role, access).map_err(|denied| {
        let about = About {
            group: access.group,
            resource: access.resource,
            kind: "",
            name: access.name.unwrap_or_default(),
        };
        ApiError::forbidden(denied.message(&identity.name), about)
    })
}

async fn objects(
    hub: &Arc<HubState>,
    identity: &Identity,
    target: &ResourcePath,
    request: Request,
) -> Result<Response, ApiError> {
    let table = hub.table();
    let absent = || not_there(Some(&target.group));
    let resource = table.get(&target.group, &target.resource).ok_or_else(absent)?;
    let version =
        resource.versions.iter().position(|version| version.served && version.name == target.version);
    let version = version.ok_or_else(absent)?;
    let scope = RequestScope { resource: Arc::clone(resource), version, namespace: target.namespace.clone() };
    let (verb, params) = asked(&scope, target, request.method(), request.uri().query().unwrap_or_default())?;
    let extent = check_access(identity, &access(verb, target, &params))?;
    let part = check_place(&scope, target, verb)?;
    let shape = Shape::accepted(request.headers())?;
    let warning = scope.version().and_then(|version| version.warning.clone());
    let view = ResponseFormat { scope, shape, include: params.include, now: hub.now() };
    let permitted = Permitted { verb, part, extent };
    let outcome = carry_out(hub, view, target.name.as_deref(), permitted, &params, request).await;
    if outcome.is_err() && !matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
        settle(hub).await?;
    }
    let mut response = outcome?;
    warn(&mut response, warning.iter());
    Ok(response)
}

/// A refusal may depend on changes that are not on disk yet: "not found" must not be reported while
/// the deletion could still be lost.
async fn settle(hub: &HubState) -> Result<(), ApiError> {
    let head = hub.store.head();
    hub.store.settled(&head, head.revision()).await.map_err(ApiError::internal)
}

/// The verb and the options of a request. An unsupported method is refused whatever its options
/// are.
fn asked(
    scope: &RequestScope,
    target: &ResourcePath,
    method: &Method,
    query: &str,
) -> Result<(Verb, Params), ApiError> {
    let verb = |watch| Verb::of(method, target, watch).ok_or_else(|| no_verb(scope, target, method));
    verb(false)?;
    let params = Params::parse(query, options_of(method))?;
    Ok((verb(params.watch)?, params))
}

/// The name of a request's options in Kubernetes.
fn options_of(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "CreateOptions",
        "PUT" => "UpdateOptions",
        "PATCH" => "PatchOptions",
        "DELETE" => "DeleteOptions",
        _ => "ListOptions",
    }
}

fn access<'t>(verb: Verb, target: &'t ResourcePath, params: &'t Params) -> Access<'t> {
    Access {
        verb: verb.as_str(),
        group: &target.group,
        resource: &target.resource,
        subresource: target.subresource.as_deref(),
        namespace: target.namespace.as_deref(),
        // A list with a `metadata.name` selector is authorized as a request for that object.
        name: target.name.as_deref().or_else(|| params.fields.exact("metadata.name")),
        non_resource_path: None,
    }
}

/// Checks whether such objects can exist at this path, and which part of them is addressed.
fn check_place(scope: &RequestScope, target: &ResourcePath, verb: Verb) -> Result<WrittenPart, ApiError> {
    let resource = &scope.resource;
    if target.namespace.is_some() && !resource.namespaced {
        return Err(not_there(Some(&target.group)));
    }
    if target.namespace.is_none() && resource.namespaced {
        match verb {
            Verb::List | Verb::Watch if target.name.is_none() => {}
            _ if target.name.is_some() || resource.is_custom() => return Err(not_there(Some(&target.group))),
            _ => return Err(ApiError::method_not_allowed()),
        }
    }
    let part = part_of(scope, target)?;
    if verb == Verb::DeleteCollection && &*resource.id == crate::kinds::builtin::NAMESPACES {
        return Err(ApiError::method_not_allowed());
    }
    if resource.traits.always_empty && !matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
        return Err(ApiError::method_not_allowed());
    }
    match (part, verb) {
        (WrittenPart::Main, _)
        | (WrittenPart::Status, Verb::Get | Verb::Update | Verb::Patch)
        | (WrittenPart::Finalize, Verb::Update) => Ok(part),
        _ if resource.is_custom() => Err(ApiError::not_supported(verb.as_str(), scope.about(""))),
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn part_of(scope: &RequestScope, target: &ResourcePath) -> Result<WrittenPart, ApiError> {
    match target.subresource.as_deref() {
        None => Ok(WrittenPart::Main),
        Some("status") if scope.version().is_some_and(|version| version.has_status) => {
            Ok(WrittenPart::Status)
        }
        Some("finalize") if &*scope.resource.id == crate::kinds::builtin::NAMESPACES => {
            Ok(WrittenPart::Finalize)
        }
        // For a custom resource, Kubernetes reports that the object does not exist.
        Some(_) if scope.resource.is_custom() => {
            Err(ApiError::not_found(scope.about(target.name.as_deref().unwrap_or_default())))
        }
        Some(_) => Err(ApiError::no_such_path()),
    }
}

/// An operation on objects that is possible and authorized.
#[derive(Clone, Copy, Debug)]
struct Permitted {
    verb: Verb,
    part: WrittenPart,
    extent: Extent,
}

async fn carry_out(
    hub: &Arc<HubState>,
    view: ResponseFormat,
    name: Option<&str>,
    permitted: Permitted,
    params: &Params,
    request: Request,
) -> Result<Response, ApiError> {
    let Permitted { verb, part, extent } = permitted;
    let scope = &view.scope;
    let (parts, body) = request.into_parts();
    let mode = Mode {
        dry_run: params.dry_run,
        unknown_fields: params.unknown_fields,
        manager: params.manager(&parts.headers),
        extent,
        user: parts.extensions.get::<Identity>().map_or("", |identity| &identity.name),
    };
    let (custom, kind) = (scope.resource.is_custom(), scope.resource.names.kind.as_str());
    let outcome = match (verb, name) {
        (Verb::List, _) => {
            let filter = Filter::new(scope, None, params)?;
            return Ok(json_response(StatusCode::OK, page(hub, scope, &filter, params)?.into_body(view)));
        }
        (Verb::Watch, name) => {
            let filter = Filter::new(scope, name, params)?;
            return Ok(json_response(
                StatusCode::OK,
                RunningWatch::start(hub, view, filter, params)?.into_body(),
            ));
        }
        (Verb::Create, _) => {
            if scope.resource.terminating {
                return Err(ApiError::crd_terminating(scope.about("")));
            }
            let object = read_object(&parts.headers, body, kind, !custom).await?;
            create::create(hub, scope, object, mode).await?
        }
        (Verb::Get, Some(name)) => get(hub, scope, name, params)?,
        (Verb::Update, Some(name)) => {
            let wanted = NewState::Body(read_object(&parts.headers, body, kind, !custom).await?);
            update::update(hub, scope, name, part, &wanted, mode).await?
        }
        (Verb::Patch, Some(name)) => {
            let content_type = content_type(&parts.headers)?;
            let is_apply = content_type == APPLY;
            params.check_patch(is_apply)?;
            let body = read_body(body).await?;
            let wanted = if is_apply {
                let may_create = may_create(scope, name, parts.extensions.get());
                NewState::Apply(Configuration::parse(&body, params.force == Some(true), may_create)?)
            } else {
                NewState::Patch(Patch::parse(&content_type, &body, &scope.resource)?)
            };
            update::update(hub, scope, name, part, &wanted, mode).await?
        }
        (Verb::Delete, Some(name)) => {
            let options = delete_options(&parts.headers, body, params).await?;
            delete::delete(hub, scope, name, &options).await?
        }
        (Verb::DeleteCollection, _) => {
            let options = delete_options(&parts.headers, body, params).await?;
            let filter = Filter::new(scope, None, params)?;
            let mut found = page(hub, scope, &filter, params)?;
            found.items = delete::delete_all(hub, scope, found.items, &options).await?;
            return Ok(json_response(StatusCode::OK, found.into_body(view)));
        }
        (_, None) => return Err(ApiError::method_not_allowed()),
    };
    Ok(show(&view, outcome))
}

/// Whether a client that applies an object may create it.
fn may_create(scope: &RequestScope, name: &str, identity: Option<&Identity>) -> Result<(), ApiError> {
    let access = Access {
        verb: "create",
        group: &scope.resource.group,
        resource: &scope.resource.names.plural,
        namespace: scope.namespace.as_deref(),
        name: Some(name),
        ..Access::default()
    };
    check_access(identity.ok_or_else(ApiError::unauthorized)?, &access).map(drop)
}

fn get(hub: &HubState, scope: &RequestScope, name: &str, params: &Params) -> Result<WriteResponse, ApiError> {
    let state = hub.store.published().state();
    if let crate::api::negotiate::RequestedRevision::At(asked) = params.revision
        && asked > state.revision()
    {
        return Err(ApiError::revision_in_future(asked, state.revision()));
    }
    let stored = state.get(&scope.resource.id, &scope.key(name)).cloned();
    stored
        .map(|stored| WriteResponse::ok(Content::Stored(stored)))
        .ok_or_else(|| ApiError::not_found(scope.about(name)))
}

fn show(view: &ResponseFormat, answer: WriteResponse) -> Response {
    let WriteResponse { code, content, warnings } = answer;
    let body: Bytes = match content {
        Content::Stored(stored) => view.object(&stored),
        Content::Imagined(object) => view.value(object).to_string().into(),
        Content::Other(value) => value.to_string().into(),
    };
    let mut response = json_response(code, body);
    warn(&mut response, warnings.iter());
    response
}

/// Adds each warning once. Their total size is limited as in Kubernetes, because clients limit the
/// size of headers.
fn warn<'w>(response: &mut Response, warnings: impl Iterator<Item = &'w String>) {
    let mut seen = BTreeSet::new();
    let texts: Vec<&String> = warnings.filter(|text| seen.insert(*text)).collect();
    let total: usize = texts.iter().map(|text| text.chars().count()).sum();
    let longest = if total > MOST_WARNINGS { LONGEST_WARNING } else { MOST_WARNINGS };
    let mut written = 0;
    for warning in texts {
        if written >= MOST_WARNINGS {
            break;
        }
        let text: String = warning.chars().take(longest).filter(|letter| !letter.is_control()).collect();
        written += text.chars().count();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(HeaderName::from_static("warning"), value);
        }
    }
}

/// The media type of the body. Old clients send JSON without a content type.
fn content_type(headers: &HeaderMap) -> Result<String, ApiError> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok("application/json".into()) };
    let value =
        value.to_str().map_err(|_| ApiError::unsupported_media_type("the content type is not readable"))?;
    let media = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Ok(if media.is_empty() { "application/json".into() } else { media })
}

async fn read_body(body: HttpBody) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(SLOWEST_BODY, Limited::new(body, LARGEST_BODY).collect()).await;
    match read {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(ApiError::too_large(format!("Request entity too large: limit is {LARGEST_BODY}")))
        }
        Ok(Err(error)) => {
            Err(ApiError::bad_request(format!("the body of the request could not be read: {error}")))
        }
        Err(_) => Err(ApiError::bad_request("the body of the request did not arrive in time")),
    }
}

async fn read_object(
    headers: &HeaderMap,
    body: HttpBody,
    kind: &str,
    takes_protobuf: bool,
) -> Result<Body, ApiError> {
    let content_type = content_type(headers)?;
    let known = content_type == "application/json"
        || content_type == YAML
        || takes_protobuf && content_type == PROTOBUF;
    if !known {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml{}",
            if takes_protobuf { ", application/vnd.kubernetes.protobuf" } else { "" }
        );
        return Err(ApiError::unsupported_media_type(message));
    }
    parse_object(&content_type, kind, &read_body(body).await?)
}

fn parse_object(content_type: &str, kind: &str, body: &[u8]) -> Result<Body, ApiError> {
    if content_type == PROTOBUF {
        let object = protobuf::decode(body).map_err(|error| ApiError::bad_request(error.to_string()))?;
        return Ok(Body { object, duplicates: Vec::new() });
    }
    if content_type == YAML {
        let object = serde_saphyr::from_slice(body)
            .map_err(|error| ApiError::bad_request(format!("error parsing YAML: {error}")))?;
        return Ok(Body { object, duplicates: Vec::new() });
    }
    let unreadable = |error: serde_json::Error| {
        let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why}"
        ))
    };
    let (object, duplicates) = json::parse(body).map_err(unreadable)?;
    Ok(Body { object, duplicates })
}

async fn delete_options(
    headers: &HeaderMap,
    body: HttpBody,
    params: &Params,
) -> Result<DeleteOptions, ApiError> {
    let body = read_body(body).await?;
    let given: Value = if body.is_empty() {
        Value::Object(serde_json::Map::default())
    } else {
        let content_type = content_type(headers)?;
        if content_type != "application/json" && content_type != PROTOBUF {
            return Err(ApiError::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json, application/vnd.kubernetes.protobuf",
            ));
        }
        parse_object(&content_type, "DeleteOptions", &body)?.object
    };
    if !given.is_object() {
        return Err(ApiError::bad_request("DeleteOptions cannot be read: not an object"));
    }
    let mut options: DeleteOptions = serde_json::from_value(given)
        .map_err(|error| ApiError::bad_request(format!("DeleteOptions cannot be read: {error}")))?;
    if let Some(policy) = &params.propagation {
        options.propagation_policy = Some(policy.clone());
    }
    if params.dry_run {
        options.dry_run = Some(vec!["All".into()]);
    }
    Ok(options)
}
