//! The progress of rollouts as text: a tree for one add-on, or one line per add-on. Fits into 80
//! columns; `-o wide` names every cluster and breaks no line.

use std::collections::BTreeMap;

use aviary_engine::tally::ClusterState;
use aviary_engine::verdict::Verdict;

use super::report::{AddOnState, PlacementState, StatusReport, Unsettled};
use crate::commands::Outcome;
use crate::findings::Severity;
use crate::output::{Paint, Printout, Style, Table, WIDTH, first_few, shown_width};

const BAR: usize = 24;

pub(crate) fn render(report: &StatusReport, tree: bool, wide: bool, paint: Paint) -> Printout {
    let mut page = Page { out: Printout::default(), wide, paint };
    match tree {
        true => report.add_ons.iter().for_each(|addon| page.tree(addon)),
        false => page.list(report),
    }
    page.out
}

pub(crate) fn notes(report: &StatusReport) -> Printout {
    let mut out = Printout::default();
    for note in &report.notes {
        out.wrapped("Note: ", "  ", note);
    }
    out
}

pub(crate) fn style(state: Verdict) -> Style {
    match state {
        Verdict::Done | Verdict::Installed | Verdict::Upgraded => Style::Green,
        Verdict::Failed => Style::Red,
        Verdict::Paused | Verdict::WaitingForCanary => Style::Yellow,
        Verdict::LeftAlone | Verdict::Empty | Verdict::Undecided => Style::Dim,
        Verdict::Progressing | Verdict::Installing | Verdict::Upgrading => Style::Cyan,
    }
}

struct Page {
    out: Printout,
    wide: bool,
    paint: Paint,
}

impl Page {
    fn list(&mut self, report: &StatusReport) {
        if report.add_ons.is_empty() {
            return;
        }
        let mut table = Table::default();
        let mut head = vec!["ADD-ON", "STATE", "CLUSTERS", "SETTLED", "IN FLIGHT", "FAILED", "WAITING"];
        head.extend(self.wide.then_some("MESSAGE"));
        table.head(&head);
        for addon in &report.add_ons {
            let mut row = vec![
                (Style::Bold, addon.name.clone()),
                (style(addon.state), addon.state.to_string()),
                (Style::Plain, addon.clusters.to_string()),
                (Style::Plain, addon.settled.to_string()),
                (Style::Plain, addon.in_flight.to_string()),
                (Style::Plain, addon.failed.to_string()),
                (Style::Plain, addon.waiting.to_string()),
            ];
            row.extend(self.wide.then(|| (Style::Plain, addon.message.clone())));
            table.row(row);
        }
        let table = match self.wide {
            true => table.render(self.paint),
            false => table.with_long_names_above(self.paint),
        };
        self.out.add(&table);
        // A table with messages would not fit.
        let says_more = |addon: &&AddOnState| {
            let is_wrong = addon.problems.iter().any(|problem| problem.severity == Severity::Error);
            let is_done = addon.outcome() == Outcome::Done && addon.settled == addon.clusters;
            let is_paused = addon.placements.iter().any(|placement| placement.summary.paused);
            !is_done || is_paused || addon.state == Verdict::LeftAlone || is_wrong
        };
        for addon in report.add_ons.iter().filter(says_more).filter(|_| !self.wide) {
            self.out.wrapped("", "  ", &format!("{}: {}", addon.name, addon.message));
        }
    }

    /// Adds a text: in one line if wide, otherwise broken into lines.
    fn text(&mut self, first: &str, rest: &str, text: &str) {
        self.out.fitted(self.wide, first, rest, text);
    }

    fn tree(&mut self, addon: &AddOnState) {
        let paint = self.paint;
        let title = format!(
            "{}  {}  {}",
            paint.paint(Style::Bold, &addon.name),
            paint.paint(style(addon.state), addon.state.as_str()),
            addon.message
        );
        self.text("", "    ", &title);
        let mut placements: Vec<&PlacementState> = addon.placements.iter().collect();
        placements.sort_by_key(|placement| placement.position);
        let stray: Vec<&Unsettled> = addon.unsettled.iter().filter(|one| one.placement.is_none()).collect();
        let branches = placements.len() + usize::from(!stray.is_empty());
        let width = placements.iter().map(|one| shown_width(&one.summary.placement)).max().unwrap_or(0);
        for (index, placement) in placements.into_iter().enumerate() {
            self.branch(addon, placement, width, index + 1 == branches);
        }
        if !stray.is_empty() {
            self.out.line(format_args!("{} in no placement", tee(true)));
            self.leaves(&stray, "   ");
        }
        for problem in addon.problems.iter().filter(|problem| !addon.message.contains(&problem.message)) {
            let severity = match problem.severity {
                Severity::Error => paint.paint(Style::Red, "error"),
                Severity::Warning => paint.paint(Style::Yellow, "warning"),
            };
            self.text("", "    ", &format!("{severity}: {}", problem.message));
        }
    }

    /// A placement: its bar and state, its counts, its message, and its clusters by reason.
    fn branch(&mut self, addon: &AddOnState, placement: &PlacementState, width: usize, last: bool) {
        let one = &placement.summary;
        let name = &one.placement;
        let stem = if last { "   " } else { "│  " };
        let padding = " ".repeat(width - shown_width(name));
        let state = state(placement, self.paint);
        let bar = format!("[{}] {}/{}", bar(placement), one.settled, one.governed);
        let line = format!("{name}{padding}  {bar}  {state}");
        if self.wide || shown_width(&line) + 3 <= WIDTH {
            self.out.line(format_args!("{} {line}", tee(last)));
        } else {
            self.text(&format!("{} ", tee(last)), &format!("{stem}  "), &format!("{name}  {state}"));
            self.out.line(format_args!("{stem}{bar}"));
        }
        let of = |one: &&Unsettled| one.placement.as_deref() == Some(name);
        let clusters: Vec<&Unsettled> = addon.unsettled.iter().filter(of).collect();
        if !clusters.is_empty() {
            self.text(stem, &format!("{stem}  "), &placement.counts_and_pace());
        }
        // What stops an add-on is in its own line.
        if one.reason.is_failure() && !addon.message.contains(&one.message) {
            self.text(stem, &format!("{stem}  "), &one.message);
        }
        self.leaves(&clusters, stem);
    }

    /// The clusters of one branch by reason, those that need attention first.
    fn leaves(&mut self, clusters: &[&Unsettled], stem: &str) {
        let mut groups: Vec<(&Unsettled, Vec<&str>)> = Vec::new();
        for one in clusters {
            let same = |(first, _): &&mut (&Unsettled, Vec<&str>)| {
                first.reason == one.reason && (self.wide || first.message == one.message)
            };
            match groups.iter_mut().find(same) {
                Some((_, names)) if !self.wide => names.push(&one.cluster),
                _ => groups.push((one, vec![&one.cluster])),
            }
        }
        // Many different messages with one reason are shown as one group.
        if !self.wide {
            groups = merged(groups);
        }
        groups.sort_by_key(|(first, names)| (first.kind.rank(), std::cmp::Reverse(names.len())));
        let count = groups.len();
        for (index, (first, names)) in groups.into_iter().enumerate() {
            let last = index + 1 == count;
            let style = if first.kind == ClusterState::Failed { Style::Red } else { Style::Plain };
            let reason = self.paint.paint(style, first.reason.as_str());
            let which = if self.wide { names.join(", ") } else { first_few(&names) };
            let text = match self.wide {
                true => format!("{which}  {reason}  {}", first.message),
                false => format!("{} {reason}: {} ({which})", names.len(), first.message),
            };
            let rest = format!("{stem}{}    ", if last { " " } else { "│" });
            self.text(&format!("{stem}{} ", tee(last)), &rest, &text);
        }
    }
}

/// At most this many different messages with the same reason are shown separately.
const MOST_MESSAGES: usize = 3;

fn merged<'a>(groups: Vec<(&'a Unsettled, Vec<&'a str>)>) -> Vec<(&'a Unsettled, Vec<&'a str>)> {
    let mut merged: Vec<(&Unsettled, Vec<&str>)> = Vec::new();
    for (first, names) in groups {
        let same = |(known, _): &&(&Unsettled, Vec<&str>)| known.reason == first.reason;
        let alike = merged.iter().filter(same).count();
        match merged.iter_mut().rev().find(|(known, _)| known.reason == first.reason) {
            Some((_, known)) if alike >= MOST_MESSAGES => known.extend(names),
            _ => merged.push((first, names)),
        }
    }
    merged
}

fn tee(last: bool) -> &'static str {
    if last { "└─" } else { "├─" }
}

fn bar(placement: &PlacementState) -> String {
    let one = &placement.summary;
    let share = |part: usize| (part * BAR).checked_div(one.governed).unwrap_or(0).min(BAR);
    let some = |part: usize| if part > 0 { share(part).max(1) } else { 0 };
    let failed = some(one.failed);
    let settled = share(one.settled).min(BAR - failed);
    let moving = some(one.in_flight).min(BAR - failed - settled);
    let rest = BAR - settled - moving - failed;
    format!("{}{}{}{}", "#".repeat(settled), ">".repeat(moving), "x".repeat(failed), ".".repeat(rest))
}

/// The state in a word, and the versions.
fn state(placement: &PlacementState, paint: Paint) -> String {
    let one = &placement.summary;
    let to = match (&one.desired, &one.target) {
        (Some(desired), Some(target)) if desired != target => format!(" {desired} ({target} until then)"),
        (Some(desired), _) => format!(" {desired}"),
        (None, _) => String::new(),
    };
    format!("{}{to}", word(placement, paint))
}

/// The state in a word, and whether the placement is paused.
pub(crate) fn word(placement: &PlacementState, paint: Paint) -> String {
    let paused = match placement.summary.paused && placement.state != Verdict::Paused {
        true => paint.paint(Style::Yellow, " (paused)"),
        false => String::new(),
    };
    format!("{}{paused}", paint.paint(style(placement.state), placement.state.as_str()))
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
                let state = placement.state;
                let paused = if one.paused && state != Verdict::Paused { ", paused" } else { "" };
                tell(key, format!("{state}{paused}  {} of {}", placement.counts(), one.governed));
            }
            tell(addon.name.clone(), format!("{}  {}", addon.state, addon.message));
        }
        out
    }
}
