//! Clusters that cannot be, and names that no cluster may have.

use serde_json::{Value, json};

use super::row::Admission::Taken;
use super::row::Outcome::{Does, Says};
use super::row::{Row, row};
use super::site::Site;
use crate::objects::rolling;
use crate::world::managed_cluster;

const LONG: &str = "a-name-of-more-characters-than-the-name-of-a-namespace-may-have-x";

pub(super) fn rows() -> Vec<Row> {
    vec![
        named(
            "a decision for a cluster that does not exist",
            Does("no instance is created for it; it does not count"),
            "no-such-cluster",
            false,
        )
        .acts(|site| async move {
            site.upgraded_without("no-such-cluster").await;
        }),
        named(
            "a decision for a name of more than 63 characters",
            Says(
                "ClusterNameInvalid: placement default/<placement> names the cluster \"a-name-of-more-characters-than-the-name-of-a-namespace-may-have-x\", which is longer than 63 characters: it is ignored",
            ),
            LONG,
            true,
        ),
        named(
            "… with upper case",
            Says(
                "ClusterNameInvalid: placement default/<placement> names the cluster \"Prod-EU\", which may only have lower-case letters, digits and '-', and must start and end with a letter or digit: it is ignored",
            ),
            "Prod-EU",
            false,
        ),
        named(
            "… `../x`",
            Says(
                "ClusterNameInvalid: placement default/<placement> names the cluster \"../x\", which may only have lower-case letters, digits and '-', and must start and end with a letter or digit: it is ignored",
            ),
            "../x",
            false,
        ),
        named(
            "… `default`",
            Says(
                "ClusterNameInvalid: placement default/<placement> names the cluster \"default\", which is a namespace of the hub itself: it is ignored",
            ),
            "default",
            true,
        ),
        named(
            "… `kube-system`",
            Says(
                "ClusterNameInvalid: placement default/<placement> names the cluster \"kube-system\", which is a namespace of the hub itself: it is ignored",
            ),
            "kube-system",
            true,
        ),
    ]
}

/// The placement selects this as well, and there is such a cluster where there can be. The others
/// are upgraded all the same.
fn named(input: &'static str, outcome: super::row::Outcome, cluster: &'static str, exists: bool) -> Row {
    row(input, Taken, outcome)
        .note(if matches!(outcome, Does(_)) { "" } else { "the other clusters continue" })
        .before(move |site| {
            let there = exists.then(|| managed_cluster(cluster));
            there.into_iter().chain([site.addon()]).collect()
        })
        .bad(move |site| {
            vec![site.addon_with("two", rolling(1)), site.one_more(), site.also_selected(cluster)]
        })
        .acts(move |site| async move { site.upgraded_without(cluster).await })
}

impl Site {
    /// The decision of its placement with one name more.
    fn also_selected(&self, cluster: &str) -> Value {
        let names = self.clusters.iter().map(String::as_str).chain([cluster]);
        let decisions: Vec<Value> = names.map(|name| json!({"clusterName": name, "reason": ""})).collect();
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": {
                "name": format!("{}-0", self.placement()), "namespace": "default",
                "labels": {"cluster.open-cluster-management.io/placement": self.placement()},
            },
            "status": {"decisions": decisions},
        })
    }

    /// Its placement counts that one as well.
    fn one_more(&self) -> Value {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": self.placement(), "namespace": "default"},
            "status": {"numberOfSelectedClusters": self.clusters.len() + 1},
        })
    }

    async fn upgraded_without(&self, cluster: &str) {
        self.until_upgraded().await;
        let all = self.world.instances(&self.name()).await;
        let on: Vec<_> = all.iter().map(|one| one.metadata.namespace.clone().unwrap_or_default()).collect();
        assert!(
            on.len() == self.clusters.len() && !on.contains(&cluster.to_owned()),
            "{}: {on:?}",
            self.input
        );
    }
}
