//! One cluster of an add-on: its state, its reason, and what its agent reports.

use std::collections::BTreeMap;

use aviary_api::ManifestWork;
use aviary_api::names::labels;
use aviary_api::work::FieldValue;
use aviary_engine::configs::{Pin, Revision};
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::{Observed, ObservedCondition, Work};
use aviary_engine::plan::{self, Plan};
use aviary_engine::reason::Reason;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::Value;

use crate::messages::ClusterKind;
use crate::summary::seconds;

/// More works than an add-on has on one cluster.
const MOST_WORKS: u32 = 100;
/// The maximum size of the manifests that are shown: of one, and of all.
const LONGEST_MANIFEST: usize = 32 << 10;
const MOST_CONTENT: usize = 512 << 10;
/// The longest value that an agent reports on a manifest, in characters.
const LONGEST_VALUE: usize = 256;

/// What is known about a cluster without a request to the hub.
#[derive(Debug, Serialize)]
pub(crate) struct ClusterOverview {
    cluster: String,
    placement: Option<String>,
    kind: ClusterKind,
    code: Reason,
    message: String,
    /// What its placement wants, what it is assigned, and what it has applied.
    desired: Option<String>,
    revision: Option<String>,
    applied: Option<String>,
    labels: BTreeMap<String, String>,
    available: Option<String>,
    /// Where the agent is not asked for the health of the objects: why not.
    health: Option<&'static str>,
    conditions: Vec<ConditionLine>,
}

impl ClusterOverview {
    pub(crate) fn of(observed: &Observed, plan: &Plan, name: &ClusterName) -> Option<Self> {
        let clusters = &plan.report.clusters;
        // Sorted by name.
        let at = clusters.binary_search_by(|report| report.cluster.cmp(name)).ok()?;
        let report = clusters.get(at)?;
        let placement = report.placement.and_then(|index| observed.addon.strategy.placements().get(index));
        let cluster = observed.clusters.get(name);
        let available = cluster.map(|cluster| match cluster.unreachable {
            None => "reachable".to_owned(),
            Some(unreachable) => match unreachable.since {
                Some(since) => format!("unreachable since {}", seconds(since)),
                None => "unreachable".to_owned(),
            },
        });
        let instance = observed.instances.get(name);
        let conditions = instance.map(|instance| &instance.status.conditions);
        let applied: Vec<Pin> = instance
            .into_iter()
            .flat_map(|instance| &instance.status.references)
            .filter_map(|reference| reference.applied.clone())
            .collect();
        let applied =
            (!applied.is_empty()).then(|| plan::label(observed, &Revision::new(applied)).to_string());
        let desired =
            report.placement.and_then(|index| plan.report.placements.get(index)?.desired.as_deref());
        let works = observed.works.get(name).map(|works| works.as_slice()).unwrap_or_default();
        let ours = instance.map(|instance| &instance.uid).filter(|_| observed.renders_templates());
        Some(Self {
            cluster: name.to_string(),
            placement: placement.map(|spec| spec.name.to_string()),
            kind: ClusterKind::of(&report.decision),
            code: report.decision.code(),
            message: report.decision.to_string(),
            desired: desired.map(str::to_owned),
            revision: report.told.as_deref().map(str::to_owned),
            applied,
            labels: cluster.map(|cluster| cluster.labels.clone()).unwrap_or_default(),
            available,
            health: match observed.renders_templates() {
                true => not_probed(works, ours),
                false => not_bound(works),
            },
            conditions: conditions.into_iter().flatten().map(of_instance).collect(),
        })
    }
}

/// Why the agent is not asked for the health of the objects. `instance` is the UID of the instance,
/// if Aviary renders its works: it accepts works that another manager rendered for that instance.
fn not_probed(works: &[Work], instance: Option<&Text>) -> Option<&'static str> {
    let mut without = works.iter().filter(|work| !work.probed);
    let is_accepted = |work: &Work| instance.is_some() && work.owner.as_ref() == instance;
    without.find_map(|work| match &work.rendered_from {
        Some(_) => Some("not probed: rendered by an earlier version of Aviary"),
        None if is_accepted(work) => Some("not probed: rendered by another manager"),
        None => None,
    })
}

/// What the works of an add-on with its own manager prove, unless they ask for health as ours do.
fn not_bound(works: &[Work]) -> Option<&'static str> {
    let is_own = |work: &Work| !work.probed && work.rendered_from.is_none();
    works.iter().any(is_own).then_some("not bound to the revision: rendered by its own manager")
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionLine {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
    last_transition_time: Option<String>,
}

/// A work, as its agent reports on it.
#[derive(Debug, Serialize)]
pub(crate) struct WorkLine {
    name: String,
    conditions: Vec<ConditionLine>,
    manifests: Vec<ManifestLine>,
}

#[derive(Debug, Serialize)]
struct ManifestLine {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    conditions: Vec<ConditionLine>,
    /// Fields of its status that the agent reports, with their values.
    feedback: Vec<(String, String)>,
    /// The manifest as it was rendered.
    content: Option<String>,
}

/// Everything about one cluster.
#[derive(Debug, Serialize)]
pub(crate) struct ClusterDetail {
    #[serde(flatten)]
    pub(crate) found: ClusterOverview,
    pub(crate) works: Vec<WorkLine>,
    /// A command that says more.
    pub(crate) next: String,
}

fn of_instance(condition: &ObservedCondition) -> ConditionLine {
    ConditionLine {
        type_: condition.kind.to_string(),
        status: condition.status.to_string(),
        reason: Some(condition.reason.to_string()),
        message: Some(condition.message.to_string()),
        last_transition_time: condition.since.map(seconds),
    }
}

fn of_work(condition: &aviary_api::Condition) -> ConditionLine {
    ConditionLine {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_transition_time: condition.last_transition_time.clone(),
    }
}

/// The works of an add-on on a cluster.
pub(crate) async fn works(
    client: &Client,
    addon: &str,
    cluster: &ClusterName,
) -> Result<Vec<WorkLine>, kube::Error> {
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), cluster.as_str());
    let params = ListParams::default().labels(&format!("{}={addon}", labels::ADDON_NAME)).limit(MOST_WORKS);
    let works = api.list(&params).await?;
    Ok(works.items.iter().map(work).collect())
}

fn work(work: &ManifestWork) -> WorkLine {
    let status = work.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let reported = status.and_then(|status| status.resource_status.as_ref());
    let reported = reported.map(|reported| reported.manifests.as_slice()).unwrap_or_default();
    let mut room = MOST_CONTENT;
    let mut manifests: Vec<ManifestLine> =
        work.spec.manifests().iter().map(|manifest| given(manifest, &mut room)).collect();
    for report in reported {
        let meta = &report.resource_meta;
        let feedback = report.status_feedback.iter().flat_map(|feedback| &feedback.values);
        let line = ManifestLine {
            kind: meta.kind.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            conditions: report.conditions.iter().map(of_work).collect(),
            feedback: feedback.map(|value| (value.name.clone(), value_of(&value.field_value))).collect(),
            content: None,
        };
        let place = meta.ordinal.and_then(|ordinal| usize::try_from(ordinal).ok());
        match place.and_then(|place| manifests.get_mut(place)).filter(|given| given.is_of(&line)) {
            Some(given) => *given = ManifestLine { content: given.content.take(), ..line },
            // An older generation of the work had it.
            None => manifests.push(line),
        }
    }
    WorkLine { name: work.name_any(), conditions: conditions.iter().map(of_work).collect(), manifests }
}

impl ManifestLine {
    fn is_of(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }
}

fn given(manifest: &Value, room: &mut usize) -> ManifestLine {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    ManifestLine {
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
        conditions: Vec::new(),
        feedback: Vec::new(),
        content: content(manifest, room),
    }
}

/// A manifest as text, within what is left of the limit. The values of a Secret are hidden.
fn content(manifest: &Value, room: &mut usize) -> Option<String> {
    let mut manifest = manifest.clone();
    if manifest.get("kind").and_then(Value::as_str) == Some("Secret") {
        for field in ["data", "stringData"] {
            let values = manifest.get_mut(field).and_then(Value::as_object_mut);
            values
                .into_iter()
                .flat_map(|values| values.values_mut())
                .for_each(|value| *value = "(hidden)".into());
        }
    }
    let mut text = serde_json::to_string_pretty(&manifest).ok()?;
    if text.len() > LONGEST_MANIFEST {
        text.truncate(text.floor_char_boundary(LONGEST_MANIFEST));
        text.push('…');
    }
    *room = room.checked_sub(text.len())?;
    Some(text)
}

fn value_of(value: &FieldValue) -> String {
    let FieldValue { type_: _, integer, string, boolean, json_raw } = value;
    let text = string.clone().or_else(|| json_raw.clone());
    let text = text.or_else(|| integer.map(|number| number.to_string()));
    let text = text.or_else(|| boolean.map(|flag| flag.to_string())).unwrap_or_default();
    text.chars().take(LONGEST_VALUE).collect()
}

#[cfg(test)]
mod tests {
    use aviary_engine::health::Health;
    use aviary_engine::observed::{Seen, WorkState};
    use aviary_engine::shared::Shared;
    use serde_json::json;

    use super::*;

    fn work_of(owner: &str, rendered_from: Option<&str>, probed: bool) -> Work {
        let state = WorkState {
            name: "addon-helloworld-deploy-0".into(),
            deleting: false,
            version: None,
            hosted_on: None,
            rendered_from: rendered_from.map(Into::into),
            applied: Seen::Yes,
            was_applied: true,
            available: Seen::Yes,
            health: Health::NotProbed,
            probed,
            objects: Vec::new(),
        };
        Work {
            uid: "work".into(),
            resource_version: "1".into(),
            generation: 1,
            owner: Some(owner.into()),
            rendered_digest: None,
            digest: None,
            hashes: None,
            available_since: None,
            state: Shared::new(state),
        }
    }

    #[test]
    fn works_without_probes_say_who_rendered_them() {
        let instance: Text = "instance".into();
        let told = |work: Work, instance: Option<&Text>| not_probed(&[work], instance);
        let earlier = Some("not probed: rendered by an earlier version of Aviary");
        assert_eq!(told(work_of("instance", Some("1"), false), Some(&instance)), earlier);
        assert_eq!(
            told(work_of("instance", None, false), Some(&instance)),
            Some("not probed: rendered by another manager"),
            "accepted from OCM's manager"
        );
        assert_eq!(told(work_of("instance", Some("1"), true), Some(&instance)), None);
        assert_eq!(told(work_of("somebody", None, false), Some(&instance)), None, "none of the instance's");
        assert_eq!(told(work_of("instance", None, false), None), None, "there is no instance");
        let own = Some("not bound to the revision: rendered by its own manager");
        assert_eq!(not_bound(&[work_of("instance", None, false)]), own);
        assert_eq!(not_bound(&[work_of("instance", None, true)]), None);
        assert_eq!(not_bound(&[]), None);
    }

    #[test]
    fn manifests_are_shown_without_secrets_and_within_a_limit() {
        let secret = json!({"kind": "Secret", "data": {"key": "aGVsbG8="}, "stringData": {"other": "hello"}});
        let mut room = MOST_CONTENT;
        let text = content(&secret, &mut room).unwrap();
        assert!(
            text.contains("\"key\": \"(hidden)\"") && !text.contains("hello") && !text.contains("aGVs"),
            "{text}"
        );
        let large = json!({"kind": "ConfigMap", "data": {"x": "é".repeat(LONGEST_MANIFEST)}});
        let mut room = 2 * LONGEST_MANIFEST;
        assert!(content(&large, &mut room).unwrap().len() <= LONGEST_MANIFEST + 3);
        assert_eq!(content(&large, &mut room), None, "there is no room for a second one");
    }
}
