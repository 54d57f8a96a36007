//! What the hub has made of our writes, if it is not what was sent.
//!
//! A hub may prune or default fields that nobody foresaw. What it has answered once it answers
//! again, so the same write is not sent again while the object stays as the hub has stored it.
//! Kept only for objects where the answer differed; a restarted manager finds out with one write.

use std::collections::BTreeMap;

use aviary_engine::name::{PlacementName, Text};
use aviary_engine::observed::Record;
use aviary_engine::plan::{Plan, Step, Write};
use aviary_engine::served::Served;
use aviary_engine::status::publish;
use serde_json::Value;

use crate::seen::{Echo, Echoed};
use crate::stores::{AddOnEntry, Snapshot, Stores};

#[derive(Debug, Default)]
pub(super) struct Echoes(BTreeMap<Echoed, Heard>);

#[derive(Clone, Debug)]
pub(super) struct Heard {
    resource_version: Text,
    sent: Value,
}

impl Echoes {
    /// Somebody has changed fields of a record that the manager does not own, such as its labels.
    /// The result of the last write is still valid.
    pub(super) fn follow(&mut self, before: &Record, after: &Record) {
        let is_the_same =
            Record { resource_version: after.resource_version.clone(), ..before.clone() } == *after;
        if let Some(heard) = self.0.get_mut(&Echoed::Record)
            && is_the_same
            && heard.resource_version == before.resource_version
        {
            heard.resource_version = after.resource_version.clone();
        }
    }
}

impl Stores {
    pub(super) fn echo(&mut self, echo: Echo) {
        let Echo { addon, of, resource_version, sent } = echo;
        if let Some(entry) = self.addons.get_mut(&addon) {
            entry.echoes.0.insert(of, Heard { resource_version, sent });
        }
    }
}

impl Snapshot<'_> {
    /// The plan without writes that the hub is known to change back.
    pub(crate) fn without_echoes(&self, mut plan: Plan) -> Plan {
        let entry = self.entry();
        if entry.echoes.0.is_empty() {
            return plan;
        }
        let order: Vec<PlacementName> =
            self.addon.strategy.placements().iter().map(|spec| spec.name.clone()).collect();
        for stage in &mut plan.stages {
            stage.writes.retain(|write| !entry.has_heard(write, &order, &self.served));
        }
        let starts = plan.starts().next().is_some();
        plan.stages.retain(|stage| !stage.writes.is_empty() || (stage.step == Step::Reserve && starts));
        plan
    }
}

impl AddOnEntry {
    /// Whether this very write was made, and the object is still what the hub has made of it.
    fn has_heard(&self, write: &Write, order: &[PlacementName], served: &Served) -> bool {
        let (of, version) = match write {
            Write::AddOn(_) => (Echoed::AddOn, &self.resource_version),
            Write::Instance(write) => (Echoed::Instance(write.cluster.clone()), &write.resource_version),
            Write::Guard(write) => (Echoed::Metadata(write.cluster.clone()), &write.resource_version),
            Write::Record(write) => (Echoed::Record, &write.resource_version),
            _ => return false,
        };
        self.echoes.0.get(&of).is_some_and(|heard| {
            heard.resource_version == *version
                && publish::timeless(write, order, served) == Some(heard.sent.clone())
        })
    }
}
