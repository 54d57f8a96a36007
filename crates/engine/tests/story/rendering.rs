//! Worlds that are about what is rendered.

use aviary_engine::observed::Observed;
use aviary_engine::plan::{Write, plan};
use serde_json::{Value, json};

use super::Story;

/// A world with one cluster, one template of these manifests and a deployment config of these
/// variables, told and ready to be rendered.
pub(crate) fn ready(manifests: &Value, deployment: &Value) -> Story {
    let mut story = Story::new();
    story.put_template(&json!({
        "metadata": { "name": "tpl" },
        "spec": { "addonName": "helloworld", "version": "v1.0.0", "agentSpec": { "workload": { "manifests": manifests } } },
    }));
    story.put_config("addondeploymentconfigs", Some("default"), "deploy", &json!({ "spec": deployment }));
    story.run("place prod: a1\n rollout prod deploy=default/deploy\n pass 2");
    story
}

/// The works that the next pass writes, as objects.
pub(crate) fn works(observed: &Observed, story: &Story) -> Vec<Value> {
    let writes = plan(observed, story.now).writes();
    writes
        .filter_map(|write| if let Write::Work(work) = write { Some(work.object()) } else { None })
        .collect()
}

/// The keys and types of a value, without its texts.
pub(crate) fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, field)| (key.clone(), shape(field))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(shape).collect()),
        Value::String(_) => json!("text"),
        other => other.clone(),
    }
}
