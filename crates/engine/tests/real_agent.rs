//! Healthy before next, with an agent that reports exactly as OCM's does: `Available` as soon as an
//! object exists, values of the older object under the newer generation first, and counters of 0
//! left out. Works are rendered and read as on a hub. Everything follows from a seed.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a broken simulation must fail the test")]

use std::collections::BTreeMap;

use aviary_engine::name::ClusterName;
use aviary_engine::normalise;
use aviary_engine::observed::Work;
use aviary_engine::plan::{Write, plan};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::story::Story;

/// What becomes of the pods of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pods {
    Good,
    /// Good, but it takes 90 seconds, and the agent has other words for it on the way.
    Slow,
    NeverReady,
    /// Ready, and gone again before the soak is over.
    CrashInSoak,
}

const SOAK: i64 = 120;
const CANARY: [&str; 4] = ["c1", "c2", "c3", "c4"];

/// One cluster: the Deployment as it is there, and when its agent reports next.
struct Member {
    live: Option<Value>,
    applied_at: i64,
    became_ready_at: i64,
    next_report: i64,
    /// The generation of the work that the agent has applied.
    applied: i64,
}

struct Simulation {
    story: Story,
    works: BTreeMap<ClusterName, Value>,
    members: BTreeMap<ClusterName, Member>,
    bad: Pods,
    seed: u64,
    begin: Timestamp,
    now: i64,
    /// Something has changed since the last plan.
    is_news: bool,
    recheck_at: Option<Timestamp>,
    /// The manager's writes to objects of each cluster.
    writes: BTreeMap<ClusterName, usize>,
}

impl Simulation {
    fn new(seed: u64, bad: Pods) -> Self {
        let mut story = Story::new();
        story.run(
            "template v1 v2
            place canary: c1..c4
            place prod: p1..p8
            rollout canary version=v1 RollingUpdate 2 minSuccessTime=2m
            rollout prod version=v1 Canary 2 canary=canary minSuccessTime=2m",
        );
        let begin = story.now;
        Self {
            story,
            works: BTreeMap::new(),
            members: BTreeMap::new(),
            bad,
            seed,
            begin,
            now: 0,
            is_news: true,
            recheck_at: None,
            writes: BTreeMap::new(),
        }
    }

    /// A number below `below`, always the same for the same seed and the same history.
    fn draw(&mut self, below: u64) -> i64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.seed >> 33) % below).unwrap()
    }

    fn want(&mut self, version: &str) {
        self.story.run(&format!(
            "rollout canary version={version} RollingUpdate 2 minSuccessTime=2m
            rollout prod version={version} Canary 2 canary=canary minSuccessTime=2m"
        ));
        self.is_news = true;
    }

    fn run(&mut self, seconds: i64) {
        let end = self.now + seconds;
        while self.now < end {
            self.now += 5;
            self.story.now = self.begin + jiff::SignedDuration::from_secs(self.now);
            let due: Vec<ClusterName> = self
                .members
                .iter()
                .filter(|(_, member)| member.next_report <= self.now)
                .map(|(name, _)| name.clone())
                .collect();
            due.iter().for_each(|name| self.report(name));
            if self.is_news || self.recheck_at.is_some_and(|at| at <= self.story.now) {
                self.manage();
            }
        }
    }

    /// The manager, until it is at rest.
    fn manage(&mut self) {
        for _ in 0..20 {
            let decided = plan(&self.story.world.observed, self.story.now);
            if decided.is_at_rest() {
                self.is_news = false;
                self.recheck_at = decided.recheck_at;
                return;
            }
            for write in decided.writes() {
                if let Some(cluster) = cluster_of(&write) {
                    *self.writes.entry(cluster.clone()).or_default() += 1;
                }
                match &write {
                    Write::Work(work) => self.write_work(&work.cluster, work.object()),
                    write => assert!(self.story.world.commit(write), "refused: {write:?}"),
                }
            }
        }
        unreachable!("the manager does not come to rest");
    }

    fn write_work(&mut self, cluster: &ClusterName, mut object: Value) {
        let before = self.works.get(cluster);
        let generation = before.map_or(0, |work| work["metadata"]["generation"].as_i64().unwrap()) + 1;
        object["metadata"]["generation"] = json!(generation);
        object["metadata"]["uid"] = json!(format!("work-{cluster}"));
        if let Some(status) = before.and_then(|work| work.get("status")) {
            object["status"] = status.clone();
        }
        self.works.insert(cluster.clone(), object);
        let next_report = self.now + self.draw(10);
        let new = Member { live: None, applied_at: 0, became_ready_at: 0, next_report, applied: 0 };
        self.members.entry(cluster.clone()).or_insert(new).next_report = next_report;
        self.store(cluster);
    }

    fn store(&mut self, cluster: &ClusterName) {
        let work = serde_json::from_value(self.works[cluster].clone()).unwrap();
        let (_, work) = normalise::work(&work).unwrap();
        let mut works = self.story.world.observed.works.get_or_insert_with(cluster.clone(), Vec::new);
        let same = |known: &Work| known.generation == work.generation && known.state == work.state;
        self.is_news |= !works.first().is_some_and(same);
        *works = vec![work];
    }

    /// One round of the agent. Its status loop runs before its apply loop: a new generation is
    /// first reported with the values of the object before.
    fn report(&mut self, cluster: &ClusterName) {
        let next = 10 + self.draw(10);
        let (status_first, both) = (self.draw(120) < 112, self.draw(120) == 0);
        let generation = self.works[cluster]["metadata"]["generation"].as_i64().unwrap();
        let now = self.now;
        let member = self.members.get_mut(cluster).unwrap();
        let is_new = member.applied < generation;
        member.next_report = now + if is_new { 2 } else { next };
        if is_new && status_first && member.live.is_some() {
            let stale = member.live.clone();
            self.say(cluster, stale, both);
            return self.apply(cluster, generation);
        }
        if is_new {
            self.apply(cluster, generation);
        }
        self.progress(cluster);
        let live = self.members[cluster].live.clone();
        self.say(cluster, live, true);
    }

    fn apply(&mut self, cluster: &ClusterName, generation: i64) {
        let manifest = self.works[cluster]["spec"]["workload"]["manifests"][0].clone();
        let now = self.now;
        let member = self.members.get_mut(cluster).unwrap();
        member.applied = generation;
        let changed =
            member.live.as_ref().is_none_or(|live| live["spec"]["version"] != manifest["spec"]["version"]);
        let mut live = manifest;
        let before = member.live.take();
        let number = before.as_ref().map_or(0, |live| live["metadata"]["generation"].as_i64().unwrap());
        live["metadata"]["generation"] = json!(number + i64::from(changed));
        live["spec"]["replicas"] = json!(3);
        live["status"] = before.map_or(json!({}), |before| before["status"].clone());
        if changed {
            member.applied_at = now;
            member.became_ready_at = 0;
        }
        member.live = Some(live);
    }

    /// What the Deployment's controller and the pods have come to.
    fn progress(&mut self, cluster: &ClusterName) {
        let jitter = self.draw(3);
        let Self { now, bad, .. } = *self;
        let member = self.members.get_mut(cluster).unwrap();
        let Some(live) = &mut member.live else { return };
        let age = now - member.applied_at;
        // At first its controller has not seen the change.
        if age < 2 + jitter {
            return;
        }
        let pods = if live["spec"]["version"] == "v2" { bad } else { Pods::Good };
        let begin_ready = if pods == Pods::Slow { 90 } else { 15 };
        let (counters, said) = match pods {
            Pods::Good | Pods::CrashInSoak if age < begin_ready => ([1, 4, 3], "ReplicaSetUpdated"),
            Pods::Slow if age < 70 => ([1, 4, 3], "ReplicaSetUpdated"),
            Pods::Slow if age < begin_ready => ([3, 4, 3], "ReplicaSetUpdated"),
            Pods::Good | Pods::Slow => ([3, 3, 3], "NewReplicaSetAvailable"),
            Pods::CrashInSoak => {
                if member.became_ready_at == 0 {
                    member.became_ready_at = now;
                }
                // Crashes within the soak and flaps from then on.
                let since = now - member.became_ready_at;
                let is_down = since >= SOAK / 2 && (since / 20) % 3 != 2;
                (if is_down { [3, 3, 0] } else { [3, 3, 3] }, "NewReplicaSetAvailable")
            }
            Pods::NeverReady if age < 600 => ([1, 4, 3], "ReplicaSetUpdated"),
            Pods::NeverReady => ([1, 4, 3], "ProgressDeadlineExceeded"),
        };
        let mut status = json!({"observedGeneration": live["metadata"]["generation"]});
        for (name, count) in ["updatedReplicas", "replicas", "availableReplicas"].into_iter().zip(counters) {
            if count > 0 {
                status[name] = json!(count);
            }
        }
        status["conditions"] = json!([{"type": "Progressing", "reason": said}]);
        live["status"] = status;
    }

    fn say(&mut self, cluster: &ClusterName, live: Option<Value>, applied: bool) {
        let work = self.works.get_mut(cluster).unwrap();
        let generation = work["metadata"]["generation"].clone();
        let said = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": generation});
        let mut conditions = vec![said("Available")];
        match work["status"]["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["type"] == "Applied"))
        {
            _ if applied => conditions.push(said("Applied")),
            Some(before) => conditions.push(before.clone()),
            None => {}
        }
        let live = live.unwrap_or_default();
        let entry = &work["spec"]["manifestConfigs"][0];
        let paths = entry["feedbackRules"][0]["jsonPaths"].as_array().cloned().unwrap_or_default();
        let values: Vec<Value> = paths
            .iter()
            .filter_map(|path| {
                let value = match at(&live, path["path"].as_str().unwrap())? {
                    Value::Number(number) => json!({"type": "Integer", "integer": number}),
                    Value::String(text) => json!({"type": "String", "string": text}),
                    _ => return None,
                };
                Some(json!({"name": path["name"], "fieldValue": value}))
            })
            .collect();
        let meta = &live["metadata"];
        work["status"] = json!({
            "conditions": conditions,
            "resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment",
                    "name": meta["name"], "namespace": meta["namespace"]},
                "statusFeedback": {"values": values}, "conditions": [],
            }]},
        });
        self.store(cluster);
    }

    /// The clusters whose works are of this version.
    fn on(&self, version: &str) -> Vec<String> {
        let works = self.works.iter();
        let of =
            works.filter(|(_, work)| work["spec"]["workload"]["manifests"][0]["spec"]["version"] == version);
        of.map(|(name, _)| name.to_string()).collect()
    }

    /// All clusters have settled.
    fn is_done(&self) -> bool {
        let plan = plan(&self.story.world.observed, self.story.now);
        plan.is_at_rest()
            && plan
                .report
                .clusters
                .iter()
                .all(|one| one.decision == aviary_engine::explain::Decision::Settled)
    }
}

/// The cluster of the object that is written.
fn cluster_of(write: &Write) -> Option<&ClusterName> {
    Some(match write {
        Write::Create(create) => &create.cluster,
        Write::Guard(write) => &write.cluster,
        Write::Instance(write) => &write.cluster,
        Write::Work(write) => &write.cluster,
        Write::DeleteWork(surplus) => &surplus.cluster,
        Write::Delete(delete) => &delete.cluster,
        _ => return None,
    })
}

/// The value at a path in the dialect of OCM's agent, as far as probes use it.
fn at(object: &Value, path: &str) -> Option<Value> {
    let mut found = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(filter) = rest.strip_prefix(r#"[?(@.type==""#) {
            let (wanted, after) = filter.split_once(r#"")]"#)?;
            found = found.as_array()?.iter().find(|element| element["type"] == wanted)?;
            rest = after;
            continue;
        }
        let step = rest.strip_prefix('.')?;
        let masked = step.replace(r"\.", "\0\0");
        let end = masked.find(['.', '[']).unwrap_or(masked.len());
        found = found.get(step[..end].replace(r"\.", "."))?;
        rest = &step[end..];
    }
    Some(found.clone())
}

/// 100 runs: exactly the budget of the canary gets the bad version, nobody else does, and going
/// back completes.
fn never_passes(bad: Pods) {
    for seed in 0..100 {
        let mut simulation = Simulation::new(seed, bad);
        simulation.run(300);
        assert!(simulation.is_done(), "seed {seed}: v1 is not installed");
        simulation.want("v2");
        simulation.run(800);
        let on = simulation.on("v2");
        assert_eq!(on.len(), 2, "seed {seed}: {on:?}");
        assert!(on.iter().all(|name| CANARY.contains(&name.as_str())), "seed {seed}: {on:?}");
        simulation.want("v1");
        simulation.run(400);
        assert!(simulation.is_done() && simulation.on("v1").len() == 12, "seed {seed}: not rolled back");
    }
}

#[test]
fn a_version_that_is_never_ready_moves_the_budget_of_the_canary_and_nobody_else_in_100_of_100_runs() {
    never_passes(Pods::NeverReady);
}

#[test]
fn a_crash_within_the_soak_moves_the_budget_of_the_canary_and_nobody_else_in_100_of_100_runs() {
    never_passes(Pods::CrashInSoak);
}

#[test]
fn a_good_version_reaches_everybody_in_100_of_100_runs() {
    for seed in 0..100 {
        let mut simulation = Simulation::new(seed, Pods::Good);
        simulation.run(300);
        simulation.want("v2");
        simulation.run(1500);
        assert!(simulation.is_done(), "seed {seed}");
        assert_eq!(simulation.on("v2").len(), 12, "seed {seed}");
    }
}

/// Every workload is on its way before it is ready, and its agent says so: that is one change of
/// the kind of verdict on every cluster.
#[test]
fn what_is_written_per_cluster_is_bounded_though_workloads_take_their_time() {
    for seed in 0..20 {
        let mut simulation = Simulation::new(seed, Pods::Good);
        for (version, seconds, least) in [("v1", 300, 4), ("v2", 1500, 3)] {
            simulation.want(version);
            simulation.writes.clear();
            simulation.run(seconds);
            assert!(simulation.is_done(), "seed {seed}: {version}");
            assert_eq!(simulation.writes.len(), 12, "seed {seed}: {version}");
            for (cluster, writes) in &simulation.writes {
                let expected = least..=least + 1;
                assert!(expected.contains(writes), "seed {seed}: {version} on {cluster}: {writes} writes");
            }
        }
    }
}

/// The same where each says on its way what it waits for, and then something else.
#[test]
fn what_is_written_per_cluster_is_bounded_though_what_it_waits_for_changes() {
    for seed in 0..20 {
        let mut simulation = Simulation::new(seed, Pods::Slow);
        simulation.run(300);
        simulation.want("v2");
        simulation.writes.clear();
        simulation.run(2700);
        assert!(simulation.is_done(), "seed {seed}");
        assert_eq!(simulation.writes.len(), 12, "seed {seed}");
        for (cluster, writes) in &simulation.writes {
            assert!((3..=4).contains(writes), "seed {seed}: {cluster}: {writes} writes");
        }
    }
}
