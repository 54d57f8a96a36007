//! Placements that are not there, not enough or too many, and canaries that nobody can pass.

use serde_json::{Value, json};

use super::healthy;
use super::row::Admission::{Refused, Taken};
use super::row::Outcome::{Does, Says};
use super::row::{Row, row};
use super::site::Site;
use crate::audit::Auditor;
use crate::objects::{behind, instance, named_addon, place, reference, rolling, update_all};
use crate::world::names;

const VERSION: &str = "cluster.open-cluster-management.io/v1beta1";

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("a placement that does not exist", Taken, Says("PlacementUnknown: placement default/no-such does not exist: its clusters are unknown, so nothing is deleted"))
            .bad(|site| vec![site.addon_on(&[place("no-such", &site.named("two"), update_all())])])
            .note("every instance stays unchanged")
            .mends(|site| async move {
                site.until_run(&site.clusters, "v1.0.0").await;
                site.upgrade().await;
            }),
        row("a placement deleted in mid-rollout", Taken, Says("PlacementUnknown: placement default/<placement> does not exist: its clusters are unknown, so nothing is deleted"))
            .clusters(3)
            .bad(|site| {
                site.hands.hold(&site.name());
                vec![site.addon_with("two", rolling(1))]
            })
            .acts(|site| async move {
                site.until_told_two(1).await;
                for (kind, name) in [("Placement", site.placement()), ("PlacementDecision", format!("{}-0", site.placement()))] {
                    let object = json!({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name, "namespace": "default"}});
                    site.world.delete(object).await;
                }
            })
            .note("every instance stays, and the rollout continues when the placement is back")
            .mends(|site| async move {
                assert_eq!(site.world.instances(&site.name()).await.len(), 3, "{}", site.input);
                assert_eq!(site.told_two().await.len(), 1, "{}", site.input);
                site.hands.let_all_go(&site.name());
                site.world.select(&site.placement(), &site.clusters).await;
                site.until_upgraded().await;
            }),
        row("500 selected clusters become 0", Taken, Says("DeletionHeld: 500 of 500 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions=\"500\""))
            .fresh()
            .clusters(0)
            .before(|site| vec![named_addon(&site.name(), &[json!({"name": site.placement(), "namespace": "default"})])])
            .acts(|site| async move {
                // Without a template there is nothing to deliver: an instance each is all.
                for version in ["v1.0.0", "v2.0.0"] {
                    site.world.delete(site.template(version)).await;
                }
                let many = names(&format!("many-{}-", site.number), 1..=500, 3);
                site.world.clusters(&site.placement(), &many).await;
                site.until_instances("500 of them", |all| all.len() == 500).await;
                site.world.select(&site.placement(), &[]).await;
            })
            .note("none is deleted")
            .mends(|site| async move {
                assert_eq!(site.world.instances(&site.name()).await.len(), 500, "{}", site.input);
                site.merge(&site.addon(), json!({"metadata": {"annotations": {"addon.open-cluster-management.io/allow-deletions": "500"}}})).await;
                site.until_instances("none is left", <[_]>::is_empty).await;
            }),
        row("the same placement twice", Refused("a placement may be listed only once"), Does("the server rejects every write to it, even of its status: no cluster moves until it is fixed, and the manager's log says why"))
            .bad(|site| vec![site.addon_on(&[
                place(&site.placement(), &site.named("one"), rolling(1)),
                place(&site.placement(), &site.named("two"), rolling(1)),
            ])])
            .acts(|site| async move {
                // By then this one has been planned as well.
                healthy::until_upgraded(&site.world).await;
                site.assert_nobody_moved().await;
                site.upgrade().await;
            }),
        row("a cluster in three placements", Taken, Does("follows the last placement in the list, and counts only there"))
            .bad(|site| vec![site.addon_on(&[
                site.entry("place", "one", update_all()), site.entry("second", "one", update_all()), site.entry("third", "two", rolling(1)),
            ])])
            .acts(|site| async move {
                for placement in ["second", "third"] {
                    site.world.select(&site.named(placement), &site.clusters).await;
                }
                site.until_run(&site.clusters, "v2.0.0").await;
                site.until_placement(&site.named("third"), "2/2 upgrade completed with no errors.").await;
                for placement in ["place", "second"] {
                    site.until_placement(&site.named(placement), "0/0 the placement selects no cluster").await;
                }
                assert_eq!(site.works(&site.clusters[0]).await.len(), 1, "{}", site.input);
            }),
        canary("a canary that is the placement itself", Refused("a placement cannot be its own canary"), Says("CanaryCycle: placements wait for each other as canary: default/<placement> -> default/<placement>"), |site| {
            vec![site.addon_with("two", behind(&site.placement(), 1))]
        }),
        canary("placements that are each other's canary", Taken, Says("CanaryCycle: placements wait for each other as canary: default/<canary> -> default/<placement> -> default/<canary>"), |site| {
            vec![site.addon_on(&[
                site.entry("canary", "two", behind(&site.placement(), 1)), site.entry("place", "two", behind(&site.named("canary"), 1)),
            ])]
        }),
        canary("a canary without clusters", Taken, Says("WaitingForCanary: waitingForCanary... canary default/<canary> selects no cluster"), |site| {
            vec![site.addon_with("two", behind(&site.named("canary"), 1))]
        })
        .before(|site| {
            let empty = json!({
                "apiVersion": VERSION, "kind": "Placement", "metadata": {"name": site.named("canary"), "namespace": "default"}, "spec": {},
                "status": {"numberOfSelectedClusters": 0, "conditions": [{
                    "type": "PlacementSatisfied", "status": "False", "reason": "NoManagedClusterMatched", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            });
            vec![site.addon(), empty]
        }),
        canary("a canary that does not exist", Taken, Says("WaitingForCanary: waitingForCanary... canary default/<canary> does not exist"), |site| {
            vec![site.addon_with("two", behind(&site.named("canary"), 1))]
        }),
        canary("a canary that is never upgraded", Taken, Says("WaitingForCanary: waitingForCanary... canary default/<canary> wants v1.0.0, not v2.0.0: nothing tries v2.0.0 there"), |site| {
            vec![site.addon_on(&[
                site.entry("canary", "one", update_all()), site.entry("place", "two", behind(&site.named("canary"), 1)),
            ])]
        })
        .before(with_canary),
        canary("a canary whose clusters all have overrides", Taken, Says("WaitingForCanary: waitingForCanary... canary default/<canary>: 1 of 1"), |site| {
            vec![site.addon_on(&[
                site.entry("canary", "two", update_all()), site.entry("place", "two", behind(&site.named("canary"), 1)),
            ])]
        })
        .before(|site| {
            let own = json!({"configs": [reference("addonhubconfigs", None, &site.named("one"))]});
            let mut all = with_canary(site);
            all.push(instance(&site.named("canary"), &site.name(), own));
            all
        }),
    ]
}

/// The add-on with a canary of one cluster, which bears the name of its placement.
fn with_canary(site: &Site) -> Vec<Value> {
    let name = site.named("canary");
    let place = json!({
        "apiVersion": VERSION, "kind": "Placement", "metadata": {"name": name, "namespace": "default"}, "spec": {},
        "status": {"numberOfSelectedClusters": 1},
    });
    let decision = json!({
        "apiVersion": VERSION, "kind": "PlacementDecision",
        "metadata": {"name": format!("{name}-0"), "namespace": "default", "labels": {"cluster.open-cluster-management.io/placement": name}},
        "status": {"decisions": [{"clusterName": name, "reason": ""}]},
    });
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        crate::world::managed_cluster(&name),
        place,
        decision,
        site.addon_on(&[site.entry("canary", "one", update_all()), site.entry("place", "one", update_all())]),
    ]
}

/// A gate that does not open: nobody moves before it is taken away.
fn canary(
    input: &'static str,
    admission: super::row::Admission,
    outcome: super::row::Outcome,
    bad: impl Fn(&Site) -> Vec<Value> + Send + Sync + 'static,
) -> Row {
    row(input, admission, outcome).bad(bad).note("no cluster behind it is upgraded").mends(
        |site| async move {
            let moved = site.told_two().await;
            assert!(
                !moved.iter().any(|cluster| site.clusters.contains(cluster)),
                "{}: {moved:?}",
                site.input
            );
            let audit = Auditor::start(&site.world.client, &site.name()).await;
            site.world.put(site.addon_with("two", rolling(1))).await;
            site.until_upgraded().await;
            audit.end_within(1).await;
        },
    )
}
