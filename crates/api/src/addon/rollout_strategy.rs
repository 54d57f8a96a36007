//! How a new revision reaches the clusters of a placement, in every spelling that is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{IntOrString, lenient, schema};

/// How fast, and after what, a placement's clusters move to a new revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::rules(&[
    (
        "has(self.rollingUpdateWithCanary) == (has(self.type) && self.type == 'RollingUpdateWithCanary')",
        "rollingUpdateWithCanary must be given with type RollingUpdateWithCanary, and with no other",
    ),
    (
        "!has(self.rollingUpdate) || (has(self.type) && self.type == 'RollingUpdate')",
        "rollingUpdate goes only with type RollingUpdate",
    ),
    (
        "!has(self.all) || (has(self.type) && self.type == 'All')",
        "all goes only with type All",
    ),
    (
        "!has(self.progressive) || (has(self.type) && self.type == 'Progressive')",
        "progressive goes only with type Progressive",
    ),
    (
        "!has(self.progressivePerGroup) || (has(self.type) && self.type == 'ProgressivePerGroup')",
        "progressivePerGroup goes only with type ProgressivePerGroup",
    ),
]))]
pub struct RolloutStrategy {
    /// UpdateAll moves every cluster at once. RollingUpdate moves a few at a time. RollingUpdateWithCanary does so once
    /// the clusters of another placement run the new revision in good health. All, Progressive and ProgressivePerGroup
    /// are OCM's names: the first two mean UpdateAll and RollingUpdate, the third one decision group after the other.
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

    /// How many clusters, or what share of the placement's, may fail before no further one is started. Left out, a failed
    /// cluster keeps its place among those that move, so that a bad revision stops by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::failures)]
    pub max_failures: Option<IntOrString>,

    /// How long a cluster may take before it counts as failed, such as 30m. Left out, it may take for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How long a cluster must stay in good health before it counts as done, such as 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// While true no further cluster is started; those on their way finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A few clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RollingUpdate {
    /// How many clusters, or what share of the placement's, may be on their way at once. Shares are rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::concurrency, transform = schema::default("25%"))]
    pub max_concurrently_updating: Option<IntOrString>,
}

/// A few clusters at a time, after the canary clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["placement"]))]
pub struct RollingUpdateWithCanary {
    /// The placement whose clusters go first. It need not be one of the add-on's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRef>,

    /// How many clusters, or what share of the placement's, may be on their way at once. Shares are rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::concurrency, transform = schema::default("25%"))]
    pub max_concurrently_updating: Option<IntOrString>,
}

/// Which placement.
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
    /// How long a cluster must stay in good health before it counts as done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// How long a cluster may take before it counts as failed; None for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How many clusters, or what share of them, may fail.
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
    /// How many clusters, or what share of them, may be on their way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::concurrency)]
    pub max_concurrency: Option<IntOrString>,

    /// The decision groups that go first, one after the other, before any other cluster.
    #[serde(deserialize_with = "lenient::or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::max_items(64))]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,

    /// How long a cluster must stay in good health before it counts as done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// How long a cluster may take before it counts as failed; None for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How many clusters, or what share of them, may fail before no further one is started.
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

    /// How long a cluster must stay in good health before it counts as done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub min_success_time: Option<String>,

    /// How long a cluster may take before it counts as failed; None for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub progress_deadline: Option<String>,

    /// How many clusters of a group, or what share of them, may fail before the next group is not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::failures)]
    pub max_failures: Option<IntOrString>,

    /// OCM's older name of progressDeadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = schema::duration)]
    pub timeout: Option<String>,
}

/// A decision group, by name or, where no name is given, by number.
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
