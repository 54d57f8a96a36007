//! Bad versions: whatever is wrong with the pods of the canary, no other cluster moves, the report
//! names the Deployment, and a rollback gets the canary back.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::embedded::embedded;
use crate::lane::{POLL_OF_OCM, alone, shared};
use crate::member::Pod;
use crate::story::{Story, condition};
use crate::workloads::deployment;

/// Installs v1 and asks for a v2 that is bad.
async fn ask_for(name: &str, bad: Value) -> Story {
    let story = installed_before(bad, Story::new(name, shared()).await).await;
    story.want("v2").await;
    story
}

/// Installs v1, and publishes a v2 that is bad.
async fn installed_before(bad: Value, story: Story) -> Story {
    let good = deployment(&story.name, "v1", &["serve"]);
    story.publish("v1", &json!([good])).await;
    story.publish("v2", &json!([bad])).await;
    story.want("v1").await;
    story.until_done("v1").await;
    story.until_all_run("v1").await;
    story
}

/// Waits until the canary is reported as failed, with the Deployment's name.
async fn until_failed(story: &Story) {
    let label = format!("Deployment open-cluster-management-agent-addon/{}", story.name);
    story
        .until("the canary to fail", async || {
            let (reason, message) = story.progress("member1").await;
            (reason == "UpgradeFailed" && message.contains(&label)).then_some(())
        })
        .await;
    assert!(story.explain().contains(&label), "{}", story.explain());
}

/// Waits until a pod of the bad version on the canary has got this far.
async fn until_pod(story: &Story, what: &str, is: impl Fn(&Pod) -> bool) {
    story
        .until(what, async || {
            let pods = story.members[0].pods(&story.name).await;
            pods.iter().any(|pod| pod.version != "v1" && is(pod)).then_some(())
        })
        .await;
}

/// Agents report that the objects exist, whatever becomes of the pods. With an agent that reports
/// more, the stories would prove less.
async fn assert_the_agent_sees_no_pods(story: &Story) {
    let work = story.work("member1").await.expect("the work");
    let available = condition(&work, "Available");
    assert_eq!(available["status"], "True", "{available}");
    assert_eq!(available["observedGeneration"], work["metadata"]["generation"], "{available}");
}

/// Checks that only the canary has moved, and rolls it back.
async fn roll_back(story: &Story) {
    assert_the_agent_sees_no_pods(story).await;
    story.assert_fleet_is_untouched("v1").await;
    assert_eq!(story.versions("member1").await.0, "v2");
    let addon = story.addon().await.expect("the add-on");
    let fleet = &addon["status"]["installProgression"][0];
    assert_eq!(fleet["name"], "fleet", "{fleet}");
    let told = fleet["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(told.starts_with("waitingForCanary..."), "{told}");
    story.undo();
    story.until_done("v1").await;
    story.until_all_run("v1").await;
    story.assert_fleet_is_untouched("v1").await;
    story.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_never_gets_ready_stays_on_the_canary() {
    let story = ask_for("never-ready", deployment("never-ready", "v2", &["never-ready"])).await;
    until_pod(&story, "a pod that runs and is not ready", |pod| !pod.ready && pod.restarts == 0).await;
    until_failed(&story).await;
    roll_back(&story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_exits_at_start_stays_on_the_canary() {
    let story = ask_for("exits", deployment("exits", "v2", &["exit"])).await;
    until_pod(&story, "a crash loop", |pod| pod.reasons.iter().any(|one| one == "CrashLoopBackOff")).await;
    until_failed(&story).await;
    roll_back(&story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_exits_at_start_stays_on_the_canary_of_an_embedded_hub() {
    let story = Story::on(embedded, "exits-too", shared()).await;
    let story = installed_before(deployment("exits-too", "v2", &["exit"]), story).await;
    story.want("v2").await;
    until_pod(&story, "a crash loop", |pod| pod.reasons.iter().any(|one| one == "CrashLoopBackOff")).await;
    until_failed(&story).await;
    roll_back(&story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_whose_image_cannot_be_pulled_stays_on_the_canary() {
    let mut bad = deployment("no-image", "v2", &["serve"]);
    let container = &mut bad["spec"]["template"]["spec"]["containers"][0];
    container["image"] = "aviary.test/missing:v2".into();
    container["imagePullPolicy"] = "IfNotPresent".into();
    let story = ask_for("no-image", bad).await;
    until_pod(&story, "a failed pull", |pod| pod.reasons.iter().any(|one| one.contains("ImagePull"))).await;
    until_failed(&story).await;
    roll_back(&story).await;
}

const SOAK: &str = "20s";

/// A version whose pods get ready and break later. All of them start at once, so that they are
/// ready together, for long enough to be reported.
fn breaks_later(name: &str, arguments: &[&str]) -> Value {
    let mut bad = deployment(name, "v2", arguments);
    bad["spec"]["strategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}});
    bad
}

/// Until when the canary soaks, from the moment at which the hub sees it healthy.
async fn until_soaking(story: &Story) -> Timestamp {
    story
        .until("the canary to soak", async || {
            let told = story.explain();
            let (_, rest) = told.split_once("healthy, soaking until ")?;
            let until = rest.split_whitespace().next()?.trim_end_matches(|end: char| end != 'Z');
            Some(until.parse().unwrap_or_else(|error| panic!("{until}: {error}")))
        })
        .await
}

/// Waits until the canary was healthy for the hub, and then crashed until the soak should have
/// ended. Three restarts take longer, with the kubelet's back-off of 10 and 20 seconds.
async fn until_it_has_crashed_for_longer_than_the_soak(story: &Story, reason: &str) {
    let soaked = until_soaking(story).await;
    until_pod(story, "three crashes", |pod| pod.restarts >= 3 && pod.reasons.iter().any(|one| one == reason))
        .await;
    story.until("the end of the soak", async || (Timestamp::now() > soaked).then_some(())).await;
    let label = format!("Deployment open-cluster-management-agent-addon/{}", story.name);
    // Between two crashes its pods are ready for a moment.
    story.until("the Deployment to be named", async || story.explain().contains(&label).then_some(())).await;
}

/// Tells the story of a version that breaks in its soak, for this reason of its containers.
async fn breaks_in_its_soak(story: Story, arguments: &[&str], reason: &str) {
    let bad = breaks_later(&story.name, arguments);
    let story = installed_before(bad, story.soaking(SOAK)).await;
    story.want("v2").await;
    until_it_has_crashed_for_longer_than_the_soak(&story, reason).await;
    roll_back(&story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_crashes_in_its_soak_stays_on_the_canary() {
    let story = Story::new("crashes", shared()).await;
    breaks_in_its_soak(story, &["crash-after", "12s"], "Error").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_crashes_in_its_soak_stays_on_the_canary_of_an_embedded_hub() {
    let story = Story::on(embedded, "crashes-too", shared()).await;
    breaks_in_its_soak(story, &["crash-after", "12s"], "Error").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_killed_for_its_memory_stays_on_the_canary() {
    let story = Story::new("leaks", shared()).await;
    breaks_in_its_soak(story, &["leak-after", "12s"], "OOMKilled").await;
}

/// Between two reports of OCM's agent a pod can get ready and crash. The soak is longer by the lag
/// of the reports, so it sees one of the crashes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_in_the_soak_is_seen_at_the_pace_of_ocms_agent_too() {
    // Longer than the pods take to start and the agent to report on them.
    let bad = breaks_later("rarely-seen", &["crash-after", "20s"]);
    let story = Story::new("rarely-seen", alone()).await.soaking(SOAK);
    let story = installed_before(bad, story).await;
    story.lane.kill_agent("member1");
    story.lane.start_agent_polling("member1", POLL_OF_OCM);
    story.want("v2").await;
    until_it_has_crashed_for_longer_than_the_soak(&story, "Error").await;
    roll_back(&story).await;
    story.lane.kill_agent("member1");
    story.lane.start_agent("member1");
}
