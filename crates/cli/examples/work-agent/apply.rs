//! The apply loop: writes the objects of a work, deletes what left it, and reports `Applied`.

use anyhow::{Context as _, Result, anyhow};
use aviary_api::ManifestWork;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

use crate::member::{Member, Place, Record, meta, place_of};
use crate::rules::{condition, entry, is_for, list, set};

const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// Returns the work with its new status, and whether everything was applied.
pub(crate) async fn apply(
    works: &Api<ManifestWork>,
    member: &Member,
    work: &ManifestWork,
) -> Result<(ManifestWork, bool)> {
    let name = work.name_any();
    let work = &with_finalizer(works, work).await?;
    let mut record = member.record(&name).await?;
    let mut outcomes = Vec::new();
    for manifest in work.spec.manifests() {
        outcomes.push(one(member, work, manifest, &record).await);
    }
    let faults: Vec<String> = outcomes.iter().filter_map(|(_, outcome)| outcome.clone().err()).collect();
    let applied: Vec<Place> = outcomes.iter().filter_map(|(place, _)| place.clone()).collect();
    let mut complete = faults.is_empty();
    if complete {
        let mut kept = applied.clone();
        for place in record.applied.iter().filter(|place| !applied.contains(place)) {
            if !member.release(place, &record).await? {
                kept.push(place.clone());
                complete = false;
            }
        }
        record.applied = kept;
    } else {
        let new = applied.into_iter().filter(|place| !record.applied.contains(place)).collect::<Vec<_>>();
        record.applied.extend(new);
    }
    member.keep_record(&record).await?;
    let written = report(works, work, &outcomes, &faults).await?;
    Ok((written, complete))
}

async fn with_finalizer(works: &Api<ManifestWork>, work: &ManifestWork) -> Result<ManifestWork> {
    if work.finalizers().iter().any(|one| one == FINALIZER) {
        return Ok(work.clone());
    }
    let all: Vec<&str> = work.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
    let patch = json!({"metadata": {"finalizers": all, "resourceVersion": work.resource_version()}});
    Ok(works.patch(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?)
}

type Outcome = (Option<Place>, Result<(), String>);

async fn one(member: &Member, work: &ManifestWork, manifest: &Value, record: &Record) -> Outcome {
    let (api, place) = match member.api_of(manifest).await {
        Ok(found) => found,
        Err(error) => return (None, Err(format!("{error:#}"))),
    };
    let written = write(&api, &place, work, manifest, record).await;
    (Some(place), written.map_err(|error| format!("{error:#}")))
}

async fn write(
    api: &Api<DynamicObject>,
    place: &Place,
    work: &ManifestWork,
    manifest: &Value,
    record: &Record,
) -> Result<()> {
    let strategy = entry(work, place, |entry| entry.update_strategy.is_some());
    let strategy = strategy.and_then(|entry| entry.update_strategy.as_ref());
    let mut object = manifest.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if !is_orphaned(work, place) {
        object["metadata"]["ownerReferences"] = json!([record.owner()]);
    }
    match strategy.and_then(|strategy| strategy.type_.as_deref()).unwrap_or("Update") {
        "ReadOnly" => Ok(()),
        "ServerSideApply" => {
            let settings =
                strategy.and_then(|strategy| strategy.server_side_apply.clone()).unwrap_or_default();
            let manager = settings.field_manager.unwrap_or_else(|| "work-agent".to_owned());
            let params =
                PatchParams { force: settings.force.unwrap_or(false), ..PatchParams::apply(&manager) };
            api.patch(&place.name, &params, &Patch::Apply(&object)).await.context("server-side apply")?;
            Ok(())
        }
        kind => create_or_update(api, place, object, kind == "CreateOnly").await,
    }
}

async fn create_or_update(
    api: &Api<DynamicObject>,
    place: &Place,
    mut object: Value,
    only_create: bool,
) -> Result<()> {
    let Some(found) = api.get_opt(&place.name).await? else {
        api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        return Ok(());
    };
    let found = serde_json::to_value(found)?;
    merge_metadata(&mut object, &found);
    if only_create {
        // The object becomes the work's own, and is not changed otherwise.
        let owners = json!({"metadata": {"ownerReferences": object["metadata"]["ownerReferences"]}});
        if owners["metadata"]["ownerReferences"] != found["metadata"]["ownerReferences"] {
            api.patch(&place.name, &PatchParams::default(), &Patch::Merge(owners)).await?;
        }
        return Ok(());
    }
    let object: DynamicObject = serde_json::from_value(object)?;
    api.replace(&place.name, &PostParams::default(), &object).await?;
    Ok(())
}

/// Keeps labels, annotations, finalizers and owners that others have set.
fn merge_metadata(object: &mut Value, found: &Value) {
    for field in ["labels", "annotations"] {
        let mut all = found["metadata"][field].as_object().cloned().unwrap_or_default();
        let wanted = object["metadata"][field].as_object().cloned().unwrap_or_else(Map::new);
        all.extend(wanted);
        object["metadata"][field] = Value::Object(all);
    }
    let mut owners = list(found, "/metadata/ownerReferences");
    for owner in list(object, "/metadata/ownerReferences") {
        if !owners.iter().any(|one| one["uid"] == owner["uid"]) {
            owners.push(owner);
        }
    }
    object["metadata"]["ownerReferences"] = owners.into();
    object["metadata"]["finalizers"] = found["metadata"]["finalizers"].clone();
    object["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
    object["metadata"]["uid"] = found["metadata"]["uid"].clone();
}

fn is_orphaned(work: &ManifestWork, place: &Place) -> bool {
    let Some(option) = &work.spec.delete_option else { return false };
    match option.propagation_policy.as_deref() {
        Some("Orphan") => true,
        Some("SelectivelyOrphan") => option
            .selectively_orphans
            .iter()
            .flat_map(|orphans| &orphans.orphaning_rules)
            .any(|rule| is_for(rule, place)),
        _ => false,
    }
}

async fn report(
    works: &Api<ManifestWork>,
    work: &ManifestWork,
    outcomes: &[Outcome],
    faults: &[String],
) -> Result<ManifestWork> {
    let before = json!(work.status);
    let known = list(&before, "/resourceStatus/manifests");
    let manifests: Vec<Value> = outcomes
        .iter()
        .zip(work.spec.manifests())
        .enumerate()
        .map(|(at, ((place, outcome), manifest))| {
            let place = place.clone().unwrap_or_else(|| unknown(manifest));
            let old = known.iter().find(|old| place_of(&old["resourceMeta"]) == place);
            let mut conditions = old.map(|old| list(old, "/conditions")).unwrap_or_default();
            set(
                &mut conditions,
                match outcome {
                    Ok(()) => {
                        condition("Applied", "True", "AppliedManifestComplete", "Apply manifest complete")
                    }
                    Err(fault) => condition(
                        "Applied",
                        "False",
                        "AppliedManifestFailed",
                        &format!("Failed to apply manifest: {fault}"),
                    ),
                },
            );
            let mut resource = meta(&place);
            resource["ordinal"] = at.into();
            let feedback = old.map_or_else(|| json!({}), |old| old["statusFeedback"].clone());
            json!({"resourceMeta": resource, "statusFeedback": feedback, "conditions": conditions})
        })
        .collect();
    let mut conditions = list(&before, "/conditions");
    let mut applied = match faults {
        [] => condition("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete"),
        faults => condition(
            "Applied",
            "False",
            "AppliedManifestWorkFailed",
            &format!("Failed to apply manifest work: {}", faults.join("; ")),
        ),
    };
    applied["observedGeneration"] = json!(work.metadata.generation);
    set(&mut conditions, applied);
    let patch = json!({
        "metadata": {"resourceVersion": work.resource_version()},
        "status": {"conditions": conditions, "resourceStatus": {"manifests": manifests}},
    });
    works
        .patch_status(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(|error| anyhow!("status: {error}"))
}

/// The place of an object whose kind the cluster does not have.
fn unknown(manifest: &Value) -> Place {
    let text = |pointer: &str| crate::member::text(manifest, pointer).to_owned();
    let (group, version) = match text("/apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("/apiVersion")),
    };
    Place {
        group,
        version,
        kind: text("/kind"),
        resource: String::new(),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}

/// Deletes the objects of a work that is being deleted, and then lets it go. Returns whether it
/// did.
pub(crate) async fn remove(works: &Api<ManifestWork>, member: &Member, work: &ManifestWork) -> Result<bool> {
    if !work.finalizers().iter().any(|one| one == FINALIZER) {
        return Ok(true);
    }
    let record = member.record(&work.name_any()).await?;
    let mut gone = true;
    for place in record.applied.iter().filter(|place| !is_orphaned(work, place)) {
        gone &= member.release(place, &record).await?;
    }
    if !gone {
        return Ok(false);
    }
    member.drop_record(&record).await?;
    let rest: Vec<&String> = work.finalizers().iter().filter(|one| *one != FINALIZER).collect();
    let patch = json!({"metadata": {"finalizers": rest}});
    works.patch(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(true)
}
