//! One row per cluster, stored by column, and a dictionary of the texts that rows share.
//!
//! Thousands of rows have few different texts. A text that contains counts changes for many rows at
//! once. Such a text has its own place in the dictionary, which is overwritten, so that no row has
//! to change.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aviary_engine::explain::{Decision, Wait};
use aviary_engine::fleet::Fleet;
use aviary_engine::name::ClusterName;
use aviary_engine::plan::{Plan, Why};
use aviary_engine::reason::Reason;

use crate::messages::{ClusterChanges, ClusterColumns, ClusterKind};

/// A dictionary with this many unused texts is built again.
const MOST_UNUSED: usize = 1000;

/// The clusters of an add-on as they are now.
pub(crate) struct Rows {
    reasons: Vec<Arc<Why>>,
    rows: Vec<Row>,
}

struct Row {
    name: ClusterName,
    /// Index in `reasons`.
    reason: usize,
    stage: u32,
}

impl Rows {
    pub(crate) fn of(fleet: &Fleet<'_>, plan: &Plan) -> Self {
        let mut known: HashMap<*const Why, usize> = HashMap::new();
        let mut reasons: Vec<Arc<Why>> = Vec::new();
        // Both are sorted by cluster name.
        let mut lines = fleet.lines.iter().peekable();
        let rows = plan.report.clusters.iter().map(|cluster| {
            let reason = *known.entry(Arc::as_ptr(&cluster.why)).or_insert_with(|| {
                reasons.push(Arc::clone(&cluster.why));
                reasons.len() - 1
            });
            while lines.next_if(|line| *line.name < cluster.cluster).is_some() {}
            let line = lines.next_if(|line| *line.name == cluster.cluster);
            let facts = line.and_then(|line| fleet.cohorts.get(line.cohort())).map(|cohort| &cohort.facts);
            let stage = facts.map_or(0, |facts| u32::try_from(facts.stage()).unwrap_or(u32::MAX));
            Row { name: cluster.cluster.clone(), reason, stage }
        });
        let rows = rows.collect();
        Self { reasons, rows }
    }
}

/// The key of a text in the dictionary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TextKey {
    Text(String),
    /// All clusters of a placement with this reason share one text, which changes.
    Counting(Option<usize>, Reason),
}

impl TextKey {
    fn of(why: &Why, text: &str) -> Self {
        match &why.decision {
            Decision::Hold(
                wait @ (Wait::BudgetFull { .. }
                | Wait::Canary(_)
                | Wait::KnownGoodFirst { .. }
                | Wait::Stage { .. }
                | Wait::Halted { .. }),
            ) => Self::Counting(why.placement, wait.code()),
            _ => Self::Text(text.to_owned()),
        }
    }
}

#[derive(Debug, Default)]
struct Dictionary {
    texts: Vec<String>,
    places: HashMap<TextKey, usize>,
}

/// Changes of a dictionary.
#[derive(Default)]
struct Edits {
    appended: usize,
    set: Vec<(usize, String)>,
}

impl Dictionary {
    fn place(&mut self, key: TextKey, text: &str, edits: &mut Edits) -> usize {
        let Self { texts, places } = self;
        *places.entry(key).or_insert_with(|| {
            edits.appended += 1;
            texts.push(text.to_owned());
            texts.len() - 1
        })
    }

    /// The place of a reason's text. `claimed` are the places that already have their text in this
    /// pass.
    fn of_reason(&mut self, why: &Why, claimed: &mut HashSet<usize>, edits: &mut Edits) -> usize {
        let text = why.decision.to_string();
        let key = TextKey::of(why, &text);
        let place = self.place(key, &text, edits);
        let Some(there) = self.texts.get_mut(place) else { return place };
        if *there == text {
            claimed.insert(place);
            return place;
        }
        if claimed.insert(place) {
            there.clone_from(&text);
            edits.set.push((place, text));
            return place;
        }
        // Two different texts for the same key at the same time: the second gets its own place.
        self.place(TextKey::Text(text.clone()), &text, edits)
    }
}

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    placement: i64,
    kind: i64,
    message: i64,
    revision: i64,
}

/// The columns as they were sent.
#[derive(Debug, Default)]
pub(crate) struct SentColumns {
    dictionary: Dictionary,
    names: Vec<ClusterName>,
    orders: Vec<u32>,
    cells: Vec<Cell>,
    /// Rows sorted by name, the order in which clusters are visited.
    by_name: Vec<usize>,
}

impl SentColumns {
    pub(crate) fn new(rows: &Rows) -> Self {
        let mut columns = Self::default();
        let cells = columns.cells_of(rows, &mut Edits::default());
        for (at, row) in rows.rows.iter().enumerate() {
            columns.push(row, cells.get(row.reason).copied());
            columns.by_name.push(at);
        }
        columns
    }

    fn push(&mut self, row: &Row, cell: Option<Cell>) {
        self.names.push(row.name.clone());
        self.orders.push(row.stage);
        self.cells.push(cell.unwrap_or(Cell { placement: -1, kind: -1, message: -1, revision: -1 }));
    }

    /// One cell for each reason.
    fn cells_of(&mut self, rows: &Rows, edits: &mut Edits) -> Vec<Cell> {
        let mut claimed = HashSet::new();
        let number = |place: usize| i64::try_from(place).unwrap_or(-1);
        rows.reasons
            .iter()
            .map(|why| Cell {
                placement: why.placement.map_or(-1, number),
                kind: {
                    let name = ClusterKind::of(&why.decision).name();
                    number(self.dictionary.place(TextKey::Text(name.to_owned()), name, edits))
                },
                message: number(self.dictionary.of_reason(why, &mut claimed, edits)),
                revision: why.told.as_ref().map_or(-1, |told| {
                    number(self.dictionary.place(TextKey::Text(told.to_string()), told, edits))
                }),
            })
            .collect()
    }

    pub(crate) fn dictionary(&self) -> &[String] {
        &self.dictionary.texts
    }

    pub(crate) fn all(&self) -> ClusterColumns<'_> {
        self.from(0)
    }

    fn from(&self, first: usize) -> ClusterColumns<'_> {
        let cells = self.cells.get(first..).unwrap_or_default();
        ClusterColumns {
            name: self.names.iter().skip(first).map(ClusterName::as_str).collect(),
            placement: cells.iter().map(|cell| cell.placement).collect(),
            kind: cells.iter().map(|cell| cell.kind).collect(),
            message: cells.iter().map(|cell| cell.message).collect(),
            revision: cells.iter().map(|cell| cell.revision).collect(),
            order: self.orders.get(first..).unwrap_or_default(),
        }
    }

    /// Updates the columns from the current clusters. `None` if only a complete message can
    /// describe the change.
    pub(crate) fn take(&mut self, rows: &Rows) -> Option<ClusterChanges<'_>> {
        let places = self.places(rows)?;
        let mut edits = Edits::default();
        let cells = self.cells_of(rows, &mut edits);
        if self.dictionary.texts.len() > MOST_UNUSED + 4 * cells.len() {
            return None;
        }
        let before = self.names.len();
        let mut changed: Vec<(usize, i64, i64, i64)> = Vec::new();
        let mut by_name = Vec::with_capacity(rows.rows.len());
        for (row, place) in rows.rows.iter().zip(places) {
            let cell = cells.get(row.reason).copied();
            let Some(at) = place else {
                by_name.push(self.names.len());
                self.push(row, cell);
                continue;
            };
            by_name.push(at);
            let (was, is) = (self.cells.get_mut(at)?, cell?);
            if was.placement != is.placement || self.orders.get(at) != Some(&row.stage) {
                return None;
            }
            if *was != is {
                *was = is;
                changed.push((at, is.kind, is.message, is.revision));
            }
        }
        self.by_name = by_name;
        let new = self.dictionary.texts.len() - edits.appended;
        Some(ClusterChanges {
            dictionary_append: self.dictionary.texts.get(new..).unwrap_or_default(),
            dictionary_set: edits.set,
            rows: changed,
            append: (self.names.len() > before).then(|| self.from(before)),
        })
    }

    /// For each cluster, its row, or `None` if it has none yet. Returns `None` if a row has lost
    /// its cluster.
    fn places(&self, rows: &Rows) -> Option<Vec<Option<usize>>> {
        let mut places = Vec::with_capacity(rows.rows.len());
        let mut known = self.by_name.iter().copied().peekable();
        for row in &rows.rows {
            let at = known.peek().copied();
            let name = at.and_then(|at| self.names.get(at));
            match name.map(|name| name.cmp(&row.name)) {
                Some(std::cmp::Ordering::Equal) => {
                    known.next();
                    places.push(at);
                }
                Some(std::cmp::Ordering::Less) => return None,
                Some(std::cmp::Ordering::Greater) | None => places.push(None),
            }
        }
        known.peek().is_none().then_some(places)
    }
}

#[cfg(test)]
mod tests {
    use aviary_engine::explain::Flight;
    use serde_json::json;

    use super::*;

    fn why(decision: Decision) -> Arc<Why> {
        Arc::new(Why { placement: Some(0), decision, told: Some("v1".into()), was_told: None, object: None })
    }

    /// Clusters c0, c1, … with these reasons.
    fn rows(reasons: Vec<Arc<Why>>, of: &[(usize, usize)]) -> Rows {
        let row = |(number, reason): &(usize, usize)| Row {
            name: ClusterName::parse(&format!("c{number}")).unwrap(),
            reason: *reason,
            stage: 0,
        };
        Rows { reasons, rows: of.iter().map(row).collect() }
    }

    fn full(in_flight: usize) -> Arc<Why> {
        why(Decision::Hold(Wait::BudgetFull { in_flight, failed: 0, unhealthy: 0, budget: 5 }))
    }

    #[test]
    fn a_text_that_counts_changes_in_its_place_and_no_row_with_it() {
        let mut columns =
            SentColumns::new(&rows(vec![full(3), why(Decision::Settled)], &[(0, 0), (1, 0), (2, 1)]));
        let same = rows(vec![full(4), why(Decision::Settled)], &[(0, 0), (1, 0), (2, 1)]);
        let changes = json!(columns.take(&same));
        assert_eq!(changes, json!({"dictionarySet": [[1, "budget full: 4 of 5 in flight"]]}));
        let updating = why(Decision::InFlight(Flight::Updating));
        let more = rows(vec![full(4), updating], &[(0, 0), (1, 0), (2, 1), (3, 1)]);
        let changes = json!(columns.take(&more));
        assert_eq!(
            changes,
            json!({
                "dictionaryAppend": ["inFlight", "updating"], "rows": [[2, 4, 5, 2]],
                "append": {"name": ["c3"], "placement": [0], "kind": [4], "message": [5], "revision": [2], "order": [0]},
            })
        );
    }

    #[test]
    fn two_texts_of_one_kind_at_once_have_two_places() {
        let columns = SentColumns::new(&rows(vec![full(3), full(4)], &[(0, 0), (1, 1)]));
        let messages: Vec<&str> =
            columns.all().message.iter().map(|at| columns.dictionary()[*at as usize].as_str()).collect();
        assert_eq!(messages, ["budget full: 3 of 5 in flight", "budget full: 4 of 5 in flight"]);
    }

    #[test]
    fn a_cluster_that_leaves_or_changes_its_placement_needs_the_whole() {
        let settled = || vec![why(Decision::Settled)];
        let known = || SentColumns::new(&rows(settled(), &[(0, 0), (2, 0)]));
        assert!(known().take(&rows(settled(), &[(0, 0)])).is_none());
        assert!(known().take(&rows(settled(), &[(2, 0)])).is_none());
        assert!(known().take(&rows(settled(), &[(0, 0), (1, 0), (2, 0)])).is_some());
        let elsewhere = Arc::new(Why { placement: Some(1), ..Why::clone(&why(Decision::Settled)) });
        assert!(known().take(&rows(vec![elsewhere], &[(0, 0), (2, 0)])).is_none());
    }
}
