//! What a scenario is: a list of steps that users and clusters take, the same with and without
//! faults.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::agents::Rule;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Creates an object or merges it over the one that is there, with its status.
    Put(Value),
    /// The same for what the schema of a CRD forbids: stored before there was that schema.
    PutUnchecked(&'static str, Value),
    Delete(Value),
    /// All works become what another manager would have rendered from the same revisions.
    HandToAnother,
    /// Creates an object as soon as the one that is there is gone.
    MakeAgain(Value),
    /// A cluster with its namespace.
    Join(&'static str),
    /// A placement selects these clusters, in decisions of two each.
    Select(&'static str, Vec<&'static str>),
    Agents(Rule),
    /// So many milliseconds go by, and nobody waits for anything.
    Wait(u64),
    /// Waits until nothing happens any more.
    Rest,
    /// The same, and what is there then is not compared.
    Pause,
}

impl Step {
    /// The object that a user changes here.
    fn changes(&self) -> Option<String> {
        match self {
            Self::Put(object)
            | Self::PutUnchecked(_, object)
            | Self::Delete(object)
            | Self::MakeAgain(object) => Some(format!(
                "{} {}/{}",
                object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]
            )),
            Self::Join(name) => Some(format!("cluster {name}")),
            Self::Select(name, _) => Some(format!("placement {name}")),
            Self::Agents(_) | Self::HandToAnother | Self::Wait(_) | Self::Rest | Self::Pause => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// How the world came about: without faults.
    pub(crate) given: Vec<Step>,
    pub(crate) when: Vec<Step>,
    /// Small enough for all pairs of crashes.
    pub(crate) pairs: bool,
    /// Time alone goes on with it: rest takes longer to tell.
    pub(crate) slow: bool,
    /// The manager starts when it has begun, and is not at rest before.
    pub(crate) cold: bool,
    /// Users do not wait for what they began: a manager that is slower makes less of what is undone
    /// again.
    pub(crate) hasty: bool,
}

impl Scenario {
    /// The steps as a manager may hear of them to whom news of different kinds come at different
    /// times: each by itself, in their order, and the other way round where they change different
    /// objects.
    pub(crate) fn one_by_one(&self) -> Vec<Vec<Step>> {
        let mut both = [Vec::new(), Vec::new()];
        for together in self.when.split_inclusive(|step| matches!(step, Step::Rest)) {
            let (changes, others): (Vec<Step>, Vec<Step>) =
                together.iter().cloned().partition(|step| step.changes().is_some());
            let objects: BTreeSet<String> = changes.iter().filter_map(Step::changes).collect();
            let mut reversed = changes.clone();
            if objects.len() == changes.len() {
                reversed.reverse();
            }
            for (steps, changes) in both.iter_mut().zip([changes, reversed]) {
                steps.extend(others.iter().filter(|step| matches!(step, Step::Agents(_))).cloned());
                steps.extend(changes.into_iter().flat_map(|change| [change, Step::Pause]));
                steps.extend(others.iter().filter(|step| matches!(step, Step::Rest)).cloned());
            }
        }
        both.into()
    }

    pub(crate) fn cold(self) -> Self {
        Self { cold: true, ..self }
    }

    pub(crate) fn hastily(self) -> Self {
        Self { hasty: true, ..self }
    }

    pub(crate) fn slowly(self) -> Self {
        Self { slow: true, ..self }
    }
}
