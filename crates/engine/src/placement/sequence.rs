//! The order in which pages are written, and the count that is published before, so that no reader
//! mistakes a partially written set of pages for a complete one.
//!
//! Readers compare the count that a placement publishes with what its decisions hold; if the two
//! differ, they delete nothing. So (1) a cluster that moves between pages is written to the new
//! page first, and (2) if an intermediate state would look complete, a count that no intermediate
//! state has is published before. (1) also protects a reader whose watch is delayed.

use std::collections::{BTreeSet, HashMap, HashSet};

/// What one write does to a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn<'a> {
    pub(crate) before: BTreeSet<&'a str>,
    pub(crate) after: BTreeSet<&'a str>,
}

impl Turn<'_> {
    fn changes_something(&self) -> bool {
        self.before != self.after
    }
}

/// Orders the writes: as given, but a page that loses a cluster comes after the page that gains it.
/// A cycle is broken at its first page.
pub(crate) fn order(turns: &[Turn<'_>]) -> Vec<usize> {
    let mut gains: HashMap<&str, usize> = HashMap::new();
    for (index, turn) in turns.iter().enumerate() {
        gains.extend(turn.after.difference(&turn.before).map(|cluster| (*cluster, index)));
    }
    let mut frees: Vec<Vec<usize>> = vec![Vec::new(); turns.len()];
    let mut waits: Vec<usize> = vec![0; turns.len()];
    for (index, turn) in turns.iter().enumerate() {
        let lost = turn.before.difference(&turn.after);
        let first: BTreeSet<usize> = lost.filter_map(|cluster| gains.get(cluster).copied()).collect();
        for other in &first {
            frees.get_mut(*other).into_iter().for_each(|frees| frees.push(index));
        }
        waits.get_mut(index).into_iter().for_each(|waits| *waits = first.len());
    }
    let mut waiting: BTreeSet<usize> = (0..turns.len()).collect();
    let mut ready: BTreeSet<usize> =
        waits.iter().enumerate().filter(|(_, waits)| **waits == 0).map(|(index, _)| index).collect();
    let mut order = Vec::with_capacity(turns.len());
    while let Some(next) = ready.first().or_else(|| waiting.first()).copied() {
        ready.remove(&next);
        waiting.remove(&next);
        order.push(next);
        for freed in frees.get(next).into_iter().flatten().filter(|freed| waiting.contains(freed)) {
            if let Some(waits) = waits.get_mut(*freed) {
                *waits -= 1;
                if *waits == 0 {
                    ready.insert(*freed);
                }
            }
        }
    }
    order
}

/// The count to publish before the writes; `None` if every intermediate state already differs from
/// the published count.
///
/// `standing` are the clusters of all existing pages; `selected` is the final number of clusters.
pub(crate) fn announce<'a>(
    published: usize,
    standing: impl Iterator<Item = &'a str>,
    turns: impl Iterator<Item = Turn<'a>>,
    selected: usize,
) -> Option<usize> {
    let mut pages_of: HashMap<&str, usize> = HashMap::new();
    for cluster in standing {
        *pages_of.entry(cluster).or_default() += 1;
    }
    let mut all: HashSet<&str> = pages_of.keys().copied().collect();
    let mut sizes = vec![pages_of.len()];
    for turn in turns.filter(Turn::changes_something) {
        all.extend(&turn.after);
        for lost in turn.before.difference(&turn.after) {
            if let Some(pages) = pages_of.get_mut(lost) {
                *pages -= 1;
                if *pages == 0 {
                    pages_of.remove(lost);
                }
            }
        }
        for gained in turn.after.difference(&turn.before) {
            *pages_of.entry(gained).or_default() += 1;
        }
        sizes.push(pages_of.len());
    }
    // A single write is atomic.
    sizes.pop();
    let looks_whole = |size: &usize| published == 0 || *size == published;
    if !sizes.iter().skip(1).any(looks_whole) {
        return None;
    }
    let truth = (selected > 0 && !sizes.contains(&selected)).then_some(selected);
    truth.or(Some(all.len() + 1))
}
