//! Custom resource definitions: validation, what the hub adds to them, and the row that they
//! become.
//!
//! Owns everything in a CRD. Must not store anything.

use aviary_schema::{Admission, Cause};
use serde_json::{Map, Value, json};

use crate::formats::jsonpath::JsonPathExpression;
use crate::formats::metadata::{forbidden, invalid, is_label, is_subdomain, not_supported, required};
use crate::formats::table::Columns;
use crate::kinds::resource::{
    Converter, Form, KindTable, KindVersion, Names, Naming, Origin, Resource, Traits,
};
use crate::store::object::type_suffix;

/// Keeps a CRD until its objects are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Completes a client's CRD: defaults, and the status that shows whether it is served.
pub(crate) fn admit(
    object: &mut Value,
    old: Option<&Value>,
    table: &KindTable,
    now: &str,
) -> Result<(), Vec<Cause>> {
    complete(object);
    let spec = object.get("spec").cloned().unwrap_or_default();
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut causes = check(object, &spec, table.converter(name).is_some());
    if let Some(old) = old {
        check_change(old, object, &mut causes);
    }
    if causes.is_empty()
        && let Err(found) = resource(object, None)
    {
        causes = found;
    }
    if !causes.is_empty() {
        return Err(causes);
    }
    let taken = taken_name(&spec, table);
    let stored = stored_versions(object, old);
    object["status"] = status(&spec, old, taken.as_ref(), &stored, now);
    if old.is_none() {
        add_finalizer(object);
    }
    Ok(())
}

fn complete(object: &mut Value) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let kind = text(names, "kind").to_owned();
        for (name, value) in [("singular", kind.to_ascii_lowercase()), ("listKind", format!("{kind}List"))] {
            if text(names, name).is_empty() && !kind.is_empty() {
                names.insert(name.into(), value.into());
            }
        }
    }
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if spec.get("preserveUnknownFields") == Some(&json!(false)) {
        spec.remove("preserveUnknownFields");
    }
    let columns = spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
    for version in columns {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema").and_then(Value::as_object_mut) {
            schema.entry("type").or_insert_with(|| json!("object"));
        }
    }
}

fn add_finalizer(object: &mut Value) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.contains(&json!(CLEANUP))
    {
        finalizers.push(json!(CLEANUP));
    }
}

fn check(object: &Value, spec: &Value, has_converter: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Value::Object(spec) = spec else { return vec![required("spec", "")] };
    let empty = Map::new();
    let names = spec.get("names").and_then(Value::as_object).unwrap_or(&empty);
    let (group, plural) = (text(spec, "group"), text(names, "plural"));
    if group.is_empty() {
        causes.push(required("spec.group", ""));
    } else if !is_subdomain(group) || !group.contains('.') {
        causes.push(invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    for name in ["plural", "singular"] {
        let value = text(names, name);
        if value.is_empty() {
            causes.push(required(&format!("spec.names.{name}"), ""));
        } else if !is_label(value) {
            causes.push(invalid(&format!("spec.names.{name}"), value, "must be a lowercase RFC 1123 label"));
        }
    }
    for name in ["kind", "listKind"] {
        let value = text(names, name);
        if value.is_empty() {
            causes.push(required(&format!("spec.names.{name}"), ""));
        } else if !is_label(&value.to_ascii_lowercase()) {
            causes.push(invalid(
                &format!("spec.names.{name}"),
                value,
                "may have mixed case, but should otherwise match a DNS label",
            ));
        }
    }
    if !text(names, "kind").is_empty() && text(names, "kind") == text(names, "listKind") {
        causes.push(invalid(
            "spec.names.listKind",
            text(names, "listKind"),
            "kind and listKind may not be the same",
        ));
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let expected = format!("{plural}.{group}");
    if name != expected {
        causes.push(invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    let approved = object.pointer("/metadata/annotations/api-approved.kubernetes.io").is_some();
    if (group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io")) && !approved {
        let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
        causes.push(required("metadata.annotations[api-approved.kubernetes.io]", why));
    }
    match text(spec, "scope") {
        "Namespaced" | "Cluster" => {}
        "" => causes.push(required("spec.scope", "")),
        other => causes.push(not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    if spec.get("preserveUnknownFields") == Some(&json!(true)) {
        causes.push(invalid("spec.preserveUnknownFields", "true", "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"));
    }
    match spec.get("conversion").and_then(|conversion| conversion.get("strategy")).and_then(Value::as_str) {
        Some("None") => {}
        Some("Webhook") if has_converter => {}
        Some("Webhook") => causes.push(invalid(
            "spec.conversion.strategy",
            "Webhook",
            "this hub calls no webhooks: use None",
        )),
        other => causes.push(not_supported(
            "spec.conversion.strategy",
            other.unwrap_or_default(),
            &["None", "Webhook"],
        )),
    }
    check_versions(spec, &mut causes);
    causes
}

fn check_versions(spec: &Map<String, Value>, causes: &mut Vec<Cause>) {
    let versions = spec.get("versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if versions.is_empty() {
        causes.push(required("spec.versions", "must have at least one version"));
        return;
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut storage = 0;
    for (index, version) in versions.iter().enumerate() {
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        let at = |field: &str| format!("spec.versions[{index}].{field}");
        if !is_label(name) {
            causes.push(invalid(&at("name"), name, "must be a lowercase RFC 1123 label"));
        }
        if !seen.insert(name) {
            causes.push(invalid(&at("name"), name, "must be unique"));
        }
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            causes.push(required(&at("schema.openAPIV3Schema"), "schemas are required"));
        }
        storage += usize::from(version.get("storage") == Some(&json!(true)));
    }
    if storage != 1 {
        causes.push(invalid("spec.versions", "", "must have exactly one version marked as storage version"));
    }
}

fn check_change(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    for (pointer, field) in [
        ("/spec/scope", "spec.scope"),
        ("/spec/group", "spec.group"),
        ("/spec/names/plural", "spec.names.plural"),
    ] {
        if old.pointer(pointer) != new.pointer(pointer) {
            let value = new.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            causes.push(invalid(field, value, "field is immutable"));
        }
    }
    let kept: Vec<&str> = versions(new).filter_map(|version| version.get("name")?.as_str()).collect();
    for (index, stored) in strings(old.pointer("/status/storedVersions")).enumerate() {
        if !kept.contains(&stored) {
            causes.push(invalid(
                &format!("status.storedVersions[{index}]"),
                stored,
                "missing from spec.versions; objects may be stored in it",
            ));
        }
    }
}

fn versions(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Every version that objects may be stored as.
fn stored_versions(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.and_then(|old| old.pointer("/status/storedVersions"));
    let mut stored: Vec<String> = strings(before).map(str::to_owned).collect();
    let current = versions(object).filter(|version| version.get("storage") == Some(&json!(true)));
    for name in current.filter_map(|version| version.get("name")?.as_str()) {
        if !stored.iter().any(|known| known == name) {
            stored.push(name.to_owned());
        }
    }
    stored
}

/// A name that another kind of the group already has: the type of name, and the name.
fn taken_name(spec: &Value, table: &KindTable) -> Option<(&'static str, String)> {
    let group = spec.get("group").and_then(Value::as_str)?;
    let wanted = names(spec.get("names")?);
    let others: Vec<&Names> =
        table.all().filter(|other| other.group == group).map(|other| &other.names).collect();
    let others = || others.iter().filter(|other| other.plural != wanted.plural);
    let word_taken = |word: &String| {
        others().any(|other| [&other.plural, &other.singular].contains(&word) || other.short.contains(word))
    };
    let kind_taken = |kind: &String| others().any(|other| [&other.kind, &other.list_kind].contains(&kind));
    let checks: [(&str, Option<&String>); 5] = [
        ("PluralConflict", Some(&wanted.plural).filter(|word| word_taken(word))),
        ("SingularConflict", Some(&wanted.singular).filter(|word| word_taken(word))),
        ("ShortNamesConflict", wanted.short.iter().find(|word| word_taken(word))),
        ("KindConflict", Some(&wanted.kind).filter(|kind| kind_taken(kind))),
        ("ListKindConflict", Some(&wanted.list_kind).filter(|kind| kind_taken(kind))),
    ];
    // Kubernetes reports the last conflict.
    checks
        .into_iter()
        .rev()
        .find_map(|(reason, name)| Some((reason, format!("{:?} is already in use", name?))))
}

fn status(
    spec: &Value,
    old: Option<&Value>,
    taken: Option<&(&str, String)>,
    stored: &[String],
    now: &str,
) -> Value {
    let before = |kind: &str| {
        let conditions = old.and_then(|old| old.pointer("/status/conditions")).and_then(Value::as_array);
        conditions.into_iter().flatten().find(|condition| condition.get("type") == Some(&json!(kind)))
    };
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let status = if holds { "True" } else { "False" };
        let same = before(kind).filter(|before| before.get("status") == Some(&json!(status)));
        let since =
            same.and_then(|before| before.get("lastTransitionTime")).cloned().unwrap_or_else(|| json!(now));
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    };
    let conditions = match taken {
        Some((reason, why)) => json!([
            condition("NamesAccepted", false, reason, why),
            condition("Established", false, "NotAccepted", "not all names are accepted"),
        ]),
        None => json!([
            condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
            condition("Established", true, "InitialNamesAccepted", "the initial names have been accepted"),
        ]),
    };
    let mut conditions = conditions;
    if let (Value::Array(conditions), Some(going)) = (&mut conditions, before("Terminating")) {
        conditions.push(going.clone());
    }
    let accepted = if taken.is_none() {
        spec.get("names").cloned().unwrap_or_default()
    } else {
        json!({"plural": "", "kind": ""})
    };
    json!({"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored})
}

/// The status of a CRD that is being deleted.
pub(crate) fn terminating(status: &Value, now: &str) -> Value {
    let mut status = status.clone();
    let condition = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress", "lastTransitionTime": now,
    });
    if let Some(Value::Array(conditions)) = status.get_mut("conditions")
        && !conditions.iter().any(|condition| condition.get("type") == Some(&json!("Terminating")))
    {
        conditions.push(condition);
    }
    status
}

/// Whether the objects of a stored CRD are served.
pub(crate) fn is_established(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| {
        condition.get("type") == Some(&json!("Established"))
            && condition.get("status") == Some(&json!("True"))
    })
}

/// The row of a CRD. Compiles every schema and every rule; a failure is an error, never skipped.
/// `converter` is used if the CRD asks for more than a change of the name.
pub(crate) fn resource(object: &Value, converter: Option<&Converter>) -> Result<Resource, Vec<Cause>> {
    let spec = object.get("spec").and_then(Value::as_object).ok_or_else(|| vec![required("spec", "")])?;
    let group = text(spec, "group").to_owned();
    let names = spec.get("names").map(names).unwrap_or_default();
    let mut causes = Vec::new();
    let mut compiled = Vec::new();
    let single = versions(object).count() == 1;
    for (index, raw) in versions(object).enumerate() {
        let at = format!("spec.versions[{index}]");
        // For a single version, Kubernetes reports the path from before CRDs had versions.
        let schema_at = if single { "spec.validation".to_owned() } else { format!("{at}.schema") };
        match version(&group, &names.kind, raw, &at, &schema_at) {
            Ok(version) => compiled.push(version),
            Err(found) => causes.extend(found),
        }
    }
    if !causes.is_empty() {
        return Err(causes);
    }
    compiled.sort_by(|a, b| by_priority(&a.name, &b.name));
    Ok(Resource {
        id: format!("{}.{group}", names.plural).into(),
        group,
        names,
        namespaced: text(spec, "scope") == "Namespaced",
        versions: compiled,
        terminating: false,
        converter: converter.filter(|_| converts(spec)).cloned(),
        traits: Traits {
            origin: Origin::Custom,
            generation: true,
            unconditional_update: false,
            create_on_update: false,
            always_empty: false,
            naming: Naming::Subdomain,
            form: Form::AsStored,
        },
    })
}

/// Whether the versions of a CRD differ in more than their name.
fn converts(spec: &Map<String, Value>) -> bool {
    let strategy = spec.get("conversion").and_then(|conversion| conversion.get("strategy"));
    strategy.and_then(Value::as_str) == Some("Webhook")
}

fn version(
    group: &str,
    kind: &str,
    raw: &Value,
    at: &str,
    schema_at: &str,
) -> Result<KindVersion, Vec<Cause>> {
    let flag = |name: &str| raw.get(name) == Some(&json!(true));
    let name = raw.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let schema = raw.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
    let admission = Admission::new(&schema).map_err(|causes| {
        let below = |cause: Cause| Cause { field: format!("{schema_at}.{}", cause.field), ..cause };
        causes.into_iter().map(below).collect::<Vec<_>>()
    })?;
    let columns =
        raw.get("additionalPrinterColumns").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let columns = Columns::custom(columns)
        .map_err(|why| vec![invalid(&format!("{at}.additionalPrinterColumns"), "", &why)])?;
    let mut selectable = Vec::new();
    for field in raw.get("selectableFields").and_then(Value::as_array).into_iter().flatten() {
        let path = field.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        let parsed = JsonPathExpression::parse(path)
            .map_err(|why| vec![invalid(&format!("{at}.selectableFields"), path, &why.to_string())])?;
        selectable.push((path.trim_start_matches('.').to_owned(), parsed));
    }
    let api_version = format!("{group}/{name}");
    let warning = flag("deprecated").then(|| {
        let own = raw.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned);
        own.unwrap_or_else(|| format!("{api_version} is deprecated"))
    });
    if raw.pointer("/subresources/scale").is_some() {
        return Err(vec![forbidden(&format!("{at}.subresources.scale"), "this hub does not serve scale")]);
    }
    Ok(KindVersion {
        has_status: raw.pointer("/subresources/status").is_some(),
        served: flag("served"),
        storage: flag("storage"),
        name,
        suffix: type_suffix(&api_version, kind),
        api_version,
        admission,
        ownership: None,
        schema,
        columns,
        selectable,
        warning,
    })
}

fn names(raw: &Value) -> Names {
    let one = |name: &str| raw.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let many = |name: &str| strings(raw.get(name)).map(str::to_owned).collect();
    Names {
        plural: one("plural"),
        singular: one("singular"),
        kind: one("kind"),
        list_kind: one("listKind"),
        short: many("shortNames"),
        categories: many("categories"),
    }
}

/// Kubernetes' order of versions: stable before beta before alpha, later before earlier, anything
/// else last.
pub(crate) fn by_priority(a: &str, b: &str) -> std::cmp::Ordering {
    priority(b).cmp(&priority(a)).then_with(|| a.cmp(b))
}

fn priority(name: &str) -> (u8, u64, u64) {
    let parse = || -> Option<(u8, u64, u64)> {
        let rest = name.strip_prefix('v')?;
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (major, stage) = rest.split_at(digits);
        let major = major.parse().ok()?;
        match stage {
            "" => Some((3, major, 0)),
            beta if beta.starts_with("beta") => Some((2, major, beta.strip_prefix("beta")?.parse().ok()?)),
            alpha => Some((1, major, alpha.strip_prefix("alpha")?.parse().ok()?)),
        }
    };
    parse().unwrap_or((0, 0, 0))
}

fn text<'m>(fields: &'m Map<String, Value>, name: &str) -> &'m str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first() {
        let mut names = ["v1alpha1", "v1", "foo", "v2beta1", "v10", "v1beta2", "v2"];
        names.sort_by(|a, b| by_priority(a, b));
        assert_eq!(names, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
    }
}
