//! S26 and S27: who stays on what it has.

use super::{Checker, governor, includes, is_installed, is_rolling};
use crate::clock::RevisionClock;
use crate::configs::{ConfigRef, GroupResource};
use crate::name::{ClusterName, PlacementName};
use crate::observed::{InstallPlacement, Instance, Lookup, Observed};

impl Checker<'_> {
    /// S26: an override whose object is missing is not replaced by what the placement says.
    pub(super) fn keeps_missing_override(&mut self, old: &Instance, new: &Instance) {
        let is_missing =
            |config: &&ConfigRef| !matches!(self.before.configs.get(*config), Some(Lookup::Found(_)));
        let is_of = |instance: &Instance, config: &ConfigRef| {
            instance.status.told().any(|pin| *pin.config == *config)
        };
        let usable = |config: &&ConfigRef| {
            is_supported(self.before, new, config) && is_within_reach(self.before, new, config)
        };
        let missing = new.overrides.iter().filter(usable).filter(is_missing);
        let lost: Vec<&ConfigRef> =
            missing.filter(|config| is_of(old, config) && !is_of(new, config)).collect();
        for config in lost {
            self.broken("S26", format!("{} leaves its override {config}, which is missing", new.cluster));
        }
    }

    /// S27: a cluster that joined with its instance stays on what it has while the gate is closed.
    pub(super) fn joined_behind_gate(&mut self, cluster: &ClusterName, old: &Instance) {
        let Some(spec) = governor(self.before, cluster) else { return };
        let mut canaries = spec.rollout.canaries();
        let inside = canaries.any(|canary| includes(self.before.placements.get(canary), cluster));
        let is_closed = self
            .recorded(&spec.name)
            .is_some_and(|recorded| recorded.desired.is_some() && recorded.desired != recorded.known_good);
        if is_closed && !inside && is_installed(self.before, old) && has_joined(self.before, spec, old) {
            self.broken("S27", format!("{cluster} joined {} and moves behind its closed gate", spec.name));
        }
    }
}

fn is_supported(observed: &Observed, instance: &Instance, config: &ConfigRef) -> bool {
    let ours =
        [GroupResource::hub_configs(), GroupResource::deployment_configs(), GroupResource::templates()];
    match &observed.addon.supported {
        Some(listed) => listed.contains(&config.kind),
        None if observed.renders_templates() => ours.contains(&&config.kind),
        None => instance.status.supported.contains(&config.kind),
    }
}

/// Whether the user of an instance may read this config through the manager.
pub(super) fn is_within_reach(observed: &Observed, instance: &Instance, config: &ConfigRef) -> bool {
    config.namespace.as_deref().is_none_or(|namespace| {
        let mut referenced = observed.addon.referenced_configs();
        namespace == instance.cluster.as_str()
            || observed.options.config_namespaces.iter().any(|open| **open == *namespace)
            || referenced.any(|config| config.namespace.as_deref() == Some(namespace))
    })
}

/// Whether it was last moved by another placement, and this one has a gate. While this one moves
/// everybody to its known good revision, the other must still be listed: this one may have had its
/// name.
pub(super) fn has_joined(observed: &Observed, spec: &InstallPlacement, instance: &Instance) -> bool {
    let came_from = RevisionClock::carried_by(&instance.status).and_then(|clock| clock.placement);
    let is_listed = |placement: &PlacementName| {
        observed.addon.strategy.placements().iter().any(|other| other.name == *placement)
    };
    spec.rollout.canary.is_some()
        && came_from.is_some_and(|placement| {
            placement != spec.name && (is_listed(&placement) || !is_rolling(observed, spec))
        })
}
