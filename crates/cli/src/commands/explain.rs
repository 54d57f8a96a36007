//! `aviary explain`: why a rollout, or one cluster of it, is not further than it is.

mod advice;
mod cluster;
mod text;

use std::collections::BTreeMap;

use anyhow::anyhow;
use aviary_controller::View;
use aviary_engine::explain::Decision;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, ClusterReport, Plan};
use jiff::Timestamp;
use serde::Serialize;

use super::plan::report::{ProblemLine, groups};
use super::status::report::{AddOnState, PlacementState, left_out};
use super::{Outcome, Session};
use crate::live::{LiveArgs, block_on, seconds};
use advice::Advisor;
use cluster::ClusterStory;
pub(crate) use cluster::{ConfigStory, RevisionStory, revision_story};

const DESCRIPTION: &str = "\
Say why a rollout is not further: for each placement what it waits for, and one reason for every cluster that has not settled, those \
with the same reason together, each with what would help.

With CLUSTER, everything about that one: what it should have, what it was told, what it has, its conditions and works, the one reason \
for where it stands, and what would move it.

It is the report of the code that decides on the hub, made from the hub as it is now. Nothing is written.";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; a later version may add fields, and changes or removes none
  now            the time that it is worked out for
  addOn          its name
  state, message as in aviary status
  placements[]   as in aviary status
  reasons[]      {placement, reason, message, advice, count, clusters[]}
  problems[]     {severity, reason, message}
  notes[]        what is odd about the hub or its manager
Output with CLUSTER and -o json:
  version, now, addOn, cluster
  placement      which governs it; absent if none does
  decision       {kind, reason, message, advice}
  desired, told, applied  revisions {id, version, configs[]: {kind, namespace, name, hash}}
  overridden     the kinds of config that its own user chose
  managedCluster {reachable, unreachableSince, deleting, optedOut, labels}; absent if
                 there is none
  conditions[]   {type, status, reason, message, since}
  works[]        {name, generation, applied, available, asTold, deleting}
  notes[]

Exit codes:
  0 it is explained; 1 the hub could not be read, or there is no such add-on or cluster;
  2 wrong usage";

const EXAMPLES: &str = "\
Examples:
  Why does the rollout stand
    $ aviary explain helloworld

  What about that one cluster
    $ aviary explain helloworld cluster-0042

  Which clusters wait for the canary
    $ aviary explain helloworld -o json \\
        | jq -r '.reasons[] | select(.reason == \"WaitingForCanary\") | .clusters[]'";

/// Say why a rollout or a cluster is not further, and what would help
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    /// Name of the add-on
    #[arg(value_name = "ADDON")]
    addon: String,

    /// Name of one cluster
    #[arg(value_name = "CLUSTER")]
    cluster: Option<String>,

    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    version: u32,
    now: String,
    add_on: String,
    state: &'static str,
    message: String,
    placements: Vec<PlacementState>,
    reasons: Vec<Reason>,
    problems: Vec<ProblemLine>,
    notes: Vec<String>,
}

/// Clusters with the same reason, and what would help them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reason {
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    reason: &'static str,
    message: String,
    advice: String,
    count: usize,
    clusters: Vec<String>,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    block_on(explain(args, session))
}

async fn explain(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let mut live = args.live.read(Some(&args.addon)).await?;
    let advisor = Advisor { program: &session.program, addon: &args.addon, hub: &args.live.hub.typed() };
    let mut notes = left_out(&live.view);
    let rests = live.view.observe(&args.addon, |observed| plan::plan(observed, session.now).is_at_rest());
    if rests == Some(false) {
        // Whoever is at work is about to write: only if nobody is, that is worth a word.
        notes.extend(args.live.manager_note(&live.connection.client, session.now).await);
    }
    let wide = session.output.is_wide();
    match &args.cluster {
        None => {
            let told = whole(&mut live.view, &advisor, notes, session.now)
                .ok_or_else(|| anyhow!("there is no add-on {}", args.addon))?;
            if !session.output.data(&told)? {
                let page = text::whole(&told, &advisor, wide, session.output.paint);
                session.output.text(&page)?;
            }
        }
        Some(cluster) => {
            let told = ClusterStory::of(&mut live.view, &advisor, cluster, notes, session.now)?;
            if !session.output.data(&told)? {
                let page = text::one(&told, &advisor, session.output.paint);
                session.output.text(&page)?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn whole(view: &mut View, advisor: &Advisor<'_>, notes: Vec<String>, now: Timestamp) -> Option<Explanation> {
    view.observe(advisor.addon, |observed| {
        let plan = plan::plan(observed, now);
        let AddOnState { name, state, message, placements, problems, .. } = AddOnState::of(observed, &plan);
        let reasons = reasons(observed, &plan, advisor);
        let now = seconds(now).to_string();
        Explanation { version: 1, now, add_on: name, state, message, placements, reasons, problems, notes }
    })
}

/// The clusters that have not settled, by placement and reason, in the order of the placements; the largest group first.
fn reasons(observed: &Observed, plan: &Plan, advisor: &Advisor<'_>) -> Vec<Reason> {
    let mut by_placement: BTreeMap<usize, Vec<&ClusterReport>> = BTreeMap::new();
    for cluster in plan.report.clusters.iter().filter(|cluster| cluster.decision != Decision::Settled) {
        by_placement.entry(cluster.placement.unwrap_or(usize::MAX)).or_default().push(cluster);
    }
    let mut reasons = Vec::new();
    for (placement, clusters) in by_placement {
        let spec = observed.addon.strategy.placements().get(placement);
        let mut grouped = groups(clusters.iter().copied());
        grouped.sort_by_key(|group| std::cmp::Reverse(group.count));
        for group in grouped {
            // All of a group have the same kind of reason: the first speaks for them.
            let first = clusters
                .iter()
                .find(|cluster| Some(cluster.cluster.as_str()) == group.clusters.first().map(String::as_str));
            reasons.push(Reason {
                placement: spec.map(|spec| spec.name.to_string()),
                reason: group.reason,
                message: group.message,
                advice: first.map(|cluster| advisor.advice(cluster, spec)).unwrap_or_default(),
                count: group.count,
                clusters: group.clusters,
            });
        }
    }
    reasons
}
