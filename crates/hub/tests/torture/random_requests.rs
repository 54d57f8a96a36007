//! Thousands of unusual requests: the function of the fuzz target, on its corpus, on mutations of
//! it, and on random requests.

use aviary_hub::{Hub, HubOptions};
use aviary_testing::{Random, mutated};
use axum::body::Body;
use http::Request;
use proptest::prelude::*;
use proptest::sample::select;

use crate::fuzz;

const SEQUENCES: u32 = 1_000;
const MUTATIONS: usize = 15_000;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/request");
    let mut inputs: Vec<(String, Vec<u8>)> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn every_input_of_the_corpus_is_a_request_and_gets_a_sound_answer() {
    let inputs = corpus();
    assert!(inputs.len() >= 20);
    for (name, input) in inputs {
        assert!(fuzz::read(&input).is_some(), "{name} is no request");
        fuzz::run(&input);
    }
}

#[test]
fn mutations_of_the_corpus_get_sound_answers() {
    let inputs: Vec<Vec<u8>> = corpus().into_iter().map(|(_, input)| input).collect();
    let mut random = Random::new(5);
    for _ in 0..MUTATIONS {
        fuzz::run(&mutated(&inputs, &mut random));
    }
}

/// A segment of a path: often a meaningful one.
fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(vec!["api", "apis", "v1", "namespaces", "default", "configmaps", "secrets", "events", "a", "b",
            "apiextensions.k8s.io", "customresourcedefinitions", "coordination.k8s.io", "leases", "status",
            "finalize", "openapi", "v3", "v2", "version", "livez", "authorization.k8s.io",
            "selfsubjectaccessreviews", "events.k8s.io", "apps", "controllerrevisions", "ws.g.io", "g.io"])
            .prop_map(str::to_owned),
        1 => select(vec!["", ".", "..", "%2e%2e", "%00", "%2F", "%", "%zz", "%ff", "A", "*", "'", "a b"])
            .prop_map(|odd| odd.replace(' ', "%20")),
        1 => "[a-z0-9%._~-]{1,300}",
    ]
}

/// A path, mostly to objects.
fn path() -> impl Strategy<Value = String> {
    let objects = (select(vec!["configmaps", "secrets", "events", "serviceaccounts", "nothing"]), segment())
        .prop_map(|(plural, name)| format!("/api/v1/namespaces/default/{plural}/{name}"));
    let lists = select(vec![
        "/api/v1/namespaces",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/default/configmaps",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/api/v1/configmaps",
        "/api/v1/events",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        "/apis/apps/v1/controllerrevisions",
    ]);
    let random = prop::collection::vec(segment(), 0..8).prop_map(|parts| format!("/{}", parts.join("/")));
    prop_oneof![3 => objects, 3 => lists.prop_map(str::to_owned), 2 => random]
}

fn query() -> impl Strategy<Value = String> {
    let name = select(vec![
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "watch",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "timeoutSeconds",
        "dryRun",
        "fieldValidation",
        "fieldManager",
        "force",
        "propagationPolicy",
        "includeObject",
        "pretty",
        "gracePeriodSeconds",
        "orphanDependents",
    ]);
    let value = prop_oneof![
        6 => select(vec!["", "0", "1", "-1", "true", "false", "18446744073709551616", "99999999999", "All", "Exact",
            "NotOlderThan", "Strict", "Warn", "Foreground", "Orphan", "a=b", "a!=b", "a%20in%20(b,c)", "!a", "((",
            "metadata.name=a", "spec.x=y", "None", "Object", "eyJ9", "%ff%fe", "a%00b"])
            .prop_map(str::to_owned),
        1 => "[ -~]{0,60}".prop_map(|text| text.replace(['#', ' ', '"', '<', '>', '`', '{', '}', '\\', '^', '|'], "+")),
    ];
    let pair = (name, value).prop_map(|(name, value)| format!("{name}={value}"));
    prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.join("&"))
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        select(vec![
            "a",
            "b",
            "",
            "v1",
            "ConfigMap",
            "Namespace",
            "default",
            "1",
            "2024-01-01T00:00:00Z",
            "\u{0}",
            "é"
        ])
        .prop_map(Into::into),
    ];
    let field = select(vec![
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "uid",
        "resourceVersion",
        "generateName",
        "deletionTimestamp",
        "managedFields",
        "data",
        "binaryData",
        "stringData",
        "spec",
        "status",
        "apiVersion",
        "kind",
        "op",
        "path",
        "from",
        "value",
        "$patch",
        "type",
        "immutable",
        "involvedObject",
        "versions",
        "names",
        "group",
        "scope",
        "schema",
        "openAPIV3Schema",
        "properties",
        "generation",
        "creationTimestamp",
        "selfLink",
        "preconditions",
        "propagationPolicy",
        "items",
    ]);
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::hash_map(field.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let named = json().prop_map(|rest| {
        let mut object = serde_json::json!({"metadata": {"name": "a"}});
        match rest {
            serde_json::Value::Object(fields) => object.as_object_mut().unwrap().extend(fields),
            other => object["data"] = other,
        }
        object.to_string().into_bytes()
    });
    prop_oneof![
        4 => named,
        3 => json().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| [b"k8s\0", &bytes[..]].concat()),
        1 => Just(Vec::new()),
    ]
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let method = select(vec![
        "GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW",
    ]);
    let kind = select(vec![
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/cbor",
        "text/html",
        "",
        "application/vnd.kubernetes.protobuf",
        "application/json; charset=utf-8",
        ";;;",
    ]);
    let accept = select(vec![
        "application/json",
        "*/*",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "text/html",
        "",
        "q=0;;,",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ]);
    (method, path(), query(), kind, accept, body()).prop_map(|(method, path, query, kind, accept, body)| {
        let head = format!("{method}\n{path}?{query}\ncontent-type: {kind}\naccept: {accept}\n\n");
        [head.as_bytes(), &body].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: SEQUENCES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_requests_get_sound_answers_and_the_hub_works_afterwards(
        requests in prop::collection::vec(request(), 1..12)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hub = Hub::ephemeral(HubOptions::default()).await.unwrap();
            let router = hub.router();
            let first = "POST\n/api/v1/namespaces/default/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}";
            fuzz::check(&router, fuzz::read(first.as_bytes()).unwrap()).await;
            for request in &requests {
                if let Some(request) = fuzz::read(request) {
                    fuzz::check(&router, request).await;
                }
            }
            let version = Request::get("/version").body(Body::empty()).unwrap();
            assert_eq!(fuzz::check(&router, version).await.status(), 200);
            fuzz::still_works(&router, 0).await;
            hub.stop().await;
        });
    }
}
