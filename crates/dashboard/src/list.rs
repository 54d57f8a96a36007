//! All add-ons, as the list shows them.

use std::collections::BTreeMap;

use aviary_engine::name::Text;
use serde::Serialize;

use crate::summary::Summary;
use crate::topic::{ChangeEffect, TopicState, data};

/// All add-ons: the event `addons`.
#[derive(Serialize)]
struct ListMessage<'a> {
    now: &'a str,
    addons: Vec<&'a Summary>,
}

/// What changed: the event `addons-delta`.
#[derive(Serialize)]
struct ListDelta<'a> {
    now: &'a str,
    changed: Vec<Summary>,
    gone: Vec<Text>,
}

#[derive(Debug)]
pub(crate) struct AddOnList {
    now: String,
    addons: BTreeMap<Text, Summary>,
}

impl TopicState for AddOnList {
    const EVENT: &'static str = "addons";

    fn whole(&self) -> String {
        data(&ListMessage { now: &self.now, addons: self.addons.values().collect() })
    }
}

impl AddOnList {
    pub(crate) fn new(now: &str) -> Self {
        Self { now: now.to_owned(), addons: BTreeMap::new() }
    }

    /// Updates some add-ons; `None` means deleted.
    pub(crate) fn take(&mut self, now: &str, looked: Vec<(Text, Option<Summary>)>) -> ChangeEffect {
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for (name, summary) in looked {
            match summary {
                Some(summary) if self.addons.get(&name) == Some(&summary) => {}
                Some(summary) => {
                    self.addons.insert(name, summary.clone());
                    changed.push(summary);
                }
                None => gone.extend(self.addons.remove(&name).map(|_| name)),
            }
        }
        if changed.is_empty() && gone.is_empty() {
            return ChangeEffect::Nothing;
        }
        self.now = now.to_owned();
        let data = data(&ListDelta { now, changed, gone });
        ChangeEffect::Delta { event: "addons-delta", data }
    }
}
