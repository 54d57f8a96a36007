//! Reading a hub once: lists in pages, and single configs.

use std::collections::BTreeSet;
use std::fmt::Debug;

use aviary_api::{Guarded, ObjectText};
use aviary_engine::configs::{ConfigRef, GroupResource};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::api::{Api, ApiResource, ListParams};
use kube::core::error_boundary::InvalidObject;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::{LookError, Scope};
use crate::seen::{self, Change, Key, ObjectVersion, WatchEvent, Watched};
use crate::watches::{KindVisitor, Which, watched_kinds};

/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// How often a list is restarted whose pages have expired.
const MOST_RESTARTS: usize = 3;

#[derive(Default)]
pub(super) struct Listed {
    pub(super) events: Vec<WatchEvent>,
    pub(super) unread: Vec<String>,
}

type Listing<'a> = BoxFuture<'a, Result<Listed, LookError>>;

pub(super) fn all<'a>(client: &'a Client, scope: &'a Scope) -> Vec<Listing<'a>> {
    let mut lists = Lists { client, scope, lists: Vec::new() };
    watched_kinds(&mut lists);
    lists.lists
}

struct Lists<'a> {
    client: &'a Client,
    scope: &'a Scope,
    lists: Vec<Listing<'a>>,
}

impl KindVisitor for Lists<'_> {
    fn visit<K: Watched<WatchEvent>>(&mut self, which: Which) {
        let (label_selector, field_selector) = which.selectors(self.scope.addon.as_deref());
        let params = ListParams { label_selector, field_selector, ..ListParams::default() };
        let api = K::api(self.client, &self.scope.namespace);
        let resource = GroupResource::new(&K::group(&()), &K::plural(&()));
        self.lists.push(async move { list(api, params, &resource, K::try_read, K::EVENT).await }.boxed());
    }
}

/// All objects of one kind, page by page, each read as it arrives.
async fn list<K, T>(
    api: Api<Guarded<K>>,
    params: ListParams,
    resource: &GroupResource,
    read: impl Fn(K) -> Result<Option<T>, Box<InvalidObject>> + Send,
    wrap: impl Fn(Change<T>) -> WatchEvent + Send,
) -> Result<Listed, LookError>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let failed = |error| LookError::new(format!("list {resource}"), error);
    let mut restarts = 0;
    'whole: loop {
        let mut listed = Listed { events: vec![wrap(Change::Begin)], unread: Vec::new() };
        let mut page = params.clone().limit(PAGE);
        loop {
            let objects = match api.list(&page).await {
                Err(kube::Error::Api(status)) if status.code == 410 && restarts < MOST_RESTARTS => {
                    restarts += 1;
                    continue 'whole;
                }
                other => other.map_err(failed)?,
            };
            for object in objects.items {
                let version = ObjectVersion::of(object.meta());
                match object.0.map_err(Box::new).and_then(&read) {
                    Ok(seen) => listed.events.extend(seen.map(|seen| wrap(Change::Put(version, seen)))),
                    Err(invalid) => listed.unread.push(unread(resource, &invalid)),
                }
            }
            match objects.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
        listed.events.push(wrap(Change::End));
        return Ok(listed);
    }
}

pub(super) fn unread(resource: &GroupResource, invalid: &InvalidObject) -> String {
    let Key { namespace, name } = Key::of(&invalid.metadata);
    format!("{resource} {namespace}/{name}: {invalid}")
}

/// The configs of one kind: the given ones, or all.
pub(super) async fn configs(
    client: &Client,
    kind: &GroupResource,
    resource: &ApiResource,
    wanted: Option<BTreeSet<ConfigRef>>,
) -> Result<Listed, LookError> {
    let wrap = |change| WatchEvent::Config(kind.clone(), change);
    let Some(wanted) = wanted else {
        let api: Api<Guarded<ObjectText>> = Api::all_with(client.clone(), resource);
        let read = |object: ObjectText| seen::config(kind, &object).map(Some);
        return list(api, ListParams::default(), kind, read, wrap).await;
    };
    let mut listed = Listed { events: vec![wrap(Change::Begin)], unread: Vec::new() };
    for config in wanted {
        let Some(object) = fetch(client, &config, resource).await? else { continue };
        match config_event(kind, &object) {
            Ok(event) => listed.events.push(event),
            Err(invalid) => listed.unread.push(unread(kind, &invalid)),
        }
    }
    listed.events.push(wrap(Change::End));
    Ok(listed)
}

pub(super) async fn fetch(
    client: &Client,
    config: &ConfigRef,
    resource: &ApiResource,
) -> Result<Option<ObjectText>, LookError> {
    let api: Api<Guarded<ObjectText>> = match &config.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let failed = |error| LookError::new(format!("read {config}"), error);
    let found = api.get_opt(&config.name).await.map_err(failed)?;
    Ok(found.and_then(|object| object.0.ok()))
}

pub(super) fn config_event(
    kind: &GroupResource,
    object: &ObjectText,
) -> Result<WatchEvent, Box<InvalidObject>> {
    let change = Change::Put(ObjectVersion::of(&object.metadata), seen::config(kind, object)?);
    Ok(WatchEvent::Config(kind.clone(), change))
}
