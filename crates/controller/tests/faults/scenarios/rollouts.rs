//! Rollouts of every type, changes in their middle, and the ways back.

use serde_json::json;

use super::{
    FOUR, NONE, THREE, TWO, also, decision, fleet, hub_config, installed, joined, placement, scenario, small,
    template, versions, want, want_behind, with_canary,
};
use crate::agents::Rule::{Failing, Only, Unready, Well};
use crate::objects::{addon, place, rolling, update_all};
use crate::scenario::{Scenario, Step};
use Step::{Agents, Put, PutUnchecked, Rest};

pub(super) fn all() -> Vec<Scenario> {
    vec![
        small(
            "fresh_install",
            [versions(), joined(TWO), vec![fleet(TWO)]].concat(),
            vec![want("one", update_all()), Rest],
        ),
        scenario(
            "fresh_install_of_four",
            [versions(), joined(FOUR), vec![fleet(FOUR)]].concat(),
            vec![want("one", rolling("25%")), Rest],
        )
        .cold(),
        scenario("update_all", installed(FOUR, update_all()), vec![want("two", update_all()), Rest]),
        small("rolling_one_by_one", installed(TWO, rolling(1)), vec![want("two", rolling(1)), Rest]),
        scenario("rolling_half", installed(FOUR, rolling("50%")), vec![want("two", rolling("50%")), Rest]),
        scenario(
            "rolling_change",
            installed(THREE, rolling(1)),
            vec![
                Agents(Only(&["c1"])),
                want("two", rolling(1)),
                Rest,
                template("v3.0.0"),
                hub_config("three", "v3.0.0"),
                want("three", rolling(1)),
                Rest,
                Agents(Well),
                Rest,
            ],
        )
        .cold(),
        small(
            "rolling_back_in_the_middle",
            [installed(TWO, rolling(1)), vec![Agents(Only(&["c1"])), want("two", rolling(1)), Rest]].concat(),
            vec![want("one", rolling(1)), Rest, Agents(Well), Rest],
        ),
        scenario(
            "limit_lowered",
            installed(FOUR, rolling(3)),
            vec![
                Agents(Only(NONE)),
                want("two", rolling(3)),
                Rest,
                want("two", rolling(1)),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario("canary_upgrade", with_canary(THREE), vec![want_behind("two"), Rest]),
        scenario(
            "canary_change",
            with_canary(FOUR),
            vec![
                Agents(Only(&["c1", "c2"])),
                want_behind("two"),
                Rest,
                want_behind("one"),
                Rest,
                Agents(Well),
                Rest,
            ],
        )
        .cold(),
        scenario(
            "canary_newer_during_rollout",
            with_canary(THREE),
            vec![
                Agents(Only(&["c1"])),
                want_behind("two"),
                Rest,
                template("v3.0.0"),
                hub_config("three", "v3.0.0"),
                want_behind("three"),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "canary_back_before_it_passed",
            with_canary(THREE),
            vec![Agents(Only(NONE)), want_behind("two"), Rest, want_behind("one"), Rest, Agents(Well), Rest],
        ),
        scenario(
            "canary_fails_and_is_taken_back",
            with_canary(THREE),
            vec![
                Agents(Failing(&["c1"])),
                want_behind("two"),
                Rest,
                want_behind("one"),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "canary_never_gets_ready",
            with_canary(THREE),
            vec![
                Agents(Unready(&["c1"])),
                want_behind("two"),
                Rest,
                want_behind("one"),
                Rest,
                Agents(Well),
                Rest,
            ],
        )
        .slowly(),
        scenario(
            "canary_back_when_complete",
            [with_canary(THREE), vec![want_behind("two"), Rest]].concat(),
            vec![want_behind("one"), Rest],
        ),
        scenario(
            "canary_fails_what_was_withdrawn",
            [with_canary(THREE), vec![want_behind("two"), Rest]].concat(),
            vec![
                want_behind("one"),
                Rest,
                Agents(Failing(&["c1"])),
                want_behind("two"),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "paused_and_resumed",
            installed(THREE, rolling(1)),
            vec![
                Agents(Only(&["c1"])),
                want("two", rolling(1)),
                Rest,
                want("two", also(rolling(1), json!({"paused": true}))),
                Rest,
                Agents(Well),
                Rest,
                want("two", also(rolling(1), json!({"paused": false}))),
                Rest,
            ],
        ),
        scenario(
            "failures_halt",
            installed(FOUR, rolling(1)),
            vec![
                Agents(Failing(&["c1", "c2"])),
                want("two", also(rolling(1), json!({"maxFailures": 1}))),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        small(
            "soak",
            installed(TWO, rolling(1)),
            vec![want("two", also(rolling(1), json!({"minSuccessTime": "30s"}))), Rest],
        )
        .slowly(),
        scenario(
            "deadline",
            installed(THREE, rolling(1)),
            vec![
                Agents(Only(&["c2", "c3"])),
                want("two", also(rolling(1), json!({"progressDeadline": "60s", "maxFailures": 1}))),
                Rest,
                Agents(Well),
                Rest,
            ],
        )
        .slowly(),
        scenario(
            "decision_groups",
            [
                versions(),
                joined(FOUR),
                groups(&[&["c1"], &["c2", "c3"], &["c4"]]),
                vec![want("one", per_group()), Rest],
            ]
            .concat(),
            vec![Agents(Only(&["c1", "c2"])), want("two", per_group()), Rest, Agents(Well), Rest],
        ),
        scenario(
            "limit_that_cannot_be_read",
            [
                installed(THREE, rolling(1)),
                vec![
                    PutUnchecked(
                        "clustermanagementaddons.addon.open-cluster-management.io",
                        addon(&[place("fleet", "one", rolling(0))]),
                    ),
                    Rest,
                ],
            ]
            .concat(),
            vec![Agents(Only(NONE)), hub_config("one", "v2.0.0"), Rest],
        ),
    ]
}

fn per_group() -> serde_json::Value {
    json!({"type": "ProgressivePerGroup", "progressivePerGroup": {}})
}

/// A placement whose decisions are in groups.
fn groups(groups: &[&[&str]]) -> Vec<Step> {
    let group = |index: usize| {
        let mut page = decision(&format!("fleet-{index}"));
        page["metadata"]["labels"] = json!({
            "cluster.open-cluster-management.io/placement": "fleet",
            "cluster.open-cluster-management.io/decision-group-index": index.to_string(),
            "cluster.open-cluster-management.io/decision-group-name": format!("group{index}"),
        });
        let decisions: Vec<_> =
            groups[index].iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        page["status"] = json!({"decisions": decisions});
        Put(page)
    };
    let mut all = placement("fleet");
    all["status"] =
        json!({"numberOfSelectedClusters": groups.iter().map(|group| group.len()).sum::<usize>()});
    (0..groups.len()).map(group).chain([Put(all)]).collect()
}
