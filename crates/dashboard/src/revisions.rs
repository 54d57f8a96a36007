//! The revisions of an add-on: what each placement wants and has completed, and what each revision
//! changed.

use std::collections::HashMap;

use aviary_controller::CompletedRevision;
use aviary_engine::configs::{Pin, Revision, side_by_side};
use aviary_engine::difference::{self, Field};
use aviary_engine::fleet::Fleet;
use aviary_engine::name::Text;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{self, Plan};
use aviary_engine::versions;
use serde::Serialize;
use serde_json::Value;

use crate::summary::seconds;

/// How many lines describe a change, and how long a line may be.
const MOST_LINES: usize = 12;
const LONGEST_VALUE: usize = 120;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RevisionLine {
    label: Text,
    number: Option<i64>,
    placement: String,
    version: Option<Text>,
    at: Option<String>,
    current: bool,
    /// How many clusters of the placement it is assigned to.
    pub(crate) clusters: usize,
    changes: Vec<String>,
}

impl RevisionLine {
    pub(crate) fn differs_in_count_only(&self, other: &Self) -> bool {
        let Self { label, number, placement, version, at, current, clusters: _, changes } = self;
        *label == other.label
            && *number == other.number
            && *placement == other.placement
            && *version == other.version
            && *at == other.at
            && *current == other.current
            && *changes == other.changes
    }
}

#[cfg(test)]
impl RevisionLine {
    pub(crate) fn sample(label: &str, clusters: usize) -> Self {
        Self {
            label: label.into(),
            number: Some(1),
            placement: "default/fleet".into(),
            version: None,
            at: None,
            current: false,
            clusters,
            changes: Vec::new(),
        }
    }
}

/// Placement by placement, newest first.
pub(crate) fn lines(fleet: &Fleet<'_>, plan: &Plan, history: &[CompletedRevision]) -> Vec<RevisionLine> {
    let observed = fleet.observed;
    let mut told: HashMap<(usize, &Text), usize> = HashMap::new();
    for cluster in &plan.report.clusters {
        if let (Some(placement), Some(label)) = (cluster.placement, &cluster.told) {
            *told.entry((placement, label)).or_default() += 1;
        }
    }
    let mut lines = Vec::new();
    for (index, governor) in fleet.governors.iter().enumerate() {
        let own: Vec<&CompletedRevision> =
            history.iter().filter(|kept| kept.placement == governor.spec.name).collect();
        let wanted = governor.desired.as_ref().ok();
        let new = wanted.filter(|wanted| own.iter().all(|kept| kept.revision != **wanted));
        let all: Vec<(Option<&CompletedRevision>, &Revision)> =
            own.iter().map(|kept| (Some(*kept), &kept.revision)).chain(new.map(|new| (None, new))).collect();
        // If a revision was completed several times, the last time counts.
        let last = all.iter().rposition(|(_, revision)| Some(*revision) == wanted);
        let mut of_placement = Vec::new();
        let mut before: Option<&Revision> = None;
        for (at, (kept, revision)) in all.iter().enumerate() {
            let label = plan::label(observed, revision);
            let counts = last == Some(at) || all.iter().skip(at + 1).all(|(_, later)| later != revision);
            let clusters = told.get(&(index, &label)).copied().filter(|_| counts).unwrap_or(0);
            of_placement.push(RevisionLine {
                number: kept.map(|kept| kept.number),
                placement: governor.spec.name.to_string(),
                version: versions::of_revision(observed, revision),
                at: kept.and_then(|kept| kept.at).map(seconds),
                current: last == Some(at),
                clusters,
                changes: before.map(|before| changes(observed, before, revision)).unwrap_or_default(),
                label,
            });
            before = Some(revision);
        }
        lines.extend(of_placement.into_iter().rev());
    }
    lines
}

/// What a revision changes compared with the previous one, config by config.
fn changes(observed: &Observed, before: &Revision, after: &Revision) -> Vec<String> {
    let mut lines = Vec::new();
    for (kind, row) in side_by_side([Some(before), Some(after)]) {
        match row {
            [Some(old), Some(new)] if old.hash == new.hash => {}
            [Some(old), Some(new)] => {
                let (from, to) = (named(old), named(new));
                lines.push(match from == to {
                    true => format!("{} {to} was edited", kind.resource),
                    false => format!("{}: {from} → {to}", kind.resource),
                });
                if let (Some(old), Some(new)) = (observed.content(old), observed.content(new)) {
                    lines.extend(difference::between(old, new).iter().map(field));
                }
            }
            [None, Some(new)] => lines.push(format!("{}: {} added", kind.resource, named(new))),
            [Some(old), None] => lines.push(format!("{}: {} removed", kind.resource, named(old))),
            [None, None] => {}
        }
    }
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn named(pin: &Pin) -> String {
    match &pin.config.namespace {
        Some(namespace) => format!("{namespace}/{}", pin.config.name),
        None => pin.config.name.to_string(),
    }
}

fn field(field: &Field) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), short);
    format!("{}: {} → {}", field.path, shown(&field.from), shown(&field.to))
}

/// A value, shortened.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
