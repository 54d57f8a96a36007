//! The error response: a status and a sentence for the user.

use aviary_controller::LookError;
use axum::Json;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    pub status: StatusCode,
    pub message: String,
}

impl ErrorResponse {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn unknown_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "a valid token is required")
    }

    /// Passes on a hub's error. `own` means that the token was the user's: only then should they
    /// give another.
    pub(crate) fn of_hub(doing: &str, error: &kube::Error, own: bool) -> Self {
        let kube::Error::Api(said) = error else {
            return Self::new(
                StatusCode::BAD_GATEWAY,
                format!("failed to {doing}: the hub is unreachable: {error}"),
            );
        };
        match said.code {
            401 if own => Self::unknown_token(),
            401 => Self::new(
                StatusCode::BAD_GATEWAY,
                format!("failed to {doing}: the hub no longer accepts the credentials of the kubeconfig"),
            ),
            403 => Self::new(StatusCode::FORBIDDEN, format!("failed to {doing}: {}", said.message)),
            404 => Self::new(StatusCode::NOT_FOUND, format!("failed to {doing}: {}", said.message)),
            409 => Self::new(StatusCode::CONFLICT, format!("failed to {doing}: {}", said.message)),
            _ => Self::new(StatusCode::BAD_GATEWAY, format!("failed to {doing}: {}", said.message)),
        }
    }

    pub(crate) fn of_look(error: &LookError, own: bool) -> Self {
        Self::of_hub(&error.doing, &error.source, own)
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": self.message}))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
