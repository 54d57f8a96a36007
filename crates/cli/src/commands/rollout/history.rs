//! `history`: the revisions that placements have completed, and their marks.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::anyhow;
use aviary_controller::CompletedRevision;
use aviary_engine::configs::{ConfigRef, Revision};
use aviary_engine::duration;
use aviary_engine::fleet::Fleet;
use aviary_engine::observed::Observed;
use aviary_engine::reason::{RevisionMark, RolloutOutcome};
use serde::Serialize;

use super::attempts::{self, AttemptLine};
use super::authors::{self, Approval, Author};
use super::spec::StoredAddOn;
use super::{Outcome, RolloutSelection, Session, undo};
use crate::commands::explain::{ConfigStory, RevisionStory, revision_story};
use crate::connect::Connection;
use crate::live::seconds;
use crate::objects;
use crate::output::{Paint, Printout, Style, Table};

const DESCRIPTION: &str = "\
List the revisions that each placement has completed, that is, that all its clusters had settled on. You can roll back to these. \
Also shows who changed the add-on and its configs last, and who approved deletions, as the hub records it, and the last rollouts that failed, were \
replaced or were rolled back before they completed.

A revision is a set of configs with their contents. The contents are stored with it, even if an object was edited since. \
The manager keeps the last ten revisions of each placement.

Marks: wanted, the desired revision; known good, what new clusters get; applied, what all clusters settled on last; \
withdrawn, rolled back since: rolling it out again is an upgrade like any other, behind its canary.";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  addOn
  changedBy[]    {manager, changed, at}: who changed the add-on and its configs last, the
                 latest change first; manager is the field manager
  approval       {deletions, manager, at}: who approved how many deletions; absent if nobody has
  placements[]   {placement, revisions[], attempts[]}
    revisions[]  {number, id, version, startedAt, completedAt, tookSeconds, outcome, marks[],
                 configs[]}; number is absent for a desired revision that was never
                 completed; outcome is Completed, RolledBack or InProgress; marks are Wanted,
                 KnownGood, Applied and Withdrawn; configs[]: {kind, namespace, name, hash}
    attempts[]   {placement, what, startedAt, outcome, why, endedAt, tookSeconds}: rollouts that
                 did not complete; outcome is Failed, Replaced, RolledBack or InProgress

Exit codes:
  0 success; 1 the hub could not be read, or there is no such add-on; 2 wrong usage

Examples:
  $ aviary rollout history helloworld
  $ aviary rollout history helloworld --placement default/fleet -o json";

/// List the revisions that you can roll back to
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  $ aviary rollout history helloworld
  $ aviary rollout history helloworld --placement default/fleet -o json", after_long_help = STRUCTURE)]
pub(super) struct Args {
    #[command(flatten)]
    which: RolloutSelection,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HistoryReport {
    version: u32,
    add_on: String,
    changed_by: Vec<Author>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    placements: Vec<PlacementHistory>,
}

#[derive(Debug, Serialize)]
struct PlacementHistory {
    placement: String,
    revisions: Vec<Line>,
    attempts: Vec<AttemptLine>,
    /// There is a revision to roll back to.
    #[serde(skip)]
    can_undo: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_seconds: Option<i64>,
    outcome: RolloutOutcome,
    marks: Vec<RevisionMark>,
    #[serde(flatten)]
    revision: RevisionStory,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let which = &args.which;
    let mut live = which.live.read(Some(&which.addon)).await?;
    let stored = StoredAddOn::read(&live.connection, &which.addon).await?;
    let chosen: Vec<String> =
        stored.chosen(which.placement.as_deref())?.into_iter().map(|entry| entry.name).collect();
    let kept = live.view.history(&which.addon);
    let desired = live.view.observe(&which.addon, desired_configs).unwrap_or_default();
    let changed_by = authors_of(&live.connection, &stored, &desired).await;
    let told = live
        .view
        .observe(&which.addon, |observed| HistoryReport {
            version: 1,
            add_on: observed.addon.name.to_string(),
            changed_by,
            approval: authors::approval(&stored.object),
            placements: placements(observed, &kept, &chosen),
        })
        .ok_or_else(|| anyhow!("there is no add-on {}", which.addon))?;
    if session.output.data(&told)? {
        return Ok(Outcome::Done);
    }
    let mut text = render(&told, session.output.is_wide(), session.output.paint);
    let (program, options, addon) = (&session.program, which.options(), &which.addon);
    text.line(match told.placements.iter().any(|placement| placement.can_undo) {
        true => {
            format!("Next: {program} rollout undo {addon} --dry-run{options} # what a rollback would write")
        }
        false => format!("Next: {program} status {addon}{}", which.live.typed()),
    });
    session.output.text(&text)?;
    Ok(Outcome::Done)
}

/// The configs of the desired revisions.
fn desired_configs(observed: &Observed) -> BTreeSet<ConfigRef> {
    let fleet = Fleet::line_up(observed);
    let desired = fleet.governors.iter().filter_map(|governor| governor.desired.as_ref().ok());
    desired.flat_map(Revision::pins).map(|pin| (*pin.config).clone()).collect()
}

/// Who changed the add-on and its configs last, the latest change first. What cannot be read is
/// left out.
async fn authors_of(
    connection: &Connection,
    stored: &StoredAddOn<'_>,
    configs: &BTreeSet<ConfigRef>,
) -> Vec<Author> {
    const MOST_CONFIGS: usize = 20;
    let mut found: Vec<Author> = authors::last(&stored.object, "the add-on").into_iter().collect();
    for config in configs.iter().take(MOST_CONFIGS) {
        let Ok((_, Some(object))) = objects::get(connection, config).await else { continue };
        found.extend(authors::last(&object, &config.to_string()));
    }
    found.sort_by(|one, other| other.at.cmp(&one.at));
    found
}

fn placements(observed: &Observed, kept: &[CompletedRevision], chosen: &[String]) -> Vec<PlacementHistory> {
    let fleet = Fleet::line_up(observed);
    let governors =
        fleet.governors.iter().filter(|governor| chosen.contains(&governor.spec.name.to_string()));
    governors
        .map(|governor| {
            let wanted = governor.desired.as_ref().ok();
            let recorded = governor.recorded;
            let good = recorded.and_then(|recorded| recorded.known_good.as_ref());
            let applied = recorded.and_then(|recorded| recorded.applied.as_ref());
            let own: Vec<&CompletedRevision> =
                kept.iter().filter(|one| one.placement == governor.spec.name).collect();
            // If a revision was completed several times, the last time counts.
            let marks = |index: Option<usize>, revision: &Revision| {
                let later = index
                    .is_some_and(|index| own.iter().skip(index + 1).any(|one| one.revision == *revision));
                let marks = [
                    (RevisionMark::Wanted, wanted),
                    (RevisionMark::KnownGood, good),
                    (RevisionMark::Applied, applied),
                ];
                let is = |of: &Option<&Revision>| !later && *of == Some(revision);
                let withdrawn = index.and_then(|index| own.get(index)).is_some_and(|kept| kept.withdrawn);
                let marks = marks.iter().filter(|(_, of)| is(of)).map(|(mark, _)| *mark);
                marks.chain(withdrawn.then_some(RevisionMark::Withdrawn)).collect()
            };
            let line = |index: Option<usize>, one: Option<&CompletedRevision>, revision: &Revision| Line {
                number: one.map(|one| one.number),
                started_at: one.and_then(|one| one.started).map(|at| seconds(at).to_string()),
                completed_at: one.and_then(|one| one.at).map(|at| at.to_string()),
                took_seconds: one.and_then(|one| Some(one.at?.duration_since(one.started?).as_secs())),
                outcome: match one {
                    Some(one) if one.withdrawn => RolloutOutcome::RolledBack,
                    Some(_) => RolloutOutcome::Completed,
                    None => RolloutOutcome::InProgress,
                },
                marks: marks(index, revision),
                revision: revision_story(observed, revision),
            };
            let mut revisions: Vec<Line> = own
                .iter()
                .enumerate()
                .map(|(index, one)| line(Some(index), Some(one), &one.revision))
                .collect();
            let new = wanted.filter(|wanted| own.iter().all(|one| one.revision != **wanted));
            revisions.extend(new.map(|wanted| line(None, None, wanted)));
            let placement = governor.spec.name.to_string();
            let can_undo = undo::previous(&own, wanted).is_some();
            PlacementHistory { placement, revisions, attempts: attempts::of(&fleet, governor), can_undo }
        })
        .collect()
}

fn render(told: &HistoryReport, wide: bool, paint: Paint) -> Printout {
    let mut out = Printout::default();
    if let Some(author) = told.changed_by.first() {
        let at = author.at.as_deref().unwrap_or("an unknown time");
        out.fitted(wide, "", "  ", &format!("Last change: {} by {} at {at}", author.changed, author.manager));
    }
    if let Some(Approval { deletions, manager, at }) = &told.approval {
        let at = at.as_deref().unwrap_or("an unknown time");
        let text = format!("Approval: {deletions} deletions by {manager} at {at}");
        out.fitted(wide, "", "  ", &text);
    }
    for placement in &told.placements {
        out.line(paint.paint(Style::Bold, &placement.placement));
        if placement.revisions.is_empty() {
            out.line("  no desired revision, and none completed");
            continue;
        }
        let mut table = Table::default();
        table.head(&["REVISION", "VERSION", "COMPLETED", "TOOK", "MARKS", "CONFIGS"]);
        for line in &placement.revisions {
            let config = |config: &ConfigStory| {
                let hash = config.hash.get(..8).unwrap_or(&config.hash);
                format!("{}@{hash}", config.name)
            };
            let words = |mark: &RevisionMark| match mark {
                RevisionMark::Wanted => "wanted",
                RevisionMark::KnownGood => "known good",
                RevisionMark::Applied => "applied",
                RevisionMark::Withdrawn => "withdrawn",
            };
            table.row([
                (Style::Bold, line.number.map_or_else(|| "-".to_owned(), |number| number.to_string())),
                (Style::Plain, line.revision.version.clone().unwrap_or_else(|| line.revision.id.clone())),
                (Style::Plain, line.completed_at.clone().unwrap_or_else(|| "not yet".to_owned())),
                (Style::Plain, took(line.took_seconds)),
                (Style::Green, line.marks.iter().map(words).collect::<Vec<_>>().join(", ")),
                (Style::Plain, line.revision.configs.iter().map(config).collect::<Vec<_>>().join(" ")),
            ]);
        }
        out.add(&if wide { table.render(paint) } else { table.fitted(paint) });
        unfinished(&mut out, placement, wide, paint);
    }
    out
}

fn took(seconds: Option<i64>) -> String {
    let duration = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    duration.map_or_else(|| "-".to_owned(), duration::shown)
}

/// The rollouts that did not complete.
fn unfinished(out: &mut Printout, placement: &PlacementHistory, wide: bool, paint: Paint) {
    for attempt in &placement.attempts {
        let outcome = match attempt.outcome {
            RolloutOutcome::Failed => paint.paint(Style::Red, "failed"),
            RolloutOutcome::Replaced => paint.paint(Style::Yellow, "replaced"),
            RolloutOutcome::RolledBack => paint.paint(Style::Yellow, "rolled back"),
            // The table has the current rollout.
            RolloutOutcome::Completed | RolloutOutcome::InProgress => continue,
        };
        let why = attempt.why.as_deref().unwrap_or_default();
        let text = format!(
            "{}  {outcome} after {}: {}: {why}",
            attempt.started_at,
            took(attempt.took_seconds),
            attempt.what
        );
        out.fitted(wide, "  ", "    ", &text);
    }
}
