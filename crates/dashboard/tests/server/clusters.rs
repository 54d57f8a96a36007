//! The routes without streams: info, one cluster, and actions.

use aviary_api::ManagedClusterAddOn;
use k8s_openapi::api::core::v1::Event as CoreEvent;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, addon, hub};

#[tokio::test(flavor = "multi_thread")]
async fn info_says_what_is_served() {
    let world = World::quiet().await;
    let told = json!({"version": "1.2.3", "writes": true, "server": "https://hub.example:6443", "mode": "kubeconfig", "user": "system:admin"});
    assert_eq!(world.get("/api/info").await, (200, told));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_told_with_its_conditions_and_its_works() {
    let world = World::installed(4, 2).await;
    let (status, detail) = world.get("/api/addons/helloworld/clusters/fleet-1").await;
    assert_eq!(status, 200, "{detail}");
    let fields: Vec<&str> = detail.as_object().unwrap().keys().map(String::as_str).collect();
    let contract = [
        "applied",
        "available",
        "cluster",
        "code",
        "conditions",
        "desired",
        "health",
        "kind",
        "labels",
        "message",
        "next",
        "placement",
        "revision",
        "works",
    ];
    assert_eq!(fields, contract);
    assert_eq!(
        (&detail["cluster"], &detail["placement"], &detail["kind"], &detail["code"], &detail["revision"]),
        (&json!("fleet-1"), &json!("default/fleet"), &json!("settled"), &json!("Settled"), &json!("v1.0.0"))
    );
    assert_eq!((&detail["labels"]["stage"], &detail["available"]), (&json!("fleet"), &json!("reachable")));
    assert_eq!(detail["next"], "aviary explain helloworld fleet-1");
    let progressing =
        detail["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Progressing").unwrap();
    assert_eq!((&progressing["status"], &progressing["reason"]), (&json!("False"), &json!("InstallSucceed")));
    assert!(progressing["lastTransitionTime"].is_string());
    let work = &detail["works"][0];
    assert_eq!(
        (&detail["works"].as_array().unwrap().len(), &work["name"]),
        (&1, &json!("addon-helloworld-deploy-0"))
    );
    let applied = work["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Applied").unwrap();
    assert_eq!(applied["status"], "True");
    let manifest = &work["manifests"][0];
    assert_eq!((&manifest["kind"], &manifest["name"]), (&json!("ConfigMap"), &json!("agent")));
    assert_eq!(work["manifests"].as_array().unwrap().len(), 1, "once, as given and as reported");
    assert_eq!((&detail["desired"], &detail["applied"]), (&json!("v1.0.0"), &json!("v1.0.0")));
    let content: Value = serde_json::from_str(manifest["content"].as_str().unwrap()).unwrap();
    assert_eq!((&content["kind"], &content["metadata"]["name"]), (&json!("ConfigMap"), &json!("agent")));
    assert!(manifest["conditions"].as_array().unwrap().iter().any(|one| one["type"] == "Applied"));
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_found_by_their_labels() {
    let world = World::installed(4, 2).await;
    let find =
        async |labels: &str| world.get(&format!("/api/addons/helloworld/clusters?labels={labels}")).await;
    let names = |(status, found): (u16, Value)| {
        assert_eq!(status, 200, "{found}");
        found["clusters"].as_array().unwrap().len()
    };
    assert_eq!(names(find("stage%3Dcanary").await), 2);
    assert_eq!(names(find("stage!%3Dcanary").await), 4);
    assert_eq!(names(find("stage").await), 6);
    assert_eq!(names(find("!stage").await), 0);
    for wrong in ["", "%3Dx", "a%20b%3Dc", "stage&labels=x"] {
        assert_eq!(find(wrong).await.0, 400, "{wrong}");
    }
    assert_eq!(world.get("/api/addons/helloworld/clusters").await.0, 400);
    assert_eq!(world.get("/api/addons/nobody/clusters?labels=stage").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_recorded_with_the_name_of_its_user() {
    let world = World::installed(4, 2).await;
    let dry = json!({"action": "pause", "placement": "default/fleet", "dryRun": true});
    assert_eq!(world.post("/api/addons/helloworld/actions", dry).await.0, 200);
    let real = json!({"action": "pause", "placement": "default/fleet", "dryRun": false});
    assert_eq!(world.post("/api/addons/helloworld/actions", real).await.0, 200);
    let is_action = |event: &Value| event["reason"] == "Paused";
    let told = |state: &Value| state["events"].as_array().unwrap().iter().any(is_action);
    let state = world.until("the action to be recorded", told).await;
    let events: Vec<&Value> =
        state["events"].as_array().unwrap().iter().filter(|one| is_action(one)).collect();
    assert_eq!(events.len(), 1, "a dry run is no action");
    assert_eq!(events[0]["message"], "system:admin paused the rollout of default/fleet with the dashboard");
}

/// An undo to a revision that had been rolled back goes forward, so no Event calls it a rollback.
#[tokio::test(flavor = "multi_thread")]
async fn each_action_is_recorded_in_words_that_are_true() {
    let world = World::installed(4, 2).await;
    let actions = [
        json!({"action": "undo", "placement": "default/canary", "toRevision": 2, "dryRun": false}),
        json!({"action": "undo", "dryRun": false}),
        json!({"action": "retry", "cluster": "canary-0", "dryRun": false}),
        json!({"action": "retry", "placement": "default/fleet", "dryRun": false}),
    ];
    for action in actions {
        assert_eq!(world.post("/api/addons/helloworld/actions", action).await.0, 200);
    }
    let noted = |state: &Value| -> Vec<String> {
        let events = state["events"].as_array().unwrap().iter();
        let notes = events.filter_map(|event| event["message"].as_str());
        let mut notes: Vec<String> =
            notes.filter_map(|note| note.strip_suffix(" with the dashboard")).map(str::to_owned).collect();
        notes.sort();
        notes
    };
    let state = world.until("the actions to be recorded", |state| noted(state).len() == 4).await;
    let expected = [
        "system:admin retried cluster canary-0",
        "system:admin retried the failed clusters of default/fleet",
        "system:admin set the rollout of default/canary to its revision 2",
        "system:admin undid the rollout",
    ];
    assert_eq!(noted(&state), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_leaves_does_not_count_as_waiting() {
    let world = World::installed(4, 2).await;
    // Its instance stays for as long as somebody else's finalizer does.
    let instances: Api<ManagedClusterAddOn> = Api::namespaced(world.client.clone(), "fleet-1");
    let kept = json!({"metadata": {"finalizers": ["example.com/keep"]}});
    instances.patch("helloworld", &PatchParams::default(), &Patch::Merge(&kept)).await.unwrap();
    instances.delete("helloworld", &Default::default()).await.unwrap();
    let state = world.until("the cluster to leave", |state| state["leaving"] == 1).await;
    assert_eq!((&state["waiting"], &state["settled"]), (&json!(0), &json!(5)), "{state}");
    assert_eq!(state["timeline"].as_array().unwrap().last().unwrap()[4], 0, "{}", state["timeline"]);
    // The list is sent a moment later.
    let mut list = world.stream("/api/stream").await;
    let leaves = async {
        loop {
            let data = list.next().await.data;
            let lines = data["addons"].as_array().or(data["changed"].as_array()).unwrap();
            if let Some(line) = lines.iter().find(|line| line["leaving"] == 1) {
                return line.clone();
            }
        }
    };
    let line = tokio::time::timeout(LIMIT, leaves).await.unwrap();
    assert_eq!((&line["clusters"], &line["waiting"]), (&json!(6), &json!(0)), "{line}");
}

/// The manager publishes Events in between: all of them, whoever wrote them, have the same order by
/// name, by `lastTimestamp` and by `eventTime`.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_actions_sort_among_those_of_the_manager() {
    let world = World::installed(4, 2).await;
    for verb in ["pause", "resume", "pause"] {
        let action = json!({"action": verb, "placement": "default/fleet", "dryRun": false});
        assert_eq!(world.post("/api/addons/helloworld/actions", action).await.0, 200);
    }
    let api: Api<CoreEvent> = Api::namespaced(world.client.clone(), "default");
    let mut events = api.list(&ListParams::default()).await.unwrap().items;
    events.sort_by_key(|event| event.event_time.as_ref().map(|at| at.0));
    let reasons: Vec<&str> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
    assert!(reasons.ends_with(&["Paused", "Resumed", "Paused"]), "{reasons:?}");
    assert!(reasons.len() > 3, "the manager has published Events: {reasons:?}");
    let names: Vec<_> = events.iter().map(|event| event.metadata.name.clone()).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert!(events.iter().all(|event| event.count == Some(1) && event.involved_object.uid.is_some()));
    let times: Vec<_> =
        events.iter().map(|event| event.last_timestamp.as_ref().expect("kubectl sorts by it").0).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_failed_says_so() {
    let world = World::installed(4, 2).await;
    world.put(addon("v3.0.0")).await;
    let state = world.until("the canary to fail", |state| state["failed"] == 1).await;
    let failed = state["reasons"][0]["examples"][0].as_str().unwrap();
    let (_, detail) = world.get(&format!("/api/addons/helloworld/clusters/{failed}")).await;
    assert_eq!(
        (&detail["kind"], &detail["code"], &detail["revision"]),
        (&json!("failed"), &json!("Failed"), &json!("v3.0.0"))
    );
    assert_eq!(detail["message"], state["reasons"][0]["message"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_found() {
    let world = World::quiet().await;
    for (path, expected) in [
        ("/api/addons/helloworld/clusters/c1", 404),
        ("/api/addons/helloworld/clusters/UPPER", 400),
        ("/api/addons/helloworld/clusters/kube-system", 400),
        ("/api/addons/Hello_World/clusters/c1", 400),
        ("/api/nothing", 404),
        ("/api/addons", 404),
        ("/api", 404),
        ("/nothing.js", 404),
        ("/api/stream?addon=UPPER", 400),
        ("/api/stream?addon=a&addon=b", 400),
        ("/api/stream?other=a", 400),
        ("/api/stream?addon=", 400),
        ("/api/stream?addon=a%00b", 400),
        ("/api/stream?addon=..%2f..%2fx", 400),
    ] {
        let (status, body) = world.get(path).await;
        assert_eq!(status, expected, "{path}");
        assert!(body["error"].is_string(), "{path}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_passed_on_as_it_was_asked() {
    let world = World::quiet().await;
    let path = "/api/addons/helloworld/actions";
    let (status, answer) = world
        .post(path, json!({"action": "undo", "placement": "default/fleet", "toRevision": 3, "dryRun": true}))
        .await;
    assert_eq!((status, &answer["done"]), (200, &json!(false)), "{answer}");
    let said = answer["blast"].as_str().unwrap();
    assert!(said.contains("Undo") && said.contains("default/fleet") && said.contains("Some(3)"), "{said}");
    let (status, answer) = world.post(path, json!({"action": "pause", "dryRun": false})).await;
    assert_eq!((status, &answer["done"]), (200, &json!(true)), "{answer}");
    for wrong in [
        json!({"action": "delete", "dryRun": true}),
        json!({"action": "pause"}),
        json!({"action": "pause", "dryRun": true, "force": true}),
        json!({"action": "pause", "dryRun": true, "toRevision": 1}),
        json!({"action": "acknowledge", "dryRun": false}),
        json!({"action": "acknowledge", "dryRun": true, "placement": "default/fleet"}),
        json!({"action": "resume", "dryRun": true, "acknowledge": "3"}),
        json!([]),
        Value::Null,
    ] {
        let (status, answer) = world.post(path, wrong.clone()).await;
        assert_eq!(status, 400, "{wrong}: {answer}");
    }
    assert_eq!(
        world.post("/api/addons/Not_A_Name/actions", json!({"action": "pause", "dryRun": true})).await.0,
        400
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_writes_there_are_no_actions() {
    let world = World::over(hub().await, false).await;
    assert_eq!(world.get("/api/info").await.1["writes"], false);
    for dry_run in [true, false] {
        let action = json!({"action": "pause", "dryRun": dry_run});
        let (status, answer) = world.post("/api/addons/helloworld/actions", action).await;
        assert_eq!(status, 403);
        assert!(answer["error"].as_str().unwrap().contains("--enable-writes"), "{answer}");
    }
}
