//! Workloads and objects other than Deployments.

use serde_json::{Value, json};

use crate::embedded::embedded;
use crate::lane::{MEMBERS, shared};
use crate::member::{INSTALLED, Pod, is_gone};
use crate::story::Story;
use crate::workloads::{daemon_set, job, stateful_set};

/// Upgrades from v1 to v2, and waits until the pods on every member are those of v2.
async fn upgrade(story: &Story, pods: usize) {
    for version in ["v1", "v2"] {
        story.want(version).await;
        story.until_done(version).await;
        for member in &story.members {
            let is_there = async || member.runs(&story.name, version, pods).await.then_some(());
            story.until(&format!("the pods of {version} on {}", member.name), is_there).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_set_is_upgraded_on_every_node() {
    let story = Story::new("daemon", shared()).await;
    for version in ["v1", "v2"] {
        story.publish(version, &json!([daemon_set("daemon", version, "serve")])).await;
    }
    upgrade(&story, 1).await;
    story.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_set_whose_pods_crash_stays_on_the_canary_and_rolls_back() {
    let story = Story::new("bad-daemon", shared()).await;
    for (version, argument) in [("v1", "serve"), ("v2", "exit")] {
        story.publish(version, &json!([daemon_set("bad-daemon", version, argument)])).await;
    }
    story.want("v1").await;
    story.until_done("v1").await;
    story.want("v2").await;
    story
        .until("a crash loop", async || {
            let pods = story.members[0].pods("bad-daemon").await;
            let crashes = |pod: &Pod| pod.reasons.iter().any(|reason| reason == "CrashLoopBackOff");
            pods.iter().any(|pod| pod.version == "v2" && crashes(pod)).then_some(())
        })
        .await;
    let detail = "DaemonSet open-cluster-management-agent-addon/bad-daemon: available on 0 of 1 nodes";
    story.until("the DaemonSet to be named", async || story.explain().contains(detail).then_some(())).await;
    for member in &story.members[1..] {
        let object = member.get("apps/v1", "DaemonSet", "bad-daemon").await.expect("the DaemonSet");
        assert_eq!(object["metadata"]["generation"], 1, "{} has moved", member.name);
    }
    story.undo();
    story.until_done("v1").await;
    for member in &story.members {
        story
            .until(&format!("the pod of v1 on {}", member.name), async || {
                member.runs("bad-daemon", "v1", 1).await.then_some(())
            })
            .await;
        let object = member.get("apps/v1", "DaemonSet", "bad-daemon").await.expect("the DaemonSet");
        let generation = if member.name == MEMBERS[0] { 3 } else { 1 };
        assert_eq!(object["metadata"]["generation"], generation, "{}", member.name);
    }
    story.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_set_is_upgraded_pod_by_pod() {
    let story = Story::new("stateful", shared()).await;
    for version in ["v1", "v2"] {
        story.publish(version, &json!([stateful_set("stateful", version, "serve")])).await;
    }
    upgrade(&story, 2).await;
    story.finish().await;
}

/// Kubernetes itself waits for the broken pod, also on the way back, until somebody deletes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_set_whose_pod_is_broken_rolls_back_when_that_pod_is_deleted() {
    let story = Story::new("stuck", shared()).await;
    for (version, argument) in [("v1", "serve"), ("v2", "never-ready")] {
        story.publish(version, &json!([stateful_set("stuck", version, argument)])).await;
    }
    story.want("v1").await;
    story.until_done("v1").await;
    story.want("v2").await;
    let detail = "StatefulSet open-cluster-management-agent-addon/stuck: 1 of 2 replicas updated, 1 available; waiting for pod stuck-1";
    let says = |said: &str| story.explain().split_whitespace().collect::<Vec<_>>().join(" ").contains(said);
    story.until("the broken pod", async || says(detail).then_some(())).await;
    for member in &story.members[1..] {
        let object = member.get("apps/v1", "StatefulSet", "stuck").await.expect("the StatefulSet");
        assert_eq!(object["metadata"]["generation"], 1, "{} has moved", member.name);
    }
    story.undo();
    story
        .until("the template of v1 beside the pod of v2", async || {
            let object = story.members[0].get("apps/v1", "StatefulSet", "stuck").await?;
            let pods = story.members[0].pods("stuck").await;
            let broken = pods.iter().any(|pod| pod.version == "v2" && !pod.ready);
            (object["status"]["observedGeneration"] == 3 && broken).then_some(())
        })
        .await;
    let advice = "it does not replace pod stuck-1 of an earlier version: delete that pod if it is not ready";
    story.until("the name of the pod", async || says(advice).then_some(())).await;
    story.lane.kubectl("member1", "delete pod stuck-1 -n open-cluster-management-agent-addon --wait=false");
    story.until_done("v1").await;
    story.until_all_run("v1").await;
    story.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_each_version_runs_to_its_end_and_one_that_fails_stops_at_the_canary() {
    let story = Story::new("task", shared()).await;
    for (version, arguments) in [("v1", "finish"), ("v2", "finish"), ("v3", "exit")] {
        story.publish(version, &json!([job("task", version, &[arguments])])).await;
    }
    for version in ["v1", "v2"] {
        story.want(version).await;
        story.until_done(version).await;
        for member in &story.members {
            let job = member.get("batch/v1", "Job", &format!("task-{version}")).await.expect("the Job");
            assert_eq!(job["status"]["succeeded"], 1, "{}: {}", member.name, job["status"]);
        }
    }
    for member in &story.members {
        story
            .until("the Job of v1 to go", async || {
                member.get("batch/v1", "Job", "task-v1").await.is_none().then_some(())
            })
            .await;
    }
    story.want("v3").await;
    story
        .until("the canary to fail", async || {
            let (reason, message) = story.progress("member1").await;
            (reason == "UpgradeFailed" && message.contains("Job open-cluster-management-agent-addon/task-v3"))
                .then_some(())
        })
        .await;
    for member in &story.members[1..] {
        assert!(member.get("batch/v1", "Job", "task-v3").await.is_none(), "{} has moved", member.name);
        assert!(member.get("batch/v1", "Job", "task-v2").await.is_some(), "{} lost its Job", member.name);
    }
    story.undo();
    story.until_done("v2").await;
    let failed = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "task-v3", "namespace": INSTALLED}});
    for member in &story.members {
        story
            .until(&format!("the Job of v3 to go from {}", member.name), async || {
                is_gone(&member.client, &failed).await.then_some(())
            })
            .await;
        let job = member.get("batch/v1", "Job", "task-v2").await.expect("the Job");
        assert_eq!(job["status"]["succeeded"], 1, "{}: {}", member.name, job["status"]);
    }
    story.finish().await;
}

/// A kind in a group of this add-on's own.
fn definition(addon: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("widgets.{addon}.example.com")},
        "spec": {
            "group": format!("{addon}.example.com"), "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

fn widget(addon: &str, size: &str) -> Value {
    json!({
        "apiVersion": format!("{addon}.example.com/v1"), "kind": "Widget", "metadata": {"name": "one", "namespace": "{{INSTALL_NAMESPACE}}"},
        "spec": {"size": size},
    })
}

/// Waits until the add-on is at a version, and checks its object on every member.
async fn until_widgets_are(story: &Story, version: &str, size: &str) {
    story.until_done(version).await;
    for member in &story.members {
        let widget = member.get(&format!("{}.example.com/v1", story.name), "Widget", "one").await;
        assert_eq!(widget.expect("the object")["spec"]["size"], size, "{}", member.name);
    }
}

async fn comes_with_its_kind(story: Story) {
    for (version, size) in [("v1", "small"), ("v2", "large")] {
        story.publish(version, &json!([definition(&story.name), widget(&story.name, size)])).await;
        story.want(version).await;
        until_widgets_are(&story, version, size).await;
    }
    story.undo();
    until_widgets_are(&story, "v1", "small").await;
    story.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_and_an_object_of_it_come_in_one_template() {
    comes_with_its_kind(Story::new("widgets", shared()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_and_an_object_of_it_come_in_one_template_of_an_embedded_hub() {
    comes_with_its_kind(Story::on(embedded, "widgets-too", shared()).await).await;
}
