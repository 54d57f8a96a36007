//! S24: a take-over changes no work whose hashes already agree.

use serde_json::Value;

use super::{Checker, told_except};
use crate::name::ClusterName;
use crate::observed::{Instance, Observed, Work};

/// OCM's names, spelt out: this shares nothing with what it checks.
const HOOK: &str = "addon.open-cluster-management.io/addon-pre-delete";
const HOOK_LABEL: &str = "open-cluster-management.io/addon-pre-delete";

impl Checker<'_> {
    /// S6: only an instance that nobody but OCM's manager has written gets the marker, without
    /// which it is never deleted.
    pub(super) fn adopted(&mut self, cluster: &ClusterName, after: &Observed) {
        let (Some(old), Some(new)) = (self.before.instances.get(cluster), after.instances.get(cluster))
        else {
            return;
        };
        if old.marker.is_none() && new.marker.is_some() && !old.made_by_ocm {
            self.broken("S6", format!("the instance of a user on {cluster} counts as the strategy's"));
        }
    }

    /// S24: a work that another manager rendered for this instance from what it is assigned stays
    /// as it is, unless objects of the template are missing or somebody asked for probes.
    pub(super) fn accepted(&mut self, cluster: &ClusterName, name: &str) {
        let Some(instance) = self.before.instances.get(cluster) else { return };
        let prefix = format!("addon-{}-deploy-", self.before.addon.name);
        let works = self.before.works.get(cluster).map_or(&[][..], |works| works.as_slice());
        let own: Vec<&Work> = works
            .iter()
            .filter(|work| work.name.starts_with(&prefix) && work.owner.as_ref() == Some(&instance.uid))
            .collect();
        let agrees = |work: &Work| {
            let mut told = told_except(instance, &Default::default());
            told.sort();
            work.rendered_from.is_none()
                && !work.probed
                && !work.deleting
                && work.hashes.as_ref().is_some_and(|hashes| **hashes == told)
        };
        let objects: usize = own.iter().map(|work| work.objects.len()).sum();
        let is_settled = own.iter().all(|work| agrees(work)) && objects >= deployed(self.before, instance);
        if own.iter().any(|work| *work.name == *name) && is_settled && !self.before.addon.reprobe {
            self.broken("S24", format!("work {name} on {cluster} has the assigned hashes and is changed"));
        }
    }
}

/// How many objects the assigned template deploys.
fn deployed(observed: &Observed, instance: &Instance) -> usize {
    let template = instance.status.told().find(|pin| *pin.config.kind.resource == *"addontemplates");
    let manifests = template.into_iter().filter_map(|pin| {
        let content = observed.content(pin)?;
        content.pointer("/spec/agentSpec/workload/manifests")?.as_array()
    });
    let is_hook = |manifest: &&Value| {
        let carries = |map: &str, key: &str| manifest["metadata"][map].get(key).is_some();
        matches!(manifest.get("kind").and_then(Value::as_str), Some("Job" | "Pod"))
            && (carries("annotations", HOOK) || carries("labels", HOOK_LABEL))
    };
    manifests.flatten().filter(|manifest| !is_hook(manifest)).count()
}
