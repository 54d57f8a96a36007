//! Records the add-on during the demo: every commit of every instance and work, as the watches
//! report them.
//!
//! Owns the facts by which the demo is judged. It shares no decision code with the manager: a
//! cluster is in flight from the commit that assigns something to it until the commit by which all
//! of that is applied and available there. Resource versions give the order of all commits of the
//! hub. Events of different watches are sorted into that order before they are judged.

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::names::conditions::PROGRESSING;
use aviary_api::names::labels;
use aviary_api::{ClusterManagementAddOn, Condition, ManagedClusterAddOn, ManifestWork};
use aviary_engine::health::Health;
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::normalise;
use aviary_engine::observed::{Seen, WorkHashes};
use aviary_engine::reason::{ConditionReason, Reason};
use futures_util::{StreamExt, pin_mut};
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::objects::ADDON;

#[derive(Debug)]
pub(super) enum News {
    AddOn(Box<ClusterManagementAddOn>),
    Instance(Box<ManagedClusterAddOn>),
    Work(Box<ManifestWork>),
    /// A watch had to restart: commits may have been missed.
    Interrupted,
}

/// Watches the add-on, its instances and its works.
pub(super) fn follow(client: &Client) -> (mpsc::UnboundedReceiver<News>, JoinSet<()>) {
    let (tell, news) = mpsc::unbounded_channel();
    let mut watches = JoinSet::new();
    watches.spawn(watch(Api::all(client.clone()), tell.clone(), |object| News::AddOn(Box::new(object))));
    watches.spawn(watch(Api::all(client.clone()), tell.clone(), |object| News::Instance(Box::new(object))));
    watches.spawn(watch(Api::all(client.clone()), tell, |object| News::Work(Box::new(object))));
    (news, watches)
}

async fn watch<K>(api: Api<K>, tell: mpsc::UnboundedSender<News>, wrap: impl Fn(K) -> News)
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    // Without backoff, this would keep spinning after the hub has stopped.
    let events = watcher(api, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    let mut lists = 0;
    while let Some(event) = events.next().await {
        let news = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => wrap(object),
            Ok(Event::Init) => {
                lists += 1;
                if lists == 1 {
                    continue;
                }
                News::Interrupted
            }
            Ok(Event::InitDone | Event::Delete(_)) | Err(_) => continue,
        };
        if tell.send(news).is_err() {
            return;
        }
    }
}

/// The state of one cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterStanding {
    told: WorkHashes,
    pub(super) version: Text,
    pub(super) progressing: Option<(Text, ConditionReason)>,
    work: Option<WorkIs>,
}

#[derive(Clone, Debug)]
struct WorkIs {
    generation: i64,
    hashes: WorkHashes,
    version: Text,
    well: bool,
    /// The agent reports that a workload is not healthy.
    ill: bool,
}

impl ClusterStanding {
    /// Whether it was assigned something that is not applied yet.
    pub(super) fn is_in_flight(&self) -> bool {
        let arrived = |work: &WorkIs| work.well && work.hashes == self.told;
        !self.told.is_empty() && !self.work.as_ref().is_some_and(arrived)
    }

    pub(super) fn has_settled_on(&self, version: &str) -> bool {
        let told = |work: &WorkIs| &*work.version == version;
        &*self.version == version
            && !self.is_in_flight()
            && self.work.as_ref().is_some_and(told)
            && self.progressing.as_ref().is_some_and(|(status, _)| &**status == "False")
    }

    /// Whether its agent could not apply what was assigned, or reports that it is not healthy.
    pub(super) fn has_failed(&self) -> bool {
        let is_ill = |work: &WorkIs| work.ill && work.hashes == self.told;
        self.progressing.as_ref().is_some_and(|(_, reason)| reason.is(Reason::is_failure))
            || self.work.as_ref().is_some_and(is_ill)
    }
}

/// One commit that concerns a cluster.
#[derive(Clone, Debug)]
struct Commit {
    revision: u64,
    cluster: ClusterName,
    change: ClusterChange,
}

#[derive(Clone, Debug)]
enum ClusterChange {
    Instance { told: WorkHashes, version: Text, progressing: Option<(Text, ConditionReason)> },
    Work(WorkIs),
}

impl ClusterChange {
    fn apply(&self, standing: &mut ClusterStanding) {
        match self {
            Self::Instance { told, version, progressing } => {
                standing.told.clone_from(told);
                standing.version.clone_from(version);
                standing.progressing.clone_from(progressing);
            }
            Self::Work(work) => standing.work = Some(work.clone()),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct DemoRecord {
    pub(super) addon: Option<Box<ClusterManagementAddOn>>,
    pub(super) standings: BTreeMap<ClusterName, ClusterStanding>,
    /// The states when the step started, and the commits since.
    before: BTreeMap<ClusterName, ClusterStanding>,
    commits: Vec<Commit>,
    pub(super) interrupted: bool,
}

/// What the commits of a step show.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StepFacts {
    /// The maximum number of clusters in flight at once, by canary or not.
    pub(super) peak: BTreeMap<bool, usize>,
    /// Clusters whose work was created or changed.
    pub(super) touched: BTreeSet<ClusterName>,
    /// Clusters of the fleet that were assigned something new while a canary cluster was in flight
    /// or not assigned it yet.
    pub(super) ahead_of_canary: Vec<ClusterName>,
}

impl DemoRecord {
    /// Starts a step: its facts are counted from here.
    pub(super) fn begin(&mut self) {
        self.before.clone_from(&self.standings);
        self.commits.clear();
    }

    pub(super) fn take(&mut self, news: News) {
        match news {
            News::AddOn(addon) if addon.name_any() == ADDON => self.addon = Some(addon),
            News::Instance(instance) if instance.name_any() == ADDON => self.take_instance(&instance),
            News::Work(work) if work.labels().get(labels::ADDON_NAME).is_some_and(|of| of == ADDON) => {
                self.take_work(&work);
            }
            News::Interrupted => self.interrupted = true,
            News::AddOn(_) | News::Instance(_) | News::Work(_) => {}
        }
    }

    fn take_instance(&mut self, object: &ManagedClusterAddOn) {
        let Ok((instance, _)) = normalise::instance(object) else { return };
        let told = instance.status.told().map(|pin| (pin.config.kind.clone(), pin.hash.clone())).collect();
        let status = object.status.as_ref();
        let version = status.and_then(|status| status.current_version.as_deref()).unwrap_or_default();
        let progressing =
            status.and_then(|status| Condition::find(&status.conditions, PROGRESSING)).map(|one| {
                (one.status.as_str().into(), ConditionReason::read(one.reason.as_deref().unwrap_or_default()))
            });
        let change = ClusterChange::Instance { told, version: version.into(), progressing };
        self.note(instance.cluster.clone(), object.metadata.resource_version.as_deref(), change);
    }

    fn take_work(&mut self, object: &ManifestWork) {
        let Some((_, work)) = normalise::work(object) else { return };
        let Ok(cluster) = ClusterName::parse(&object.namespace().unwrap_or_default()) else { return };
        let change = ClusterChange::Work(WorkIs {
            generation: work.generation,
            hashes: work.hashes.clone().unwrap_or_default(),
            version: work.version.clone().unwrap_or_default(),
            well: work.applied == Seen::Yes
                && work.available == Seen::Yes
                && matches!(work.health, Health::Healthy | Health::Kept { .. } | Health::NotProbed),
            ill: work.applied == Seen::Yes
                && matches!(work.health, Health::Progressing { .. } | Health::Failed { .. }),
        });
        self.note(cluster, object.metadata.resource_version.as_deref(), change);
    }

    fn note(&mut self, cluster: ClusterName, revision: Option<&str>, change: ClusterChange) {
        change.apply(self.standings.entry(cluster.clone()).or_default());
        let revision = revision.and_then(|revision| revision.parse().ok()).unwrap_or(0);
        self.commits.push(Commit { revision, cluster, change });
    }

    /// Judges every commit of the step, in the order in which the hub made them.
    pub(super) fn facts(&self, is_canary: impl Fn(&ClusterName) -> bool) -> StepFacts {
        let mut facts = StepFacts::default();
        let mut standings = self.before.clone();
        let mut in_flight: BTreeMap<bool, usize> = BTreeMap::new();
        for (cluster, standing) in &standings {
            *in_flight.entry(is_canary(cluster)).or_default() += usize::from(standing.is_in_flight());
        }
        facts.peak = in_flight.clone();
        let mut passed: Option<WorkHashes> = None;
        let mut commits: Vec<&Commit> = self.commits.iter().collect();
        commits.sort_by_key(|commit| commit.revision);
        for Commit { cluster, change, .. } in commits {
            let canary = is_canary(cluster);
            let standing = standings.entry(cluster.clone()).or_default();
            let (was, generation) =
                (standing.is_in_flight(), standing.work.as_ref().map(|work| work.generation));
            let old = standing.told.clone();
            change.apply(standing);
            let new = standing.told.clone();
            if standing.work.as_ref().map(|work| work.generation) != generation {
                facts.touched.insert(cluster.clone());
            }
            let count = in_flight.entry(canary).or_default();
            match (was, standing.is_in_flight()) {
                (false, true) => *count += 1,
                (true, false) => *count = count.saturating_sub(1),
                _ => {}
            }
            let peak = facts.peak.entry(canary).or_default();
            *peak = (*peak).max(*count);
            let started = !canary && old != new && !old.is_empty();
            if started && passed.as_ref() != Some(&new) {
                let behind = |(name, one): (&ClusterName, &ClusterStanding)| {
                    is_canary(name) && (one.told != new || one.is_in_flight())
                };
                if standings.iter().any(behind) {
                    facts.ahead_of_canary.push(cluster.clone());
                } else {
                    // Once is enough: later changes of the canary do not matter.
                    passed = Some(new);
                }
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use aviary_engine::configs::GroupResource;
    use aviary_engine::hash;

    use super::*;

    fn cluster(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    fn hashes(version: &str) -> WorkHashes {
        [(GroupResource::hub_configs().clone(), hash::of_bytes(version.as_bytes()))].into_iter().collect()
    }

    fn told(record: &mut DemoRecord, revision: &str, name: &str, version: &str) {
        let change = ClusterChange::Instance { told: hashes(version), version: "".into(), progressing: None };
        record.note(cluster(name), Some(revision), change);
    }

    fn has(record: &mut DemoRecord, revision: &str, name: &str, version: &str, generation: i64) {
        let hashes = hashes(version);
        let work = WorkIs { generation, hashes, version: version.into(), well: true, ill: false };
        record.note(cluster(name), Some(revision), ClusterChange::Work(work));
    }

    fn canary(name: &ClusterName) -> bool {
        name.as_str().starts_with("canary")
    }

    /// A canary and two clusters behind it, all on v1, at the start of a step.
    fn on_v1() -> DemoRecord {
        let mut record = DemoRecord::default();
        for name in ["canary-1", "aws-1", "aws-2"] {
            told(&mut record, "1", name, "v1");
            has(&mut record, "2", name, "v1", 1);
        }
        record.begin();
        record
    }

    #[test]
    fn commits_are_judged_in_the_order_of_the_hub_and_not_of_the_watches() {
        let mut record = on_v1();
        // In order on the hub, but the watch for works is late.
        told(&mut record, "10", "aws-1", "v2");
        told(&mut record, "12", "aws-2", "v2");
        has(&mut record, "11", "aws-1", "v2", 2);
        has(&mut record, "13", "aws-2", "v2", 2);
        let facts = record.facts(canary);
        assert_eq!(facts.peak, BTreeMap::from([(false, 1), (true, 0)]));
        assert_eq!(facts.touched, BTreeSet::from([cluster("aws-1"), cluster("aws-2")]));
    }

    #[test]
    fn two_at_once_are_seen_as_two() {
        let mut record = on_v1();
        told(&mut record, "10", "aws-1", "v2");
        told(&mut record, "11", "aws-2", "v2");
        has(&mut record, "12", "aws-1", "v2", 2);
        has(&mut record, "13", "aws-2", "v2", 2);
        assert_eq!(record.facts(canary).peak.get(&false), Some(&2));
    }

    #[test]
    fn a_cluster_that_goes_before_the_canary_is_seen() {
        let mut record = on_v1();
        told(&mut record, "10", "canary-1", "v2");
        told(&mut record, "11", "aws-1", "v2");
        has(&mut record, "12", "canary-1", "v2", 2);
        told(&mut record, "13", "aws-2", "v2");
        assert_eq!(record.facts(canary).ahead_of_canary, [cluster("aws-1")]);
    }

    #[test]
    fn what_is_in_flight_when_a_step_begins_counts() {
        let mut record = on_v1();
        told(&mut record, "10", "canary-1", "v2");
        record.begin();
        assert_eq!(record.facts(canary).peak.get(&true), Some(&1));
    }
}
