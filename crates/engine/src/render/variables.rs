//! `{{NAME}}` in string values. Replaced inside parsed strings, so that a value can never become
//! structure.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::configs::ConfigRef;
use crate::name::ClusterName;
use crate::problem::Problem;

const CLUSTER_NAME: &str = "CLUSTER_NAME";
const INSTALL_NAMESPACE: &str = "INSTALL_NAMESPACE";
const ADDON_NAME: &str = "ADDON_NAME";
const VERSION: &str = "VERSION";

/// The built-in variables that are the same on every cluster.
pub(super) struct Builtin<'a> {
    pub(super) addon: &'a str,
    pub(super) version: Option<&'a str>,
}

/// The variables that an AddOnDeploymentConfig defines; a later entry of the same name wins.
pub(super) fn defined(config: &ConfigRef, content: &Value) -> Result<BTreeMap<String, String>, Problem> {
    let listed =
        content.get("spec").and_then(|spec| spec.get("customizedVariables")).and_then(Value::as_array);
    let mut defined = BTreeMap::new();
    for variable in listed.into_iter().flatten() {
        let text = |key| variable.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        if matches!(name, CLUSTER_NAME | INSTALL_NAMESPACE | ADDON_NAME | VERSION) {
            return Err(Problem::VariableReserved { config: config.clone(), variable: name.to_owned() });
        }
        defined.insert(name.to_owned(), text("value").to_owned());
    }
    Ok(defined)
}

/// Why a manifest cannot be filled in.
pub(super) enum Unfilled {
    /// The first name that is not known.
    Unknown(String),
    /// It would have more bytes than the limit.
    TooLarge,
    /// It would have more values or maps than content may have.
    TooDense,
}

/// Fills in what is the same on every cluster: defined variables first, then the built-ins, also
/// where a variable's value names one. Stops before its strings have more than `limit` bytes: a
/// short text can name a long value very often. Returns how many bytes of the limit are left.
pub(super) fn fill(
    value: &mut Value,
    defined: &BTreeMap<String, String>,
    builtins: &Builtin<'_>,
    limit: usize,
) -> Result<usize, Unfilled> {
    let mut unknown = None;
    let mut left = Ok(limit);
    each_string(value, &mut |text| {
        let Ok(most) = left else { return None };
        let with_variables = replace(text, most, |name| match name {
            CLUSTER_NAME | INSTALL_NAMESPACE | ADDON_NAME => None,
            VERSION if builtins.version.is_some() => None,
            name => {
                let known = defined.get(name);
                if known.is_none() {
                    unknown.get_or_insert_with(|| name.to_owned());
                }
                known.map(String::as_str)
            }
        });
        let filled = with_variables.and_then(|with_variables| {
            let names = replace(with_variables.as_deref().unwrap_or(text), most, |name| match name {
                ADDON_NAME => Some(builtins.addon),
                VERSION => builtins.version,
                _ => None,
            })?;
            Ok(names.or(with_variables))
        });
        let bytes = filled.as_ref().map(|filled| filled.as_deref().unwrap_or(text).len());
        left = bytes.map_err(|_| TooLarge).and_then(|bytes| most.checked_sub(bytes).ok_or(TooLarge));
        filled.ok().flatten()
    });
    match (left, unknown) {
        (Err(TooLarge), _) => Err(Unfilled::TooLarge),
        (Ok(_), Some(name)) => Err(Unfilled::Unknown(name)),
        (Ok(left), None) => Ok(left),
    }
}

/// Fills in the names of one cluster.
pub(super) fn name_cluster(value: &mut Value, cluster: &ClusterName, install_namespace: &str) {
    each_string(value, &mut |text| {
        let named = replace(text, usize::MAX, |name| match name {
            CLUSTER_NAME => Some(cluster.as_str()),
            INSTALL_NAMESPACE => Some(install_namespace),
            _ => None,
        });
        named.ok().flatten()
    });
}

/// How often a text names the cluster or its install namespace.
pub(super) fn cluster_names_in(text: &str) -> usize {
    text.matches("{{CLUSTER_NAME}}").count() + text.matches("{{INSTALL_NAMESPACE}}").count()
}

/// Calls `change` on every string value (never on a key) and takes its answer.
fn each_string(value: &mut Value, change: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_string(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_string(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces each `{{NAME}}` for which there is a value, in one pass: what a value brings in is not
/// looked at again. Braces around anything but a plain name are somebody else's templates, and
/// stay. `None`: nothing was replaced. Never makes more than `most` bytes.
fn replace<'v>(
    text: &str,
    most: usize,
    mut value_of: impl FnMut(&str) -> Option<&'v str>,
) -> Result<Option<String>, TooLarge> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|rest| rest.find("{{")).map(|at| from + at) {
        let Some(name) = name_at(text, open + 2) else {
            from = open + 1;
            continue;
        };
        let end = open + 2 + name.len() + 2;
        from = end;
        if let Some(value) = value_of(name) {
            let out = out.get_or_insert_default();
            out.push_str(text.get(copied..open).unwrap_or_default());
            out.push_str(value);
            copied = end;
            if out.len() > most {
                return Err(TooLarge);
            }
        }
    }
    if let Some(out) = &mut out {
        out.push_str(text.get(copied..).unwrap_or_default());
    }
    Ok(out)
}

/// What would be made is larger than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooLarge;

/// The name that stands here and is closed by `}}`.
fn name_at(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?;
    let length = rest.bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_').count();
    let starts_well = rest.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    (starts_well && rest.get(length..)?.starts_with("}}")).then(|| rest.get(..length)).flatten()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn known(name: &str) -> Option<&'static str> {
        match name {
            "A" => Some("1"),
            "B" => Some("{{A}}"),
            _ => None,
        }
    }

    #[test]
    fn only_plain_names_in_double_braces_are_variables() {
        let replaced = |text| replace(text, 100, known).unwrap();
        assert_eq!(replaced("{{A}}-{{A}}").as_deref(), Some("1-1"));
        assert_eq!(replaced("{{B}}").as_deref(), Some("{{A}}"), "a value is not looked at again");
        assert_eq!(replaced("{{ A }} {{ $labels.pod }} {{A} {{9}} {A}"), None);
        assert_eq!(replaced("{{{A}}}").as_deref(), Some("{1}"));
        assert_eq!(replaced("é{{A}}é").as_deref(), Some("é1é"));
    }

    #[test]
    fn what_is_too_large_is_not_made() {
        let long = "x".repeat(60);
        assert_eq!(replace("{{A}}{{A}}", 100, |_| Some(&long)), Err(TooLarge));
        assert!(replace("{{A}}", 100, |_| Some(&long)).is_ok());
    }
}
