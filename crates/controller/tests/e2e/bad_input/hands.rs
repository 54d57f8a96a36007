//! The agents of all clusters, some of which can be told to wait.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aviary_api::ManifestWork;
use kube::{Client, ResourceExt};

use crate::agents::{Agents, Answer};

pub(super) struct Hands {
    agents: Agents,
    /// Add-ons of which nobody answers for, but on the clusters that are let go.
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    addons: BTreeSet<String>,
    let_go: BTreeSet<(String, String)>,
}

impl Hands {
    pub(super) fn start(client: &Client) -> Self {
        let hands = Self { agents: Agents::held(client), held: Arc::default() };
        hands.look_again();
        hands
    }

    fn look_again(&self) {
        let held = Arc::clone(&self.held);
        self.agents.answer(move |work| answer(&held.lock().unwrap(), work));
    }

    /// From now on nobody answers for this add-on.
    pub(super) fn hold(&self, addon: &str) {
        self.held.lock().unwrap().addons.insert(addon.to_owned());
    }

    /// One cluster answers again.
    pub(super) fn let_go(&self, addon: &str, cluster: &str) {
        self.held.lock().unwrap().let_go.insert((addon.to_owned(), cluster.to_owned()));
        self.look_again();
    }

    /// All of them do.
    pub(super) fn let_all_go(&self, addon: &str) {
        self.held.lock().unwrap().addons.remove(addon);
        self.look_again();
    }
}

fn answer(held: &Held, work: &ManifestWork) -> Answer {
    let addon = work.labels().get("open-cluster-management.io/addon-name").cloned()?;
    let waits =
        held.addons.contains(&addon) && !held.let_go.contains(&(addon, work.namespace().unwrap_or_default()));
    (!waits).then_some(Ok(()))
}
