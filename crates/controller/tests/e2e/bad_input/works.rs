//! Works that others lay hands on, agents that say too much, and instances that somebody else made.

use serde_json::{Value, json};

use super::row::Admission::{Refused, Taken};
use super::row::Outcome::{Does, Says};
use super::row::{Row, row};
use super::site::Site;
use crate::objects::instance;

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("a work that somebody edits", Taken, Does("is restored")).acts(|site| async move {
            let work = site.work(&site.clusters[0]);
            let original = site.world.get(&work).await.unwrap();
            let manifests = json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}]);
            site.merge(&work, json!({"spec": {"workload": {"manifests": manifests}}})).await;
            site.until_object(&work, "as it was", |work| {
                work["spec"] == original["spec"] && work["metadata"]["generation"] == 3
            })
            .await;
        }),
        row("a work that somebody deletes", Taken, Does("is recreated")).acts(|site| async move {
            let work = site.work(&site.clusters[0]);
            let original = site.world.get(&work).await.unwrap();
            site.world.delete(work.clone()).await;
            site.until_object(&work, "another", |work| {
                work["spec"] == original["spec"] && work["metadata"]["uid"] != original["metadata"]["uid"]
            })
            .await;
        }),
        row("another owner's work that has the name of one of ours", Taken, Says("InstallFailed: install failed: work addon-<addon>-deploy-0 exists and has another owner: delete or rename it"))
            .fresh()
            .before(|site| {
                let mut foreign = site.work(&site.clusters[0]);
                foreign["spec"] = json!({"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}]}});
                vec![foreign]
            })
            .bad(|site| vec![site.addon()])
            .at(|site| site.instance(json!({})))
            .note("it is left unchanged; the other clusters continue")
            .acts(|site| async move { site.until_run(&site.clusters[1..], "v1.0.0").await })
            .mends(|site| async move {
                let work = site.work(&site.clusters[0]);
                let foreign = site.world.get(&work).await.unwrap();
                assert_eq!(foreign["spec"]["workload"]["manifests"][0]["metadata"]["name"], "theirs", "{}", site.input);
                assert_eq!(foreign["metadata"]["generation"], 1, "{}", site.input);
                site.world.delete(work).await;
                site.until_message("2/2 install completed with no errors.").await;
            }),
        row("an instance that a user created before the placement selects its cluster", Taken, Does("gets the placement's revision, and stays when the cluster is deselected"))
            .fresh()
            .before(|site| vec![site.instance(json!({"installNamespace": "mine"}))])
            .bad(|site| vec![site.addon()])
            .acts(|site| async move {
                site.until_message("2/2 install completed with no errors.").await;
                site.world.select(&site.placement(), &[]).await;
                site.until_instances("the user's alone", |all| all.len() == 1).await;
                let kept = site.world.get(&site.instance(json!({}))).await.unwrap();
                assert_eq!(kept["spec"], json!({"installNamespace": "mine"}), "{}", site.input);
                let owner = &kept["metadata"]["ownerReferences"][0]["kind"];
                assert!(owner == "ClusterManagementAddOn" && kept["metadata"]["labels"].is_null(), "{kept}");
            }),
        row("an instance whose owner is an earlier add-on of the same name", Taken, Does("is garbage-collected with that owner, and a new one is created"))
            .fresh()
            .bad(|site| vec![site.addon(), of_an_earlier(site)])
            .acts(|site| async move {
                site.until_message("2/2 install completed with no errors.").await;
                let uid = site.world.get(&site.addon()).await.unwrap()["metadata"]["uid"].clone();
                let made = site.world.get(&site.instance(json!({}))).await.unwrap();
                assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], uid, "{}", site.input);
                assert_eq!(made["spec"]["installNamespace"], "open-cluster-management-agent-addon", "{}", site.input);
            }),
        row("an agent that writes 10,000 conditions", Refused("must have at most 64 items"), Does("the conditions that matter are read, the others are ignored"))
            .bad(|site| {
                site.hands.hold(&site.name());
                let others = (0..9_998).map(|number| condition(&format!("c{number}"), 7));
                let all: Vec<Value> = others.chain([condition("Applied", 1), condition("Available", 1)]).collect();
                vec![reported(site, all)]
            })
            .acts(|site| async move {
                let work = site.world.get(&site.work(&site.clusters[0])).await.unwrap();
                assert_eq!(work["status"]["conditions"].as_array().unwrap().len(), 10_000, "{}", site.input);
                site.until_run(&site.clusters, "v1.0.0").await;
                site.hands.let_all_go(&site.name());
                site.upgrade().await;
                for one in site.world.instances(&site.name()).await {
                    assert!(json!(one.status).to_string().len() < 4096, "{}: {}", site.input, json!(one.status));
                }
            }),
        row("an agent that reports on generation 10^18", Taken, Says("Upgrading: upgrading..."))
            .bad(|site| {
                site.hands.hold(&site.name());
                let ahead = 1_000_000_000_000_000_000;
                vec![reported(site, vec![condition("Applied", ahead), condition("Available", ahead)])]
            })
            .at(|site| site.instance(json!({})))
            .note("that proves nothing: the revision is not applied until the agent reports on the current generation")
            .acts(|site| async move {
                site.world.put(site.addon_with("two", crate::objects::rolling(1))).await;
                site.until_told_two(1).await;
            })
            .mends(|site| async move {
                assert_eq!(site.told_two().await, site.clusters[..1], "{}", site.input);
                site.hands.let_all_go(&site.name());
                site.until_upgraded().await;
            }),
    ]
}

/// Made by an install strategy, for an add-on that is gone.
fn of_an_earlier(site: &Site) -> Value {
    let mut object = instance(&site.clusters[0], &site.name(), json!({"installNamespace": "earlier"}));
    object["metadata"]["labels"] = json!({
        "addon.open-cluster-management.io/installed-by-strategy": "Placements", "open-cluster-management.io/addon-name": site.name(),
    });
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn", "name": site.name(),
        "uid": "00000000-0000-4000-8000-000000000001", "controller": true, "blockOwnerDeletion": true,
    }]);
    object
}

/// The work on its first cluster, with what its agent says.
fn reported(site: &Site, conditions: Vec<Value>) -> Value {
    let mut work = site.work(&site.clusters[0]);
    work["status"] = json!({"conditions": conditions});
    work
}

fn condition(kind: &str, generation: i64) -> Value {
    json!({
        "type": kind, "status": "True", "reason": "Said", "message": "", "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}
