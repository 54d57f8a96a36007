//! Rewrites one placement of an add-on so that it references the configs of another revision. Pure;
//! changes nothing else.

use std::collections::BTreeSet;

use aviary_engine::configs::{ConfigRef, GroupResource, Pin, Revision, inline_content};
use aviary_engine::hash;
use serde::Serialize;
use serde_json::{Value, json};

/// A changed reference.
#[derive(Debug, Serialize)]
pub(super) struct ChangedReference {
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<String>,
}

/// The version of a pin that comes from the shorthand, which has no object.
pub(super) fn inline_version(pin: &Pin) -> Option<&str> {
    let inline = pin.config.kind == *GroupResource::hub_configs()
        && pin.config.namespace.is_none()
        && hash::spec_hash(&inline_content(&pin.config.name)) == pin.hash;
    inline.then_some(&*pin.config.name)
}

/// Makes a placement reference the configs of the revision `to`. Returns the changed references. A
/// pin that looks like the shorthand may also be an object with the name of its version: `objects`
/// lists those that exist.
pub(super) fn go_back(
    placement: &mut Value,
    from: Option<&Revision>,
    to: &Revision,
    objects: &BTreeSet<ConfigRef>,
) -> Vec<ChangedReference> {
    let mut changed = Vec::new();
    let kinds: BTreeSet<&GroupResource> = to.pins().iter().map(|pin| &pin.config.kind).collect();
    for kind in kinds {
        let now: Vec<&Pin> = from.into_iter().flat_map(|from| from.pins_of(kind)).collect();
        if now.iter().map(|pin| &pin.config).eq(to.pins_of(kind).map(|pin| &pin.config)) {
            continue;
        }
        // A version selects its template, so the template is referenced only if it was before, or
        // if there was no version.
        if kind == GroupResource::templates()
            && !names(placement, kind)
            && to.pin(GroupResource::hub_configs()).is_some()
        {
            continue;
        }
        let has_version = by_version(placement);
        forget(placement, kind);
        for pin in to.pins_of(kind) {
            let by_reference = objects.contains(&pin.config) && !has_version;
            match inline_version(pin) {
                Some(version) if !by_reference => set_version(placement, version),
                _ => name(placement, pin),
            }
        }
        changed.push(ChangedReference {
            kind: kind.to_string(),
            from: shown(now.into_iter()),
            to: shown(to.pins_of(kind)),
        });
    }
    let left: BTreeSet<&GroupResource> =
        from.iter().flat_map(|from| from.pins()).map(|pin| &pin.config.kind).collect();
    for kind in left {
        if to.pin(kind).is_none() && names(placement, kind) {
            forget(placement, kind);
            let from = shown(from.into_iter().flat_map(|from| from.pins_of(kind)));
            changed.push(ChangedReference { kind: kind.to_string(), from, to: None });
        }
    }
    changed
}

/// The names of the configs of one kind; `None` if there are none.
fn shown<'p>(pins: impl Iterator<Item = &'p Pin>) -> Option<String> {
    let names: Vec<String> = pins
        .map(|pin| match &pin.config.namespace {
            Some(namespace) => format!("{namespace}/{}", pin.config.name),
            None => pin.config.name.to_string(),
        })
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Whether the placement sets its version by the shorthand.
fn by_version(placement: &Value) -> bool {
    let given = |key: &str| placement.pointer(&format!("/addonTemplate/{key}")).is_some();
    given("desiredVersion") || given("installVersion")
}

fn of_kind(reference: &Value, kind: &GroupResource) -> bool {
    let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
    text("group") == &*kind.group && text("resource") == &*kind.resource
}

const LISTS: [&str; 2] = ["/configs", "/addonTemplate/configs"];

/// Whether the placement itself references a kind.
fn names(placement: &Value, kind: &GroupResource) -> bool {
    let listed = LISTS.iter().filter_map(|list| placement.pointer(list)?.as_array()).flatten();
    let in_shorthand = kind == GroupResource::hub_configs() && by_version(placement);
    in_shorthand || listed.into_iter().any(|reference| of_kind(reference, kind))
}

/// Removes all references of the placement to a kind.
fn forget(placement: &mut Value, kind: &GroupResource) {
    for list in LISTS {
        if let Some(list) = placement.pointer_mut(list).and_then(Value::as_array_mut) {
            list.retain(|reference| !of_kind(reference, kind));
        }
    }
    if kind == GroupResource::hub_configs()
        && let Some(template) = placement.get_mut("addonTemplate").and_then(Value::as_object_mut)
    {
        template.remove("desiredVersion");
        template.remove("installVersion");
    }
}

fn name(placement: &mut Value, pin: &Pin) {
    let kind = &pin.config.kind;
    let mut reference = json!({"group": kind.group, "resource": kind.resource, "name": pin.config.name});
    if let Some(namespace) = &pin.config.namespace {
        reference["namespace"] = json!(namespace);
    }
    match placement.get_mut("configs").and_then(Value::as_array_mut) {
        Some(configs) => configs.push(reference),
        None => placement["configs"] = json!([reference]),
    }
}

fn set_version(placement: &mut Value, version: &str) {
    match placement.get_mut("addonTemplate").filter(|template| template.is_object()) {
        Some(template) => template["desiredVersion"] = json!(version),
        None => placement["addonTemplate"] = json!({"desiredVersion": version}),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn pin(resource: &str, name: &str, content: &Value) -> Pin {
        let kind = GroupResource::new("addon.open-cluster-management.io", resource);
        let config = ConfigRef { kind, namespace: None, name: name.into() };
        Pin { config: Arc::new(config), hash: hash::spec_hash(content) }
    }

    fn revision(name: &str) -> Revision {
        let content = json!({"spec": {"desiredVersion": "v9"}, "of": name});
        let template = json!({"spec": {"version": name}});
        Revision::new(vec![pin("addonhubconfigs", name, &content), pin("addontemplates", name, &template)])
    }

    fn configs(name: &str) -> Value {
        json!([{"group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": name}])
    }

    #[test]
    fn the_reference_of_that_time_takes_the_place_of_the_one_now() {
        let mut placement =
            json!({"name": "p", "configs": configs("two"), "rolloutStrategy": {"paused": true}});
        let changed = go_back(&mut placement, Some(&revision("two")), &revision("one"), &BTreeSet::new());
        assert_eq!(
            placement,
            json!({"name": "p", "configs": configs("one"), "rolloutStrategy": {"paused": true}})
        );
        assert_eq!(changed.len(), 1, "the template follows the version: {changed:?}");
    }

    #[test]
    fn a_version_in_shorthand_goes_back_in_shorthand() {
        let short =
            |version: &str| Revision::new(vec![pin("addonhubconfigs", version, &inline_content(version))]);
        let mut placement =
            json!({"name": "p", "addonTemplate": {"installNamespace": "x", "installVersion": "v2"}});
        go_back(&mut placement, Some(&short("v2")), &short("v1"), &BTreeSet::new());
        assert_eq!(
            placement,
            json!({"name": "p", "addonTemplate": {"installNamespace": "x", "desiredVersion": "v1"}})
        );
    }

    #[test]
    fn an_object_that_is_named_after_its_version_is_named_again() {
        let named =
            |version: &str| Revision::new(vec![pin("addonhubconfigs", version, &inline_content(version))]);
        let mut placement = json!({"name": "p", "configs": configs("v2")});
        let there = named("v1").pins().iter().map(|pin| (*pin.config).clone()).collect();
        go_back(&mut placement, Some(&named("v2")), &named("v1"), &there);
        assert_eq!(placement, json!({"name": "p", "configs": configs("v1")}));
    }

    #[test]
    fn a_config_that_came_later_goes() {
        let mut placement = json!({"name": "p", "configs": configs("two")});
        let changed =
            go_back(&mut placement, Some(&revision("two")), &Revision::new(Vec::new()), &BTreeSet::new());
        assert_eq!(placement, json!({"name": "p", "configs": []}));
        assert_eq!(changed.len(), 1);
    }

    #[test]
    fn a_template_that_was_chosen_by_default_is_named_when_there_is_no_version_to_name() {
        let by_default = |name: &str| {
            Revision::new(vec![pin("addontemplates", name, &json!({"spec": {"version": name}}))])
        };
        let mut placement = json!({"name": "p"});
        go_back(&mut placement, Some(&by_default("v2")), &by_default("v1"), &BTreeSet::new());
        assert_eq!(placement["configs"][0]["name"], "v1");
        assert_eq!(placement["configs"][0]["resource"], "addontemplates");
    }
}
