//! One row per cluster, column by column, and the texts that many rows share.
//!
//! Thousands of rows have few different texts. Those that say how many others there are change for all at once, so such a text has a place of its
//! own that is written anew, and no row of it changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aviary_engine::explain::{Decision, Wait};
use aviary_engine::fleet::Fleet;
use aviary_engine::name::ClusterName;
use aviary_engine::plan::{Plan, Why};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A dictionary of which so much is not used any more is begun anew.
const MOST_UNUSED: usize = 1000;

/// Numbers for what a cluster does, as the page knows them.
pub(crate) fn kind(decision: &Decision) -> u8 {
    match decision {
        Decision::Settled => 0,
        Decision::InFlight(flight) if flight.is_failure() => 2,
        Decision::InFlight(_) | Decision::Start(_) => 1,
        Decision::Delete(_) | Decision::Hold(Wait::Terminating | Wait::ClusterDeleting) => 4,
        Decision::Hold(_) | Decision::Create => 3,
    }
}

/// The clusters of an add-on as they are now.
pub(crate) struct Rows {
    reasons: Vec<Arc<Why>>,
    rows: Vec<Row>,
}

struct Row {
    name: ClusterName,
    /// Place in `reasons`.
    reason: usize,
    stage: u32,
}

impl Rows {
    pub(crate) fn of(fleet: &Fleet<'_>, plan: &Plan) -> Self {
        let mut known: HashMap<*const Why, usize> = HashMap::new();
        let mut reasons: Vec<Arc<Why>> = Vec::new();
        // Both are in order of cluster name.
        let mut lines = fleet.lines.iter().peekable();
        let rows = plan.report.clusters.iter().map(|cluster| {
            let reason = *known.entry(Arc::as_ptr(&cluster.why)).or_insert_with(|| {
                reasons.push(Arc::clone(&cluster.why));
                reasons.len() - 1
            });
            while lines.next_if(|line| *line.name < cluster.cluster).is_some() {}
            let line = lines.next_if(|line| *line.name == cluster.cluster);
            let stage = line.map_or(0, |line| u32::try_from(line.stage()).unwrap_or(u32::MAX));
            Row { name: cluster.cluster.clone(), reason, stage }
        });
        let rows = rows.collect();
        Self { reasons, rows }
    }
}

/// Which place in the dictionary a text has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Slot {
    Text(String),
    /// All of a placement that wait for this have the same text, which changes.
    Counting(Option<usize>, &'static str),
}

impl Slot {
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
    slots: HashMap<Slot, usize>,
}

/// What changed in a dictionary.
#[derive(Default)]
struct Edits {
    appended: usize,
    set: Vec<(usize, String)>,
}

impl Dictionary {
    fn place(&mut self, slot: Slot, text: &str, edits: &mut Edits) -> usize {
        let Self { texts, slots } = self;
        *slots.entry(slot).or_insert_with(|| {
            edits.appended += 1;
            texts.push(text.to_owned());
            texts.len() - 1
        })
    }

    /// The place of a reason's text. `claimed` are the places that have their text of this look already.
    fn of_reason(&mut self, why: &Why, claimed: &mut HashSet<usize>, edits: &mut Edits) -> usize {
        let text = why.decision.to_string();
        let slot = Slot::of(why, &text);
        let place = self.place(slot, &text, edits);
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
        // Two of one kind with different texts at once: the second stands for itself.
        self.place(Slot::Text(text.clone()), &text, edits)
    }
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    placement: i64,
    kind: u8,
    message: i64,
    revision: i64,
}

/// The columns as they were told.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    dictionary: Dictionary,
    names: Vec<ClusterName>,
    orders: Vec<u32>,
    cells: Vec<Cell>,
    /// Rows in order of name, which is how clusters are looked at.
    by_name: Vec<usize>,
}

#[derive(Serialize)]
struct Told<'a> {
    name: Vec<&'a str>,
    placement: Vec<i64>,
    kind: Vec<u8>,
    message: Vec<i64>,
    revision: Vec<i64>,
    order: &'a [u32],
}

impl Columns {
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
        self.cells.push(cell.unwrap_or(Cell { placement: -1, kind: 3, message: -1, revision: -1 }));
    }

    /// One cell for each reason.
    fn cells_of(&mut self, rows: &Rows, edits: &mut Edits) -> Vec<Cell> {
        let mut claimed = HashSet::new();
        let number = |place: usize| i64::try_from(place).unwrap_or(-1);
        rows.reasons
            .iter()
            .map(|why| Cell {
                placement: why.placement.map_or(-1, number),
                kind: kind(&why.decision),
                message: number(self.dictionary.of_reason(why, &mut claimed, edits)),
                revision: why.told.as_ref().map_or(-1, |told| {
                    number(self.dictionary.place(Slot::Text(told.to_string()), told, edits))
                }),
            })
            .collect()
    }

    fn told(&self, from: usize) -> Told<'_> {
        let cells = self.cells.get(from..).unwrap_or_default();
        Told {
            name: self.names.iter().skip(from).map(ClusterName::as_str).collect(),
            placement: cells.iter().map(|cell| cell.placement).collect(),
            kind: cells.iter().map(|cell| cell.kind).collect(),
            message: cells.iter().map(|cell| cell.message).collect(),
            revision: cells.iter().map(|cell| cell.revision).collect(),
            order: self.orders.get(from..).unwrap_or_default(),
        }
    }

    /// Everything, into the fields of a whole.
    pub(crate) fn tell(&self, into: &mut Map<String, Value>) {
        into.insert("dictionary".into(), json!(self.dictionary.texts));
        into.insert("clusters".into(), json!(self.told(0)));
    }

    /// Takes in what the clusters look like now, and puts what changed into the fields of a change. Says whether a change can tell it.
    pub(crate) fn take(&mut self, rows: &Rows, into: &mut Map<String, Value>) -> bool {
        let Some(places) = self.places(rows) else { return false };
        let mut edits = Edits::default();
        let cells = self.cells_of(rows, &mut edits);
        if self.dictionary.texts.len() > MOST_UNUSED + 4 * cells.len() {
            return false;
        }
        let before = self.names.len();
        let mut changed: Vec<(usize, u8, i64, i64)> = Vec::new();
        let mut by_name = Vec::with_capacity(rows.rows.len());
        for (row, place) in rows.rows.iter().zip(places) {
            let cell = cells.get(row.reason).copied();
            let Some(at) = place else {
                by_name.push(self.names.len());
                self.push(row, cell);
                continue;
            };
            by_name.push(at);
            let (Some(was), Some(is)) = (self.cells.get_mut(at), cell) else { return false };
            if was.placement != is.placement || self.orders.get(at) != Some(&row.stage) {
                return false;
            }
            if *was != is {
                *was = is;
                changed.push((at, is.kind, is.message, is.revision));
            }
        }
        self.by_name = by_name;
        if edits.appended > 0 {
            let new = self.dictionary.texts.len() - edits.appended;
            into.insert("dictionaryAppend".into(), json!(self.dictionary.texts.get(new..)));
        }
        if !edits.set.is_empty() {
            into.insert("dictionarySet".into(), json!(edits.set));
        }
        if !changed.is_empty() {
            into.insert("rows".into(), json!(changed));
        }
        if self.names.len() > before {
            into.insert("append".into(), json!(self.told(before)));
        }
        true
    }

    /// For each cluster the row that it has, or that it has none yet; `None` where a row has lost its cluster.
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

    use super::*;

    fn why(decision: Decision) -> Arc<Why> {
        Arc::new(Why { placement: Some(0), decision, told: Some("v1".into()) })
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
        why(Decision::Hold(Wait::BudgetFull { in_flight, budget: 5 }))
    }

    #[test]
    fn a_text_that_counts_changes_in_its_place_and_no_row_with_it() {
        let mut columns =
            Columns::new(&rows(vec![full(3), why(Decision::Settled)], &[(0, 0), (1, 0), (2, 1)]));
        let mut delta = Map::new();
        assert!(
            columns.take(&rows(vec![full(4), why(Decision::Settled)], &[(0, 0), (1, 0), (2, 1)]), &mut delta)
        );
        assert_eq!(json!(delta), json!({"dictionarySet": [[0, "budget full: 4 of 5 in flight"]]}));
        let mut delta = Map::new();
        let updating = why(Decision::InFlight(Flight::Updating));
        assert!(columns.take(&rows(vec![full(4), updating], &[(0, 0), (1, 0), (2, 1), (3, 1)]), &mut delta));
        let (appended, changed) = (&delta["dictionaryAppend"], &delta["rows"]);
        assert_eq!((appended, changed), (&json!(["updating"]), &json!([[2, 1, 3, 1]])));
        assert_eq!(delta["append"]["name"], json!(["c3"]));
    }

    #[test]
    fn two_texts_of_one_kind_at_once_have_two_places() {
        let columns = Columns::new(&rows(vec![full(3), full(4)], &[(0, 0), (1, 1)]));
        let mut told = Map::new();
        columns.tell(&mut told);
        assert_eq!(told["dictionary"][0], "budget full: 3 of 5 in flight");
        assert_eq!(told["clusters"]["message"], json!([0, 2]));
        assert_eq!(told["dictionary"][2], "budget full: 4 of 5 in flight");
    }

    #[test]
    fn a_cluster_that_leaves_or_changes_its_placement_needs_the_whole() {
        let settled = || vec![why(Decision::Settled)];
        let known = || Columns::new(&rows(settled(), &[(0, 0), (2, 0)]));
        assert!(!known().take(&rows(settled(), &[(0, 0)]), &mut Map::new()));
        assert!(!known().take(&rows(settled(), &[(2, 0)]), &mut Map::new()));
        assert!(known().take(&rows(settled(), &[(0, 0), (1, 0), (2, 0)]), &mut Map::new()));
        let elsewhere =
            Arc::new(Why { placement: Some(1), decision: Decision::Settled, told: Some("v1".into()) });
        assert!(!known().take(&rows(vec![elsewhere], &[(0, 0), (2, 0)]), &mut Map::new()));
    }
}
