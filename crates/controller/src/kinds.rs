//! Finds out which kinds of config the hub serves, and watches those that are referenced.
//!
//! Owns the watches of config kinds. A kind that is not served is a problem of the add-ons that
//! reference it, until its CRD is installed.

use std::collections::BTreeMap;

use aviary_engine::configs::GroupResource;
use kube::Client;
use kube::api::ApiResource;
use kube::discovery::{self, Scope, verbs};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::task::JoinSet;

use crate::seen::WatchEvent;
use crate::stores::{KindState, Stores};
use crate::watches::follow_configs;

#[derive(Debug, Default)]
pub(crate) struct ConfigWatches {
    running: BTreeMap<GroupResource, AbortHandle>,
}

/// What the hub answers about a kind.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Served {
        resource: ApiResource,
        namespaced: bool,
    },
    NotServed,
    /// The hub did not answer. Ask again.
    NoAnswer(String),
}

pub(crate) async fn find(client: &Client, kinds: Vec<GroupResource>) -> Vec<(GroupResource, Found)> {
    let mut found = Vec::new();
    for kind in kinds {
        let answer = find_one(client, &kind).await;
        found.push((kind, answer));
    }
    found
}

async fn find_one(client: &Client, kind: &GroupResource) -> Found {
    let group = if kind.group.is_empty() { discovery::ApiGroup::CORE_GROUP } else { &kind.group };
    match discovery::group(client, group).await {
        Ok(group) => {
            let all = group.recommended_resources().into_iter().chain(group.resources_by_stability());
            let resource = all.into_iter().find(|(resource, capabilities)| {
                *resource.plural == *kind.resource && capabilities.supports_operation(verbs::WATCH)
            });
            match resource {
                Some((resource, capabilities)) => {
                    Found::Served { resource, namespaced: capabilities.scope == Scope::Namespaced }
                }
                None => Found::NotServed,
            }
        }
        Err(kube::Error::Discovery(_)) => Found::NotServed,
        Err(kube::Error::Api(status)) if status.code == 404 => Found::NotServed,
        Err(error) => Found::NoAnswer(error.to_string()),
    }
}

impl ConfigWatches {
    /// The kinds that are referenced and not watched.
    pub(crate) fn missing(&self, stores: &Stores) -> Vec<GroupResource> {
        stores.referenced_kinds().into_iter().filter(|kind| !self.running.contains_key(kind)).collect()
    }

    /// Starts and stops watches by what the hub has answered. Returns whether to ask again.
    pub(crate) fn adjust(
        &mut self,
        stores: &mut Stores,
        found: Vec<(GroupResource, Found)>,
        client: &Client,
        events: &mpsc::Sender<WatchEvent>,
        tasks: &mut JoinSet<()>,
    ) -> bool {
        let mut again = false;
        for (kind, found) in found {
            match found {
                Found::Served { resource, namespaced } => {
                    stores.set_kind(&kind, Some(KindState::Listing { namespaced }));
                    let watch = tasks.spawn(follow_configs(
                        client.clone(),
                        kind.clone(),
                        resource,
                        None,
                        events.clone(),
                    ));
                    self.running.insert(kind, watch);
                }
                Found::NotServed => stores.set_kind(&kind, Some(KindState::NotServed)),
                Found::NoAnswer(why) => {
                    tracing::warn!(%kind, why, "cannot find out whether the hub serves a kind");
                    again = true;
                }
            }
        }
        let referenced = stores.referenced_kinds();
        let idle: Vec<GroupResource> =
            stores.kinds().keys().filter(|kind| !referenced.contains(kind)).cloned().collect();
        for kind in idle {
            self.stop(&kind);
            stores.set_kind(&kind, None);
        }
        again
    }

    /// Stops watching kinds that are not served any more.
    pub(crate) fn forget_all(&mut self, stores: &mut Stores, gone: &[GroupResource]) {
        for kind in gone {
            self.stop(kind);
            stores.set_kind(kind, None);
            stores.set_kind(kind, Some(KindState::NotServed));
        }
    }

    pub(crate) fn watched(&self) -> Vec<GroupResource> {
        self.running.keys().cloned().collect()
    }

    fn stop(&mut self, kind: &GroupResource) {
        if let Some(watch) = self.running.remove(kind) {
            watch.abort();
        }
    }
}
