use serde_json::Value;

/// A manifest of a work as its author wrote it, without the digest that rendering adds.
pub fn as_authored(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        let before = annotations.len();
        annotations.retain(|key, _| !key.starts_with("addon.open-cluster-management.io/digest-"));
        if annotations.is_empty() && before > 0 {
            metadata.remove("annotations");
        }
    }
    manifest
}
