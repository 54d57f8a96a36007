//! Where built-in kinds own fields otherwise than their schemas here say: the `listType`, `listMapKey` and `structType` tags of
//! the Go types (k8s.io/api v0.35), which promise nothing about values and so are no part of admission.

use aviary_schema::structural::ListType;
use aviary_schema::{Cause, Schema};
use serde_json::Value;

#[derive(Clone, Copy)]
enum Rule {
    /// A list whose items are told apart by this key.
    Keyed(&'static str),
    /// Owned as a whole.
    Whole,
}

/// By kind and path; `[]` are the items of a list.
const RULES: [(&str, &[&str], Rule); 10] = [
    ("Namespace", &["status", "conditions"], Rule::Keyed("type")),
    ("CustomResourceDefinition", &["status", "conditions"], Rule::Keyed("type")),
    ("ServiceAccount", &["secrets"], Rule::Keyed("name")),
    ("ServiceAccount", &["secrets", "[]"], Rule::Whole),
    ("ControllerRevision", &["data"], Rule::Whole),
    ("RoleBinding", &["roleRef"], Rule::Whole),
    ("ClusterRoleBinding", &["roleRef"], Rule::Whole),
    ("Event", &["involvedObject"], Rule::Whole),
    ("Event", &["regarding"], Rule::Whole),
    ("Event", &["related"], Rule::Whole),
];

/// The schema by which the managers of a built-in kind go, if it is not the one of its admission.
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
            (Some(list), Rule::Keyed(key)) => list.list = ListType::Map(vec![(*key).to_owned()]),
            (Some(map), Rule::Whole) => map.atomic_map = true,
            (None, _) => {}
        }
    }
    Ok(Some(schema))
}
