//! Field ownership of built-in kinds where it differs from their schemas here: the `listType`,
//! `listMapKey` and `structType` tags of the Go types (k8s.io/api v0.35). They do not affect
//! validation, so they are not part of admission.

use aviary_schema::structural::ListType;
use aviary_schema::{Cause, Schema};
use serde_json::Value;

#[derive(Clone, Copy)]
enum ListRule {
    /// A list map with this key.
    Keyed(&'static str),
    /// Atomic.
    Whole,
}

/// By kind and path; `[]` are the items of a list.
const RULES: [(&str, &[&str], ListRule); 10] = [
    ("Namespace", &["status", "conditions"], ListRule::Keyed("type")),
    ("CustomResourceDefinition", &["status", "conditions"], ListRule::Keyed("type")),
    ("ServiceAccount", &["secrets"], ListRule::Keyed("name")),
    ("ServiceAccount", &["secrets", "[]"], ListRule::Whole),
    ("ControllerRevision", &["data"], ListRule::Whole),
    ("RoleBinding", &["roleRef"], ListRule::Whole),
    ("ClusterRoleBinding", &["roleRef"], ListRule::Whole),
    ("Event", &["involvedObject"], ListRule::Whole),
    ("Event", &["regarding"], ListRule::Whole),
    ("Event", &["related"], ListRule::Whole),
];

/// The schema for field ownership of a built-in kind, if it differs from that of admission.
pub(crate) fn ownership(kind: &str, schema: &Value) -> Result<Option<Schema>, Vec<Cause>> {
    let rules = || RULES.iter().filter(|(of, _, _)| *of == kind);
    if rules().next().is_none() {
        return Ok(None);
    }
    let mut schema = Schema::parse(schema)?;
    for (_, path, rule) in rules() {
        let mut place = Some(&mut schema);
        for step in *path {
            place = place.and_then(|schema| match *step {
                "[]" => schema.items.as_deref_mut(),
                name => schema.properties.get_mut(name),
            });
        }
        match (place, rule) {
            (Some(list), ListRule::Keyed(key)) => list.list = ListType::Map(vec![(*key).to_owned()]),
            (Some(map), ListRule::Whole) => map.atomic_map = true,
            (None, _) => {}
        }
    }
    Ok(Some(schema))
}
