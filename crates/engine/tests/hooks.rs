//! Pre-delete hooks (rules, 6.5): what runs when an instance is deleted, and never before.

use crate::story::rendering::{ready, works};
use serde_json::{Value, json};

/// A Job that wipes what the agent leaves behind.
fn hook(kind: &str, metadata: Value) -> Value {
    let version = if kind == "Job" { "batch/v1" } else { "v1" };
    let mut hook = json!({
        "apiVersion": version, "kind": kind, "metadata": { "name": "cleanup", "namespace": "{{INSTALL_NAMESPACE}}" },
        "spec": {},
    });
    for (key, value) in metadata.as_object().expect("an object") {
        hook["metadata"][key] = value.clone();
    }
    hook
}

fn agent() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "agent", "namespace": "{{INSTALL_NAMESPACE}}" },
        "spec": {},
    })
}

fn kinds(works: &[Value]) -> Vec<String> {
    let manifests = works.iter().flat_map(|work| work["spec"]["workload"]["manifests"].as_array());
    let kind = |manifest: &Value| {
        format!(
            "{} {}",
            manifest["kind"].as_str().unwrap_or_default(),
            manifest["metadata"]["name"].as_str().unwrap_or_default()
        )
    };
    manifests.flatten().map(kind).collect()
}

#[test]
fn a_hook_is_never_part_of_what_is_installed() {
    let annotated = json!({ "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } });
    let labelled = json!({ "labels": { "open-cluster-management.io/addon-pre-delete": "" } });
    for (kind, marks) in [("Job", &annotated), ("Pod", &annotated), ("Job", &labelled), ("Pod", &labelled)] {
        for manifests in
            [json!([agent(), hook(kind, marks.clone())]), json!([hook(kind, marks.clone()), agent()])]
        {
            let story = ready(&manifests, &json!({}));
            let written = works(&story.world.observed, &story);
            assert_eq!(kinds(&written), ["Deployment agent"], "{kind} {marks}");
        }
    }
    // What is no Job or Pod is installed, whatever it carries.
    let mut settings = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" } });
    settings["metadata"]["annotations"] = annotated["annotations"].clone();
    let story = ready(&json!([settings]), &json!({}));
    assert_eq!(kinds(&works(&story.world.observed, &story)), ["ConfigMap settings"]);
}

#[test]
fn the_deploy_work_of_a_template_with_a_hook_has_everything_else() {
    let marks = json!({ "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "true" } });
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "setup" }, "spec": {} });
    let with = ready(&json!([agent(), hook("Job", marks), job]), &json!({}));
    assert_eq!(kinds(&works(&with.world.observed, &with)), ["Deployment agent", "Job setup"]);
    let without = ready(&json!([agent(), job]), &json!({}));
    let spec = |story: &crate::story::Story| works(&story.world.observed, story)[0]["spec"].clone();
    assert_eq!(spec(&with), spec(&without), "the hook leaves no trace in it");
}

#[test]
fn a_template_of_nothing_but_hooks_is_named() {
    let marks = json!({ "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } });
    let mut story = ready(&json!([hook("Job", marks)]), &json!({}));
    story.run("show a1");
    assert!(
        story.told.contains("it has only pre-delete hooks: add what is to be installed"),
        "{}",
        story.told
    );
}
