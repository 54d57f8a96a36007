//! Computes the waves of a rollout: runs the real planner pass by pass on a fleet whose agents
//! apply everything immediately.
//!
//! This is the best case, and the output says so. Failed clusters stay failed, and offline clusters
//! stay offline.

use std::collections::HashMap;

use aviary_engine::configs::{Pin, Revision};
use aviary_engine::explain::Decision;
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::{Instance, Observed, Seen, Work};
use aviary_engine::plan::{self, ClusterReport, Plan, StatusWrite};
use aviary_engine::reason::Reason;
use aviary_engine::rollout::Counts;
use aviary_engine::simulate::world::World;
use jiff::Timestamp;

/// The number of clusters to examine, over all passes, before giving up: a few seconds of work.
const MOST_LOOKS: usize = 1_000_000;

#[derive(Debug)]
pub(super) struct Walk {
    pub(super) waves: Vec<Wave>,
    pub(super) end: End,
}

/// Clusters that start before any of them reports.
#[derive(Debug)]
pub(super) struct Wave {
    /// When the wave starts, in seconds from now.
    pub(super) after_seconds: i64,
    pub(super) starts: Vec<StartedCluster>,
}

/// One cluster that is assigned a revision.
#[derive(Clone, Debug)]
pub(super) struct StartedCluster {
    pub(super) cluster: ClusterName,
    pub(super) placement: Option<usize>,
    pub(super) kind: Reason,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
}

/// How the rollout ends, with the clusters that have not settled.
#[derive(Debug)]
pub(super) enum End {
    /// Every cluster is up to date.
    Settled,
    /// Nothing moves any more by itself.
    Stands { left: Vec<ClusterReport> },
    /// Too many waves to compute; `more` is an estimate of the rest.
    Long { left: Vec<ClusterReport>, more: usize },
}

/// Simulates the whole rollout.
pub(super) fn walk(observed: &Observed, now: Timestamp) -> Walk {
    let mut world = World::new(observed.clone());
    let mut clock = now;
    let mut looks = 0;
    let mut waves = Vec::new();
    loop {
        let mut wave = Wave { after_seconds: clock.duration_since(now).as_secs(), starts: Vec::new() };
        let rest = loop {
            let plan = plan::plan(&world.observed, clock);
            looks += plan.report.clusters.len() + 1;
            if plan.is_at_rest() || looks > MOST_LOOKS {
                break plan;
            }
            wave.starts.extend(starts(&world.observed, &plan));
            for write in plan.writes() {
                world.commit(&write);
            }
        };
        waves.extend(Some(wave).filter(|wave| !wave.starts.is_empty()));
        if looks > MOST_LOOKS {
            return Walk { waves, end: long(&rest) };
        }
        if agents_work(&mut world) {
            continue;
        }
        // No agent has work left; a cluster may be waiting for a time.
        match rest.recheck_at {
            Some(at) if at > clock => clock = at,
            _ => return Walk { waves, end: end(&rest) },
        }
    }
}

fn unsettled(plan: &Plan) -> Vec<ClusterReport> {
    plan.report.clusters.iter().filter(|cluster| cluster.decision != Decision::Settled).cloned().collect()
}

fn end(plan: &Plan) -> End {
    let left = unsettled(plan);
    if left.is_empty() { End::Settled } else { End::Stands { left } }
}

fn long(plan: &Plan) -> End {
    let waves = |counts: &Counts| counts.waiting.div_ceil(counts.budget.max(1));
    let more = plan.report.placements.iter().map(|placement| waves(&placement.counts)).max().unwrap_or(0);
    End::Long { left: unsettled(plan), more }
}

/// The clusters that a plan starts, each with its current and its new revision.
pub(super) fn starts(observed: &Observed, plan: &Plan) -> Vec<StartedCluster> {
    let told: HashMap<&ClusterName, &StatusWrite> =
        plan.starts().map(|write| (&write.cluster, write)).collect();
    plan.report
        .clusters
        .iter()
        .filter(|cluster| matches!(cluster.decision, Decision::Start(_)))
        .map(|cluster| {
            let to = told.get(&cluster.cluster).map(|write| write.status.told_revision());
            let instance = observed.instances.get(&cluster.cluster);
            let (from, to) = shown(observed, instance.map(|instance| &**instance), to.as_ref());
            StartedCluster {
                cluster: cluster.cluster.clone(),
                placement: cluster.placement,
                kind: cluster.decision.code(),
                from,
                to: to.or_else(|| cluster.told.as_deref().map(str::to_owned)),
            }
        })
        .collect()
}

/// The current and the new version of a cluster, with revision IDs if the versions are equal.
fn shown(
    observed: &Observed,
    instance: Option<&Instance>,
    to: Option<&Revision>,
) -> (Option<String>, Option<String>) {
    let applied: Vec<Pin> = instance
        .into_iter()
        .flat_map(|instance| &instance.status.references)
        .filter_map(|reference| reference.applied.clone())
        .collect();
    let has = Some(Revision::new(applied)).filter(|revision| !revision.pins().is_empty());
    let label = |revision: &Revision| -> Text { plan::label(observed, revision) };
    match (has, to) {
        (Some(has), Some(to)) => {
            let current = instance.and_then(|instance| instance.status.current_version.clone());
            let known = |version: &Text| &**version != aviary_api::names::UNKNOWN_VERSION;
            let (mut before, after) = (label(&has), label(to));
            if before == has.id() && after != to.id() {
                before = current.filter(known).unwrap_or(before);
            }
            if before == after && has != *to {
                return (Some(format!("{before} ({})", has.id())), Some(format!("{after} ({})", to.id())));
            }
            (Some(before.to_string()), Some(after.to_string()))
        }
        (None, Some(to)) => (None, Some(label(to).to_string())),
        (has, None) => (has.map(|has| label(&has).to_string()), None),
    }
}

/// Lets all agents apply their works. Returns whether there was anything to do.
fn agents_work(world: &mut World) -> bool {
    let told: Vec<ClusterName> = world.observed.instances.keys().cloned().collect();
    let mut worked = false;
    for cluster in &told {
        worked |= world.render_elsewhere(cluster);
    }
    let reachable = |cluster: &ClusterName| {
        world.observed.clusters.get(cluster).is_some_and(|cluster| cluster.unreachable.is_none())
    };
    let unseen = |work: &Work| match work.applied {
        Seen::NotYet => true,
        Seen::Yes => work.available == Seen::NotYet,
        Seen::No { .. } => false,
    };
    let waiting =
        world.observed.works.iter().filter(|(cluster, works)| reachable(cluster) && works.iter().any(unseen));
    let waiting: Vec<ClusterName> = waiting.map(|(cluster, _)| cluster.clone()).collect();
    for cluster in &waiting {
        world.acknowledge(cluster, &Seen::Yes, &Seen::Yes);
    }
    worked || !waiting.is_empty()
}
