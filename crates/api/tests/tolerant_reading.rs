//! A stored object that no API server would let in today is read all the same.

use aviary_api::{
    AddOnDeploymentConfig, AddOnTemplate, ClusterManagementAddOn, Condition, IntOrString, ManagedCluster,
    ManagedClusterAddOn, ManifestWork, Placement, PlacementDecision, crds,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap_or_else(|error| panic!("{error}"))
}

fn add_on_with_limit(limit: &Value) -> Value {
    json!({
        "metadata": { "name": "helloworld" },
        "spec": { "installStrategy": { "type": "Placements", "placements": [{
            "name": "aws", "namespace": "default",
            "rolloutStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxConcurrentlyUpdating": limit } },
        }] } },
    })
}

fn limit_of(add_on: &ClusterManagementAddOn) -> Option<IntOrString> {
    let strategy = add_on.spec.install_strategy.as_ref()?.placements.first()?.rollout_strategy.as_ref()?;
    strategy.rolling_update.as_ref()?.max_concurrently_updating.clone()
}

#[test]
fn any_limit_is_kept_as_it_stands() {
    let limits = [
        (json!(5), IntOrString::Int(5)),
        (json!(-1), IntOrString::Int(-1)),
        (json!("25%"), IntOrString::from("25%")),
        (json!("NaN%"), IntOrString::from("NaN%")),
        (json!(2_147_483_648_i64), IntOrString::Int(2_147_483_648)),
        (json!(9_223_372_036_854_775_808_u64), IntOrString::Other(json!(9_223_372_036_854_775_808_u64))),
        (json!(1e30), IntOrString::Other(json!(1e30))),
        (json!(1.5), IntOrString::Other(json!(1.5))),
        (json!(true), IntOrString::Other(json!(true))),
        (json!({ "a": [1] }), IntOrString::Other(json!({ "a": [1] }))),
    ];
    for (stored, expected) in limits {
        let add_on: ClusterManagementAddOn = read(add_on_with_limit(&stored));
        assert_eq!(limit_of(&add_on), Some(expected));
        let back = serde_json::to_value(&add_on).unwrap();
        let path = "/spec/installStrategy/placements/0/rolloutStrategy/rollingUpdate/maxConcurrentlyUpdating";
        assert_eq!(back.pointer(path), Some(&stored));
    }
    assert_eq!(limit_of(&read(add_on_with_limit(&Value::Null))), None);
}

#[test]
fn an_unknown_value_of_an_enum_is_kept() {
    let add_on: ClusterManagementAddOn = read(json!({
        "metadata": {},
        "spec": { "installStrategy": { "type": "Telepathy", "placements": [
            { "name": "a", "namespace": "b", "rolloutStrategy": { "type": "Yolo" } },
        ] } },
    }));
    let strategy = add_on.spec.install_strategy.unwrap();
    assert_eq!(strategy.type_.as_deref(), Some("Telepathy"));
    assert_eq!(strategy.placements[0].rollout_strategy.as_ref().unwrap().type_.as_deref(), Some("Yolo"));
}

#[test]
fn unknown_fields_are_passed_over() {
    let instance: ManagedClusterAddOn = read(json!({
        "metadata": { "name": "a" }, "surprise": 1,
        "spec": { "surprise": { "deep": [1, 2] }, "configs": [{ "resource": "r", "name": "n", "surprise": null }] },
        "status": { "surprise": true },
    }));
    assert_eq!(instance.spec.configs[0].name, "n");
}

#[test]
fn a_condition_needs_nothing() {
    for (stored, time) in [
        (json!({}), None),
        (json!({ "type": "Available", "status": "True" }), None),
        (json!({ "type": "Available", "lastTransitionTime": null }), None),
        (json!({ "type": "Available", "lastTransitionTime": 12 }), None),
        (json!({ "type": "Available", "lastTransitionTime": "yesterday" }), None),
        (json!({ "lastTransitionTime": "2022-11-02T05:48:12Z" }), Some("2022-11-02T05:48:12Z")),
    ] {
        let condition: Condition = read(stored);
        assert_eq!(condition.last_transition().map(|time| time.to_string()).as_deref(), time);
    }
}

#[test]
fn a_generation_is_clamped_to_what_fits() {
    for (stored, read_as) in [
        (json!(1_000_000_000_000_000_000_i64), Some(1_000_000_000_000_000_000)),
        (json!(18_446_744_073_709_551_615_u64), Some(i64::MAX)),
        (json!(-1e300), Some(i64::MIN)),
        (json!(2.5), Some(2)),
        (json!("2"), None),
        (Value::Null, None),
    ] {
        let condition: Condition = read(json!({ "observedGeneration": stored }));
        assert_eq!(condition.observed_generation, read_as, "{stored}");
    }
}

#[test]
fn null_is_the_same_as_nothing() {
    let add_on: ClusterManagementAddOn = read(json!({
        "metadata": {},
        "spec": {
            "addOnMeta": null, "defaultConfigs": null, "supportedConfigs": null, "addOnConfiguration": null,
            "installStrategy": { "type": null, "labelSelector": null, "placements": [
                { "name": null, "namespace": null, "configs": null, "rolloutStrategy": null, "addonTemplate": null },
            ] },
        },
        "status": { "supportedVersions": null, "installProgression": null, "conditions": null },
    }));
    assert_eq!(add_on.spec.install_strategy.unwrap().placements.len(), 1);

    let instance: ManagedClusterAddOn =
        read(json!({ "metadata": {}, "spec": { "configs": null }, "status": null }));
    assert_eq!(instance.spec.configs, []);
    let config: AddOnDeploymentConfig =
        read(json!({ "metadata": {}, "spec": { "customizedVariables": [{ "name": "A", "value": null }] } }));
    assert_eq!(config.spec.customized_variables[0].value, "");
    let cluster: ManagedCluster = read(json!({
        "metadata": {}, "spec": { "hubAcceptsClient": null, "taints": [{ "key": "k", "effect": "NoSelect", "timeAdded": null }] },
    }));
    assert!(!cluster.spec.hub_accepts_client);
    let decision: PlacementDecision = read(json!({ "metadata": {}, "status": { "decisions": null } }));
    assert_eq!(decision.status.unwrap().decisions, []);
}

#[test]
fn an_object_without_a_spec_is_read() {
    let bare = json!({ "metadata": { "name": "bare" } });
    assert_eq!(read::<ClusterManagementAddOn>(bare.clone()).spec, Default::default());
    assert_eq!(read::<ManagedClusterAddOn>(bare.clone()).spec, Default::default());
    assert_eq!(read::<AddOnTemplate>(bare.clone()).spec, Default::default());
    assert_eq!(read::<Placement>(bare.clone()).spec, Default::default());
    assert_eq!(read::<ManifestWork>(bare).spec.manifests(), [] as [Value; 0]);
}

#[test]
fn a_decision_is_written_without_a_spec() {
    let written = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": { "name": "aws-decision-1" },
        "status": { "decisions": [{ "clusterName": "cluster1", "reason": "" }] },
    });
    let decision: PlacementDecision = read(written.clone());
    assert_eq!(serde_json::to_value(decision).unwrap(), written);
    let crd = crds::all().into_iter().find(|crd| crd.spec.names.kind == "PlacementDecision").unwrap();
    let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    assert!(!schema.properties.as_ref().unwrap().contains_key("spec"));
}

#[test]
fn a_manifest_is_kept_to_the_letter() {
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "creationTimestamp": null },
        "data": { "big": 18_446_744_073_709_551_615_u64, "empty": [], "none": null, "text": "{{CLUSTER_NAME}}" },
    });
    let work: ManifestWork =
        read(json!({ "metadata": {}, "spec": { "workload": { "manifests": [manifest.clone()] } } }));
    assert_eq!(work.spec.manifests(), [manifest]);
}
