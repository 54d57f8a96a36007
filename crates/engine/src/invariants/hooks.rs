//! S25: pre-delete hooks run before anything of an instance is removed.

use serde_json::Value;

use super::Checker;
use crate::name::ClusterName;
use crate::observed::{Instance, Observed, Seen};

/// OCM's names, spelt out: this shares nothing with what it checks.
const FINALIZER: &str = "addon.open-cluster-management.io/addon-pre-delete";
const LABEL: &str = "open-cluster-management.io/addon-pre-delete";

impl Checker<'_> {
    /// S25: the finalizer is there before anything is deployed that hooks have to clean up.
    pub(super) fn guarded_before_deployed(&mut self, cluster: &ClusterName) {
        let Some(instance) = self.before.instances.get(cluster) else { return };
        if has_hooks(self.before, instance) && !is_guarded(instance) {
            self.broken(
                "S25",
                format!("a work with hooks to follow is written for {cluster} without a finalizer"),
            );
        }
    }

    /// S25: the finalizer goes only when the hooks have completed, or cannot any more. Whether
    /// their deadline has passed only a clock could tell: that they have begun is what can be
    /// checked.
    pub(super) fn guard(&mut self, cluster: &ClusterName, after: &Observed) {
        self.adopted(cluster, after);
        let Some(old) = self.before.instances.get(cluster).filter(|old| is_guarded(old)) else { return };
        if after.instances.get(cluster).is_some_and(|new| new.uid == old.uid && is_guarded(new)) {
            return;
        }
        if !old.deleting {
            self.broken("S25", format!("the instance on {cluster} loses its finalizer while it is in use"));
        }
        let begun = old.status.conditions.iter().any(|one| one.kind == "HookManifestCompleted");
        let gone = !self.before.clusters.contains_key(cluster);
        if has_hooks(self.before, old) && !begun && !gone && !has_completed(self.before, cluster) {
            self.broken("S25", format!("the instance on {cluster} goes, and its hooks have never begun"));
        }
    }
}

fn is_guarded(instance: &Instance) -> bool {
    instance.finalizers.iter().any(|one| **one == *FINALIZER)
}

fn has_completed(observed: &Observed, cluster: &ClusterName) -> bool {
    let name = format!("addon-{}-pre-delete", observed.addon.name);
    observed.works.get(cluster).is_some_and(|works| {
        works
            .iter()
            .any(|work| *work.name == *name && work.available == Seen::Yes && work.health.why().is_none())
    })
}

fn has_hooks(observed: &Observed, instance: &Instance) -> bool {
    let manifests = instance.status.told().filter_map(|pin| {
        let content = observed.content(pin).filter(|_| *pin.config.kind.resource == *"addontemplates")?;
        content.pointer("/spec/agentSpec/workload/manifests")?.as_array()
    });
    manifests.flatten().any(|manifest| {
        let carries = |map: &str, key: &str| manifest["metadata"][map].get(key).is_some();
        matches!(manifest.get("kind").and_then(Value::as_str), Some("Job" | "Pod"))
            && (carries("annotations", FINALIZER) || carries("labels", LABEL))
    })
}
