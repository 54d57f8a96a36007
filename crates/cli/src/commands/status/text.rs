//! The progress of rollouts as text: a tree for one add-on, or one line per add-on.

use std::collections::BTreeMap;

use aviary_engine::explain::Phase;
use aviary_engine::reason::Reason;
use aviary_engine::verdict::Verdict;

use super::report::{AddOnState, PlacementState, StatusReport, Unsettled};
use crate::output::{Paint, Printout, Style, Table};

/// The maximum number of named clusters of a placement.
const NAMED: usize = 10;
const BAR: usize = 24;

pub(crate) fn render(report: &StatusReport, tree: bool, wide: bool, paint: Paint) -> Printout {
    if !tree {
        return list(report, paint);
    }
    let mut out = Printout::default();
    for addon in &report.add_ons {
        render_tree(&mut out, addon, wide, paint);
    }
    out
}

pub(crate) fn notes(report: &StatusReport) -> Printout {
    report.notes.iter().map(|note| format!("Note: {note}")).collect()
}

fn list(report: &StatusReport, paint: Paint) -> Printout {
    if report.add_ons.is_empty() {
        return Printout::default();
    }
    let mut table = Table::default();
    table.head(&["ADD-ON", "STATE", "CLUSTERS", "SETTLED", "IN FLIGHT", "FAILED", "WAITING", "MESSAGE"]);
    for addon in &report.add_ons {
        table.row([
            (Style::Bold, addon.name.clone()),
            (style(addon.state), addon.state.to_string()),
            (Style::Plain, addon.clusters.to_string()),
            (Style::Plain, addon.settled.to_string()),
            (Style::Plain, addon.in_flight.to_string()),
            (Style::Plain, addon.failed.to_string()),
            (Style::Plain, addon.waiting.to_string()),
            (Style::Plain, addon.message.clone()),
        ]);
    }
    table.render(paint)
}

pub(crate) fn style(state: Verdict) -> Style {
    match state {
        Verdict::Done | Verdict::Installed | Verdict::Upgraded => Style::Green,
        Verdict::Failed => Style::Red,
        Verdict::Paused | Verdict::WaitingForCanary => Style::Yellow,
        Verdict::LeftAlone | Verdict::Empty => Style::Dim,
        Verdict::Progressing | Verdict::Installing | Verdict::Upgrading => Style::Cyan,
    }
}

fn render_tree(out: &mut Printout, addon: &AddOnState, wide: bool, paint: Paint) {
    out.line(format_args!(
        "{}  {}  {}",
        paint.paint(Style::Bold, &addon.name),
        paint.paint(style(addon.state), addon.state.as_str()),
        addon.message
    ));
    let names: Vec<&str> = addon.placements.iter().map(|one| one.summary.placement.as_str()).collect();
    let stray: Vec<&Unsettled> = addon.unsettled.iter().filter(|one| one.placement.is_none()).collect();
    let branches = addon.placements.len() + usize::from(!stray.is_empty());
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (index, placement) in addon.placements.iter().enumerate() {
        let last = index + 1 == branches;
        let name = &placement.summary.placement;
        let padding = " ".repeat(width - name.chars().count());
        out.line(format_args!("{} {name}{padding}  {}", tee(last), line(placement, paint)));
        let of = |one: &&Unsettled| one.placement.as_deref() == Some(name);
        let clusters: Vec<&Unsettled> = addon.unsettled.iter().filter(of).collect();
        leaves(out, &clusters, last, wide, paint);
    }
    if !stray.is_empty() {
        out.line(format_args!("{} in no placement", tee(true)));
        leaves(out, &stray, true, wide, paint);
    }
    for problem in &addon.problems {
        let severity = format!("{:?}", problem.severity).to_lowercase();
        out.line(format_args!("  {severity}: {}", problem.message));
    }
}

fn tee(last: bool) -> &'static str {
    if last { "└─" } else { "├─" }
}

/// Bar, counts, state, versions, message.
fn line(placement: &PlacementState, paint: Paint) -> String {
    let one = &placement.summary;
    let share = |part: usize| (part * BAR).checked_div(one.governed).unwrap_or(0).min(BAR);
    let some = |part: usize| if part > 0 { share(part).max(1) } else { 0 };
    let [in_flight, failed, _] = placement.left();
    let failed = some(failed);
    let settled = share(placement.done).min(BAR - failed);
    let moving = some(in_flight).min(BAR - failed - settled);
    let bar = format!(
        "{}{}{}{}",
        "#".repeat(settled),
        ">".repeat(moving),
        "x".repeat(failed),
        ".".repeat(BAR - settled - moving - failed)
    );
    // The message repeats the counts.
    let told = format!("{}/{}", one.on_target, one.governed);
    let message = one.message.strip_prefix(&told).unwrap_or(&one.message).trim_start();
    let count = if one.desired == one.target { told } else { format!("{}/{}", placement.done, one.governed) };
    let to = match (&one.desired, &one.target) {
        (Some(desired), Some(target)) if desired != target => format!(" {desired} ({target} until then)"),
        (Some(desired), _) => format!(" {desired}"),
        (None, _) => String::new(),
    };
    let state = paint.paint(style(placement.state), placement.state.as_str());
    format!("[{bar}] {count}  {state}{to}  {message}")
}

/// The clusters of one branch: the first few, and counts by reason for the rest.
fn leaves(out: &mut Printout, clusters: &[&Unsettled], last_branch: bool, wide: bool, paint: Paint) {
    let stem = if last_branch { "   " } else { "│  " };
    let shown = if wide || clusters.len() <= NAMED { clusters.len() } else { NAMED - 1 };
    let width = clusters.iter().take(shown).map(|one| one.cluster.chars().count()).max().unwrap_or(0);
    for (index, one) in clusters.iter().take(shown).enumerate() {
        let last = index + 1 == clusters.len();
        let style = if one.kind == Phase::Failed { Style::Red } else { Style::Plain };
        let padding = " ".repeat(width - one.cluster.chars().count());
        let reason = paint.paint(style, one.reason.as_str());
        out.line(format_args!("{stem}{} {}{padding}  {reason}  {}", tee(last), one.cluster, one.message));
    }
    let rest = clusters.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let mut counts: BTreeMap<Reason, usize> = BTreeMap::new();
        for one in rest {
            *counts.entry(one.reason).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        out.line(format_args!(
            "{stem}{} {} more: {} (-o wide shows all)",
            tee(true),
            rest.len(),
            counts.join(", ")
        ));
    }
}

/// The lines that were printed, so that only changes are printed.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    told: BTreeMap<String, String>,
}

impl Lines {
    /// Returns a line for each placement, or add-on without placements, that has changed.
    pub(crate) fn news(&mut self, report: &StatusReport) -> Printout {
        let mut out = Printout::default();
        let mut tell = |key: String, line: String| {
            if self.told.get(&key) != Some(&line) {
                out.line(format_args!("{}  {key}  {line}", report.now));
                self.told.insert(key, line);
            }
        };
        for addon in &report.add_ons {
            for placement in &addon.placements {
                let one = &placement.summary;
                let key = format!("{} {}", addon.name, one.placement);
                tell(key, format!("{}  {} of {}", placement.state, placement.counts(), one.governed));
            }
            tell(addon.name.clone(), format!("{}  {}", addon.state, addon.message));
        }
        out
    }
}
