//! Pre-delete hooks, and works of another manager.

use aviary_testing::objects as common;
use serde_json::json;

use super::{THREE, TWO, cluster, fleet, hub_config, installed, joined, scenario, small, want};
use crate::agents::Rule::{Evicting, Only, Well};
use crate::objects::{addon, instance, rolling, update_all};
use crate::scenario::{Scenario, Step};
use Step::{Agents, Delete, HandToAnother, Put, Rest};

pub(super) fn all() -> Vec<Scenario> {
    let gone = |name: &'static str| Delete(instance(name, "helloworld", json!({})));
    vec![
        small(
            "works_of_another_manager",
            [installed(TWO, rolling(1)), vec![HandToAnother, Rest]].concat(),
            vec![want("two", rolling(1)), Rest],
        ),
        scenario("hooks_run_before_an_instance_goes", hooked(TWO), vec![gone("c1"), Rest]),
        scenario(
            "hook_is_evicted",
            hooked(TWO),
            vec![Agents(Evicting(&["c1"])), gone("c1"), Rest, Agents(Well), Rest],
        ),
        scenario(
            "hooks_of_a_cluster_that_is_gone",
            hooked(THREE),
            vec![
                Agents(Only(&["c1", "c3"])),
                fleet(&["c1", "c3"]),
                Rest,
                Delete(cluster("c2", json!({}))),
                Rest,
            ],
        ),
        scenario("hooks_run_before_an_addon_goes", hooked(TWO), vec![Delete(addon(&[])), Rest]),
    ]
}

/// A fleet with a template whose Job runs before an instance goes. It has ten minutes, which is
/// longer than any fault lasts, but for those of the clock.
fn hooked(names: &[&'static str]) -> Vec<Step> {
    let hook = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "cleanup", "namespace": "default", "annotations": {
            "addon.open-cluster-management.io/addon-pre-delete": "",
        }},
        "spec": {"template": {"spec": {"containers": [{"name": "cleanup", "image": "v1.0.0"}]}}},
    });
    let template = common::template_of("helloworld", "v1.0.0", &json!([common::manifest("v1.0.0"), hook]));
    let config = vec![Put(template), hub_config("one", "v1.0.0")];
    [config, joined(names), vec![fleet(names), want("one", update_all()), Rest]].concat()
}
