//! Chooses the clusters of placements again where a change affects them, with the rules of Aviary's
//! placement controller.
//!
//! A placement controller chooses again only after the change is applied, and a plan with the
//! decisions from before would show no effect. Where it cannot be known what the hub's controller
//! will choose, the plan has to say so. Decides nothing about clusters that the rules do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use aviary_api::names::{CLUSTER_GROUP, annotations, conditions, labels};
use aviary_api::{
    Condition, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision,
};
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::normalise;
use aviary_engine::observed::{ClusterGroup, Observed, Selection};
use aviary_engine::placement::{
    CandidateCluster, Chosen, ClusterSet, Key, SelectedGroup, Sets, choose, pages,
};
use jiff::Timestamp;
use kube::Resource;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::connect::{Connection, refused};
use crate::documents::Document;
use crate::output::counted;

/// How many objects to request at once.
const PAGE: u32 = 500;

/// Everything that the decisions of placements depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlacementFacts {
    clusters: BTreeMap<String, CandidateCluster>,
    sets: BTreeMap<Key, ClusterSet>,
    bindings: BTreeMap<Key, Text>,
    placements: BTreeMap<PlacementName, Placement>,
    decisions: BTreeMap<PlacementName, BTreeMap<String, PlacementDecision>>,
}

/// What a change means for the clusters of a placement.
#[derive(Debug)]
enum Redecided {
    Same,
    Anew {
        selection: Selection,
        note: String,
    },
    /// Not known: why.
    Unknown(String),
}

/// What a change means for the placements of an add-on.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Placements whose clusters were chosen again.
    pub(crate) notes: Vec<String>,
    /// Placements whose new clusters are not known.
    pub(crate) unknown: Vec<String>,
}

/// Whether a document can change the clusters that placements select.
pub(crate) fn is_of_placements(document: &Document) -> bool {
    let kinds = ["ManagedCluster", "ManagedClusterSet", "ManagedClusterSetBinding", "Placement"];
    document.group() == CLUSTER_GROUP && kinds.contains(&document.kind())
}

impl PlacementFacts {
    /// Reads everything from a hub.
    pub(crate) async fn read(connection: &Connection) -> anyhow::Result<Self> {
        let mut facts = Self::default();
        let clusters: Vec<ManagedCluster> = list(connection).await?;
        clusters.iter().for_each(|object| facts.cluster(object));
        let sets: Vec<ManagedClusterSet> = list(connection).await?;
        sets.iter().for_each(|object| facts.set(object));
        let bindings: Vec<ManagedClusterSetBinding> = list(connection).await?;
        bindings.iter().for_each(|object| facts.binding(object));
        let placements: Vec<Placement> = list(connection).await?;
        placements.into_iter().for_each(|object| facts.placement(object));
        let decisions: Vec<PlacementDecision> = list(connection).await?;
        decisions.into_iter().for_each(|object| facts.decision(object));
        Ok(facts)
    }

    /// Adds an object, or replaces it. Any other kind is ignored, and so is an unreadable object.
    pub(crate) fn put(&mut self, document: &Document, object: &Value) {
        if document.group() != CLUSTER_GROUP {
            return;
        }
        match document.kind() {
            "ManagedCluster" => typed(object).into_iter().for_each(|object| self.cluster(&object)),
            "ManagedClusterSet" => typed(object).into_iter().for_each(|object| self.set(&object)),
            "ManagedClusterSetBinding" => typed(object).into_iter().for_each(|object| self.binding(&object)),
            "Placement" => typed(object).into_iter().for_each(|object| self.placement(object)),
            "PlacementDecision" => typed(object).into_iter().for_each(|object| self.decision(object)),
            _ => {}
        }
    }

    fn cluster(&mut self, object: &ManagedCluster) {
        if let Ok(cluster) = CandidateCluster::read(object) {
            self.clusters.insert(cluster.name.to_string(), cluster);
        }
    }

    fn set(&mut self, object: &ManagedClusterSet) {
        self.sets.insert(Key::of(&object.metadata), ClusterSet::read(object));
    }

    fn binding(&mut self, object: &ManagedClusterSetBinding) {
        self.bindings.insert(Key::of(&object.metadata), object.spec.cluster_set.as_str().into());
    }

    fn placement(&mut self, object: Placement) {
        let Key { namespace, name } = Key::of(&object.metadata);
        self.placements.insert(PlacementName::new(&namespace, &name), object);
    }

    fn decision(&mut self, object: PlacementDecision) {
        let Key { namespace, name } = Key::of(&object.metadata);
        let labels = object.metadata.labels.as_ref();
        if let Some(placement) = labels.and_then(|labels| labels.get(labels::PLACEMENT)) {
            let placement = PlacementName::new(&namespace, placement);
            self.decisions.entry(placement).or_default().insert(name.to_string(), object);
        }
    }

    fn decided(&self, placement: &PlacementName) -> BTreeSet<ClusterName> {
        let decisions = self.decisions.get(placement).into_iter().flat_map(BTreeMap::values);
        decisions.flat_map(pages::clusters).filter_map(|name| ClusterName::parse(name).ok()).collect()
    }

    fn choose(&self, placement: &Placement, decided: &BTreeSet<ClusterName>, now: Timestamp) -> Chosen {
        let sets = Sets { sets: &self.sets, bindings: &self.bindings };
        choose(placement, self.clusters.values(), sets, decided, now)
    }
}

fn typed<T: DeserializeOwned>(object: &Value) -> Option<T> {
    serde_json::from_value(object.clone()).ok()
}

/// All objects of a kind; none if the hub does not serve it.
async fn list<K>(connection: &Connection) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(connection.client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(all),
            Err(error) => {
                let doing = format!("list {}.{}", K::plural(&()), K::group(&()));
                return Err(refused(&doing, &error, &connection.server));
            }
        };
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// Replaces the selections of an add-on's placements that a change affects.
pub(crate) fn apply(
    observed: &mut Observed,
    before: &PlacementFacts,
    after: &PlacementFacts,
    now: Timestamp,
) -> Effects {
    let mut effects = Effects::default();
    for (name, known) in &mut observed.placements {
        match redecide(name, before, after, now) {
            Redecided::Same => {}
            Redecided::Anew { selection, note } => {
                *known = selection;
                effects.notes.push(note);
            }
            Redecided::Unknown(why) => effects
                .unknown
                .push(format!("{name}: this plan uses the decisions from before the change: {why}")),
        }
    }
    effects
}

fn redecide(
    name: &PlacementName,
    before: &PlacementFacts,
    after: &PlacementFacts,
    now: Timestamp,
) -> Redecided {
    let (Some(old), Some(new)) = (before.placements.get(name), after.placements.get(name)) else {
        return Redecided::Same;
    };
    if is_left_alone(new) || !is_decided(old, before.decisions.get(name)) {
        return Redecided::Same;
    }
    let decided = before.decided(name);
    if after.decided(name) != decided {
        // The files contain its new decisions.
        return Redecided::Same;
    }
    let (was, is) = (before.choose(old, &decided, now), after.choose(new, &decided, now));
    if old.spec == new.spec && was.groups == is.groups {
        return Redecided::Same;
    }
    if selected(&was) != Some(decided.clone()) {
        let why = match before.clusters.is_empty() {
            true => "no ManagedCluster is known",
            false => "Aviary's placement rules do not lead to its present decisions",
        };
        return Redecided::Unknown(why.to_owned());
    }
    let (Some(groups), Some(selects)) = (&is.groups, selected(&is)) else {
        let [_, configured] = &is.verdicts;
        return Redecided::Unknown(configured.message.clone());
    };
    // Another controller prefers clusters by scores.
    if !is_ours(old) && is.counts.selected < is.counts.eligible {
        let why = "its placement controller is not Aviary's, and chooses some of the clusters that match";
        return Redecided::Unknown(why.to_owned());
    }
    if was.groups == is.groups {
        return Redecided::Same;
    }
    let (mut selection, _) = normalise::selection(new, []);
    selection.published = Some(selects.len());
    selection.counted = true;
    selection.outdated = false;
    let group =
        |group: &SelectedGroup| ClusterGroup { name: group.name.clone(), clusters: group.clusters.clone() };
    selection.groups = groups.iter().map(group).collect();
    let (added, removed) = (selects.difference(&decided).count(), decided.difference(&selects).count());
    let note = format!(
        "{name}: the change makes the placement controller choose again: {} instead of {}, {added} added and {removed} removed",
        counted(selects.len(), "cluster"),
        decided.len(),
    );
    Redecided::Anew { selection, note }
}

fn selected(chosen: &Chosen) -> Option<BTreeSet<ClusterName>> {
    let groups = chosen.groups.as_ref()?;
    Some(groups.iter().flat_map(|group| group.clusters.iter().cloned()).collect())
}

/// A placement controller has decided it at least once.
fn is_decided(placement: &Placement, decisions: Option<&BTreeMap<String, PlacementDecision>>) -> bool {
    let status = placement.status.as_ref();
    decisions.is_some() || status.is_some_and(|status| status.number_of_selected_clusters.is_some())
}

/// Aviary's placement controller, unlike others, records which generation it has decided.
fn is_ours(placement: &Placement) -> bool {
    let status = placement.status.as_ref();
    let satisfied =
        status.and_then(|status| Condition::find(&status.conditions, conditions::PLACEMENT_SATISFIED));
    satisfied.is_some_and(|condition| condition.observed_generation.is_some())
}

/// No controller decides it.
fn is_left_alone(placement: &Placement) -> bool {
    let annotations = placement.metadata.annotations.as_ref();
    let disabled = annotations.and_then(|annotations| annotations.get(annotations::SCHEDULING_DISABLED));
    placement.metadata.deletion_timestamp.is_some() || disabled.is_some_and(|value| value == "true")
}
