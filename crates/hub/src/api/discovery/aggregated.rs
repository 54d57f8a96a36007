//! Aggregated discovery: all groups, versions and resources in one document, with an ETag.
//!
//! Owns `APIGroupDiscoveryList`, which kube-apiserver serves at `/api` and `/apis` if `Accept` asks
//! for it.

use axum::body::Body;
use axum::response::Response;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use super::{DiscoveryEntry, entries, put_names, versions_by_group};
use crate::api::negotiate::MediaRange;
use crate::api::status::ApiError;
use crate::kinds::resource::KindTable;

const GROUP: &str = "apidiscovery.k8s.io";
const VERSION: &str = "v2";
const KIND: &str = "APIGroupDiscoveryList";
const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether `Accept` contains aggregated discovery.
pub(crate) fn is_asked(headers: &HeaderMap) -> bool {
    MediaRange::all(headers, ACCEPT)
        .any(|range| range.takes_json() && range.transform() == (Some(GROUP), Some(VERSION), Some(KIND)))
}

/// Refuses a client that accepts none of the plain documents.
pub(crate) fn check_plain(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut ranges = MediaRange::all(headers, ACCEPT).peekable();
    let takes_plain = |range: MediaRange<'_>| range.takes_json() && range.transform() == (None, None, None);
    if ranges.peek().is_none() || ranges.any(takes_plain) {
        Ok(())
    } else {
        Err(ApiError::not_acceptable("application/json"))
    }
}

/// The core group alone: `/api`.
pub(crate) fn core(table: &KindTable, headers: &HeaderMap) -> Response {
    answer(&[group(table, "", &["v1"])], headers)
}

/// All other groups: `/apis`.
pub(crate) fn groups(table: &KindTable, headers: &HeaderMap) -> Response {
    let groups: Vec<Value> =
        versions_by_group(table).into_iter().map(|(name, versions)| group(table, name, &versions)).collect();
    answer(&groups, headers)
}

fn answer(groups: &[Value], headers: &HeaderMap) -> Response {
    let list =
        json!({"kind": KIND, "apiVersion": format!("{GROUP}/{VERSION}"), "metadata": {}, "items": groups});
    let text = list.to_string();
    let digest: String = Sha512::digest(&text).iter().map(|byte| format!("{byte:02X}")).collect();
    let tag = format!("\"{digest}\"");
    let known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if known { Response::default() } else { Response::new(Body::from(text)) };
    let head = response.headers_mut();
    if !known {
        head.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    }
    head.insert(VARY, HeaderValue::from_static("Accept"));
    head.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        head.insert(ETAG, tag);
    }
    *response.status_mut() = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    response
}

fn group(table: &KindTable, name: &str, versions: &[&str]) -> Value {
    let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    let version = |version: &&str| {
        let resources: Vec<Value> =
            entries(table, name, version).iter().map(|entry| resource(entry, name, version)).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({"metadata": metadata, "versions": versions})
}

fn resource(entry: &DiscoveryEntry<'_>, group: &str, version: &str) -> Value {
    // For built-in kinds Kubernetes omits group and version: they are those of the list.
    let (group, version) = if entry.is_custom { (group, version) } else { ("", "") };
    let kind = json!({"group": group, "version": version, "kind": entry.kind});
    let mut value = json!({
        "resource": entry.name, "responseKind": kind, "scope": if entry.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": entry.singular, "verbs": entry.verbs,
    });
    put_names(&mut value, entry);
    if !entry.parts.is_empty() {
        let part = |(name, verbs): &(&str, &[&str])| json!({"subresource": name, "responseKind": kind, "verbs": verbs});
        value["subresources"] = entry.parts.iter().map(part).collect();
    }
    value
}
