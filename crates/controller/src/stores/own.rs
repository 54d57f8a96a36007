//! Policies and records: Aviary's own kinds. A hub may lack them, so they are found and watched
//! like kinds of config.

use std::sync::Arc;

use aviary_engine::configs::GroupResource;
use aviary_engine::name::Text;
use aviary_engine::observed::{AddOn, Record};
use aviary_engine::policy::{self, Policy, PolicySummary};
use aviary_engine::problem::Problem;

use crate::progress::Booked;
use crate::seen::{Change, HeardSummary, Key, Own, SeenConfig, SummarisedPolicy, Version};
use crate::stores::{AddOnEntry, KindState, Relist, Stores};

/// The status of one policy, as this manager writes it.
#[derive(Debug, Default)]
pub(super) struct Summarising {
    is_under_way: bool,
    /// Something has changed while a write was under way.
    is_overtaken: bool,
    /// The last summary that the hub has taken.
    heard: Option<HeardSummary>,
}

pub(super) fn is_own(kind: &GroupResource) -> bool {
    kind == GroupResource::policies() || kind == GroupResource::records()
}

impl Stores {
    /// Takes in a change of a policy or a record.
    pub(super) fn own(&mut self, kind: &GroupResource, change: Change<SeenConfig>) -> Booked<SeenConfig> {
        let of = Relist::Config(kind.clone());
        let key = |name: &Text| Key { namespace: "".into(), name: name.clone() };
        if kind == GroupResource::policies() {
            let all = |stores: &Self| stores.policies.keys().map(key).collect();
            return self.book(of, change, Self::policy_version, |_, _| None, all);
        }
        let all = |stores: &Self| {
            let there = stores.addons.iter().filter(|(_, entry)| entry.record.is_some());
            there.map(|(name, _)| key(name)).collect()
        };
        self.book(of, change, Self::record_version, |key, _| Some(key.name.clone()), all)
    }

    fn policy_version(&self, key: &Key) -> Option<Version> {
        let policy = self.policies.get(&key.name)?;
        Some(Version::new(policy.uid.clone(), &policy.resource_version))
    }

    fn record_version(&self, key: &Key) -> Option<Version> {
        let record = self.addons.get(&key.name)?.record.as_ref()?;
        Some(Version::new(record.uid.clone(), &record.resource_version))
    }

    pub(super) fn put_own(&mut self, name: &Text, own: Own) {
        match own {
            Own::Policy(policy) => {
                let before = self.policies.insert(name.clone(), Arc::new(*policy));
                self.policies_changed = true;
                let after = self.policies.get(name).cloned();
                self.mark_covered([before, after].into_iter().flatten());
            }
            Own::Record(record) => {
                let entry = self.addons.entry(name.clone()).or_default();
                let before = entry.record.replace(*record);
                if let (Some(before), Some(after)) = (before, &entry.record) {
                    entry.echoes.follow(&before, after);
                }
                self.mark(name);
            }
        }
    }

    pub(super) fn drop_own(&mut self, kind: &GroupResource, name: &Text) {
        if kind == GroupResource::policies() {
            let gone = self.policies.remove(name);
            self.summarising.remove(name);
            self.mark_covered(gone.into_iter());
        } else if let Some(entry) = self.addons.get_mut(name) {
            entry.record = None;
            self.mark(name);
        }
    }

    /// All of a kind are gone with it.
    pub(super) fn drop_all_own(&mut self, kind: &GroupResource) {
        if kind == GroupResource::policies() {
            self.policies.clear();
            self.summarising.clear();
        } else if kind == GroupResource::records() {
            self.addons.values_mut().for_each(|entry| entry.record = None);
        }
    }

    fn mark_covered(&mut self, policies: impl Iterator<Item = Arc<Policy>>) {
        for policy in policies {
            let covered = self.addons.iter().filter(|(_, entry)| policy.covers(&entry.addon));
            self.dirty.extend(covered.map(|(name, _)| name.clone()));
        }
    }

    /// Lets the policies have their say in the rollouts of an add-on.
    pub(super) fn govern(&self, addon: &mut AddOn, problems: &mut Vec<Problem>) {
        match self.kinds.get(GroupResource::policies()) {
            Some(KindState::Forbidden { .. }) => problems.extend(policy::hold_all(addon)),
            _ => problems.extend(policy::apply(addon, self.policies.values())),
        }
    }

    /// What is remembered of an add-on; `None` where the hub has no such kind.
    pub(super) fn record_of(&self, entry: &AddOnEntry) -> Option<Record> {
        match self.kinds.get(GroupResource::records()) {
            Some(KindState::Watched { .. } | KindState::Listing { .. }) => {
                let is_its_own = |record: &&Record| record.owner.as_ref() == Some(&entry.addon.uid);
                Some(entry.record.as_ref().filter(is_its_own).cloned().unwrap_or_default())
            }
            _ => None,
        }
    }

    /// The policies whose status does not say what they apply to. Each is the caller's to write,
    /// and to report as summarised.
    pub(crate) fn stale_policies(&mut self) -> Vec<(Arc<Policy>, PolicySummary)> {
        if !std::mem::take(&mut self.policies_changed) {
            return Vec::new();
        }
        let mut stale = Vec::new();
        for (name, policy) in &self.policies {
            let addons = self.addons.values().filter(|entry| entry.present).map(|entry| &entry.addon);
            let summary = policy::summary(policy, addons);
            if policy.summary.as_ref() == Some(&summary) {
                continue;
            }
            let state = self.summarising.entry(name.clone()).or_default();
            let is_answer = |heard: &HeardSummary| {
                heard.uid == policy.uid && heard.sent == summary && heard.shown == policy.summary
            };
            if state.is_under_way {
                state.is_overtaken = true;
            } else if !state.heard.as_ref().is_some_and(is_answer) {
                state.is_under_way = true;
                stale.push((Arc::clone(policy), summary));
            }
        }
        stale
    }

    /// A write that failed is not repeated: the next change of a policy or an add-on tries again.
    pub(super) fn summarised(&mut self, summarised: SummarisedPolicy) {
        let SummarisedPolicy { policy, heard } = summarised;
        if let Some(state) = self.summarising.get_mut(&policy) {
            state.is_under_way = false;
            state.heard = heard.or_else(|| state.heard.take());
            self.policies_changed |= std::mem::take(&mut state.is_overtaken);
        }
    }
}
