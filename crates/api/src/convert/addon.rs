//! What differs between the versions of ClusterManagementAddOn.
//!
//! v1beta1 has one list of configs. v1alpha1 has two: `supportedConfigs`, with an optional default
//! for each kind of config, and `defaultConfigs`.

use serde_json::{Map, Value, json};

use super::NO_DEFAULT;
use super::group::{FieldGroup, Fields};

const SUPPORTED: &str = "supportedConfigs";
const DEFAULTS: &str = "defaultConfigs";

pub(super) const GROUPS: &[FieldGroup] = &[
    FieldGroup {
        name: "configs",
        alpha: &[(SUPPORTED, &["spec", SUPPORTED]), (DEFAULTS, &["spec", DEFAULTS])],
        beta: &[(DEFAULTS, &["spec", DEFAULTS])],
        to_alpha: configs_to_alpha,
        to_beta: configs_to_beta,
    },
    FieldGroup {
        name: "addOnConfiguration",
        alpha: &[("addOnConfiguration", &["spec", "addOnConfiguration"])],
        beta: &[],
        to_alpha: only_in_alpha,
        to_beta: not_in_beta,
    },
    FieldGroup {
        name: "defaultConfigReferences",
        alpha: &[
            ("defaultConfigReferences", &["status", "defaultConfigReferences"]),
            ("defaultconfigReferences", &["status", "defaultconfigReferences"]),
        ],
        beta: &[("defaultConfigReferences", &["status", "defaultConfigReferences"])],
        to_alpha: references_to_alpha,
        to_beta: references_to_beta,
    },
];

/// A field without a counterpart in v1beta1 is only remembered.
pub(super) fn not_in_beta(_: &Fields) -> Fields {
    Fields::new()
}

/// The remembered value, as nothing in v1beta1 contradicts it.
pub(super) fn only_in_alpha(_: &Fields, remembered: Option<&Fields>) -> Fields {
    remembered.cloned().unwrap_or_default()
}

fn references_to_beta(alpha: &Fields) -> Fields {
    let spellings = ["defaultConfigReferences", "defaultconfigReferences"];
    let found = spellings.iter().find_map(|name| alpha.get(*name));
    found.map(|value| (spellings[0].to_owned(), value.clone())).into_iter().collect()
}

fn references_to_alpha(beta: &Fields, _: Option<&Fields>) -> Fields {
    beta.clone()
}

fn list<'f>(fields: &'f Fields, name: &str) -> impl Iterator<Item = &'f Map<String, Value>> {
    fields.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn text<'e>(entry: &'e Map<String, Value>, name: &str) -> &'e str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The kind of config of an entry.
fn kind(entry: &Map<String, Value>) -> (&str, &str) {
    (text(entry, "group"), text(entry, "resource"))
}

fn entry(of: &Map<String, Value>, name: &str, namespace: Option<&Value>) -> Map<String, Value> {
    let mut entry = Map::new();
    for field in ["group", "resource"] {
        if let Some(value) = of.get(field) {
            entry.insert(field.to_owned(), value.clone());
        }
    }
    entry.insert("name".to_owned(), name.into());
    if let Some(namespace) = namespace {
        entry.insert("namespace".to_owned(), namespace.clone());
    }
    entry
}

/// One entry for each kind of config: the supported ones first, each with its default. An entry of
/// `defaultConfigs` takes precedence over the default of a supported kind.
fn configs_to_beta(alpha: &Fields) -> Fields {
    if !alpha.contains_key(SUPPORTED) && !alpha.contains_key(DEFAULTS) {
        return Fields::new();
    }
    let mut entries: Vec<Map<String, Value>> = Vec::new();
    for supported in list(alpha, SUPPORTED) {
        let default = supported.get("defaultConfig").and_then(Value::as_object);
        let name = default.map(|default| text(default, "name")).filter(|name| !name.is_empty());
        let namespace = default.and_then(|default| default.get("namespace"));
        let new = match name {
            Some(name) => entry(supported, name, namespace),
            None => entry(supported, NO_DEFAULT, None),
        };
        if !entries.iter().any(|known| kind(known) == kind(&new)) {
            entries.push(new);
        }
    }
    for default in list(alpha, DEFAULTS) {
        match entries.iter_mut().find(|known| kind(known) == kind(default)) {
            Some(known) => *known = default.clone(),
            None => entries.push(default.clone()),
        }
    }
    Fields::from_iter([(DEFAULTS.to_owned(), entries.into())])
}

/// Every entry becomes a supported kind, except where v1alpha1 is remembered to say the same in
/// another way.
fn configs_to_alpha(beta: &Fields, remembered: Option<&Fields>) -> Fields {
    if !beta.contains_key(DEFAULTS) {
        return Fields::new();
    }
    let nothing = Fields::new();
    let remembered = remembered.unwrap_or(&nothing);
    let said = configs_to_beta(remembered);
    let (mut supported, mut defaults) = (Vec::new(), Vec::new());
    for config in list(beta, DEFAULTS) {
        if list(&said, DEFAULTS).any(|known| known == config) {
            let same = |known: &&Map<String, Value>| kind(known) == kind(config);
            supported.extend(list(remembered, SUPPORTED).filter(same).cloned());
            defaults.extend(list(remembered, DEFAULTS).filter(same).cloned());
        } else {
            supported.push(supported_kind(config));
        }
    }
    let mut alpha = Fields::new();
    if !supported.is_empty() || defaults.is_empty() {
        alpha.insert(SUPPORTED.to_owned(), supported.into());
    }
    if !defaults.is_empty() {
        alpha.insert(DEFAULTS.to_owned(), defaults.into());
    }
    alpha
}

fn supported_kind(config: &Map<String, Value>) -> Map<String, Value> {
    let mut supported = Map::new();
    for field in ["group", "resource"] {
        if let Some(value) = config.get(field) {
            supported.insert(field.to_owned(), value.clone());
        }
    }
    let name = text(config, "name");
    if !name.is_empty() && name != NO_DEFAULT {
        let mut default = json!({ "name": name });
        if let Some(namespace) = config.get("namespace") {
            default["namespace"] = namespace.clone();
        }
        supported.insert("defaultConfig".to_owned(), default);
    }
    supported
}
