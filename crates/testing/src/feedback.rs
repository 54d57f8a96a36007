use serde_json::{Value, json};

/// `status.resourceStatus` of a work, as an agent reports it whose objects are all healthy or all
/// without a single available pod. Has what the work asks for under Aviary's own names, found by
/// name: it shares no code with what reads it.
pub fn resource_status(work: &Value, healthy: bool) -> Value {
    let configs = work.pointer("/spec/manifestConfigs").and_then(Value::as_array);
    let manifests = work.pointer("/spec/workload/manifests").and_then(Value::as_array);
    let manifests = manifests.map_or(&[][..], Vec::as_slice).iter().enumerate().map(|(ordinal, manifest)| {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
        let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
        let entry = configs.into_iter().flatten().find(|entry| {
            let is = |field: &str, wanted: &str| {
                entry["resourceIdentifier"][field].as_str().unwrap_or_default() == wanted
            };
            is("name", name) && is("namespace", namespace) && is("group", group)
        });
        let rules = entry.and_then(|entry| entry["feedbackRules"].as_array()).into_iter().flatten();
        let asked = rules.filter_map(|rule| rule["jsonPaths"].as_array()).flatten();
        let mut values: Vec<Value> = asked
            .filter_map(|path| {
                let name = path["name"].as_str()?;
                Some(json!({"name": name, "fieldValue": value(name, manifest, healthy)?}))
            })
            .collect();
        let mut rules = entry.and_then(|entry| entry["feedbackRules"].as_array()).into_iter().flatten();
        if rules.any(|rule| rule["type"] == "WellKnownStatus") {
            values.extend(well_known(text("/kind"), healthy));
        }
        json!({
            "resourceMeta": {
                "ordinal": ordinal, "group": group, "version": version, "kind": text("/kind"), "name": name,
                "namespace": namespace,
            },
            "statusFeedback": {"values": values},
            "conditions": [],
        })
    });
    json!({"manifests": manifests.collect::<Vec<_>>()})
}

/// What a real agent reports of Jobs and Pods without being told the paths.
fn well_known(kind: &str, healthy: bool) -> Option<Value> {
    let string =
        |name: &str, text: &str| json!({"name": name, "fieldValue": {"type": "String", "string": text}});
    match kind {
        "Job" if healthy => Some(string("JobComplete", "True")),
        "Pod" => Some(string("PodPhase", if healthy { "Succeeded" } else { "Running" })),
        _ => None,
    }
}

fn value(name: &str, manifest: &Value, healthy: bool) -> Option<Value> {
    let number = |number: i64| Some(json!({"type": "Integer", "integer": number}));
    let string = |text: &str| Some(json!({"type": "String", "string": text}));
    let replicas = manifest.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    match name {
        "aviary-digest" => {
            let annotations = manifest["metadata"]["annotations"].as_object()?;
            let digest = annotations
                .iter()
                .find(|(key, _)| key.starts_with("addon.open-cluster-management.io/digest-"));
            string(digest?.1.as_str()?)
        }
        "aviary-name" => string(manifest["metadata"]["name"].as_str()?),
        "aviary-generation" | "aviary-observed" => number(1),
        "aviary-replicas" | "aviary-desired" | "aviary-total" | "aviary-updated" => number(replicas),
        // Counters of 0 are left out.
        "aviary-available" => healthy.then(|| number(replicas)).flatten(),
        "aviary-phase" if manifest["kind"] == "PersistentVolumeClaim" => string("Bound"),
        "aviary-phase" => string("Running"),
        "aviary-complete" | "aviary-ready" => healthy.then(|| string("True")).flatten(),
        "aviary-established" | "aviary-names-accepted" | "aviary-served" => string("True"),
        _ => None,
    }
}
