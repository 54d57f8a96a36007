//! Healthy before next (docs/rollout-semantics.md, chapter 8), for the works themselves: works of
//! the first version, Jobs, and works that are split or that objects move between.

#![allow(clippy::expect_used, reason = "a broken story must fail the test")]

use std::collections::HashSet;

use crate::story::first_version::first_version;
use crate::story::rendering::{ready, works};
use crate::story::{Story, cluster};
use aviary_api::names::conditions::REVISION_HEALTHY;
use aviary_engine::explain::Decision;
use aviary_engine::hash;
use aviary_engine::health::{Health, ObjectMark};
use aviary_engine::invariants::{self, Deed};
use aviary_engine::normalise;
use aviary_engine::observed::{InstanceStatus, Seen, StatusFields, Work};
use aviary_engine::plan::{Write, plan};
use expect_test::expect;
use jiff::SignedDuration;
use serde_json::{Value, json};

/// A work as the first version rendered it: no digests on its objects, no probes.
fn of_the_first_version(mut object: Value) -> Value {
    let manifests = object["spec"]["workload"]["manifests"].as_array_mut().expect("manifests");
    for manifest in manifests {
        manifest["metadata"].as_object_mut().expect("metadata").remove("annotations");
    }
    let digest = hash::digest(&object["spec"]["workload"]["manifests"]);
    object["spec"].as_object_mut().expect("a spec").remove("manifestConfigs");
    let annotations = object["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.remove("addon.open-cluster-management.io/probes-digest").expect("probes");
    annotations.insert("addon.open-cluster-management.io/rendered-digest".to_owned(), json!(digest.as_str()));
    object["metadata"]["generation"] = json!(1);
    object["metadata"]["uid"] = json!("work-uid");
    let said = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": 1});
    object["status"] = json!({"conditions": [said("Applied"), said("Available")]});
    object
}

/// Replaces all works by those that the first version rendered. Returns how many there are.
fn take_back_to_the_first_version(story: &mut Story) -> usize {
    let mut without = story.world.observed.clone();
    for name in story.world.observed.instances.keys() {
        without.works.get_mut(name).expect("works").clear();
    }
    let rendered = works(&without, story);
    let count = rendered.len();
    for object in rendered {
        let name = cluster(object["metadata"]["namespace"].as_str().expect("a namespace"));
        let work = serde_json::from_value(of_the_first_version(object)).expect("a ManifestWork");
        let (_, work) = normalise::work(&work).expect("a work of the add-on");
        assert_eq!(work.health, Health::NotProbed);
        *story.world.observed.works.get_mut(&name).expect("works") = vec![work];
    }
    count
}

#[test]
fn rule_7_works_of_the_first_version_are_accepted_until_their_revision_changes() {
    let fleets = first_version("settled");
    assert_eq!(fleets.len(), 6);
    for (strategy, mut story) in fleets {
        let of_first = |work: &Work| work.health == Health::NotProbed && !work.probed;
        assert_eq!(count(&story, of_first), 500, "{strategy}");
        assert_eq!(written(&mut story), 0, "{strategy}");
        for later in ["0s", "1h"] {
            story.run(&format!("wait {later}"));
            let planned = plan(&story.world.observed, story.now);
            let settled = planned.report.clusters.iter().filter(|one| one.decision == Decision::Settled);
            assert_eq!((settled.count(), planned.report.not_probed), (500, 500), "{strategy}");
            let maker = planned.report.maker_of_not_probed();
            assert_eq!(maker, "of an earlier version of Aviary", "{strategy}");
            let writes: Vec<_> = planned.writes().collect();
            assert!(writes.is_empty(), "{strategy}: {:?}", writes.first());
        }
        let config = "version=v2 deploy=default/deploy";
        story.run(&format!("rollout canary {config}\n rollout prod {config} {strategy}\n settle"));
        let is_anew = |work: &Work| work.health == Health::Healthy && work.version.as_deref() == Some("v2");
        assert_eq!(count(&story, is_anew), 500, "{strategy}");
    }
}

/// How many writes a manager of today makes while agents do nothing, without the one that gives the
/// status of the add-on itself the fields that the first version does not have.
fn written(story: &mut Story) -> usize {
    let is_other = |write: &Write| !matches!(write, Write::AddOn(_));
    let first = plan(&story.world.observed, story.now).writes().filter(is_other).count();
    story.run("pass");
    first + plan(&story.world.observed, story.now).writes().count()
}

fn count(story: &Story, is_so: impl Fn(&Work) -> bool) -> usize {
    story.world.observed.works.iter().flat_map(|(_, works)| works.iter()).filter(|work| is_so(work)).count()
}

/// Cluster, generation of its work, whether that has probes, and its version.
type WorkLine = (String, i64, bool, String);

fn work_lines(story: &Story) -> Vec<WorkLine> {
    let works = story.world.observed.works.iter().flat_map(|(name, works)| {
        let version = |work: &Work| work.version.as_deref().unwrap_or_default().to_owned();
        works.iter().map(move |work| (name.to_string(), work.generation, work.probed, version(work)))
    });
    works.collect()
}

/// Clusters of the placement `prod` that are assigned v2 and have not soaked yet, as their statuses
/// say.
fn on_their_way(story: &Story) -> usize {
    let soaked = |status: &StatusFields| {
        let healthy = status.condition(REVISION_HEALTHY).filter(|said| said.status == "True");
        let since = healthy.and_then(|said| said.since);
        since.is_some_and(|since| story.now.duration_since(since) >= SignedDuration::from_mins(10))
    };
    let instances = &story.world.observed.instances;
    let prod = instances.keys().filter(|name| name.as_str().starts_with('p'));
    let statuses = prod.filter_map(|name| instances.get(name)).map(|instance| instance.status.clone());
    statuses.filter(|status| status.desired_version.as_deref() == Some("v2") && !soaked(status)).count()
}

/// The first version has brought some clusters to v2, others fail, soak or have not answered, and
/// the rest waits.
#[test]
fn rule_7_an_upgrade_within_a_rollout_rewrites_no_work_and_the_rollout_goes_on_within_its_budget() {
    let fleets = first_version("in-flight");
    assert_eq!(fleets.len(), 6);
    for (strategy, mut story) in fleets {
        let most = match strategy.split_once(' ') {
            Some((_, limit)) if limit.starts_with("25%") => 125,
            _ if strategy == "PerGroup" => 250,
            _ => 499,
        };
        let before = work_lines(&story);
        assert_eq!(before.len(), 500);
        assert!(before.iter().all(|(.., probed, _)| !probed), "{strategy}");
        assert_eq!(written(&mut story), 0, "{strategy}");
        assert_eq!(work_lines(&story), before, "{strategy}");
        let mut peak = on_their_way(&story);
        story.run("ack p061..p070");
        for _ in 0..8 {
            loop {
                let wrote = story.pass();
                peak = peak.max(on_their_way(&story));
                if !story.agents_work() && !wrote {
                    break;
                }
            }
            story.run("wait 11m");
        }
        assert!(peak <= most && peak > most / 2, "{strategy}: {peak}");
        // What the first version had rendered from v2 stays; everything else is rendered once.
        let after: Vec<WorkLine> = before
            .into_iter()
            .map(|(name, generation, _, version)| {
                let waited = version == "v1";
                (name, generation + i64::from(waited), waited, "v2".to_owned())
            })
            .collect();
        assert_eq!(work_lines(&story), after, "{strategy}");
        let planned = plan(&story.world.observed, story.now);
        let unsettled = planned.report.clusters.iter().filter(|one| one.decision != Decision::Settled);
        assert_eq!(unsettled.count(), 0, "{strategy}");
    }
}

/// A rollout to v2 with one cluster in flight, which somebody strips of its probes; with or without
/// the mark of what its work is rendered from.
fn stripped_in_flight(keeps_mark: bool) -> Story {
    let mut story = Story::new();
    story.run(
        "template v1 v2
        place prod: p1..p3
        rollout prod version=v1 RollingUpdate 1
        settle
        rollout prod version=v2 RollingUpdate 1
        pass 2",
    );
    let name = cluster("p1");
    let mut without = story.world.observed.clone();
    without.works.get_mut(&name).expect("works").clear();
    let rendered = works(&without, &story);
    let object = rendered.into_iter().find(|one| one["metadata"]["namespace"] == "p1").expect("its work");
    let mut object = of_the_first_version(object);
    if !keeps_mark {
        let annotations = object["metadata"]["annotations"].as_object_mut().expect("annotations");
        annotations.remove("addon.open-cluster-management.io/rendered-from").expect("the mark");
    }
    let work = serde_json::from_value(object).expect("a ManifestWork");
    let (_, mut work) = normalise::work(&work).expect("a work of the add-on");
    work.owner = Some(story.world.observed.instances.get(&name).expect("an instance").uid.clone());
    *story.world.observed.works.get_mut(&name).expect("works") = vec![work];
    story
}

/// What the checker finds if a manager writes that a cluster has what it was assigned.
fn found_when_applied(story: &Story, name: &str) -> Vec<&'static str> {
    let name = cluster(name);
    let with_applied = |is_applied: bool| {
        let mut observed = story.world.observed.clone();
        let mut instance = observed.instances.get_mut(&name).expect("an instance");
        let mut status = StatusFields::clone(&instance.status);
        for reference in &mut status.references {
            reference.applied = reference.desired.clone().filter(|_| is_applied);
        }
        instance.status = InstanceStatus::new(status);
        drop(instance);
        observed
    };
    let found = invariants::check_deed(&with_applied(false), Deed::Instance(&name), &with_applied(true));
    // One for each kind of config.
    let mut rules: Vec<&str> = found.into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

/// S20, planted: a manager that believes the conditions of a work without probes.
#[test]
fn s20_finds_a_cluster_that_settles_on_a_work_without_its_probes() {
    for keeps_mark in [true, false] {
        assert_eq!(found_when_applied(&stripped_in_flight(keeps_mark), "p1"), ["S20"]);
    }
    // The same write on evidence; before there is any; and on bad evidence.
    for (agent, found) in [("ack p1", &[][..]), ("", &["S9"]), ("unready p1", &["S20"])] {
        let mut story = Story::new();
        story.run(&format!(
            "template v1 v2
            place prod: p1..p3
            rollout prod version=v1 RollingUpdate 1
            settle
            rollout prod version=v2 RollingUpdate 1
            pass 2
            {agent}"
        ));
        assert_eq!(found_when_applied(&story, "p1"), found, "{agent}");
    }
    // Works that the first version rendered are accepted.
    let mut story = Story::new();
    story.run("template v1\n place prod: p1\n rollout prod version=v1\n settle");
    take_back_to_the_first_version(&mut story);
    assert!(found_when_applied(&story, "p1").is_empty());
}

/// Somebody strips a work of its probes while its cluster is in flight. What its conditions say
/// then proves nothing, and the work is written again.
#[test]
fn rule_7_a_work_that_loses_its_probes_in_flight_proves_nothing() {
    for keeps_mark in [true, false] {
        let story = stripped_in_flight(keeps_mark);
        let planned = plan(&story.world.observed, story.now);
        let settled = planned.report.clusters.iter().filter(|one| one.decision == Decision::Settled).count();
        assert_eq!(settled, 0, "{:?}", planned.report.clusters);
        let writes: Vec<_> = planned.writes().collect();
        assert!(matches!(*writes, [Write::Work(_)]), "{writes:?}");
    }
}

/// A template of these manifests, rendered on one cluster, whose agent has applied everything.
fn applied(manifests: &Value) -> Story {
    let mut story = ready(manifests, &json!({}));
    story.run("settle");
    story
}

fn next_template(story: &mut Story, version: &str, manifests: &Value) {
    story.put_template(&json!({
        "metadata": { "name": "tpl" },
        "spec": { "addonName": "helloworld", "version": version, "agentSpec": { "workload": { "manifests": manifests } } },
    }));
}

fn job(name: &str, image: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "ns"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

/// Its author says about the Job what agents are told anyway.
#[test]
fn rule_10_a_job_that_its_author_creates_only_once_is_a_problem_as_well() {
    let template = |version: &str, image: &str| {
        json!({
            "metadata": {"name": "tpl"},
            "spec": {"addonName": "helloworld", "version": version, "agentSpec": {
                "workload": {"manifests": [job("migrate", image)]},
                "manifestConfigs": [{
                    "resourceIdentifier": {"group": "batch", "resource": "jobs", "namespace": "ns", "name": "migrate"},
                    "updateStrategy": {"type": "CreateOnly"},
                }],
            }},
        })
    };
    let mut story = applied(&json!([job("first", "one")]));
    for (version, image) in [("v2.0.0", "one"), ("v3.0.0", "two")] {
        story.put_template(&template(version, image));
        story.run("settle");
    }
    let planned = plan(&story.world.observed, story.now);
    assert!(format!("{:?}", planned.report).contains("CreatedOnce"), "{:?}", planned.report);
}

#[test]
fn rule_10_a_job_that_changes_under_its_old_name_is_a_problem_and_moves_nothing() {
    let mut story = applied(&json!([job("migrate", "one")]));
    next_template(&mut story, "v2.0.0", &json!([job("migrate", "two")]));
    story.run("settle");
    let before = story.told.len();
    story.run("show status");
    expect![[r#"
        prod  False UpgradeFailed  0/1 upgrade failed: AddOnTemplate tpl: Job ns/migrate changes under its old name, and agents create it only once: put {{VERSION}} into its name
            desired deploy good deploy applied deploy
        versions v2.0.0 default v2.0.0
    "#]].assert_eq(&story.told[before..]);
    let planned = plan(&story.world.observed, story.now);
    assert_eq!(planned.writes().count(), 0);
    next_template(&mut story, "v2.0.0", &json!([job("migrate-{{VERSION}}", "two")]));
    story.run("settle");
    let works: Vec<_> = story.world.observed.works.iter().flat_map(|(_, works)| works.iter()).collect();
    assert!(works.iter().all(|work| work.version.as_deref() == Some("v2.0.0")), "{works:?}");
}

/// The agent of `a1` reports that its Job is one of an earlier version.
fn keeps_job(story: &mut Story) {
    let why = "Job ns/migrate: it is of another version, and agents create it only once";
    for work in story.world.observed.works.get_mut(&cluster("a1")).expect("works").iter_mut() {
        work.health = Health::Kept { why: why.into() };
    }
}

/// The cluster never had the revision in between, which has no Job: the one of before is still
/// there.
#[test]
fn rule_10_a_job_of_an_earlier_version_settles_nothing_but_a_rollback() {
    let mut story = applied(&json!([job("migrate", "one")]));
    for (version, manifests) in [("v2.0.0", json!([map("a", 1)])), ("v3.0.0", json!([job("migrate", "two")]))]
    {
        next_template(&mut story, version, &manifests);
        if version == "v3.0.0" {
            story.run("pass 2\n ack a1");
            keeps_job(&mut story);
        }
        story.run(if version == "v3.0.0" {
            "pass\n wait 2m\n pass\n show clusters\n show a1"
        } else {
            "settle"
        });
    }
    assert_eq!(found_when_applied(&story, "a1"), ["S20"]);
    story.run("note deleted there, and created anew\n ack a1\n settle\n show clusters\n note rolled back");
    next_template(&mut story, "v1.0.0", &json!([job("migrate", "one")]));
    story.run("pass 2\n ack a1");
    keeps_job(&mut story);
    assert!(found_when_applied(&story, "a1").is_empty());
    story.run("pass\n show clusters");
    expect![[r#"
        a1               in flight v3.0.0   health unknown: Job ns/migrate: it is of another version, and agents create it only once
        a1  addondeploymentconfigs desired deploy@53aa778a applied deploy@53aa778a
        a1  version desired v3.0.0 current unknown last unknown
        a1  Progressing True Upgrading: upgrading...
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
        a1  Available Unknown HealthUnknown: Job ns/migrate: it is of another version, and agents create it only once
        -- deleted there, and created anew
        -- rolled back
    "#]].assert_eq(&story.told);
}

/// A ReplicaSet keeps the pods that run: it would count as healthy on a version that no pod runs.
#[test]
fn rule_10_a_replica_set_whose_pods_change_under_its_old_name_is_a_problem() {
    let set = |name: &str, replicas: i64, image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "ns"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    let mut story = applied(&json!([set("old", 1, "one")]));
    next_template(&mut story, "v2.0.0", &json!([set("old", 1, "two")]));
    story.run("settle");
    let before = story.told.len();
    story.run("show status");
    expect![[r#"
        prod  False UpgradeFailed  0/1 upgrade failed: AddOnTemplate tpl: ReplicaSet ns/old changes under its old name, and Kubernetes does not replace its pods: use a Deployment, or put {{VERSION}} into its name
            desired deploy good deploy applied deploy
        versions v2.0.0 default v2.0.0
    "#]].assert_eq(&story.told[before..]);
    assert_eq!(plan(&story.world.observed, story.now).writes().count(), 0);
    for (version, manifests) in
        [("v3.0.0", json!([set("old", 2, "one")])), ("v4.0.0", json!([set("new-{{VERSION}}", 2, "two")]))]
    {
        next_template(&mut story, version, &manifests);
        story.run("settle");
        let works: Vec<_> = story.world.observed.works.iter().flat_map(|(_, works)| works.iter()).collect();
        assert!(works.iter().all(|work| work.version.as_deref() == Some(version)), "{works:?}");
    }
}

/// A ConfigMap of so many KiB.
fn map(name: &str, size: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "{{CLUSTER_NAME}}"},
        "data": {"text": "x".repeat(size * 1024)}})
}

/// The works of the cluster: name, generation, and how many objects each has.
fn sizes(story: &Story) -> String {
    let works = story.world.observed.works.iter().flat_map(|(_, works)| works.iter());
    let mut sizes: Vec<String> = works
        .map(|work| format!("{} generation {}: {} objects", work.name, work.generation, work.objects.len()))
        .collect();
    sizes.sort();
    sizes.join("\n") + "\n"
}

#[test]
fn rule_11_an_object_leaves_a_work_only_once_the_work_that_it_moves_to_is_applied() {
    let mut story = applied(&json!([map("a", 150), map("b", 150), map("c", 150), map("d", 150)]));
    let mut told = sizes(&story);
    // A new object in front moves `b` from the first work to the second, and `d` to a third.
    next_template(
        &mut story,
        "v2.0.0",
        &json!([map("new", 150), map("a", 150), map("b", 150), map("c", 150), map("d", 150)]),
    );
    for _ in 0..4 {
        story.run("pass");
        told += &format!("--\n{}", sizes(&story));
        story.run("ack a1");
    }
    story.run("settle");
    told += &format!("-- settled\n{}", sizes(&story));
    // Without two of the objects, what is left moves forward, and a work goes.
    next_template(&mut story, "v3.0.0", &json!([map("b", 150), map("c", 150), map("d", 150)]));
    for _ in 0..4 {
        story.run("pass");
        told += &format!("--\n{}", sizes(&story));
        story.run("ack a1");
    }
    story.run("settle");
    told += &format!("-- settled\n{}", sizes(&story));
    expect![[r#"
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 1: 2 objects
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 1: 2 objects
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 1: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        -- settled
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 3: 1 objects
        addon-helloworld-deploy-2 generation 1: 1 objects
        --
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 3: 1 objects
        -- settled
        addon-helloworld-deploy-0 generation 3: 2 objects
        addon-helloworld-deploy-1 generation 3: 1 objects
    "#]]
    .assert_eq(&told);
}

/// Two works that take objects from each other: a copy of one holds its objects meanwhile.
#[test]
fn rule_11_objects_that_change_places_are_in_an_applied_work_all_the_time() {
    let mut story = applied(&json!([map("a", 150), map("b", 150), map("c", 150), map("d", 150)]));
    next_template(&mut story, "v2.0.0", &json!([map("c", 150), map("a", 150), map("b", 150), map("d", 150)]));
    let objects = |story: &Story| -> HashSet<ObjectMark> {
        let works = story.world.observed.works.iter().flat_map(|(_, works)| works.iter());
        let applied = works.filter(|work| work.applied == Seen::Yes);
        applied.flat_map(|work| work.objects.clone()).collect()
    };
    let all = objects(&story);
    assert_eq!(all.len(), 4);
    let mut told = String::new();
    for _ in 0..8 {
        let before = sizes(&story);
        story.run("pass");
        // What is being written now was in another applied work, or stays in this one.
        if sizes(&story) != before {
            told += &format!("--\n{}", sizes(&story));
        }
        story.run("ack a1");
        assert_eq!(objects(&story), all);
    }
    story.run("settle");
    assert_eq!(plan(&story.world.observed, story.now).writes().count(), 0);
    expect![[r#"
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 1: 2 objects
        addon-helloworld-deploy-2 generation 1: 2 objects
        --
        addon-helloworld-deploy-0 generation 1: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 2 objects
        --
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
        addon-helloworld-deploy-2 generation 1: 2 objects
        --
        addon-helloworld-deploy-0 generation 2: 2 objects
        addon-helloworld-deploy-1 generation 2: 2 objects
    "#]]
    .assert_eq(&told);
}

#[test]
fn rule_12_a_work_has_at_most_200_objects() {
    let maps: Vec<Value> = (0..450).map(|number| map(&format!("m{number:03}"), 0)).collect();
    expect![[r#"
        addon-helloworld-deploy-0 generation 1: 200 objects
        addon-helloworld-deploy-1 generation 1: 200 objects
        addon-helloworld-deploy-2 generation 1: 50 objects
    "#]]
    .assert_eq(&sizes(&applied(&json!(maps))));
}

/// Works with probes, and clusters that have not settled.
fn probed_and_unsettled(story: &Story) -> (usize, usize) {
    let works = story.world.observed.works.iter().flat_map(|(_, works)| works.iter());
    let plan = plan(&story.world.observed, story.now);
    let unsettled = plan.report.clusters.iter().filter(|one| one.decision != Decision::Settled);
    (works.filter(|work| work.probed).count(), unsettled.count())
}

#[test]
fn rule_13_reprobing_renders_works_of_the_first_version_anew_at_most_a_quarter_at_once() {
    for (strategy, most) in [("UpdateAll", 10), ("RollingUpdate 2", 2), ("RollingUpdate 100%", 10)] {
        let mut story = Story::new();
        story.run(&format!(
            "template v1
            place prod: p01..p40
            rollout prod version=v1 {strategy}
            settle"
        ));
        assert_eq!(take_back_to_the_first_version(&mut story), 40);
        story.run("annotate reprobe=\n pass 3");
        assert_eq!(plan(&story.world.observed, story.now).report.not_probed, 40);
        assert_eq!(plan(&story.world.observed, story.now).writes().count(), 0, "nobody has asked for it");
        story.run("annotate reprobe=now\n pass");
        assert_eq!(probed_and_unsettled(&story), (most, most), "{strategy}");
        // Unhealthy clusters stop the rest.
        story.run("unready p01 p02\n settle\n wait 2m\n settle");
        let (probed, unsettled) = probed_and_unsettled(&story);
        assert!(unsettled == 2 && (probed == 40) == (most == 10), "{strategy}: {probed} {unsettled}");
        story.run("ack p01 p02\n settle\n wait 2m\n settle");
        assert_eq!(probed_and_unsettled(&story), (40, 0), "{strategy}");
        assert_eq!(plan(&story.world.observed, story.now).writes().count(), 0, "{strategy}: idempotent");
        assert_eq!(plan(&story.world.observed, story.now).report.not_probed, 0);
    }
}

#[test]
fn rule_13_reprobing_waits_while_the_rollout_is_paused() {
    let mut story = Story::new();
    story.run(
        "template v1\n place prod: p1..p4\n rollout prod version=v1\n settle\n rollout prod version=v1 paused",
    );
    take_back_to_the_first_version(&mut story);
    story.run("annotate reprobe=now\n pass 3");
    assert_eq!(probed_and_unsettled(&story).0, 0);
    story.run("rollout prod version=v1\n pass");
    assert_eq!(probed_and_unsettled(&story).0, 1);
}

/// The first version put as many objects into a work as fit: such a work is no reason to write.
#[test]
fn rule_14_a_work_of_the_first_version_that_is_split_otherwise_today_is_accepted() {
    let maps: Vec<Value> = (0..450).map(|number| map(&format!("m{number:03}"), 0)).collect();
    let mut story = applied(&json!(maps));
    let mut without = story.world.observed.clone();
    without.works.get_mut(&cluster("a1")).expect("works").clear();
    let mut rendered = works(&without, &story);
    let objects: Vec<Value> = rendered
        .iter()
        .flat_map(|work| work["spec"]["workload"]["manifests"].as_array().expect("manifests").clone())
        .collect();
    assert_eq!(objects.len(), 450);
    rendered[0]["spec"]["workload"]["manifests"] = json!(objects);
    let work = serde_json::from_value(of_the_first_version(rendered.swap_remove(0))).expect("a work");
    let (_, work) = normalise::work(&work).expect("a work of the add-on");
    *story.world.observed.works.get_mut(&cluster("a1")).expect("works") = vec![work];
    let planned = plan(&story.world.observed, story.now);
    assert_eq!(planned.report.clusters[0].decision, Decision::Settled);
    assert_eq!(planned.writes().count(), 0);
    // With probes, objects leave the first work only once the others are applied.
    story.run("annotate reprobe=now");
    let mut told = String::new();
    for _ in 0..3 {
        story.run("pass");
        told += &format!("--\n{}", sizes(&story));
        story.run("ack a1");
    }
    story.run("settle\n wait 2m\n settle");
    assert_eq!(plan(&story.world.observed, story.now).writes().count(), 0);
    expect![[r#"
        --
        addon-helloworld-deploy-0 generation 1: 450 objects
        addon-helloworld-deploy-1 generation 1: 200 objects
        addon-helloworld-deploy-2 generation 1: 50 objects
        --
        addon-helloworld-deploy-0 generation 2: 200 objects
        addon-helloworld-deploy-1 generation 1: 200 objects
        addon-helloworld-deploy-2 generation 1: 50 objects
        --
        addon-helloworld-deploy-0 generation 2: 200 objects
        addon-helloworld-deploy-1 generation 1: 200 objects
        addon-helloworld-deploy-2 generation 1: 50 objects
    "#]]
    .assert_eq(&told);
}

/// 1,000 Deployments: every work fits with its digests, probes and reports into what an API server
/// stores, its manifests into what OCM admits, and the cluster settles.
#[test]
fn rule_18_a_thousand_deployments_settle() {
    let deployments: Vec<Value> = (0..1000)
        .map(|number| {
            let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": format!("agent-{number}"), "namespace": "{{INSTALL_NAMESPACE}}"}});
            deployment["spec"] = json!({"template": {"spec": {"containers": [{"args": "x".repeat(1024)}]}}});
            deployment
        })
        .collect();
    let mut story = ready(&json!(deployments), &json!({}));
    let rendered = works(&story.world.observed, &story);
    let stored: usize = rendered.iter().map(|work| with_reports(work).to_string().len()).max().unwrap_or(0);
    assert!(stored < 1024 * 1024, "{stored} bytes");
    let manifests = rendered.iter().map(|work| work["spec"]["workload"].to_string().len());
    assert!(manifests.max().unwrap_or(0) < 500 * 1024);
    let objects =
        rendered.iter().map(|work| work["spec"]["workload"]["manifests"].as_array().map_or(0, Vec::len));
    assert_eq!(objects.sum::<usize>(), 1000);
    story.run("settle\n show clusters\n show a1");
    expect![[r#"
        a1  addondeploymentconfigs desired deploy@53aa778a applied deploy@53aa778a
        a1  version desired v1.0.0 current v1.0.0 last -
        a1  Progressing False InstallSucceed: install completed with no errors.
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
        a1  Available True WorksAvailable: all works are available
    "#]]
    .assert_eq(&story.told);
}

/// A work as it is stored once its agent has reported on every object.
fn with_reports(work: &Value) -> Value {
    let mut work = work.clone();
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "ReasonOfSomeLength", "observedGeneration": 12,
            "message": "Resource is available", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let entries = work["spec"]["manifestConfigs"].as_array().expect("entries").clone();
    let reports: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let rules = entry["feedbackRules"].as_array().expect("rules").iter();
            let paths = rules.flat_map(|rule| rule["jsonPaths"].as_array().expect("paths"));
            let values: Vec<Value> = paths
                .map(|path| json!({"name": path["name"], "fieldValue": {"type": "String", "string": "NewReplicaSetAvailable"}}))
                .collect();
            let name = &entry["resourceIdentifier"]["name"];
            json!({
                "resourceMeta": {"ordinal": 100, "group": "apps", "version": "v1", "kind": "Deployment",
                    "resource": "deployments", "name": name, "namespace": "open-cluster-management-agent-addon"},
                "statusFeedback": {"values": values},
                "conditions": [condition("Applied"), condition("Available"), condition("StatusFeedbackSynced")],
            })
        })
        .collect();
    work["status"] = json!({"conditions": [condition("Applied"), condition("Available")],
        "resourceStatus": {"manifests": reports}});
    work
}

/// The number of the renderer is in the mark of every work. Aviary is upgraded, or an older one
/// comes back: the same revision under another number is no reason to write a work.
#[test]
fn rule_7_works_of_another_renderer_are_not_rewritten() {
    for renderer in ["0", "2"] {
        let mut story = Story::new();
        story.run(
            "template v1 v2\n place prod: p1..p9\n rollout prod version=v1 RollingUpdate 3\n settle\n wait 1h\n settle",
        );
        for number in 1..=9 {
            let mut works =
                story.world.observed.works.get_mut(&cluster(&format!("p{number}"))).expect("works");
            for work in works.iter_mut() {
                let mark = work.rendered_from.as_deref().expect("a mark");
                let (own, rest) = mark.split_once('/').expect("the number of a renderer");
                assert_ne!(own, renderer, "it is that of today");
                work.rendered_from = Some(format!("{renderer}/{rest}").into());
            }
        }
        for later in ["0s", "1h"] {
            story.run(&format!("wait {later}"));
            let planned = plan(&story.world.observed, story.now);
            assert!(planned.report.clusters.iter().all(|one| one.decision == Decision::Settled));
            let writes: Vec<_> = planned.writes().collect();
            assert!(writes.is_empty(), "{renderer}: {:?}", writes.first());
        }
        story.run("rollout prod version=v2 RollingUpdate 3\n settle");
        assert_eq!(count(&story, |work| work.version.as_deref() == Some("v2")), 9, "{renderer}");
    }
}
