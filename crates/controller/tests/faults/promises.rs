//! The promises, checked at every write that the hub has committed: against what was there, not
//! against what the manager knew.

use std::collections::BTreeSet;

use aviary_api::names::labels;
use aviary_api::work::WorkText;
use aviary_api::{
    ClusterManagementAddOn, ManagedCluster, ManagedClusterAddOn, ObjectText, Placement, PlacementDecision,
};
use aviary_engine::configs::{GroupResource, Pin};
use aviary_engine::hooks::work_name;
use aviary_engine::invariants::{Deed, check_deed};
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::{Observed, Options};
use aviary_engine::plan::plan;
use aviary_engine::render::{Templates, WorkSite};
use aviary_testing::as_authored;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::hand::KINDS;
use crate::history::{Commit, Key, Objects, show};
use crate::leadership::odd_term;
use crate::revisions::{StoredRevision, What};
use crate::seen::{self, Change, ObjectVersion, Version, WatchEvent, Watched};
use crate::stores::{KindState, Stores};
use crate::trouble::Wrote;

const ADDONS: usize = 0;
const INSTANCES: usize = 1;
const WORKS: usize = 2;
const REVISIONS: usize = 6;
const CONFIGS: [(usize, bool); 3] = [(7, false), (8, true), (9, false)];

/// Follows all commits of a run.
pub(crate) struct Promises<'a> {
    stores: Stores,
    wrote: &'a [Wrote],
    /// Revisions that users wrote.
    users: &'a [(u64, u64)],
    objects: Objects,
    /// The newest manager that has started an instance of each add-on.
    started: std::collections::BTreeMap<String, usize>,
    pub(crate) broken: Vec<String>,
}

fn typed<T: DeserializeOwned>(object: &Value) -> Option<T> {
    serde_json::from_value(object.clone()).ok()
}

fn config_kind(index: usize) -> GroupResource {
    GroupResource::new(KINDS[index].0, KINDS[index].3)
}

/// What a watch would report of it.
fn event(key: &Key, object: &Value, gone: bool) -> Option<WatchEvent> {
    let text = |part: &str| object["metadata"][part].as_str().unwrap_or_default();
    let at = ObjectVersion {
        key: seen::Key { namespace: key.1.as_str().into(), name: key.2.as_str().into() },
        version: Version::new(text("uid").into(), text("resourceVersion")),
    };
    // The manager watches works with the label; one that loses it is gone.
    let ours = object["metadata"]["labels"][labels::ADDON_NAME].is_string();
    match key.0 {
        ADDONS => watched::<ClusterManagementAddOn>(at, object, gone),
        INSTANCES => watched::<ManagedClusterAddOn>(at, object, gone),
        WORKS => watched::<WorkText>(at, object, gone || !ours),
        3 => watched::<ManagedCluster>(at, object, gone),
        4 => watched::<Placement>(at, object, gone),
        5 => watched::<PlacementDecision>(at, object, gone),
        REVISIONS => watched::<StoredRevision>(at, object, gone),
        index => {
            let kind = config_kind(index);
            let change = match gone {
                true => Change::Gone(at),
                false => Change::Put(at, seen::config(&kind, &typed::<ObjectText>(object)?).ok()?),
            };
            Some(WatchEvent::Config(kind, change))
        }
    }
}

fn watched<K: Watched<WatchEvent>>(at: ObjectVersion, object: &Value, gone: bool) -> Option<WatchEvent> {
    if gone {
        return Some((K::EVENT)(Change::Gone(at)));
    }
    Some((K::EVENT)(Change::Put(at, typed::<K>(object)?.read()?)))
}

impl<'a> Promises<'a> {
    pub(crate) fn new(objects: &Objects, wrote: &'a [Wrote], users: &'a [(u64, u64)]) -> Self {
        let mut stores = Stores::new(Options::default());
        for (index, namespaced) in CONFIGS {
            stores.set_kind(&config_kind(index), Some(KindState::Listing { namespaced }));
            stores.take(WatchEvent::Config(config_kind(index), Change::Begin));
        }
        for (key, object) in objects {
            if let Some(event) = event(key, object, false) {
                stores.take(event);
            }
        }
        for (index, _) in CONFIGS {
            stores.take(WatchEvent::Config(config_kind(index), Change::End));
        }
        let started = Default::default();
        Self { stores, wrote, users, objects: objects.clone(), started, broken: Vec::new() }
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The manager that made a commit, if one did.
    fn author(&self, commit: &Commit) -> Option<usize> {
        let plural = KINDS[commit.key.0].3;
        let made = |wrote: &&Wrote| {
            wrote.from < commit.revision
                && commit.revision <= wrote.to
                && wrote.path.contains(plural)
                && (wrote.method == "POST" || wrote.path.contains(&*commit.key.2))
                && (commit.key.1.is_empty() || wrote.path.contains(&format!("/namespaces/{}/", commit.key.1)))
        };
        self.wrote.iter().find(made).map(|wrote| wrote.manager)
    }

    fn by_user(&self, commit: &Commit) -> bool {
        self.users.iter().any(|(from, to)| *from < commit.revision && commit.revision <= *to)
    }

    fn observed(&mut self, addon: &str) -> Option<Observed> {
        self.stores.observe(&addon.into()).map(|snapshot| snapshot.clone())
    }

    /// Takes a commit in, and checks it.
    pub(crate) fn follow(&mut self, commit: &Commit) {
        let author = self.author(commit);
        let Commit { key, object, gone, .. } = commit;
        let old = self.objects.get(key).cloned();
        let addon = match key.0 {
            ADDONS | INSTANCES => key.2.clone(),
            _ => object["metadata"]["labels"][labels::ADDON_NAME].as_str().unwrap_or_default().to_owned(),
        };
        let deed = self.deed(commit, old.as_deref(), author);
        let before = if deed.is_some() { self.observed(&addon) } else { None };
        if let Some(event) = event(key, object, *gone) {
            self.stores.take(event);
        }
        if *gone {
            self.objects.remove(key);
        } else {
            self.objects.insert(key.clone(), std::sync::Arc::clone(object));
        }
        let (Some(deed), Some(before)) = (deed, before) else { return };
        let after = self.observed(&addon).unwrap_or_default();
        let cluster = ClusterName::parse(&key.1).ok();
        let mut found: Vec<String> = Vec::new();
        let mut check = |deed: Deed<'_>| {
            found.extend(check_deed(&before, deed, &after).iter().map(ToString::to_string));
        };
        match (deed, cluster) {
            (Made::Create, Some(cluster)) => check(Deed::Create(&cluster)),
            (Made::Delete(uid), Some(cluster)) => check(Deed::Delete { cluster: &cluster, uid: &uid }),
            (Made::Status, Some(cluster)) => {
                check(Deed::Instance(&cluster));
                if moves(&before, &after, &cluster)
                    && let Some(author) = author
                {
                    let newest = self.started.entry(addon.clone()).or_insert(author);
                    if author < *newest {
                        found.push(format!(
                            "S12: manager {author} starts {cluster} after manager {newest} has begun"
                        ));
                    }
                    *newest = (*newest).max(author);
                }
            }
            (Made::Guard, Some(cluster)) => check(Deed::Guard(&cluster)),
            (Made::Work, Some(cluster)) => {
                if let Some(instance) = before.instances.get(&cluster) {
                    let told = instance.status.told_revision();
                    check(Deed::Work { cluster: &cluster, name: &key.2, told: &told });
                }
                found.extend(rendered(&before, &cluster, key, object));
            }
            (Made::NoWork, Some(cluster)) => check(Deed::DeleteWork { cluster: &cluster, name: &key.2 }),
            (Made::AddOn, _) => check(Deed::AddOn(&after.addon.status)),
            (Made::Spec, _) => found.push("S4: a manager has written the spec of an instance".into()),
            (Made::Completed, _) => {
                if let Some(What::Completed(completed)) =
                    typed::<StoredRevision>(object).and_then(Watched::read).map(|kept| kept.what)
                {
                    check(Deed::Complete(&completed.placement, &completed.revision));
                }
            }
            _ => {}
        }
        for why in found {
            self.broken.push(format!("revision {}: {} by {author:?}: {why}", commit.revision, show(key)));
        }
    }

    fn deed(&self, commit: &Commit, old: Option<&Value>, author: Option<usize>) -> Option<Made> {
        let Commit { key, object, gone, .. } = commit;
        let differs = |part: &str| old.is_none_or(|old| old[part] != object[part]);
        match key.0 {
            ADDONS if !gone && differs("status") => Some(Made::AddOn),
            INSTANCES => {
                let going = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
                let uid = || object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                let was_going = old.is_some_and(going);
                // Its last finalizer went.
                if *gone && was_going {
                    return author.map(|_| Made::Guard);
                }
                if *gone || going(object) && !was_going {
                    return author.map(|_| Made::Delete(uid()));
                }
                if old.is_none() {
                    return author.map(|_| Made::Create);
                }
                if author.is_some() && differs("spec") {
                    return Some(Made::Spec);
                }
                let finalizers = |object: &Value| object["metadata"]["finalizers"].clone();
                if author.is_some() && old.is_some_and(|old| finalizers(old) != finalizers(object)) {
                    return Some(Made::Guard);
                }
                differs("status").then_some(Made::Status)
            }
            WORKS if *gone => author.map(|_| Made::NoWork),
            WORKS if !gone && !self.by_user(commit) && differs("spec") => Some(Made::Work),
            REVISIONS if !gone && old.is_none() => Some(Made::Completed),
            _ => None,
        }
    }

    /// At rest there is nothing to write, however one looks.
    pub(crate) fn at_rest(&mut self, now: Timestamp) {
        let addons: Vec<Text> = self.stores.addons().cloned().collect();
        for addon in addons {
            // Only the manager knows what it has compared a term with.
            let key = (ADDONS, String::new(), addon.to_string());
            let odd = self.objects.get(&key).and_then(|object| odd_term(object));
            self.stores.note_term(&addon, odd);
            let plan = self.stores.observe(&addon).map(|snapshot| plan(&snapshot, now));
            if let Some(plan) = plan.filter(|plan| !plan.is_at_rest()) {
                let left = format!("{:?}", plan.stages);
                let left: String = left.chars().take(300).collect();
                self.broken.push(format!("S13: {addon} is at rest, and there is something to write: {left}"));
            }
        }
    }
}

/// What was done to an object.
enum Made {
    Create,
    Delete(String),
    Status,
    Spec,
    Work,
    NoWork,
    /// The finalizers of an instance.
    Guard,
    AddOn,
    Completed,
}

fn moves(before: &Observed, after: &Observed, cluster: &ClusterName) -> bool {
    let told =
        |observed: &Observed| observed.instances.get(cluster).map(|instance| instance.status.told_revision());
    told(before) != told(after)
}

/// S3 and S18: a work is what its instance is told, and keeps the shape of the template.
fn rendered(before: &Observed, cluster: &ClusterName, key: &Key, object: &Value) -> Vec<String> {
    let Some(instance) = before.instances.get(cluster) else {
        return vec!["S3: there is no instance".into()];
    };
    let told: Vec<&Pin> = instance.status.told().collect();
    let Some(Ok(prepared)) = Templates::new(before).prepare(told.iter().copied()) else {
        return vec![format!("S3: {told:?} does not render")];
    };
    let mut found = Vec::new();
    if key.2 == work_name(&before.addon.name) {
        let site =
            WorkSite { cluster, install_namespace: &instance.install_namespace, instance_uid: &instance.uid };
        let hooks = |work: &Value| work["spec"]["workload"].clone();
        if !prepared.has_hooks() || hooks(&prepared.hook_work(&site)) != hooks(object) {
            found.push(format!("S3: {cluster} has other hooks than its template: {}", hooks(object)));
        }
        if !instance.deleting {
            found.push(format!("S25: hooks run on {cluster}, and its instance is not being deleted"));
        }
        return found;
    }
    let Some(index) = prepared.work_index(&key.2) else { return vec!["S3: a work too many".into()] };
    let manifests = object.pointer("/spec/workload/manifests").and_then(Value::as_array).map(Vec::as_slice);
    let manifests: Vec<Value> = manifests.unwrap_or_default().iter().map(as_authored).collect();
    if manifests != prepared.manifests(index, cluster, &instance.install_namespace) {
        found.push(format!(
            "S3: {cluster} is told {:?} and its work has {manifests:?}",
            instance.status.told_revision()
        ));
    }
    let template = told.iter().find(|pin| pin.config.kind == *GroupResource::templates());
    let content = template.and_then(|pin| before.content(pin));
    let shapes =
        content.and_then(|content| content.pointer("/spec/agentSpec/workload/manifests")?.as_array());
    if prepared.works() == 1
        && let Some(shapes) = shapes
    {
        let is_hook = |shape: &&Value| {
            shape["metadata"]["annotations"]
                .get("addon.open-cluster-management.io/addon-pre-delete")
                .is_some()
        };
        let shapes: Vec<&Value> = shapes.iter().filter(|shape| !is_hook(shape)).collect();
        let same = shapes.len() == manifests.len()
            && shapes.iter().zip(&manifests).all(|(shape, manifest)| has_shape(shape, manifest));
        if !same {
            found.push(format!("S18: {manifests:?} has not the shape of the template"));
        }
    }
    found
}

/// Whether a manifest has the keys and the types of its template. Where pods run is added by
/// configs.
fn has_shape(template: &Value, manifest: &Value) -> bool {
    let keys = |object: &serde_json::Map<String, Value>| -> BTreeSet<String> {
        object
            .keys()
            .filter(|key| !["nodeSelector", "tolerations"].contains(&key.as_str()))
            .cloned()
            .collect()
    };
    match (template, manifest) {
        (Value::Object(a), Value::Object(b)) => {
            keys(a) == keys(b) && a.iter().all(|(key, a)| b.get(key).is_none_or(|b| has_shape(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| has_shape(a, b))
        }
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
