//! Manifests of the test workload (`tools/workload`), which behaves as its arguments say.

use serde_json::{Value, json};

/// The pods of a workload. The version is the tag of the image. On a busy machine a probe may be
/// slow, and a pod that was ready stays ready.
fn pods(app: &str, version: &str, arguments: &[&str]) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "workload", "image": format!("aviary.test/workload:{version}"), "imagePullPolicy": "Never",
                "args": arguments,
                "readinessProbe": {
                    "httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 3,
                },
                "resources": {"limits": {"memory": "48Mi"}, "requests": {"cpu": "1m", "memory": "8Mi"}},
            }],
        },
    })
}

fn workload(kind: &str, app: &str, version: &str, arguments: &[&str]) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": app, "namespace": "{{INSTALL_NAMESPACE}}"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "template": pods(app, version, arguments)},
    })
}

/// Two replicas, and a deadline of the Deployment's own.
pub(crate) fn deployment(app: &str, version: &str, arguments: &[&str]) -> Value {
    let mut object = workload("Deployment", app, version, arguments);
    object["spec"]["replicas"] = 2.into();
    object["spec"]["progressDeadlineSeconds"] = 20.into();
    object
}

pub(crate) fn daemon_set(app: &str, version: &str, argument: &str) -> Value {
    workload("DaemonSet", app, version, &[argument])
}

pub(crate) fn stateful_set(app: &str, version: &str, argument: &str) -> Value {
    let mut object = workload("StatefulSet", app, version, &[argument]);
    object["spec"]["replicas"] = 2.into();
    object["spec"]["serviceName"] = app.into();
    object
}

/// A Job of which every version has its own.
pub(crate) fn job(app: &str, version: &str, arguments: &[&str]) -> Value {
    let mut template = pods(app, version, arguments);
    template["spec"]["restartPolicy"] = "Never".into();
    template["spec"]["containers"][0].as_object_mut().unwrap().remove("readinessProbe");
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": format!("{app}-{{{{VERSION}}}}"), "namespace": "{{INSTALL_NAMESPACE}}"},
        "spec": {"backoffLimit": 0, "template": template},
    })
}
