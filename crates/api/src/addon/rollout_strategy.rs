//! How a new revision reaches the clusters of a placement, in every supported spelling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{IntOrString, lenient, schema};

/// How fast, and under which conditions, a placement's clusters change to a new revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::rules(&[
    (
        "has(self.rollingUpdateWithCanary) == (has(self.type) && self.type == 'RollingUpdateWithCanary')",
        "rollingUpdateWithCanary is required with type RollingUpdateWithCanary, and cannot be used with any other type",
    ),
    (
        "!has(self.rollingUpdate) || (has(self.type) && self.type == 'RollingUpdate')",
        "rollingUpdate can only be used with type RollingUpdate",
    ),
    (
        "!has(self.all) || (has(self.type) && self.type == 'All')",
        "all can only be used with type All",
    ),
    (
        "!has(self.progressive) || (has(self.type) && self.type == 'Progressive')",
        "progressive can only be used with type Progressive",
    ),
    (
        "!has(self.progressivePerGroup) || (has(self.type) && self.type == 'ProgressivePerGroup')",
        "progressivePerGroup can only be used with type ProgressivePerGroup",
    ),
]))]
pub struct RolloutStrategy {
    /// UpdateAll changes every cluster at once. RollingUpdate changes a few at a time.
    /// RollingUpdateWithCanary does the same, after the clusters of another placement are healthy
    /// on the new revision. All, Progressive and ProgressivePerGroup are OCM's names: the first two
    /// mean UpdateAll and RollingUpdate; the third changes one decision group after the other.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::one_of_or_first(&[
        "UpdateAll", "RollingUpdate", "RollingUpdateWithCanary", "All", "Progressive", "ProgressivePerGroup",
    ]))]
    pub type_: Option<String>,

    /// Settings of type RollingUpdate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,

    /// Settings of type RollingUpdateWithCanary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update_with_canary: Option<RollingUpdateWithCanary>,

    /// Settings of type All.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutAll>,

    /// Settings of type Progressive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutProgressive>,

    /// Settings of type ProgressivePerGroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutProgressivePerGroup>,

    /// How many clusters, as a number or a percentage of the placement's clusters, may fail before
    /// no new cluster is started. If omitted, a failed cluster keeps its slot, so a bad revision
    /// stops by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::failures)]
    pub max_failures: Option<IntOrString>,

    /// How long a cluster may take before it counts as failed, such as 30m. If omitted, there is no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How long a cluster must stay healthy before it counts as settled, such as 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// If true, no new cluster is started; clusters in flight finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A few clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RollingUpdate {
    /// How many clusters may be in flight at once, as a number or a percentage of the placement's
    /// clusters. Percentages are rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::concurrency, transform = schema::default("25%"))]
    pub max_concurrently_updating: Option<IntOrString>,
}

/// A few clusters at a time, after the canary clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["placement"]))]
pub struct RollingUpdateWithCanary {
    /// The placement whose clusters go first. It need not be one of the add-on's placements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRef>,

    /// How many clusters may be in flight at once, as a number or a percentage of the placement's
    /// clusters. Percentages are rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::concurrency, transform = schema::default("25%"))]
    pub max_concurrently_updating: Option<IntOrString>,
}

/// A placement.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["name", "namespace"]))]
pub struct PlacementRef {
    /// Name of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::dns_subdomain)]
    pub name: String,

    /// Namespace of the placement.
    #[serde(deserialize_with = "lenient::or_default")]
    #[schemars(transform = schema::dns_label)]
    pub namespace: String,
}

/// Every cluster at once, in OCM's spelling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutAll {
    /// How long a cluster must stay healthy before it counts as settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// How long a cluster may take before it counts as failed; None for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How many clusters may fail, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::failures)]
    pub max_failures: Option<IntOrString>,

    /// OCM's older name of progressDeadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub timeout: Option<String>,
}

/// A few clusters at a time, in OCM's spelling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutProgressive {
    /// How many clusters may be in flight at once, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::concurrency)]
    pub max_concurrency: Option<IntOrString>,

    /// The decision groups that go first, one after the other, before any other cluster.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(64))]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,

    /// How long a cluster must stay healthy before it counts as settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// How long a cluster may take before it counts as failed; None for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How many clusters may fail before no new cluster is started, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::failures)]
    pub max_failures: Option<IntOrString>,

    /// OCM's older name of progressDeadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub timeout: Option<String>,
}

/// One decision group after the other, in OCM's spelling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutProgressivePerGroup {
    /// The decision groups that go first.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(64))]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,

    /// How long a cluster must stay healthy before it counts as settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// How long a cluster may take before it counts as failed; None for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How many clusters of a group may fail before the next group is not started, as a number or a
    /// percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::failures)]
    pub max_failures: Option<IntOrString>,

    /// OCM's older name of progressDeadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub timeout: Option<String>,
}

/// A decision group, by name, or by number if no name is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct MandatoryDecisionGroup {
    /// Name of the decision group, as in the placement's decisionStrategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::max_length(schema::LABEL))]
    pub group_name: Option<String>,

    /// Number of the decision group, counted from 0.
    #[serde(deserialize_with = "lenient::whole", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::at_least(0))]
    pub group_index: Option<i64>,
}
