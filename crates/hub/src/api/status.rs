//! Maps every error to a Kubernetes `Status`.
//!
//! Owns codes, reasons and messages. Must not decide that something has failed.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde_json::{Map, Value, json};

use aviary_schema::Cause;

use crate::formats::metadata::invalid;

/// An error response.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) code: StatusCode,
    reason: &'static str,
    message: String,
    /// `Some(empty)` is sent as an empty object; `None` is omitted.
    details: Option<Map<String, Value>>,
    retry_after: Option<u32>,
    /// Kubernetes answers in plain text for paths outside any API.
    is_plain_text: bool,
}

/// The kind and the name that an error is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    /// The plural, which is `details.kind` of most errors.
    pub(crate) resource: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self, kind: &str) -> Map<String, Value> {
        let mut details = Map::new();
        for (field, value) in [("name", self.name), ("group", self.group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(field.into(), value.into());
            }
        }
        details
    }
}

impl ApiError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, reason, message, details: None, retry_after: None, is_plain_text: false }
    }

    fn about(mut self, details: Map<String, Value>) -> Self {
        self.details = Some(details);
        self
    }

    fn detail(&mut self, field: &str, value: Value) {
        self.details.get_or_insert_default().insert(field.into(), value);
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(message: impl Into<String>, about: About<'_>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(about.details(about.resource))
    }

    pub(crate) fn forbidden_because(about: About<'_>, why: &str) -> Self {
        Self::forbidden(format!("{} {:?} is forbidden: {why}", about.qualified(), about.name), about)
    }

    /// A create in a namespace that is being deleted.
    pub(crate) fn namespace_terminating(about: About<'_>, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut failure = Self::forbidden_because(about, &why);
        let cause = json!({"reason": "NamespaceTerminating", "message": why_terminating(namespace), "field": "metadata.namespace"});
        failure.detail("causes", json!([cause]));
        failure
    }

    /// The deletion of a permanent namespace.
    pub(crate) fn namespace_stays(about: About<'_>) -> Self {
        Self::forbidden_because(about, "this namespace may not be deleted")
    }

    /// An unknown path below an existing API.
    pub(crate) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
            .about(Map::new())
    }

    /// A path outside any API.
    pub(crate) fn page_not_found() -> Self {
        let failure = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found\n");
        Self { is_plain_text: true, ..failure }
    }

    pub(crate) fn not_found(about: About<'_>) -> Self {
        let message = format!("{} {:?} not found", about.qualified(), about.name);
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(about.details(about.resource))
    }

    pub(crate) fn already_exists(about: About<'_>, is_going: bool) -> Self {
        let going = if is_going { "object is being deleted: " } else { "" };
        let message = format!("{going}{} {:?} already exists", about.qualified(), about.name);
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(about.details(about.resource))
    }

    /// All attempts to generate a name were taken.
    pub(crate) fn name_not_generated(about: About<'_>) -> Self {
        let message = format!(
            "{} {:?} already exists, the server was not able to generate a unique name for the object",
            about.qualified(),
            about.name
        );
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(about.details(about.resource))
    }

    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", about.qualified(), about.name);
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(about.details(about.resource))
    }

    /// A write that was based on an older state.
    pub(crate) fn stale(about: About<'_>) -> Self {
        Self::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// An apply that would change fields of other managers: their fields, by manager.
    pub(crate) fn apply_conflict(conflicts: &[(String, Vec<String>)]) -> Self {
        let all = || {
            conflicts.iter().flat_map(|(manager, fields)| fields.iter().map(move |field| (manager, field)))
        };
        let message = match all().collect::<Vec<_>>().as_slice() {
            [(manager, field)] => format!("Apply failed with 1 conflict: conflict with {manager}: {field}"),
            many => {
                let part = |(manager, fields): &(String, Vec<String>)| {
                    format!("conflicts with {manager}:\n- {}", fields.join("\n- "))
                };
                let parts: Vec<String> = conflicts.iter().map(part).collect();
                format!("Apply failed with {} conflicts: {}", many.len(), parts.join("\n"))
            }
        };
        let cause = |(manager, field)| {
            let message = format!("conflict with {manager}");
            json!({"reason": "FieldManagerConflict", "message": message, "field": field})
        };
        let mut failure = Self::new(StatusCode::CONFLICT, "Conflict", message);
        failure.detail("causes", all().map(cause).collect());
        failure
    }

    pub(crate) fn invalid(about: About<'_>, causes: &[Cause]) -> Self {
        let list: Vec<String> = causes.iter().map(ToString::to_string).collect();
        let list = match list.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let kind = if about.group.is_empty() {
            about.kind.to_owned()
        } else {
            format!("{}.{}", about.kind, about.group)
        };
        let mut details = about.details(about.kind);
        details.insert("causes".into(), serde_json::to_value(causes).unwrap_or_default());
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{kind} {:?} is invalid: {list}", about.name),
        )
        .about(details)
    }

    /// Unknown or contradictory options: `kind` is `ListOptions`, `CreateOptions` and so on.
    pub(crate) fn options(kind: &str, cause: Cause) -> Self {
        Self::invalid(About { group: "meta.k8s.io", resource: "", kind, name: "" }, &[cause])
    }

    /// A patch that cannot be applied to the object: a failed test, a missing path.
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .about(Map::new())
    }

    /// A subresource of a custom resource that can only be read and changed.
    pub(crate) fn not_supported(verb: &str, about: About<'_>) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", about.qualified());
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
            .about(about.details(about.resource))
    }

    pub(crate) fn crd_terminating(about: About<'_>) -> Self {
        let message = format!(
            "create not allowed while custom resource definition is terminating: {}",
            about.qualified()
        );
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
            .about(about.details(about.resource))
    }

    pub(crate) fn not_acceptable(supported: &str) -> Self {
        let message = format!("only the following media types are accepted: {supported}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// A read of a revision that does not exist yet.
    pub(crate) fn revision_in_future(asked: u64, current: u64) -> Self {
        let mut failure = Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        );
        let cause = json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
        failure.detail("causes", cause);
        failure.detail("retryAfterSeconds", json!(1));
        failure.retry_after = Some(1);
        failure
    }

    pub(crate) fn too_many_requests(message: impl Into<String>) -> Self {
        let mut failure = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        failure.detail("retryAfterSeconds", json!(1));
        failure.retry_after = Some(1);
        failure
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
    }

    /// An error without a reason in Kubernetes.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    pub(crate) fn stopping() -> Self {
        let mut failure =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "the hub is stopping");
        failure.retry_after = Some(1);
        failure
    }

    /// An invalid body is a bad request; an invalid result of a patch is an invalid object.
    pub(crate) fn of_patch(self) -> Self {
        if self.code != StatusCode::BAD_REQUEST {
            return self;
        }
        let nothing = About { group: "", resource: "", kind: "", name: "" };
        Self::invalid(nothing, &[invalid("patch", "", &self.message)])
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }
}

fn why_terminating(namespace: &str) -> String {
    format!("namespace {namespace} is being terminated")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if self.is_plain_text {
            return (self.code, self.message).into_response();
        }
        let mut response = json_response(self.code, self.to_value().to_string());
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The response to a completed deletion.
pub(crate) fn deleted(about: About<'_>, uid: &str) -> Value {
    let mut details = about.details(about.resource);
    details.insert("uid".into(), uid.into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

pub(crate) fn json_response(code: StatusCode, body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
