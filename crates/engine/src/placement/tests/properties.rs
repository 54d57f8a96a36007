//! What holds in every world: the choice is stable, groups and pages divide it, and no reader takes
//! a torn set for a whole one.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::hub::{Hub, chosen};
use super::story::World;
use crate::name::ClusterName;
use crate::placement::choose::Chosen;
use crate::placement::pages::{PAGE, clusters};

const WORDS: [&str; 8] = [
    "",
    "env=prod",
    "env=test",
    "taint:a/NoSelect",
    "taint:a/PreferNoSelect",
    "taint:a/NoSelectIfNew",
    "deleting",
    "env=prod taint:b/NoSelect@5",
];

fn world(kinds: &[usize]) -> World {
    let line = |(index, kind): (usize, &usize)| format!("cluster c{index:02} {}\n", WORDS[*kind]);
    World::parse(&kinds.iter().enumerate().map(line).collect::<String>())
}

fn specs() -> impl Strategy<Value = Value> {
    let number = prop_oneof![Just(Value::Null), (0..12_i64).prop_map(Value::from)];
    let size = prop_oneof![Just(json!("100%")), Just(json!("30%")), (1..5_i64).prop_map(Value::from)];
    let env = |env: &str| json!({"labelSelector": {"matchLabels": {"env": env}}});
    let predicates = prop_oneof![
        Just(json!([])),
        Just(json!([{"requiredClusterSelector": env("prod")}])),
        Just(json!([{"requiredClusterSelector": env("prod")}, {"requiredClusterSelector": env("test")}])),
    ];
    let groups = prop_oneof![
        Just(json!([])),
        Just(json!([{"groupName": "prod", "groupClusterSelector": env("prod")}])),
        Just(json!([{"groupName": "all"}, {"groupName": "never", "groupClusterSelector": env("prod")}])),
    ];
    (number, size, predicates, groups).prop_map(|(number, size, predicates, groups)| {
        json!({
            "numberOfClusters": number, "predicates": predicates,
            "tolerations": [{"key": "b", "operator": "Exists", "tolerationSeconds": 60}],
            "decisionStrategy": {"groupStrategy": {"decisionGroups": groups, "clustersPerDecisionGroup": size}},
        })
    })
}

fn selected(chosen: &Chosen) -> BTreeSet<ClusterName> {
    chosen.groups.iter().flatten().flat_map(|group| group.clusters.iter().cloned()).collect()
}

/// Which group each of many clusters is in; 0 is none.
fn memberships() -> impl Strategy<Value = Vec<usize>> {
    let few = vec(0..4_usize, 0..30);
    let many = vec(prop_oneof![1 => Just(0_usize), 5 => Just(1), 1 => 0..4_usize], 0..330);
    prop_oneof![few, many]
}

fn grouped(memberships: &[usize]) -> Chosen {
    let of = |group: usize| -> Vec<String> {
        let members = memberships.iter().enumerate().filter(|(_, of)| **of == group);
        members.map(|(index, _)| format!("c{index:03}")).collect()
    };
    let groups = [("one", of(1)), ("two", of(2)), ("", of(3))];
    let mut groups: Vec<(&str, Vec<String>)> =
        groups.into_iter().filter(|(_, members)| !members.is_empty()).collect();
    if groups.is_empty() {
        groups.push(("", Vec::new()));
    }
    chosen(&groups)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_choice_is_stable(kinds in vec(0..WORDS.len(), 0..30), more in vec(0..WORDS.len(), 0..10), spec in specs()) {
        let mut now = world(&kinds);
        let first = now.choose(spec.clone());
        now.before = selected(&first);
        prop_assert_eq!(&now.choose(spec.clone()).groups, &first.groups, "chosen again");

        let mut fewer = now.clone();
        fewer.clusters.retain(|cluster| now.before.contains(&cluster.name));
        prop_assert_eq!(&fewer.choose(spec.clone()).groups, &first.groups, "without those that are not chosen");

        let mut turned = now.clone();
        turned.clusters.reverse();
        prop_assert_eq!(&turned.choose(spec.clone()), &now.choose(spec.clone()), "in another order");

        let mut larger = world(&kinds.iter().chain(&more).copied().collect::<Vec<_>>());
        larger.before = now.before.clone();
        let later = selected(&larger.choose(spec));
        prop_assert!(later.is_superset(&now.before), "{:?} of {:?}", later, now.before);
    }

    #[test]
    fn groups_divide_what_is_selected_and_everybody_is_counted_once(kinds in vec(0..WORDS.len(), 0..30), spec in specs()) {
        let world = world(&kinds);
        let chosen = world.choose(spec.clone());
        let counts = chosen.counts;
        let sum = counts.deleting + counts.out_of_scope + counts.unmatched + counts.kept_away + counts.eligible;
        prop_assert_eq!(sum, world.clusters.len());
        let groups = chosen.groups.clone().unwrap();
        prop_assert_eq!(groups.iter().map(|group| group.clusters.len()).sum::<usize>(), counts.selected);
        prop_assert_eq!(selected(&chosen).len(), counts.selected, "nobody is in two groups");
        if let Some(number) = spec["numberOfClusters"].as_u64() {
            prop_assert_eq!(counts.selected, counts.eligible.min(usize::try_from(number).unwrap()));
        }
        prop_assert!(groups.len() == 1 || groups.iter().all(|group| !group.clusters.is_empty()));
    }

    #[test]
    fn no_state_on_the_way_looks_whole_but_the_first_and_the_last(
        choices in vec((memberships(), 0..12_usize), 1..4),
    ) {
        let mut hub = Hub::new();
        for (memberships, most) in choices {
            let wanted = grouped(&memberships);
            let (old, new) = (hub.grouped(), {
                let mut there = hub.clone();
                there.settle(&wanted);
                there.grouped()
            });
            let was_in_motion = hub.selection().in_motion().is_some();
            let mut torn = None;
            let rewrite = hub.rewrite(&wanted);
            // It may die after any write; what comes next goes on from there.
            hub.make(&rewrite, most, |hub| {
                let seen = hub.grouped();
                let whole = seen == new || (seen == old && !was_in_motion);
                if !whole && hub.selection().in_motion().is_none() {
                    torn = Some(seen);
                }
                assert!(hub.decisions.values().all(|decision| clusters(decision).count() <= PAGE));
            });
            prop_assert_eq!(torn, None);
        }
    }

    #[test]
    fn who_stays_is_never_missing_and_pages_divide_the_choice(
        first in vec(any::<bool>(), 0..330), second in vec(any::<bool>(), 0..330),
    ) {
        let one = |members: &[bool]| grouped(&members.iter().map(|member| usize::from(*member)).collect::<Vec<_>>());
        let mut hub = Hub::new();
        hub.settle(&one(&first));
        let before = selected(&one(&first));
        let staying: BTreeSet<ClusterName> = before.intersection(&selected(&one(&second))).cloned().collect();
        let rewrite = hub.rewrite(&one(&second));
        hub.make(&rewrite, usize::MAX, |hub| {
            let seen: BTreeSet<ClusterName> = hub.selection().clusters().cloned().collect();
            assert!(seen.is_superset(&staying));
        });
        let decided: Vec<&str> = hub.decisions.values().flat_map(clusters).collect();
        prop_assert_eq!(decided.len(), selected(&one(&second)).len());
        prop_assert_eq!(hub.decisions.len(), decided.len().div_ceil(PAGE).max(1));
    }
}
