//! Checks every request before anything else: host name, origin and path.
//!
//! Also owns the headers of every response. It never sends a CORS header and never sets a cookie.
//! It must not know tokens: those belong to [`crate::access`].

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::refusal::ErrorResponse;

/// Whether a `Host`, with or without a port, belongs to the dashboard.
pub type HostCheck = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Longer than any path of the dashboard with the longest names.
const LONGEST_PATH: usize = 1024;
const LONGEST_QUERY: usize = 512;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) hosts: HostCheck,
    pub(crate) secure: bool,
}

/// Admits a request, or refuses it.
pub(crate) async fn pass(State(guard): State<Guard>, request: Request<Body>, next: Next) -> Response {
    match guard.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

impl Guard {
    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ErrorResponse> {
        let host = self.host(uri, headers).ok_or_else(|| {
            ErrorResponse::new(StatusCode::FORBIDDEN, "this host name does not belong to the dashboard")
        })?;
        if !is_plain(uri) {
            return Err(ErrorResponse::wrong("invalid path"));
        }
        if !self.is_own(headers, &host) {
            return Err(ErrorResponse::new(StatusCode::FORBIDDEN, "cross-origin request refused"));
        }
        Ok(())
    }

    /// The host of a request: from `Host`, from HTTP/2's `:authority`, or from both if they are
    /// equal.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let mut named = headers.get_all(HOST).iter();
        let (host, second) = (named.next(), named.next());
        if second.is_some() {
            return None;
        }
        let host = match host {
            Some(host) => Some(host.to_str().ok()?),
            None => None,
        };
        let authority = uri.authority().map(Authority::as_str);
        let one = host.or(authority)?;
        let all_ours = [host, authority].into_iter().flatten().all(|name| (self.hosts)(name));
        let same = authority.is_none_or(|authority| authority.eq_ignore_ascii_case(one));
        (all_ours && same).then(|| one.to_ascii_lowercase())
    }

    /// Whether the request comes from our own page, or from no page at all.
    fn is_own(&self, headers: &HeaderMap, host: &str) -> bool {
        let scheme = if self.secure { "https" } else { "http" };
        let own = format!("{scheme}://{host}");
        let ours =
            |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(&own));
        headers.get_all(ORIGIN).iter().all(ours)
    }
}

/// Whether the browser marks the request as cross-site. A link to the page itself may come from
/// anywhere.
pub(crate) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

/// No path of the dashboard needs an escape, so a path with one is refused.
fn is_plain(uri: &Uri) -> bool {
    let path = uri.path();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_');
    let segments = path.strip_prefix('/').unwrap_or_default();
    let proper = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
    path.len() <= LONGEST_PATH
        && uri.query().is_none_or(|query| query.len() <= LONGEST_QUERY)
        && path.bytes().all(plain)
        && (path == "/" || segments.split('/').all(proper))
}

/// Adds the headers to every response.
pub(crate) async fn with_headers(request: Request<Body>, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut put = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    put(CONTENT_SECURITY_POLICY, POLICY);
    put(X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(X_FRAME_OPTIONS, "DENY");
    put(REFERRER_POLICY, "no-referrer");
    put(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    put(HeaderName::from_static("cross-origin-embedder-policy"), "require-corp");
    put(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    put(HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), usb=()");
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(uri: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let hosts: HostCheck = Arc::new(|host| host.starts_with("localhost"));
        let map = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        let guard = Guard { hosts, secure: false };
        guard.check(&uri.parse().unwrap(), &map).err().map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_our_own_hosts_are_answered() {
        assert_eq!(refused("/", &[("host", "localhost:1")]), None);
        assert_eq!(refused("/", &[("host", "LOCALHOST:1")]), Some(403), "the check says which are ours");
        assert_eq!(refused("/", &[("host", "evil.example")]), Some(403));
        assert_eq!(refused("/", &[]), Some(403));
        assert_eq!(refused("http://evil.example/", &[("host", "localhost:1")]), Some(403));
        assert_eq!(refused("http://localhost:1/", &[("host", "localhost:1")]), None);
        assert_eq!(refused("http://localhost:1/", &[("host", "localhost:2")]), Some(403), "two hosts");
        assert_eq!(refused("http://localhost:1/", &[]), None, "HTTP/2 names it so");
    }

    #[test]
    fn a_foreign_page_gets_nothing() {
        let with = |origin: &str| refused("/api/info", &[("host", "localhost:1"), ("origin", origin)]);
        assert_eq!(with("http://localhost:1"), None);
        for foreign in [
            "http://localhost:2",
            "https://localhost:1",
            "http://localhost",
            "null",
            "",
            "http://evil.example",
        ] {
            assert_eq!(with(foreign), Some(403), "{foreign}");
        }
    }

    #[test]
    fn a_path_is_taken_as_it_is_or_not_at_all() {
        let path = |path: &str| refused(path, &[("host", "localhost:1")]);
        for fine in ["/", "/main.js", "/api/addons/hello.world/clusters/c-1", "/api/stream?addon=x%20y"] {
            assert_eq!(path(fine), None, "{fine}");
        }
        let long = format!("/{}", "a".repeat(LONGEST_PATH));
        let tricks = [
            "/../etc/passwd",
            "/./main.js",
            "//main.js",
            "/api//info",
            "/api/",
            "/%2e%2e/x",
            "/api%2finfo",
            "/main.js%00",
            "/api/addons/a%2f..%2fb/actions",
            "/a;b",
            "/a\\b",
            "/~x",
            &long,
        ];
        for trick in tricks {
            if trick.parse::<Uri>().is_ok() {
                assert_eq!(path(trick), Some(400), "{trick}");
            }
        }
    }
}
