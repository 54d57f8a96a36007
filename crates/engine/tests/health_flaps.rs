//! Health that comes and goes: what is written then, and what it does to a soak
//! (docs/rollout-semantics.md, rules 8.15 and 8.16).

#![allow(clippy::expect_used, reason = "a broken story must fail the test")]

use crate::story::{Story, cluster};
use aviary_engine::explain::Decision;
use aviary_engine::fleet::Fleet;
use aviary_engine::health::Health;
use aviary_engine::plan::{Write, plan};
use expect_test::expect;

/// The health of `p1` flips every ten seconds for ten minutes; how often is its status written?
fn writes_while_flapping(rollout: &str) -> usize {
    let mut story = Story::new();
    story.run(&format!(
        "template v1\n place prod: p1 p2\n rollout prod version=v1 {rollout}\n settle\n wait 1h\n settle"
    ));
    let mut written = 0;
    for round in 0..60 {
        story.run(if round % 2 == 0 { "unready p1" } else { "ack p1" });
        for _ in 0..3 {
            let writes = plan(&story.world.observed, story.now).writes();
            written += writes.filter(|write| matches!(write, Write::Instance(_))).count();
            story.run("pass");
        }
        story.run("wait 10s");
    }
    story.run("ack p1\n wait 2m\n settle");
    let available = story.world.observed.instances.get(&cluster("p1")).expect("an instance");
    assert!(available.status.condition("Available").expect("Available").is_true(), "the last word counts");
    written
}

#[test]
fn rule_15_an_instance_that_flaps_is_written_at_most_once_a_minute() {
    let written = writes_while_flapping("RollingUpdate 1");
    assert!((1..=10).contains(&written), "{written} writes in ten minutes");
}

/// Every ten seconds for ten minutes the agent of `p1` answers in the next of these ways. How often
/// is its status written?
fn writes_while(story: &mut Story, answers: [&str; 2]) -> usize {
    let mut written = 0;
    for round in 0..60 {
        story.run(&format!("{} p1", answers[round % 2]));
        for _ in 0..3 {
            let writes = plan(&story.world.observed, story.now).writes();
            written += writes.filter(|write| matches!(write, Write::Instance(_))).count();
            story.run("pass");
        }
        let decision = &plan(&story.world.observed, story.now).report.clusters[0].decision;
        assert!(matches!(decision, Decision::InFlight(_)), "{decision}");
        story.run("wait 10s");
    }
    written
}

#[test]
fn rule_15_a_cluster_that_flaps_within_its_soak_never_settles_and_is_written_at_most_twice_a_minute() {
    let mut story = Story::new();
    story.run(
        "template v1 v2\n place prod: p1 p2\n rollout prod version=v1 RollingUpdate 1\n settle
        rollout prod version=v2 RollingUpdate 1 minSuccessTime=5m\n settle\n wait 4m",
    );
    let written = writes_while(&mut story, ["unready", "ack"]);
    assert!((1..=21).contains(&written), "{written} writes in ten minutes");
    story.run(
        "settle\n wait 1m\n settle\n wait 5m\n settle
        note five minutes after its recovery was written, a crash may not be reported yet\n show clusters
        wait 20s\n settle\n show clusters",
    );
    expect![[r#"
        -- five minutes after its recovery was written, a crash may not be reported yet
        p1               in flight v2       healthy, soaking until 2026-01-01T00:20:20Z
        p2               hold      v1       budget full: 1 of 1 in flight
        p2               in flight v2       healthy, soaking until 2026-01-01T00:25:40Z
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_15_bad_health_that_changes_its_kind_is_written_at_most_once_a_minute() {
    let mut story = Story::new();
    story.run(
        "template v1 v2\n place prod: p1 p2\n rollout prod version=v1 RollingUpdate 1\n settle
        bad v2 unready\n rollout prod version=v2 RollingUpdate 1\n settle\n wait 1m\n settle\n wait 1m",
    );
    let written = writes_while(&mut story, ["unreported", "unready"]);
    assert!((1..=10).contains(&written), "{written} writes in ten minutes");
    story.run("unreported p1\n settle\n wait 10s\n unready p1\n settle");
    let due = plan(&story.world.observed, story.now).recheck_at.expect("the last word is due");
    assert!(due <= story.now + jiff::SignedDuration::from_mins(1), "{due}");
    story.run("wait 1m\n settle\n show p1");
    expect![[r#"
        p1  addonhubconfigs desired v2@cdf58b3d applied v1@b433cd0d
        p1  version desired v2 current unknown last v1
        p1  Progressing True Upgrading: Upgrading addon to version v2.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available False WorkloadUnhealthy: Deployment open-cluster-management-agent-addon/agent: 1 of 3 replicas updated, 3 available
    "#]].assert_eq(&story.told);
}

/// Every ten seconds for ten minutes the agent of `p1` reports the next of these as the worst of
/// its health. How often is its status written?
fn writes_while_it_is(story: &mut Story, healths: &[Health; 2]) -> usize {
    let mut written = 0;
    for round in 0..60 {
        for work in story.world.observed.works.get_mut(&cluster("p1")).expect("works").iter_mut() {
            work.health = healths[round % 2].clone();
        }
        for _ in 0..3 {
            let writes = plan(&story.world.observed, story.now).writes();
            written += writes.filter(|write| matches!(write, Write::Instance(_))).count();
            story.run("pass");
        }
        story.run("wait 10s");
    }
    written
}

#[test]
fn rule_15_two_objects_that_are_the_worst_by_turns_are_written_at_most_once_a_minute() {
    let progressing = |object: &str| Health::Progressing {
        why: format!("Deployment a/{object}: 1 of 3 replicas updated, 3 available").into(),
        tolerable: false,
    };
    let failed = |object: &str| Health::Failed {
        why: format!("Job a/{object}: it has failed").into(),
        tolerable: false,
    };
    let tried = [
        [progressing("a"), progressing("b")],
        [progressing("agent-1"), progressing("agent-2")],
        [failed("a"), failed("b")],
    ];
    for healths in tried {
        for rollout in ["version=v1", "version=v2 maxFailures=0"] {
            let mut story = Story::new();
            story.run(&format!(
                "template v1 v2\n place prod: p1 p2\n rollout prod version=v1 RollingUpdate 1\n settle\n wait 1h
                bad v2 unready\n rollout prod RollingUpdate 1 {rollout}\n settle\n wait 2m\n settle\n wait 2m"
            ));
            let written = writes_while_it_is(&mut story, &healths);
            assert!((1..=11).contains(&written), "{rollout} {healths:?}: {written} writes in ten minutes");
            let due = plan(&story.world.observed, story.now).recheck_at;
            story.run("wait 1m\n settle");
            let status =
                story.world.observed.instances.get(&cluster("p1")).expect("an instance").status.clone();
            let said = &status.condition("Available").expect("Available").message;
            assert_eq!(
                **said,
                **healths[1].why().expect("ill"),
                "the last word counts, {rollout}, due {due:?}"
            );
        }
    }
}

/// A held write is made up for by itself: the plan says when to look again.
#[test]
fn rule_15_what_is_held_back_is_written_when_the_minute_is_over() {
    let mut story = Story::new();
    story.run(
        "template v1\n place prod: p1\n rollout prod version=v1\n settle\n wait 1h
        unready p1\n settle\n wait 10s\n ack p1",
    );
    let planned = plan(&story.world.observed, story.now);
    assert_eq!(planned.recheck_at, Some("2026-01-01T01:01:00Z".parse().expect("a time")));
    let instances = planned.writes().filter(|write| matches!(write, Write::Instance(_)));
    assert_eq!(instances.count(), 0, "it was written ten seconds ago");
    story.run("wait 50s\n settle");
    let instance = story.world.observed.instances.get(&cluster("p1")).expect("an instance");
    assert!(instance.status.condition("Available").expect("Available").is_true());
}

/// The agent reports that the workloads of `name` are available since then.
fn available_since(story: &mut Story, name: &str, since: &str) {
    for work in story.world.observed.works.get_mut(&cluster(name)).expect("works").iter_mut() {
        work.available_since = Some(since.parse().expect("a time"));
    }
}

#[test]
fn rule_16_a_crash_between_two_reports_restarts_the_soak() {
    let mut story = Story::new();
    story.run(
        "template v1
        place prod: p1 p2
        rollout prod version=v1 RollingUpdate 1 minSuccessTime=10m
        pass 3
        ack p1 p2",
    );
    available_since(&mut story, "p1", "2025-12-31T23:00:00Z");
    available_since(&mut story, "p2", "2025-12-31T23:00:00Z");
    story
        .run("settle\n wait 9m\n settle\n note healthy in every report, and down in between\n show clusters");
    available_since(&mut story, "p1", "2025-12-31T23:08:00Z");
    story.run("settle\n show clusters\n wait 2m\n settle\n show clusters\n wait 9m\n settle\n show clusters");
    // Afterwards it is no soak any more.
    available_since(&mut story, "p1", "2026-01-01T02:00:00Z");
    story.run("wait 5h\n settle\n note later\n show clusters\n show p1");
    expect![[r#"
        -- healthy in every report, and down in between
        p1..p2 (2)       in flight v1       healthy, soaking until 2026-01-01T00:10:20Z
        p1               in flight v1       healthy, soaking until 2026-01-01T00:19:20Z
        p2               in flight v1       healthy, soaking until 2026-01-01T00:10:20Z
        p1               in flight v1       healthy, soaking until 2026-01-01T00:19:20Z
        -- later
        p1  addonhubconfigs desired v1@b433cd0d applied v1@b433cd0d
        p1  version desired v1 current v1 last -
        p1  Progressing False Succeed: install completed with no errors.
        p1  Configured True ConfigurationsConfigured: all configurations are resolved
        p1  Available True WorksAvailable: all works are available
    "#]]
    .assert_eq(&story.told);
}

/// The crash was within the soak, and its report is late.
#[test]
fn rule_16_a_crash_within_the_soak_that_is_reported_after_it_counts() {
    let mut story = Story::new();
    story.run("template v1\n place prod: p1\n rollout prod version=v1 minSuccessTime=10m\n pass 3\n ack p1");
    available_since(&mut story, "p1", "2025-12-31T23:00:00Z");
    story.run("settle");
    available_since(&mut story, "p1", "2026-01-01T00:09:00Z");
    story.run("wait 10m20s\n settle\n show clusters\n wait 11m\n settle\n note settled\n show clusters");
    expect![[r#"
        p1               in flight v1       healthy, soaking until 2026-01-01T00:20:40Z
        -- settled
    "#]]
    .assert_eq(&story.told);
}

/// Any agent may label its works for another cluster: such a work does not restart a soak there.
#[test]
fn rule_16_a_work_that_another_cluster_hosts_restarts_no_soak() {
    let mut story = Story::new();
    story.run("template v1\n place prod: p1\n rollout prod version=v1 minSuccessTime=10m\n pass 3\n ack p1");
    available_since(&mut story, "p1", "2025-12-31T23:00:00Z");
    story.run("settle\n wait 9m");
    let mut works = story.world.observed.works.get_mut(&cluster("p1")).expect("works");
    let mut foreign = works[0].clone();
    foreign.available_since = Some("2026-01-01T00:09:00Z".parse().expect("a time"));
    foreign.hosted_on = Some("h1".into());
    works.push(foreign);
    drop(works);
    story.run("wait 2m\n settle\n show clusters");
    assert_eq!(story.told, "", "it has soaked");
}

/// Only clusters in a soak are told apart by when their workloads became available.
#[test]
fn rule_16_costs_no_cohorts_without_a_soak_or_after_it() {
    for rollout in ["version=v1", "version=v1 minSuccessTime=1m"] {
        let mut story = Story::new();
        story.run(&format!(
            "template v1\n place prod: p01..p20\n rollout prod {rollout}\n settle\n wait 2m\n settle"
        ));
        let observed = &mut story.world.observed;
        let status = observed.instances.get(&cluster("p01")).expect("an instance").status.clone();
        let state = observed.works.get(&cluster("p01")).expect("works")[0].state.clone();
        for number in 1..=20 {
            let name = cluster(&format!("p{number:02}"));
            observed.instances.get_mut(&name).expect("an instance").status = status.clone();
            let mut works = observed.works.get_mut(&name).expect("works");
            works[0].state = state.clone();
            works[0].available_since =
                Some(format!("2025-12-31T23:00:{number:02}Z").parse().expect("a time"));
            let mut cluster = observed.clusters.get_mut(&name).expect("a cluster");
            cluster.reachable_since = Some(format!("2026-01-01T00:05:{number:02}Z").parse().expect("a time"));
        }
        let hashes = observed.works.get(&cluster("p01")).expect("works")[0].hashes.clone();
        for number in 1..=20 {
            let mut works = observed.works.get_mut(&cluster(&format!("p{number:02}"))).expect("works");
            works[0].hashes.clone_from(&hashes);
        }
        assert_eq!(Fleet::line_up(observed).cohorts.len(), 1, "{rollout}");
    }
}
