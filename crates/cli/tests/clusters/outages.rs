//! Outages of what is outside Aviary: kubelets, agents, API servers; and a drain.

use serde_json::{Value, json};

use crate::lane::alone;
use crate::member::INSTALLED;
use crate::story::{Story, condition};
use crate::workloads::deployment;

async fn installed(name: &str) -> Story {
    installed_before(name, deployment(name, "v2", &["serve"])).await
}

/// Installs v1, and publishes v2.
async fn installed_before(name: &str, next: Value) -> Story {
    let story = Story::new(name, alone()).await;
    story.publish("v1", &json!([deployment(name, "v1", &["serve"])])).await;
    story.publish("v2", &json!([next])).await;
    story.want("v1").await;
    story.until_done("v1").await;
    story.until_all_run("v1").await;
    story
}

async fn until_upgraded(story: &Story) {
    story.until_done("v2").await;
    story.until_all_run("v2").await;
    story.finish().await;
}

/// Waits until the agent has changed the Deployment on a member.
async fn until_changed(story: &Story, member: usize) {
    story
        .until("the Deployment to change", async || {
            let object = story.members[member].deployment(&story.name).await?;
            (object["metadata"]["generation"].as_i64() > Some(1)).then_some(())
        })
        .await;
}

/// A v2 whose pods take so long that an outage comes before they are ready.
fn slow(name: &str) -> Value {
    let mut next = deployment(name, "v2", &["serve"]);
    next["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["initialDelaySeconds"] = 8.into();
    next
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_in_mid_rollout_holds_it_until_it_is_back() {
    let story = installed_before("dead-node", slow("dead-node")).await;
    story.want("v2").await;
    until_changed(&story, 0).await;
    story.lane.kill("member1", "kubelet");
    let pods = story.members[0].pods("dead-node").await;
    assert!(pods.iter().any(|pod| pod.version == "v1"), "v2 ran before the node died: {pods:?}");
    story
        .until("the node to be seen as dead", async || {
            (story.members[0].node_is_ready().await == Some(false)).then_some(())
        })
        .await;
    story
        .until("the Deployment to be named, without a pod", async || {
            let told = story.explain();
            // Of the old pods none is left on another node.
            let none = told.contains(", 0 available") || told.contains("0 of 2 updated replicas available");
            (none && told.contains(&format!("Deployment {INSTALLED}/dead-node"))).then_some(())
        })
        .await;
    story.assert_fleet_is_untouched("v1").await;
    story.lane.start("member1", "kubelet");
    until_upgraded(&story).await;
}

/// Waits until the hub has noticed that a cluster does not answer.
async fn until_unreachable(story: &Story, cluster: &str) {
    story
        .until("the hub to notice", async || {
            let object = story.lane.kubectl("hub", &format!("get managedcluster {cluster} -o json"));
            let object: Value = serde_json::from_str(&object).ok()?;
            (condition(&object, "ManagedClusterConditionAvailable")["status"] != "True").then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_in_flight_keeps_its_slot_and_goes_on_where_it_was() {
    let story = installed_before("dead-agent", slow("dead-agent")).await;
    story.want("v2").await;
    story
        .until("member2 to be assigned v2", async || {
            (story.versions("member2").await.0 == "v2").then_some(())
        })
        .await;
    // Its pods are not ready yet, or not even started, and from now on nothing reports on them.
    story.lane.kill_agent("member2");
    until_unreachable(&story, "member2").await;
    until_offline(&story).await;
    story
        .until("the pods of member2, which need no agent", async || {
            let pods = story.members[1].pods("dead-agent").await;
            (pods.iter().filter(|pod| pod.ready).count() >= 2).then_some(())
        })
        .await;
    // The budget of one cluster is in use.
    story.assert_untouched(&story.members[2], "v1").await;
    story.lane.start_agent("member2");
    until_upgraded(&story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_whose_api_server_restarts_goes_on_with_its_rollout() {
    let story = installed("hub-restart").await;
    story.want("v2").await;
    until_changed(&story, 0).await;
    story.lane.kill("hub", "kube-apiserver");
    // The clusters do not need the hub.
    story
        .until("the canary's pods", async || {
            story.members[0].runs("hub-restart", "v2", 2).await.then_some(())
        })
        .await;
    story.lane.start("hub", "kube-apiserver");
    until_upgraded(&story).await;
}

/// Waits until the report says why member2 does not get on: it waits for the others, or starts
/// after them.
async fn until_offline(story: &Story) {
    story
        .until("the reason", async || {
            let told = story.explain();
            (told.contains("offline since") && told.contains("member2")).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_away_is_passed_and_catches_up() {
    let story = installed("away").await;
    story.lane.kill("member2", "kube-apiserver");
    until_unreachable(&story, "member2").await;
    story.want("v2").await;
    story
        .until("member3 to run v2", async || story.members[2].runs("away", "v2", 2).await.then_some(()))
        .await;
    until_offline(&story).await;
    story.lane.start("member2", "kube-apiserver");
    until_upgraded(&story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_the_network_cuts_off_is_passed_and_catches_up() {
    let story = installed("cut-off").await;
    story.lane.freeze_agent("member2");
    until_unreachable(&story, "member2").await;
    story.want("v2").await;
    story
        .until("member3 to run v2", async || story.members[2].runs("cut-off", "v2", 2).await.then_some(()))
        .await;
    until_offline(&story).await;
    // Its pods need no hub.
    story.until_runs(&story.members[1], "v1").await;
    story.lane.thaw_agent("member2");
    until_upgraded(&story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_of_settled_pods_flaps_nothing() {
    let story = Story::new("drained", alone()).await;
    let mut object = deployment("drained", "v1", &["serve"]);
    object["spec"]["replicas"] = 4.into();
    // Long enough for the agent to see that a replica is missing.
    object["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["initialDelaySeconds"] = 5.into();
    object["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    story.publish("v1", &json!([object])).await;
    story.want("v1").await;
    story.until_done("v1").await;
    let before = (story.addon().await.unwrap(), story.instance("member1").await.unwrap());
    let canary = &story.members[0];
    let pods = canary.pods("drained").await;
    assert_eq!(pods.len(), 4, "{pods:?}");
    for pod in pods {
        // As kubectl drain evicts a pod; one at a time, as a disruption budget would have it.
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name, "namespace": INSTALLED}});
        let file = story.lane.path("eviction.json");
        std::fs::write(&file, eviction.to_string()).unwrap();
        let path = format!("/api/v1/namespaces/{INSTALLED}/pods/{}/eviction", pod.name);
        story.lane.kubectl("member1", &format!("create --raw {path} -f {}", file.display()));
        // The agent has reported the replica that is missing.
        story
            .until("a report of three replicas", async || {
                let work = story.work("member1").await?;
                work["status"]
                    .to_string()
                    .contains(r#"{"fieldValue":{"integer":3,"type":"Integer"},"name":"aviary-available"}"#)
                    .then_some(())
            })
            .await;
        story
            .until("the replica to be replaced", async || {
                let pods = canary.pods("drained").await;
                (pods.len() == 4 && pods.iter().all(|one| one.ready && one.name != pod.name)).then_some(())
            })
            .await;
        story
            .until("a report of four replicas", async || {
                let work = story.work("member1").await?;
                work["status"]
                    .to_string()
                    .contains(r#"{"fieldValue":{"integer":4,"type":"Integer"},"name":"aviary-available"}"#)
                    .then_some(())
            })
            .await;
    }
    let after = (story.addon().await.unwrap(), story.instance("member1").await.unwrap());
    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        assert_eq!(before["status"], after["status"], "the status was written");
        assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    }
    story.finish().await;
}
