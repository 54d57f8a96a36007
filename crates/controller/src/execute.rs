//! Writing what a plan says: in stages, each write on the condition that the object still is what the plan was made for.
//!
//! Owns the order of writes and what becomes of each. One cluster's failure is an outcome, never an error: the others go on, and the next plan
//! sees what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aviary_api::names::{annotations, labels};
use aviary_api::{AddOnHubConfig, ClusterManagementAddOn, ManagedClusterAddOn, ManifestWork};
use aviary_engine::configs::{ConfigRef, Revision};
use aviary_engine::hash::Hash;
use aviary_engine::install::{Create, Delete};
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::observed::AddOnStatus;
use aviary_engine::plan::{Plan, StatusWrite, SurplusWork, WorkWrite};
use aviary_engine::status::publish;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ObjectMeta, PartialObjectMeta};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use crate::events::Events;
use crate::leader::Term;
use crate::pace::Pace;
use crate::revisions::{self, Owner};
use crate::seen::{self, Change, Key, News, Taken};

/// The add-on that is written for, as the plan saw it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) name: Text,
    pub(crate) uid: Text,
    pub(crate) resource_version: Text,
    /// The order of its placements, as they are published.
    pub(crate) placements: Vec<PlacementName>,
    /// The term that is written on it.
    pub(crate) term: u64,
}

/// A completed revision to keep: its number, and what it pushes out.
#[derive(Clone, Debug)]
pub(crate) struct Completed {
    pub(crate) placement: PlacementName,
    pub(crate) revision: Revision,
    pub(crate) number: i64,
    pub(crate) surplus: Vec<Key>,
}

/// Everything that one execution carries out.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) plan: Plan,
    pub(crate) completed: Vec<Completed>,
    /// AddOnHubConfigs whose status is to offer these versions.
    pub(crate) offers: Vec<(ConfigRef, Vec<Text>)>,
    /// Instances that an earlier leader may still be about to start, by cluster and uid. It loses them before this one starts any.
    pub(crate) fence: Vec<(ClusterName, Text)>,
}

/// What an execution came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) written: usize,
    /// The object had changed. The next plan sees it as it is.
    pub(crate) conflicts: usize,
    pub(crate) failed: usize,
}

/// Writes for one manager.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) pace: Pace,
    pub(crate) news: mpsc::Sender<News>,
    pub(crate) term: Term,
    /// This leader's time is over: what it has not begun to write it leaves.
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) voided: Arc<Mutex<BTreeMap<Text, Text>>>,
    pub(crate) events: Events,
}

/// The term of a manager that runs alone: it neither writes terms nor minds them.
pub(crate) const UNFENCED: Term = Term { number: u64::MAX, handed_over: true };

enum Outcome {
    Written(Vec<News>),
    Conflict,
    Failed(Box<kube::Error>),
}

impl Executor {
    /// Carries a plan out. Whatever it has written is told as news, so that the next plan sees it.
    pub(crate) async fn execute(&self, job: Job) -> Tally {
        let mut tally = Tally::default();
        let Job { target, plan, completed, offers, fence } = job;
        let Plan {
            keeps,
            creates,
            deletes,
            addon,
            starts,
            statuses,
            works,
            surplus_works,
            forgets,
            events,
            ..
        } = plan;
        let owner = Owner { namespace: &self.namespace, addon: &target.name, uid: &target.uid };
        // What is kept goes with its add-on. It may be missing just because that has gone, and we have not heard of it yet.
        if !keeps.is_empty()
            && let Err(why) = self.still_there(&target).await
        {
            self.book(why, &mut tally).await;
            return tally;
        }
        // Content before anybody is told its hash.
        let keep = |keep| self.create_revision(owner, revisions::content(owner, keep)).boxed();
        if !self.all(&keeps, keep, &mut tally).await {
            return tally;
        }
        if !self.all(&completed, |completed| self.complete(owner, completed).boxed(), &mut tally).await {
            return tally;
        }
        if !fence.is_empty() {
            return self.fence_off(&target, &fence, tally).await;
        }
        // The add-on before any wave: who is not the leader any more loses here.
        if addon.is_some() || !starts.is_empty() {
            let reserve = |status: &'_ Option<AddOnStatus>| {
                self.reserve(target.clone(), status.clone(), !starts.is_empty()).boxed()
            };
            if !self.all(&[addon], reserve, &mut tally).await {
                return tally;
            }
        }
        // What they tell of is recorded now.
        self.events.publish(&target, &events).await;
        self.all(&offers, |(config, versions)| self.offer(config, versions).boxed(), &mut tally).await;
        self.all(&creates, |create| self.create_instance(owner, create).boxed(), &mut tally).await;
        self.all(&deletes, |delete| self.delete_instance(&target.name, delete).boxed(), &mut tally).await;
        // Whose instance is not what the plan saw: it may be gone, and a work for it would go too, and be missed, and be made again.
        let missed = Mutex::new(BTreeSet::new());
        // Who has settled is told so before anybody takes the free slot: whoever counts by statuses alone never counts too many.
        for told in [&statuses, &starts] {
            self.all(told, |write| self.tell(&target.name, write, &missed).boxed(), &mut tally).await;
        }
        let missed = missed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let works: Vec<WorkWrite> =
            works.into_iter().filter(|write| !missed.contains(&write.cluster)).collect();
        self.all(&works, |write| self.write_work(&target.name, write).boxed(), &mut tally).await;
        self.all(&surplus_works, |surplus| self.delete_work(surplus).boxed(), &mut tally).await;
        self.all(&forgets, |hash| self.forget(&target.name, hash).boxed(), &mut tally).await;
        tally
    }

    /// Before its first wave in a term that was not handed over, a leader touches every instance, and then puts its term on the add-on.
    ///
    /// The leader before may have reserved a wave and be about to write it, however long ago that was: each of those writes is on the condition
    /// that the instance is as it was then, which it is not any more. Should it reserve another wave meanwhile, the add-on is not what this
    /// plan has seen, our own reservation fails, and all of this is done again. What is planned is planned anew over what is then there.
    async fn fence_off(&self, target: &Target, fence: &[(ClusterName, Text)], mut tally: Tally) -> Tally {
        tracing::info!(addon = %target.name, instances = fence.len(), "an earlier leader did not hand over: what it may still write is made void");
        // An add-on that cannot be written, and has not been since, needs it once.
        let is_void = self.voided(target, |voided| *voided == target.resource_version);
        if is_void || self.all(fence, |instance| self.touch(&target.name, instance).boxed(), &mut tally).await
        {
            self.voided(target, |voided| voided.clone_from(&target.resource_version));
            self.all(&[()], |()| self.enter_term(target).boxed(), &mut tally).await;
        }
        tally
    }

    /// The add-on's resource version when the writes of earlier leaders were last made void.
    fn voided<T>(&self, target: &Target, look: impl FnOnce(&mut Text) -> T) -> T {
        let mut all = self.voided.lock().unwrap_or_else(PoisonError::into_inner);
        look(all.entry(target.name.clone()).or_insert_with(|| "".into()))
    }

    async fn touch(&self, addon: &str, (cluster, uid): &(ClusterName, Text)) -> Outcome {
        let patch = json!({"metadata": {"uid": uid, "annotations": {annotations::MANAGER_TERM: self.term.number.to_string()}}});
        match self
            .instances(cluster.as_str())
            .patch(addon, &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Ok(written) => Outcome::Written(put(
                &written.metadata,
                seen::instance(&written).map(Box::new),
                News::Instance,
            )),
            // It is gone, or another one: nobody has a write for it.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Outcome::Written(Vec::new()),
            Err(error) => Outcome::of(error),
        }
    }

    async fn enter_term(&self, target: &Target) -> Outcome {
        let patch = json!({"metadata": {
            "uid": target.uid, "resourceVersion": target.resource_version,
            "annotations": {annotations::MANAGER_TERM: self.term.number.to_string()},
        }});
        match self.addons().patch(&target.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(written) => {
                Outcome::Written(put(&written.metadata, Some(Box::new(seen::addon(&written))), News::AddOn))
            }
            Err(error) => Outcome::of(error),
        }
    }

    /// Makes writes side by side, as many at once as the hub takes. Says whether all were made.
    async fn all<'a, T: Sync>(
        &'a self,
        writes: &'a [T],
        make: impl Fn(&'a T) -> BoxFuture<'a, Outcome> + Send,
        tally: &mut Tally,
    ) -> bool {
        let mut waiting = writes.iter();
        let mut running = FuturesUnordered::new();
        let mut whole = true;
        loop {
            if self.over.load(Ordering::Relaxed) && waiting.len() > 0 {
                tally.failed += waiting.len();
                waiting = Default::default();
                whole = false;
            }
            let outcome = tokio::select! {
                biased;
                Some(outcome) = running.next(), if !running.is_empty() => outcome,
                Some(slot) = self.pace.slot(), if waiting.len() > 0 => {
                    if let Some(write) = waiting.next() {
                        running.push(self.timed(make(write), slot));
                    }
                    continue;
                }
                else => break,
            };
            whole &= self.book(outcome, tally).await;
        }
        whole
    }

    async fn timed(&self, write: BoxFuture<'_, Outcome>, slot: OwnedSemaphorePermit) -> Outcome {
        let started = Instant::now();
        let outcome = write.await;
        self.pace.give_back(slot, started.elapsed(), outcome.is_overload());
        outcome
    }

    /// Notes an outcome, and tells what was written. Says whether it was.
    async fn book(&self, outcome: Outcome, tally: &mut Tally) -> bool {
        match outcome {
            Outcome::Written(news) => {
                tally.written += 1;
                for one in news {
                    // Nobody listens any more when the manager stops.
                    let _ = self.news.send(one).await;
                }
                return true;
            }
            Outcome::Conflict => tally.conflicts += 1,
            Outcome::Failed(error) => {
                tracing::warn!(error = said(&error), "a write failed; it is tried again");
                tally.failed += 1;
            }
        }
        false
    }

    async fn offer(&self, config: &ConfigRef, versions: &[Text]) -> Outcome {
        let api: Api<AddOnHubConfig> = Api::all(self.client.clone());
        let patch = json!({"status": {"supportedVersions": versions}});
        match api.patch_status(&config.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Outcome::Written(Vec::new()),
            Err(error) => Outcome::of(error),
        }
    }

    fn addons(&self) -> Api<ClusterManagementAddOn> {
        Api::all(self.client.clone())
    }

    fn instances(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.client.clone(), cluster)
    }

    fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.client.clone(), cluster)
    }

    fn revisions(&self) -> Api<ControllerRevision> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Whether the add-on still is the one that was planned for.
    async fn still_there(&self, target: &Target) -> Result<(), Outcome> {
        let named = ListParams::default().fields(&format!("metadata.name={}", target.name));
        let is_it = |one: &PartialObjectMeta<ClusterManagementAddOn>| {
            one.metadata.uid.as_deref() == Some(&*target.uid) && one.metadata.deletion_timestamp.is_none()
        };
        match self.addons().list_metadata(&named).await {
            Ok(list) if list.items.iter().any(is_it) => Ok(()),
            Ok(_) => Err(Outcome::Conflict),
            Err(error) => Err(Outcome::of(error)),
        }
    }

    async fn create_revision(&self, owner: Owner<'_>, object: Value) -> Outcome {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let object: ControllerRevision = match serde_json::from_value(object) {
            Ok(object) => object,
            Err(error) => return Outcome::Failed(Box::new(kube::Error::SerdeError(error))),
        };
        let written = match self.revisions().create(&PostParams::default(), &object).await {
            // Ours from an earlier try, or one that does not say what its name says: then it is not read as ours.
            Err(kube::Error::Api(status)) if status.code == 409 => self.revisions().get(&name).await,
            written => written,
        };
        if let Ok(found) = &written
            && seen::revision(found).and_then(|kept| kept.owner).is_some_and(|of| *of != *owner.uid)
        {
            return self.clear_away(found).await;
        }
        match written {
            Ok(written) => Outcome::Written(put(&written.metadata, seen::revision(&written), News::Revision)),
            Err(error) => Outcome::of(error),
        }
    }

    /// Something that was kept for an earlier add-on of the same name is in the way. It goes now, rather than when the hub gets to it.
    async fn clear_away(&self, found: &ControllerRevision) -> Outcome {
        let preconditions = Preconditions { uid: found.metadata.uid.clone(), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let name = found.metadata.name.as_deref().unwrap_or_default();
        match self.revisions().delete(name, &params).await {
            Ok(_) => Outcome::Conflict,
            Err(error) => Outcome::of(error),
        }
    }

    async fn complete(&self, owner: Owner<'_>, completed: &Completed) -> Outcome {
        let Completed { placement, revision, number, surplus } = completed;
        let outcome =
            self.create_revision(owner, revisions::completed(owner, placement, revision, *number)).await;
        let Outcome::Written(mut news) = outcome else { return outcome };
        for key in surplus {
            match self.delete_revision(&key.name).await {
                Outcome::Written(more) => news.extend(more),
                other => return other,
            }
        }
        Outcome::Written(news)
    }

    async fn delete_revision(&self, name: &str) -> Outcome {
        let key = Key { namespace: self.namespace.as_str().into(), name: name.into() };
        gone(
            self.revisions().delete(name, &DeleteParams::default()).await.map(drop),
            News::Revision(Change::Gone(key)),
        )
    }

    async fn forget(&self, addon: &str, hash: &Hash) -> Outcome {
        self.delete_revision(&revisions::content_name(addon, hash)).await
    }

    /// The add-on's status and, before a wave, the word that this leader starts it. Both only over the state that the plan has seen.
    async fn reserve(&self, target: Target, status: Option<AddOnStatus>, starts: bool) -> Outcome {
        let mut version = target.resource_version.clone();
        let mut news = Vec::new();
        if starts && self.term != UNFENCED && target.term != self.term.number {
            match self.enter_term(&target).await {
                Outcome::Written(entered) => {
                    for one in &entered {
                        if let News::AddOn(Change::Put(_, seen)) = one {
                            version = seen.resource_version.clone();
                        }
                    }
                    news = entered;
                }
                other => return other,
            }
        }
        let status =
            status.map(|status| publish::addon(&status, &target.placements)).unwrap_or_else(|| json!({}));
        let patch = json!({"metadata": {"uid": target.uid, "resourceVersion": version}, "status": status});
        match self.addons().patch_status(&target.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(written) => {
                news.extend(put(&written.metadata, Some(Box::new(seen::addon(&written))), News::AddOn));
                Outcome::Written(news)
            }
            Err(error) => Outcome::of(error),
        }
    }

    async fn create_instance(&self, owner: Owner<'_>, create: &Create) -> Outcome {
        let object = json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1",
            "kind": "ManagedClusterAddOn",
            "metadata": {
                "name": owner.addon,
                "namespace": create.cluster.as_str(),
                "labels": {labels::INSTALLED_BY_STRATEGY: create.marker, labels::ADDON_NAME: owner.addon},
                "ownerReferences": [{
                    "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
                    "name": owner.addon, "uid": owner.uid, "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"installNamespace": create.install_namespace},
        });
        let object = match serde_json::from_value(object) {
            Ok(object) => object,
            Err(error) => return Outcome::Failed(Box::new(kube::Error::SerdeError(error))),
        };
        match self.instances(create.cluster.as_str()).create(&PostParams::default(), &object).await {
            Ok(written) => Outcome::Written(put(
                &written.metadata,
                seen::instance(&written).map(Box::new),
                News::Instance,
            )),
            Err(error) => Outcome::of(error),
        }
    }

    async fn delete_instance(&self, addon: &str, delete: &Delete) -> Outcome {
        let preconditions = Preconditions { uid: Some(delete.uid.to_string()), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match self.instances(delete.cluster.as_str()).delete(addon, &params).await {
            // While its finalizers hold it, it is told as it is.
            Ok(answer) => match answer.left() {
                Some(object) => Outcome::Written(put(
                    &object.metadata,
                    seen::instance(&object).map(Box::new),
                    News::Instance,
                )),
                None => {
                    let key = Key { namespace: delete.cluster.as_str().into(), name: addon.into() };
                    Outcome::Written(vec![News::Instance(Change::Gone(key))])
                }
            },
            Err(error) => Outcome::of(error),
        }
    }

    /// Writes a status, and notes where that could not be done.
    async fn tell(&self, addon: &str, write: &StatusWrite, missed: &Mutex<BTreeSet<ClusterName>>) -> Outcome {
        let outcome = self.write_status(addon, write).await;
        if !matches!(outcome, Outcome::Written(_)) {
            missed.lock().unwrap_or_else(PoisonError::into_inner).insert(write.cluster.clone());
        }
        outcome
    }

    async fn write_status(&self, addon: &str, write: &StatusWrite) -> Outcome {
        let patch = json!({
            "metadata": {"uid": write.uid, "resourceVersion": write.resource_version}, "status": publish::instance(&write.status),
        });
        match self
            .instances(write.cluster.as_str())
            .patch_status(addon, &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Ok(written) => Outcome::Written(put(
                &written.metadata,
                seen::instance(&written).map(Box::new),
                News::Instance,
            )),
            Err(error) => Outcome::of(error),
        }
    }

    async fn write_work(&self, addon: &Text, write: &WorkWrite) -> Outcome {
        let mut object = write.object();
        let works = self.works(write.cluster.as_str());
        let parse =
            |object: Value| serde_json::from_value::<ManifestWork>(object).map_err(kube::Error::SerdeError);
        let written = match &write.replaces {
            None => match parse(object) {
                Ok(object) => match works.create(&PostParams::default(), &object).await {
                    Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                        return self.already_there(addon, write).await;
                    }
                    written => written,
                },
                Err(error) => Err(error),
            },
            Some((uid, version)) => {
                object["metadata"]["uid"] = json!(uid);
                object["metadata"]["resourceVersion"] = json!(version);
                // A patch, so that what others keep on the work stays.
                works.patch(&write.name, &PatchParams::default(), &Patch::Merge(object)).await
            }
        };
        match written {
            Ok(written) => {
                Outcome::Written(put(&written.metadata, seen::work(&written).map(Box::new), News::Work))
            }
            Err(error) => Outcome::of(error),
        }
    }

    /// There is a work of that name that was not seen: ours, or somebody else's, which nobody watches.
    async fn already_there(&self, addon: &Text, write: &WorkWrite) -> Outcome {
        let taken = Taken {
            addon: addon.clone(),
            cluster: write.cluster.clone(),
            name: write.name.as_str().into(),
            told: write.told().clone(),
        };
        let news = match work_named(&self.client, &taken).await {
            Ok(Some(work)) if belongs(&work, addon) => {
                put(&work.metadata, seen::work(&work).map(Box::new), News::Work)
            }
            Ok(Some(_)) => {
                tracing::warn!(%addon, cluster = %taken.cluster, work = %taken.name, "somebody else has a work of that name; it is left alone");
                vec![News::Taken(taken)]
            }
            Ok(None) => Vec::new(),
            Err(error) => return Outcome::of(error),
        };
        for one in news {
            // Nobody listens any more when the manager stops.
            let _ = self.news.send(one).await;
        }
        Outcome::Conflict
    }

    async fn delete_work(&self, surplus: &SurplusWork) -> Outcome {
        let preconditions = Preconditions { uid: Some(surplus.uid.to_string()), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match self.works(surplus.cluster.as_str()).delete(&surplus.name, &params).await {
            Ok(answer) => match answer.left() {
                Some(object) => {
                    Outcome::Written(put(&object.metadata, seen::work(&object).map(Box::new), News::Work))
                }
                None => {
                    let key = Key { namespace: surplus.cluster.as_str().into(), name: surplus.name.clone() };
                    Outcome::Written(vec![News::Work(Change::Gone(key))])
                }
            },
            Err(error) => Outcome::of(error),
        }
    }
}

impl Outcome {
    /// What an error means. A gone object is no failure: the next plan sees that it is gone.
    fn of(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => Self::Conflict,
            _ => Self::Failed(Box::new(error)),
        }
    }

    fn is_overload(&self) -> bool {
        match self {
            Self::Failed(error) => {
                matches!(&**error, kube::Error::Api(status) if matches!(status.code, 429 | 500..=599))
            }
            Self::Written(_) | Self::Conflict => false,
        }
    }
}

/// What the hub says of an error, without the envelope.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
        error => error.to_string(),
    }
}

fn gone(deleted: Result<(), kube::Error>, news: News) -> Outcome {
    match deleted {
        Ok(()) => Outcome::Written(vec![news]),
        Err(kube::Error::Api(status)) if status.code == 404 => Outcome::Written(vec![news]),
        Err(error) => Outcome::of(error),
    }
}

fn put<T>(metadata: &ObjectMeta, seen: Option<T>, wrap: impl Fn(Change<T>) -> News) -> Vec<News> {
    seen.map(|seen| wrap(Change::Put(Key::of(metadata), seen))).into_iter().collect()
}

/// The work of that name, whosever it is.
async fn work_named(client: &Client, taken: &Taken) -> Result<Option<ManifestWork>, kube::Error> {
    let works: Api<ManifestWork> = Api::namespaced(client.clone(), taken.cluster.as_str());
    let named = ListParams::default().fields(&format!("metadata.name={}", taken.name));
    Ok(works.list(&named).await?.items.into_iter().next())
}

fn belongs(work: &ManifestWork, addon: &str) -> bool {
    work.metadata.labels.as_ref().and_then(|all| all.get(labels::ADDON_NAME)).is_some_and(|of| of == addon)
}

/// Waits until somebody else's work is gone, or ours, and tells.
pub(crate) async fn until_free(client: Client, taken: Taken, news: mpsc::Sender<News>) {
    let mut pause = Duration::from_secs(1);
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
        match work_named(&client, &taken).await {
            Ok(Some(work)) if !belongs(&work, &taken.addon) => {}
            Ok(_) => {
                // Nobody listens any more when the manager stops.
                let _ = news.send(News::Freed(taken)).await;
                return;
            }
            Err(error) => tracing::debug!(
                error = said(&error),
                "a look at somebody else's work failed; it is tried again"
            ),
        }
    }
}

/// How long to wait before trying again what has failed so often in a row.
pub(crate) fn patience(failures: u32) -> Duration {
    Duration::from_millis(200).saturating_mul(1 << failures.min(8)).min(Duration::from_secs(30))
}

/// Shared by all executions of one term.
pub(crate) type SharedExecutor = Arc<Executor>;
