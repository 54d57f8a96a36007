//! The objects of the demo: the files of `examples/canary`, with the version of each step.

use anyhow::{Context as _, anyhow};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};

const CONFIGS: &str = include_str!("../../../../../examples/canary/configs.yaml");
const PLACEMENTS: &str = include_str!("../../../../../examples/canary/placements.yaml");
const TEMPLATES: &str = include_str!("../../../../../examples/canary/templates.yaml");

pub(super) const ADDON: &str = "helloworld";
pub(super) const FLEET: &str = "aws-placement";
pub(super) const CANARY: &str = "canary-placement";
/// Of each placement, in percent.
pub(super) const BUDGET: usize = 25;

/// How the fleet is upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    Rolling,
    /// As rolling, after the canary is healthy on the same version.
    BehindCanary,
}

/// The objects that must exist before the add-on.
pub(super) fn beginning() -> anyhow::Result<Vec<Value>> {
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "open-cluster-management"}}),
    ];
    objects.extend(documents(PLACEMENTS)?);
    objects
        .extend(documents(CONFIGS)?.into_iter().filter(|object| object["kind"] == "AddOnDeploymentConfig"));
    Ok(objects)
}

/// The objects that publish a version: its template, and a config that selects it.
pub(super) fn release(version: &str) -> anyhow::Result<Vec<Value>> {
    const EXAMPLE: &str = "v0.10.0";
    let text = TEMPLATES.split("\n---\n").find(|text| text.contains(EXAMPLE));
    let text = text.context("the built-in example has no template")?.replace(EXAMPLE, version);
    let mut objects = documents(&text)?;
    objects.push(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnHubConfig",
        "metadata": {"name": config(version)}, "spec": {"desiredVersion": version},
    }));
    Ok(objects)
}

/// The name of the config that selects a version.
pub(super) fn config(version: &str) -> String {
    format!("{ADDON}-{version}")
}

/// The add-on at a version.
pub(super) fn addon(version: &str, strategy: Strategy) -> Value {
    let group = "addon.open-cluster-management.io";
    let configs = json!([{"group": group, "resource": "addonhubconfigs", "name": config(version)}]);
    let limit = format!("{BUDGET}%");
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": limit}});
    let fleet = match strategy {
        Strategy::Rolling => rolling.clone(),
        Strategy::BehindCanary => json!({
            "type": "RollingUpdateWithCanary",
            "rollingUpdateWithCanary": {
                "placement": {"name": CANARY, "namespace": "default"}, "maxConcurrentlyUpdating": limit,
            },
        }),
    };
    let placement = |name: &str, rollout: &Value| json!({"name": name, "namespace": "default", "configs": configs, "rolloutStrategy": rollout});
    json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "ClusterManagementAddOn", "metadata": {"name": ADDON},
        "spec": {
            "addOnMeta": {"displayName": "Hello world", "description": "Says hello from every cluster"},
            "supportedConfigs": [
                {"group": group, "resource": "addonhubconfigs"}, {"group": group, "resource": "addondeploymentconfigs"},
            ],
            "defaultConfigs": [{
                "group": group, "resource": "addondeploymentconfigs", "namespace": "open-cluster-management", "name": ADDON,
            }],
            // The canary is listed later, so it governs clusters that both select.
            "installStrategy": {"type": "Placements", "placements": [placement(FLEET, &fleet), placement(CANARY, &rolling)]},
        },
    })
}

/// Applies an object.
pub(super) async fn put(client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &kind),
        namespace => Api::namespaced_with(client.clone(), namespace, &kind),
    };
    let name = text("/metadata/name");
    let params = PatchParams::apply("aviary-demo").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(drop).with_context(|| format!("failed to apply {} {name}", text("/kind")))
}

fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    text.split("\n---\n")
        .map(|document| {
            serde_saphyr::from_str(document)
                .map_err(|error| anyhow!("the built-in example is invalid: {error}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_a_template_and_a_config_of_that_version() {
        let objects = release("v9.9.9").unwrap();
        let named: Vec<String> = objects
            .iter()
            .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]))
            .collect();
        assert_eq!(
            named,
            [r#""AddOnTemplate" "helloworld-v9.9.9""#, r#""AddOnHubConfig" "helloworld-v9.9.9""#]
        );
        assert_eq!(objects[0]["spec"]["version"], "v9.9.9");
    }

    #[test]
    fn the_beginning_has_a_namespace_two_placements_and_the_settings() {
        let kinds: Vec<Value> = beginning().unwrap().iter().map(|object| object["kind"].clone()).collect();
        assert_eq!(kinds, ["Namespace", "Placement", "Placement", "AddOnDeploymentConfig"]);
    }
}
