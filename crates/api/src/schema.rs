//! Schema keywords beyond the Rust types: enums, keys, patterns, limits and CEL rules.
//!
//! Each function returns a transform for `#[schemars(transform = …)]`, so that a rule is next to
//! its field.

use schemars::transform::Transform;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The longest message of a Kubernetes condition.
pub(crate) const MESSAGE: u32 = 32768;
/// The longest name of an object.
pub(crate) const NAME: u32 = 253;
/// The longest name of a field manager.
const MAX_FIELD_MANAGER: u32 = 128;
/// The longest name of a namespace, and so of a cluster.
pub(crate) const LABEL: u32 = 63;

const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
pub(crate) const OCM_DNS_SUBDOMAIN: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$";
pub(crate) const WORK_AGENT: &str = "^work-agent";
const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const C_IDENTIFIER: &str = "^[a-zA-Z_][a-zA-Z0-9_]*$";
/// `0` and `None` are OCM's spellings of "no time" and "no limit".
const DURATION: &str = "^(0|None|([0-9]+(h|m|s|ms))+)$";

fn set(key: &'static str, value: impl Into<Value>) -> impl Transform {
    let value = value.into();
    move |schema: &mut Schema| {
        schema.insert(key.to_owned(), value.clone());
    }
}

/// CEL rules, each with the message for users.
pub(crate) fn rules(rules: &'static [(&'static str, &'static str)]) -> impl Transform {
    let rules: Vec<Value> =
        rules.iter().map(|(rule, message)| json!({ "rule": rule, "message": message })).collect();
    set("x-kubernetes-validations", rules)
}

/// OCM's rule for a derived condition.
pub(crate) const CEL_NAMES_ITS_CONDITION: &str = "self.type != 'CEL' || self.condition != \"\"";

/// The name that v1beta1 reserves for "no default" is never the name of a config.
pub(crate) const NOT_RESERVED: &[(&str, &str)] = &[(
    "self.name != '__reserved_no_default__'",
    "__reserved_no_default__ is not the name of a config: to support a kind without a default, leave the default out",
)];

/// Marks the schema of a spec that must not be filled in by default.
pub(crate) const SPEC_IS_ASKED_FOR: &str = "x-aviary-spec-is-asked-for";

/// The spec is required, although all its fields are optional.
pub(crate) fn asked_for() -> impl Transform {
    set(SPEC_IS_ASKED_FOR, true)
}

/// Required fields.
pub(crate) fn required(fields: &'static [&'static str]) -> impl Transform {
    set("required", fields.to_vec())
}

/// The allowed values of a string.
pub(crate) fn one_of(values: &'static [&'static str]) -> impl Transform {
    set("enum", values.to_vec())
}

/// The default value.
pub(crate) fn default(value: impl Into<Value>) -> impl Transform {
    set("default", value)
}

/// One of these strings; the first is the default.
pub(crate) fn one_of_or_first(values: &'static [&'static str]) -> impl Transform {
    move |schema: &mut Schema| {
        one_of(values).transform(schema);
        if let Some(first) = values.first() {
            default(*first).transform(schema);
        }
    }
}

/// A list map with these keys: elements are unique, and server-side apply merges them individually.
pub(crate) fn keyed_by(keys: &'static [&'static str]) -> impl Transform {
    move |schema: &mut Schema| {
        schema.insert("x-kubernetes-list-type".to_owned(), "map".into());
        schema.insert("x-kubernetes-list-map-keys".to_owned(), keys.to_vec().into());
    }
}

pub(crate) fn max_length(length: u32) -> impl Transform {
    set("maxLength", length)
}

/// The longest string of a list.
pub(crate) fn item_length(length: u32) -> impl Transform {
    move |schema: &mut Schema| {
        if let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) {
            items.insert("maxLength".to_owned(), length.into());
        }
    }
}

pub(crate) fn max_items(items: u32) -> impl Transform {
    set("maxItems", items)
}

pub(crate) fn at_least(minimum: i64) -> impl Transform {
    set("minimum", minimum)
}

fn pattern(schema: &mut Schema, pattern: &str, max_length: u32) {
    schema.insert("pattern".to_owned(), pattern.into());
    schema.insert("maxLength".to_owned(), max_length.into());
}

/// A DNS label: the name of a namespace or a cluster.
pub(crate) fn dns_label(schema: &mut Schema) {
    pattern(schema, DNS_LABEL, LABEL);
}

/// The name of an object.
pub(crate) fn dns_subdomain(schema: &mut Schema) {
    pattern(schema, DNS_SUBDOMAIN, NAME);
}

/// The name or the namespace of an executor's service account, as OCM writes its pattern.
pub(crate) fn service_account(schema: &mut Schema) {
    pattern(schema, OCM_DNS_SUBDOMAIN, NAME);
    schema.insert("minLength".to_owned(), 1.into());
}

/// The field manager of a work's objects.
pub(crate) fn field_manager(schema: &mut Schema) {
    pattern(schema, WORK_AGENT, MAX_FIELD_MANAGER);
    schema.insert("default".to_owned(), "work-agent".into());
}

/// A number of 32 bits that is read leniently.
pub(crate) fn int32(schema: &mut Schema) {
    schema.insert("format".to_owned(), "int32".into());
}

/// A non-empty string with the maximum length of an object's name.
pub(crate) fn non_empty_name(schema: &mut Schema) {
    schema.insert("minLength".to_owned(), 1.into());
    schema.insert("maxLength".to_owned(), NAME.into());
}

/// A qualified name: a label-like name with an optional domain prefix.
pub(crate) fn qualified_name(schema: &mut Schema) {
    pattern(schema, QUALIFIED_NAME, 316);
}

/// A condition's reason.
pub(crate) fn reason(schema: &mut Schema) {
    pattern(schema, REASON, 1024);
    schema.insert("minLength".to_owned(), 1.into());
}

/// A name that may appear between `{{` and `}}`.
pub(crate) fn c_identifier(schema: &mut Schema) {
    pattern(schema, C_IDENTIFIER, 255);
}

/// A duration such as `1h30m`.
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

/// A point in time that OCM's writers may send as `null`.
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

/// The rule adds a readable message to the pattern, minimum and maximum. It lists the percentages
/// and examines digits individually instead of using a regular expression: the API server estimates
/// the cost of a regular expression on an int-or-string from the longest possible request, and
/// rejects the CRD. No value may cause an evaluation error, as `int("five")` would. When the status
/// of an object is written, the API server ignores a rule that the unchanged spec already violated,
/// but it does not ignore an evaluation error.
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

/// An object with any content.
pub(crate) fn loose_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

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

/// A work whose objects contain variables. Their metadata is valid only after substitution, so an
/// API server must not read them as objects.
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
