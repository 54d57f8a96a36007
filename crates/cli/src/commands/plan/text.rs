//! The plan as text: removals first, then starts, the waves, and what clusters wait for. If narrow,
//! it fits into 80 columns.

use serde_json::Value;

use aviary_engine::difference::PinChange;
use aviary_engine::reason::Reason;

use super::radius::Waves;
use super::report::{AddOnReport, ContentChange, Group, Movement, PlanReport};
use crate::difference::{Difference, Field};
use crate::findings::Severity;
use crate::output::{Paint, Printout, Style, Table, counted, first_few};

/// How many waves are listed individually.
const WAVES_SHOWN: usize = 10;
/// How many waves are shown side by side when broken down by label.
const WAVES_BY_LABEL: usize = 4;

/// How many fields of a changed object are shown.
const FIELDS_SHOWN: usize = 12;

/// Shortens a value to one line.
fn clipped(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

pub(super) fn render(report: &PlanReport, narrow: bool, paint: Paint) -> Printout {
    let mut page = PlanPage { narrow, paint, text: Printout::default() };
    for addon in &report.add_ons {
        page.addon(addon);
    }
    page.changes(&report.changes);
    if !report.notes.is_empty() {
        page.section("Notes");
        page.bullets(&report.notes);
    }
    page.text.gap();
    page.text
}

struct PlanPage {
    narrow: bool,
    paint: Paint,
    text: Printout,
}

impl PlanPage {
    fn addon(&mut self, addon: &AddOnReport) {
        let name = self.paint.paint(Style::Bold, &format!("Add-on {}", addon.name));
        self.gap();
        self.line("", &format!("{name}{}", headline(addon)));
        self.groups("Removed", Style::Red, &addon.removals);
        self.movements("Created now", &addon.creates);
        self.movements("Started now", &addon.starts);
        self.groups("In flight", Style::Cyan, &addon.in_flight);
        self.groups("Failed", Style::Red, &addon.failed);
        self.waves(addon);
        self.labels(&addon.waves);
        self.placements(addon);
        self.groups("Waiting", Style::Yellow, &addon.waiting);
        self.problems(addon);
        self.contents(&addon.contents);
        let (assumed, others) = addon.notes.split_at(addon.assumed.min(addon.notes.len()));
        for (title, notes) in [("Made by others", others), ("Assumed", assumed)] {
            if !notes.is_empty() {
                self.section(title);
                self.bullets(notes);
            }
        }
    }

    fn changes(&mut self, changes: &[Difference]) {
        if changes.is_empty() {
            return;
        }
        self.section("Changed on the hub");
        for change in changes {
            let name = match change.namespace.as_str() {
                "" => change.name.clone(),
                namespace => format!("{namespace}/{}", change.name),
            };
            self.line("  ", &format!("{} {} {name}", change.change.to_lowercase(), change.kind));
            self.fields(&change.fields);
        }
    }

    /// What the desired revisions change.
    fn contents(&mut self, contents: &[ContentChange]) {
        for change in contents {
            self.section(&format!("{} → {} in {}", change.from, change.to, change.placements.join(", ")));
            for config in &change.configs {
                let PinChange { kind, from, to, fields } = config;
                let what = match (from, to) {
                    (Some(from), Some(to)) if from == to => format!("{kind} {to} was edited"),
                    (Some(from), Some(to)) => format!("{kind}: {from} → {to}"),
                    (None, Some(to)) => format!("{kind}: {to} added"),
                    (Some(from), None) => format!("{kind}: {from} removed"),
                    (None, None) => kind.clone(),
                };
                self.line("  ", &what);
                self.fields(fields);
            }
        }
    }

    fn fields(&mut self, fields: &[Field]) {
        let shown = |value: &Option<Value>| match value {
            Some(value) => clipped(&value.to_string()),
            None => "-".to_owned(),
        };
        for field in fields.iter().take(FIELDS_SHOWN) {
            let (path, from, to) = (&field.path, shown(&field.from), shown(&field.to));
            self.line("    ", &format!("{path}: {from} → {to}"));
        }
        let more = fields.len().saturating_sub(FIELDS_SHOWN);
        if more > 0 {
            self.text.line(format_args!("    and {}", counted(more, "more field")));
        }
    }

    fn section(&mut self, title: &str) {
        self.gap();
        match self.narrow {
            true => self.text.wrapped_in(Style::Bold, self.paint, "", "  ", title),
            false => self.text.line(self.paint.paint(Style::Bold, title)),
        }
    }

    /// Adds an empty line, except at the beginning.
    fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.gap();
        }
    }

    fn table(&mut self, table: &Table) {
        let text = if self.narrow { table.fitted(self.paint) } else { table.render(self.paint) };
        self.text.add(&text);
    }

    /// Adds a text with this indentation. What does not fit goes further in.
    fn line(&mut self, indent: &str, text: &str) {
        self.text.fitted(!self.narrow, indent, &format!("{indent}  "), text);
    }

    fn bullets(&mut self, lines: &[String]) {
        for line in lines {
            self.line("  ", line);
        }
    }

    fn groups(&mut self, title: &str, style: Style, groups: &[Group]) {
        if groups.is_empty() {
            return;
        }
        self.section(title);
        let mut table = Table::default();
        table.head(&["CLUSTERS", "WHY", "WHICH"]);
        for group in groups {
            let which = first_few(&group.clusters);
            table.row([
                (style, group.count.to_string()),
                (Style::Plain, group.message.clone()),
                (Style::Plain, which),
            ]);
        }
        self.table(&table);
    }

    fn movements(&mut self, title: &str, movements: &[Movement]) {
        if movements.is_empty() {
            return;
        }
        self.section(title);
        let mut table = Table::default();
        table.head(&["CLUSTERS", "WHAT", "PLACEMENT", "WHICH"]);
        for movement in movements {
            table.row([
                (Style::Green, movement.count.to_string()),
                (Style::Plain, way(movement)),
                (Style::Plain, movement.placement.clone().unwrap_or_else(|| "-".to_owned())),
                (Style::Plain, first_few(&movement.clusters)),
            ]);
        }
        self.table(&table);
    }

    fn waves(&mut self, addon: &AddOnReport) {
        let waves = &addon.waves;
        if waves.list.is_empty() && addon.creates.is_empty() {
            return;
        }
        self.section(&match waves.count {
            0 => "No wave".to_owned(),
            count => format!("{}, if every cluster succeeds immediately", counted(count, "wave")),
        });
        let mut table = Table::default();
        if !waves.list.is_empty() {
            table.head(&["WAVE", "CLUSTERS", "SHARE", "REACHED", "WHAT"]);
        }
        for wave in waves.list.iter().take(WAVES_SHOWN) {
            let what: Vec<String> = wave
                .moves
                .iter()
                .map(|movement| match &movement.placement {
                    Some(placement) => format!("{placement}: {} {}", movement.count, way(movement)),
                    None => format!("{} {}", movement.count, way(movement)),
                })
                .collect();
            let after = if wave.after_seconds > 0 {
                format!(" (after {} s)", wave.after_seconds)
            } else {
                String::new()
            };
            table.row([
                (Style::Bold, wave.wave.to_string()),
                (Style::Plain, wave.count.to_string()),
                (Style::Plain, format!("{}%", wave.share_percent)),
                (Style::Plain, format!("{}%", wave.reached_percent)),
                (Style::Plain, what.join("; ") + &after),
            ]);
        }
        self.table(&table);
        let more = waves.count.saturating_sub(WAVES_SHOWN.min(waves.list.len()));
        if more > 0 {
            let largest = waves.list.iter().skip(WAVES_SHOWN).map(|wave| wave.count).max();
            let of =
                largest.map(|count| format!(" of at most {}", counted(count, "cluster"))).unwrap_or_default();
            self.text.line(format_args!("  and {}{of}", counted(more, "more wave")));
        }
        match waves.end {
            "Stands" => self.left(&waves.unsettled, if waves.list.is_empty() { "" } else { "then " }),
            "Long" => self.text.line("  the later waves are estimated from the budgets"),
            _ => {}
        }
    }

    /// The clusters that are stuck at the end.
    fn left(&mut self, groups: &[Group], then: &str) {
        for group in groups {
            let (are, which) = (are(group.count), first_few(&group.clusters));
            self.line("  ", &format!("{then}{are} stuck: {}: {which}", group.message));
        }
    }

    fn labels(&mut self, waves: &Waves) {
        if waves.list.is_empty() || waves.fleet_by_label.is_empty() {
            return;
        }
        self.section("By label");
        let mut table = Table::default();
        let shown = waves.list.len().min(WAVES_BY_LABEL);
        let mut head = vec!["LABEL".to_owned(), "FLEET".to_owned()];
        head.extend((1..=shown).map(|wave| format!("WAVE {wave}")));
        table.row(head.into_iter().map(|name| (Style::Dim, name)));
        for (key, values) in &waves.fleet_by_label {
            for (value, count) in values {
                let label = if value.is_empty() { format!("no {key}") } else { format!("{key}={value}") };
                let mut row = vec![(Style::Plain, label), (Style::Plain, count.to_string())];
                row.extend(waves.list.iter().take(shown).map(|wave| {
                    let count =
                        wave.by_label.get(key).and_then(|values| values.get(value)).copied().unwrap_or(0);
                    (Style::Plain, if count == 0 { "-".to_owned() } else { count.to_string() })
                }));
                table.row(row);
            }
        }
        self.table(&table);
    }

    fn placements(&mut self, addon: &AddOnReport) {
        if addon.placements.is_empty() {
            return;
        }
        self.section("Placements");
        let mut table = Table::default();
        table.head(&["PLACEMENT", "GOVERNS", "BUDGET", "WANTS", "STATE", "MESSAGE"]);
        for placement in &addon.placements {
            let wants = match (&placement.desired, &placement.target) {
                (Some(desired), Some(target)) if desired != target => {
                    format!("{desired} ({target} until then)")
                }
                (Some(desired), _) => desired.clone(),
                (None, _) => "-".to_owned(),
            };
            let style = if placement.reason.is_failure() { Style::Red } else { Style::Plain };
            let (state, message) = match addon.undecided.contains(&placement.placement) {
                true => {
                    ("Undecided".to_owned(), "no placement controller has chosen its clusters yet".to_owned())
                }
                false => (placement.reason.to_string(), placement.message.clone()),
            };
            table.row([
                (Style::Plain, placement.placement.clone()),
                (Style::Plain, placement.governed.to_string()),
                (
                    Style::Plain,
                    placement.budget.map_or_else(|| "all".to_owned(), |budget| budget.to_string()),
                ),
                (Style::Plain, wants),
                (style, state),
                (Style::Plain, message),
            ]);
        }
        self.table(&table);
    }

    fn problems(&mut self, addon: &AddOnReport) {
        if addon.problems.is_empty() {
            return;
        }
        self.section("Problems");
        let mut table = Table::default();
        table.head(&["SEVERITY", "REASON", "MESSAGE"]);
        for problem in &addon.problems {
            let (style, severity) = match problem.severity {
                Severity::Error => (Style::Red, "error"),
                Severity::Warning => (Style::Yellow, "warning"),
            };
            table.row([
                (style, severity.to_owned()),
                (Style::Plain, problem.reason.to_string()),
                (Style::Plain, problem.message.clone()),
            ]);
        }
        self.table(&table);
    }
}

fn headline(addon: &AddOnReport) -> String {
    if let Some(why) = addon.left_alone {
        return format!(" is not managed: {why}");
    }
    let total = |groups: &[Group]| groups.iter().map(|group| group.count).sum::<usize>();
    let moved = |movements: &[Movement]| movements.iter().map(|movement| movement.count).sum::<usize>();
    let parts = [
        (total(&addon.removals), "removed"),
        (moved(&addon.creates), "created"),
        (moved(&addon.starts), "started"),
        (total(&addon.in_flight), "in flight"),
        (total(&addon.failed), "failed"),
        (total(&addon.waiting), "waiting"),
        (addon.settled, "settled"),
    ];
    let told: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let of = counted(addon.clusters, "cluster");
    match (told.is_empty(), addon.undecided.is_empty()) {
        (true, true) if addon.has_errors() => format!(", {of}: stopped by the problems below"),
        (true, true) => format!(", {of}: nothing to do"),
        (true, false) => format!(", no clusters yet: {} not decided yet", addon.undecided.join(", ")),
        (false, _) => format!(", {of}: {}", told.join(", ")),
    }
}

fn way(movement: &Movement) -> String {
    let verb = match movement.kind {
        Reason::Create | Reason::Install => "install",
        Reason::Retarget => "turn",
        _ => "update",
    };
    match (&movement.from, &movement.to) {
        (_, None) if movement.kind == Reason::Create => "nothing to install yet".to_owned(),
        (Some(from), Some(to)) => format!("{verb} {from} → {to}"),
        (None, Some(to)) => format!("{verb} {to}"),
        (_, None) => verb.to_owned(),
    }
}

fn are(count: usize) -> String {
    if count == 1 { "1 cluster is".to_owned() } else { format!("{count} clusters are") }
}
