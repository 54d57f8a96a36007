//! `pause` and `resume`: whether new clusters start.

use serde::Serialize;
use serde_json::{Value, json};

use super::spec::StoredAddOn;
use super::{Outcome, RolloutSelection, Session, WriteArgs};
use crate::connect::Connection;
use crate::output::Printout;

const PAUSE: &str = "\
Pause a rollout: no new clusters start, and clusters in flight finish. New clusters still get the last known good revision.

Sets rolloutStrategy.paused of the add-on's placements, and nothing else. The write is conditional on the spec being unchanged.";

const RESUME: &str = "\
Resume a rollout: clusters start again, in the order and within the budget of the rollout strategy.

Clears rolloutStrategy.paused of the add-on's placements, and nothing else. The write is conditional on the spec being unchanged.";

const STRUCTURE: &str = "\
Output with -o json:
  version, addOn, paused, dryRun, placements[]: {placement, changed, pausedBy};
  pausedBy: the AddOnRolloutPolicy that still pauses it, after resume

Exit codes:
  0 changed, or nothing to change; 1 it could not be written; 2 wrong usage";

/// Start no new clusters
#[derive(Debug, clap::Args)]
#[command(long_about = PAUSE, after_help = "\
Examples:
  $ aviary rollout pause helloworld
  $ aviary rollout pause helloworld --placement default/fleet --dry-run", after_long_help = format!("{STRUCTURE}\n
Examples:
  $ aviary rollout pause helloworld
  $ aviary rollout pause helloworld --placement default/fleet --dry-run"))]
pub(super) struct PauseArgs {
    #[command(flatten)]
    which: RolloutSelection,
    #[command(flatten)]
    writing: WriteArgs,
}

/// Start clusters again
#[derive(Debug, clap::Args)]
#[command(long_about = RESUME, after_help = "\
Examples:
  $ aviary rollout resume helloworld
  $ aviary rollout resume helloworld --placement default/fleet --dry-run", after_long_help = format!("{STRUCTURE}\n
Examples:
  $ aviary rollout resume helloworld
  $ aviary rollout resume helloworld --placement default/fleet --dry-run"))]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    which: RolloutSelection,
    #[command(flatten)]
    writing: WriteArgs,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Switched {
    version: u32,
    add_on: String,
    paused: bool,
    dry_run: bool,
    placements: Vec<SwitchedPlacement>,
}

#[derive(Debug, Serialize)]
pub(in crate::commands) struct SwitchedPlacement {
    pub(in crate::commands) placement: String,
    pub(in crate::commands) changed: bool,
    /// The AddOnRolloutPolicy that pauses it, whatever the add-on says.
    #[serde(rename = "pausedBy", skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) paused_by: Option<String>,
}

pub(super) async fn pause(args: &PauseArgs, session: &mut Session) -> anyhow::Result<Outcome> {
    switch(&args.which, args.writing, true, session).await
}

pub(super) async fn resume(args: &ResumeArgs, session: &mut Session) -> anyhow::Result<Outcome> {
    switch(&args.which, args.writing, false, session).await
}

/// Pauses or resumes the requested placements. Returns which of them changed.
pub(in crate::commands) async fn apply(
    connection: &Connection,
    addon: &str,
    placement: Option<&str>,
    paused: bool,
    writing: WriteArgs,
) -> anyhow::Result<Vec<SwitchedPlacement>> {
    let stored = StoredAddOn::read(connection, addon).await?;
    let mut placements = stored.placements();
    let mut switched = Vec::new();
    for entry in stored.chosen(placement)? {
        let Some(value) = placements.get_mut(entry.index) else { continue };
        let changed = set(value, paused);
        switched.push(SwitchedPlacement { placement: entry.name, changed, paused_by: None });
    }
    if switched.iter().any(|one| one.changed) {
        stored.write(placements, writing).await?;
    }
    Ok(switched)
}

async fn switch(
    which: &RolloutSelection,
    writing: WriteArgs,
    paused: bool,
    session: &mut Session,
) -> anyhow::Result<Outcome> {
    let connection = which.live.hub.connect().await?;
    let mut switched = apply(&connection, &which.addon, which.placement.as_deref(), paused, writing).await?;
    if !paused {
        name_policies(which, &connection, &mut switched).await;
    }
    let told = Switched {
        version: 1,
        add_on: which.addon.clone(),
        paused,
        dry_run: writing.dry_run,
        placements: switched,
    };
    if session.output.data(&told)? {
        return Ok(Outcome::Done);
    }
    let mut text = Printout::default();
    for one in &told.placements {
        let (word, effect) = match paused {
            true => ("paused", "clusters in flight finish, and no new clusters start"),
            false => ("resumed", "clusters start again"),
        };
        let effect = match &one.paused_by {
            Some(policy) => format!("AddOnRolloutPolicy {policy} still pauses it"),
            None => effect.to_owned(),
        };
        let line = match (one.changed, paused) {
            (true, _) => format!("{} {word}{}: {effect}", one.placement, writing.mark()),
            (false, true) => format!("{} was already paused", one.placement),
            (false, false) => match one.paused_by {
                Some(_) => format!("{} was not paused by the add-on: {effect}", one.placement),
                None => format!("{} was not paused", one.placement),
            },
        };
        text.wrapped("", "  ", &line);
    }
    let (program, hub, addon) = (&session.program, which.live.typed(), &which.addon);
    let asked = which.typed();
    let policy = told.placements.iter().find_map(|one| one.paused_by.as_deref());
    text.line(match paused {
        _ if writing.dry_run => {
            let verb = if paused { "pause" } else { "resume" };
            format!("Nothing was written. Next: {program} rollout {verb} {asked}")
        }
        true => format!("Next: {program} rollout resume {asked}"),
        false if policy.is_some() => {
            let (kubectl, policy) = (which.live.hub.kubectl(), policy.unwrap_or_default());
            format!("Next: {kubectl} edit addonrolloutpolicy {policy} # it pauses")
        }
        false => format!("Next: {program} status {addon} -w{hub}"),
    });
    session.output.text(&text)?;
    Ok(Outcome::Done)
}

/// Names the policies that pause placements. Without the right to read them, none is named.
async fn name_policies(
    which: &RolloutSelection,
    connection: &Connection,
    switched: &mut [SwitchedPlacement],
) {
    let Ok(mut view) = which.live.read_from(connection, Some(&which.addon)).await else { return };
    view.observe(&which.addon, |observed| {
        for spec in observed.addon.strategy.placements() {
            let name = spec.name.to_string();
            if let Some(one) = switched.iter_mut().find(|one| one.placement == name) {
                one.paused_by = spec.rollout.by.paused.as_ref().map(ToString::to_string);
            }
        }
    });
}

/// Sets or clears the pause of one placement. Returns whether it changed.
fn set(placement: &mut Value, paused: bool) -> bool {
    let before = placement.pointer("/rolloutStrategy/paused").and_then(Value::as_bool).unwrap_or(false);
    if before == paused {
        return false;
    }
    match placement.get_mut("rolloutStrategy").filter(|strategy| strategy.is_object()) {
        Some(strategy) => strategy["paused"] = json!(paused),
        None => placement["rolloutStrategy"] = json!({"paused": paused}),
    }
    true
}
