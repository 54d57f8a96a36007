//! Which manifests of a template are pre-delete hooks: Jobs and Pods that run when an instance is
//! deleted, before anything is removed. They are never part of what is installed.

use aviary_api::names::{annotations, labels};
use serde_json::Value;

/// Whether a manifest is a pre-delete hook. As in OCM, only Jobs and Pods can be one, and the
/// annotation or the label counts whatever its value is.
pub(crate) fn is_hook(manifest: &Value) -> bool {
    let kind = manifest.get("kind").and_then(Value::as_str);
    let has = |map: &str, key: &str| {
        manifest.get("metadata").and_then(|metadata| metadata.get(map)?.get(key)).is_some()
    };
    matches!(kind, Some("Job" | "Pod"))
        && (has("annotations", annotations::PRE_DELETE_HOOK) || has("labels", labels::PRE_DELETE_HOOK))
}
