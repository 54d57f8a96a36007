//! The message of the condition `WritesRefused`: for which clusters the hub refuses writes, and
//! why.
//!
//! The leader writes it from its memory. Everybody else who reads the hub (commands, the dashboard)
//! has no such memory and reads the refusals back from it, so its form is fixed here.

use std::collections::BTreeMap;

use aviary_api::names::conditions::WRITES_REFUSED;

use super::addon::NAMED;
use crate::name::ClusterName;
use crate::observed::{ObservedCondition, Refusal, RefusedWrite};
use crate::problem::Problem;

/// Between two refusals. The text of the hub never has it.
const BETWEEN: &str = "; ";

/// The refusals that the status of an add-on names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldRefusals {
    /// At most ten.
    pub named: BTreeMap<ClusterName, Refusal>,
    /// How many more clusters there are.
    pub unnamed: usize,
}

/// `2 clusters: c1: the hub refuses to …: …; c2: the hub refuses to …: …; and 3 more`. Clusters
/// with the same refusal are named together.
pub(crate) fn message(named: &[(&ClusterName, &Refusal)], count: usize) -> String {
    let mut groups: Vec<(&Refusal, Vec<&str>)> = Vec::new();
    for (cluster, refusal) in named {
        match groups.iter_mut().find(|(known, _)| known == refusal) {
            Some((_, clusters)) => clusters.push(cluster.as_str()),
            None => groups.push((refusal, vec![cluster.as_str()])),
        }
    }
    let mut said: Vec<String> = groups
        .iter()
        .map(|(refusal, clusters)| {
            let why = refusal.why.replace(';', ",");
            let problem = Problem::WriteRefused { what: refusal.what, why: why.into() };
            format!("{}: {problem}", clusters.join(", "))
        })
        .collect();
    if count > named.len() {
        said.push(format!("and {} more", count - named.len()));
    }
    let clusters = if count == 1 { "cluster" } else { "clusters" };
    format!("{count} {clusters}: {}", said.join(BETWEEN))
}

/// Reads the refusals back. What cannot be read is left out: the text is only a report.
pub fn told(conditions: &[ObservedCondition]) -> ToldRefusals {
    let condition =
        ObservedCondition::find(conditions, WRITES_REFUSED).filter(|condition| condition.is_true());
    let said = condition.and_then(|condition| condition.message.split_once(": "));
    let Some((count, said)) = said else { return ToldRefusals::default() };
    let mut named = BTreeMap::new();
    for one in said.split(BETWEEN) {
        let Some((clusters, problem)) = one.split_once(": ") else { continue };
        let Some(refusal) = refusal(problem) else { continue };
        let clusters = clusters.split(", ").filter_map(|name| ClusterName::parse(name).ok());
        named.extend(clusters.map(|cluster| (cluster, refusal.clone())).take(NAMED - named.len()));
    }
    let count = count.split(' ').next().and_then(|count| count.parse::<usize>().ok()).unwrap_or_default();
    ToldRefusals { unnamed: count.saturating_sub(named.len()), named }
}

fn refusal(problem: &str) -> Option<Refusal> {
    RefusedWrite::ALL.into_iter().find_map(|what| {
        let begin = Problem::WriteRefused { what, why: "".into() }.to_string();
        Some(Refusal { what, why: problem.strip_prefix(&begin)?.into() })
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::reason::Reason;

    fn condition(status: &'static str, message: String) -> Vec<ObservedCondition> {
        vec![ObservedCondition {
            kind: WRITES_REFUSED.into(),
            status: status.into(),
            reason: Reason::WriteRefused.into(),
            message: message.into(),
            since: Some(Timestamp::UNIX_EPOCH),
            observed_generation: Some(1),
        }]
    }

    fn cluster(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    #[test]
    fn what_the_leader_says_is_read_back() {
        let refusal = |what, why: &str| Refusal { what, why: why.into() };
        let all = [
            (cluster("a"), refusal(RefusedWrite::Status, "too large: 2 > 1 (500)")),
            (cluster("b"), refusal(RefusedWrite::Work, "denied, by a policy (403)")),
            (cluster("c"), refusal(RefusedWrite::Status, "too large: 2 > 1 (500)")),
            (cluster("d"), refusal(RefusedWrite::Create, "")),
            (cluster("e"), refusal(RefusedWrite::Delete, "no: the hub refuses to write the work: x")),
        ];
        let named: Vec<_> = all.iter().map(|(cluster, refusal)| (cluster, refusal)).collect();
        let told_of = |count| told(&condition("True", message(&named, count)));
        assert_eq!(told_of(5), ToldRefusals { named: all.clone().into(), unnamed: 0 });
        assert_eq!(told_of(12), ToldRefusals { named: all.into(), unnamed: 7 });
    }

    #[test]
    fn the_text_of_the_hub_cannot_name_other_clusters() {
        let why = "no; b: the hub refuses to write the work: x; and 7 more";
        let all = [(cluster("a"), Refusal { what: RefusedWrite::Status, why: why.into() })];
        let named: Vec<_> = all.iter().map(|(cluster, refusal)| (cluster, refusal)).collect();
        let ToldRefusals { named, unnamed } = told(&condition("True", message(&named, 1)));
        assert_eq!(named.keys().map(ClusterName::as_str).collect::<Vec<_>>(), ["a"]);
        assert_eq!(unnamed, 0);
    }

    #[test]
    fn at_most_ten_clusters_are_read_and_nothing_from_a_condition_that_is_over() {
        let names: Vec<String> = (0..40).map(|at| format!("c{at}")).collect();
        let said = format!("40 clusters: {}: the hub refuses to write the work: x", names.join(", "));
        let ToldRefusals { named, unnamed } = told(&condition("True", said.clone()));
        assert_eq!((named.len(), unnamed), (NAMED, 30));
        assert_eq!(told(&condition("False", said)), ToldRefusals::default());
        for odd in ["", "x", "5", "1 cluster: ", "; : ;", "many: A B: the hub refuses to write the work: x"] {
            assert_eq!(told(&condition("True", odd.to_owned())).named.len(), 0, "{odd:?}");
        }
    }

    #[test]
    fn ten_different_refusals_fit_into_a_message() {
        let all: Vec<_> = (0..NAMED)
            .map(|at| {
                let why = format!("{at}{}", "x".repeat(262));
                (
                    cluster(&format!("{at}{}", "c".repeat(62))),
                    Refusal { what: RefusedWrite::Status, why: why.into() },
                )
            })
            .collect();
        let named: Vec<_> = all.iter().map(|(cluster, refusal)| (cluster, refusal)).collect();
        assert!(message(&named, 100_000).chars().count() < super::super::LONGEST_MESSAGE);
    }
}
