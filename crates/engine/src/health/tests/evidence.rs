//! What proves nothing: reports that are missing, of something else, or unreadable.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Template, applied, object, read, report, told};
use crate::health::Health;
use crate::health::instruct::digest_key;

/// A good Deployment of one replica.
fn good() -> Value {
    json!({
        "metadata": {"generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    })
}

fn deployment(image: &str) -> Value {
    let mut manifest = object("apps/v1", "Deployment");
    manifest["spec"]["image"] = json!(image);
    manifest
}

/// The work of a Deployment, about which the agent reports that it is good.
fn reported(image: &str) -> Value {
    let mut work = Template::of(&[deployment(image)]).work();
    let live = applied(&work, 0, &good());
    report(&mut work, &[live]);
    work
}

fn values(work: &mut Value) -> &mut Vec<Value> {
    work.pointer_mut("/status/resourceStatus/manifests/0/statusFeedback/values")
        .unwrap()
        .as_array_mut()
        .unwrap()
}

fn value<'a>(work: &'a mut Value, name: &str) -> &'a mut Value {
    &mut values(work).iter_mut().find(|value| value["name"] == name).unwrap()["fieldValue"]
}

fn health(work: &Value) -> String {
    let found = read(work);
    assert!(found.intact);
    told(&found.health)
}

#[test]
fn a_good_report_on_the_object_as_it_is_now_is_healthy() {
    assert_eq!(health(&reported("a")), "Healthy");
}

#[test]
fn without_a_report_health_is_unknown() {
    let bare = Template::of(&[deployment("a")]).work();
    let mut empty = reported("a");
    values(&mut empty).clear();
    let mut undigested = reported("a");
    values(&mut undigested).retain(|value| value["name"] != "aviary-digest");
    let mut no_feedback = reported("a");
    no_feedback["status"]["resourceStatus"]["manifests"][0].as_object_mut().unwrap().remove("statusFeedback");
    let mut only_digest = reported("a");
    values(&mut only_digest).retain(|value| value["name"] == "aviary-digest");
    let told = [bare, empty, undigested, no_feedback, only_digest].map(|work| health(&work) + "\n").concat();
    expect![[r#"
        Unknown  Deployment greeter/greeter: the work agent has not reported its health yet
        Unknown  Deployment greeter/greeter: the work agent has not reported its health yet
        Unknown  Deployment greeter/greeter: the work agent has not reported its health yet
        Unknown  Deployment greeter/greeter: the work agent has not reported its health yet
        Unknown  Deployment greeter/greeter: the work agent reports no aviary-replicas that can be read
    "#]]
    .assert_eq(&told);
}

/// OCM's agent reports the values of the object before under the generation of the work now.
#[test]
fn a_report_on_an_earlier_object_proves_nothing() {
    let mut work = Template::of(&[deployment("b")]).work();
    let before = applied(&reported("a"), 0, &good());
    report(&mut work, &[before]);
    expect!["Progressing  Deployment greeter/greeter: the work agent still reports an earlier version of it"]
        .assert_eq(&health(&work));
}

#[test]
fn a_failure_of_an_earlier_object_does_not_count_either() {
    let mut live = good();
    live["status"] = json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 1,
        "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
    });
    let before = applied(&reported("a"), 0, &live);
    let mut work = Template::of(&[deployment("b")]).work();
    report(&mut work, &[before]);
    assert!(matches!(read(&work).health, Health::Progressing { tolerable: false, .. }));
}

/// An unchanged manifest keeps its digest over revisions: its health need not be reported again.
#[test]
fn the_digest_is_of_the_content_and_of_the_install_namespace() {
    let digest = |template: Template| {
        let work = template.work();
        work["spec"]["workload"]["manifests"][0]["metadata"]["annotations"][digest_key(super::ADDON)].clone()
    };
    let one = digest(Template::of(&[deployment("a")]));
    assert!(one.as_str().is_some_and(|text| text.ends_with(".agents")), "{one}");
    let beside = [deployment("a"), object("v1", "ConfigMap")];
    assert_eq!(one, digest(Template::of(&beside)), "another revision, the same manifest");
    let named = json!([{"resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "greeter", "namespace": "greeter"}, "updateStrategy": {"type": "ServerSideApply"}}]);
    assert_eq!(one, digest(Template::of(&[deployment("a")]).configs(named)));
    assert_ne!(one, digest(Template::of(&[deployment("b")])));
    assert_ne!(one, digest(Template::of(&[deployment("a")]).namespace("other")));
    assert_ne!(digest_key("one"), digest_key("other"), "two add-ons may ship the same object");
}

#[test]
fn values_of_a_wrong_type_prove_nothing() {
    let wrong = [
        ("aviary-digest", json!({"type": "Integer", "integer": 7})),
        ("aviary-available", json!({"type": "String", "string": "1"})),
        ("aviary-available", json!({"type": "Integer"})),
        ("aviary-available", json!({"type": "JsonRaw", "jsonRaw": "[1]"})),
        ("aviary-available", json!({"type": "Guess", "integer": 1})),
        ("aviary-generation", json!({"type": "Boolean", "boolean": true})),
        ("aviary-available", json!("1")),
        ("aviary-available", json!(null)),
    ];
    let told = wrong.map(|(name, field)| {
        let mut work = reported("a");
        *value(&mut work, name) = field.clone();
        format!("{name} {field}: {}\n", health(&work))
    });
    expect![[r#"
        aviary-digest {"integer":7,"type":"Integer"}: Unknown  Deployment greeter/greeter: the work agent reports no aviary-digest that can be read
        aviary-available {"string":"1","type":"String"}: Unknown  Deployment greeter/greeter: the work agent reports no aviary-available that can be read
        aviary-available {"type":"Integer"}: Unknown  Deployment greeter/greeter: the work agent reports no aviary-available that can be read
        aviary-available {"jsonRaw":"[1]","type":"JsonRaw"}: Unknown  Deployment greeter/greeter: the work agent reports no aviary-available that can be read
        aviary-available {"integer":1,"type":"Guess"}: Unknown  Deployment greeter/greeter: the work agent reports no aviary-available that can be read
        aviary-generation {"boolean":true,"type":"Boolean"}: Unknown  Deployment greeter/greeter: the work agent reports no aviary-generation that can be read
        aviary-available "1": Unknown  Deployment greeter/greeter: the work agent reports no aviary-available that can be read
        aviary-available null: Unknown  Deployment greeter/greeter: the work agent reports no aviary-available that can be read
    "#]].assert_eq(&told.concat());
}

#[test]
fn numbers_beyond_any_sense_break_nothing() {
    for number in [i64::MIN, -1, i64::MAX] {
        for name in
            ["aviary-replicas", "aviary-total", "aviary-updated", "aviary-available", "aviary-observed"]
        {
            let mut work = reported("a");
            value(&mut work, name)["integer"] = json!(number);
            let found = told(&read(&work).health);
            assert!(found.starts_with("Unknown"), "{name} {number}: {found}");
        }
        for strategy in [json!(number), json!(format!("{number}%")), json!("many%"), json!("")] {
            let mut work = Template::of(&[deployment("a")]).work();
            let mut live = good();
            live["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] = strategy;
            live["status"]["availableReplicas"] = json!(0);
            let live = applied(&work, 0, &live);
            report(&mut work, &[live]);
            assert_ne!(told(&read(&work).health), "Healthy");
        }
    }
}

/// The agent names the object that it reports on: the order alone is no proof.
#[test]
fn a_report_on_another_object_at_the_same_place_proves_nothing() {
    let mut work = reported("a");
    work["status"]["resourceStatus"]["manifests"][0]["resourceMeta"]["name"] = json!("other");
    assert!(health(&work).starts_with("Unknown  Deployment greeter/greeter: "));
    let mut other = deployment("a");
    other["metadata"]["name"] = json!("other");
    let mut work = Template::of(&[deployment("a"), other]).work();
    let (first, second) = (applied(&work, 0, &good()), applied(&work, 1, &good()));
    report(&mut work, &[first, second]);
    let reports = work["status"]["resourceStatus"]["manifests"].as_array_mut().unwrap();
    reports.reverse();
    assert_eq!(health(&work), "Healthy", "in another order it is still the right object");
}

/// A report may be anywhere among those on other objects; of two on one object, the first counts.
#[test]
fn reports_on_thousands_of_other_objects_are_passed_over() {
    let named = |at: usize| {
        let mut manifest = deployment("a");
        manifest["metadata"]["name"] = json!(format!("greeter-{at}"));
        manifest
    };
    let manifests: Vec<Value> = (0..100).map(named).collect();
    let mut work = Template::of(&manifests).work();
    let live: Vec<Value> = (0..manifests.len()).map(|at| applied(&work, at, &good())).collect();
    report(&mut work, &live);
    let reports = work["status"]["resourceStatus"]["manifests"].as_array_mut().unwrap();
    let other = |at: usize| json!({"resourceMeta": {"group": "apps", "kind": "Deployment", "namespace": "greeter", "name": format!("other-{at}")}});
    reports.splice(0..0, (0..10_000).map(other).chain([json!({"resourceMeta": "x"}), json!(7), json!(null)]));
    assert_eq!(health(&work), "Healthy");
    let reports = work["status"]["resourceStatus"]["manifests"].as_array_mut().unwrap();
    let forged = json!({"resourceMeta": reports.last().unwrap()["resourceMeta"]});
    reports.insert(0, forged);
    assert!(health(&work).starts_with("Unknown  Deployment greeter/greeter-99: "), "{}", health(&work));
}

#[test]
fn junk_among_the_values_is_passed_over() {
    let mut work = reported("a");
    let junk: Vec<Value> = (0..10_000)
        .map(|at| match at % 3 {
            0 => json!({"name": format!("aviary-junk-{at}"), "fieldValue": {"type": "JsonRaw", "jsonRaw": "{}"}}),
            1 => json!({"name": at, "fieldValue": "x"}),
            _ => json!({"name": format!("replicas-{at}"), "fieldValue": {"type": "Integer", "integer": at}}),
        })
        .collect();
    values(&mut work).splice(0..0, junk);
    assert_eq!(health(&work), "Healthy");
}

#[test]
fn the_worst_object_decides_and_of_two_alike_the_first_by_name() {
    let named = |name: &str| {
        let mut manifest = deployment("a");
        manifest["metadata"]["name"] = json!(name);
        manifest
    };
    let live = |available: i64, reason: &str, tolerated: i64| {
        let mut live = good();
        live["spec"] = json!({"replicas": 2, "strategy": {"rollingUpdate": {"maxUnavailable": tolerated}}});
        live["status"] = json!({
            "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": available,
            "conditions": [{"type": "Progressing", "status": "True", "reason": reason}],
        });
        live
    };
    let (fine, tolerable) = (live(2, "NewReplicaSetAvailable", 0), live(1, "NewReplicaSetAvailable", 1));
    let (bad, failed) = (live(1, "NewReplicaSetAvailable", 0), live(0, "ProgressDeadlineExceeded", 0));
    let of = |live: [Option<&Value>; 3]| {
        let mut work = Template::of(&[named("b"), named("a"), named("c")]).work();
        let found: Vec<Value> = live
            .iter()
            .enumerate()
            .map(|(at, live)| {
                live.map_or(
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}),
                    |live| applied(&work, at, live),
                )
            })
            .collect();
        report(&mut work, &found);
        health(&work) + "\n"
    };
    let told = [
        of([Some(&fine), Some(&fine), Some(&fine)]),
        of([Some(&fine), Some(&tolerable), Some(&fine)]),
        of([Some(&tolerable), None, Some(&fine)]),
        of([Some(&tolerable), None, Some(&bad)]),
        of([Some(&bad), Some(&bad), Some(&bad)]),
        of([Some(&bad), Some(&bad), Some(&failed)]),
    ];
    expect![[r#"
        Healthy
        Progressing, tolerable  Deployment greeter/a: 1 of 2 updated replicas available
        Unknown  Deployment greeter/a: the work agent has not reported its health yet
        Progressing  Deployment greeter/c: 1 of 2 updated replicas available
        Progressing  Deployment greeter/a: 1 of 2 updated replicas available
        Failed  Deployment greeter/c: 0 of 2 updated replicas available; its progress deadline has passed
    "#]]
    .assert_eq(&told.concat());
}

/// A work of the first version asks for nothing: it is judged by its conditions.
#[test]
fn a_work_without_probes_is_not_probed() {
    let mut work = Template::of(&[deployment("a")]).work();
    work["metadata"]["annotations"]
        .as_object_mut()
        .unwrap()
        .remove("addon.open-cluster-management.io/probes-digest");
    let found = read(&work);
    assert!(!found.intact, "its objects carry digests, so its annotation was removed");
    assert_ne!(found.health, Health::NotProbed);
    work["spec"]["workload"]["manifests"] = json!([deployment("a")]);
    work["spec"].as_object_mut().unwrap().remove("manifestConfigs");
    let found = read(&work);
    assert!(found.intact);
    assert_eq!(found.health, Health::NotProbed);
}

fn migrate(image: &str) -> Value {
    let mut job = object("batch/v1", "Job");
    job["spec"]["image"] = json!(image);
    job
}

/// What is read of a work with a Job of this image, of which the cluster has the one made from
/// `live`.
fn job(wanted: &str, live: Option<&Value>, completed: &str) -> String {
    let mut work = Template::of(&[migrate(wanted)]).work();
    let mut live = live.cloned().unwrap_or_else(|| applied(&work, 0, &json!({})));
    live["status"] = json!({"conditions": [{"type": completed, "status": "True"}]});
    report(&mut work, &[live]);
    health(&work) + "\n"
}

/// Agents create a Job once. One that completed for an earlier version under the same name is no
/// evidence that this version's has run.
#[test]
fn a_job_that_completed_for_another_version_has_not_run() {
    let earlier = applied(&Template::of(&[migrate("a")]).work(), 0, &json!({}));
    let bare = migrate("a");
    let told = [
        job("a", Some(&earlier), "Complete"),
        job("b", None, "Complete"),
        job("b", Some(&earlier), "Complete"),
        job("b", Some(&earlier), "Failed"),
        // Made by somebody else, or by an Aviary that did not mark Jobs.
        job("a", Some(&bare), "Complete"),
        job("a", Some(&bare), "Failed"),
        job("a", Some(&bare), "Unheard"),
        job("a", Some(&earlier), "Failed"),
    ];
    expect![[r#"
        Healthy
        Healthy
        Kept  Job greeter/greeter: it is of another version, and agents create it only once: put {{VERSION}} into its name, or delete it on the cluster
        Failed  Job greeter/greeter: it has failed (of another version)
        Healthy
        Failed  Job greeter/greeter: it has failed (not bound to the revision)
        Progressing  Job greeter/greeter: it has not completed yet (not bound to the revision)
        Failed  Job greeter/greeter: it has failed
    "#]].assert_eq(&told.concat());
}

/// A Job that names no namespace of the agent stays the same when that changes.
#[test]
fn a_job_is_marked_with_the_namespace_of_the_agent_only_if_it_depends_on_it() {
    let mark = |manifest: Value, namespace: &'static str| {
        let work = Template::of(&[manifest]).namespace(namespace).work();
        work["spec"]["workload"]["manifests"][0]["metadata"]["annotations"][digest_key(super::ADDON)].clone()
    };
    assert_eq!(mark(migrate("a"), "one"), mark(migrate("a"), "other"));
    let dependent = || migrate("{{INSTALL_NAMESPACE}}");
    assert_ne!(mark(dependent(), "one"), mark(dependent(), "other"));
}

fn issued(kind: &str) -> Value {
    object("cert-manager.io/v1", kind)
}

/// The author's entry for a custom resource: it tells the plural.
fn rule(resource: &str, strategy: Option<&str>) -> Value {
    let mut rule = json!({"resourceIdentifier": {
        "group": "cert-manager.io", "resource": resource, "name": "greeter", "namespace": "greeter",
    }});
    if let Some(strategy) = strategy {
        rule["updateStrategy"] = json!({"type": strategy});
    }
    rule
}

/// Custom resources of one group, name and namespace, of which each says whether it is ready.
fn issued_health(kinds: &[(&str, &str)], configs: Value) -> String {
    let manifests: Vec<Value> = kinds.iter().map(|(kind, _)| issued(kind)).collect();
    let mut work = Template::of(&manifests).configs(configs).work();
    let live = |(at, (_, ready)): (usize, &(&str, &str))| {
        let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
        applied(&work, at, &json!({"metadata": {"generation": 1}, "status": status}))
    };
    let live: Vec<Value> = kinds.iter().enumerate().map(live).collect();
    report(&mut work, &live);
    health(&work) + "\n"
}

/// The kind of a custom resource is told by its plural: of two with the same name, one may be
/// created only once, and the other is updated, or not probed at all.
#[test]
fn custom_resources_of_one_name_are_told_apart() {
    for strategy in ["CreateOnly", "ReadOnly"] {
        let one_bound = || json!([rule("certificates", Some(strategy)), rule("issuers", None)]);
        let one_probed = || json!([rule("certificates", Some(strategy))]);
        let both_unbound =
            json!([rule("certificaterequests", Some(strategy)), rule("certificates", Some(strategy))]);
        let told = [
            issued_health(&[("Issuer", "True"), ("Certificate", "True")], one_bound()),
            issued_health(&[("Issuer", "False"), ("Certificate", "True")], one_bound()),
            issued_health(&[("Issuer", "True"), ("Certificate", "False")], one_bound()),
            issued_health(&[("Issuer", "True"), ("Certificate", "True")], one_probed()),
            issued_health(&[("Certificate", "False"), ("Issuer", "True")], one_probed()),
            issued_health(&[("Certificate", "True"), ("CertificateRequest", "True")], one_probed()),
            issued_health(&[("CertificateRequest", "True"), ("Certificate", "False")], both_unbound),
        ];
        expect![[r#"
            Healthy
            Progressing  Issuer greeter/greeter: it is not ready
            Progressing  Certificate greeter/greeter: it is not ready (not bound to the revision)
            Healthy
            Progressing  Certificate greeter/greeter: it is not ready (not bound to the revision)
            Healthy
            Progressing  Certificate greeter/greeter: it is not ready (not bound to the revision)
        "#]]
        .assert_eq(&told.concat());
    }
}
