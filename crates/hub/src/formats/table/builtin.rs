//! The columns of built-in kinds, as `k8s.io/kubernetes/pkg/printers/internalversion` prints them.
//! Must not serve custom resources, whose columns are in their CRD.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::{CREATED, CellSource, Column, NAME, age, event};

/// Name, type, format, priority, description, printer.
pub(super) type BuiltinColumn =
    (&'static str, &'static str, &'static str, i64, &'static str, fn(&Value, Timestamp) -> Value);

const NAME_COLUMN: BuiltinColumn = ("Name", "string", "name", 0, NAME, name);
const AGE_COLUMN: BuiltinColumn = ("Age", "string", "", 0, CREATED, created_since);
const CREATED_AT_COLUMN: BuiltinColumn = ("Created At", "date", "", 0, CREATED, created_at);

const NAME_AND_AGE: &[BuiltinColumn] = &[NAME_COLUMN, AGE_COLUMN];
const NAME_AND_CREATED_AT: &[BuiltinColumn] = &[NAME_COLUMN, CREATED_AT_COLUMN];

const NAMESPACE: &[BuiltinColumn] = &[
    NAME_COLUMN,
    ("Status", "string", "", 0, "The status of the namespace", |object, _| {
        text(object, "/status/phase").into()
    }),
    AGE_COLUMN,
];

const CONFIG_MAP: &[BuiltinColumn] = &[
    NAME_COLUMN,
    (
        "Data",
        "string",
        "",
        0,
        "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. \
         Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap \
         with the keys in the BinaryData field, this is enforced during validation process.",
        |object, _| (entries(object, "data") + entries(object, "binaryData")).into(),
    ),
    AGE_COLUMN,
];

const SECRET: &[BuiltinColumn] = &[
    NAME_COLUMN,
    (
        "Type",
        "string",
        "",
        0,
        "Used to facilitate programmatic handling of secret data. More info: \
         https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
        |object, _| text(object, "/type").into(),
    ),
    (
        "Data",
        "string",
        "",
        0,
        "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The \
         serialized form of the secret data is a base64 encoded string, representing the arbitrary (possibly \
         non-string) data value here. Described in https://tools.ietf.org/html/rfc4648#section-4",
        |object, _| entries(object, "data").into(),
    ),
    AGE_COLUMN,
];

const LEASE: &[BuiltinColumn] = &[
    NAME_COLUMN,
    (
        "Holder",
        "string",
        "",
        0,
        "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is \
         used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.",
        |object, _| text(object, "/spec/holderIdentity").into(),
    ),
    AGE_COLUMN,
];

const CONTROLLER_REVISION: &[BuiltinColumn] = &[
    NAME_COLUMN,
    ("Controller", "string", "", 0, "Controller of the object", |object, _| controller(object).into()),
    (
        "Revision",
        "string",
        "",
        0,
        "revision indicates the revision of the state represented by Data.",
        // A required int64, so a missing one is a zero.
        |object, _| object.get("revision").and_then(Value::as_i64).unwrap_or(0).into(),
    ),
    AGE_COLUMN,
];

const ROLE_BINDING: &[BuiltinColumn] = &[
    NAME_COLUMN,
    (
        "Role",
        "string",
        "",
        0,
        "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. If the \
         RoleRef cannot be resolved, the Authorizer must return an error.",
        role,
    ),
    AGE_COLUMN,
    ("Users", "string", "", 1, "Users in the roleBinding", users),
    ("Groups", "string", "", 1, "Groups in the roleBinding", groups),
    ("ServiceAccounts", "string", "", 1, "ServiceAccounts in the roleBinding", service_accounts),
];

const CLUSTER_ROLE_BINDING: &[BuiltinColumn] = &[
    NAME_COLUMN,
    (
        "Role",
        "string",
        "",
        0,
        "RoleRef can only reference a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the \
         Authorizer must return an error.",
        role,
    ),
    AGE_COLUMN,
    ("Users", "string", "", 1, "Users in the clusterRoleBinding", users),
    ("Groups", "string", "", 1, "Groups in the clusterRoleBinding", groups),
    ("ServiceAccounts", "string", "", 1, "ServiceAccounts in the clusterRoleBinding", service_accounts),
];

pub(super) fn columns(kind: &str) -> Vec<Column> {
    let rows = match kind {
        "Namespace" => NAMESPACE,
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "Event" => event::COLUMNS,
        "Lease" => LEASE,
        "ControllerRevision" => CONTROLLER_REVISION,
        "RoleBinding" => ROLE_BINDING,
        "ClusterRoleBinding" => CLUSTER_ROLE_BINDING,
        "CustomResourceDefinition" | "Role" | "ClusterRole" => NAME_AND_CREATED_AT,
        _ => NAME_AND_AGE,
    };
    let column = |&(name, type_, format, priority, description, print): &BuiltinColumn| Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        format: format.to_owned(),
        description: description.to_owned(),
        priority,
        source: CellSource::Printed(print),
    };
    rows.iter().map(column).collect()
}

pub(super) fn name(object: &Value, _: Timestamp) -> Value {
    text(object, "/metadata/name").into()
}

fn created_since(object: &Value, now: Timestamp) -> Value {
    age::since(text(object, "/metadata/creationTimestamp"), now).into()
}

fn created_at(object: &Value, _: Timestamp) -> Value {
    let created = age::parse(text(object, "/metadata/creationTimestamp"));
    let utc = |time: Timestamp| time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    // Go's zero time, because there is no null.
    created.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), utc).into()
}

/// The string at a JSON pointer; empty if there is none.
pub(super) fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The first of two that is not empty.
pub(super) fn either<'o>(object: &'o Value, first: &str, second: &str) -> &'o str {
    match text(object, first) {
        "" => text(object, second),
        found => found,
    }
}

fn entries(object: &Value, field: &str) -> usize {
    object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

fn controller(object: &Value) -> String {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controls = |owner: &&Value| owner.get("controller") == Some(&Value::Bool(true));
    let Some(owner) = owners.into_iter().flatten().find(controls) else {
        return "<none>".to_owned();
    };
    let (kind, name) = (text(owner, "/kind").to_lowercase(), text(owner, "/name"));
    match text(owner, "/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
        None => format!("{kind}/{name}"),
    }
}

fn role(object: &Value, _: Timestamp) -> Value {
    format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name")).into()
}

fn users(object: &Value, _: Timestamp) -> Value {
    subjects(object, "User", |subject| text(subject, "/name").to_owned())
}

fn groups(object: &Value, _: Timestamp) -> Value {
    subjects(object, "Group", |subject| text(subject, "/name").to_owned())
}

fn service_accounts(object: &Value, _: Timestamp) -> Value {
    subjects(object, "ServiceAccount", |subject| {
        format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"))
    })
}

fn subjects(object: &Value, kind: &str, shown: impl Fn(&Value) -> String) -> Value {
    let all = object.get("subjects").and_then(Value::as_array).into_iter().flatten();
    all.filter(|subject| text(subject, "/kind") == kind).map(shown).collect::<Vec<_>>().join(", ").into()
}
