//! Which objects stay on the cluster when their work is deleted.

use aviary_api::names::annotations;
use serde_json::{Map, Value, json};

use crate::health::instruct::ObjectId;
use crate::health::probes;

/// Puts the objects that are annotated `deletion-orphan` into the delete option of a work, beside
/// what the template's author put there. Without such objects the option stays as it is.
pub(super) fn keep(spec: &mut Map<String, Value>, manifests: &[Value], definitions: &[Value]) {
    let rules: Vec<Value> = manifests.iter().filter_map(|manifest| rule(manifest, definitions)).collect();
    if rules.is_empty() {
        return;
    }
    let option = spec.entry("deleteOption").or_insert_with(|| json!({}));
    // The author keeps everything.
    if option.get("propagationPolicy").is_some_and(|policy| policy == "Orphan") {
        return;
    }
    let given = option.pointer("/selectivelyOrphans/orphaningRules").and_then(Value::as_array);
    let mut all = given.cloned().unwrap_or_default();
    all.extend(rules.into_iter().filter(|rule| !given.is_some_and(|given| given.contains(rule))));
    option["propagationPolicy"] = "SelectivelyOrphan".into();
    option["selectivelyOrphans"] = json!({ "orphaningRules": all });
}

fn rule(manifest: &Value, definitions: &[Value]) -> Option<Value> {
    manifest.pointer("/metadata/annotations")?.get(annotations::DELETION_ORPHAN)?;
    let id = ObjectId::of(manifest)?;
    let mut rule = json!({"group": id.group, "resource": resource(id, definitions), "name": id.name});
    if !id.namespace.is_empty() {
        rule["namespace"] = id.namespace.into();
    }
    Some(rule)
}

/// The plural of an object's kind: of a built-in kind, of a definition in the same template, or the
/// one that is usual.
fn resource(id: ObjectId<'_>, definitions: &[Value]) -> String {
    let built_in = probes::built_in(id.group, id.kind).map(|probe| probe.resource);
    let defined = definitions.iter().find_map(|definition| {
        let spec = definition.get("spec")?;
        let same = spec.get("group")? == id.group && spec.pointer("/names/kind")? == id.kind;
        spec.pointer("/names/plural").filter(|_| same)?.as_str()
    });
    match built_in.filter(|plural| !plural.is_empty()).or(defined) {
        Some(plural) => plural.to_owned(),
        None => guessed(id.kind),
    }
}

fn guessed(kind: &str) -> String {
    let one = kind.to_lowercase();
    match one.strip_suffix('y') {
        _ if one == "endpoints" => one,
        Some(stem) => format!("{stem}ies"),
        None if one.ends_with('s') => format!("{one}es"),
        None => format!("{one}s"),
    }
}
