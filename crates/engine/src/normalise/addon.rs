//! A ClusterManagementAddOn in all its dialects.

use std::collections::BTreeMap;

use aviary_api::ClusterManagementAddOn;
use aviary_api::addon::{
    AddOnConfig, ClusterManagementAddOnSpec, ClusterManagementAddOnStatus, DefaultConfigReference,
    PlacementStrategy, RolloutAttempt, RolloutCounts,
};
use aviary_api::names::annotations;

use super::rollout_strategy::rollout_strategy;
use super::{condition, config_refs, pin, text, unresolved_config, version};
use crate::attempts::{Attempt, AttemptOutcome};
use crate::configs::{ConfigRef, GroupResource, Pin, Revision};
use crate::hash::Hash;
use crate::name::PlacementName;
use crate::observed::{AddOn, AddOnStatus, InstallPlacement, InstallRule, Recorded, RolloutSummary};
use crate::problem::Problem;
use crate::selector::Selector;
use crate::tally::ClusterTally;

/// Parses an add-on; its unusable parts are returned as problems.
pub fn addon(object: &ClusterManagementAddOn) -> (AddOn, Vec<Problem>) {
    let mut problems = Vec::new();
    let metadata = &object.metadata;
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
    let spec = &object.spec;
    if spec.add_on_configuration.as_ref().is_some_and(|coordinates| *coordinates != Default::default()) {
        let field = "spec.addOnConfiguration";
        problems.push(Problem::FieldDeprecated {
            field,
            instead: "spec.supportedConfigs and spec.defaultConfigs",
        });
    }
    let addon = AddOn {
        name: metadata.name.as_deref().unwrap_or_default().into(),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        generation: metadata.generation.unwrap_or(0),
        labels: metadata.labels.clone().unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        self_managed: annotation(annotations::LIFECYCLE)
            .is_some_and(|value| value == annotations::LIFECYCLE_SELF),
        allow_deletions: annotation(annotations::ALLOW_DELETIONS).and_then(|count| count.trim().parse().ok()),
        reprobe: annotation(annotations::REPROBE).is_some_and(|value| !value.trim().is_empty()),
        defaults: defaults(spec, &mut problems),
        supported: supported(spec),
        strategy: install_strategy(spec, &mut problems),
        status: object.status.as_ref().map(status).unwrap_or_default(),
    };
    (addon, problems)
}

/// `defaultConfigs`, after the `defaultConfig` of each supported kind.
fn defaults(spec: &ClusterManagementAddOnSpec, problems: &mut Vec<Problem>) -> Vec<ConfigRef> {
    let of_kinds: Vec<AddOnConfig> = spec
        .supported_configs
        .iter()
        .filter_map(|supported| {
            let default = supported.default_config.as_ref().filter(|default| !default.name.is_empty())?;
            Some(AddOnConfig {
                group: supported.group.clone(),
                resource: supported.resource.clone(),
                namespace: default.namespace.clone(),
                name: default.name.clone(),
            })
        })
        .collect();
    config_refs(of_kinds.iter().chain(&spec.default_configs), problems)
}

fn supported(spec: &ClusterManagementAddOnSpec) -> Option<Vec<GroupResource>> {
    let kinds = spec.supported_configs.iter().map(|kind| GroupResource::new(&kind.group, &kind.resource));
    (!spec.supported_configs.is_empty()).then(|| kinds.collect())
}

fn install_strategy(spec: &ClusterManagementAddOnSpec, problems: &mut Vec<Problem>) -> InstallRule {
    let Some(strategy) = &spec.install_strategy else { return InstallRule::Manual };
    let mut unusable = |problem: Problem| {
        problems.push(problem.clone());
        InstallRule::Unusable(problem)
    };
    match strategy.type_.as_deref().unwrap_or("Manual") {
        "Manual" | "" => InstallRule::Manual,
        "ClusterLabelSelector" => match &strategy.label_selector {
            // An empty selector selects everything in Kubernetes; a missing one is a mistake.
            None => unusable(Problem::LabelSelectorInvalid { why: "it is missing".to_owned() }),
            Some(selector) => match Selector::parse(selector) {
                Ok(selector) => InstallRule::Labels(selector),
                Err(why) => unusable(Problem::LabelSelectorInvalid { why }),
            },
        },
        "Placements" => InstallRule::Placements(placements(&strategy.placements, problems)),
        other => unusable(Problem::InstallTypeUnknown { given: other.into() }),
    }
}

fn placements(listed: &[PlacementStrategy], problems: &mut Vec<Problem>) -> Vec<InstallPlacement> {
    let mut specs: Vec<InstallPlacement> = Vec::with_capacity(listed.len());
    for entry in listed {
        let spec = placement(entry, problems);
        if let Some(at) = specs.iter().position(|known| known.name == spec.name) {
            problems.push(Problem::PlacementListedTwice { placement: spec.name.clone() });
            specs.remove(at);
        }
        specs.push(spec);
    }
    specs
}

fn placement(entry: &PlacementStrategy, problems: &mut Vec<Problem>) -> InstallPlacement {
    let name = PlacementName::new(&entry.namespace, &entry.name);
    let template = entry.addon_template.clone().unwrap_or_default();
    // `addonTemplate.configs` and `configs` mean the same. If both are given, `configs` wins.
    let mut configs = config_refs(&template.configs, problems);
    let own = config_refs(&entry.configs, problems);
    configs.retain(|known| own.iter().all(|config| config.kind != known.kind));
    configs.extend(own);
    let (rollout, faults) = rollout_strategy(&name, entry.rollout_strategy.as_ref());
    problems.extend(faults.iter().cloned());
    InstallPlacement {
        name,
        configs,
        version: version(template.desired_version.as_ref(), template.install_version.as_ref(), problems),
        install_namespace: text(template.install_namespace.as_ref()),
        rollout,
        fault: faults.into_iter().next(),
        stated: None,
    }
}

/// The recorded state. OCM's list has names with its hashes, so it is preferred if it exists.
fn status(status: &ClusterManagementAddOnStatus) -> AddOnStatus {
    let mut placements: BTreeMap<PlacementName, Recorded> = BTreeMap::new();
    for progression in &status.install_progression {
        let mut revisions: [Vec<Pin>; 3] = Default::default();
        for reference in &progression.config_references {
            let kind = GroupResource::new(&reference.group, &reference.resource);
            let named = ConfigRef {
                kind: kind.clone(),
                namespace: text(reference.namespace.as_ref()),
                name: reference.name.as_str().into(),
            };
            let flat = [
                &reference.desired_config_spec_hash,
                &reference.last_known_good_config_spec_hash,
                &reference.last_applied_config_spec_hash,
            ];
            for (pins, hash) in revisions.iter_mut().zip(flat) {
                pins.extend(pin(&kind, &named, None, hash.as_ref()));
            }
        }
        let name = PlacementName::new(&progression.namespace, &progression.name);
        placements.insert(name, recorded(revisions, &progression.conditions));
    }
    for progression in &status.install_progressions {
        let mut revisions: [Vec<Pin>; 3] = Default::default();
        let mut unresolved = Vec::new();
        for reference in &progression.config_references {
            let kind = GroupResource::new(&reference.group, &reference.resource);
            let named = ConfigRef { kind: kind.clone(), namespace: None, name: "".into() };
            unresolved.extend(unresolved_config(&kind, reference.desired_config.as_ref()));
            let objects = [
                &reference.desired_config,
                &reference.last_known_good_config,
                &reference.last_applied_config,
            ];
            for (pins, object) in revisions.iter_mut().zip(objects) {
                pins.extend(pin(&kind, &named, object.as_ref(), None));
            }
        }
        let name = PlacementName::new(&progression.namespace, &progression.name);
        placements.insert(name, Recorded { unresolved, ..recorded(revisions, &progression.conditions) });
    }
    AddOnStatus {
        observed_generation: status.observed_generation,
        placements,
        supported_versions: status.supported_versions.iter().map(|version| version.as_str().into()).collect(),
        default_version: text(status.default_version.as_ref()),
        rollout: status.rollout.as_ref().map(rollout),
        defaults: status.ocm_default_references.iter().filter_map(default_of).collect(),
        attempts: attempts(&status.attempts),
        conditions: status.conditions.iter().map(condition).collect(),
    }
}

/// The rollouts that a status lists as not completed. What cannot be read is left out.
pub(super) fn attempts(listed: &[RolloutAttempt]) -> Vec<Attempt> {
    const MOST: usize = 1000;
    let read = listed.iter().take(MOST).filter_map(|one| {
        Some(Attempt {
            placement: PlacementName::new(&one.namespace, &one.name),
            version: one.version.as_str().into(),
            outcome: AttemptOutcome::parse(&one.outcome)?,
            message: one.message.as_str().into(),
            started: one.started_at.parse().ok()?,
            ended: one.ended_at.parse().ok()?,
        })
    });
    read.collect()
}

/// A default config as OCM's status has it.
fn default_of(reference: &DefaultConfigReference) -> Option<(ConfigRef, Option<Hash>)> {
    let kind = GroupResource::new(&reference.group, &reference.resource);
    let object = reference.desired_config.as_ref()?;
    let hash = Hash::recorded(object.spec_hash.as_deref().unwrap_or_default());
    let namespace = text(object.namespace.as_ref());
    Some((ConfigRef { kind, namespace, name: text(Some(&object.name))? }, hash))
}

fn rollout(written: &RolloutCounts) -> RolloutSummary {
    let RolloutCounts { version, progress: _, clusters, settled, in_flight, failed, waiting, leaving } =
        written;
    let count = |count: &i64| usize::try_from(*count).unwrap_or(0);
    let tally = ClusterTally {
        clusters: count(clusters),
        settled: count(settled),
        in_flight: count(in_flight),
        failed: count(failed),
        waiting: count(waiting),
        leaving: count(leaving),
    };
    RolloutSummary { version: version.as_str().into(), tally }
}

fn recorded(revisions: [Vec<Pin>; 3], conditions: &[aviary_api::Condition]) -> Recorded {
    let [desired, known_good, applied] =
        revisions.map(|pins| (!pins.is_empty()).then(|| Revision::new(pins)));
    let conditions = conditions.iter().map(condition).collect();
    Recorded { desired, known_good, applied, unresolved: Vec::new(), conditions }
}
