//! The steps of the demo: what each step changes, when it is done, and what its result must be.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use aviary_api::names::conditions::PROGRESSING;
use aviary_api::names::labels;
use aviary_api::{ClusterManagementAddOn, ManagedClusterAddOn, ManifestWork};
use aviary_engine::name::ClusterName;
use aviary_engine::reason::{ConditionReason, Reason};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{interval, sleep_until};

use super::objects::{self, ADDON, BUDGET, CANARY, FLEET, Strategy};
use super::picture::{Picture, PlacementProgress};
use super::record::{DemoRecord, News, StepFacts};
use crate::output::Output;

/// How a step should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedEnding {
    /// All clusters have the version; an install is not throttled.
    Installed,
    /// All clusters have the version, and never more than the budget were in flight at once.
    Upgraded,
    /// As many canary clusters have failed as the budget allows, and no other cluster got the
    /// version.
    Caught,
    /// All clusters have the version, and only those that the previous step had changed were
    /// changed.
    RolledBack,
}

#[derive(Debug)]
struct Act {
    name: &'static str,
    version: &'static str,
    strategy: Strategy,
    ending: ExpectedEnding,
}

/// The version whose pods exit at start. Agents report it as applied and available all the same.
pub(super) const BAD: &str = "v0.12.0";
/// The first version.
pub(super) const FIRST: &str = "v0.10.0";
const GOOD: &str = "v0.11.0";

const STORY: [Act; 5] = [
    Act {
        name: "fresh install",
        version: FIRST,
        strategy: Strategy::Rolling,
        ending: ExpectedEnding::Installed,
    },
    Act {
        name: "rolling upgrade",
        version: "v0.10.1",
        strategy: Strategy::Rolling,
        ending: ExpectedEnding::Upgraded,
    },
    Act {
        name: "canary upgrade",
        version: GOOD,
        strategy: Strategy::BehindCanary,
        ending: ExpectedEnding::Upgraded,
    },
    Act {
        name: "bad version",
        version: BAD,
        strategy: Strategy::BehindCanary,
        ending: ExpectedEnding::Caught,
    },
    Act {
        name: "rollback",
        version: GOOD,
        strategy: Strategy::BehindCanary,
        ending: ExpectedEnding::RolledBack,
    },
];

/// The number of clusters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cast {
    pub(super) fleet: usize,
    pub(super) canary: usize,
}

impl Cast {
    pub(super) fn new(clusters: usize) -> Self {
        let canary = clusters / 5;
        Self { fleet: clusters - canary, canary }
    }

    pub(super) fn all(self) -> usize {
        self.fleet + self.canary
    }

    /// How many clusters of a placement may be in flight, rounded up.
    fn budget(self, canary: bool) -> usize {
        let governed = if canary { self.canary } else { self.fleet };
        (governed * BUDGET).div_ceil(100).max(1)
    }
}

pub(super) fn is_canary(cluster: &ClusterName) -> bool {
    cluster.as_str().starts_with("canary-")
}

impl Act {
    fn line(&self, cast: Cast) -> String {
        let Self { version, .. } = self;
        let (all, fleet, canary) = (cast.all(), cast.fleet, cast.canary);
        match (self.ending, self.strategy) {
            (ExpectedEnding::Installed, _) => {
                format!(
                    "Fresh install: {version} on all {all} clusters at once; an install is not throttled."
                )
            }
            (ExpectedEnding::Upgraded, Strategy::Rolling) => format!(
                "Rolling upgrade: {version}, at most {BUDGET}% of each placement at once, that is {} and {} clusters.",
                cast.budget(false),
                cast.budget(true)
            ),
            (ExpectedEnding::Upgraded, Strategy::BehindCanary) => format!(
                "Canary upgrade: {version} on the {canary} canary clusters first; the other {fleet} wait until all of them are healthy."
            ),
            (ExpectedEnding::Caught, _) => format!(
                "Bad version: the pods of {version} exit at start, again and again; the canary catches it, and the other {fleet} clusters never get it."
            ),
            (ExpectedEnding::RolledBack, _) => {
                format!("Rollback: back to {version}; only the clusters that had been upgraded are changed.")
            }
        }
    }
}

impl Act {
    /// Returns what is wrong with the commits of the step, if anything. `before` are the clusters
    /// that the previous step changed.
    fn check(&self, cast: Cast, facts: &StepFacts, before: &BTreeSet<ClusterName>) -> Result<(), String> {
        for (canary, name) in [(false, FLEET), (true, CANARY)] {
            let (peak, budget) = (facts.peak.get(&canary).copied().unwrap_or(0), cast.budget(canary));
            if self.ending != ExpectedEnding::Installed && peak > budget {
                return Err(format!("{name} had {peak} clusters in flight; the budget is {budget}"));
            }
        }
        if self.strategy == Strategy::BehindCanary
            && self.ending == ExpectedEnding::Upgraded
            && let Some(early) = facts.ahead_of_canary.first()
        {
            return Err(format!("{early} was assigned the version before the canary had passed"));
        }
        let outside = facts.touched.iter().find(|cluster| !is_canary(cluster));
        if let (ExpectedEnding::Caught | ExpectedEnding::RolledBack, Some(outside)) = (self.ending, outside) {
            return Err(format!("{outside} was changed, but is outside the canary"));
        }
        let expected = match self.ending {
            ExpectedEnding::Installed | ExpectedEnding::Upgraded => cast.all(),
            ExpectedEnding::Caught => cast.budget(true),
            ExpectedEnding::RolledBack => before.len(),
        };
        let found = facts.touched.len();
        if found != expected {
            return Err(format!("{found} clusters were changed; expected {expected}"));
        }
        match facts.touched.difference(before).next() {
            Some(other) if self.ending == ExpectedEnding::RolledBack => {
                Err(format!("{other} was changed, but had not been upgraded"))
            }
            _ => Ok(()),
        }
    }

    /// What the hub should have of the step's version at the end.
    fn wanted(&self, cast: Cast) -> AtHub {
        let all = cast.all();
        match self.ending {
            ExpectedEnding::Caught => AtHub { instances: 0, works: cast.budget(true), works_outside: 0, all },
            ExpectedEnding::Installed | ExpectedEnding::Upgraded | ExpectedEnding::RolledBack => {
                AtHub { instances: all, works: all, works_outside: cast.fleet, all }
            }
        }
    }
}

/// The result of a step.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Played {
    pub(super) step: &'static str,
    pub(super) version: &'static str,
    pub(super) clusters_touched: usize,
    pub(super) seconds: f64,
    /// Writes of the manager.
    pub(super) writes: usize,
    pub(super) fleet: Exposure,
    pub(super) canary: Exposure,
    pub(super) outcome: String,
    pub(super) as_told: bool,
}

/// The maximum number of clusters of a placement that were in flight at once, and the budget.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exposure {
    pub(super) peak_in_flight: usize,
    /// `None` for an install, which is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) budget: Option<usize>,
}

/// The result of the demo.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Curtain {
    Told,
    /// Something expected did not happen, or something forbidden did.
    Wrong,
    Interrupted,
}

/// Everything that the steps need.
pub(super) struct DemoContext {
    pub(super) client: Client,
    pub(super) cast: Cast,
    pub(super) news: UnboundedReceiver<News>,
    pub(super) record: DemoRecord,
    /// Writes of the manager.
    pub(super) writes: Arc<AtomicUsize>,
    pub(super) played: Vec<Played>,
    /// The clusters that the last step changed.
    touched: BTreeSet<ClusterName>,
}

impl DemoContext {
    pub(super) fn new(
        client: Client,
        cast: Cast,
        news: UnboundedReceiver<News>,
        writes: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            client,
            cast,
            news,
            record: DemoRecord::default(),
            writes,
            played: Vec::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Runs the steps until one does not go as expected.
    pub(super) async fn play(
        &mut self,
        output: &mut Output,
        stopped: &mut (impl Future<Output = ()> + Unpin),
    ) -> anyhow::Result<Curtain> {
        for (number, act) in STORY.iter().enumerate() {
            if output.format().is_none() {
                output.line(format_args!("{}. {}", number + 1, act.line(self.cast)))?;
                output.finish()?;
            }
            tokio::select! {
                done = self.step(act, output) => if !done? { return Ok(Curtain::Wrong) },
                () = &mut *stopped => return Ok(Curtain::Interrupted),
            }
        }
        Ok(Curtain::Told)
    }

    /// Runs one step. Returns whether it went as expected.
    async fn step(&mut self, act: &Act, output: &mut Output) -> anyhow::Result<bool> {
        let give_up = Duration::from_secs(60) + Duration::from_millis(30) * self.cast.all() as u32;
        let deadline = tokio::time::Instant::now() + give_up;
        self.publish(act, deadline).await?;
        let (began, writes) = (Instant::now(), self.writes.load(Ordering::Relaxed));
        self.record.begin();
        objects::put(&self.client, &objects::addon(act.version, act.strategy)).await?;
        let mut picture = Picture::new(output);
        let mut tick = interval(Duration::from_millis(100));
        let in_time = loop {
            tokio::select! {
                Some(news) = self.news.recv() => self.record.take(news),
                _ = tick.tick() => picture.show(output, self.progress(act.version), began.elapsed())?,
                () = sleep_until(deadline) => break false,
            }
            // Takes all pending events, so that a burst is evaluated once.
            while let Ok(news) = self.news.try_recv() {
                self.record.take(news);
            }
            if self.is_over(act) {
                break true;
            }
        };
        let took = began.elapsed();
        picture.end(output, self.progress(act.version), took)?;
        let facts = self.record.facts(is_canary);
        let judged = match in_time {
            true => self.judge(act, &facts).await?,
            false => Err(format!("not done after {}", super::picture::seconds(took))),
        };
        let budget =
            |canary: bool| (act.ending != ExpectedEnding::Installed).then(|| self.cast.budget(canary));
        let exposure = |canary: bool| Exposure {
            peak_in_flight: facts.peak.get(&canary).copied().unwrap_or(0),
            budget: budget(canary),
        };
        self.played.push(Played {
            step: act.name,
            version: act.version,
            clusters_touched: facts.touched.len(),
            seconds: took.as_secs_f64(),
            writes: self.writes.load(Ordering::Relaxed) - writes,
            fleet: exposure(false),
            canary: exposure(true),
            as_told: judged.is_ok(),
            outcome: judged.clone().unwrap_or_else(|why| why),
        });
        self.touched = facts.touched;
        Ok(judged.is_ok())
    }

    /// Publishes the version, and waits until the manager lists it.
    async fn publish(&mut self, act: &Act, deadline: tokio::time::Instant) -> anyhow::Result<()> {
        for object in objects::release(act.version)? {
            objects::put(&self.client, &object).await?;
        }
        if act.ending == ExpectedEnding::Installed {
            return Ok(());
        }
        let is_offered = |addon: &ClusterManagementAddOn| {
            let status = addon.status.as_ref();
            status.is_some_and(|status| status.supported_versions.iter().any(|one| one == act.version))
        };
        while !self.record.addon.as_deref().is_some_and(is_offered) {
            tokio::select! {
                Some(news) = self.news.recv() => self.record.take(news),
                () = sleep_until(deadline) => anyhow::bail!("the manager does not list the version {}", act.version),
            }
        }
        Ok(())
    }

    /// The fleet, then the canary.
    fn progress(&self, version: &str) -> [PlacementProgress; 2] {
        let mut progress = [self.cast.fleet, self.cast.canary]
            .map(|total| PlacementProgress { total, ..PlacementProgress::default() });
        for (cluster, standing) in &self.record.standings {
            let [fleet, canary] = &mut progress;
            let of = if is_canary(cluster) { canary } else { fleet };
            let has_settled = standing.has_settled_on(version);
            // Applied, and not recorded in its status yet: in flight, as everywhere else.
            let is_unrecorded = &*standing.version == version && !has_settled;
            of.settled += usize::from(has_settled);
            of.in_flight += usize::from(standing.is_in_flight() || is_unrecorded);
            of.failed += usize::from(standing.is_in_flight() && standing.has_failed());
        }
        progress
    }

    fn is_over(&self, act: &Act) -> bool {
        let progress = self.progress(act.version);
        let [_, canary] = progress;
        let Some(addon) = self.record.addon.as_deref() else { return false };
        match act.ending {
            ExpectedEnding::Installed | ExpectedEnding::Upgraded | ExpectedEnding::RolledBack => {
                progress.iter().all(|one| one.settled == one.total)
                    && [FLEET, CANARY].iter().all(|name| has_completed(addon, name, act.version))
            }
            ExpectedEnding::Caught => {
                canary.failed == self.cast.budget(true)
                    && reason(addon, CANARY) == Reason::Upgrading
                    && reason(addon, FLEET) == Reason::WaitingForCanary
            }
        }
    }

    /// Returns the outcome of a step as text, or what is wrong with it.
    async fn judge(&self, act: &Act, facts: &StepFacts) -> anyhow::Result<Result<String, String>> {
        let cast = self.cast;
        if self.record.interrupted {
            return Ok(Err("a watch was interrupted: commits may have been missed".to_owned()));
        }
        if let Err(why) = act.check(cast, facts, &self.touched) {
            return Ok(Err(why));
        }
        let (at_hub, wanted) = (at_hub(&self.client, act.version).await?, act.wanted(cast));
        if at_hub != wanted {
            return Ok(Err(format!("the hub has {at_hub}; expected {wanted}")));
        }
        Ok(Ok(match act.ending {
            ExpectedEnding::Installed => "installed everywhere".to_owned(),
            ExpectedEnding::Upgraded if act.strategy == Strategy::BehindCanary => {
                "passed the canary, then upgraded everywhere".to_owned()
            }
            ExpectedEnding::Upgraded => "upgraded everywhere".to_owned(),
            ExpectedEnding::Caught => {
                format!("caught: {} failed, 0 outside the canary", cast.budget(true))
            }
            ExpectedEnding::RolledBack => format!("all on {} again", act.version),
        }))
    }
}

/// What the hub has of a version.
#[derive(Debug, PartialEq, Eq)]
struct AtHub {
    /// Instances that run the version.
    instances: usize,
    works: usize,
    works_outside: usize,
    /// Instances of any version.
    all: usize,
}

impl std::fmt::Display for AtHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { instances, works, works_outside, all } = self;
        write!(
            f,
            "{instances} of {all} instances on it, {works} works, {works_outside} of them outside the canary"
        )
    }
}

async fn at_hub(client: &Client, version: &str) -> anyhow::Result<AtHub> {
    let instances: Api<ManagedClusterAddOn> = Api::all(client.clone());
    let listed = instances.list(&ListParams::default()).await.context("failed to list instances")?;
    let ours: Vec<&ManagedClusterAddOn> = listed.items.iter().filter(|one| one.name_any() == ADDON).collect();
    let runs = |one: &&&ManagedClusterAddOn| {
        one.status.as_ref().and_then(|status| status.current_version.as_deref()) == Some(version)
    };
    let works: Api<ManifestWork> = Api::all(client.clone());
    let selector = format!("{}={ADDON},{}={version}", labels::ADDON_NAME, labels::ADDON_VERSION);
    let listed = works.list_metadata(&ListParams::default().labels(&selector)).await;
    let works = listed.context("failed to list works")?.items;
    let outside = works.iter().filter(|work| !work.namespace().unwrap_or_default().starts_with("canary-"));
    Ok(AtHub {
        instances: ours.iter().filter(runs).count(),
        works: works.len(),
        works_outside: outside.count(),
        all: ours.len(),
    })
}

/// The entry of a placement in the add-on's status.
fn progression(addon: &ClusterManagementAddOn, placement: &str) -> Value {
    let status = json!(addon.status);
    let all = status["installProgression"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["name"] == placement).unwrap_or_default()
}

fn progressing(addon: &ClusterManagementAddOn, placement: &str) -> Value {
    let conditions = progression(addon, placement)["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == PROGRESSING).unwrap_or_default()
}

fn reason(addon: &ClusterManagementAddOn, placement: &str) -> ConditionReason {
    ConditionReason::read(progressing(addon, placement)["reason"].as_str().unwrap_or_default())
}

/// Whether the add-on's status reports that a placement has completed a version.
fn has_completed(addon: &ClusterManagementAddOn, placement: &str, version: &str) -> bool {
    let references =
        progression(addon, placement)["configReferences"].as_array().cloned().unwrap_or_default();
    let chooses = references.iter().find(|one| one["resource"] == "addonhubconfigs");
    progressing(addon, placement)["status"] == "False"
        && chooses.is_some_and(|one| {
            one["name"] == objects::config(version).as_str()
                && one["desiredConfigSpecHash"] == one["lastAppliedConfigSpecHash"]
                && one["desiredConfigSpecHash"] == one["lastKnownGoodConfigSpecHash"]
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const CAST: Cast = Cast { fleet: 16, canary: 4 };

    fn clusters(prefix: &str, count: usize) -> BTreeSet<ClusterName> {
        (1..=count).map(|number| ClusterName::parse(&format!("{prefix}-{number}")).unwrap()).collect()
    }

    fn act(name: &str) -> &'static Act {
        STORY.iter().find(|act| act.name == name).unwrap()
    }

    fn facts(fleet: usize, canary: usize, touched: BTreeSet<ClusterName>) -> StepFacts {
        StepFacts {
            peak: BTreeMap::from([(false, fleet), (true, canary)]),
            touched,
            ahead_of_canary: Vec::new(),
        }
    }

    fn everybody() -> BTreeSet<ClusterName> {
        clusters("aws", 16).union(&clusters("canary", 4)).cloned().collect()
    }

    fn check(name: &str, facts: &StepFacts) -> Result<(), String> {
        act(name).check(CAST, facts, &clusters("canary", 1))
    }

    fn refused(name: &str, facts: &StepFacts) -> String {
        check(name, facts).unwrap_err()
    }

    #[test]
    fn a_story_that_goes_as_it_should_passes() {
        assert_eq!(check("fresh install", &facts(16, 4, everybody())), Ok(()));
        assert_eq!(check("rolling upgrade", &facts(4, 1, everybody())), Ok(()));
        assert_eq!(check("canary upgrade", &facts(4, 1, everybody())), Ok(()));
        assert_eq!(check("bad version", &facts(0, 1, clusters("canary", 1))), Ok(()));
        assert_eq!(check("rollback", &facts(0, 1, clusters("canary", 1))), Ok(()));
    }

    #[test]
    fn more_in_flight_than_the_budget_is_wrong_in_every_step_but_the_install() {
        assert_eq!(
            refused("rolling upgrade", &facts(5, 1, everybody())),
            "aws-placement had 5 clusters in flight; the budget is 4"
        );
        assert_eq!(
            refused("rollback", &facts(0, 2, clusters("canary", 1))),
            "canary-placement had 2 clusters in flight; the budget is 1"
        );
    }

    #[test]
    fn a_cluster_ahead_of_the_canary_is_wrong() {
        let early = clusters("aws", 1).into_iter().collect();
        let facts = StepFacts { ahead_of_canary: early, ..facts(4, 1, everybody()) };
        assert_eq!(
            refused("canary upgrade", &facts),
            "aws-1 was assigned the version before the canary had passed"
        );
    }

    #[test]
    fn a_bad_version_outside_the_canary_is_wrong() {
        let touched = clusters("canary", 1).union(&clusters("aws", 1)).cloned().collect();
        assert_eq!(
            refused("bad version", &facts(0, 1, touched)),
            "aws-1 was changed, but is outside the canary"
        );
    }

    #[test]
    fn a_rollback_of_clusters_that_had_not_moved_is_wrong() {
        assert_eq!(
            refused("rollback", &facts(0, 1, clusters("canary", 2))),
            "2 clusters were changed; expected 1"
        );
        let other = BTreeSet::from([ClusterName::parse("canary-2").unwrap()]);
        assert_eq!(
            refused("rollback", &facts(0, 1, other)),
            "canary-2 was changed, but had not been upgraded"
        );
    }

    #[test]
    fn an_upgrade_that_leaves_somebody_out_is_wrong() {
        assert_eq!(
            refused("rolling upgrade", &facts(4, 1, clusters("aws", 16))),
            "16 clusters were changed; expected 20"
        );
    }
}
