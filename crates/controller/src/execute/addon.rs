//! Writing the add-on itself: its status, the leader's term, and the versions that its configs
//! offer.

use aviary_api::names::annotations;
use aviary_api::{AddOnHubConfig, ClusterManagementAddOn};
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::normalise;
use aviary_engine::observed::AddOnStatus;
use aviary_engine::plan::{Offer, Stage, Write, same_status};
use aviary_engine::status::publish;
use futures_util::FutureExt;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use serde_json::json;

use super::outcome::{WriteResult, written};
use super::{Executor, Job, Missed, Tally, Target, UNFENCED, echo, lock};
use crate::seen::Echoed;

impl Executor {
    fn addons(&self) -> Api<ClusterManagementAddOn> {
        Api::all(self.client.clone())
    }

    /// Revisions are garbage-collected with their add-on. They may be missing because it was
    /// deleted a moment ago: then they must not be kept again for an add-on that is gone.
    pub(super) async fn still_exists(&self, target: &Target, tally: &mut Tally) -> bool {
        let named = ListParams::default().fields(&format!("metadata.name={}", target.name));
        let is_it = |one: &PartialObjectMeta<ClusterManagementAddOn>| {
            one.metadata.uid.as_deref() == Some(&*target.uid) && one.metadata.deletion_timestamp.is_none()
        };
        let why = match self.addons().list_metadata(&named).await {
            Ok(list) if list.items.iter().any(is_it) => return true,
            Ok(_) => WriteResult::Conflict,
            Err(error) => WriteResult::of_error(error),
        };
        self.note(why, tally).await
    }

    /// Reserves the wave: writes the add-on's status, and the leader's term if it starts instances.
    /// A manager that no longer leads fails here. Events follow, because the status now records
    /// what they are about.
    pub(super) async fn reserve(&self, job: &Job, stage: &Stage, tally: &mut Tally) -> bool {
        let reserved = match stage.writes.is_empty() {
            true => self.all(vec![&()], |(): &()| self.write_addon(job, None).boxed(), tally).await,
            false => self.write_stage(job, stage, &Missed::default(), tally).await,
        };
        if reserved {
            self.events.publish(&job.target, &job.plan.events).await;
        }
        reserved
    }

    /// Writes the status over the state that the plan has seen. Without a status, only checks that
    /// it still is that state.
    pub(super) async fn write_addon(&self, job: &Job, write: Option<(&Write, &AddOnStatus)>) -> WriteResult {
        let target = &job.target;
        let starts = job.plan.starts().next().is_some();
        let mut version = target.resource_version.clone();
        let mut events = Vec::new();
        if starts && self.term != UNFENCED && !self.is_entered(target) {
            match self.enter_term(target).await {
                Ok(entered) => {
                    version = entered.resource_version().unwrap_or_default().into();
                    events.extend(written(entered));
                }
                Err(error) => return WriteResult::of_error(error),
            }
        }
        let status = write.map_or_else(
            || json!({}),
            |(_, status)| publish::addon(status, &target.placements, &target.served),
        );
        let patch = json!({"metadata": {"uid": target.uid, "resourceVersion": version}, "status": status});
        match self.addons().patch_status(&target.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(object) => {
                let version: Text = object.resource_version().unwrap_or_default().into();
                let mut stored = normalise::addon(&object).0.status;
                if let Some((write, sent)) = write
                    && {
                        if !target.served.addon_conditions {
                            stored.conditions.clone_from(&sent.conditions);
                        }
                        !same_status(sent, &stored)
                    }
                {
                    let how = (target.placements.as_slice(), &target.served);
                    events.extend(echo(&target.name, Echoed::AddOn, version, write, how));
                }
                events.extend(written(object));
                WriteResult::Written(events)
            }
            Err(error) => WriteResult::of_error(error),
        }
    }

    /// Whether this leader's term is on the add-on.
    fn is_entered(&self, target: &Target) -> bool {
        target.written_by.term == self.term.number && *target.written_by.leader == *self.identity
    }

    async fn enter_term(&self, target: &Target) -> kube::Result<ClusterManagementAddOn> {
        let patch = json!({"metadata": {
            "uid": target.uid, "resourceVersion": target.resource_version,
            "annotations": {
                annotations::MANAGER_TERM: self.term.number.to_string(), annotations::MANAGER_IDENTITY: self.identity,
            },
        }});
        self.addons().patch(&target.name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// Before its first wave in a term that was not handed over, a leader touches every instance,
    /// then writes its term on the add-on.
    ///
    /// The earlier leader may have reserved a wave and still be about to write it, however long ago
    /// that was. Each of those writes is conditional on the instance being unchanged, so touching
    /// the instance invalidates it. If the earlier leader reserves another wave meanwhile, the
    /// add-on is not what this plan has seen, entering the term fails, and all of this is repeated.
    /// Nothing else of the plan is carried out: the next pass plans again from what is there then.
    pub(super) async fn fence_off(&self, target: &Target, fence: &[(ClusterName, Text)], tally: &mut Tally) {
        tracing::info!(
            addon = %target.name, instances = fence.len(),
            "an earlier leader did not hand over; invalidating its pending writes"
        );
        // An add-on that could not be written, and has not changed since, needs it only once.
        let is_void = self.voided(target, |voided| *voided == target.resource_version);
        let touch = |instance| self.touch(target, instance).boxed();
        if is_void || self.all(fence.iter().collect(), touch, tally).await {
            self.voided(target, |voided| voided.clone_from(&target.resource_version));
            let enter = |(): &()| async { WriteResult::of_put(self.enter_term(target).await) }.boxed();
            self.all(vec![&()], enter, tally).await;
        }
    }

    fn voided<T>(&self, target: &Target, look: impl FnOnce(&mut Text) -> T) -> T {
        look(lock(&self.voided).entry(target.name.clone()).or_insert_with(|| "".into()))
    }

    pub(super) async fn offer(&self, offer: &Offer) -> WriteResult {
        let api: Api<AddOnHubConfig> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"status": {"supportedVersions": offer.versions}}));
        match api.patch_status(&offer.config.name, &PatchParams::default(), &patch).await {
            Ok(_) => WriteResult::Written(Vec::new()),
            Err(error) => WriteResult::of_error(error),
        }
    }
}
