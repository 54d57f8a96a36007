//! A simulated hub: accepts writes as an API server would, and holds the snapshot for the next
//! plan.

use std::collections::BTreeMap;

use super::agents::Answer;
use crate::configs::GroupResource;
use crate::hash::Hash;
use crate::health::Health;
use crate::install::Create;
use crate::name::{ClusterName, Text};
use crate::observed::{Instance, InstanceStatus, Observed, Seen, Work, WorkState};
use crate::plan::{Completion, GuardWrite, Keep, RecordWrite, StatusWrite, WorkWrite, Write};
use crate::shared::{Pool, Shared};

/// The state of one add-on and everything related to it.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub observed: Observed,
    written: u64,
    /// An object whose health is asked for, by the name of its work and what that is rendered from.
    probed: BTreeMap<(Text, Option<Text>), Text>,
    states: Pool<WorkState>,
    hashes: Pool<Vec<(GroupResource, Hash)>>,
}

impl World {
    pub fn new(observed: Observed) -> Self {
        Self { observed, ..Self::default() }
    }

    fn next_version(&mut self) -> Text {
        self.written += 1;
        self.written.to_string().into()
    }

    /// Applies one write. Returns false if the object has changed since, as an API server would
    /// reject it.
    pub fn commit(&mut self, write: &Write) -> bool {
        let version = self.next_version();
        let observed = &mut self.observed;
        match write {
            Write::Keep(keep) => {
                self.keep(keep);
                true
            }
            Write::Hold(hash) => {
                let stored = observed.revisions.contents.contains_key(hash);
                stored && observed.revisions.held.insert(hash.clone())
            }
            Write::Guard(write) => self.guard(write, version),
            Write::Create(create) => self.create(create, version),
            Write::Delete(delete) => {
                let known = observed.instances.get(&delete.cluster);
                known.is_some_and(|known| known.uid == delete.uid) && self.delete(&delete.cluster, version)
            }
            Write::AddOn(status) => {
                observed.addon.status = (**status).clone();
                true
            }
            Write::Record(write) => self.record(write, version),
            Write::Instance(write) => self.write_status(write, version),
            Write::Work(write) => {
                self.write_work(write, version);
                true
            }
            Write::DeleteWork(surplus) => {
                if let Some(mut works) = observed.works.get_mut(&surplus.cluster) {
                    works.retain(|work| work.uid != surplus.uid);
                }
                true
            }
            Write::Complete(Completion { placement, revision, keep, .. }) => {
                observed.revisions.complete(placement, revision, *keep);
                true
            }
            Write::Withdraw(placement, revision) => {
                observed.revisions.withdraw(placement, revision);
                true
            }
            Write::Offer(offer) => {
                observed.offers.entry(offer.config.clone()).or_default().listed.clone_from(&offer.versions);
                true
            }
            Write::Forget(hash) => {
                observed.revisions.contents.remove(hash);
                observed.revisions.held.remove(hash);
                true
            }
        }
    }

    fn keep(&mut self, keep: &Keep) {
        let revisions = &mut self.observed.revisions;
        revisions.contents.insert(keep.pin.hash.clone(), keep.content.clone());
        if keep.held {
            revisions.held.insert(keep.pin.hash.clone());
        }
    }

    fn record(&mut self, write: &RecordWrite, version: Text) -> bool {
        let record = self.observed.record.get_or_insert_default();
        if record.resource_version != write.resource_version {
            return false;
        }
        record.resource_version = version;
        self.observed.addon.status.conditions.clone_from(&write.conditions);
        self.observed.addon.status.attempts.clone_from(&write.attempts);
        true
    }

    fn create(&mut self, create: &Create, version: Text) -> bool {
        let absent = !self.observed.instances.contains_key(&create.cluster);
        if absent {
            let instance = Instance {
                cluster: create.cluster.clone(),
                uid: format!("uid-{version}").into(),
                resource_version: version,
                generation: 1,
                deleting: false,
                finalizers: Vec::new(),
                marker: Some(create.marker.into()),
                owner: Some(self.observed.addon.uid.clone()),
                has_other_owners: false,
                made_by_ocm: false,
                install_namespace: create.install_namespace.clone(),
                hosting: None,
                addon_annotations: create.annotations.clone(),
                overrides: Vec::new(),
                version: None,
                status: InstanceStatus::default(),
            };
            self.observed.instances.insert(create.cluster.clone(), instance);
        }
        absent
    }

    /// Deletes an instance. While it has finalizers, it stays.
    pub fn delete(&mut self, cluster: &ClusterName, version: Text) -> bool {
        let Some(mut instance) = self.observed.instances.get_mut(cluster) else { return false };
        instance.deleting = true;
        instance.resource_version = version;
        let held = !instance.finalizers.is_empty();
        drop(instance);
        if !held {
            self.observed.instances.remove(cluster);
            self.observed.works.remove(cluster);
        }
        true
    }

    fn guard(&mut self, write: &GuardWrite, version: Text) -> bool {
        let Some(mut instance) = self.observed.instances.get_mut(&write.cluster) else { return false };
        if instance.uid != write.uid || instance.resource_version != write.resource_version {
            return false;
        }
        if let Some(finalizers) = &write.finalizers {
            instance.finalizers.clone_from(finalizers);
        }
        instance.addon_annotations.extend(write.annotations.clone());
        if write.owns {
            instance.owner = Some(self.observed.addon.uid.clone());
        }
        if let Some(marker) = write.marker {
            instance.marker = Some(marker.into());
            instance.made_by_ocm = false;
        }
        instance.resource_version = version.clone();
        let goes = instance.deleting && instance.finalizers.is_empty();
        drop(instance);
        if goes {
            self.delete(&write.cluster, version);
        }
        true
    }

    fn write_status(&mut self, write: &StatusWrite, version: Text) -> bool {
        let Some(mut instance) = self.observed.instances.get_mut(&write.cluster) else { return false };
        if instance.uid != write.uid || instance.resource_version != write.resource_version {
            return false;
        }
        instance.status = write.status.clone();
        instance.resource_version = version;
        true
    }

    fn write_work(&mut self, write: &WorkWrite, version: Text) {
        let hashes = write.told().hashes();
        let inputs: Text = write.inputs().into();
        let known = self.observed.works.get(&write.cluster);
        let was_applied =
            known.is_some_and(|works| works.iter().any(|work| *work.name == *write.name && work.was_applied));
        // The inputs stand for the manifests: equal inputs render to equal manifests.
        let state = WorkState {
            name: write.name.as_str().into(),
            hosted_on: None,
            deleting: false,
            version: write.version().cloned(),
            rendered_from: Some(inputs.clone()),
            applied: Seen::NotYet,
            was_applied,
            available: Seen::NotYet,
            health: write.health_before_reports(),
            probed: true,
            objects: write.objects(),
        };
        if let Some(object) = write.probed_object() {
            let key = (state.name.clone(), state.rendered_from.clone());
            self.probed.entry(key).or_insert_with(|| object.into());
        }
        let work = Work {
            uid: format!("uid-{version}").into(),
            resource_version: version,
            generation: 1,
            owner: Some(write.instance_uid().clone()),
            rendered_digest: Some(inputs.clone()),
            digest: Some(inputs),
            hashes: Some(self.hashes.share(hashes)),
            available_since: None,
            state: self.states.share(Shared::new(state)),
        };
        self.put_work(&write.cluster, work);
    }

    /// Creates a work, or changes the one of that name: the agent's report on the old one no longer
    /// counts.
    pub fn put_work(&mut self, cluster: &ClusterName, work: Work) {
        let mut works = self.observed.works.get_or_insert_with(cluster.clone(), Vec::new);
        match works.iter_mut().find(|known| known.name == work.name) {
            Some(known) => *known = Work { uid: known.uid.clone(), generation: known.generation + 1, ..work },
            None => works.push(work),
        }
    }

    /// Acts as the add-on's own manager, if Aviary does not render: updates the works to the
    /// assigned revision, or creates one. Returns whether anything changed.
    pub fn render_elsewhere(&mut self, cluster: &ClusterName) -> bool {
        let Some(instance) = self.observed.instances.get(cluster) else { return false };
        let ours = instance.status.told().any(|pin| pin.config.kind == *GroupResource::templates());
        let untold = instance.status.told().next().is_none() && instance.status.conditions.is_empty();
        if instance.deleting || ours || untold {
            return false;
        }
        let hashes = self.hashes.share(instance.status.told_revision().hashes());
        let version = self.next_version();
        let mut works = self.observed.works.get_or_insert_with(cluster.clone(), Vec::new);
        let mut changed = false;
        for work in works.iter_mut().filter(|work| work.hashes.as_ref() != Some(&hashes)) {
            work.generation += 1;
            work.hashes = Some(hashes.clone());
            let state =
                WorkState { applied: Seen::NotYet, available: Seen::NotYet, ..WorkState::clone(&work.state) };
            work.state = self.states.share(Shared::new(state));
            changed = true;
        }
        if works.is_empty() {
            let state = WorkState {
                name: "own-manager".into(),
                hosted_on: None,
                deleting: false,
                version: None,
                rendered_from: None,
                applied: Seen::NotYet,
                was_applied: false,
                available: Seen::NotYet,
                health: Health::NotProbed,
                probed: false,
                objects: Vec::new(),
            };
            works.push(Work {
                uid: format!("uid-{version}").into(),
                resource_version: version,
                generation: 1,
                owner: None,
                rendered_digest: None,
                digest: None,
                hashes: Some(hashes),
                available_since: None,
                state: self.states.share(Shared::new(state)),
            });
            changed = true;
        }
        changed
    }

    /// The cluster's agent reports on the current generation of all works. Where they are applied
    /// and available, their objects are healthy too.
    pub fn acknowledge(&mut self, cluster: &ClusterName, applied: &Seen, available: &Seen) {
        self.report(cluster, |_| (applied.clone(), available.clone(), Health::Healthy));
    }

    /// A simulated agent reports on the current generation of all works. Returns whether the report
    /// can be told from one of success.
    pub fn answer(&mut self, cluster: &ClusterName, answer: &Answer) -> bool {
        let mut probed = std::mem::take(&mut self.probed);
        let (mut works, mut shown) = (0, 0);
        self.report(cluster, |work| {
            let key = (work.name.clone(), work.rendered_from.clone());
            // A work of the snapshot that has not been reported on names its object.
            if let Health::Unknown { why } = &work.health
                && let Some((object, _)) = why.split_once(": ")
            {
                probed.entry(key.clone()).or_insert_with(|| object.into());
            }
            let object = probed.get(&key);
            works += 1;
            shown += usize::from(object.is_some());
            answer.seen(object.map(|object| &**object))
        });
        self.probed = probed;
        works == 0 || shown > 0 || !answer.needs_probe()
    }

    fn report(&mut self, cluster: &ClusterName, mut said: impl FnMut(&WorkState) -> (Seen, Seen, Health)) {
        if let Some(mut works) = self.observed.works.get_mut(cluster) {
            for work in works.iter_mut() {
                let (applied, available, health) = said(&work.state);
                let health = if work.health == Health::NotProbed { Health::NotProbed } else { health };
                let was_applied = match applied {
                    Seen::Yes => true,
                    Seen::No { .. } => false,
                    Seen::NotYet => work.was_applied,
                };
                let state =
                    WorkState { applied, was_applied, available, health, ..WorkState::clone(&work.state) };
                work.state = self.states.share(Shared::new(state));
            }
        }
    }
}
