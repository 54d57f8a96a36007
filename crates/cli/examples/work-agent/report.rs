//! The status loop: reads the objects of a work, and reports `Available` and the feedback.

use anyhow::Result;
use aviary_api::ManifestWork;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::member::{Member, Place, is_missing, place_of};
use crate::paths;
use crate::rules::{condition, entry, list, set};

/// Returns the work as written, or nothing if its status is as it was.
pub(crate) async fn report(
    works: &Api<ManifestWork>,
    member: &Member,
    work: &ManifestWork,
) -> Result<Option<ManifestWork>> {
    let before = json!(work.status);
    let mut manifests = list(&before, "/resourceStatus/manifests");
    // The apply loop says which objects there are.
    if manifests.is_empty() || work.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    let mut missing = 0;
    for manifest in &mut manifests {
        let place = place_of(&manifest["resourceMeta"]);
        let object = read(member, &place).await?;
        missing += usize::from(object.is_none());
        let mut conditions = list(manifest, "/conditions");
        set(
            &mut conditions,
            match object {
                Some(_) => condition("Available", "True", "ResourceAvailable", "Resource is available"),
                None => condition("Available", "False", "ResourceNotAvailable", "Resource is not available"),
            },
        );
        let (values, synced) = feedback(work, &place, object.as_ref());
        if let Some(values) = values {
            manifest["statusFeedback"] = json!({"values": values});
        }
        set(&mut conditions, synced);
        manifest["conditions"] = conditions.into();
    }
    let mut conditions = list(&before, "/conditions");
    let mut available = match missing {
        0 => condition("Available", "True", "ResourcesAvailable", "All resources are available"),
        _ => condition(
            "Available",
            "False",
            "ResourcesNotAvailable",
            &format!("{missing} of {} resources are not available", manifests.len()),
        ),
    };
    available["observedGeneration"] = json!(work.metadata.generation);
    set(&mut conditions, available);
    let status = json!({"conditions": conditions, "resourceStatus": {"manifests": manifests}});
    if status["conditions"] == before["conditions"] && status["resourceStatus"] == before["resourceStatus"] {
        return Ok(None);
    }
    let patch = json!({"metadata": {"resourceVersion": work.resource_version()}, "status": status});
    let params = PatchParams::default();
    Ok(Some(works.patch_status(&work.name_any(), &params, &Patch::Merge(patch)).await?))
}

async fn read(member: &Member, place: &Place) -> Result<Option<Value>> {
    if place.resource.is_empty() {
        return Ok(None);
    }
    match member.api_at(place).get_opt(&place.name).await {
        Ok(found) => Ok(found.map(|found| json!(found))),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The requested values of one reading, and the condition that reports on it.
fn feedback(work: &ManifestWork, place: &Place, object: Option<&Value>) -> (Option<Vec<Value>>, Value) {
    let synced = |status: &str, reason: &str, message: &str| {
        condition("StatusFeedbackSynced", status, reason, message)
    };
    let rules = entry(work, place, |entry| !entry.feedback_rules.is_empty());
    let (Some(rules), Some(object)) = (rules, object) else {
        return (None, synced("True", "NoStatusFeedbackSynced", ""));
    };
    let mut values = Vec::new();
    let mut faults = Vec::new();
    for rule in &rules.feedback_rules {
        let asked: Vec<(&str, &str)> = match rule.type_.as_str() {
            "WellKnownStatus" => match paths::well_known(&place.group, &place.kind) {
                Some(paths) => paths.to_vec(),
                None => {
                    faults.push(format!("no well-known status of {}", place.kind));
                    Vec::new()
                }
            },
            _ => rule.json_paths.iter().map(|path| (path.name.as_str(), path.path.as_str())).collect(),
        };
        for (name, path) in asked {
            match paths::value(object, path) {
                Ok(Some(value)) => values.push(json!({"name": name, "fieldValue": value})),
                Ok(None) => {}
                Err(fault) => faults.push(format!("{name}: {fault}")),
            }
        }
    }
    match faults.is_empty() {
        true => (Some(values), synced("True", "StatusFeedbackSynced", "")),
        false => {
            let message = format!("Sync status feedback failed with error {}", faults.join("; "));
            (Some(values), synced("False", "StatusFeedbackSyncFailed", &message))
        }
    }
}
