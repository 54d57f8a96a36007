//! What the engine must make of any bytes at all: the bodies of the fuzz targets (`fuzz/`), which
//! the tests run too.

use aviary_api::{
    AddOnDeploymentConfig, AddOnHubConfig, AddOnTemplate, ClusterManagementAddOn, IntOrString,
    ManagedCluster, ManagedClusterAddOn, ManifestWork, Placement, PlacementDecision,
};
use aviary_engine::hash::{canonical, digest, spec_hash};
use aviary_engine::limit::Limit;
use aviary_engine::plan::plan;
use aviary_engine::{duration, invariants, normalise};
use aviary_testing::as_authored;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::story::Story;
use crate::story::rendering::{ready, shape, works};

fn json_of(data: &[u8]) -> Option<Value> {
    serde_json::from_slice(data).ok()
}

/// The canonical text of a value is JSON and its own canonical text; what identifies an object is
/// no part of its hash.
pub(crate) fn hash(data: &[u8]) {
    let Some(mut value) = json_of(data) else { return };
    let text = canonical(&value);
    let back: Value = serde_json::from_str(&text).expect("canonical text is JSON");
    assert_eq!(canonical(&back), text);
    assert_eq!(digest(&back), digest(&value));
    let before = spec_hash(&value);
    if let Value::Object(fields) = &mut value {
        fields.insert("metadata".into(), json!({"labels": {"a": "b"}}));
        fields.insert("status".into(), json!(1));
        assert_eq!(spec_hash(&value), before);
    }
}

/// A limit that can be read is at least one cluster and at most all; a tolerance is at most all.
pub(crate) fn limit(data: &[u8]) {
    let Some(value) = json_of(data) else { return };
    let Ok(given) = serde_json::from_value::<IntOrString>(value) else { return };
    for governed in [0, 1, 2, 7, 99, 100, 101, 20_000] {
        if let Ok(budget) = Limit::budget(&given) {
            assert!((1..=governed.max(1)).contains(&budget.of(governed)), "{given:?} of {governed}");
        }
        if let Ok(tolerance) = Limit::tolerance(&given) {
            assert!(tolerance.of(governed) <= governed.max(1), "{given:?} of {governed}");
        }
    }
    if let IntOrString::String(text) = &given {
        let _ = duration::parse(text);
    }
}

fn read<K: DeserializeOwned>(value: &Value) -> Option<K> {
    serde_json::from_value(value.clone()).ok()
}

/// An object of any kind is read, or refused; an add-on that is read is planned for, and keeps the
/// promises.
pub(crate) fn decode(data: &[u8]) {
    let Some(value) = json_of(data) else { return };
    if !value.is_object() {
        return;
    }
    let _ = normalise::config(&value);
    let _ = normalise::template(&value);
    let _ = read::<AddOnTemplate>(&value);
    let _ = read::<AddOnHubConfig>(&value);
    let _ = read::<AddOnDeploymentConfig>(&value);
    if let Some(cluster) = read::<ManagedCluster>(&value) {
        let _ = normalise::cluster(&cluster);
    }
    if let Some(work) = read::<ManifestWork>(&value) {
        let _ = normalise::work(&work);
    }
    let (placement, decision) = (read::<Placement>(&value), read::<PlacementDecision>(&value));
    if let Some(placement) = placement {
        let _ = normalise::selection(&placement, decision.as_ref());
    }
    let instance = read::<ManagedClusterAddOn>(&value);
    let instance = instance.and_then(|instance| normalise::instance(&instance).ok());
    let addon = read::<ClusterManagementAddOn>(&value).map(|addon| normalise::addon(&addon).0);
    let mut story = Story::new();
    story.run("config A v1\n place prod: a1 a2\n rollout prod config=A\n settle");
    if let Some((instance, _)) = instance
        && story.world.observed.clusters.contains_key(&instance.cluster)
    {
        story.world.observed.instances.insert(instance.cluster.clone(), instance);
    }
    if let Some(addon) = addon {
        story.world.observed.addon = addon;
    }
    for write in plan(&story.world.observed, story.now).writes() {
        let before = story.world.observed.clone();
        story.world.commit(&write);
        let broken = invariants::check(&before, &write, &story.world.observed);
        assert!(broken.is_empty(), "{broken:?} by {write:?}");
    }
}

/// Whatever variables hold, what is rendered has the keys and types of its template (S18).
pub(crate) fn render(data: &[u8]) {
    let Some(value) = json_of(data) else { return };
    let (Some(manifests), deployment) = (value["manifests"].as_array(), &value["deployment"]) else { return };
    if deployment.get("nodePlacement").is_some() {
        // That is there to add keys.
        return;
    }
    let story = ready(&json!(manifests), deployment);
    for work in works(&story.world.observed, &story) {
        let rendered = work["spec"]["workload"]["manifests"].as_array().expect("a list");
        for manifest in rendered {
            let kept = manifests.iter().any(|template| shape(template) == shape(&as_authored(manifest)));
            assert!(kept, "{manifest} has the shape of none of {manifests:?}");
        }
    }
}
