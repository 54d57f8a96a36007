//! AddOnRolloutRecord: what the manager remembers of an add-on where the add-on itself has no room.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addon::RolloutAttempt;
use crate::{Condition, lenient, schema};

/// Nothing: a record is written by the manager only.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "addon.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnRolloutRecord",
    plural = "addonrolloutrecords",
    shortname = "arr",
    category = "aviary",
    status = "AddOnRolloutRecordStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "What the manager remembers of the add-on of the same name. Written by the manager only. On a hub with Open Cluster Management's definitions, the conditions of an add-on are here.",
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].reason",
        description = "How far the add-on's rollouts are"
    ),
    printcolumn(
        name = "Succeeded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Succeeded\")].status"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].message",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
pub struct AddOnRolloutRecordSpec {}

/// What the manager remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AddOnRolloutRecordStatus {
    /// Generation of this record, so that tools can tell that the conditions are current.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Generation of the add-on that the conditions are about.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub add_on_generation: Option<i64>,

    /// How many deletions of instances have been approved and are under way.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    pub acknowledged_deletions: Option<i64>,

    /// The last rollouts that did not complete, the oldest first.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RolloutAttempt>,

    /// The add-on's state as a whole.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::keyed_by(&["type"]))]
    pub conditions: Vec<Condition>,
}
