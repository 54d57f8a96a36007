//! A fleet as the reference sees it: plain names, letters and flags, and how to print them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub type Rev = char;
pub type Names = BTreeSet<String>;

/// All that bears on one pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct World {
    /// Every cluster, and whether the hub can reach it.
    pub clusters: BTreeMap<String, bool>,
    pub instances: BTreeMap<String, Instance>,
    /// What each placement selects, listed by the add-on or not.
    pub selections: BTreeMap<String, Names>,
    /// The add-on's list, in its order.
    pub placements: Vec<Placement>,
    /// What instances follow that no placement governs.
    pub defaults: Rev,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The install strategy made it, so it goes when nothing selects its cluster any more.
    pub made_by_strategy: bool,
    pub told: Option<Rev>,
    /// Something was applied on it at some time.
    pub installed: bool,
    /// It has been seen arrived at what it is told now, at some time since it was told.
    pub arrived_once: bool,
    /// Something was applied on it before it was told what it is told now, and nothing was ever
    /// healthy.
    pub never_well: bool,
    /// What its user makes it have.
    pub own: Option<Rev>,
    /// It was unwell before its placement's present revision, or its user has moved it since.
    pub doubt: Option<Doubt>,
    /// The revision of its placement when it was told, or since when it is watched.
    pub clock: Option<Rev>,
    /// The placement that told it what it has.
    pub moved_by: Option<String>,
    /// What its work was made from.
    pub carries: Option<Rev>,
    pub answer: Answer,
    /// Its agent says, of the work as it is now or as it was, that it was applied.
    pub was_applied: bool,
}

/// What the cluster's agent says of the work as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    None,
    Healthy,
    Unavailable,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    Before,
    ByUser,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    pub name: String,
    pub desired: Rev,
    /// What it desired when last looked at.
    pub recorded: Option<Rev>,
    pub kind: Kind,
    pub budget: Share,
    pub max_failures: Option<Share>,
    pub paused: bool,
    pub known_good: Option<Rev>,
    pub applied: Option<Rev>,
    /// What it completed and has not withdrawn, oldest first.
    pub history: Vec<Rev>,
    /// What it completed and rolled back from.
    pub withdrawn: BTreeSet<Rev>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    UpdateAll,
    RollingUpdate,
    WithCanary(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    Count(usize),
    Percent(usize),
}

impl Share {
    pub fn of(self, all: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(share) => (all * share).div_ceil(100).max(1),
        }
    }
}

/// What one pass decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Who is told what, where that changes.
    pub starts: BTreeMap<String, Rev>,
    /// Known good and applied, by placement.
    pub progress: BTreeMap<String, (Option<Rev>, Option<Rev>)>,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        let letter = |revision: Option<Rev>| revision.unwrap_or('-');
        for one in &self.placements {
            let Placement {
                name,
                desired,
                recorded,
                kind,
                budget,
                max_failures,
                paused,
                known_good,
                applied,
                history,
                withdrawn,
            } = one;
            let (recorded, good, applied) = (letter(*recorded), letter(*known_good), letter(*applied));
            let (history, withdrawn): (String, String) =
                (history.iter().collect(), withdrawn.iter().collect());
            let selects = list(&self.selections[name]);
            writeln!(
                f,
                "{name}  desired {desired} (before {recorded}) good {good} applied {applied} history [{history}] withdrawn [{withdrawn}]  {kind:?} {budget:?} failures {max_failures:?} paused {paused}  selects [{selects}]"
            )?;
        }
        for (name, selected) in
            self.selections.iter().filter(|(name, _)| !self.placements.iter().any(|one| one.name == **name))
        {
            writeln!(f, "{name}  not listed  selects [{}]", list(selected))?;
        }
        writeln!(f, "defaults {}", self.defaults)?;
        for (name, reachable) in &self.clusters {
            let offline = if *reachable { "" } else { "  offline" };
            let governor = self.governor(name).map_or("-", |one| &one.name);
            match self.instances.get(name) {
                None => writeln!(f, "{name}  {governor}  no instance{offline}")?,
                Some(one) => {
                    let Instance {
                        made_by_strategy,
                        told,
                        installed,
                        arrived_once,
                        never_well,
                        own,
                        doubt,
                        clock,
                        moved_by,
                        carries,
                        answer,
                        was_applied,
                    } = one;
                    let (clock, moved_by) = (letter(*clock), moved_by.as_deref().unwrap_or("-"));
                    let (told, own, carries) = (letter(*told), letter(*own), letter(*carries));
                    let made_by = if *made_by_strategy { "" } else { "  user's" };
                    writeln!(
                        f,
                        "{name}  {governor}  told {told} by {moved_by} carries {carries} {answer:?} was applied {was_applied}  installed {installed} arrived once {arrived_once} never well {never_well} own {own} doubt {doubt:?} clock {clock}{made_by}{offline}"
                    )?;
                }
            }
        }
        Ok(())
    }
}
