//! `aviary preflight` and `aviary cleanup`.

#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

use expect_test::expect;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::world::World;

const ADDONS: &str = "addon.open-cluster-management.io/v1alpha1";

fn lease(namespace: &str, name: &str, age: i64) -> Value {
    let renewed = Timestamp::now() - SignedDuration::from_secs(age);
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15, "renewTime": format!("{renewed:.6}")},
    })
}

fn namespace(name: &str) -> Value {
    aviary_testing::objects::namespace(name)
}

#[test]
fn a_hub_with_our_kinds_is_ready() {
    let world = World::quiet("preflight-ours");
    let report = world.json("preflight -o json", 0);
    assert_eq!(
        (&report["flavor"], &report["inTheWay"], &report["notKept"]),
        (&json!("standalone"), &json!([]), &json!([]))
    );
}

#[test]
fn a_hub_without_kinds_is_told_what_to_do() {
    let world = World::bare("preflight-bare");
    world.check(
        "preflight",
        &expect![[r#"
        $ aviary preflight
        Hub https://127.0.0.1:PORT, version v1.35.0+aviary-0.1.0
          It has no add-on kinds.

        In the way:
          - the hub has none of the add-on kinds: install them with aviary manifests
        exit 1
    "#]],
    );
}

#[test]
fn an_ocm_hub_is_known_by_its_kinds_and_its_manager_is_in_the_way_while_it_runs() {
    let world = World::bare("preflight-ocm");
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    world.give(namespace("open-cluster-management-hub"));
    let report = world.json("preflight -o json", 0);
    assert_eq!(report["flavor"], "ocm");
    let not_kept = report["notKept"].as_array().unwrap();
    for field in ["ClusterManagementAddOn status.conditions", "ManagedClusterAddOn status.currentVersion"] {
        assert!(not_kept.contains(&json!(field)), "{report:#}");
    }
    world.give(lease("open-cluster-management-hub", "manager-lock", 5));
    let report = world.json("preflight -o json", 1);
    let told = report["inTheWay"][0].as_str().unwrap();
    assert!(told.contains("the Lease open-cluster-management-hub/manager-lock"), "{told}");
    assert!(told.contains("somebody") && told.contains("AddonManagement"), "{told}");
    // Elsewhere it is not the manager's.
    world.json("preflight -o json --ocm-namespace other", 0);
    world.give(lease("open-cluster-management-hub", "manager-lock", 140));
    world.json("preflight -o json", 0);
}

#[test]
fn a_kind_that_is_missing_is_in_the_way() {
    let world = World::bare("preflight-partly");
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
    let crds = aviary_testing::api_of(&world.client, &crd);
    let name = "addonhubconfigs.addon.open-cluster-management.io";
    world.block_on(crds.delete(name, &Default::default())).unwrap();
    let report = world.json("preflight -o json", 1);
    assert_eq!(
        report["inTheWay"],
        json!([format!("the hub does not serve {name}: install it with aviary manifests")])
    );
}

fn marked(kind: &str, namespace: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": ADDONS, "kind": kind,
        "metadata": {
            "name": "helloworld",
            "labels": {"mine": "kept"},
            "annotations": {
                "mine": "kept",
                "addon.open-cluster-management.io/manager-term": "3",
                "addon.open-cluster-management.io/manager-identity": "manager-1",
            },
        },
        "spec": {},
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
        object["metadata"]["labels"]["addon.open-cluster-management.io/installed-by-strategy"] =
            "Placements".into();
    }
    object
}

fn binding(name: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "c1", "annotations": annotations,
            "labels": {"open-cluster-management.io/addon-template-name": ""}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [],
    })
}

#[test]
fn what_is_ours_is_removed_and_nothing_else() {
    let world = World::quiet("cleanup");
    world.give(namespace("c1"));
    world.give(marked("ClusterManagementAddOn", None));
    world.give(marked("ManagedClusterAddOn", Some("c1")));
    world.give(json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": "ours", "namespace": "open-cluster-management", "finalizers": ["example.com/held"],
            "labels": {"open-cluster-management.io/addon-name": "helloworld"}},
        "revision": 1, "data": {},
    }));
    world.give(json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": "theirs", "namespace": "open-cluster-management"}, "revision": 1, "data": {},
    }));
    let hashes = "open-cluster-management.io/config-spec-hash";
    world.give(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {
            "name": "addon-helloworld-deploy-0", "namespace": "c1",
            "labels": {"open-cluster-management.io/addon-name": "helloworld", "open-cluster-management.io/addon-version": "v1"},
            "annotations": {
                hashes: "{}", "configsSpecHash": "{}", "addon.open-cluster-management.io/rendered-from": "1/v1/x",
                "addon.open-cluster-management.io/rendered-digest": "d", "addon.open-cluster-management.io/probes-digest": "p",
            },
        },
        "spec": {"workload": {"manifests": []}},
    }));
    world.give(binding("ours", json!({"addon.open-cluster-management.io/registration-of": "c1/helloworld"})));
    world.give(binding("theirs", json!({})));
    world.give(lease("open-cluster-management", "aviary-manager", 5));
    let refused = world.run("cleanup --yes");
    assert!(refused.contains("manager somebody runs on this hub: stop all managers first"), "{refused}");

    world.give(lease("open-cluster-management", "aviary-manager", 100));
    let found = json!({
        "add-ons: term": 1, "instances: marker and term": 1, "leases": 1, "role bindings of registration": 1,
        "rollout records": 0, "stored revisions": 1, "works: what they were rendered from": 1,
    });
    let before = world.get("ManagedClusterAddOn", "c1/helloworld");
    assert_eq!(world.json("cleanup -o json", 0), json!({"removed": false, "counts": found}));
    assert_eq!(world.get("ManagedClusterAddOn", "c1/helloworld"), before, "nothing is written without --yes");
    assert_eq!(world.json("cleanup --yes -o json", 0), json!({"removed": true, "counts": found}));

    for (kind, name) in [("ClusterManagementAddOn", "helloworld"), ("ManagedClusterAddOn", "c1/helloworld")] {
        let metadata = world.get(kind, name)["metadata"].clone();
        assert_eq!(
            (&metadata["labels"], &metadata["annotations"]),
            (&json!({"mine": "kept"}), &json!({"mine": "kept"}))
        );
    }
    let work = world.get("ManifestWork", "c1/addon-helloworld-deploy-0")["metadata"].clone();
    assert_eq!(
        (&work["labels"], &work["annotations"]),
        (&json!({"open-cluster-management.io/addon-name": "helloworld"}), &json!({hashes: "{}"})),
        "as OCM's manager would have left it"
    );
    let nothing = json!({
        "add-ons: term": 0, "instances: marker and term": 0, "leases": 0, "role bindings of registration": 0,
        "rollout records": 0, "stored revisions": 0, "works: what they were rendered from": 0,
    });
    assert_eq!(world.json("cleanup -o json", 0)["counts"], nothing);
    for theirs in [
        json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"namespace": "open-cluster-management"}}),
        binding("theirs", json!({})),
    ] {
        world.block_on(aviary_testing::api_of(&world.client, &theirs).get("theirs")).unwrap();
    }
}
