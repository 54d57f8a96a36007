//! All add-ons, as the list shows them.

use std::collections::BTreeMap;

use aviary_engine::name::Text;
use serde_json::json;

use crate::summary::Summary;
use crate::topic::{Picture, Step, data};

#[derive(Debug)]
pub(crate) struct List {
    now: String,
    addons: BTreeMap<Text, Summary>,
}

impl Picture for List {
    const EVENT: &'static str = "addons";

    fn whole(&self) -> String {
        data(&json!({"now": self.now, "addons": self.addons.values().collect::<Vec<_>>()}))
    }
}

impl List {
    pub(crate) fn new(now: &str) -> Self {
        Self { now: now.to_owned(), addons: BTreeMap::new() }
    }

    /// Takes in what some add-ons look like now; `None`: it is gone.
    pub(crate) fn take(&mut self, now: &str, looked: Vec<(Text, Option<Summary>)>) -> Step {
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
            return Step::Nothing;
        }
        self.now = now.to_owned();
        let data = data(&json!({"now": now, "changed": changed, "gone": gone}));
        Step::Delta { event: "addons-delta", data }
    }
}
