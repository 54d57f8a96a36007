//! What the types say to a CRD beyond their Rust shape: enums, keys, patterns, limits and CEL rules.
//!
//! Each function gives a transform for `#[schemars(transform = …)]`, so that a rule stands beside the field it is about.

use schemars::transform::Transform;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The longest message that Kubernetes' own conditions allow.
pub(crate) const MESSAGE: u32 = 32768;
/// The longest name of an object.
pub(crate) const NAME: u32 = 253;
/// The longest name of a namespace, and so of a cluster.
pub(crate) const LABEL: u32 = 63;

const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const C_IDENTIFIER: &str = "^[a-zA-Z_][a-zA-Z0-9_]*$";
/// `0` and `None` are OCM's own spellings of "no time" and "no limit".
const DURATION: &str = "^(0|None|([0-9]+(h|m|s|ms))+)$";

fn set(key: &'static str, value: impl Into<Value>) -> impl Transform {
    let value = value.into();
    move |schema: &mut Schema| {
        schema.insert(key.to_owned(), value.clone());
    }
}

/// CEL rules, each with the message that a user sees when it fails.
pub(crate) fn rules(rules: &'static [(&'static str, &'static str)]) -> impl Transform {
    let rules: Vec<Value> =
        rules.iter().map(|(rule, message)| json!({ "rule": rule, "message": message })).collect();
    set("x-kubernetes-validations", rules)
}

/// The fields without which the API server rejects the object.
pub(crate) fn required(fields: &'static [&'static str]) -> impl Transform {
    set("required", fields.to_vec())
}

/// The values that a string may have.
pub(crate) fn one_of(values: &'static [&'static str]) -> impl Transform {
    set("enum", values.to_vec())
}

/// The value that the API server fills in.
pub(crate) fn default(value: impl Into<Value>) -> impl Transform {
    set("default", value)
}

/// One of these strings, the first where nothing is said.
pub(crate) fn one_of_or_first(values: &'static [&'static str]) -> impl Transform {
    move |schema: &mut Schema| {
        one_of(values).transform(schema);
        if let Some(first) = values.first() {
            default(*first).transform(schema);
        }
    }
}

/// A list whose elements are told apart by these fields: no two alike, and server-side apply merges them one by one.
pub(crate) fn keyed_by(keys: &'static [&'static str]) -> impl Transform {
    move |schema: &mut Schema| {
        schema.insert("x-kubernetes-list-type".to_owned(), "map".into());
        schema.insert("x-kubernetes-list-map-keys".to_owned(), keys.to_vec().into());
    }
}

/// The longest that a string may be.
pub(crate) fn max_length(length: u32) -> impl Transform {
    set("maxLength", length)
}

/// The most elements of a list.
pub(crate) fn max_items(items: u32) -> impl Transform {
    set("maxItems", items)
}

/// The least that a number may be.
pub(crate) fn at_least(minimum: i64) -> impl Transform {
    set("minimum", minimum)
}

fn pattern(schema: &mut Schema, pattern: &str, max_length: u32) {
    schema.insert("pattern".to_owned(), pattern.into());
    schema.insert("maxLength".to_owned(), max_length.into());
}

/// A name that is also a DNS label: a namespace, a cluster.
pub(crate) fn dns_label(schema: &mut Schema) {
    pattern(schema, DNS_LABEL, LABEL);
}

/// A name of an object.
pub(crate) fn dns_subdomain(schema: &mut Schema) {
    pattern(schema, DNS_SUBDOMAIN, NAME);
}

/// A string that must not be empty, of an object's name's length.
pub(crate) fn non_empty_name(schema: &mut Schema) {
    schema.insert("minLength".to_owned(), 1.into());
    schema.insert("maxLength".to_owned(), NAME.into());
}

/// A label-like name with an optional domain before it.
pub(crate) fn qualified_name(schema: &mut Schema) {
    pattern(schema, QUALIFIED_NAME, 316);
}

/// A condition's reason.
pub(crate) fn reason(schema: &mut Schema) {
    pattern(schema, REASON, 1024);
    schema.insert("minLength".to_owned(), 1.into());
}

/// A name that may stand between `{{` and `}}`.
pub(crate) fn c_identifier(schema: &mut Schema) {
    pattern(schema, C_IDENTIFIER, 255);
}

/// A length of time such as `1h30m`.
pub(crate) fn duration(schema: &mut Schema) {
    pattern(schema, DURATION, 64);
}

/// A point in time.
pub(crate) fn date_time(schema: &mut Schema) {
    schema.insert("format".to_owned(), "date-time".into());
}

/// Bytes in base64.
pub(crate) fn bytes(schema: &mut Schema) {
    schema.insert("format".to_owned(), "byte".into());
    schema.insert("maxLength".to_owned(), 262_144.into());
}

/// A point in time that OCM's own writers may send as `null`.
pub(crate) fn nullable_date_time(schema: &mut Schema) {
    date_time(schema);
    schema.insert("x-aviary-nullable".to_owned(), true.into());
}

/// How many clusters may move at once.
pub(crate) fn concurrency(schema: &mut Schema) {
    pattern(schema, "^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})$", 16);
    number_or_percentage(
        schema,
        1,
        "must be a whole number of at least 1, or a whole percentage from 1% to 100%",
    );
}

/// How many clusters may fail.
pub(crate) fn failures(schema: &mut Schema) {
    pattern(schema, "^([0-9]{1,2}%|100%|0|[1-9][0-9]{0,8})$", 16);
    number_or_percentage(
        schema,
        0,
        "must be a whole number of at least 0, or a whole percentage from 0% to 100%",
    );
}

/// The rule gives what pattern, minimum and maximum say a message for people. The percentages are listed, and digits looked
/// at one by one, not matched: the API server prices a regular expression on an int-or-string by the longest request there
/// can be, and refuses the CRD. No value may fail in a function, as "five" would in `int`: the API server overlooks that a
/// rule is broken by what was stored before it, so that the status of such an object can be written, but not that it fails.
fn number_or_percentage(schema: &mut Schema, least: i32, message: &str) {
    let most = i32::MAX;
    schema.insert("minimum".to_owned(), least.into());
    schema.insert("maximum".to_owned(), most.into());
    let percentages: Vec<String> = (least..=100).map(|percent| format!("'{percent}%'")).collect();
    let percentages = percentages.join(", ");
    let digits = "['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']";
    let is_number = format!(
        "size(self) in [1, 2, 3, 4, 5, 6, 7, 8, 9] && \
         [0, 1, 2, 3, 4, 5, 6, 7, 8].all(i, i >= size(self) || self.charAt(i) in {digits}) && int(self) >= {least}"
    );
    let rule = format!(
        "self in [{percentages}] || (string(self) == self ? {is_number} : self >= {least} && self <= {most})"
    );
    schema.insert("x-kubernetes-validations".to_owned(), json!([{ "rule": rule, "message": message }]));
}

/// An object whose content is kept as it is and not looked into.
pub(crate) fn loose_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A list of such objects.
pub(crate) fn loose_list(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": loose_object(generator) })
}

/// A list of whole Kubernetes objects.
pub(crate) fn manifests(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-embedded-resource": true,
        },
    })
}

/// A work whose objects have variables in them. What stands in their metadata is a name only once the variables are filled in, so an API
/// server must not read them as objects.
pub(crate) fn with_variables() -> impl Transform {
    |schema: &mut Schema| {
        let items = schema.pointer_mut("/properties/workload/properties/manifests/items");
        if let Some(items) = items.and_then(Value::as_object_mut) {
            let text = |what| json!({ "type": "string", "minLength": 1, "description": what });
            items.remove("x-kubernetes-embedded-resource");
            let fields = json!({ "apiVersion": text("Group and version of the object."), "kind": text("Kind of the object.") });
            items.insert("properties".to_owned(), fields);
            items.insert("required".to_owned(), json!(["apiVersion", "kind"]));
        }
    }
}
