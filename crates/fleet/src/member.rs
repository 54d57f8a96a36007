//! The clusters of a fleet: their names and labels.

use std::collections::BTreeMap;

use aviary_engine::name::{ClusterName, NameError};
use aviary_engine::simulate::agents::{Agents, Profile};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: ClusterName,
    pub labels: BTreeMap<String, String>,
}

/// A label that a share of the clusters has.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelShare {
    pub key: String,
    pub value: String,
    pub share: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    #[error("the cluster name {name} {why}")]
    Name { name: String, why: NameError },
    #[error("the shares of label {key} add up to more than the whole fleet")]
    TooMuch { key: String },
}

/// Creates this many clusters, with the prefix and numbers from 1 as names. Different values of one
/// label key go to different clusters; different keys are independent of each other. The seed
/// determines which cluster gets which label.
pub fn members(
    prefix: &str,
    count: usize,
    labels: &[LabelShare],
    seed: u64,
) -> Result<Vec<Member>, MemberError> {
    let width = count.to_string().len();
    let mut members = Vec::with_capacity(count);
    for number in 1..=count {
        let name = format!("{prefix}-{number:0width$}");
        let name = ClusterName::parse(&name).map_err(|why| MemberError::Name { name, why })?;
        members.push(Member { name, labels: BTreeMap::new() });
    }
    let mut by_key: BTreeMap<&str, Vec<&LabelShare>> = BTreeMap::new();
    for label in labels {
        by_key.entry(&label.key).or_default().push(label);
    }
    let profile = Profile { seed, ..Profile::default() };
    for (key, values) in by_key {
        // Thirds may add up to slightly more than 1.
        if values.iter().map(|label| label.share).sum::<f64>() > 1.0 + 1e-9 {
            return Err(MemberError::TooMuch { key: key.to_owned() });
        }
        hand_out(&mut members, key, &values, &Agents::new(&profile));
    }
    Ok(members)
}

fn hand_out(members: &mut [Member], key: &str, values: &[&LabelShare], agents: &Agents<'_>) {
    let drawn = |member: &Member| agents.draw(&member.name, &format!("label {key}"));
    let mut order: Vec<(f64, usize)> =
        members.iter().enumerate().map(|(index, member)| (drawn(member), index)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut from, mut upto) = (0, 0.0);
    for label in values {
        upto += label.share * members.len() as f64;
        let end = (upto.round() as usize).min(members.len());
        for (_, index) in order.get(from..end).unwrap_or_default() {
            if let Some(member) = members.get_mut(*index) {
                member.labels.insert(label.key.clone(), label.value.clone());
            }
        }
        from = from.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(key: &str, value: &str, share: f64) -> LabelShare {
        LabelShare { key: key.into(), value: value.into(), share }
    }

    fn with(members: &[Member], key: &str, value: &str) -> usize {
        members.iter().filter(|member| member.labels.get(key).is_some_and(|found| found == value)).count()
    }

    #[test]
    fn names_sort_as_they_are_numbered() {
        let members = members("c", 100, &[], 1).unwrap();
        assert_eq!(members.first().unwrap().name.as_str(), "c-001");
        assert!(members.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn shares_are_met_to_the_cluster_and_values_of_one_key_exclude_each_other() {
        let labels = [share("env", "prod", 0.7), share("env", "dev", 0.3), share("canary", "yes", 0.1)];
        let members = members("c", 1000, &labels, 7).unwrap();
        assert_eq!((with(&members, "env", "prod"), with(&members, "env", "dev")), (700, 300));
        assert_eq!(with(&members, "canary", "yes"), 100);
        let both = members.iter().filter(|member| {
            member.labels.contains_key("canary") && member.labels.get("env").is_some_and(|env| env == "dev")
        });
        let both = both.count();
        assert!((10..60).contains(&both), "{both} of 100: the keys are independent of each other");
    }

    #[test]
    fn the_seed_decides_who_gets_a_label() {
        let labels = [share("env", "prod", 0.5)];
        let of = |seed| members("c", 50, &labels, seed).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn names_that_no_cluster_can_have_and_shares_over_the_whole_are_refused() {
        let refused = members("Upper", 1, &[], 1).unwrap_err();
        assert!(refused.to_string().starts_with("the cluster name Upper-1 may only have"), "{refused}");
        let refused = members("c", 10, &[share("env", "a", 0.6), share("env", "b", 0.6)], 1).unwrap_err();
        assert_eq!(refused.to_string(), "the shares of label env add up to more than the whole fleet");
    }
}
