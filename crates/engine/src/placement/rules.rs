//! Parses a Placement. No other module knows its format.
//!
//! Owns what counts as a mistake in a Placement. A mistake is reported in the Placement's
//! condition, and the previous decisions are kept: a typo must not remove add-ons from a fleet.

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::Placement;
use aviary_api::cluster::{ClusterClaimSelector, ClusterPredicate, DecisionGroup};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::taints::Toleration;
use crate::limit::{Limit, LimitError};
use crate::name::Text;
use crate::selector::Selector;

/// The longest value of a label, in characters.
const LABEL: usize = 63;

/// Why a Placement is misconfigured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misconfigured {
    #[error("the name of the placement is not one that the label of its decisions can have")]
    Name,
    #[error("numberOfClusters: {0} is not a number of clusters")]
    Number(i64),
    #[error("predicates[{index}]: {why}")]
    Predicate { index: usize, why: String },
    #[error("tolerations[{index}]: {why}")]
    Toleration { index: usize, why: String },
    #[error("decision group {name:?}: {why}")]
    Group { name: String, why: String },
    #[error("clustersPerDecisionGroup: {0}")]
    GroupSize(LimitError),
    #[error("ManagedClusterSet {name}: {why}")]
    Set { name: Text, why: String },
}

/// The requirements on a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterRequirements {
    labels: Selector,
    claims: Selector,
}

impl ClusterRequirements {
    fn parse(labels: Option<&LabelSelector>, claims: Option<&ClusterClaimSelector>) -> Result<Self, String> {
        let claims = claims.map(|claims| LabelSelector {
            match_expressions: Some(claims.match_expressions.clone()),
            match_labels: None,
        });
        let parse =
            |selector: Option<&LabelSelector>| selector.map_or(Ok(Selector::default()), Selector::parse);
        Ok(Self {
            labels: parse(labels).map_err(|why| format!("labelSelector: {why}"))?,
            claims: parse(claims.as_ref()).map_err(|why| format!("claimSelector: {why}"))?,
        })
    }

    pub(crate) fn matches(
        &self,
        labels: &BTreeMap<String, String>,
        claims: &BTreeMap<String, String>,
    ) -> bool {
        self.labels.matches(labels) && self.claims.matches(claims)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) namespace: Text,
    /// If empty, all bound sets.
    pub(crate) sets: BTreeSet<Text>,
    pub(crate) number: Option<usize>,
    /// If empty, every cluster matches.
    pub(crate) predicates: Vec<ClusterRequirements>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) groups: Vec<(Text, ClusterRequirements)>,
    pub(crate) group_size: Limit,
    /// Unsupported parts that can be ignored without selecting wrong clusters.
    pub(crate) ignored: Vec<&'static str>,
}

impl Rules {
    pub(crate) fn parse(placement: &Placement) -> Result<Self, Misconfigured> {
        let spec = &placement.spec;
        if !is_label(placement.metadata.name.as_deref().unwrap_or_default()) {
            return Err(Misconfigured::Name);
        }
        let strategy = spec.decision_strategy.as_ref().and_then(|strategy| strategy.group_strategy.as_ref());
        let size = strategy.and_then(|strategy| strategy.clusters_per_decision_group.as_ref());
        let number = |number: i64| usize::try_from(number).map_err(|_| Misconfigured::Number(number));
        let ignored = [
            ("prioritizerPolicy", spec.prioritizer_policy.is_some()),
            ("spreadPolicy", spec.spread_policy.is_some()),
        ];
        Ok(Self {
            namespace: placement.metadata.namespace.as_deref().unwrap_or_default().into(),
            sets: spec.cluster_sets.iter().map(|name| name.as_str().into()).collect(),
            number: spec.number_of_clusters.map(number).transpose()?,
            predicates: each(&spec.predicates, predicate, |index, why| Misconfigured::Predicate {
                index,
                why,
            })?,
            tolerations: each(&spec.tolerations, Toleration::parse, |index, why| {
                Misconfigured::Toleration { index, why }
            })?,
            groups: strategy
                .into_iter()
                .flat_map(|strategy| &strategy.decision_groups)
                .map(group)
                .collect::<Result<_, _>>()?,
            group_size: size
                .map_or(Ok(Limit::Percent(100)), Limit::budget)
                .map_err(Misconfigured::GroupSize)?,
            ignored: ignored.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect(),
        })
    }

    /// Whether one of the predicates holds.
    pub(crate) fn matches(
        &self,
        labels: &BTreeMap<String, String>,
        claims: &BTreeMap<String, String>,
    ) -> bool {
        self.predicates.is_empty() || self.predicates.iter().any(|wanted| wanted.matches(labels, claims))
    }
}

fn each<T, U>(
    given: &[T],
    parse: impl Fn(&T) -> Result<U, String>,
    wrong: impl Fn(usize, String) -> Misconfigured,
) -> Result<Vec<U>, Misconfigured> {
    given.iter().enumerate().map(|(index, one)| parse(one).map_err(|why| wrong(index, why))).collect()
}

fn predicate(predicate: &ClusterPredicate) -> Result<ClusterRequirements, String> {
    let Some(required) = &predicate.required_cluster_selector else {
        return Ok(ClusterRequirements::default());
    };
    // Ignoring it would select clusters that it should exclude.
    if required.cel_selector.as_ref().is_some_and(|cel| !cel.cel_expressions.is_empty()) {
        return Err("celSelector is not supported".into());
    }
    ClusterRequirements::parse(required.label_selector.as_ref(), required.claim_selector.as_ref())
}

fn group(group: &DecisionGroup) -> Result<(Text, ClusterRequirements), Misconfigured> {
    let wrong = |why: String| Misconfigured::Group { name: group.group_name.clone(), why };
    if !is_label(&group.group_name) {
        return Err(wrong("the name is not one that a label can have".into()));
    }
    let selector = group.group_cluster_selector.as_ref();
    let labels = selector.and_then(|selector| selector.label_selector.as_ref());
    let claims = selector.and_then(|selector| selector.claim_selector.as_ref());
    Ok((group.group_name.as_str().into(), ClusterRequirements::parse(labels, claims).map_err(wrong)?))
}

/// Whether a text can be the value of a label.
fn is_label(text: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_alphanumeric();
    let ends = [text.as_bytes().first(), text.as_bytes().last()];
    text.len() <= LABEL
        && ends.into_iter().all(|end| end.is_none_or(alphanumeric))
        && text.bytes().all(|b| alphanumeric(&b) || matches!(b, b'-' | b'_' | b'.'))
}
