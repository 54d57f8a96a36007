//! Walks the schemas of the CRDs, for the tests that examine all of them.

use std::sync::LazyLock;

use aviary_api::crds;
use serde_json::Value;

static SCHEMAS: LazyLock<Vec<(String, Value)>> = LazyLock::new(generate);

/// Every kind with its schema.
pub(crate) fn schemas() -> &'static [(String, Value)] {
    &SCHEMAS
}

static BETA_SCHEMAS: LazyLock<Vec<(String, Value)>> = LazyLock::new(generate_beta);

/// The kinds that are also served as v1beta1, with that schema.
pub(crate) fn beta_schemas() -> &'static [(String, Value)] {
    &BETA_SCHEMAS
}

fn generate_beta() -> Vec<(String, Value)> {
    let service =
        crds::ConversionService { namespace: "a", name: "b", port: 443, path: "/convert", ca_bundle: None };
    let all = crds::with_beta(&service).into_iter();
    all.filter_map(|crd| {
        let version =
            crd.spec.versions.iter().find(|version| version.name == "v1beta1" && !version.storage)?;
        let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
        Some((format!("{} v1beta1", crd.spec.names.kind), serde_json::to_value(schema).unwrap()))
    })
    .collect()
}

fn generate() -> Vec<(String, Value)> {
    crds::all()
        .into_iter()
        .map(|crd| {
            let [version] = crd.spec.versions.as_slice() else {
                panic!("{} has one version", crd.spec.names.kind)
            };
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            (crd.spec.names.kind.clone(), serde_json::to_value(schema.expect("a schema")).unwrap())
        })
        .collect()
}

/// Calls `visit` with every schema within `schema` and its path, such as `spec.configs[].name`.
pub(crate) fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let dot = if path.is_empty() { "" } else { "." };
        walk(&format!("{path}{dot}{name}"), property, visit);
    }
    if let Some(items) = schema.get("items") {
        walk(&format!("{path}[]"), items, visit);
    }
    if let Some(values) = schema.get("additionalProperties") {
        walk(&format!("{path}{{}}"), values, visit);
    }
}
