//! Checks every request from a socket first: host, then token.
//!
//! Must not decide what an identity may do, and must never send CORS headers.

use std::sync::Arc;

use aviary_serve::{AllowedHosts, Credential, host_allowed};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use serde_json::json;

use super::tokens::{Identity, Tokens};

/// The paths that need no token.
const ANONYMOUS: [&str; 3] = ["/livez", "/readyz", "/version"];

/// The allowed host names, and the known tokens.
#[derive(Clone, Debug)]
pub struct Gate {
    hosts: Arc<AllowedHosts>,
    tokens: Arc<Tokens>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejection {
    WrongHost,
    Unauthorized,
}

impl Gate {
    pub fn new(hosts: AllowedHosts, tokens: Arc<Tokens>) -> Self {
        Self { hosts: Arc::new(hosts), tokens }
    }

    /// The identity of the request; `None` only for paths that need no token.
    fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Option<Identity>, Rejection> {
        if !self.names_us(uri, headers) {
            return Err(Rejection::WrongHost);
        }
        match Credential::of(headers) {
            // A wrong token is reported, unlike a missing one: its owner should know.
            Credential::Token(token) => match self.tokens.identify(token) {
                Some(identity) => Ok(Some(identity)),
                None => Err(Rejection::Unauthorized),
            },
            Credential::None if method == Method::GET && ANONYMOUS.contains(&uri.path()) => Ok(None),
            Credential::None | Credential::Unusable => Err(Rejection::Unauthorized),
        }
    }

    /// HTTP/2 has the host in `:authority` and HTTP/1.1 in `Host`, or in the target if that is a
    /// full URL. All that exist must be allowed, and at least one must exist.
    fn names_us(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        if second.is_some() || (host.is_none() && uri.authority().is_none()) {
            return false;
        }
        let host_is_ours =
            host.is_none_or(|value| value.to_str().is_ok_and(|text| host_allowed(text, &self.hosts)));
        let authority_is_ours =
            uri.authority().is_none_or(|authority| host_allowed(authority.as_str(), &self.hosts));
        host_is_ours && authority_is_ours
    }
}

/// Puts the gate in front of everything that `app` serves, including its fallback. Apply it last.
pub fn guard(app: Router, gate: Gate) -> Router {
    app.layer(from_fn_with_state(gate, pass))
}

async fn pass(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    match gate.admit(request.method(), request.uri(), request.headers()) {
        Ok(identity) => {
            // Only the gate sets the identity, whatever an outer layer may have set.
            request.extensions_mut().remove::<Identity>();
            if let Some(identity) = identity {
                request.extensions_mut().insert(identity);
            }
            next.run(request).await
        }
        Err(rejection) => rejection.response(),
    }
}

impl Rejection {
    fn response(self) -> Response {
        let (code, reason, message) = match self {
            Self::WrongHost => (
                StatusCode::MISDIRECTED_REQUEST,
                "MisdirectedRequest",
                "this hub does not answer to the host that the request names",
            ),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"),
        };
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code.as_u16(),
        });
        let mut response = Response::new(Body::from(status.to_string()));
        *response.status_mut() = code;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self == Self::Unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::access::Role;
    use axum::Extension;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    /// Responds with the identity, on some routes and in the fallback.
    fn app() -> (Router, String) {
        let tokens = Arc::new(Tokens::ephemeral());
        let secret = tokens.issue("me", Role::ReadOnly).unwrap();
        let who = |identity: Option<Extension<Identity>>| async move {
            identity.map_or("nobody".to_owned(), |Extension(identity)| identity.name)
        };
        let router = Router::new().route("/version", get(who)).route("/livez", get(who)).fallback(who);
        (guard(router, Gate::new(AllowedHosts::loopback(), tokens)), secret.expose().to_owned())
    }

    async fn answer(app: &Router, request: Request) -> (Response, String) {
        let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (Response::from_parts(parts, Body::empty()), String::from_utf8(body.into()).unwrap())
    }

    /// `headers` as lines; `TOKEN` stands for a valid token.
    async fn said(request_line: &str, headers: &str) -> String {
        let (app, token) = app();
        let (method, target) = request_line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers.lines().filter_map(|line| line.trim().split_once(": ")) {
            request = request.header(name, value.replace("TOKEN", &token));
        }
        let (response, body) = answer(&app, request.body(Body::empty()).unwrap()).await;
        match response.status() {
            StatusCode::OK => body,
            other => other.as_u16().to_string(),
        }
    }

    #[tokio::test]
    async fn only_a_known_token_passes_and_probes_need_none() {
        let table = [
            ("GET /apis", "Authorization: Bearer TOKEN", "me"),
            ("GET /apis", "authorization: bearer   TOKEN ", "me"),
            ("GET /version", "Authorization: Bearer TOKEN", "me"),
            ("GET /version", "", "nobody"),
            ("GET /livez", "", "nobody"),
            ("GET /readyz", "", "nobody"),
            ("GET /readyz?verbose", "", "nobody"),
            ("GET /livez/", "", "401"),
            ("GET /livez/etcd", "", "401"),
            ("GET //livez", "", "401"),
            ("GET /LIVEZ", "", "401"),
            ("POST /livez", "", "401"),
            ("HEAD /livez", "", "401"),
            ("OPTIONS /livez", "Origin: https://evil.example", "401"),
            ("GET /livez", "Authorization: Bearer wrong", "401"),
            ("GET /apis", "", "401"),
            ("GET /no/such/path", "", "401"),
            ("GET /apis", "Authorization: Bearer", "401"),
            ("GET /apis", "Authorization: Basic TOKEN", "401"),
            ("GET /apis", "Authorization: TOKEN", "401"),
            ("GET /apis", "Authorization: Bearer tökén", "401"),
            ("GET /apis", "Authorization: Bearer TOKEN\nAuthorization: Bearer TOKEN", "401"),
            ("GET /apis", "Cookie: token=TOKEN", "401"),
            ("GET /apis", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.TOKEN", "401"),
        ];
        for (request, headers, expected) in table {
            let said = said(request, &format!("Host: localhost:6443\n{headers}")).await;
            assert_eq!(said, expected, "{request} {headers}");
        }
        let (app, token) = app();
        let uri = format!("https://localhost/apis?access_token={token}");
        let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
        assert_eq!(answer(&app, request).await.0.status(), StatusCode::UNAUTHORIZED);
    }

    #[tokio::test]
    async fn a_foreign_host_is_turned_away_whatever_it_knows() {
        let table = [
            ("GET /apis", "Host: evil.example", "421"),
            ("GET /livez", "Host: evil.example", "421"),
            ("GET /apis", "", "421"),
            ("GET /apis", "Host: localhost\nHost: localhost", "421"),
            ("GET /apis", "Host: localhost\nHost: evil.example", "421"),
            ("GET https://evil.example/apis", "Host: localhost", "421"),
            ("GET https://localhost/apis", "Host: evil.example", "421"),
            ("GET https://evil.example/apis", "", "421"),
            ("GET https://localhost:6443/apis", "", "me"),
            ("GET https://[::1]:6443/apis", "Host: [::1]:6443", "me"),
        ];
        for (request, headers, expected) in table {
            let said = said(request, &format!("Authorization: Bearer TOKEN\n{headers}")).await;
            assert_eq!(said, expected, "{request} {headers}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_a_status_without_cors() {
        let (app, _) = app();
        let request =
            Request::builder().uri("https://localhost/api").header("origin", "https://evil.example");
        let (response, body) = answer(&app, request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let status: serde_json::Value = serde_json::from_str(&body).unwrap();
        let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
        assert_eq!(status, expected);
        let names = response.headers().keys();
        assert!(!names.into_iter().any(|name| name.as_str().starts_with("access-control-")));
    }
}
