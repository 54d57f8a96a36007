//! A rehearsal as text: the timeline, the exposure of the fleet, and the result. If narrow, it fits
//! into 80 columns.

use super::report::{
    AddOnRehearsal, Moment, PEAK_EXPLAINED, PlacementEnd, ProfileReport, RehearsalReport, shown,
};
use crate::output::{Paint, Printout, Style, Table, counted, first_few};

/// The number of rows of a timeline.
const ROWS: usize = 12;
const BAR: usize = 24;

pub(crate) fn render(report: &RehearsalReport, narrow: bool, paint: Paint) -> Printout {
    let mut out = Printout::default();
    for addon in &report.add_ons {
        render_addon(&mut out, addon, &report.profile, narrow, paint);
    }
    out
}

fn render_addon(
    out: &mut Printout,
    addon: &AddOnRehearsal,
    profile: &ProfileReport,
    narrow: bool,
    paint: Paint,
) {
    let [from, to] = profile.latency_seconds;
    let title = format!("{} on {}", addon.name, counted(addon.clusters, "cluster"));
    out.line(paint.paint(Style::Bold, &title));
    let nature = format!(
        "updates take {from}s to {to}s, {} fail, {} are unreachable, {} flap; seed {}",
        percent(profile.fail),
        percent(profile.offline),
        percent(profile.flap),
        profile.seed,
    );
    out.fitted(!narrow, "  ", "  ", &nature);
    out.gap();
    timelines(out, addon, narrow, paint);
    out.line("  # settled  > in flight  x failed  . waiting");
    out.gap();
    let ends = placements(addon);
    out.add(&if narrow { ends.fitted(paint) } else { ends.render(paint) });
    if addon.peak_exceeds_budget() {
        out.wrapped("  ", "  ", PEAK_EXPLAINED);
    }
    out.gap();
    render_end(out, addon, narrow, paint);
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1000.0).round() / 10.0)
}

/// The placements side by side, or one below the other where they do not fit.
fn timelines(out: &mut Printout, addon: &AddOnRehearsal, narrow: bool, paint: Paint) {
    let together = timeline(addon, |_| true);
    if !narrow || together.is_narrow() {
        return out.add(&together.render(paint));
    }
    for index in 0..addon.first.placements.len() {
        out.add(&timeline(addon, |placement| placement == index).render(paint));
        out.gap();
    }
}

/// Some moments of the run, evenly spread, always including the last.
fn timeline(addon: &AddOnRehearsal, is_shown: impl Fn(usize) -> bool) -> Table {
    let mut table = Table::default();
    let ends = || addon.first.placements.iter().enumerate().filter(|(index, _)| is_shown(*index));
    let mut head = vec!["time"];
    head.extend(ends().map(|(_, end)| end.placement.as_str()));
    table.head(&head);
    for moment in chosen(&addon.first.timeline) {
        let mut row = vec![(Style::Plain, shown(moment.seconds))];
        for (index, end) in ends() {
            let Some(at) = moment.placements.get(index) else { continue };
            let done = share_of(at.done, end.governed);
            let moving = share_of(at.done + at.in_flight, end.governed).max(done);
            let failed = share_of(at.done + at.in_flight + at.failed, end.governed).max(moving);
            let bar = format!(
                "{}{}{}{}",
                "#".repeat(done),
                ">".repeat(moving - done),
                "x".repeat(failed - moving),
                ".".repeat(BAR - failed)
            );
            let failed = if at.failed > 0 { format!(" {} failed", at.failed) } else { String::new() };
            let style = if at.failed > 0 { Style::Red } else { Style::Plain };
            row.push((style, format!("{bar} {}/{}{failed}", at.done, end.governed)));
        }
        table.row(row);
    }
    table
}

fn chosen(timeline: &[Moment]) -> Vec<&Moment> {
    let end = timeline.last().map_or(0, |moment| moment.seconds);
    let mut rows: Vec<&Moment> = Vec::new();
    for row in 0..=ROWS as u64 {
        let until = end * row / ROWS as u64;
        let at = timeline.partition_point(|moment| moment.seconds <= until);
        let moment = at.checked_sub(1).and_then(|at| timeline.get(at));
        if let Some(moment) = moment
            && rows.last().is_none_or(|last| last.seconds != moment.seconds)
        {
            rows.push(moment);
        }
    }
    rows
}

fn share_of(part: usize, whole: usize) -> usize {
    (part * BAR).checked_div(whole).unwrap_or(0).min(BAR)
}

type CountOf = fn(&PlacementEnd) -> usize;

fn placements(addon: &AddOnRehearsal) -> Table {
    let mut table = Table::default();
    let ends = &addon.first.placements;
    let any = |count: CountOf| ends.iter().any(|end| count(end) > 0);
    let columns: [(&str, CountOf, bool); 8] = [
        ("clusters", |end| end.governed, true),
        ("budget", |end| end.budget, true),
        ("peak", |end| end.peak_exposed, true),
        ("settled", |end| end.settled, true),
        // Without such clusters, a row adds up all the same.
        ("in flight", |end| end.in_flight, any(|end| end.in_flight)),
        ("failed", |end| end.failed, true),
        ("waiting", |end| end.waiting, true),
        ("leaving", |end| end.leaving, any(|end| end.leaving)),
    ];
    let columns = || columns.iter().filter(|(.., is_shown)| *is_shown);
    let names = columns().map(|(name, ..)| *name);
    table.head(&["placement"].into_iter().chain(names).chain(["result"]).collect::<Vec<_>>());
    for end in ends {
        let style = if end.well { Style::Green } else { Style::Red };
        let counts = columns().map(|(_, count, _)| (Style::Plain, count(end).to_string()));
        let name = [(Style::Plain, end.placement.clone())];
        table.row(name.into_iter().chain(counts).chain([(style, end.message.clone())]));
    }
    table
}

fn render_end(out: &mut Printout, addon: &AddOnRehearsal, narrow: bool, paint: Paint) {
    let first = &addon.first;
    let verdict = match (first.settled, first.ran_out) {
        (true, _) => {
            paint.paint(Style::Green, &format!("All clusters settled after {}.", shown(first.seconds)))
        }
        (false, true) => paint.paint(Style::Red, "Still moving after a week: stopped."),
        (false, false) => {
            let left: usize = first.unsettled.iter().map(|group| group.count).sum();
            let text =
                format!("Stops after {}; {} not settled.", shown(first.seconds), counted(left, "cluster"));
            paint.paint(Style::Red, &text)
        }
    };
    let verdict = format!("{verdict} {} passes, {} writes.", first.passes, first.writes);
    out.fitted(!narrow, "", "  ", &verdict);
    for group in first.unsettled.iter().take(ROWS) {
        let who = first_few(&group.clusters);
        let why = format!("{}  {}", group.message, paint.paint(Style::Dim, &who));
        out.fitted(!narrow, &format!("  {:>6}  ", group.count), &" ".repeat(10), &why);
    }
    if let Some(why) = addon.unseen_explained() {
        out.wrapped("", "", &why);
    }
    let runs = &addon.runs;
    if runs.count > 1 {
        let summary = format!(
            "Of {} fleets, {} settled. Half were done after {}, 90% after {}, all after {}.",
            runs.count,
            runs.settled,
            shown(runs.p50_seconds),
            shown(runs.p90_seconds),
            shown(runs.worst_seconds),
        );
        out.fitted(!narrow, "", "  ", &summary);
    }
    out.gap();
}
