//! `history`: the revisions that placements have completed, and their marks.

use anyhow::anyhow;
use aviary_controller::Kept;
use aviary_engine::configs::Revision;
use aviary_engine::fleet::Fleet;
use aviary_engine::observed::Observed;
use serde::Serialize;

use super::spec::Stored;
use super::{Outcome, Session, Which};
use crate::commands::explain::{ConfigStory, RevisionStory, revision_story};
use crate::output::{Paint, Printout, Style, Table};

const DESCRIPTION: &str = "\
List the revisions that each placement has completed, that is, that all its clusters had settled on. You can roll back to these.

A revision is a set of configs with their contents. The contents are stored with it, even if an object was edited since. \
The manager keeps the last ten revisions of each placement.

Marks: wanted, the desired revision; known good, what new clusters get; applied, what all clusters settled on last; \
withdrawn, rolled back since: rolling it out again is an upgrade like any other, behind its canary.";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  addOn
  placements[]   {placement, revisions[]}
    revisions[]  {number, id, version, completedAt, marks[], configs[]}; number is absent
                 for a desired revision that was never completed; marks are Wanted,
                 KnownGood, Applied and Withdrawn; configs[]: {kind, namespace, name, hash}

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
    which: Which,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct History {
    version: u32,
    add_on: String,
    placements: Vec<PlacementHistory>,
}

#[derive(Debug, Serialize)]
struct PlacementHistory {
    placement: String,
    revisions: Vec<Line>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    marks: Vec<&'static str>,
    #[serde(flatten)]
    revision: RevisionStory,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let which = &args.which;
    let mut live = which.live.read(Some(&which.addon)).await?;
    let stored = Stored::read(&live.connection, &which.addon).await?;
    let chosen: Vec<String> =
        stored.chosen(which.placement.as_deref())?.into_iter().map(|entry| entry.name).collect();
    let kept = live.view.history(&which.addon);
    let told = live
        .view
        .observe(&which.addon, |observed| History {
            version: 1,
            add_on: observed.addon.name.to_string(),
            placements: placements(observed, &kept, &chosen),
        })
        .ok_or_else(|| anyhow!("there is no add-on {}", which.addon))?;
    if session.output.data(&told)? {
        return Ok(Outcome::Done);
    }
    let mut text = render(&told, session.output.paint);
    let (program, options, addon) = (&session.program, which.options(), &which.addon);
    text.line(format_args!(
        "Next: {program} rollout undo {addon} --dry-run{options} # what a rollback would write"
    ));
    session.output.text(&text)?;
    Ok(Outcome::Done)
}

fn placements(observed: &Observed, kept: &[Kept], chosen: &[String]) -> Vec<PlacementHistory> {
    let fleet = Fleet::line_up(observed);
    let governors =
        fleet.governors.iter().filter(|governor| chosen.contains(&governor.spec.name.to_string()));
    governors
        .map(|governor| {
            let wanted = governor.desired.as_ref().ok();
            let recorded = governor.recorded;
            let good = recorded.and_then(|recorded| recorded.known_good.as_ref());
            let applied = recorded.and_then(|recorded| recorded.applied.as_ref());
            let own: Vec<&Kept> = kept.iter().filter(|one| one.placement == governor.spec.name).collect();
            // If a revision was completed several times, the last time counts.
            let marks = |index: Option<usize>, revision: &Revision| {
                let later = index
                    .is_some_and(|index| own.iter().skip(index + 1).any(|one| one.revision == *revision));
                let marks = [("Wanted", wanted), ("KnownGood", good), ("Applied", applied)];
                let is = |of: &Option<&Revision>| !later && *of == Some(revision);
                let withdrawn = index.and_then(|index| own.get(index)).is_some_and(|kept| kept.withdrawn);
                let marks = marks.iter().filter(|(_, of)| is(of)).map(|(mark, _)| *mark);
                marks.chain(withdrawn.then_some("Withdrawn")).collect()
            };
            let line = |index: Option<usize>, one: Option<&Kept>, revision: &Revision| Line {
                number: one.map(|one| one.number),
                completed_at: one.and_then(|one| one.at).map(|at| at.to_string()),
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
            PlacementHistory { placement: governor.spec.name.to_string(), revisions }
        })
        .collect()
}

fn render(told: &History, paint: Paint) -> Printout {
    let mut out = Printout::default();
    for placement in &told.placements {
        out.line(paint.paint(Style::Bold, &placement.placement));
        if placement.revisions.is_empty() {
            out.line("  no desired revision, and none completed");
            continue;
        }
        let mut table = Table::default();
        table.head(&["REVISION", "VERSION", "COMPLETED", "CONFIGS", "MARKS"]);
        for line in &placement.revisions {
            let config = |config: &ConfigStory| {
                let hash = config.hash.get(..8).unwrap_or(&config.hash);
                format!("{}@{hash}", config.name)
            };
            let words = |mark: &&str| match *mark {
                "Wanted" => "wanted",
                "KnownGood" => "known good",
                "Withdrawn" => "withdrawn",
                _ => "applied",
            };
            table.row([
                (Style::Bold, line.number.map_or_else(|| "-".to_owned(), |number| number.to_string())),
                (Style::Plain, line.revision.version.clone().unwrap_or_else(|| line.revision.id.clone())),
                (Style::Plain, line.completed_at.clone().unwrap_or_else(|| "not yet".to_owned())),
                (Style::Plain, line.revision.configs.iter().map(config).collect::<Vec<_>>().join(" ")),
                (Style::Green, line.marks.iter().map(words).collect::<Vec<_>>().join(", ")),
            ]);
        }
        out.add(&table.render(paint));
    }
    out
}
