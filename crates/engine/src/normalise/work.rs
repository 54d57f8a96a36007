//! A ManifestWork: what it was rendered from, and what the agent reports. Its manifests are reduced
//! to a digest.

use std::collections::BTreeMap;

use aviary_api::names::{annotations, conditions, labels};
use aviary_api::{Condition, ManifestWork};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::instance::owner;
use super::text;
use crate::configs::GroupResource;
use crate::hash::{self, Hash};
use crate::health::{self, ObjectMark, read::WorkHealth};
use crate::hooks;
use crate::name::{ClusterName, Text};
use crate::observed::{Seen, Work, WorkHashes, WorkState};
use crate::shared::Shared;

/// The cluster whose instance a work belongs to. The works of a hosted add-on are in the namespace
/// of the hosting cluster; a label names the cluster of their instance.
pub fn cluster_of_work(object: &ManifestWork) -> Option<ClusterName> {
    let labelled = object.metadata.labels.as_ref().and_then(|labels| labels.get(labels::ADDON_NAMESPACE));
    let labelled = labelled.and_then(|cluster| ClusterName::parse(cluster).ok());
    labelled.or_else(|| ClusterName::parse(object.metadata.namespace.as_deref()?).ok())
}

/// Reads a work, with the name of the add-on that it belongs to.
pub fn work(object: &ManifestWork) -> Option<(Text, Work)> {
    let metadata = &object.metadata;
    let labels = metadata.labels.as_ref()?;
    let addon = text(labels.get(labels::ADDON_NAME))?;
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
    let generation = metadata.generation.unwrap_or(0);
    let conditions = object.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
    let manifests = object.spec.manifests();
    let cluster = metadata.namespace.as_deref().unwrap_or_default();
    let is_hosted = cluster_of_work(object).is_some_and(|of| of.as_str() != cluster);
    let name = metadata.name.as_deref().unwrap_or_default();
    let WorkHealth { health, probed, intact, available_since } = match *name == hooks::work_name(&addon) {
        true => WorkHealth {
            health: hooks::read::progress(object),
            probed: true,
            intact: true,
            available_since: None,
        },
        false => health::read::of_work(object, &addon),
    };
    let state = WorkState {
        name: name.into(),
        hosted_on: is_hosted.then(|| cluster.into()),
        deleting: metadata.deletion_timestamp.is_some(),
        version: text(labels.get(labels::ADDON_VERSION).or_else(|| labels.get(labels::DRAFT_ADDON_VERSION))),
        rendered_from: text(annotation(annotations::RENDERED_FROM)),
        applied: seen(conditions, conditions::APPLIED, generation),
        was_applied: Condition::find(conditions, conditions::APPLIED).is_some_and(Condition::is_true),
        available: seen(conditions, conditions::AVAILABLE, generation),
        health,
        probed,
        objects: manifests.iter().filter_map(|manifest| ObjectMark::of(manifest, cluster)).collect(),
    };
    let work = Work {
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default().into(),
        generation,
        owner: owner(metadata, "ManagedClusterAddOn"),
        rendered_digest: text(annotation(annotations::RENDERED_DIGEST)),
        digest: intact.then(|| hash::digest_of_list(manifests).as_str().into()),
        hashes: work_hashes(metadata),
        available_since,
        state: Shared::new(state),
    };
    Some((addon, work))
}

/// The hashes of the configs in a work's annotations.
pub fn work_hashes(metadata: &ObjectMeta) -> Option<WorkHashes> {
    let annotation = |key: &&str| metadata.annotations.as_ref().and_then(|annotations| annotations.get(*key));
    hashes(annotations::ALL_CONFIG_SPEC_HASHES.iter().filter_map(annotation))
}

/// What the agent reports about the current generation. A report about another generation proves
/// nothing.
fn seen(conditions: &[Condition], kind: &str, generation: i64) -> Seen {
    match Condition::find(conditions, kind) {
        Some(condition) if condition.observed_generation != Some(generation) => Seen::NotYet,
        Some(condition) if condition.is_true() => Seen::Yes,
        Some(condition) if condition.is_false() => {
            let said = condition.message.as_deref().filter(|message| !message.is_empty());
            let why = said.or(condition.reason.as_deref()).unwrap_or_default();
            Seen::No { message: clipped(&format!("work reports {kind}=False: {why}")) }
        }
        _ => Seen::NotYet,
    }
}

/// An agent's message is copied into our statuses, so its length is limited.
fn clipped(message: &str) -> Text {
    const LONGEST: usize = 1024;
    let trimmed = message.trim_end_matches(": ");
    match trimmed.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", trimmed.get(..end).unwrap_or_default()).into(),
        None => trimmed.into(),
    }
}

/// The annotated hashes by kind. Annotations that contradict each other, or cannot be parsed, prove
/// nothing.
fn hashes<'a>(annotated: impl Iterator<Item = &'a String>) -> Option<WorkHashes> {
    let mut read: Option<WorkHashes> = None;
    for text in annotated {
        let map: BTreeMap<String, String> = serde_json::from_str(text.trim()).ok()?;
        let mut hashes: WorkHashes =
            map.iter().filter_map(|(key, hash)| Some((kind_of(key)?, Hash::recorded(hash)?))).collect();
        if hashes.len() != map.len() {
            return None;
        }
        hashes.sort();
        match &read {
            Some(known) if *known != hashes => return None,
            _ => read = Some(hashes),
        }
    }
    read
}

/// The kind in `<resource>.<group>/<namespace>/<name>`; cluster-scoped ones are written with an
/// empty namespace or with none.
fn kind_of(key: &str) -> Option<GroupResource> {
    let (kind, _) = key.split_once('/')?;
    match kind.split_once('.') {
        Some((resource, group)) => Some(GroupResource::new(group, resource)),
        None => Some(GroupResource::new("", kind)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use aviary_api::Guarded;
    use serde_json::{Value, json};

    use super::*;

    fn read(object: &Value) -> Work {
        let guarded: Guarded<ManifestWork> = serde_json::from_str(&object.to_string()).unwrap();
        work(&guarded.0.unwrap()).unwrap().1
    }

    /// A report on an earlier generation proves nothing about this one, and shows that something
    /// was applied.
    #[test]
    fn what_was_applied_at_an_earlier_generation_stays_visible() {
        let of = |status: &str, seen_at: i64| {
            let work = read(&json!({
                "metadata": {"name": "addon-a-deploy-0", "generation": 3, "labels": {labels::ADDON_NAME: "a"}},
                "spec": {},
                "status": {"conditions": [{"type": "Applied", "status": status, "observedGeneration": seen_at}]},
            }));
            (work.applied == Seen::Yes, work.was_applied)
        };
        assert_eq!(of("True", 3), (true, true));
        assert_eq!(of("True", 2), (false, true));
        assert_eq!(of("False", 2), (false, false));
    }

    #[test]
    fn a_work_belongs_to_the_cluster_of_its_label_or_else_of_its_namespace() {
        let of = |label: Option<&str>| {
            let mut labels = json!({labels::ADDON_NAME: "a"});
            if let Some(label) = label {
                labels[labels::ADDON_NAMESPACE] = json!(label);
            }
            let object = json!({"metadata": {"name": "w", "namespace": "h1", "labels": labels}, "spec": {}});
            let guarded: Guarded<ManifestWork> = serde_json::from_str(&object.to_string()).unwrap();
            let object = guarded.0.unwrap();
            let hosted_on = work(&object).unwrap().1.hosted_on.clone();
            (cluster_of_work(&object).unwrap().to_string(), hosted_on)
        };
        assert_eq!(of(Some("c1")), ("c1".to_owned(), Some("h1".into())));
        for label in [None, Some("h1"), Some(""), Some("No Cluster")] {
            assert_eq!(of(label), ("h1".to_owned(), None), "{label:?}");
        }
    }

    /// A newer OCM may add fields, values of enums and types: the evidence of the conditions stays.
    #[test]
    fn a_work_of_a_newer_ocm_still_tells_whether_it_is_applied() {
        let condition = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": 3, "surprise": [1], "reason": {"a": 1}});
        let plain = json!({
            "metadata": {"name": "addon-a-deploy-0", "generation": 3, "labels": {labels::ADDON_NAME: "a"}},
            "spec": {"workload": {"manifests": [{"kind": "ConfigMap"}]}},
            "status": {"conditions": [condition("Applied"), condition("Available")]},
        });
        let mut odd = plain.clone();
        odd["surprise"] = json!(1);
        odd["spec"]["surprise"] = json!({"a": [null]});
        odd["spec"]["executor"] = json!("everybody");
        odd["spec"]["deleteOption"] =
            json!({"propagationPolicy": {"new": 1}, "ttlSecondsAfterFinished": "soon"});
        odd["spec"]["manifestConfigs"] = json!([
            "all", {"resourceIdentifier": 1, "feedbackRules": {"new": 1}, "feedbackScrapeType": "Guess"},
            {"conditionRules": [{"type": "Telepathy", "celExpressions": [{"expression": "true"}]}]},
        ]);
        odd["status"]["resourceStatus"] = json!({"manifests": [
            1, {"resourceMeta": "agent", "statusFeedback": {"values": [{"name": 1, "fieldValue": "x"}]}, "conditions": 1},
        ]});
        for object in [plain.clone(), odd] {
            let found = read(&object);
            assert_eq!(found.state.applied, Seen::Yes);
            assert_eq!(found.state.available, Seen::Yes);
            assert_eq!(found.digest, read(&plain).digest);
        }
    }
}
