//! Small objects for checks, and accessors for responses.

use serde_json::{Value, json};

pub fn configmap(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub fn labelled(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

pub fn secret(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
}

pub fn lease(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec})
}

/// `object` with `value` at this JSON pointer; creates the objects on the way.
pub fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let mut place = &mut object;
    for key in pointer.split('/').skip(1) {
        place = &mut place[key.replace("~1", "/").as_str()];
    }
    *place = value;
    object
}

/// `object` without its resourceVersion.
pub fn unversioned(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    object
}

pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

#[track_caller]
pub fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_else(|| panic!("no uid in {object}")).to_owned()
}

/// The resourceVersion as text: opaque, except for its order.
#[track_caller]
pub fn rv_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_else(|| panic!("no version in {object}"))
        .to_owned()
}

/// The resourceVersion as a number: kube-apiserver guarantees a decimal since 1.35.
#[track_caller]
pub fn revision_of(object: &Value) -> u64 {
    rv_of(object).parse().unwrap_or_else(|_| panic!("the version of {object} is no decimal"))
}

#[track_caller]
pub fn generation_of(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_else(|| panic!("no generation in {object}"))
}

/// The names in a list, in order.
#[track_caller]
pub fn names_in(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap_or_else(|| panic!("no items in {list}")).iter().map(name_of).collect()
}

/// Adds `owner` as an owner that does not wait for the object.
pub fn owned_by(object: Value, owner: &Value) -> Value {
    let reference = json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    });
    with(object, "/metadata/ownerReferences", json!([reference]))
}
