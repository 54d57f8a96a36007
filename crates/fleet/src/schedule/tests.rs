//! Tests the agents without a hub and with simulated times.

use aviary_engine::simulate::agents::{FailureKind, Profile};
use serde_json::{Value, json};

use super::*;
use crate::behaviour::Races;

fn schedule(profile: Profile, lies: Vec<(Lie, f64)>) -> ReportSchedule {
    let name = ClusterName::parse("c1").unwrap();
    let behaviour = Behaviour { profile, lies, races: Races::NONE, ..Behaviour::default() };
    ReportSchedule::new(behaviour, &[Member { name, labels: BTreeMap::new() }])
}

fn latency(from: u64, to: u64) -> Profile {
    Profile { latency: (Duration::from_secs(from), Duration::from_secs(to)), ..Profile::default() }
}

#[allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]
fn work(generation: i64, status: Value) -> ManifestWork {
    serde_json::from_value(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1", "uid": "u1", "generation": generation},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}]}},
        "status": status,
    }))
    .unwrap()
}

fn fresh(generation: i64) -> ManifestWork {
    work(generation, json!({}))
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Type, status, generation and time of the conditions in a report.
fn told(report: &WorkReport, now: Timestamp) -> Vec<String> {
    let patch = report.patch(now);
    let conditions = patch["status"]["conditions"].as_array().unwrap().clone();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    conditions
        .iter()
        .map(|one| {
            let (type_, status) = (text(one, "type"), text(one, "status"));
            format!("{type_}={status}@{} {}", one["observedGeneration"], text(one, "lastTransitionTime"))
        })
        .collect()
}

#[test]
fn an_agent_answers_after_its_latency_and_once() {
    let mut schedule = schedule(latency(10, 10), Vec::new());
    let start = Instant::now();
    assert!(schedule.see(&fresh(1), start));
    assert!(!schedule.see(&fresh(1), start), "the same generation again is not a change");
    assert_eq!(schedule.next_due(), Some(start + Duration::from_secs(10)));
    assert!(schedule.take_due(start + Duration::from_secs(9)).is_none());
    let at = start + Duration::from_secs(10);
    let report = schedule.take_due(at).unwrap();
    assert_eq!(
        told(&report, time(0)),
        ["Applied=True@1 1970-01-01T00:00:00Z", "Available=True@1 1970-01-01T00:00:00Z"]
    );
    schedule.written(report, time(0), at);
    assert_eq!(schedule.next_due(), None);
}

#[test]
fn latencies_are_drawn_between_the_shortest_and_the_longest() {
    let behaviour = Behaviour { profile: latency(10, 60), ..Behaviour::default() };
    let members = crate::members("c", 1000, &[], 1).unwrap();
    let mut schedule = ReportSchedule::new(behaviour, &members);
    let start = Instant::now();
    for member in &members {
        let mut work = fresh(1);
        work.metadata.namespace = Some(member.name.to_string());
        schedule.see(&work, start);
    }
    let mut waits = Vec::new();
    while let Some(at) = schedule.next_due() {
        waits.push((at - start).as_secs_f64());
        schedule.take_due(at).unwrap();
    }
    assert_eq!(waits.len(), 1000);
    assert!(waits.iter().all(|wait| (10.0..=60.0).contains(wait)));
    let mean = waits.iter().sum::<f64>() / 1000.0;
    assert!((32.0..38.0).contains(&mean), "{mean}: evenly spread");
}

#[test]
fn a_newer_generation_takes_the_place_of_one_that_waits() {
    let mut schedule = schedule(latency(10, 10), Vec::new());
    let start = Instant::now();
    schedule.see(&fresh(1), start);
    let later = start + Duration::from_secs(5);
    assert!(schedule.see(&fresh(2), later));
    assert!(schedule.take_due(start + Duration::from_secs(10)).is_none());
    let report = schedule.take_due(later + Duration::from_secs(10)).unwrap();
    assert_eq!(report.generation, 2);
}

#[test]
fn an_older_report_that_is_under_way_is_never_overtaken() {
    let mut schedule = schedule(latency(0, 0), Vec::new());
    let now = Instant::now();
    schedule.see(&fresh(1), now);
    let first = schedule.take_due(now).unwrap();
    schedule.see(&fresh(2), now);
    assert!(schedule.take_due(now).is_none(), "the first is being written");
    schedule.written(first, time(0), now);
    let second = schedule.take_due(now).unwrap();
    assert_eq!(second.generation, 2);
    schedule.written(second, time(0), now);
    assert_eq!(schedule.next_due(), None);
}

#[test]
fn a_report_that_failed_is_made_again_and_void_ones_are_not() {
    let mut schedule = schedule(latency(0, 0), Vec::new());
    let now = Instant::now();
    schedule.see(&fresh(1), now);
    let report = schedule.take_due(now).unwrap();
    schedule.failed(report, now);
    assert!(schedule.take_due(now).is_none(), "not at once");
    let report = schedule.take_due(now + PAUSE).unwrap();
    schedule.see(&fresh(2), now);
    schedule.failed(report, now);
    let next = schedule.take_due(now + PAUSE).unwrap();
    assert_eq!(next.generation, 2, "nobody asks for the first one any more");
    schedule.lose(&fresh(2));
    schedule.failed(next, now);
    assert_eq!(schedule.next_due(), None);
}

#[test]
fn times_of_conditions_change_with_their_status_only() {
    let mut schedule = schedule(latency(0, 0), Vec::new());
    let now = Instant::now();
    let said = |type_: &str, status: &str| json!({"type": type_, "status": status, "observedGeneration": 1, "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let status = json!({"conditions": [said("Applied", "True"), said("Available", "False")]});
    schedule.see(&work(2, status), now);
    let report = schedule.take_due(now).unwrap();
    assert_eq!(
        told(&report, time(0)),
        ["Applied=True@2 2020-01-01T00:00:00Z", "Available=True@2 1970-01-01T00:00:00Z"]
    );
}

#[test]
fn a_work_that_cannot_be_applied_says_nothing_new_of_what_is_there() {
    let refusing = Profile { fail: 1.0, failure: FailureKind::Refuses, ..latency(0, 0) };
    let mut schedule = schedule(refusing, Vec::new());
    let now = Instant::now();
    let said = |type_: &str| json!({"type": type_, "status": "True", "observedGeneration": 1, "lastTransitionTime": "2020-01-01T00:00:00Z"});
    schedule.see(&work(2, json!({"conditions": [said("Applied"), said("Available")]})), now);
    let report = schedule.take_due(now).unwrap();
    assert_eq!(
        told(&report, time(0)),
        ["Applied=False@2 1970-01-01T00:00:00Z", "Available=True@1 2020-01-01T00:00:00Z"]
    );
}

/// All reports on one work: the conditions of each, and what it says about the objects.
fn reports(profile: Profile, work: &ManifestWork) -> Vec<(Vec<String>, String)> {
    let mut schedule = schedule(profile, Vec::new());
    let mut now = Instant::now();
    schedule.see(work, now);
    let mut story = Vec::new();
    while let Some(at) = schedule.next_due() {
        now = at;
        let report = schedule.take_due(now).unwrap();
        let manifests = &report.patch(time(0))["status"]["resourceStatus"]["manifests"];
        story.push((told(&report, time(0)), manifests[0]["statusFeedback"].to_string()));
        schedule.written(report, time(0), now);
    }
    story
}

/// A work whose Deployment is asked for its counts.
fn counted() -> ManifestWork {
    let mut work = json!(probed(1, "v1", json!({})));
    work["spec"]["manifestConfigs"][0]["feedbackRules"] = json!([{"type": "WellKnownStatus"}]);
    serde_json::from_value(work).unwrap()
}

const WELL: [&str; 2] = ["Applied=True@1 1970-01-01T00:00:00Z", "Available=True@1 1970-01-01T00:00:00Z"];

/// Every way to fail but these shows in probed objects only.
#[test]
fn what_is_not_probed_is_available_whatever_its_pods_do() {
    use FailureKind::{Crashes, Exits, Flaps, NeverReady};
    for failure in [NeverReady, Exits, Crashes, Flaps] {
        let told = reports(Profile { fail: 1.0, failure, ..latency(10, 10) }, &fresh(1));
        assert!(told.len() > 1, "{failure:?}: {told:?}");
        assert!(told.iter().all(|said| *said == (WELL.map(str::to_owned).to_vec(), "{}".into())), "{told:?}");
    }
    let told = reports(Profile { fail: 1.0, failure: FailureKind::Refuses, ..latency(10, 10) }, &fresh(1));
    assert_eq!(told, [(vec!["Applied=False@1 1970-01-01T00:00:00Z".to_owned()], "{}".to_owned())]);
}

#[test]
fn a_flapping_cluster_goes_down_once_and_recovers() {
    let told = reports(Profile { flap: 1.0, ..latency(10, 10) }, &counted());
    assert!(told.iter().all(|(conditions, _)| conditions == &WELL), "{told:?}");
    let [first, down, again] = &told[..] else { panic!("{told:?}") };
    assert!(first == again && first != down, "{told:?}");
}

#[test]
fn a_version_that_flaps_ends_down() {
    let flaps = Profile { fail: 1.0, failure: FailureKind::Flaps, ..latency(10, 10) };
    let told = reports(flaps, &counted());
    let (up, down) = (&told[0], &told[1]);
    assert_ne!(up, down);
    assert!(told.chunks(2).all(|turn| turn == [up.clone(), down.clone()]), "{told:?}");
    assert_eq!(told.len(), 42, "ready once, and twenty times more");
}

#[test]
fn lies_are_told_as_asked() {
    let now = Instant::now();
    let said = |lie: Lie| {
        let mut schedule = schedule(latency(0, 0), vec![(lie, 1.0)]);
        schedule.see(&fresh(2), now);
        schedule.take_due(now).map(|report| told(&report, time(0)))
    };
    let both = |generation: &str| {
        let of = |type_: &str| format!("{type_}=True@{generation} 1970-01-01T00:00:00Z");
        Some(vec![of("Applied"), of("Available")])
    };
    assert_eq!(said(Lie::OldGeneration), both("1"));
    assert_eq!(said(Lie::FutureGeneration), both("1000000000000000000"));
    assert_eq!(said(Lie::OnlyAvailable), Some(vec!["Available=True@2 1970-01-01T00:00:00Z".to_owned()]));
    assert_eq!(said(Lie::Silence), None);
}

/// A work with a probed Deployment of this revision, as far as an agent has reported on it.
#[allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]
fn probed(generation: i64, revision: &str, status: Value) -> ManifestWork {
    let mut work = work(generation, status);
    let path = |name: &str, path: &str| json!({"name": name, "path": path});
    let spec = json!({
        "workload": {"manifests": [{"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "agent", "namespace": "there", "annotations": {"revision": revision}},
            "spec": {"replicas": 3}}]},
        "manifestConfigs": [{
            "resourceIdentifier":
                {"group": "apps", "resource": "deployments", "name": "agent", "namespace": "there"},
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [
                path("revision", ".metadata.annotations.revision"), path("generation", ".metadata.generation"),
                path("observed", ".status.observedGeneration"), path("updated", ".status.updatedReplicas"),
            ]}],
        }],
    });
    work.spec = serde_json::from_value(spec).unwrap();
    work
}

/// The generations of the conditions of a status, and the reported values.
fn summary(status: &Value) -> String {
    let conditions = status["conditions"].as_array().unwrap().iter();
    let conditions = conditions.map(|one| format!("{}@{}", one["type"], one["observedGeneration"]));
    let values = status["resourceStatus"]["manifests"][0]["statusFeedback"]["values"].as_array().unwrap();
    let values = values.iter().map(|value| {
        let value = &value["fieldValue"];
        if value["string"].is_null() { value["integer"].to_string() } else { value["string"].to_string() }
    });
    conditions.chain(values).collect::<Vec<String>>().join(" ").replace('"', "")
}

/// Every status that the hub gets to see after a change from v1 to v2, and when.
fn statuses_of_a_change(profile: Profile, races: Races) -> Vec<(u64, String)> {
    let name = ClusterName::parse("c1").unwrap();
    let behaviour = Behaviour { profile, races, ..Behaviour::default() };
    let mut schedule = ReportSchedule::new(behaviour, &[Member { name, labels: BTreeMap::new() }]);
    let start = Instant::now();
    let mut now = start;
    let mut status = json!({});
    let mut seen = Vec::new();
    for (generation, revision) in [(1, "v1"), (2, "v2")] {
        let changed = now;
        schedule.see(&probed(generation, revision, status.clone()), now);
        seen.clear();
        // The rest is what becomes of the workload later.
        while let Some(at) = schedule.next_due().filter(|at| *at <= changed + Duration::from_secs(16)) {
            now = at;
            let report = schedule.take_due(now).unwrap();
            let patch = report.patch(time(0));
            for (key, value) in patch["status"].as_object().unwrap() {
                status[key] = value.clone();
            }
            seen.push(((now - changed).as_secs(), summary(&status)));
            schedule.written(report, time(0), now);
        }
    }
    seen
}

#[test]
fn a_change_is_first_reported_with_the_values_of_the_older_objects() {
    let all = Races { stale: 1.0, stale_applied: 1.0, unobserved: 1.0 };
    let told = |after: u64, text: &str| (after, text.to_owned());
    assert_eq!(
        statuses_of_a_change(latency(16, 16), all),
        [
            told(8, "Applied@1 Available@2 v1 2 2 3"),
            told(12, "Applied@2 Available@2 v1 2 2 3"),
            told(14, "Applied@2 Available@2 v2 2 1 3"),
            told(16, "Applied@2 Available@2 v2 2 2 3"),
        ]
    );
    let bad = Profile { fail: 1.0, ..latency(16, 16) };
    assert_eq!(statuses_of_a_change(bad, all).pop(), Some(told(16, "Applied@2 Available@2 v2 2 2 1")));
    assert_eq!(
        statuses_of_a_change(latency(16, 16), Races::NONE),
        [told(16, "Applied@2 Available@2 v2 2 2 3")]
    );
}

#[test]
fn a_work_that_is_refused_is_not_reported_as_applied_before() {
    let all = Races { stale: 1.0, stale_applied: 1.0, unobserved: 1.0 };
    let refusing = Profile { fail: 1.0, failure: FailureKind::Refuses, ..latency(16, 16) };
    let mut schedule = schedule(refusing, Vec::new());
    schedule.behaviour.races = all;
    let said = |type_: &str| json!({"type": type_, "status": "True", "observedGeneration": 1, "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let mut now = Instant::now();
    schedule.see(&probed(2, "v2", json!({"conditions": [said("Applied"), said("Available")]})), now);
    let mut seen = Vec::new();
    while let Some(at) = schedule.next_due() {
        now = at;
        let report = schedule.take_due(now).unwrap();
        seen.push((report.is_refusal(), told(&report, time(0)).remove(0)));
        schedule.written(report, time(0), now);
    }
    let applied = |text: &str| format!("Applied={text}:00:00Z");
    assert_eq!(seen, [(false, applied("True@1 2020-01-01T00")), (true, applied("False@2 1970-01-01T00"))]);
}

#[test]
fn an_agent_that_was_restarted_between_two_reports_makes_the_last_one() {
    let all = Races { stale: 1.0, stale_applied: 1.0, unobserved: 1.0 };
    let said = |type_: &str| json!({"type": type_, "status": "True", "observedGeneration": 1, "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let mut agent = schedule(latency(0, 0), Vec::new());
    agent.behaviour.races = all;
    let now = Instant::now();
    let mut work = probed(2, "v2", json!({"conditions": [said("Applied"), said("Available")]}));
    agent.see(&work, now);
    let mut has_more_to_say = Vec::new();
    while let Some(report) = agent.take_due(now) {
        work.status = serde_json::from_value(report.patch(time(0))["status"].clone()).unwrap();
        has_more_to_say.push(schedule(latency(0, 0), Vec::new()).see(&work, now));
        agent.written(report, time(0), now);
    }
    assert_eq!(has_more_to_say, [true, true, true, false]);
}

#[test]
fn an_agent_that_was_restarted_does_not_repeat_itself() {
    let mut schedule = schedule(latency(0, 0), Vec::new());
    let now = Instant::now();
    let said = |available: &str| {
        let of = |type_: &str, status: &str| json!({"type": type_, "status": status, "observedGeneration": 1, "lastTransitionTime": "2020-01-01T00:00:00Z"});
        work(1, json!({"conditions": [of("Applied", "True"), of("Available", available)]}))
    };
    assert!(!schedule.see(&said("True"), now));
    assert_eq!(schedule.next_due(), None);
    schedule.lose(&fresh(1));
    assert!(schedule.see(&said("False"), now), "it was down when it stopped, and recovers");
    assert!(schedule.take_due(now).is_some());
}

#[test]
fn works_that_a_new_listing_does_not_have_are_forgotten() {
    let mut schedule = schedule(latency(10, 10), Vec::new());
    let now = Instant::now();
    schedule.begin_listing();
    schedule.see(&fresh(1), now);
    schedule.end_listing();
    schedule.begin_listing();
    schedule.end_listing();
    assert_eq!((schedule.next_due(), schedule.works.len()), (None, 0));
}

#[test]
fn clusters_of_others_have_no_agent_here() {
    let mut schedule = schedule(latency(0, 0), Vec::new());
    let mut foreign = fresh(1);
    foreign.metadata.namespace = Some("real".into());
    assert!(!schedule.see(&foreign, Instant::now()));
    schedule.leave(&ClusterName::parse("c1").unwrap());
    assert!(!schedule.see(&fresh(1), Instant::now()), "a cluster that left has none either");
}

#[test]
fn what_many_works_have_in_common_is_kept_once() {
    let behaviour = Behaviour { profile: latency(10, 10), ..Behaviour::default() };
    let members = crate::members("c", 100, &[], 1).unwrap();
    let mut schedule = ReportSchedule::new(behaviour, &members);
    for member in &members {
        let mut work = fresh(1);
        work.metadata.namespace = Some(member.name.to_string());
        schedule.see(&work, Instant::now());
    }
    let outlines: HashSet<*const WorkOutline> = schedule
        .works
        .values()
        .map(|known| std::ptr::from_ref(&*known.waiting.as_ref().unwrap().outline))
        .collect();
    assert_eq!((schedule.works.len(), outlines.len(), schedule.names.len()), (100, 1, 1));
}
