//! ManifestWork: objects that an agent applies on its cluster, and the result.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{ManifestConfigOption, ResourceIdentifier};
use crate::{Condition, lenient, schema};

/// What the agent applies, and how.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "ManifestWork",
    plural = "manifestworks",
    namespaced,
    shortname = "mw",
    shortname = "mws",
    category = "aviary",
    status = "ManifestWorkStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "Objects that the agent of a cluster applies there, and the result. It is in the cluster's namespace on the hub.",
    printcolumn(
        name = "Add-on",
        type_ = "string",
        json_path = ".metadata.labels.open-cluster-management\\.io/addon-name"
    ),
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Applied\")].status"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
pub struct ManifestWorkSpec {
    /// The objects to apply.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub workload: Option<ManifestsTemplate>,

    /// What happens to the objects when the work is deleted. If omitted, they are deleted first.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,

    /// Instructions for single objects.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfigOption>,

    /// The identity with which the agent applies the objects. If omitted, its own.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

impl ManifestWorkSpec {
    /// The objects to apply.
    pub fn manifests(&self) -> &[Value] {
        self.workload.as_ref().map_or(&[], |workload| &workload.manifests)
    }
}

/// The objects to apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestsTemplate {
    /// Whole Kubernetes objects.
    #[serde(deserialize_with = "lenient::values", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::manifests")]
    pub manifests: Vec<Value>,
}

/// What happens to the objects when the work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DeleteOption {
    /// Foreground: they are deleted first. Orphan: they stay. SelectivelyOrphan: those listed stay.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&["Foreground", "Orphan", "SelectivelyOrphan"]))]
    pub propagation_policy: Option<String>,

    /// The objects that stay.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,

    /// How many seconds after its completion the work is deleted. If omitted, never.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// The objects that stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// One entry for each object.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<ResourceIdentifier>,
}

/// The identity with which the agent applies the objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestWorkExecutor {
    /// The identity.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub subject: Option<ManifestWorkExecutorSubject>,
}

/// An identity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type"]))]
pub struct ManifestWorkExecutorSubject {
    /// Only ServiceAccount is supported.
    #[serde(rename = "type", deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::one_of(&["ServiceAccount"]))]
    pub type_: String,

    /// The service account on the managed cluster.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountRef>,
}

/// A service account on the managed cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "namespace"]))]
pub struct ServiceAccountRef {
    /// Namespace of the service account.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::service_account)]
    pub namespace: String,

    /// Name of the service account.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::service_account)]
    pub name: String,
}

/// The result. Written by the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
pub struct ManifestWorkStatus {
    /// The work's state: Applied, Available, Progressing, Degraded.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,

    /// The state of each object.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub resource_status: Option<ManifestResourceStatus>,
}

/// The state of each object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestResourceStatus {
    /// One entry for each manifest.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
}

/// The state of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["resourceMeta", "conditions"]))]
pub struct ManifestCondition {
    /// Which object.
    #[serde(deserialize_with = "lenient::object_or_default")]
    pub resource_meta: ManifestResourceMeta,

    /// The requested fields of its status.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub status_feedback: Option<StatusFeedbackResult>,

    /// Its state: Applied, Available, Progressing, Degraded.
    #[serde(deserialize_with = "lenient::list")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}

/// An object of a work, with all its names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["ordinal"]))]
pub struct ManifestResourceMeta {
    /// Index of its manifest in the work, counted from 0.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::int32)]
    pub ordinal: Option<i64>,

    /// API group of the object; empty for the core group.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,

    /// Version of the object's kind.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Kind of the object.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// Resource of the object.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,

    /// Name of the object.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Namespace of the object; empty for a cluster-scoped one.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The reported fields of an object's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusFeedbackResult {
    /// The requested fields.
    #[serde(deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["name"]))]
    pub values: Vec<FeedbackValue>,
}

/// One requested field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "fieldValue"]))]
pub struct FeedbackValue {
    /// Name of the field in the request.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub name: String,

    /// Its value.
    #[serde(deserialize_with = "lenient::object_or_default")]
    pub field_value: FieldValue,
}

/// A value: one of the fields, selected by type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type"]))]
pub struct FieldValue {
    /// Which of the other fields holds the value.
    #[serde(rename = "type", deserialize_with = "lenient::text_or_empty")]
    #[schemars(transform = schema::one_of(&["Integer", "String", "Boolean", "JsonRaw"]))]
    pub type_: String,

    /// An integer.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,

    /// A string.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::MESSAGE))]
    pub string: Option<String>,

    /// True or false.
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,

    /// A list or an object, as JSON.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(1024))]
    pub json_raw: Option<String>,
}

/// The fields of these types are set by the root, which cannot say how it reads them: they read
/// themselves. What is no object is read as an empty one.
macro_rules! reads_anything {
    ($($type:ident),*) => {$(
        const _: () = {
            #[derive(Default)]
            struct ObjectFields($type);

            impl<'de> Deserialize<'de> for ObjectFields {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    $type::deserialize(from).map(Self)
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    lenient::object_or_default(from).map(|ObjectFields(read)| read)
                }
            }

            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                    $type::serialize(self, to)
                }
            }
        };
    )*};
}
reads_anything!(ManifestWorkSpec, ManifestWorkStatus);
