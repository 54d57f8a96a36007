//! Which entry of `manifestConfigs` is for an object, and conditions in a status.

use aviary_api::ManifestWork;
use aviary_api::work::{ManifestConfigOption, ResourceIdentifier};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::member::Place;

/// The first entry that matches an object and says something.
pub(crate) fn entry<'a>(
    work: &'a ManifestWork,
    place: &Place,
    says: impl Fn(&ManifestConfigOption) -> bool,
) -> Option<&'a ManifestConfigOption> {
    work.spec.manifest_configs.iter().find(|entry| is_for(&entry.resource_identifier, place) && says(entry))
}

pub(crate) fn is_for(identifier: &ResourceIdentifier, place: &Place) -> bool {
    identifier.group.as_deref().unwrap_or_default() == place.group
        && identifier.resource == place.resource
        && matches(&identifier.name, &place.name)
        && matches(identifier.namespace.as_deref().unwrap_or_default(), &place.namespace)
}

/// `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len()).filter_map(|at| text.get(at..)).any(|text| matches(rest, text))
        }),
    }
}

pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message})
}

/// Puts a condition in a list. Its time changes only with its status.
pub(crate) fn set(conditions: &mut Vec<Value>, mut new: Value) {
    let old = conditions.iter().position(|one| one["type"] == new["type"]);
    let since = old.and_then(|at| conditions.get(at)).filter(|old| old["status"] == new["status"]);
    let since = since.map(|old| old["lastTransitionTime"].clone()).filter(|since| !since.is_null());
    new["lastTransitionTime"] = since.unwrap_or_else(now);
    match old.and_then(|at| conditions.get_mut(at)) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

pub(crate) fn now() -> Value {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string().into()
}

pub(crate) fn list(value: &Value, pointer: &str) -> Vec<Value> {
    value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(namespace: &str, name: &str) -> Place {
        let text = |text: &str| text.to_owned();
        Place {
            group: text("apps"),
            version: text("v1"),
            kind: text("Deployment"),
            resource: text("deployments"),
            namespace: text(namespace),
            name: text(name),
        }
    }

    fn identifier(namespace: &str, name: &str) -> ResourceIdentifier {
        let fields =
            json!({"group": "apps", "resource": "deployments", "namespace": namespace, "name": name});
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_star_stands_for_any_text_in_names_and_namespaces() {
        let greeter = place("default", "greeter");
        for pattern in ["greeter", "*", "greet*", "*ter", "g*t*r", "greeter*"] {
            assert!(is_for(&identifier("default", pattern), &greeter), "{pattern}");
        }
        for pattern in ["greet", "*greet", "g*x*r", ""] {
            assert!(!is_for(&identifier("default", pattern), &greeter), "{pattern}");
        }
        assert!(is_for(&identifier("d*", "greeter"), &greeter));
        assert!(!is_for(&identifier("other", "greeter"), &greeter));
    }

    #[test]
    fn an_object_of_another_resource_or_group_is_another_one() {
        let mut other = place("default", "greeter");
        other.resource = "replicasets".to_owned();
        assert!(!is_for(&identifier("default", "*"), &other));
        let mut other = place("default", "greeter");
        other.group = "extensions".to_owned();
        assert!(!is_for(&identifier("default", "*"), &other));
    }

    #[test]
    fn only_the_first_entry_that_says_something_counts() {
        let entry_of = |name: &str, strategy: Option<&str>| {
            let id = identifier("default", name);
            json!({"resourceIdentifier": id, "updateStrategy": strategy.map(|type_| json!({"type": type_}))})
        };
        let work = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "work"},
            "spec": {"manifestConfigs": [
                entry_of("other", Some("ReadOnly")), entry_of("greeter", None),
                entry_of("*", Some("CreateOnly")), entry_of("greeter", Some("Update")),
            ]},
        });
        let work: ManifestWork = serde_json::from_value(work).unwrap();
        let found = entry(&work, &place("default", "greeter"), |entry| entry.update_strategy.is_some());
        let strategy =
            found.and_then(|entry| entry.update_strategy.as_ref()).and_then(|one| one.type_.clone());
        assert_eq!(strategy.as_deref(), Some("CreateOnly"));
    }

    #[test]
    fn the_time_of_a_condition_changes_only_with_its_status() {
        let mut conditions = Vec::new();
        set(&mut conditions, condition("Applied", "True", "Done", ""));
        conditions[0]["lastTransitionTime"] = "2020-01-01T00:00:00Z".into();
        set(&mut conditions, condition("Applied", "True", "DoneAgain", "new"));
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
        assert_eq!(conditions[0]["reason"], "DoneAgain");
        set(&mut conditions, condition("Applied", "False", "Failed", ""));
        assert_ne!(conditions[0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
    }
}
