//! Reading a work's health from what the agent reports about its objects.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashMap;

use aviary_api::ManifestWork;
use aviary_api::names::annotations;
use aviary_api::work::{ManifestCondition, ManifestConfigOption};
use jiff::Timestamp;
use serde_json::Value;

use super::Health;
use super::instruct::{NAME, ObjectId, configs_digest, digest_key, probe_of};
use super::probes::{DIGEST, Judgement, PREFIX, Probe, Values, WrongType};
use super::unbound::{self, NOT_BOUND};

/// What a work says about its health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkHealth {
    pub(crate) health: Health,
    /// It asks for the health of its objects.
    pub(crate) probed: bool,
    /// Nobody has changed what the agent is asked for.
    pub(crate) intact: bool,
    /// The last time at which one of its workloads became available.
    pub(crate) available_since: Option<Timestamp>,
}

/// Reads the health of a work of this add-on.
pub(crate) fn of_work(object: &ManifestWork, addon: &str) -> WorkHealth {
    let manifests = object.spec.manifests();
    let written = object.metadata.annotations.as_ref().and_then(|all| all.get(annotations::PROBES_DIGEST));
    let key = digest_key(addon);
    let digest_of =
        |manifest: &Value| Some(manifest.pointer("/metadata/annotations")?.get(&key)?.as_str()?.to_owned());
    let asks = |entry: &ManifestConfigOption| {
        let mut paths = entry.feedback_rules.iter().flat_map(|rule| &rule.json_paths);
        paths.any(|path| path.name.starts_with(PREFIX))
    };
    if written.is_none()
        && !object.spec.manifest_configs.iter().any(asks)
        && !manifests.iter().any(|manifest| digest_of(manifest).is_some())
    {
        let health = unbound::health(object);
        return WorkHealth { health, probed: false, intact: true, available_since: None };
    }
    let configs = &object.spec.manifest_configs;
    let intact = written.is_some_and(|written| *written == configs_digest(configs));
    let reported = object.status.as_ref().and_then(|status| status.resource_status.as_ref());
    let reported = Reports::new(reported.map_or(&[], |status| status.manifests.as_slice()));
    let unmarked = manifests.iter().filter(|manifest| digest_of(manifest).is_none());
    let asked = Asked { configs, unmarked: unmarked.filter_map(ObjectId::of).collect() };
    let judged = manifests.iter().enumerate().filter_map(|(at, manifest)| {
        let (probe, id) = (probe_of(manifest)?, ObjectId::of(manifest)?);
        let is_named = || asked.for_name(probe, id);
        let proof = match digest_of(manifest) {
            Some(digest) if !probe.create_only || !is_named() => Proof::Digest(digest),
            None if !is_named() => return None,
            digest => Proof::Name { digest },
        };
        Some(judge(probe, id, &proof, reported.find(at, id)))
    });
    let (health, available_since) = judged.fold((Health::Healthy, None), |(worst, last), (health, since)| {
        (worst.worst(health), last.max(since))
    });
    WorkHealth { health, probed: true, intact, available_since }
}

/// What shows that a report is about the object that is wanted.
enum Proof {
    Digest(String),
    /// The object is not updated. Where it carries a digest, that is of what it was created from.
    Name {
        digest: Option<String>,
    },
}

/// What the agent is asked for.
struct Asked<'a> {
    configs: &'a [ManifestConfigOption],
    /// The objects that carry no digest.
    unmarked: Vec<ObjectId<'a>>,
}

impl Asked<'_> {
    /// Whether it is asked for the name of the object.
    fn for_name(&self, probe: &Probe, id: ObjectId<'_>) -> bool {
        self.configs.iter().any(|entry| {
            let known = &entry.resource_identifier;
            known.name == id.name
                && known.namespace.as_deref().unwrap_or_default() == id.namespace
                && known.group.as_deref().unwrap_or_default() == id.group
                && entry.feedback_rules.iter().flat_map(|rule| &rule.json_paths).any(|path| path.name == NAME)
                && match probe.resource {
                    "" => self.is_plural_of(&known.resource, id),
                    resource => known.resource == resource,
                }
        })
    }

    /// Whether an entry names this object, of those of its group and name. An entry has the plural,
    /// and a custom resource only its kind: the kind counts that the plural is most like.
    fn is_plural_of(&self, resource: &str, id: ObjectId<'_>) -> bool {
        let others = self.unmarked.iter().filter(|other| ObjectId { kind: id.kind, ..**other } == id);
        others.map(|other| likeness(resource, other.kind)).max() <= Some(likeness(resource, id.kind))
    }
}

/// How much a plural looks like that of a kind: with how many letters of it the plural begins, and
/// how few more it has.
fn likeness(resource: &str, kind: &str) -> (usize, Reverse<usize>) {
    let letters = kind.chars().flat_map(char::to_lowercase);
    let shared = letters.zip(resource.chars()).take_while(|(a, b)| a == b).count();
    (shared, Reverse(kind.len()))
}

/// What an agent reports about the objects of a work. It may be about any number of other objects.
struct Reports<'a> {
    listed: &'a [ManifestCondition],
    /// The first report on each object, worked out where one is not at its place.
    by_object: OnceCell<HashMap<ObjectId<'a>, &'a ManifestCondition>>,
}

impl<'a> Reports<'a> {
    fn new(listed: &'a [ManifestCondition]) -> Self {
        Self { listed, by_object: OnceCell::new() }
    }

    /// The report on one object: at its place, or wherever it is named.
    fn find(&self, at: usize, id: ObjectId<'_>) -> Option<&'a ManifestCondition> {
        let at_its_place = self.listed.get(at).filter(|report| subject(report) == id);
        at_its_place.or_else(|| self.by_object().get(&id).copied())
    }

    fn by_object(&self) -> &HashMap<ObjectId<'a>, &'a ManifestCondition> {
        self.by_object.get_or_init(|| {
            let mut first = HashMap::new();
            for report in self.listed {
                first.entry(subject(report)).or_insert(report);
            }
            first
        })
    }
}

/// The object that a report is about.
pub(super) fn subject(report: &ManifestCondition) -> ObjectId<'_> {
    fn text(field: &Option<String>) -> &str {
        field.as_deref().unwrap_or_default()
    }
    let meta = &report.resource_meta;
    ObjectId {
        group: text(&meta.group),
        kind: text(&meta.kind),
        namespace: text(&meta.namespace),
        name: text(&meta.name),
    }
}

fn judge(
    probe: &'static Probe,
    id: ObjectId<'_>,
    proof: &Proof,
    report: Option<&ManifestCondition>,
) -> (Health, Option<Timestamp>) {
    let feedback = report.and_then(|report| report.status_feedback.as_ref());
    let values = feedback.map_or(&[][..], |feedback| feedback.values.as_slice());
    let values = values.iter().filter(|value| value.name.starts_with(PREFIX));
    let values = values.map(|value| (value.name.as_str(), &value.field_value));
    let values = Values { object: id.name, all: values.collect() };
    let health = judge_values(probe, id, proof, &values).unwrap_or_else(|WrongType(name)| {
        let why = format!("{}: the work agent reports no {name} that can be read", id.label());
        Health::Unknown { why: why.into() }
    });
    let since = (health == Health::Healthy).then(|| values.since()).flatten();
    (health, since)
}

fn judge_values(
    probe: &'static Probe,
    id: ObjectId<'_>,
    proof: &Proof,
    values: &Values<'_>,
) -> Result<Health, WrongType> {
    let why = |detail: &str| format!("{}: {detail}", id.label()).into();
    let (reported, wanted) = match proof {
        Proof::Digest(digest) => (values.text(DIGEST)?, digest.as_str()),
        Proof::Name { .. } => (values.text(NAME)?, id.name),
    };
    if reported.is_empty() {
        return Ok(Health::Unknown { why: why("the work agent has not reported its health yet") });
    }
    if reported != wanted {
        let why = why("the work agent still reports an earlier version of it");
        return Ok(Health::Progressing { why, tolerable: false });
    }
    let binding = BoundTo::of(proof, values)?;
    let said = |detail: String| why(&(detail + &binding.said()));
    Ok(match probe.judge(values)? {
        Judgement::Healthy if binding == BoundTo::Other => Health::Kept { why: why(CREATED_ONCE) },
        Judgement::Healthy => Health::Healthy,
        Judgement::Progressing { detail, tolerable } => Health::Progressing { why: said(detail), tolerable },
        Judgement::Failed { detail, tolerable } => Health::Failed { why: said(detail), tolerable },
    })
}

const CREATED_ONCE: &str = "it is of another version, and agents create it only once: put {{VERSION}} into its \
                            name, or delete it on the cluster";

/// Which version of an object a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoundTo {
    /// The one that is wanted.
    Wanted,
    /// The report does not identify its version.
    Unknown,
    Other,
}

impl BoundTo {
    fn of(proof: &Proof, values: &Values<'_>) -> Result<Self, WrongType> {
        let Proof::Name { digest } = proof else { return Ok(Self::Wanted) };
        let Some(wanted) = digest else { return Ok(Self::Unknown) };
        Ok(match values.text(DIGEST)? {
            "" => Self::Unknown,
            created_from if created_from == wanted => Self::Wanted,
            _ => Self::Other,
        })
    }

    /// Added to what is said about an object.
    fn said(self) -> String {
        match self {
            Self::Unknown => format!(" ({NOT_BOUND})"),
            Self::Wanted => String::new(),
            Self::Other => " (of another version)".to_owned(),
        }
    }
}
