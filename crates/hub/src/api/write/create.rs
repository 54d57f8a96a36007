//! Creating an object.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::apply::put_managers;
use super::{
    Body, Content, Mode, RequestScope, WriteResponse, admit, check_kind, commit, encode, metadata_of, text,
    to_stored,
};
use crate::api::status::ApiError;
use crate::formats::apply::Managers;
use crate::formats::metadata;
use crate::hub::HubState;
use crate::kinds::builtin::{NAMESPACES, RBAC_GROUP};
use crate::store::{StoreChange, StoreState};

/// How many generated names are tried.
const NAME_TRIES: usize = 8;
/// Without vowels and similar characters, so that no name reads as a word.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

pub(crate) async fn create(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    body: Body,
    mode: Mode<'_>,
) -> Result<WriteResponse, ApiError> {
    let mut body = body;
    check_kind(scope, &mut body.object)?;
    let prefix = prepare(hub, scope, &mut body.object)?;
    let Some(prefix) = prefix else {
        let name = text(&body.object, "/metadata/name").to_owned();
        let made = try_create(hub, scope, body, None, mode).await?;
        return made.ok_or_else(|| {
            let there = hub.store.head().get(&scope.resource.id, &scope.key(&name)).cloned();
            ApiError::already_exists(scope.about(&name), there.is_some_and(|stored| stored.facts.terminating))
        });
    };
    let mut name = String::new();
    for _ in 0..NAME_TRIES {
        let mut body = body.clone();
        name = format!("{prefix}{}", hub.random_text(LETTERS, 5)?);
        if let Some(metadata) = metadata_of(&mut body.object) {
            metadata.insert("name".into(), name.as_str().into());
        }
        if let Some(made) = try_create(hub, scope, body, None, mode).await? {
            return Ok(made);
        }
    }
    Err(ApiError::name_not_generated(scope.about(&name)))
}

/// Creates an object for an apply. `None` if the object exists by now.
pub(super) async fn create_applied(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    body: Body,
    managers: &Managers,
    mode: Mode<'_>,
) -> Result<Option<WriteResponse>, ApiError> {
    let mut body = body;
    prepare(hub, scope, &mut body.object)?;
    try_create(hub, scope, body, Some(managers), mode).await
}

/// Prepares the metadata of the new object. Returns the prefix if its name has to be generated.
fn prepare(hub: &HubState, scope: &RequestScope, object: &mut Value) -> Result<Option<String>, ApiError> {
    let generation = scope.resource.traits.generation;
    let has_status = scope.required_version()?.has_status;
    let Value::Object(fields) = object else { return Err(ApiError::bad_request("not an object")) };
    if has_status && scope.resource.is_custom() {
        fields.remove("status");
    }
    let metadata = fields.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = json!({});
    }
    // `admit` reports invalid metadata; here it must only not be lost.
    let Value::Object(metadata) = metadata else { return Ok(None) };
    if !metadata::fits(metadata) {
        return Ok(None);
    }
    let given = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if !given("resourceVersion").is_empty() {
        return Err(ApiError::failed("resourceVersion should not be set on objects to be created"));
    }
    let (namespace, name, prefix) = (given("namespace"), given("name"), given("generateName"));
    match &scope.namespace {
        Some(expected) if namespace.is_empty() => {
            metadata.insert("namespace".into(), expected.as_str().into())
        }
        Some(expected) if namespace != *expected => {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        None if !namespace.is_empty() => {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        _ => None,
    };
    metadata::begin(metadata, hub.random_uid()?, &hub.now_text(), generation);
    Ok((name.is_empty() && !prefix.is_empty()).then_some(prefix))
}

/// Returns `None` if the object exists.
async fn try_create(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    body: Body,
    managers: Option<&Managers>,
    mode: Mode<'_>,
) -> Result<Option<WriteResponse>, ApiError> {
    let admitted = admit(hub, scope, body, None, mode.unknown_fields)?;
    let mut object = to_stored(scope, admitted.object)?;
    if let Some(managers) = managers {
        put_managers(&mut object, managers);
    }
    let name = text(&object, "/metadata/name").to_owned();
    let action = encode(scope, &object)?;
    let key = scope.key(&name);
    let allow = |state: &StoreState| namespace_takes(state, scope, &name);
    let mut warnings = admitted.warnings;
    if scope.resource.group == RBAC_GROUP {
        warnings.push("this hub stores RBAC objects and does not enforce them".into());
    }
    if mode.dry_run {
        let head = hub.store.head();
        if head.get(&scope.resource.id, &key).is_some() {
            return Ok(None);
        }
        allow(&head)?;
        return Ok(Some(WriteResponse {
            code: StatusCode::CREATED,
            content: Content::Imagined(object),
            warnings,
        }));
    }
    let change = StoreChange { resource: Arc::clone(&scope.resource.id), key, expect: None, action };
    let stored = commit(hub, change, allow).await?;
    Ok(stored.map(|stored| WriteResponse {
        code: StatusCode::CREATED,
        content: Content::Stored(stored),
        warnings,
    }))
}

/// New objects need a namespace that exists and is not being deleted.
fn namespace_takes(state: &StoreState, scope: &RequestScope, name: &str) -> Result<(), ApiError> {
    let Some(namespace) = &scope.namespace else { return Ok(()) };
    match state.get(NAMESPACES, namespace) {
        None => Err(ApiError::not_found(crate::api::status::About {
            group: "",
            resource: NAMESPACES,
            kind: "Namespace",
            name: namespace,
        })),
        Some(stored) if stored.facts.terminating => {
            Err(ApiError::namespace_terminating(scope.about(name), namespace))
        }
        Some(_) => Ok(()),
    }
}
