//! Finding out which kinds of config the hub serves, and when to ask again.

use std::collections::BTreeSet;
use std::time::Duration;

use aviary_engine::configs::GroupResource;
use kube::Client;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Loop;
use crate::kinds::{self, ConfigWatches, Found};
use crate::stores::Stores;

type Answers = Vec<(GroupResource, Found)>;

#[derive(Debug, Default)]
pub(super) struct Discovery {
    configs: ConfigWatches,
    finding: JoinSet<Answers>,
    asked: BTreeSet<GroupResource>,
    ask_again: Option<Instant>,
    /// How many more times to ask, although the hub has answered.
    doubts: u8,
}

impl Discovery {
    pub(super) fn ask_again(&self) -> Option<Instant> {
        self.ask_again
    }

    /// The next answers of the hub; `None` while nothing is being asked. Cancel-safe.
    pub(super) async fn found(&mut self) -> Option<Answers> {
        self.finding.join_next().await.map(Result::unwrap_or_default)
    }

    pub(super) fn kinds_changed(&mut self, client: &Client) {
        self.asked.clear();
        self.ask(self.configs.watched(), client);
        // A server may start or stop serving a kind slightly later than its CRD reports.
        self.doubts = 2;
        self.ask_again = Some(Instant::now() + Duration::from_secs(1));
    }

    /// Asks the hub for kinds that are referenced and not known.
    pub(super) fn look(&mut self, stores: &Stores, client: &Client) {
        if self.ask_again.is_some_and(|at| at <= Instant::now()) {
            self.ask_again = None;
            self.asked.clear();
            if self.doubts > 0 {
                self.doubts -= 1;
                self.ask(self.configs.watched(), client);
                self.ask_again = (self.doubts > 0).then(|| Instant::now() + Duration::from_secs(5));
            }
        }
        let mut missing = self.configs.missing(stores);
        missing.retain(|kind| !self.asked.contains(kind));
        self.ask(missing, client);
    }

    fn ask(&mut self, kinds: Vec<GroupResource>, client: &Client) {
        if kinds.is_empty() {
            return;
        }
        self.asked.extend(kinds.iter().cloned());
        let client = client.clone();
        self.finding.spawn(async move { kinds::find(&client, kinds).await });
    }
}

impl Loop {
    pub(super) fn adjust_config_watches(&mut self, found: Answers) {
        let Discovery { configs, asked, ask_again, .. } = &mut self.discovery;
        let watched = configs.watched();
        let (known, new): (Vec<_>, Vec<_>) = found.into_iter().partition(|(kind, _)| watched.contains(kind));
        let gone = known.into_iter().filter(|(_, found)| matches!(found, Found::NotServed));
        let gone: Vec<GroupResource> = gone.map(|(kind, _)| kind).collect();
        configs.forget_all(&mut self.stores, &gone);
        if configs.adjust(&mut self.stores, new, &self.client, &self.sender, &mut self.watches) {
            *ask_again = Some(Instant::now() + Duration::from_secs(5));
        }
        // An unreferenced kind is no longer watched, and is looked up again when it is referenced
        // again.
        let referenced = self.stores.referenced_kinds();
        asked.retain(|kind| referenced.contains(kind));
    }
}
