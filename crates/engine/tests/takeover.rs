//! Take-over of an add-on from OCM's manager (docs/ocm.md): what it has brought to rest stays as it
//! is.

#![allow(clippy::expect_used, reason = "a broken story must fail the test")]

use crate::story::rendering::works;
use crate::story::{Story, cluster};
use aviary_engine::explain::Decision;
use aviary_engine::health::Health;
use aviary_engine::invariants;
use aviary_engine::normalise;
use aviary_engine::observed::{Instance, Observed};
use aviary_engine::plan::{Write, plan};
use serde_json::{Value, json};

/// When OCM's manager had finished, long before the stories begin.
const LONG_AGO: &str = "2025-06-01T00:00:00Z";

/// A work as OCM's manager renders it: its annotation and its label, none of ours, no probes.
fn of_ocm(mut object: Value) -> Value {
    for manifest in object["spec"]["workload"]["manifests"].as_array_mut().expect("manifests") {
        manifest["metadata"].as_object_mut().expect("metadata").remove("annotations");
    }
    object["spec"].as_object_mut().expect("a spec").remove("manifestConfigs");
    let hashes = object["metadata"]["annotations"]["open-cluster-management.io/config-spec-hash"].take();
    object["metadata"]["annotations"] = json!({"open-cluster-management.io/config-spec-hash": hashes});
    object["metadata"]["labels"] = json!({"open-cluster-management.io/addon-name": "helloworld"});
    object["metadata"]["generation"] = json!(1);
    object["metadata"]["uid"] = json!("work-uid");
    let said = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": 1});
    object["status"] = json!({"conditions": [said("Applied"), said("Available")]});
    object
}

/// The status that OCM's manager leaves on an instance that has what it was assigned.
fn status_of_ocm(instance: &Instance, since: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since});
    let references: Vec<Value> = instance
        .status
        .told()
        .map(|pin| {
            let config = json!({"name": pin.config.name, "namespace": pin.config.namespace, "specHash": pin.hash.as_str()});
            json!({
                "group": pin.config.kind.group, "resource": pin.config.kind.resource, "name": pin.config.name,
                "lastObservedGeneration": 1, "desiredConfig": config, "lastAppliedConfig": config,
            })
        })
        .collect();
    let supported: Vec<Value> = instance
        .status
        .supported
        .iter()
        .map(|kind| json!({"group": kind.group, "resource": kind.resource}))
        .collect();
    json!({
        "configReferences": references, "supportedConfigs": supported,
        "conditions": [
            condition("Progressing", "False", "Completed", "completed with no errors."),
            condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured"),
            condition("ManifestApplied", "True", "AddonManifestApplied", "manifests of addon are applied successfully"),
            condition("RegistrationApplied", "True", "NilRegistration", "Registration of the addon agent is configured"),
            condition("Available", "True", "ProbeAvailable", "helloworld add-on is available."),
        ],
    })
}

/// Replaces everything that Aviary has written to instances and works by what OCM's manager would
/// have. Nothing of Aviary's is left but the add-on's status.
fn hand_to_ocm(story: &mut Story, since: &str) -> usize {
    let mut without = story.world.observed.clone();
    let names: Vec<_> = story.world.observed.instances.keys().cloned().collect();
    for name in &names {
        without.works.get_mut(name).expect("works").clear();
    }
    let rendered = works(&without, story);
    let count = rendered.len();
    for name in &names {
        story.world.observed.works.get_mut(name).expect("works").clear();
        let mut instance = story.world.observed.instances.get_mut(name).expect("an instance");
        let object = json!({
            "metadata": {"name": "helloworld", "namespace": name.to_string(), "uid": instance.uid, "generation": 1,
                "resourceVersion": instance.resource_version, "ownerReferences": [{
                    "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
                    "name": "helloworld", "uid": "addon-uid", "controller": true, "blockOwnerDeletion": true,
                }]},
            "spec": {"installNamespace": "open-cluster-management-agent-addon"},
            "status": status_of_ocm(&instance, since),
        });
        let object = serde_json::from_value(object).expect("an instance");
        *instance = normalise::instance(&object).expect("an instance").0;
    }
    for object in rendered {
        let name = cluster(object["metadata"]["namespace"].as_str().expect("a namespace"));
        let work = serde_json::from_value(of_ocm(object)).expect("a ManifestWork");
        let (_, work) = normalise::work(&work).expect("a work of the add-on");
        assert_eq!(work.health, Health::NotProbed);
        story.world.observed.works.get_mut(&name).expect("works").push(work);
    }
    story.world.observed.revisions = Default::default();
    count
}

/// What a plan writes to instances and works.
fn touched(observed: &Observed, story: &Story) -> Vec<String> {
    let writes = plan(observed, story.now).writes();
    let on_clusters = writes.filter_map(|write| match &write {
        Write::Instance(write) => Some(format!("status of {}", write.cluster)),
        Write::Work(write) => Some(format!("work {} of {}", write.name, write.cluster)),
        Write::DeleteWork(write) => Some(format!("no work {} of {}", write.name, write.cluster)),
        Write::Create(write) => Some(format!("new instance {}", write.cluster)),
        Write::Delete(write) => Some(format!("no instance {}", write.cluster)),
        _ => None,
    });
    on_clusters.collect()
}

/// A fleet of 200 that OCM's manager has brought to v1, on a hub of OCM's.
fn taken_over(strategy: &str) -> Story {
    let mut story = Story::new();
    story.run(&format!(
        "hub ocm
        template v1 v2
        place prod: p001..p200
        rollout prod template=helloworld-v1 {strategy}
        settle"
    ));
    assert_eq!(hand_to_ocm(&mut story, LONG_AGO), 200, "{strategy}");
    story
}

fn in_flight(story: &Story) -> usize {
    let plan = plan(&story.world.observed, story.now);
    plan.report.clusters.iter().filter(|one| matches!(one.decision, Decision::InFlight(_))).count()
}

#[test]
fn a_settled_fleet_of_ocm_is_taken_over_without_a_write_to_any_cluster_and_rolls_by_budget_later() {
    for strategy in
        ["All", "Progressive 10%", "Progressive 25 minSuccessTime=10m progressDeadline=1h", "PerGroup"]
    {
        let mut story = taken_over(strategy);
        for later in ["0s", "1h"] {
            story.run(&format!("wait {later}"));
            assert_eq!(touched(&story.world.observed, &story), [""; 0], "{strategy}");
            story.run("pass 3");
            let report = plan(&story.world.observed, story.now).report;
            assert!(report.clusters.iter().all(|one| one.decision == Decision::Settled), "{strategy}");
            assert_eq!(report.not_probed, 200, "{strategy}");
            assert_eq!(report.maker_of_not_probed(), "of another manager", "{strategy}");
        }
        assert!(plan(&story.world.observed, story.now).is_at_rest(), "{strategy}");
        story.run(&format!("rollout prod template=helloworld-v2 {strategy}\n pass"));
        let most = if strategy.contains("Progressive 10%") { 20 } else { 25 };
        if strategy.contains("Progressive") {
            assert_eq!(in_flight(&story), most, "{strategy}");
        }
        story.run("settle\n wait 11m\n settle");
        for _ in 0..20 {
            story.run("wait 11m\n settle");
        }
        let works = story.world.observed.works.iter().flat_map(|(_, works)| works.iter());
        let upgraded =
            works.filter(|work| work.health == Health::Healthy && work.version.as_deref() == Some("v2"));
        assert_eq!(upgraded.count(), 200, "{strategy}");
    }
}

/// What OCM's manager brought to its revision a moment ago goes on soaking, by the time that OCM
/// recorded.
#[test]
fn a_soak_that_began_under_ocm_ends_when_it_would_have() {
    let mut story = taken_over("Progressive 25 minSuccessTime=10m");
    hand_over_again(&mut story, "2025-12-31T23:55:00Z");
    let soaking = |story: &Story| {
        let report = plan(&story.world.observed, story.now).report;
        report.clusters.iter().filter(|one| one.decision != Decision::Settled).count()
    };
    assert_eq!(soaking(&story), 200);
    story.run("wait 4m\n pass 2");
    assert_eq!(soaking(&story), 200);
    story.run("wait 2m\n pass 2");
    assert_eq!(soaking(&story), 0);
    assert_eq!(touched(&story.world.observed, &story), [""; 0]);
}

/// Aviary has brought a fleet to a revision before. OCM's manager then brought it to another one,
/// and knows nothing of the condition that is left.
#[test]
fn a_clock_of_an_earlier_time_does_not_hinder_a_second_take_over() {
    let mut story = taken_over("Progressive 25 minSuccessTime=10m progressDeadline=1h");
    for reason in ["Healthy", "NotYetHealthy", "NoLongerHealthy"] {
        let clock = json!({
            "type": "RevisionHealthy", "status": if reason == "Healthy" { "True" } else { "False" }, "reason": reason,
            "message": "revision 0123456789ab started at 2025-05-01T00:00:00Z by placement default/prod",
            "lastTransitionTime": "2025-05-01T00:00:00Z", "observedGeneration": 1,
        });
        hand_over_with(&mut story, LONG_AGO, &[clock]);
        assert_eq!(touched(&story.world.observed, &story), [""; 0], "{reason}");
        let report = plan(&story.world.observed, story.now).report;
        assert!(report.clusters.iter().all(|one| one.decision == Decision::Settled), "{reason}");
    }
    story.run(
        "rollout prod template=helloworld-v2 Progressive 25 minSuccessTime=10m progressDeadline=1h\n pass",
    );
    assert_eq!(in_flight(&story), 25);
}

fn hand_over_again(story: &mut Story, since: &str) {
    hand_over_with(story, since, &[]);
}

/// With conditions of others.
fn hand_over_with(story: &mut Story, since: &str, more: &[Value]) {
    let names: Vec<_> = story.world.observed.instances.keys().cloned().collect();
    for name in names {
        let mut instance = story.world.observed.instances.get_mut(&name).expect("an instance");
        let mut status = status_of_ocm(&instance, since);
        status["conditions"].as_array_mut().expect("conditions").extend_from_slice(more);
        let status = serde_json::from_value(
            json!({"metadata": {"namespace": name.to_string()}, "spec": {}, "status": status}),
        );
        let status = normalise::instance(&status.expect("an instance")).expect("an instance").0.status;
        instance.status = status;
    }
}

/// A work that somebody deletes after the take-over is made again, and what OCM rendered beside it
/// with it.
#[test]
fn a_work_of_ocm_that_is_lost_is_rendered_anew() {
    let mut story = taken_over("All");
    story.world.observed.works.get_mut(&cluster("p007")).expect("works").clear();
    let touched = touched(&story.world.observed, &story);
    assert!(touched.contains(&"work addon-helloworld-deploy-0 of p007".to_owned()), "{touched:?}");
    assert!(touched.iter().all(|one| one.ends_with(" p007")), "{touched:?}");
    story.run("settle");
    assert_eq!(plan(&story.world.observed, story.now).report.not_probed, 199);
}

/// A work of OCM's with other hashes, of another instance or without an owner is none that can be
/// accepted.
#[test]
fn works_that_do_not_agree_are_not_accepted() {
    let mut story = taken_over("All");
    let edit = |story: &mut Story, name: &str, change: &dyn Fn(&mut aviary_engine::observed::Work)| {
        story.world.observed.works.get_mut(&cluster(name)).expect("works").iter_mut().for_each(change);
    };
    edit(&mut story, "p001", &|work| work.hashes = None);
    edit(&mut story, "p002", &|work| work.owner = Some("another".into()));
    edit(&mut story, "p003", &|work| work.objects.clear());
    edit(&mut story, "p004", &|work| work.deleting = true);
    let touched = touched(&story.world.observed, &story);
    for name in ["p001", "p002", "p003"] {
        assert!(touched.contains(&format!("work addon-helloworld-deploy-0 of {name}")), "{touched:?}");
    }
    assert!(
        touched.iter().all(|one| ["p001", "p002", "p003", "p004"].iter().any(|name| one.ends_with(name))),
        "{touched:?}"
    );
    story.run("settle");
    assert_eq!(plan(&story.world.observed, story.now).report.not_probed, 197);
}

#[test]
fn works_of_ocm_get_probes_at_most_a_quarter_at_once_if_somebody_asks() {
    let mut story = taken_over("All");
    story.run("annotate reprobe=now\n pass");
    let probed = |story: &Story| {
        let works = story.world.observed.works.iter().flat_map(|(_, works)| works.iter());
        works.filter(|work| work.probed).count()
    };
    assert_eq!(probed(&story), 50);
    story.run("settle\n wait 2m\n settle");
    assert_eq!(probed(&story), 200);
}

/// S24, planted: a manager that takes works of another for works of an earlier revision.
#[test]
fn s24_finds_a_take_over_that_rewrites_works() {
    let story = taken_over("All");
    let mut blind = story.world.observed.clone();
    for name in story.world.observed.instances.keys() {
        blind.works.get_mut(name).expect("works").clear();
    }
    let writes: Vec<Write> = plan(&blind, story.now).writes().collect();
    let works: Vec<&Write> = writes.iter().filter(|write| matches!(write, Write::Work(_))).collect();
    assert_eq!(works.len(), 200);
    let mut kept = story.world.clone();
    for write in writes.iter().filter(|write| matches!(write, Write::Keep(_))) {
        kept.commit(write);
    }
    for write in works {
        let mut world = kept.clone();
        assert!(world.commit(write));
        let found = invariants::check(&kept.observed, write, &world.observed);
        assert!(found.iter().any(|one| one.rule == "S24"), "{found:?}");
    }
}

/// A workload with what OCM's documentation shows of templates.
fn workload(kind: &str, name: &str) -> Value {
    let containers = json!([
        {"name": "agent", "image": "quay.io/ocm/agent:v1", "args": ["--cluster={{CLUSTER_NAME}}"], "env": [{"name": "OWN", "value": "1"}]},
        {"name": "side", "image": "quay.io/ocm/side:v1"},
    ]);
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "open-cluster-management-agent-addon"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"serviceAccountName": "agent", "containers": containers, "volumes": [{"name": "tmp", "emptyDir": {}}]},
        }},
    })
}

/// The pod template that OCM's manager renders from it, as its Go types write it: with empty
/// fields, and in the order of its decorators (environment, volumes, node placement, images, proxy,
/// resources).
fn pod_of_ocm(name: &str) -> Value {
    let environment = json!([
        {"name": "HUB_KUBECONFIG", "value": "/managed/hub-kubeconfig/kubeconfig"}, {"name": "CLUSTER_NAME", "value": "a1"},
        {"name": "INSTALL_NAMESPACE", "value": "open-cluster-management-agent-addon"},
        {"name": "HTTP_PROXY", "value": "http://p:1"}, {"name": "http_proxy", "value": "http://p:1"},
        {"name": "CA_BUNDLE_FILE_PATH", "value": "/managed/proxy-ca/ca-bundle.crt"},
    ]);
    let own = [json!({"name": "OWN", "value": "1"})];
    let of_agent: Vec<Value> = own.iter().chain(environment.as_array().expect("a list")).cloned().collect();
    let mounts = json!([
        {"name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig"},
        {"name": "proxy-ca-bundle", "mountPath": "/managed/proxy-ca"},
    ]);
    json!({
        "metadata": {"labels": {"app": name}, "creationTimestamp": null},
        "spec": {
            "serviceAccountName": "agent",
            "containers": [
                {"name": "agent", "image": "mirror.example/agent:v1", "args": ["--cluster=a1"], "env": of_agent, "volumeMounts": mounts,
                    "resources": {"requests": {"cpu": "5m"}}},
                {"name": "side", "image": "mirror.example/side:v1", "env": environment, "volumeMounts": mounts, "resources": {}},
            ],
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "hub-kubeconfig", "secret": {"secretName": "helloworld-hub-kubeconfig"}},
                {"name": "proxy-ca-bundle", "configMap": {"name": "helloworld-proxy-ca"}},
            ],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}],
        },
    })
}

/// Without the empty fields that Go writes: to an API server they say nothing.
fn as_stored(mut pod: Value) -> Value {
    pod["metadata"].as_object_mut().expect("metadata").retain(|_, value| !value.is_null());
    for container in pod["spec"]["containers"].as_array_mut().expect("containers") {
        container
            .as_object_mut()
            .expect("a container")
            .retain(|key, value| key != "resources" || *value != json!({}));
    }
    pod
}

/// The way back: OCM's manager rewrites the works that we rendered, and no pod restarts, because no
/// pod template differs.
#[test]
fn our_pod_templates_are_those_of_ocm() {
    let mut story = Story::new();
    story.run("hub ocm");
    let spec = json!({
        "addonName": "helloworld", "registration": [{"type": "KubeClient", "kubeClient": {}}],
        "agentSpec": {"workload": {"manifests": [workload("Deployment", "agent"), workload("DaemonSet", "node")]}},
    });
    story.put_template(&json!({"metadata": {"name": "tpl"}, "spec": spec}));
    let deployment = json!({
        "agentInstallNamespace": "open-cluster-management-agent-addon",
        "registries": [{"source": "quay.io/ocm", "mirror": "mirror.example"}],
        "proxyConfig": {"httpProxy": "http://p:1", "caBundle": "Y2VydGlmaWNhdGU="},
        "resourceRequirements": [{"containerID": "*:*:agent", "resources": {"requests": {"cpu": "5m"}}}],
        "nodePlacement": {
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}],
        },
    });
    story.put_config("addondeploymentconfigs", Some("default"), "deploy", &json!({"spec": deployment}));
    story.run("place prod: a1\n rollout prod template=tpl deploy=default/deploy\n pass 2");
    let work = works(&story.world.observed, &story).remove(0);
    for (at, name) in ["agent", "node"].into_iter().enumerate() {
        let rendered = work["spec"]["workload"]["manifests"][at]["spec"]["template"].clone();
        assert_eq!(as_stored(rendered), as_stored(pod_of_ocm(name)), "{name}");
    }
}

/// The owner of every instance is its add-on, also of those that users make, and nobody else's
/// metadata changes.
#[test]
fn a_users_instance_gets_the_add_on_as_owner_and_nothing_else() {
    let mut story = Story::new();
    story.run("template v1\n clusters a1..a3\n place prod: a1..a2\n rollout prod version=v1\n user a2\n user a3\n settle");
    for name in ["a1", "a2", "a3"] {
        let instance = story.world.observed.instances.get(&cluster(name)).expect("an instance");
        assert_eq!(instance.owner.as_deref(), Some("addon-uid"), "{name}");
        assert_eq!(instance.marker.is_some(), name == "a1", "{name}");
    }
    assert_eq!(plan(&story.world.observed, story.now).report.by_users, 2);
    assert!(plan(&story.world.observed, story.now).is_at_rest());
}

/// On a hub of OCM, an instance that nobody but its manager has written gets the marker. Others are
/// kept, and named.
#[test]
fn instances_are_adopted_only_if_ocm_alone_has_written_them() {
    let mut story = taken_over("All");
    for name in (1..=197).map(|number| format!("p{number:03}")) {
        story.world.observed.instances.get_mut(&cluster(&name)).expect("an instance").made_by_ocm = true;
    }
    assert_eq!(plan(&story.world.observed, story.now).report.adopted, 197);
    story.run("settle");
    let marked =
        story.world.observed.instances.values().filter(|one| one.marker.as_deref() == Some("Placements"));
    assert_eq!(marked.count(), 197);
    let before = story.told.len();
    story.run("show conditions");
    let told = &story.told[before..];
    assert!(
        told.contains(
            "InstancesAdopted  False InstancesKept  3 of 200 instances stay when their cluster is deselected"
        ) && told.contains(": p198, p199, p200; to hand one to the install strategy, set its label"),
        "{told}"
    );
    assert!(plan(&story.world.observed, story.now).is_at_rest());
}

/// S6, planted: a manager that marks the instance of a user as its own.
#[test]
fn s6_finds_a_user_whose_instance_is_adopted() {
    let mut story = taken_over("All");
    let mut wrong = story.world.clone();
    wrong.observed.instances.get_mut(&cluster("p001")).expect("an instance").made_by_ocm = true;
    let writes: Vec<Write> = plan(&wrong.observed, story.now).writes().collect();
    let write = writes.iter().find(|write| matches!(write, Write::Guard(_))).expect("an adoption");
    let before = story.world.observed.clone();
    assert!(story.world.commit(write));
    let found = invariants::check(&before, write, &story.world.observed);
    assert!(found.iter().any(|one| one.rule == "S6"), "{found:?}");
}
