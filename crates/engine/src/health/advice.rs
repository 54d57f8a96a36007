//! What an author should know about the health of a template's objects. Nothing here is wrong: the
//! template renders.

use serde_json::Value;

use super::instruct::{Instructions, ObjectId, completes, probe_of};
use super::probes;

/// Advice about one manifest of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The place of the manifest, or of the author's entry of `manifestConfigs`.
    pub place: AdvicePlace,
    /// For programs.
    pub code: &'static str,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvicePlace {
    Manifest(usize),
    Config(usize),
}

/// Advice about the manifests at these places, whose variables are filled in but for the names of
/// the cluster.
pub(crate) fn of(
    manifests: impl Iterator<Item = (usize, Value)>,
    instructions: &Instructions<'_>,
) -> Vec<Advice> {
    let of_manifests = manifests.flat_map(|(at, manifest)| {
        let place = AdvicePlace::Manifest(at);
        let advise = move |(code, message)| Advice { place, code, message };
        of_manifest(&manifest, instructions).into_iter().map(advise)
    });
    let of_configs = instructions.author.iter().enumerate().filter(|(_, entry)| completes(entry)).map(|(at, _)| Advice {
        place: AdvicePlace::Config(at),
        code: "CompleteEndsWrites",
        message: "once the condition Complete is True, agents never apply the work again: a later revision does not reach the cluster".to_owned(),
    });
    of_manifests.chain(of_configs).collect()
}

fn of_manifest(manifest: &Value, instructions: &Instructions<'_>) -> Vec<(&'static str, String)> {
    let Some(id) = ObjectId::of(manifest) else { return Vec::new() };
    let label = id.label();
    let mut advice = Vec::new();
    let is_job = probes::built_in(id.group, id.kind).is_some_and(|probe| probe.resource == "jobs");
    let spec = |field: &str| manifest.get("spec").and_then(|spec| spec.get(field));
    let is_bounded =
        spec("activeDeadlineSeconds").is_some() || spec("suspend").is_some_and(|suspend| *suspend == true);
    if is_job && probe_of(manifest).is_some() && !is_bounded {
        advice.push((
            "JobHoldsRollout",
            format!("{label}: a cluster is not updated until the Job completes: give it activeDeadlineSeconds, or the annotation addon.open-cluster-management.io/health: ignore if it runs for long"),
        ));
    }
    if is_job && spec("ttlSecondsAfterFinished").is_some() {
        advice.push((
            "JobRunsAgain",
            format!("{label}: with ttlSecondsAfterFinished the Job is deleted when it is done, and agents create it again: remove the field"),
        ));
    }
    let strategy = spec("updateStrategy").and_then(|strategy| strategy.get("type"));
    let may_keep_pods = matches!((id.group, id.kind), ("apps", "StatefulSet" | "DaemonSet"));
    if may_keep_pods && probe_of(manifest).is_some() && strategy.is_some_and(|type_| type_ == "OnDelete") {
        advice.push((
            "OnDelete",
            format!("{label}: with OnDelete a cluster counts as updated while its pods may still run the earlier version: somebody has to delete them"),
        ));
    }
    if instructions.lacks_plural(manifest) {
        advice.push((
            "NotProbed",
            format!("{label}: its health is not asked for, because the plural of its kind is unknown: add its CustomResourceDefinition, or an entry of manifestConfigs that names the object"),
        ));
    }
    advice
}
