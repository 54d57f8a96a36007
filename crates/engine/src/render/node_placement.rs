//! Where an add-on's pods may run: an AddOnDeploymentConfig's node placement goes into every pod
//! spec.

use serde_json::Value;

/// Puts the node selector and the tolerations of a deployment config into the pod spec of a
/// workload. Both spellings are read.
pub(super) fn apply(manifest: &mut Value, deployment_config: &Value) {
    let spec = deployment_config.get("spec");
    let placement = spec.and_then(|spec| spec.get("nodePlacement"));
    for field in ["nodeSelector", "tolerations"] {
        let given = placement
            .and_then(|placement| placement.get(field))
            .or_else(|| spec.and_then(|spec| spec.get(field)));
        if let Some(given) = given.filter(|given| !given.is_null())
            && let Some(pod_spec) = pod_spec(manifest)
        {
            pod_spec.insert(field.to_owned(), given.clone());
        }
    }
}

/// The pod spec of a workload, made where the template left it out.
fn pod_spec(manifest: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let group = manifest.get("apiVersion")?.as_str()?.split('/').next()?;
    let path: &[&str] = match (group, manifest.get("kind")?.as_str()?) {
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet") | ("batch", "Job") => {
            &["spec", "template", "spec"]
        }
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    };
    let mut at = manifest;
    for key in path {
        at = at.as_object_mut()?.entry(*key).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    at.as_object_mut()
}
