//! The static page, which is part of the binary. It contains no data and needs no token.

use axum::Router;
use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};

use crate::guard;
use crate::refusal::ErrorResponse;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml; charset=utf-8";

struct PageFile {
    path: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

macro_rules! files {
    ($($kind:ident $path:literal $file:literal;)*) => {
        &[$(PageFile { path: $path, kind: $kind, content: include_bytes!(concat!("../page/", $file)) }),*]
    };
}

/// A new file is one line here.
const FILES: &[PageFile] = files! {
    HTML "/" "index.html";
    CSS "/style.css" "style.css";
    SVG "/icon.svg" "icon.svg";
    JS "/main.js" "main.js";
    JS "/dom.js" "dom.js";
    JS "/words.js" "words.js";
    JS "/api.js" "api.js";
    JS "/stream.js" "stream.js";
    JS "/state.js" "state.js";
    JS "/list.js" "list.js";
    JS "/addon.js" "addon.js";
    JS "/placements.js" "placements.js";
    JS "/squares.js" "squares.js";
    JS "/marks.js" "marks.js";
    JS "/timeline.js" "timeline.js";
    JS "/sections.js" "sections.js";
    JS "/panel.js" "panel.js";
    JS "/dialog.js" "dialog.js";
    JS "/results.js" "results.js";
};

/// The page alone, with its usual headers.
pub fn page() -> Router {
    Router::new().fallback(file).layer(from_fn(guard::with_headers))
}

/// One of the page's files.
pub(crate) async fn file(request: Request<Body>) -> Response {
    let Some(file) = FILES.iter().find(|file| file.path == request.uri().path()) else {
        return ErrorResponse::not_found("not found").into_response();
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused =
            ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed").into_response();
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    // A new binary has new files with the same names.
    ([(CONTENT_TYPE, file.kind), (CACHE_CONTROL, "no-cache")], file.content).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::FILES;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let there: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            // For editors and the type checker only.
            .filter(|name| !name.ends_with(".d.ts") && name != "jsconfig.json")
            .collect();
        let served: BTreeSet<String> = FILES
            .iter()
            .map(|file| if file.path == "/" { "index.html" } else { &file.path[1..] }.to_owned())
            .collect();
        assert_eq!(there, served);
    }
}
