//! Reading from the work of hooks how far they are.

use aviary_api::ManifestWork;
use aviary_api::work::ManifestCondition;
use serde_json::Value;

use crate::health::Health;

/// The feedback that says that a Job has failed. OCM asks only whether it has completed.
pub(crate) const FAILED: &str = "aviary-hook-failed";

/// The progress of all hooks of a work: healthy when each has completed.
pub(crate) fn progress(object: &ManifestWork) -> Health {
    let reported = object.status.as_ref().and_then(|status| status.resource_status.as_ref());
    let reported = reported.map_or(&[][..], |status| status.manifests.as_slice());
    let hooks = object.spec.manifests().iter().enumerate();
    let progress =
        hooks.map(|(at, manifest)| of_hook(manifest, reported.iter().find(|one| is_about(one, at))));
    let none = Health::Unknown { why: "the work has no hooks".into() };
    progress.reduce(Health::worst).unwrap_or(none)
}

fn is_about(report: &ManifestCondition, at: usize) -> bool {
    report.resource_meta.ordinal.and_then(|ordinal| usize::try_from(ordinal).ok()) == Some(at)
}

fn of_hook(manifest: &Value, report: Option<&ManifestCondition>) -> Health {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let feedback = report.and_then(|report| report.status_feedback.as_ref());
    let value = |name: &str| {
        let mut values = feedback.into_iter().flat_map(|feedback| &feedback.values);
        values.find(|value| value.name == name).and_then(|value| value.field_value.string.as_deref())
    };
    let about_it = report.is_some_and(|report| report.resource_meta.name.as_deref() == Some(name));
    let why = |state: &str| format!("{kind} {name}: {state}").into();
    let (completed, failed) = match kind {
        "Job" => (value("JobComplete") == Some("True"), value(FAILED) == Some("True")),
        _ => (value("PodPhase") == Some("Succeeded"), value("PodPhase") == Some("Failed")),
    };
    match (about_it && completed, about_it && failed) {
        (true, _) => Health::Healthy,
        (_, true) => Health::Failed { why: why("the hook has failed"), tolerable: false },
        _ => Health::Progressing { why: why("the hook has not completed"), tolerable: false },
    }
}
