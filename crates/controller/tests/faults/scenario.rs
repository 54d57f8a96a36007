//! What a scenario is: a list of steps that users and clusters take, the same with and without faults.

use serde_json::Value;

use crate::agents::Rule;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Creates an object or merges it over the one that is there, with its status.
    Put(Value),
    /// The same for what the schema of a CRD forbids: stored before there was that schema.
    PutUnchecked(&'static str, Value),
    Delete(Value),
    /// A cluster with its namespace.
    Join(&'static str),
    /// A placement selects these clusters, in decisions of two each.
    Select(&'static str, Vec<&'static str>),
    Agents(Rule),
    /// Waits until nothing happens any more.
    Rest,
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
}

impl Scenario {
    pub(crate) fn cold(self) -> Self {
        Self { cold: true, ..self }
    }

    pub(crate) fn slowly(self) -> Self {
        Self { slow: true, ..self }
    }
}
