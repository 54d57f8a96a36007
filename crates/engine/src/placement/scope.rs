//! The candidates of a placement: the clusters of the sets that are bound to its namespace.
//!
//! Owns the rule of sets and bindings. Unlike in Open Cluster Management, every cluster is a
//! candidate on a hub that has neither sets nor bindings. From the first set or binding on, a
//! namespace without a binding has no candidates.

use std::collections::BTreeMap;

use aviary_api::ManagedClusterSet;
use aviary_api::names::labels;

use super::key::Key;
use super::rules::{Misconfigured, Rules};
use crate::name::Text;
use crate::selector::Selector;

/// How the clusters of a set are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterSet {
    ByItsLabel,
    ByLabels(Selector),
    Empty,
    Unreadable(String),
}

impl ClusterSet {
    pub fn read(object: &ManagedClusterSet) -> Self {
        let selector = object.spec.cluster_selector.as_ref();
        let by = selector.and_then(|selector| selector.selector_type.as_deref()).unwrap_or_default();
        match by {
            "" | "ExclusiveClusterSetLabel" => Self::ByItsLabel,
            "LabelSelector" => match selector.and_then(|selector| selector.label_selector.as_ref()) {
                None => Self::Empty,
                Some(selector) => Selector::parse(selector).map_or_else(Self::Unreadable, Self::ByLabels),
            },
            other => Self::Unreadable(format!("selectorType {other:?} is not known")),
        }
    }

    fn holds(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::ByItsLabel => labels.get(labels::CLUSTER_SET).is_some_and(|set| set == name),
            Self::ByLabels(selector) => selector.matches(labels),
            Self::Empty | Self::Unreadable(_) => false,
        }
    }
}

/// The sets of a hub, and which of them each binding opens to its namespace.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    pub sets: &'a BTreeMap<Key, ClusterSet>,
    pub bindings: &'a BTreeMap<Key, Text>,
}

/// The candidates of a placement.
#[derive(Debug)]
pub(crate) enum PlacementScope<'a> {
    EveryCluster,
    Sets(Vec<(&'a Text, &'a ClusterSet)>),
}

/// Why there are no candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoScope {
    NoBinding,
    NotBound,
    Misconfigured(Misconfigured),
}

impl<'a> PlacementScope<'a> {
    pub(crate) fn of(rules: &Rules, hub: Sets<'a>) -> Result<Self, NoScope> {
        let Sets { sets, bindings } = hub;
        // A placement that names sets always uses them.
        if sets.is_empty() && bindings.is_empty() && rules.sets.is_empty() {
            return Ok(Self::EveryCluster);
        }
        let first = Key { namespace: rules.namespace.clone(), name: "".into() };
        let ours = bindings.range(&first..).take_while(|(key, _)| key.namespace == rules.namespace);
        let mut bound: Vec<(&Text, &ClusterSet)> = ours
            .filter_map(|(_, name)| {
                let key = Key { namespace: "".into(), name: name.clone() };
                sets.get_key_value(&key).map(|(key, set)| (&key.name, set))
            })
            .collect();
        if bound.is_empty() {
            return Err(NoScope::NoBinding);
        }
        bound.retain(|(name, _)| rules.sets.is_empty() || rules.sets.contains(*name));
        if bound.is_empty() {
            return Err(NoScope::NotBound);
        }
        for (name, set) in &bound {
            if let ClusterSet::Unreadable(why) = set {
                let (name, why) = ((*name).clone(), why.clone());
                return Err(NoScope::Misconfigured(Misconfigured::Set { name, why }));
            }
        }
        Ok(Self::Sets(bound))
    }

    pub(crate) fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::EveryCluster => true,
            Self::Sets(sets) => sets.iter().any(|(name, set)| set.holds(name, labels)),
        }
    }

    /// The sets, for a message.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let sets = match self {
            Self::EveryCluster => &[][..],
            Self::Sets(sets) => sets,
        };
        sets.iter().map(|(name, _)| &***name)
    }
}
