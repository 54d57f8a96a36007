//! `aviary status`: shows the progress of every rollout of a hub, once or until it is done.

pub(crate) mod report;
pub(crate) mod text;

use std::time::Duration;

use anyhow::{anyhow, bail};
use aviary_controller::{Follower, Outage};
use aviary_engine::duration;
use aviary_engine::plan;
use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{Outcome, Session};
use crate::live::{LiveArgs, block_on, seconds, told};
use crate::output::{Printout, Style};
use crate::process::stop_signal;
use report::StatusReport;

const DESCRIPTION: &str = "\
Show the progress of rollouts: the add-on, its placements, and the clusters that have not settled, each with its reason.

The report is computed from the current state of the hub, by the same code as the manager's decisions. Without ADDON it has one \
line per add-on. With -w it is updated until everything is done or something has failed: on a terminal it is redrawn, \
otherwise every change prints one line, however long. A change counts as done only after the manager has observed it, and that of a Placement only after its placement \
controller has decided it again, if the controller records that: Aviary's does, Open Cluster Management's does not. --for waits for \
something else.

Every cluster is in one of these states. Settled: it runs the desired revision and has been healthy for long enough. In flight: it is \
assigned a revision, and has neither settled on it nor failed. Failed: it is assigned a revision and failed. Waiting: it is not \
assigned its revision yet. Leaving: it is no longer selected, or is being deleted.";

const STRUCTURE: &str = "\
Signs in a bar: # updated, > in flight, x failed, . not started.

Output with -o json, with -w when it ends:
  version        1; later versions may add fields, but never change or remove one
  now            the time of the report
  notes[]        problems with the hub or its manager
  addOns[]
    name
    state        Done, Progressing, Failed or LeftAlone
    message      the same as text
    observed     the manager has processed the latest change of the add-on
    clusters, settled, inFlight, failed, waiting, leaving
                 the first is the sum of the others
    placements[] {placement, state, reason, message, desired, target, canary, paused,
                 budget, slotsUsed, governed, settled, inFlight, failed, waiting, leaving,
                 onTarget, done}; governed is the sum of the five counts after it;
                 slotsUsed: slots of the budget taken by clusters that are in flight,
                 failed or unhealthy; onTarget: assigned the target, which may be an
                 earlier revision while a canary is waiting; done: the same as settled
    unsettled[]  {cluster, placement, kind, reason, message, told}; kind: one of the
                 states above; told: the assigned version or revision
    problems[]   {severity, reason, message}

Exit codes:
  0 everything is done; 1 the hub could not be read, or the add-on was deleted; 2 wrong usage;
  3 something is still in progress, or -w timed out;
  4 something has failed, is halted, or needs manual approval;
  with --for, 0 means that it happened, and 4 that it cannot happen any more";

const EXAMPLES: &str = "\
Examples:
  Every add-on of the hub
    $ aviary status

  One add-on, with every cluster that has not settled
    $ aviary status helloworld -o wide

  Wait in CI until a rollout is done, for at most half an hour
    $ kubectl apply -f addon.yaml && aviary status helloworld -w --timeout 30m

  Wait only until the canary has passed
    $ aviary status helloworld --for canary-passed --timeout 30m";

/// Show the progress of rollouts; the exit code is the outcome
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    /// Name of the add-on [default: all]
    #[arg(value_name = "ADDON")]
    addon: Option<String>,

    /// Wait until everything is done or something has failed
    #[arg(short, long)]
    watch: bool,

    /// Wait for this: settled, every cluster runs its desired revision; canary-passed, no placement
    /// waits for its canary any more; halted, the rollout has failed or stopped. Implies --watch
    #[arg(long = "for", value_name = "STATE", value_enum)]
    until: Option<Until>,

    /// Give up after this long, such as 90s, 30m or 2h; implies --watch
    #[arg(long, value_name = "DURATION", value_parser = limit)]
    timeout: Option<Duration>,

    #[command(flatten)]
    live: LiveArgs,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    #[default]
    Settled,
    CanaryPassed,
    Halted,
}

impl Args {
    fn watches(&self) -> bool {
        self.watch || self.until.is_some() || self.timeout.is_some()
    }

    fn outcome(&self, report: &StatusReport) -> Outcome {
        report.outcome_for(self.until.unwrap_or_default())
    }
}

fn limit(text: &str) -> anyhow::Result<Duration> {
    match duration::parse(text)? {
        Some(limit) if !limit.is_zero() => Ok(limit),
        _ => Err(anyhow!("{text} is not a duration: use for example 90s, 30m or 2h")),
    }
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    block_on(show(args, session))
}

pub(super) async fn show(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let mut live = args.live.read(args.addon.as_deref()).await?;
    let mut report = StatusReport::of(&mut live.view, since(session.now, begun));
    if !args.watches() {
        if report.outcome() != Outcome::Done {
            let leader = args.live.leader(&live.connection.client, args.addon.as_deref(), session.now).await;
            report.notes.extend(leader.note());
        }
        finish(args, session, &report, true)?;
        return Ok(report.outcome());
    }
    if args.until == Some(Until::CanaryPassed) && !report.has_canary() {
        bail!("no placement has a canary: wait for --for=settled instead");
    }
    let stopped = stop_signal()?;
    let connection = live.connection.clone();
    let mut nobody = None;
    if args.outcome(&report) == Outcome::Progressing {
        let leader = args.live.leader(&connection.client, args.addon.as_deref(), session.now).await;
        nobody = leader.note();
        announce(nobody.as_deref(), session)?;
    }
    let watch = Watch { args, begun, follower: live.view.follow(), nobody: nobody.clone() };
    let watched = tokio::select! {
        watched = watch.go_on(report, session) => watched.map_err(|error| match error.downcast_ref() {
            Some(error) => told(error, &connection),
            None => error,
        })?,
        () = stopped => bail!("interrupted"),
    };
    let (mut report, shown) = watched;
    if args.outcome(&report) == Outcome::Progressing {
        let now = since(session.now, begun);
        let leader = args.live.leader(&connection.client, args.addon.as_deref(), now).await;
        // What was said at the start is not repeated below the lines.
        let is_said = shown && leader.note() == nobody;
        report.notes.extend(leader.note().filter(|_| !is_said));
        report.notes.extend(args.timeout.map(|limit| format!("timed out after {}", duration::shown(limit))));
    }
    finish(args, session, &report, !shown)?;
    Ok(args.outcome(&report))
}

/// Prints why nothing will happen while somebody waits. A terminal shows it with every picture.
fn announce(nobody: Option<&str>, session: &mut Session) -> anyhow::Result<()> {
    let Some(nobody) = nobody.filter(|_| session.output.format().is_none() && !session.output.is_terminal())
    else {
        return Ok(());
    };
    session.output.line(format_args!("Note: {nobody}"))?;
    session.output.finish()
}

/// Prints the final report, unless it is already on the screen, and the next command.
fn finish(args: &Args, session: &mut Session, report: &StatusReport, picture: bool) -> anyhow::Result<()> {
    if session.output.data(report)? {
        return Ok(());
    }
    let wide = session.output.is_wide();
    let mut page = Printout::default();
    if picture {
        page = text::render(report, args.addon.is_some(), wide, session.output.paint);
    }
    page.add(&text::notes(report));
    page.line(next(args, report, &session.program));
    session.output.text(&page)
}

/// A report that is kept up to date.
struct Watch<'a> {
    args: &'a Args,
    begun: Instant,
    follower: Follower,
    /// Why nothing happened when the watch began: no manager leads.
    nobody: Option<String>,
}

impl Watch<'_> {
    /// Updates the report until there is an outcome or the time is up. Returns whether the last
    /// report is on the screen.
    async fn go_on(
        mut self,
        mut report: StatusReport,
        session: &mut Session,
    ) -> anyhow::Result<(StatusReport, bool)> {
        let until = self.args.timeout.map(|limit| self.begun + limit);
        let redraws = session.output.is_terminal() && session.output.format().is_none();
        let mut lines = text::Lines::default();
        let mut known: Option<Outage> = None;
        loop {
            let outage = self.follower.outage();
            if outage.is_none() {
                self.still_there(&report)?;
            }
            let now = seconds(self.now(session.now)).to_string();
            let news = outage_news(known.as_ref(), outage.as_ref(), &now);
            if redraws {
                let (wide, paint) = (session.output.is_wide(), session.output.paint);
                let mut picture = text::render(&report, self.args.addon.is_some(), wide, paint);
                if let Some(nobody) = &self.nobody {
                    picture.wrapped("Note: ", "  ", nobody);
                }
                if let Some(outage) = &outage {
                    picture.line(paint.paint(Style::Red, &stale(outage)));
                }
                session.output.redraw(&picture)?;
            } else if session.output.format().is_none() {
                session.output.text(&lines.news(&report))?;
                session.output.text(&news.into_iter().collect())?;
                session.output.finish()?;
            }
            let up = until.is_some_and(|until| until <= Instant::now());
            if let Some(outage) = &outage {
                if up {
                    bail!("{}", stale(outage));
                }
                // Whatever was known when the hub went away is no outcome.
                known = Some(outage.clone());
                self.next_change(until, session.now).await?;
                let now = self.now(session.now);
                report = StatusReport::of(self.follower.view(), now);
                continue;
            }
            known = None;
            if self.args.outcome(&report) != Outcome::Progressing || up {
                return Ok((report, redraws || session.output.format().is_none()));
            }
            self.next_change(until, session.now).await?;
            let now = self.now(session.now);
            report = StatusReport::of(self.follower.view(), now);
        }
    }

    /// An add-on that was deleted never reaches the state that the watch waits for.
    fn still_there(&self, report: &StatusReport) -> anyhow::Result<()> {
        match &self.args.addon {
            Some(addon) if report.add_ons.is_empty() => bail!("add-on {addon} was deleted"),
            _ => Ok(()),
        }
    }

    fn now(&self, started: Timestamp) -> Timestamp {
        since(started, self.begun)
    }

    /// Waits for a change on the hub, for a time at which the state changes by itself, or for the
    /// timeout.
    async fn next_change(&mut self, until: Option<Instant>, started: Timestamp) -> anyhow::Result<()> {
        let now = self.now(started);
        let view = self.follower.view();
        let rechecks = view.addons().into_iter();
        let soonest = rechecks
            .filter_map(|addon| view.observe(&addon, |observed| plan::plan(observed, now).recheck_at)?)
            .filter(|at| *at > now)
            .min();
        let recheck = soonest.map(|at| {
            let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            Instant::now() + wait + Duration::from_secs(1)
        });
        match recheck.into_iter().chain(until).min() {
            Some(at) => match tokio::time::timeout_at(at, self.follower.changed()).await {
                Ok(changed) => Ok(changed?),
                Err(_) => Ok(()),
            },
            None => Ok(self.follower.changed().await?),
        }
    }
}

/// The time now, by the time at which the command began.
fn since(started: Timestamp, begun: Instant) -> Timestamp {
    let elapsed = SignedDuration::try_from(begun.elapsed()).unwrap_or_default();
    started.checked_add(elapsed).unwrap_or(started)
}

fn stale(outage: &Outage) -> String {
    format!(
        "hub unreachable since {}: {}; the state before that is shown",
        seconds(outage.since),
        outage.cause
    )
}

/// A line about an outage that has begun or ended.
fn outage_news(known: Option<&Outage>, current: Option<&Outage>, now: &str) -> Option<String> {
    match (known, current) {
        (None, Some(outage)) => Some(format!("{now}  {}", stale(outage))),
        (Some(_), None) => Some(format!("{now}  hub reachable again")),
        _ => None,
    }
}

/// Suggests the next command.
fn next(args: &Args, report: &StatusReport, program: &str) -> String {
    let hub = args.live.typed();
    let Some(addon) = report.most_urgent() else {
        return format!("There is no add-on. Next: {program} plan -f addon.yaml{hub}");
    };
    let name = &addon.name;
    let first = addon.first_step(program, &args.live).filter(|_| addon.outcome() != Outcome::Done);
    if let (Some(step), Some(_)) = (first, &args.addon) {
        return format!("Next: {step}");
    }
    let next = match (addon.outcome(), &args.addon) {
        (Outcome::Done, Some(_)) if addon.placements.is_empty() => {
            format!("{program} plan {name}{hub} # what its manager does next")
        }
        (Outcome::Done, Some(_)) => format!("{program} rollout history {name}{hub}"),
        (Outcome::Done, None) => format!("{program} status {name}{hub}"),
        (Outcome::Failed, Some(_)) if addon.can_undo => {
            format!("{program} explain {name}{hub} # or {program} rollout undo {name}{hub} to roll back")
        }
        (Outcome::Failed, Some(_)) => format!("{program} explain {name}{hub} # why it has failed"),
        (_, Some(_)) => format!("{program} explain {name}{hub} # what it waits for"),
        (_, None) => format!("{program} status {name}{hub} # which clusters, and why"),
    };
    format!("Next: {next}")
}
