//! An explanation for people.

use super::Explanation;
use super::advice::Advisor;
use super::cluster::{ClusterStory, RevisionStory};
use crate::commands::status::text::style;
use crate::findings::Severity;
use crate::output::{Paint, Style, Table, counted, first_few};

pub(super) fn whole(told: &Explanation, advisor: &Advisor<'_>, wide: bool, paint: Paint) -> String {
    let mut out = format!(
        "{}  {}  {}\n",
        paint.paint(Style::Bold, &told.add_on),
        paint.paint(style(told.state), told.state),
        told.message
    );
    for placement in &told.placements {
        let one = &placement.summary;
        let state = paint.paint(style(placement.state), placement.state);
        out.push_str(&format!("\n{}  {state}  {}\n", paint.paint(Style::Bold, &one.placement), one.message));
        let budget =
            one.budget.map_or_else(|| "all at once".to_owned(), |budget| format!("at most {budget} at once"));
        out.push_str(&format!("  {}, {budget}: {}\n", counted(one.governed, "cluster"), placement.counts()));
        if let Some(canary) = &one.canary {
            out.push_str(&format!("  behind the canary {canary}\n"));
        }
        let name = Some(&one.placement);
        groups(&mut out, told, name, wide, paint);
    }
    if told.reasons.iter().any(|reason| reason.placement.is_none()) {
        out.push_str(&format!("\n{}\n", paint.paint(Style::Bold, "In no placement")));
        groups(&mut out, told, None, wide, paint);
    }
    if !told.problems.is_empty() {
        out.push_str(&format!("\n{}\n", paint.paint(Style::Bold, "Problems")));
        for problem in &told.problems {
            let (style, severity) = match problem.severity {
                Severity::Error => (Style::Red, "error"),
                Severity::Warning => (Style::Yellow, "warning"),
            };
            out.push_str(&format!(
                "  {}  {}  {}\n",
                paint.paint(style, severity),
                problem.reason,
                problem.message
            ));
        }
    }
    notes(&mut out, &told.notes);
    let Advisor { program, addon, hub } = advisor;
    let failed =
        told.reasons.iter().find(|reason| matches!(reason.reason, "Failed" | "TimedOut" | "Unavailable"));
    let first = failed.or(told.reasons.first()).and_then(|reason| reason.clusters.first());
    out.push_str(&match first {
        Some(cluster) => {
            format!("\nNext: {program} explain {addon} {cluster}{hub} # everything about one of them\n")
        }
        None => format!("\nNothing waits. Next: {program} rollout history {addon}{hub}\n"),
    });
    out
}

fn groups(out: &mut String, told: &Explanation, placement: Option<&String>, wide: bool, paint: Paint) {
    for reason in told.reasons.iter().filter(|reason| reason.placement.as_ref() == placement) {
        let which = if wide { reason.clusters.join(", ") } else { first_few(&reason.clusters) };
        let code = paint.paint(Style::Bold, reason.reason);
        out.push_str(&format!(
            "  {:>5}  {code}  {}  {}\n",
            reason.count,
            reason.message,
            paint.paint(Style::Dim, &which)
        ));
        out.push_str(&format!("         -> {}\n", reason.advice));
    }
}

fn notes(out: &mut String, notes: &[String]) {
    for (index, note) in notes.iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        out.push_str(&format!("{gap}Note: {note}\n"));
    }
}

pub(super) fn one(told: &ClusterStory, advisor: &Advisor<'_>, paint: Paint) -> String {
    let title = format!("{} on {}", told.add_on, told.cluster);
    let mut out = format!("{}\n", paint.paint(Style::Bold, &title));
    let decision = &told.decision;
    let style = if decision.kind == "failed" { Style::Red } else { Style::Plain };
    let mut table = Table::default();
    let mut row = |name: &str, style: Style, text: String| {
        table.row([(Style::Dim, name.to_owned()), (style, text)]);
    };
    row("placement", Style::Plain, told.placement.clone().unwrap_or_else(|| "none governs it".to_owned()));
    row("stands", style, format!("{} ({})", decision.message, decision.reason));
    row("would help", Style::Plain, decision.advice.clone());
    row("desired", Style::Plain, revision(told.desired.as_ref()));
    row("told", Style::Plain, revision(told.told.as_ref()));
    row("applied", Style::Plain, revision(told.applied.as_ref()));
    if !told.overridden.is_empty() {
        row("its own", Style::Plain, told.overridden.join(", "));
    }
    row("cluster", Style::Plain, reach(told));
    out.push_str(&table.render(paint));
    configs(&mut out, told, paint);
    section(
        &mut out,
        "Conditions",
        &["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"],
        paint,
        told.conditions.iter().map(|one| {
            let since = one.since.clone().unwrap_or_default();
            vec![one.kind.clone(), one.status.clone(), one.reason.clone(), since, one.message.clone()]
        }),
    );
    section(
        &mut out,
        "Works",
        &["NAME", "GENERATION", "AS TOLD", "APPLIED", "AVAILABLE"],
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
            ]
        }),
    );
    notes(&mut out, &told.notes);
    let Advisor { program, addon, hub } = advisor;
    out.push_str(&format!("\nNext: {program} status {addon}{hub}\n"));
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
        (Some(since), false) => format!("cannot be reached since {since}"),
        (None, false) => "cannot be reached".to_owned(),
    }];
    if cluster.deleting {
        words.push("being deleted".to_owned());
    }
    if cluster.opted_out {
        words.push("opts out of automatic installation".to_owned());
    }
    words.join(", ")
}

/// Config by config: what it should have, was told, and has.
fn configs(out: &mut String, told: &ClusterStory, paint: Paint) {
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
    section(out, "Configs", &["KIND", "DESIRED", "TOLD", "APPLIED"], paint, rows);
}

fn section(
    out: &mut String,
    title: &str,
    head: &[&str],
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
        out.push_str(&format!("\n{}\n{}", paint.paint(Style::Bold, title), table.render(paint)));
    }
}
