//! An explanation as text. Fits into 80 columns; `-o wide` breaks no line.

use aviary_engine::reason::Reason;
use aviary_engine::tally::ClusterState;

use super::advice::Advisor;
use super::cluster::{ClusterStory, RevisionStory};
use super::{AdvisedGroup, Explanation};
use crate::commands::status::report::PlacementState;
use crate::commands::status::text::{style, word};
use crate::findings::Severity;
use crate::output::{Facts, Paint, Printout, Style, Table, counted, first_few};

pub(super) fn whole(told: &Explanation, advisor: &Advisor<'_>, wide: bool, paint: Paint) -> Printout {
    let mut out = Printout::default();
    let title = format!(
        "{}  {}  {}",
        paint.paint(Style::Bold, &told.add_on),
        paint.paint(style(told.state), told.state.as_str()),
        told.message
    );
    out.fitted(wide, "", "    ", &title);
    let mut placements: Vec<&PlacementState> = told.placements.iter().collect();
    placements.sort_by_key(|placement| placement.position);
    for placement in &placements {
        let one = &placement.summary;
        let state = word(placement, paint);
        out.gap();
        let title = format!("{}  {state}  {}", paint.paint(Style::Bold, &one.placement), one.message);
        out.fitted(wide, "", "    ", &title);
        let (all, pace) = (counted(one.governed, "cluster"), placement.pace());
        let counts = format!("{all}, {pace}: {}", placement.counts());
        out.fitted(wide, "  ", "    ", &counts);
        if let Some(canary) = &one.canary {
            out.line(format_args!("  behind the canary {canary}"));
        }
        let name = Some(&one.placement);
        groups(&mut out, told, name, wide, paint);
    }
    if told.reasons.iter().any(|reason| reason.placement.is_none()) {
        out.gap();
        out.line(paint.paint(Style::Bold, "In no placement"));
        groups(&mut out, told, None, wide, paint);
    }
    if !told.problems.is_empty() {
        out.gap();
        out.line(paint.paint(Style::Bold, "Problems"));
        for problem in &told.problems {
            let (style, severity) = match problem.severity {
                Severity::Error => (Style::Red, "error"),
                Severity::Warning => (Style::Yellow, "warning"),
            };
            let text = format!("{}  {}  {}", paint.paint(style, severity), problem.reason, problem.message);
            out.fitted(wide, "  ", "    ", &text);
        }
    }
    notes(&mut out, &told.notes, wide);
    let Advisor { program, addon, hub, .. } = advisor;
    out.gap();
    out.line(match first_stuck(told, &placements) {
        Some(cluster) => {
            format!("Next: {program} explain {addon} {cluster}{hub} # details of one of them")
        }
        None => match &told.first_step {
            Some(step) => format!("Next: {step}"),
            None if told.placements.is_empty() => {
                format!("Nothing is waiting. Next: {program} status {addon}{hub}")
            }
            None => format!("Nothing is waiting. Next: {program} rollout history {addon}{hub}"),
        },
    });
    out
}

/// The first cluster that failed or, without one, that waits, in the order of the page.
fn first_stuck<'a>(told: &'a Explanation, placements: &[&PlacementState]) -> Option<&'a String> {
    let rank = |group: &&AdvisedGroup| {
        let is_its =
            |placement: &&PlacementState| group.placement.as_ref() == Some(&placement.summary.placement);
        let has_failed = matches!(group.reason, Reason::Failed | Reason::TimedOut | Reason::Unavailable);
        (!has_failed, placements.iter().position(is_its).unwrap_or(usize::MAX))
    };
    told.reasons.iter().min_by_key(rank)?.clusters.first()
}

fn groups(out: &mut Printout, told: &Explanation, placement: Option<&String>, wide: bool, paint: Paint) {
    for reason in told.reasons.iter().filter(|reason| reason.placement.as_ref() == placement) {
        let which = if wide { reason.clusters.join(", ") } else { first_few(&reason.clusters) };
        let code = paint.paint(Style::Bold, reason.reason.as_str());
        let first = format!("  {:>5}  ", reason.count);
        match wide {
            true => out.line(format_args!(
                "{first}{code}  {}  {}",
                reason.message,
                paint.paint(Style::Dim, &which)
            )),
            false => out.wrapped(&first, "         ", &format!("{code}  {} ({which})", reason.message)),
        }
        out.fitted(wide, "         -> ", "            ", &reason.advice);
    }
}

fn notes(out: &mut Printout, notes: &[String], wide: bool) {
    if !notes.is_empty() {
        out.gap();
    }
    for note in notes {
        out.fitted(wide, "Note: ", "  ", note);
    }
}

pub(super) fn one(told: &ClusterStory, advisor: &Advisor<'_>, wide: bool, paint: Paint) -> Printout {
    let title = format!("{} on {}", told.add_on, told.cluster);
    let mut out = Printout::of(paint.paint(Style::Bold, &title));
    let decision = &told.decision;
    let style = if decision.kind == ClusterState::Failed.as_str() { Style::Red } else { Style::Plain };
    let mut facts = Facts::default();
    facts.add("placement", Style::Plain, told.placement.as_deref().unwrap_or("none"));
    facts.add("state", style, format!("{} ({})", decision.message, decision.reason));
    facts.add("suggested", Style::Plain, decision.advice.as_str());
    facts.add("desired", Style::Plain, revision(told.desired.as_ref()));
    facts.add("assigned", Style::Plain, revision(told.told.as_ref()));
    facts.add("applied", Style::Plain, revision(told.applied.as_ref()));
    if !told.overridden.is_empty() {
        facts.add("overrides", Style::Plain, told.overridden.join(", "));
    }
    facts.add("cluster", Style::Plain, reach(told));
    out.add(&facts.render(wide, paint));
    configs(&mut out, told, wide, paint);
    section(
        &mut out,
        "Conditions",
        &["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"],
        wide,
        paint,
        told.conditions.iter().map(|one| {
            let since = one.since.clone().unwrap_or_default();
            vec![one.kind.clone(), one.status.clone(), one.reason.clone(), since, one.message.clone()]
        }),
    );
    section(
        &mut out,
        "Works",
        &["NAME", "GENERATION", "ASSIGNED", "APPLIED", "AVAILABLE", "HEALTH"],
        wide,
        paint,
        told.works.iter().map(|one| {
            let as_told = if one.as_told { "yes" } else { "no" };
            let applied = if one.deleting { "being deleted".to_owned() } else { one.applied.clone() };
            vec![
                one.name.clone(),
                one.generation.to_string(),
                as_told.to_owned(),
                applied,
                one.available.clone(),
                one.health.clone(),
            ]
        }),
    );
    notes(&mut out, &told.notes, wide);
    let Advisor { program, addon, hub, .. } = advisor;
    out.gap();
    out.line(format_args!("Next: {program} status {addon}{hub}"));
    out
}

fn revision(told: Option<&RevisionStory>) -> String {
    match told {
        None => "nothing".to_owned(),
        Some(RevisionStory { id, version: Some(version), .. }) => format!("{version} (revision {id})"),
        Some(RevisionStory { id, version: None, .. }) => format!("revision {id}"),
    }
}

fn reach(told: &ClusterStory) -> String {
    let Some(cluster) = &told.managed_cluster else { return "there is no such ManagedCluster".to_owned() };
    let mut words = vec![match (&cluster.unreachable_since, cluster.reachable) {
        (_, true) => "reachable".to_owned(),
        (Some(since), false) => format!("unreachable since {since}"),
        (None, false) => "unreachable".to_owned(),
    }];
    if cluster.deleting {
        words.push("being deleted".to_owned());
    }
    if cluster.opted_out {
        words.push("opts out of automatic installation".to_owned());
    }
    words.join(", ")
}

/// Config by config: desired, assigned and applied.
fn configs(out: &mut Printout, told: &ClusterStory, wide: bool, paint: Paint) {
    let revisions = [told.desired.as_ref(), told.told.as_ref(), told.applied.as_ref()];
    let mut kinds: Vec<&str> = revisions
        .iter()
        .flatten()
        .flat_map(|one| one.configs.iter().map(|config| config.kind.as_str()))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let cell = |revision: &Option<&RevisionStory>, kind: &str| {
        let found = revision.and_then(|one| one.configs.iter().find(|config| config.kind == kind));
        found.map_or_else(
            || "-".to_owned(),
            |config| format!("{}@{}", config.name, config.hash.get(..8).unwrap_or(&config.hash)),
        )
    };
    let rows = kinds.iter().map(|kind| {
        let mut row = vec![(*kind).to_owned()];
        row.extend(revisions.iter().map(|revision| cell(revision, kind)));
        row
    });
    section(out, "Configs", &["KIND", "DESIRED", "ASSIGNED", "APPLIED"], wide, paint, rows);
}

fn section(
    out: &mut Printout,
    title: &str,
    head: &[&str],
    wide: bool,
    paint: Paint,
    rows: impl Iterator<Item = Vec<String>>,
) {
    let mut table = Table::default();
    table.head(head);
    let mut any = false;
    for row in rows {
        any = true;
        table.row(row.into_iter().map(|cell| (Style::Plain, cell)));
    }
    if any {
        out.gap();
        out.line(paint.paint(Style::Bold, title));
        out.add(&if wide { table.render(paint) } else { table.fitted(paint) });
    }
}
