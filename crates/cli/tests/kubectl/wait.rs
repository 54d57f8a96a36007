//! Watching and waiting.

use expect_test::expect;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::harness::{Hub, hub};
use crate::kustomize::World;

const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/default/manifestworks";

fn with_work(name: &str) -> Hub {
    let hub = hub(name).file(
        "work.yaml",
        "\
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: deploy}
spec: {workload: {manifests: []}}
",
    );
    hub.given("create -f work.yaml");
    hub
}

#[test]
fn a_watch_tells_what_others_do() {
    let hub = hub("watch");
    hub.given("create configmap one --from-literal=a=b");
    let watch = hub.beside("get configmaps -w --output-watch-events");
    let mut told = vec![watch.line(), watch.line()];
    let wide = hub.beside("get configmap one -w -o 'jsonpath={.data}{\"\\n\"}'");
    let mut data = vec![wide.line()];
    hub.given("patch configmap one -p '{\"data\":{\"c\":\"d\"}}'");
    told.push(watch.line());
    data.push(wide.line());
    hub.given("create configmap two\n delete configmap one");
    told.extend([watch.line(), watch.line()]);
    expect![[r#"
        EVENT      NAME   DATA   AGE
        ADDED      one    1      AGE
        MODIFIED   one    2      AGE
        ADDED      two    0      AGE
        DELETED    one    2      AGE
    "#]]
    .assert_eq(&hub.masked(&(told.join("\n") + "\n")));
    expect![[r#"
        {"a":"b"}
        {"a":"b","c":"d"}
    "#]]
    .assert_eq(&(data.join("\n") + "\n"));
    drop((watch, wide));
    hub.stop();
}

#[test]
fn a_watch_ends_in_time() {
    let hub = hub("watch-end");
    hub.given("create configmap one");
    hub.check(
        "get configmaps -w --request-timeout=5s",
        &expect![[r#"
        $ kubectl get configmaps -w --request-timeout=5s
        NAME   DATA   AGE
        one    0      AGE
    "#]],
    );
    hub.stop();
}

#[test]
fn a_watch_ends_when_the_hub_stops() {
    let hub = hub("watch-stop");
    hub.given("create configmap one");
    let watch = hub.beside("get configmaps -w");
    assert!(watch.line().starts_with("NAME"));
    watch.line();
    hub.stop();
    drop(watch);
}

#[test]
fn kubectl_waits_for_a_condition() {
    let hub = with_work("wait");
    let path = format!("{WORKS}/deploy");
    hub.refuses("wait --for=condition=Applied manifestwork/deploy --timeout=1s", &["timed out waiting"]);
    // With its first response it has seen the original object.
    let wait = hub.beside("wait --for=condition=Applied manifestwork/deploy --timeout=60s -v=6");
    wait.complains(&["manifestworks", "200 OK"]);
    hub.set_condition("manifestwork deploy", &path, "Applied", "True");
    let met = "manifestwork.work.open-cluster-management.io/deploy condition met\n".to_owned();
    assert_eq!(wait.rest(), (met, Some(0)));
    hub.check(
        "
        get manifestwork deploy -o 'jsonpath={.status.conditions[0].type} {.metadata.generation}'
        wait --for=condition=Applied manifestwork --all --timeout=30s
        ",
        &expect![[r#"
            $ kubectl get manifestwork deploy -o 'jsonpath={.status.conditions[0].type} {.metadata.generation}'
            Applied 1

            $ kubectl wait --for=condition=Applied manifestwork --all --timeout=30s
            manifestwork.work.open-cluster-management.io/deploy condition met
        "#]],
    );
    if hub.kubectl_is_at_least(23) {
        hub.check(
            "wait '--for=jsonpath={.status.conditions[0].reason}=Told' manifestwork/deploy --timeout=30s",
            &expect![[r#"
                $ kubectl wait '--for=jsonpath={.status.conditions[0].reason}=Told' manifestwork/deploy --timeout=30s
                manifestwork.work.open-cluster-management.io/deploy condition met
            "#]],
        );
    }
    hub.stop();
}

#[test]
fn kubectl_waits_for_a_deletion() {
    let hub = with_work("wait-delete");
    hub.given(
        "
        patch manifestwork deploy --type merge -p '{\"metadata\":{\"finalizers\":[\"example.com/held\"]}}'
        delete manifestwork deploy --wait=false
        ",
    );
    let wait = hub.beside("wait --for=delete manifestwork/deploy --timeout=60s -v=6");
    wait.complains(&["manifestworks", "200 OK"]);
    hub.given("patch manifestwork deploy --type merge -p '{\"metadata\":{\"finalizers\":null}}'");
    let (told, code) = wait.rest();
    assert_eq!((told.contains("condition met"), code), (true, Some(0)), "{told}");
    hub.stop();
}

/// Nobody has processed the current generation, and the add-on has succeeded with the one before.
#[track_caller]
fn assert_is_not_told_of_the_generation_before(hub: &Hub, wait: &str) {
    let addon = hub.json("get cma helloworld -o json");
    let conditions = addon["status"]["conditions"].as_array().unwrap();
    let succeeded = conditions.iter().find(|one| one["type"] == "Succeeded").unwrap();
    assert_eq!(succeeded["status"], "True");
    assert!(succeeded["observedGeneration"].as_i64() < addon["metadata"]["generation"].as_i64(), "{addon:#}");
    // Earlier versions of kubectl do not compare generations.
    if hub.kubectl_is_at_least(21) {
        hub.refuses(&format!("{wait} --timeout=1s"), &["timed out waiting"]);
    }
}

/// The condition and the columns that a manager maintains, from the first apply to a rollout that
/// stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_waits_for_a_rollout_and_shows_how_far_it_is() {
    let mut world = World::new("wait-rollout").await;
    let in_flight = |addon: &Value| addon["status"]["rollout"]["inFlight"].to_string();
    world.apply("fresh-install");
    world.until("12", in_flight).await;
    let hub = &world.hub;
    let wait = "wait --for=condition=Succeeded cma/helloworld";
    hub.refuses(&format!("{wait} --timeout=1s"), &["timed out waiting"]);
    hub.check(
        "get cma",
        &expect![[r#"
            $ kubectl get cma
            NAME         STATE        DESIRED   SETTLED   IN FLIGHT   FAILED   AGE
            helloworld   Installing   v0.10.0   0/12      12          0        AGE
        "#]],
    );
    let waiting = hub.beside(&format!("{wait} --timeout=60s -v=6"));
    waiting.complains(&["clustermanagementaddons", "200 OK"]);
    world.agents.let_go();
    let met = "clustermanagementaddon.addon.open-cluster-management.io/helloworld condition met\n".to_owned();
    assert_eq!(waiting.rest(), (met, Some(0)));
    hub.check(
        "get cma",
        &expect![[r#"
            $ kubectl get cma
            NAME         STATE     DESIRED   SETTLED   IN FLIGHT   FAILED   AGE
            helloworld   Settled   v0.10.0   12/12     0           0        AGE
        "#]],
    );
    world.agents.answer(|_| None);
    world.stop_manager();
    world.apply("rolling-update");
    assert_is_not_told_of_the_generation_before(&world.hub, wait);
    world.start_manager();
    world.until("3", in_flight).await;
    let hub = &world.hub;
    hub.refuses(&format!("{wait} --timeout=1s"), &["timed out waiting"]);
    world.agents.answer(|work| {
        let wave = ["aws1", "aws2", "aws3"].map(|name| Some(name.to_owned()));
        wave.contains(&work.namespace()).then(|| Err("no such image".into()))
    });
    world.until("3", |addon| addon["status"]["rollout"]["failed"].to_string()).await;
    hub.check(
        "get cma",
        &expect![[r#"
            $ kubectl get cma
            NAME         STATE           DESIRED   SETTLED   IN FLIGHT   FAILED   AGE
            helloworld   UpgradeFailed   v0.11.0   0/12      0           3        AGE
        "#]],
    );
}
