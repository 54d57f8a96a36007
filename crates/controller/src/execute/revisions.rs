//! Keeping contents and the history of placements.

use aviary_engine::configs::Revision;
use aviary_engine::hash::Hash;
use aviary_engine::name::PlacementName;
use aviary_engine::plan::{Completion, Keep};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};

use super::Executor;
use super::outcome::{WriteResult, deleted, only};
use crate::revisions::{self, Completed, Owner, StoredRevision};
use crate::seen::Key;

impl Executor {
    fn revisions(&self) -> Api<StoredRevision> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(super) async fn keep(&self, owner: Owner<'_>, keep: &Keep) -> WriteResult {
        self.create_revision(owner, revisions::content(owner, keep)).await
    }

    async fn create_revision(
        &self,
        owner: Owner<'_>,
        object: serde_json::Result<StoredRevision>,
    ) -> WriteResult {
        let object = match object {
            Ok(object) => object,
            Err(error) => return WriteResult::of_error(kube::Error::SerdeError(error)),
        };
        let name = object.name_any();
        let answer = match self.revisions().create(&PostParams::default(), &object).await {
            // Ours from an earlier attempt, or an object whose content does not match its name,
            // which is not read as ours.
            Err(kube::Error::Api(status)) if status.code == 409 => self.revisions().get(&name).await,
            answer => answer,
        };
        match answer {
            Ok(found) if is_of_another(&found, owner) => self.clear_away(&found).await,
            answer => WriteResult::of_put(answer),
        }
    }

    /// Deletes what was kept for an earlier add-on of the same name now, instead of waiting for the
    /// garbage collector.
    async fn clear_away(&self, found: &StoredRevision) -> WriteResult {
        let uid = found.uid().unwrap_or_default();
        match self.revisions().delete(&found.name_any(), &only(&uid)).await {
            Ok(_) => WriteResult::Conflict,
            Err(error) => WriteResult::of_error(error),
        }
    }

    /// Records a completion under the next number of its placement, and deletes the oldest ones
    /// beyond those to keep.
    pub(super) async fn complete(
        &self,
        owner: Owner<'_>,
        history: &[(Key, Completed)],
        completion: &Completion,
    ) -> WriteResult {
        let Completion { placement, revision, keep, started } = completion;
        let of_placement = history.iter().filter(|(_, one)| one.placement == *placement);
        let mut numbered: Vec<(i64, &Key)> = of_placement.map(|(key, one)| (one.number, key)).collect();
        numbered.sort();
        let number = numbered.last().map_or(1, |(number, _)| number + 1);
        let object = revisions::completed(owner, placement, revision, number, *started);
        let mut outcome = self.create_revision(owner, object).await;
        let surplus = (numbered.len() + 1).saturating_sub(*keep);
        for (_, key) in numbered.into_iter().take(surplus) {
            let WriteResult::Written(mut events) = outcome else { return outcome };
            outcome = match self.delete_revision(&key.name).await {
                WriteResult::Written(more) => {
                    events.extend(more);
                    WriteResult::Written(events)
                }
                other => other,
            };
        }
        outcome
    }

    pub(super) async fn withdraw(
        &self,
        history: &[(Key, Completed)],
        placement: &PlacementName,
        revision: &Revision,
    ) -> WriteResult {
        let stands =
            |one: &Completed| one.placement == *placement && one.revision == *revision && !one.withdrawn;
        let mut events = Vec::new();
        for (key, _) in history.iter().filter(|(_, one)| stands(one)) {
            let patch = Patch::Merge(revisions::withdrawal());
            let answer = self.revisions().patch(&key.name, &PatchParams::default(), &patch).await;
            match WriteResult::of_put(answer) {
                WriteResult::Written(more) => events.extend(more),
                other => return other,
            }
        }
        WriteResult::Written(events)
    }

    /// Keeps a stored content while hooks may need it.
    pub(super) async fn hold(&self, addon: &str, hash: &Hash) -> WriteResult {
        let (name, patch) = (revisions::content_name(addon, hash), Patch::Merge(revisions::hold()));
        WriteResult::of_put(self.revisions().patch(&name, &PatchParams::default(), &patch).await)
    }

    async fn delete_revision(&self, name: &str) -> WriteResult {
        let gone =
            |uid: &str| WriteResult::Written(vec![deleted::<StoredRevision>(&self.namespace, name, uid)]);
        match self.revisions().delete(name, &DeleteParams::default()).await {
            Ok(answer) => {
                if let Some(held) = answer.as_ref().left().filter(|one| revisions::is_held(one)) {
                    return self.release_revision(name, held).await;
                }
                let details = answer.right().and_then(|status| status.details);
                gone(details.map(|details| details.uid).unwrap_or_default().as_str())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => gone(""),
            Err(error) => WriteResult::of_error(error),
        }
    }

    /// Lets a revision go that is being deleted and that its finalizer keeps: no hook needs it.
    async fn release_revision(&self, name: &str, held: &StoredRevision) -> WriteResult {
        let gone =
            |uid: &str| WriteResult::Written(vec![deleted::<StoredRevision>(&self.namespace, name, uid)]);
        let patch = Patch::Merge(revisions::release(held));
        match self.revisions().patch(name, &PatchParams::default(), &patch).await {
            Ok(held) => gone(&held.uid().unwrap_or_default()),
            Err(kube::Error::Api(status)) if status.code == 404 => gone(""),
            Err(error) => WriteResult::of_error(error),
        }
    }

    pub(super) async fn forget(&self, addon: &str, hash: &Hash) -> WriteResult {
        self.delete_revision(&revisions::content_name(addon, hash)).await
    }
}

fn is_of_another(found: &StoredRevision, owner: Owner<'_>) -> bool {
    revisions::read(found).and_then(|kept| kept.owner).is_some_and(|of| *of != *owner.uid)
}
