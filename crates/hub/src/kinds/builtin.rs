//! The built-in kinds.
//!
//! Owns their rows: names, schemas, traits. Their schemas are as strict as a client can observe;
//! the fields have no further meaning here.

use aviary_schema::{Admission, Cause};
use serde_json::{Value, json};

use crate::formats::apply::ownership;
use crate::formats::jsonpath::JsonPathExpression;
use crate::formats::table::Columns;
use crate::kinds::resource::{Form, KindTable, KindVersion, Names, Naming, Origin, Resource, Traits};
use crate::store::object::type_suffix;

pub(crate) const NAMESPACES: &str = "namespaces";
pub(crate) const EVENTS: &str = "events";
pub(crate) const SECRETS: &str = "secrets";
pub(crate) const CONFIG_MAPS: &str = "configmaps";
pub(crate) const CONTROLLER_REVISIONS: &str = "controllerrevisions.apps";
pub(crate) const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
pub(crate) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// A row before its schema is compiled.
struct BuiltinKind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    namespaced: bool,
    has_status: bool,
    generation: bool,
    naming: Naming,
    form: Form,
    always_empty: bool,
    selectable: &'static [&'static str],
    fields: Value,
}

impl BuiltinKind {
    fn new(group: &'static str, kind: &'static str, plural: &'static str, fields: Value) -> Self {
        Self {
            group,
            kind,
            plural,
            short: &[],
            namespaced: true,
            has_status: false,
            generation: false,
            naming: Naming::Subdomain,
            form: Form::AsStored,
            always_empty: false,
            selectable: &[],
            fields,
        }
    }

    fn compile(self) -> Result<Resource, Vec<Cause>> {
        let mut properties = self.fields;
        if let Value::Object(fields) = &mut properties {
            fields.extend([
                ("apiVersion".to_owned(), text()),
                ("kind".to_owned(), text()),
                ("metadata".to_owned(), json!({"type": "object"})),
            ]);
        }
        let schema = object(properties);
        let api_version = if self.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", self.group) };
        let id = if self.group.is_empty() || self.form == Form::EventsGroup {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        };
        let selectable = self.selectable.iter().filter_map(|path| {
            Some(((*path).to_owned(), JsonPathExpression::parse(&format!(".{path}")).ok()?))
        });
        let version = KindVersion {
            name: "v1".into(),
            suffix: type_suffix(&api_version, self.kind),
            api_version,
            served: true,
            storage: self.form == Form::AsStored,
            admission: Admission::new(&schema)?,
            ownership: ownership(self.kind, &schema)?,
            schema,
            has_status: self.has_status,
            columns: Columns::builtin(self.kind),
            selectable: selectable.collect(),
            warning: None,
        };
        Ok(Resource {
            id: id.into(),
            group: self.group.into(),
            names: Names {
                plural: self.plural.into(),
                singular: self.kind.to_ascii_lowercase(),
                kind: self.kind.into(),
                list_kind: format!("{}List", self.kind),
                short: self.short.iter().map(ToString::to_string).collect(),
                categories: if self.kind == "CustomResourceDefinition" {
                    vec!["api-extensions".into()]
                } else {
                    vec![]
                },
            },
            namespaced: self.namespaced,
            versions: vec![version],
            terminating: false,
            converter: None,
            traits: Traits {
                origin: Origin::BuiltIn,
                generation: self.generation,
                unconditional_update: self.kind != "CustomResourceDefinition" && self.kind != "Lease",
                create_on_update: self.kind == "Lease" || self.kind == "Event",
                always_empty: self.always_empty,
                naming: self.naming,
                form: self.form,
            },
        })
    }
}

/// The table of a hub without CRDs. An error would be a bug in this file.
pub(crate) fn table() -> Result<KindTable, Vec<Cause>> {
    let mut table = KindTable::default();
    for row in core().into_iter().chain(others()).chain(rbac()) {
        table.insert(row.compile()?);
    }
    Ok(table)
}

fn core() -> Vec<BuiltinKind> {
    vec![
        BuiltinKind {
            short: &["ns"],
            namespaced: false,
            has_status: true,
            naming: Naming::Label,
            selectable: &["status.phase"],
            ..BuiltinKind::new(
                "",
                "Namespace",
                NAMESPACES,
                json!({
                    "spec": object(json!({"finalizers": list(text())})),
                    "status": object(json!({"phase": text(), "conditions": list(condition())})),
                }),
            )
        },
        BuiltinKind {
            short: &["cm"],
            ..BuiltinKind::new(
                "",
                "ConfigMap",
                CONFIG_MAPS,
                json!({
                    "data": map(text()), "binaryData": map(bytes()), "immutable": flag(),
                }),
            )
        },
        BuiltinKind {
            selectable: &["type"],
            ..BuiltinKind::new(
                "",
                "Secret",
                SECRETS,
                json!({
                    "data": map(bytes()), "stringData": map(text()), "type": text(), "immutable": flag(),
                }),
            )
        },
        BuiltinKind {
            short: &["sa"],
            ..BuiltinKind::new(
                "",
                "ServiceAccount",
                "serviceaccounts",
                json!({
                    "secrets": list(reference()), "imagePullSecrets": list(object(json!({"name": text()}))),
                    "automountServiceAccountToken": flag(),
                }),
            )
        },
        // `kubectl cluster-info` lists them and fails if there is no such kind.
        BuiltinKind {
            short: &["svc"],
            always_empty: true,
            ..BuiltinKind::new("", "Service", "services", json!({}))
        },
        BuiltinKind {
            short: &["ev"],
            selectable: &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
            ..BuiltinKind::new(
                "",
                "Event",
                EVENTS,
                json!({
                    "involvedObject": reference(), "reason": text(), "message": text(), "source": source(),
                    "firstTimestamp": time(), "lastTimestamp": time(), "count": int32(), "type": text(), "eventTime": time(),
                    "series": series(), "action": text(), "related": reference(), "reportingComponent": text(),
                    "reportingInstance": text(),
                }),
            )
        },
    ]
}

fn others() -> Vec<BuiltinKind> {
    vec![
        BuiltinKind {
            short: &["ev"],
            form: Form::EventsGroup,
            selectable: &[
                "regarding.kind",
                "regarding.namespace",
                "regarding.name",
                "regarding.uid",
                "reason",
                "reportingController",
                "type",
            ],
            ..BuiltinKind::new(
                "events.k8s.io",
                "Event",
                EVENTS,
                json!({
                    "regarding": reference(), "reason": text(), "note": text(), "deprecatedSource": source(),
                    "deprecatedFirstTimestamp": time(), "deprecatedLastTimestamp": time(), "deprecatedCount": int32(),
                    "type": text(), "eventTime": time(), "series": series(), "action": text(), "related": reference(),
                    "reportingController": text(), "reportingInstance": text(),
                }),
            )
        },
        BuiltinKind::new(
            "coordination.k8s.io",
            "Lease",
            "leases",
            json!({
                "spec": object(json!({
                    "holderIdentity": text(), "leaseDurationSeconds": at_least(1, int32()), "acquireTime": time(), "renewTime": time(),
                    "leaseTransitions": at_least(0, int32()), "strategy": text(), "preferredHolder": text(),
                })),
            }),
        ),
        BuiltinKind::new(
            "apps",
            "ControllerRevision",
            "controllerrevisions",
            json!({
                "data": anything(), "revision": at_least(0, json!({"type": "integer", "format": "int64"})),
            }),
        ),
        BuiltinKind {
            short: &["crd", "crds"],
            namespaced: false,
            has_status: true,
            generation: true,
            ..BuiltinKind::new(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                crd(),
            )
        },
    ]
}

/// Stored but not enforced: the hub's own roles decide about access.
fn rbac() -> Vec<BuiltinKind> {
    let rule = || {
        object(json!({
            "verbs": list(text()), "apiGroups": list(text()), "resources": list(text()), "resourceNames": list(text()),
            "nonResourceURLs": list(text()),
        }))
    };
    let subject = || object(json!({"kind": text(), "apiGroup": text(), "name": text(), "namespace": text()}));
    let role_ref = || object(json!({"apiGroup": text(), "kind": text(), "name": text()}));
    let role = |kind, plural, namespaced| BuiltinKind {
        namespaced,
        naming: Naming::PathSegment,
        ..BuiltinKind::new(
            RBAC_GROUP,
            kind,
            plural,
            json!({"rules": list(rule()), "aggregationRule": anything()}),
        )
    };
    let binding = |kind, plural, namespaced| BuiltinKind {
        namespaced,
        naming: Naming::PathSegment,
        ..BuiltinKind::new(
            RBAC_GROUP,
            kind,
            plural,
            json!({"subjects": list(subject()), "roleRef": role_ref()}),
        )
    };
    vec![
        role("Role", "roles", true),
        role("ClusterRole", "clusterroles", false),
        binding("RoleBinding", "rolebindings", true),
        binding("ClusterRoleBinding", "clusterrolebindings", false),
    ]
}

fn crd() -> Value {
    let names = || {
        object(json!({
            "plural": text(), "singular": text(), "kind": text(), "listKind": text(), "shortNames": list(text()),
            "categories": list(text()),
        }))
    };
    let column = object(json!({
        "name": text(), "type": text(), "format": text(), "description": text(), "priority": int32(), "jsonPath": text(),
    }));
    let version = object(json!({
        "name": text(), "served": flag(), "storage": flag(), "deprecated": flag(), "deprecationWarning": text(),
        "schema": object(json!({"openAPIV3Schema": anything()})), "subresources": anything(),
        "additionalPrinterColumns": list(column), "selectableFields": list(object(json!({"jsonPath": text()}))),
    }));
    json!({
        "spec": object(json!({
            "group": text(), "names": names(), "scope": text(), "versions": list(version), "conversion": anything(),
            "preserveUnknownFields": flag(),
        })),
        "status": object(json!({"conditions": list(condition()), "acceptedNames": names(), "storedVersions": list(text())})),
    })
}

#[expect(clippy::needless_pass_by_value, reason = "schemas are put together inside out")]
fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[expect(clippy::needless_pass_by_value, reason = "schemas are put together inside out")]
fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

#[expect(clippy::needless_pass_by_value, reason = "schemas are put together inside out")]
fn map(values: Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn bytes() -> Value {
    json!({"type": "string", "format": "byte"})
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn int32() -> Value {
    json!({"type": "integer", "format": "int32"})
}

fn at_least(minimum: i64, mut number: Value) -> Value {
    number["minimum"] = json!(minimum);
    number
}

fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn reference() -> Value {
    object(json!({
        "kind": text(), "namespace": text(), "name": text(), "uid": text(), "apiVersion": text(),
        "resourceVersion": text(), "fieldPath": text(),
    }))
}

fn source() -> Value {
    object(json!({"component": text(), "host": text()}))
}

fn series() -> Value {
    object(json!({"count": int32(), "lastObservedTime": time()}))
}

fn condition() -> Value {
    object(json!({
        "type": text(), "status": text(), "reason": text(), "message": text(), "lastTransitionTime": time(),
        "observedGeneration": {"type": "integer", "format": "int64"},
    }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_built_in_schema_compiles() {
        let table = super::table().unwrap();
        assert_eq!(table.all().count(), 14);
    }
}
