//! Checks the spec of a work as OCM's API server and its webhook would, before anybody writes it.
//!
//! An agent that cannot decode one ManifestWork stops altogether, so a work that OCM would refuse,
//! or prune, must never be written. The schema is that of the CRD, which a test compares with
//! OCM's. Limits of our own schema that OCM does not have are not checked.

use std::fmt;
use std::io::{self, Write};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::{crds, schema};

/// The most bytes that OCM's webhook accepts as manifests of one work.
pub const MANIFESTS_LIMIT: usize = 500 * 1024;

/// The most faults that are reported of one work.
pub const MAX_FAULTS: usize = 20;

/// The longest text of the work that a message repeats, in characters.
const MAX_QUOTE: usize = 80;

/// One thing that is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, such as `manifestConfigs[0].feedbackRules[1].type`; empty for the spec itself.
    pub field: String,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(to, "spec: {}", self.message),
            field => write!(to, "spec.{field}: {}", self.message),
        }
    }
}

/// Checks a rendered spec: its fields, and its manifests as OCM's webhook does.
///
/// # Errors
/// All that is wrong with it, at most [`MAX_FAULTS`].
pub fn check_spec(spec: &Value) -> Result<(), Vec<Fault>> {
    let mut check = Check::default();
    check.value("", spec, &SCHEMA);
    check.manifests(spec);
    check.finish()
}

/// Checks the `agentSpec` of a template: its fields, but not its manifests, which contain
/// variables.
///
/// # Errors
/// All that is wrong with it, at most [`MAX_FAULTS`].
pub fn check_template(agent_spec: &Value) -> Result<(), Vec<Fault>> {
    let mut check = Check::default();
    check.value("", agent_spec, &SCHEMA);
    check.finish()
}

/// The schema of a work's spec.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let work = crds::manifest_work();
    let versions = work.spec.versions.into_iter();
    let schema = versions.filter_map(|version| version.schema?.open_api_v3_schema).next();
    let spec = schema.and_then(|schema| schema.properties?.remove("spec"));
    spec.and_then(|spec| serde_json::to_value(spec).ok()).unwrap_or_default()
});

#[derive(Default)]
struct Check {
    faults: Vec<Fault>,
}

impl Check {
    fn finish(self) -> Result<(), Vec<Fault>> {
        if self.faults.is_empty() { Ok(()) } else { Err(self.faults) }
    }

    fn fault(&mut self, field: &str, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault { field: quote(field, 4 * MAX_QUOTE), message: message.into() });
        }
    }

    fn value(&mut self, field: &str, value: &Value, schema: &Value) {
        let expected = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        match (expected, value) {
            ("object", Value::Object(object)) => self.object(field, object, schema),
            ("array", Value::Array(items)) => self.list(field, items, schema),
            ("string", Value::String(text)) => self.text(field, text, schema),
            ("boolean", Value::Bool(_)) => {}
            ("integer", Value::Number(number)) if number.is_i64() => {}
            ("integer", Value::Number(number)) => {
                self.fault(field, format!("must be a whole number of 64 bits, not {number}"));
            }
            _ => self.wrong_type(field, value, expected),
        }
    }

    fn wrong_type(&mut self, field: &str, value: &Value, expected: &str) {
        let mut message = format!("must be {}, not {}", named(expected), name_of(value));
        if is_expression(field) {
            let written = value.get("expression").and_then(Value::as_str).unwrap_or("object.status.ready");
            message.push_str(&format!(
                ": OCM's celExpressions is a list of strings, so write {}",
                Value::from(quote(written, MAX_QUOTE))
            ));
        }
        self.fault(field, message);
    }

    fn object(&mut self, field: &str, object: &Map<String, Value>, schema: &Value) {
        if schema.get("x-kubernetes-embedded-resource") == Some(&true.into()) {
            return;
        }
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        for (name, value) in object {
            let at = join(field, &quote(name, MAX_QUOTE));
            match properties.get(name) {
                Some(schema) => self.value(&at, value, schema),
                None => {
                    let similar = similar(name, properties.keys().map(String::as_str));
                    let hint = similar.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
                    self.fault(&at, format!("OCM has no such field{hint}"));
                }
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str).filter(|name| !object.contains_key(*name)) {
            // The API server fills in defaults first.
            if properties.get(name).is_none_or(|property| property.get("default").is_none()) {
                self.fault(&join(field, name), "is required");
            }
        }
        for rule in schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten() {
            let broken = rule.get("rule").and_then(Value::as_str) == Some(schema::CEL_NAMES_ITS_CONDITION)
                && object.get("type").is_some_and(|type_| type_ == "CEL")
                && object.get("condition").is_some_and(|condition| condition == "");
            if broken {
                self.fault(field, rule.get("message").and_then(Value::as_str).unwrap_or_default());
            }
        }
    }

    fn list(&mut self, field: &str, items: &[Value], schema: &Value) {
        let Some(each) = schema.get("items") else { return };
        for (index, item) in items.iter().enumerate() {
            self.value(&format!("{field}[{index}]"), item, each);
        }
        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let Some(keys) = keys else { return };
        // No list of a spec that has keys is long.
        let key_of = |item: &Value| -> Vec<Option<Value>> {
            let names = keys.iter().filter_map(Value::as_str);
            names
                .map(|name| {
                    let default = each.get("properties").and_then(|all| all.get(name)?.get("default"));
                    item.get(name).or(default).cloned()
                })
                .collect()
        };
        let mut seen = std::collections::BTreeSet::new();
        for (index, item) in items.iter().enumerate().filter(|(_, item)| item.is_object()) {
            if !seen.insert(format!("{:?}", key_of(item))) {
                let names: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
                self.fault(
                    &format!("{field}[{index}]"),
                    format!("has the same {} as an earlier one", names.join(" and ")),
                );
            }
        }
    }

    fn text(&mut self, field: &str, text: &str, schema: &Value) {
        let values: Vec<&str> = schema
            .get("enum")
            .and_then(Value::as_array)
            .map(|values| values.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        if !values.is_empty() && !values.contains(&text) {
            let found = Value::from(quote(text, MAX_QUOTE));
            self.fault(field, format!("must be one of {}, not {found}", values.join(", ")));
        }
        let limit = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let length = text.chars().count();
        match schema.get("pattern").and_then(Value::as_str) {
            Some(schema::WORK_AGENT) if !text.starts_with("work-agent") => {
                self.fault(field, "must begin with work-agent");
            }
            Some(schema::OCM_DNS_SUBDOMAIN) if !is_dns_subdomain(text) => self.fault(
                field,
                "must be a DNS name: lower-case letters, digits, - and ., with a letter or digit at the start and end of each part",
            ),
            Some(_) if limit("maxLength").is_some_and(|most| length > most) => {
                self.fault(field, format!("is too long: {length} characters"));
            }
            _ => {}
        }
    }

    /// What OCM's webhook requires of manifests.
    fn manifests(&mut self, spec: &Value) {
        const FIELD: &str = "workload.manifests";
        let Some(manifests) = spec.pointer("/workload/manifests").and_then(Value::as_array) else {
            if spec.pointer("/workload/manifests").is_none() {
                self.fault(FIELD, "must not be empty");
            }
            return;
        };
        if manifests.is_empty() {
            self.fault(FIELD, "must not be empty");
        }
        let mut size = Size::default();
        for (index, manifest) in manifests.iter().enumerate().filter(|(_, manifest)| manifest.is_object()) {
            let at = |name: &str| format!("{FIELD}[{index}].{name}");
            for (name, pointer) in
                [("apiVersion", "/apiVersion"), ("kind", "/kind"), ("metadata.name", "/metadata/name")]
            {
                let text = manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                if text.is_empty() {
                    self.fault(&at(name), "is required, as a string");
                }
            }
            let generated = manifest.pointer("/metadata/generateName");
            if generated.is_some_and(|name| name != "") {
                self.fault(&at("metadata.generateName"), "must not be set: a work needs the whole name");
            }
            // Writing to a counter does not fail.
            let _ = serde_json::to_writer(&mut size, manifest);
        }
        if size.0 > MANIFESTS_LIMIT {
            self.fault(
                FIELD,
                format!("are {} bytes; OCM accepts at most {MANIFESTS_LIMIT} in one work", size.0),
            );
        }
    }
}

/// Counts bytes as the API server sends them to a webhook: `<`, `>` and `&` are escaped.
#[derive(Default)]
struct Size(usize);

impl Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let escaped = bytes.iter().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
        self.0 += bytes.len() + 5 * escaped;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn join(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}

/// A text, cut to a length that fits into a message.
fn quote(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn named(type_: &str) -> &str {
    match type_ {
        "object" => "an object",
        "array" => "a list",
        "string" => "a string",
        "boolean" => "true or false",
        "integer" => "a whole number",
        other => other,
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether a field is `celExpressions[…]`.
fn is_expression(field: &str) -> bool {
    field.rsplit_once('.').is_some_and(|(_, last)| last.starts_with("celExpressions["))
}

/// The known name that somebody probably meant: the same but for case, an ending or one or two
/// letters.
fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_QUOTE {
        return None;
    }
    let typed = name.to_lowercase();
    known
        .map(|known| {
            let other = known.to_lowercase();
            let begins = !typed.is_empty() && (typed.starts_with(&other) || other.starts_with(&typed));
            (if begins { 1 } else { distance(&typed, &other) }, known)
        })
        .filter(|(distance, known)| *distance <= 2 && known.len() > 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// How many letters must be added, removed or replaced to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        let mut next = vec![left];
        for (above, wanted) in row.iter().skip(1).zip(&other) {
            left = (left + 1).min(above + 1).min(diagonal + usize::from(letter != *wanted));
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn is_dns_subdomain(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.split('.').all(|part| {
        let bytes = part.as_bytes();
        is_end(bytes.first())
            && is_end(bytes.last())
            && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
    })
}
