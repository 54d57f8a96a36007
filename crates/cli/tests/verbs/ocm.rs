//! `aviary preflight` and `aviary cleanup`.

#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

use aviary_api::crds::CONVERTED;
use aviary_hub::security::Role;
use aviary_hub::{Converter, HubOptions};
use aviary_testing::Process;
use expect_test::expect;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::plan::{at, left_by_ocm, plain_template};
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

/// A dead conversion webhook shows only where an object has to be converted.
#[test]
fn a_version_without_an_object_to_convert_is_reported_as_not_tried() {
    let converter = Converter::new(|_, _| Err("connection refused".to_owned()));
    let converters = CONVERTED.iter().map(|name| ((*name).to_owned(), converter.clone())).collect();
    let world = World::on_hub("preflight-dead", HubOptions { converters, ..HubOptions::default() });
    let config = json!({"url": "https://127.0.0.1:1/convert"});
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": config});
    let conversion = json!({"strategy": "Webhook", "webhook": webhook});
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, Some(&conversion)));
    let version = |report: &Value, name: &str| {
        let mut kinds = report["kinds"].as_array().unwrap().iter();
        let kind = kinds.find(|kind| kind["name"] == CONVERTED[0]).unwrap();
        let mut versions = kind["versions"].as_array().unwrap().iter();
        versions.find(|version| version["name"] == name).unwrap().clone()
    };
    let report = world.json("preflight -o json", 0);
    assert_eq!(version(&report, "v1beta1"), json!({"name": "v1beta1", "problem": null, "notTried": true}));
    assert_eq!(version(&report, "v1alpha1"), json!({"name": "v1alpha1", "problem": null, "notTried": false}));
    assert!(world.run("preflight").contains("v1beta1 not tried"), "{}", world.run("preflight"));
}

#[test]
fn another_stored_version_is_in_the_way_and_a_manager_that_starts_says_so() {
    let world = World::bare("preflight-stored");
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
    let crds = aviary_testing::api_of(&world.client, &crd);
    let name = "addontemplates.addon.open-cluster-management.io";
    let found = world.block_on(crds.get(name)).unwrap();
    let mut changed = serde_json::to_value(found).unwrap();
    changed.as_object_mut().unwrap().remove("status");
    changed["metadata"] = json!({"name": name});
    for version in changed["spec"]["versions"].as_array_mut().unwrap() {
        version["storage"] = json!(version["name"] == "v1beta1");
    }
    world.give(changed);
    let problem = format!("{name} is stored as v1beta1, and Aviary reads and writes v1alpha1");
    let report = world.json("preflight -o json", 1);
    let told = report["inTheWay"].as_array().unwrap();
    assert!(told.len() == 1 && told[0].as_str().unwrap().starts_with(&problem), "{told:?}");

    let manager = Process::start(world.desk.command("manager --kubeconfig hub.kubeconfig"));
    manager.complains(&["looked at the hub", "Ocm"]);
    manager.complains(&["the hub is not as a manager needs it", &problem]);
    manager.kill();
}

#[test]
fn a_manager_that_starts_names_missing_kinds_and_rights_once() {
    let world = World::bare("preflight-rights").with_token("reader.kubeconfig", "reader", Role::ReadOnly);
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
    let crds = aviary_testing::api_of(&world.client, &crd);
    let name = "addonrolloutrecords.addon.open-cluster-management.io";
    world.block_on(crds.delete(name, &Default::default())).unwrap();

    let problems = |kubeconfig: &str| -> Vec<String> {
        let manager = Process::start(world.desk.command(&format!("manager --kubeconfig {kubeconfig}")));
        // The next thing that it does after it has looked at the hub.
        let cannot_lead = kubeconfig.starts_with("reader");
        let lines = manager.log_until(if cannot_lead { "the lease could not be" } else { "leads" });
        manager.kill();
        lines.into_iter().filter(|line| line.contains("the hub is not as a manager needs it")).collect()
    };
    let missing = format!("the hub does not serve {name}: install it with aviary manifests");
    let of_admin = problems("hub.kubeconfig");
    assert!(of_admin.len() == 1 && of_admin[0].contains(&missing), "{of_admin:#?}");

    let of_reader = problems("reader.kubeconfig");
    let count = |text: &str| of_reader.iter().filter(|line| line.contains(text)).count();
    for right in [
        &missing,
        "this manager may not create, patch, delete managedclusteraddons.addon.open-cluster-management.io: bind the roles",
        "this manager may not patch managedclusteraddons.addon.open-cluster-management.io/status: bind the roles",
        "this manager may not update leases.coordination.k8s.io named aviary-manager in the namespace open-cluster-management:",
        "this manager may not create events in the namespace default:",
    ] {
        assert_eq!(count(right), 1, "{right} in {of_reader:#?}");
    }
    for allowed in ["managedclusters.", "list", "managedclustersets", "reviews"] {
        assert_eq!(count(&format!("may not {allowed}")), 0, "{of_reader:#?}");
    }
}

#[test]
fn a_manager_on_an_ocm_hub_does_not_lead_beside_ocms_manager_and_says_so_once() {
    let world = World::bare("preflight-rival");
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    world.give(namespace("open-cluster-management-hub"));
    world.give(lease("open-cluster-management-hub", "manager-lock", 5));
    // Nobody told it where OCM's controllers are: it knows by the kinds.
    let manager =
        Process::start(world.desk.command("manager --kubeconfig hub.kubeconfig --lease-duration 1"));
    let both = "the add-on manager of Open Cluster Management runs and writes the same objects";
    let lines = manager.log_until(both);
    assert!(!lines.iter().any(|line| line.contains("this manager leads")), "{lines:#?}");
    assert!(lines.last().unwrap().contains("open-cluster-management-hub/manager-lock"), "{lines:#?}");
    world.give(lease("open-cluster-management-hub", "manager-lock", 140));
    let mut rest = manager.log_until("this manager leads");
    world.give(lease("open-cluster-management-hub", "manager-lock", 5));
    rest.extend(manager.log_until(both));
    let told = rest.iter().filter(|line| line.contains(both)).count();
    assert_eq!(told, 1, "only when it began again: {rest:#?}");
    assert!(rest.iter().any(|line| line.contains("no longer runs")), "{rest:#?}");
    manager.kill();
}

#[test]
fn without_leader_election_a_manager_on_an_ocm_hub_says_that_ocms_manager_runs() {
    let world = World::bare("preflight-unelected");
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    world.give(namespace("open-cluster-management-hub"));
    world.give(lease("open-cluster-management-hub", "manager-lock", 5));
    let manager =
        Process::start(world.desk.command("manager --kubeconfig hub.kubeconfig --leader-elect=false"));
    manager.complains(&[
        "the hub is not as a manager needs it",
        "the add-on manager of Open Cluster Management runs and writes the same objects: somebody holds the Lease",
    ]);
    manager.kill();
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

/// What the token driver makes. OCM's manager uses the same label.
fn of_tokens(kind: &str, name: &str, annotations: Value) -> Value {
    let version = if kind == "Role" { "rbac.authorization.k8s.io/v1" } else { "v1" };
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": {"name": name, "namespace": "c1", "annotations": annotations,
            "labels": {"addon.open-cluster-management.io/token-infrastructure": "true"}},
    })
}

#[test]
fn what_is_ours_is_removed_and_nothing_else() {
    let world = World::quiet("cleanup");
    world.give(namespace("c1"));
    world.give(marked("ClusterManagementAddOn", None));
    world.give(marked("ManagedClusterAddOn", Some("c1")));
    let theirs = json!({"type": "Available", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let clock = json!({"type": "RevisionHealthy", "status": "True", "reason": "Healthy", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "message": "revision 0123456789ab started at 2026-01-01T00:00:00Z"});
    let mut instance = marked("ManagedClusterAddOn", Some("c1"));
    instance["status"] = json!({"conditions": [clock, theirs]});
    world.block_on(aviary_testing::put_status(&world.client, &instance));
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
    for kind in ["Role", "ServiceAccount"] {
        let of = json!({"addon.open-cluster-management.io/registration-of": "c1/helloworld"});
        world.give(of_tokens(kind, "ours", of));
        world.give(of_tokens(kind, "theirs", json!({})));
    }
    world.give(lease("open-cluster-management", "aviary-manager", 5));
    let refused = world.run("cleanup --yes");
    assert!(refused.contains("manager somebody runs on this hub: stop every manager first"), "{refused}");

    // A registration would make its bindings again.
    world.give(lease("open-cluster-management", "aviary-manager", 100));
    world.give(lease("open-cluster-management", "aviary-registration", 5));
    let refused = world.run("cleanup --yes");
    assert!(
        refused.contains("registration somebody runs on this hub: stop every registration first"),
        "{refused}"
    );
    world.json("cleanup -o json --namespace other", 0);

    world.give(lease("open-cluster-management", "aviary-registration", 100));
    let found = json!({
        "add-ons: term": 1, "instances: marker and term": 1, "instances: condition RevisionHealthy": 1, "leases": 2, "role bindings of registration": 1,
        "roles of registration": 1, "service accounts of registration": 1,
        "rollout records": 0, "stored revisions": 1, "works: what they were rendered from": 1,
    });
    let before = world.get("ManagedClusterAddOn", "c1/helloworld");
    assert_eq!(world.json("cleanup -o json", 0), json!({"removed": false, "counts": found}));
    assert_eq!(world.get("ManagedClusterAddOn", "c1/helloworld"), before, "nothing is written without --yes");
    assert_eq!(world.json("cleanup --yes -o json", 0), json!({"removed": true, "counts": found}));

    let conditions = world.get("ManagedClusterAddOn", "c1/helloworld")["status"]["conditions"].clone();
    assert_eq!(conditions, json!([theirs]));
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
        "add-ons: term": 0, "instances: marker and term": 0, "instances: condition RevisionHealthy": 0, "leases": 0, "role bindings of registration": 0,
        "roles of registration": 0, "service accounts of registration": 0,
        "rollout records": 0, "stored revisions": 0, "works: what they were rendered from": 0,
    });
    assert_eq!(world.json("cleanup -o json", 0)["counts"], nothing);
    for theirs in [
        json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"namespace": "open-cluster-management"}}),
        binding("theirs", json!({})),
        of_tokens("Role", "theirs", json!({})),
        of_tokens("ServiceAccount", "theirs", json!({})),
    ] {
        world.block_on(aviary_testing::api_of(&world.client, &theirs).get("theirs")).unwrap();
    }
}

#[test]
fn after_a_take_over_an_upgrade_and_a_cleanup_only_what_ocm_knows_is_left() {
    let world = World::bare("cleanup-after");
    left_by_ocm(&world);
    world.give(plain_template("v2.0.0"));
    let world = world.looked_after();
    world.give(at("helloworld-v2.0.0"));
    world.until("the upgrade", |_, plan| {
        plan.report.placements.iter().all(|one| one.message.contains("completed with no errors"))
    });
    world.dismiss_manager();
    world.give(lease("open-cluster-management", "aviary-manager", 100));
    let works = || {
        ["c-00", "c-01"]
            .map(|cluster| world.get("ManifestWork", &format!("{cluster}/addon-helloworld-deploy-0")))
    };
    let before = works();
    let text = before[0].to_string();
    assert!(text.contains("rendered-from") && text.contains("v2.0.0"), "{text}");
    let counts = world.json("cleanup --yes -o json", 0)["counts"].clone();
    assert_eq!(
        (&counts["works: what they were rendered from"], &counts["rollout records"]),
        (&json!(3), &json!(1))
    );

    for (before, after) in before.iter().zip(&works()) {
        assert_eq!(before["spec"], after["spec"]);
        assert_eq!(before["metadata"]["generation"], after["metadata"]["generation"]);
        let keys = |field: &str| -> Vec<String> {
            after["metadata"][field].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        assert_eq!(keys("annotations"), ["open-cluster-management.io/config-spec-hash"]);
        assert_eq!(keys("labels"), ["open-cluster-management.io/addon-name"]);
    }
    for (kind, name) in [("ManagedClusterAddOn", "c-00/helloworld"), ("ClusterManagementAddOn", "helloworld")]
    {
        let metadata = world.get(kind, name)["metadata"].clone();
        let text = json!([metadata["annotations"], metadata["labels"], metadata["finalizers"]]).to_string();
        let status = world.get(kind, name)["status"].to_string();
        assert!(!status.contains("RevisionHealthy"), "{kind}: {status}");
        assert!(!text.contains("manager-") && !text.contains("installed-by-strategy"), "{kind}: {text}");
    }
}
