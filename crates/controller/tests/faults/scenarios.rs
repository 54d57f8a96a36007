//! The scenarios: small fleets, and what happens to them.

use serde_json::{Value, json};

use crate::agents::Rule;
use crate::objects::{addon, behind, object, place, rolling, update_all};
use crate::scenario::{Scenario, Step};
use Step::{Agents, Join, Put, Rest, Select};

fn template(version: &str) -> Step {
    Put(object(
        "AddOnTemplate",
        &format!("helloworld-{version}"),
        json!({"spec": {"addonName": "helloworld", "version": version, "agentSpec": {"workload": {"manifests": [{
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent", "namespace": "{{INSTALL_NAMESPACE}}"},
            "data": {"cluster": "{{CLUSTER_NAME}}", "version": version},
        }]}}}}),
    ))
}

fn hub_config(name: &str, version: &str) -> Step {
    Put(object("AddOnHubConfig", name, json!({"spec": {"desiredVersion": version}})))
}

/// Two versions, and a config for each: `one` and `two`.
fn versions() -> Vec<Step> {
    vec![template("v1.0.0"), template("v2.0.0"), hub_config("one", "v1.0.0"), hub_config("two", "v2.0.0")]
}

fn joined(names: &[&'static str]) -> Vec<Step> {
    names.iter().map(|name| Join(name)).collect()
}

const THREE: &[&str] = &["c1", "c2", "c3"];
const FOUR: &[&str] = &["c1", "c2", "c3", "c4"];

/// A fleet with `one` everywhere, placed by `fleet` with this strategy.
fn installed(names: &[&'static str], strategy: Value) -> Vec<Step> {
    [versions(), joined(names), vec![Select("fleet", names.to_vec()), want("one", strategy), Rest]].concat()
}

fn want(config: &str, strategy: Value) -> Step {
    Put(addon(&[place("fleet", config, strategy)]))
}

/// A fleet with `one` everywhere, of which `fleet` waits for `canary`, which is `c1`.
fn with_canary(names: &[&'static str]) -> Vec<Step> {
    [
        versions(),
        joined(names),
        vec![Select("fleet", names.to_vec()), Select("canary", vec!["c1"]), want_behind("one"), Rest],
    ]
    .concat()
}

fn want_behind(config: &str) -> Step {
    Put(addon(&[place("fleet", config, behind("canary", 1)), place("canary", config, rolling(1))]))
}

pub(crate) fn all() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "fresh_install",
            given: [versions(), joined(THREE), vec![Select("fleet", THREE.to_vec())]].concat(),
            when: vec![want("one", update_all()), Rest],
            pairs: true,
        },
        Scenario {
            name: "rolling_one_by_one",
            given: installed(THREE, rolling(1)),
            when: vec![want("two", rolling(1)), Rest],
            pairs: true,
        },
        Scenario {
            name: "canary_change",
            given: with_canary(FOUR),
            when: vec![
                Agents(Rule::Only(&["c1", "c2"])),
                want_behind("two"),
                Rest,
                want_behind("one"),
                Rest,
                Agents(Rule::Well),
                Rest,
            ],
            pairs: false,
        },
    ]
}
