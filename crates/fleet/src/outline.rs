//! What an agent remembers about a work until it reports: its objects' identities and feedback,
//! never the objects themselves.

use aviary_api::ManifestWork;
use aviary_api::work::{ManifestConfigOption, ResourceIdentifier};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::feedback::{self, Feedback, ObjectState};

/// The objects of a work. Most clusters of a fleet have equal ones, so they are stored once and
/// shared.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct WorkOutline {
    pub(crate) items: Vec<Item>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    /// `resourceMeta` as reported.
    pub(crate) meta: Value,
    healthy: Feedback,
    unobserved: Feedback,
    unready: Feedback,
    exceeded: Feedback,
    looping: Feedback,
    looping_on: Feedback,
    down: Feedback,
}

impl Item {
    /// What is reported about the object in this state.
    pub(crate) fn feedback(&self, state: ObjectState) -> &Feedback {
        match state {
            ObjectState::Healthy => &self.healthy,
            ObjectState::Unobserved => &self.unobserved,
            ObjectState::Unready => &self.unready,
            ObjectState::Exceeded => &self.exceeded,
            ObjectState::Looping => &self.looping,
            ObjectState::LoopingOn => &self.looping_on,
            ObjectState::Down => &self.down,
        }
    }
}

impl WorkOutline {
    /// Whether it shows when a controller has not seen a change yet.
    pub(crate) fn has_observers(&self) -> bool {
        self.items.iter().any(|item| item.healthy != item.unobserved)
    }

    pub(crate) fn of(work: &ManifestWork) -> Self {
        let items = work.spec.manifests().iter().enumerate();
        Self { items: items.map(|(ordinal, manifest)| item(ordinal, manifest, work)).collect() }
    }
}

fn item(ordinal: usize, manifest: &Value, work: &ManifestWork) -> Item {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
    let kind = GroupVersionKind::gvk(group, version, text("/kind"));
    let resource = ApiResource::from_gvk(&kind).plural;
    let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
    let is_it = |config: &&ManifestConfigOption| {
        let ResourceIdentifier { group: of, resource: plural, name: called, namespace: within } =
            &config.resource_identifier;
        of.as_deref().unwrap_or_default() == group
            && *plural == resource
            && called == name
            && within.as_deref().unwrap_or_default() == namespace
    };
    let rules =
        work.spec.manifest_configs.iter().find(is_it).map_or(&[][..], |config| &config.feedback_rules);
    let feedback = |state| feedback::collect(&kind, manifest, rules, state);
    let meta = json!({
        "ordinal": ordinal, "group": group, "version": version, "kind": kind.kind, "resource": resource, "name": name,
        "namespace": namespace,
    });
    Item {
        meta,
        healthy: feedback(ObjectState::Healthy),
        unobserved: feedback(ObjectState::Unobserved),
        unready: feedback(ObjectState::Unready),
        exceeded: feedback(ObjectState::Exceeded),
        looping: feedback(ObjectState::Looping),
        looping_on: feedback(ObjectState::LoopingOn),
        down: feedback(ObjectState::Down),
    }
}
