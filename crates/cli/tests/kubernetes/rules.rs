//! Every CEL rule of the CRDs on the server: valid objects are accepted, invalid ones are rejected
//! with the message of the rule.

use aviary_api::crds;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::server::installed;

#[path = "../../../api/tests/cel_rules/table.rs"]
mod table;

/// The complete object, and its resource.
fn whole(kind: &str, object: &str) -> (ApiResource, bool, DynamicObject) {
    let crd = crds::all().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let gvk = GroupVersionKind::gvk(&crd.spec.group, &crd.spec.versions[0].name, kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &crd.spec.names.plural);
    let mut object: Value = serde_saphyr::from_str(object).unwrap();
    object["apiVersion"] = json!(resource.api_version);
    object["kind"] = json!(kind);
    (resource, crd.spec.scope == "Namespaced", serde_json::from_value(object).unwrap())
}

async fn create(client: &kube::Client, kind: &str, object: &str) -> Result<(), kube::Error> {
    let (resource, namespaced, object) = whole(kind, object);
    let api: Api<DynamicObject> = match namespaced {
        true => Api::namespaced_with(client.clone(), "default", &resource),
        false => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await.map(drop)
}

/// `spec.list[3].name` as `spec.list[].name`.
fn without_indices(path: &str) -> String {
    path.split_inclusive('[').map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_right_is_accepted_and_what_is_wrong_is_rejected_with_the_rules_message() {
    let server = installed("rules");
    let client = server.hub().await.client;
    for (kind, object) in table::accepted() {
        if let Err(error) = create(&client, kind, &object).await {
            panic!("{kind} {object}: {error}");
        }
    }
    for (kind, object, path, message) in table::rejected() {
        let Err(kube::Error::Api(status)) = create(&client, kind, &object).await else {
            panic!("{kind} {object} was let in")
        };
        assert_eq!(status.code, 422, "{kind} {object}: {}", status.message);
        let causes = status.details.map(|details| details.causes).unwrap_or_default();
        let told = causes.iter().any(|cause| {
            // A rule about the whole object has no field.
            cause.message.contains(message) && (path.is_empty() || without_indices(&cause.field) == path)
        });
        assert!(told, "{kind} {object}: not {path}: {message}, but {causes:#?}");
    }
}
