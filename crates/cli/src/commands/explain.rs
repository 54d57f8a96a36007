//! `aviary explain`: why a rollout, or one cluster of it, is stuck.

mod advice;
mod cluster;
mod text;

use std::collections::BTreeMap;

use anyhow::anyhow;
use aviary_controller::View;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, ClusterReport, Plan};
use aviary_engine::reason::Reason;
use aviary_engine::verdict::{self, Verdict};
use jiff::Timestamp;
use serde::Serialize;

use super::plan::report::{ProblemLine, groups};
use super::status::report::{AddOnState, PlacementState, left_out};
use super::{Outcome, Session};
use crate::live::{Leader, LiveArgs, block_on, seconds};
use crate::output::counted;
use advice::Advisor;
use cluster::ClusterStory;
pub(crate) use cluster::{ConfigStory, RevisionStory, revision_story};

const DESCRIPTION: &str = "\
Explain why a rollout is stuck: what each placement is waiting for, and one reason for every cluster that has not settled. Clusters \
with the same reason are grouped, and each group has a suggested action.

With CLUSTER, shows everything about that cluster: its desired, assigned and applied revision, its conditions and works, the reason \
for its state, and the suggested action.

The report is computed from the current state of the hub, by the same code as the manager's decisions. Nothing is written.";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  now            the time of the report
  addOn          its name
  state, message as in aviary status
  placements[]   as in aviary status
  reasons[]      {placement, reason, message, advice, count, clusters[]}
  problems[]     {severity, reason, message}
  notes[]        problems with the hub or its manager
Output with CLUSTER and -o json:
  version, now, addOn, cluster
  placement      the placement that governs it; absent if there is none
  decision       {kind, reason, message, advice}
  desired, told (assigned), applied
                 revisions {id, version, configs[]: {kind, namespace, name, hash}}
  overridden     the kinds of config that the instance overrides
  managedCluster {reachable, unreachableSince, deleting, optedOut, labels}; absent if
                 there is none
  conditions[]   {type, status, reason, message, since}
  works[]        {name, generation, applied, available, health, asTold, deleting};
                 asTold: it has the assigned revision
  notes[]

Exit codes:
  0 success; 1 the hub could not be read, or there is no such add-on or cluster;
  2 wrong usage";

const EXAMPLES: &str = "\
Examples:
  Why is the rollout stuck?
    $ aviary explain helloworld

  Details of one cluster
    $ aviary explain helloworld cluster-0042

  Which clusters are waiting for the canary?
    $ aviary explain helloworld -o json \\
        | jq -r '.reasons[] | select(.reason == \"WaitingForCanary\") | .clusters[]'";

/// Explain why a rollout or a cluster is stuck, and what to do
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
    state: Verdict,
    message: String,
    placements: Vec<PlacementState>,
    reasons: Vec<AdvisedGroup>,
    problems: Vec<ProblemLine>,
    notes: Vec<String>,
    /// What to do first, if it has nothing to do with the rollout itself.
    #[serde(skip)]
    first_step: Option<String>,
}

/// Clusters with the same reason, and the suggested action.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AdvisedGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    reason: Reason,
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
    let mut notes = left_out(&live.view);
    let rests = live.view.observe(&args.addon, |observed| plan::plan(observed, session.now).is_at_rest());
    // If the plan has writes pending and no manager makes them, the user should know.
    let leader = match rests {
        Some(false) => args.live.leader(&live.connection.client, Some(&args.addon), session.now).await,
        _ => Leader::Unknown,
    };
    notes.extend(leader.note());
    let advisor = Advisor {
        program: &session.program,
        addon: &args.addon,
        live: &args.live,
        hub: &args.live.typed(),
        leader: &leader,
    };
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
                let page = text::one(&told, &advisor, wide, session.output.paint);
                session.output.text(&page)?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// Works of an earlier version of Aviary, or of another manager, are judged by their conditions
/// alone.
fn not_probed(plan: &Plan, advisor: &Advisor<'_>) -> Option<String> {
    let count = plan.report.not_probed;
    (count > 0).then(|| {
        let Advisor { program, addon, hub, .. } = advisor;
        let (clusters, whose) = (counted(count, "cluster"), plan.report.maker_of_not_probed());
        format!(
            "not probed: {clusters} have works {whose}, judged by their conditions alone; {program} rollout reprobe {addon}{hub} adds probes"
        )
    })
}

fn whole(
    view: &mut View,
    advisor: &Advisor<'_>,
    mut notes: Vec<String>,
    now: Timestamp,
) -> Option<Explanation> {
    view.observe(advisor.addon, |observed| {
        let plan = plan::plan(observed, now).recorded();
        let told = AddOnState::of(observed, &plan);
        let first_step = told.first_step(advisor.program, advisor.live);
        let AddOnState { name, state, message, placements, problems, .. } = told;
        let reasons = reasons(observed, &plan, advisor);
        notes.extend(not_probed(&plan, advisor));
        let now = seconds(now).to_string();
        Explanation {
            version: 1,
            now,
            add_on: name,
            state,
            message,
            placements,
            reasons,
            problems,
            notes,
            first_step,
        }
    })
}

/// Groups the clusters that have not settled by placement and reason, in the order of the
/// placements, the largest group first.
fn reasons(observed: &Observed, plan: &Plan, advisor: &Advisor<'_>) -> Vec<AdvisedGroup> {
    let mut by_placement: BTreeMap<usize, Vec<&ClusterReport>> = BTreeMap::new();
    for cluster in plan.report.clusters.iter().filter(|cluster| !verdict::is_at_rest(&cluster.decision)) {
        by_placement.entry(cluster.placement.unwrap_or(usize::MAX)).or_default().push(cluster);
    }
    let mut reasons = Vec::new();
    for (placement, clusters) in by_placement {
        let spec = observed.addon.strategy.placements().get(placement);
        let mut grouped = groups(clusters.iter().copied());
        grouped.sort_by_key(|group| std::cmp::Reverse(group.count));
        for group in grouped {
            // All clusters of a group have the same kind of reason, so the first one represents
            // them.
            let first = clusters
                .iter()
                .find(|cluster| Some(cluster.cluster.as_str()) == group.clusters.first().map(String::as_str));
            reasons.push(AdvisedGroup {
                placement: spec.map(|spec| spec.name.to_string()),
                reason: group.reason,
                message: group.message,
                advice: first
                    .map(|cluster| advisor.advice(cluster, spec, observed.refused_unnamed))
                    .unwrap_or_default(),
                count: group.count,
                clusters: group.clusters,
            });
        }
    }
    reasons
}
