//! What users do: configs and versions, instances of their own, hands in what is the manager's, the
//! end of an add-on.

use serde_json::{Value, json};

use super::{
    FOUR, NONE, THREE, TWO, also, fleet, hub_config, installed, joined, scenario, small, template,
    template_of, versions, want,
};
use crate::agents::Rule::{Failing, Only, Well};
use crate::objects::{
    GROUP, addon, instance, named_addon, object, place, reference, rolling, update_all, within,
};
use crate::scenario::{Scenario, Step};
use Step::{Agents, Delete, MakeAgain, Put, Rest, Wait};

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "config_is_edited_in_place",
            installed(THREE, rolling(1)),
            vec![Agents(Only(&["c1"])), hub_config("one", "v2.0.0"), Rest, Agents(Well), Rest],
        ),
        scenario(
            "config_is_edited_and_edited_back",
            installed(THREE, rolling(1)),
            vec![
                hub_config("one", "v2.0.0"),
                hub_config("one", "v1.0.0"),
                Rest,
                Agents(Only(NONE)),
                hub_config("one", "v2.0.0"),
                Rest,
                hub_config("one", "v1.0.0"),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "config_is_missing_and_comes",
            installed(TWO, rolling(1)),
            vec![want("three", rolling(1)), Rest, template("v3.0.0"), hub_config("three", "v3.0.0"), Rest],
        ),
        scenario(
            "template_is_edited_in_place",
            installed(TWO, rolling(1)),
            vec![Put(edited_template()), Rest],
        ),
        scenario(
            "version_is_published",
            [
                vec![template("v1.0.0")],
                joined(THREE),
                vec![fleet(THREE), Put(addon(&[unversioned(rolling(1))])), Rest],
            ]
            .concat(),
            vec![template("v2.0.0"), Rest],
        ),
        scenario(
            "version_by_shorthand",
            [versions(), joined(TWO), vec![fleet(TWO), Put(addon(&[versioned("v1.0.0")])), Rest]].concat(),
            vec![
                Put(addon(&[versioned("v2.0.0")])),
                Rest,
                Put(addon(&[versioned("v9.0.0")])),
                Rest,
                Put(addon(&[versioned("v1.0.0")])),
                Rest,
            ],
        ),
        scenario(
            "override_during_rollout",
            installed(THREE, rolling(1)),
            vec![
                Agents(Only(NONE)),
                want("two", rolling(1)),
                Rest,
                Put(instance(
                    "c3",
                    "helloworld",
                    json!({"configs": [reference("addonhubconfigs", None, "two")]}),
                )),
                Rest,
                Agents(Well),
                Rest,
                Put(instance("c3", "helloworld", json!({"configs": null}))),
                Rest,
            ],
        ),
        scenario(
            "override_is_missing_and_comes",
            [
                versions(),
                vec![template("v3.0.0"), hub_config("own", "v3.0.0")],
                joined(THREE),
                vec![fleet(THREE), want("one", rolling(1)), Put(overridden("c3")), Rest],
            ]
            .concat(),
            vec![
                Delete(object("AddOnHubConfig", "own", json!({}))),
                Rest,
                want("two", rolling(1)),
                Rest,
                hub_config("own", "v3.0.0"),
                Rest,
            ],
        ),
        scenario(
            "overrides_are_broken_before_a_rollout",
            [installed(FOUR, rolling(2)), vec![template("v3.0.0"), hub_config("own", "v3.0.0")]].concat(),
            vec![
                Agents(Failing(TWO)),
                Put(overridden("c1")),
                Put(overridden("c2")),
                Rest,
                want("two", rolling(2)),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
        scenario(
            "override_that_is_not_allowed",
            installed(TWO, rolling(1)),
            vec![
                Put(instance(
                    "c1",
                    "helloworld",
                    json!({"configs": [
                        {"group": "", "resource": "secrets", "namespace": "kube-system", "name": "token"},
                    ]}),
                )),
                Rest,
                want("two", rolling(1)),
                Rest,
            ],
        ),
        scenario(
            "manual_to_placements",
            [versions(), joined(THREE), vec![fleet(THREE), Put(manual()), Rest]].concat(),
            vec![
                Put(instance("c2", "helloworld", json!({}))),
                Rest,
                want("two", update_all()),
                Rest,
                fleet(&["c1"]),
                Rest,
            ],
        ),
        scenario(
            "placements_to_manual",
            installed(THREE, update_all()),
            vec![Put(manual()), Rest, fleet(&["c1"]), Rest],
        ),
        small(
            "work_is_tampered_with",
            installed(TWO, update_all()),
            vec![
                Put(json!({
                    "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                    "metadata": {"name": "addon-helloworld-deploy-0", "namespace": "c1"},
                    "spec": {"workload": {"manifests": []}},
                })),
                Rest,
                Delete(
                    json!({"kind": "ManifestWork", "metadata": {"name": "addon-helloworld-deploy-0", "namespace": "c2"}}),
                ),
                Rest,
            ],
        )
        // That a settled cluster is healthy again is written after a minute.
        .slowly(),
        small(
            "instance_is_deleted_by_hand",
            installed(TWO, update_all()),
            vec![Delete(instance("c1", "helloworld", json!({}))), Rest],
        ),
        scenario("addon_is_deleted", installed(THREE, update_all()), vec![Delete(addon(&[])), Rest]),
        scenario(
            "addon_comes_again",
            installed(TWO, update_all()),
            vec![Delete(addon(&[])), want("two", update_all()), Rest],
        ),
        // Long enough for the manager to have begun, and too short for it to have heard of what it
        // did when an answer is late.
        scenario(
            "addon_comes_again_within_a_second",
            [versions(), joined(TWO), vec![fleet(TWO)]].concat(),
            vec![
                want("one", update_all()),
                Wait(400),
                Delete(addon(&[])),
                Wait(300),
                want("one", update_all()),
                Rest,
            ],
        )
        .hastily(),
        scenario(
            "instance_is_deleted_while_it_is_written",
            installed(TWO, update_all()),
            vec![
                want("two", update_all()),
                Wait(400),
                Delete(instance("c1", "helloworld", json!({}))),
                Wait(300),
                Delete(instance("c2", "helloworld", json!({}))),
                Rest,
            ],
        )
        .hastily(),
        scenario(
            "instance_is_made_by_hand_while_it_is_deleted",
            installed(TWO, update_all()),
            vec![
                fleet(&["c1"]),
                MakeAgain(instance("c2", "helloworld", json!({}))),
                Rest,
                Delete(instance("c2", "helloworld", json!({}))),
                Rest,
            ],
        )
        .hastily(),
        scenario(
            "two_addons_beside_each_other",
            [
                versions(),
                vec![template_of("other", "v1.0.0"), template_of("other", "v2.0.0")],
                joined(TWO),
                vec![fleet(TWO), want("one", rolling(1)), Put(other("one")), Rest],
            ]
            .concat(),
            vec![Agents(Only(&["c1"])), want("two", rolling(1)), Put(other("two")), Rest, Agents(Well), Rest],
        ),
        scenario(
            "variables_and_node_placement",
            [
                vec![Put(variables_template())],
                joined(TWO),
                vec![fleet(TWO), Put(variables("plain")), Put(with_variables()), Rest],
            ]
            .concat(),
            vec![Put(variables("v5\",\"pwned\":\"yes")), Rest],
        ),
        scenario(
            "strategy_changes_during_rollout",
            installed(FOUR, rolling(1)),
            vec![
                Agents(Only(NONE)),
                want("two", rolling(1)),
                Rest,
                want("two", also(update_all(), json!({"rollingUpdate": null}))),
                Rest,
                Agents(Well),
                Rest,
            ],
        ),
    ]
}

/// The instance on a cluster, with a config of its own.
fn overridden(cluster: &str) -> Value {
    instance(cluster, "helloworld", json!({"configs": [reference("addonhubconfigs", None, "own")]}))
}

fn edited_template() -> Value {
    let Put(mut template) = template("v1.0.0") else { unreachable!() };
    template["spec"]["agentSpec"]["workload"]["manifests"][0]["data"]["version"] = json!("v1.0.0-mended");
    template
}

fn manual() -> Value {
    object(
        "ClusterManagementAddOn",
        "helloworld",
        json!({"spec": {"installStrategy": {"type": "Manual", "placements": null}}}),
    )
}

fn unversioned(strategy: Value) -> Value {
    json!({"name": "fleet", "namespace": "default", "rolloutStrategy": strategy})
}

fn versioned(version: &str) -> Value {
    also(unversioned(rolling(1)), json!({"addonTemplate": {"desiredVersion": version}}))
}

fn other(config: &str) -> Value {
    named_addon("other", &[place("fleet", config, rolling(1))])
}

fn variables_template() -> Value {
    object(
        "AddOnTemplate",
        "helloworld-v1.0.0",
        json!({"spec": {
            "addonName": "helloworld", "version": "v1.0.0", "agentSpec": {"workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent", "namespace": "default"},
                    "data": {"greeting": "{{GREETING}}"}},
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "default"},
                    "spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent"}]}}}},
            ]}},
        }}),
    )
}

fn variables(greeting: &str) -> Value {
    within(
        "default",
        object(
            "AddOnDeploymentConfig",
            "settings",
            json!({"spec": {
                "customizedVariables": [{"name": "GREETING", "value": greeting}],
                "nodePlacement": {"nodeSelector": {"role": "edge"}},
            }}),
        ),
    )
}

fn with_variables() -> Value {
    let config = json!({"group": GROUP, "resource": "addondeploymentconfigs", "namespace": "default", "name": "settings"});
    addon(&[also(unversioned(rolling(1)), json!({"configs": [config]}))])
}
