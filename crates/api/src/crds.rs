//! The CRDs of every kind.
//!
//! kube's derive provides names, columns and subresources. The schema is derived from the types,
//! and then made structural and bounded here, in one pass. The API server estimates the cost of CEL
//! rules from the largest object that could match the schema, so every string, list and map needs a
//! limit.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation,
};
use kube::CustomResourceExt;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub use beta::{CONVERTED, ConversionService};

use crate::{
    AddOnDeploymentConfig, AddOnHubConfig, AddOnRolloutPolicy, AddOnRolloutRecord, AddOnTemplate,
    ClusterManagementAddOn, ManagedCluster, ManagedClusterAddOn, ManagedClusterSet, ManagedClusterSetBinding,
    ManifestWork, Placement, PlacementDecision,
};

mod beta;

/// Default limit for the length of a string.
const MAX_LENGTH: u32 = 1024;
/// Default limit for the size of a list.
const MAX_ITEMS: u32 = 1024;
/// The most conditions of an object.
const MAX_CONDITIONS: u32 = 64;
/// Default limit for the size of a map.
const MAX_PROPERTIES: u32 = 256;

/// Keywords of schemars that are not allowed in a structural schema.
const NOT_STRUCTURAL: [&str; 6] = ["$schema", "$defs", "definitions", "title", "nullable", "examples"];

/// Every CRD, add-ons first, in the order of installation.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        crd::<ClusterManagementAddOn>(&[]),
        crd::<ManagedClusterAddOn>(&[]),
        crd::<AddOnHubConfig>(&[]),
        crd::<AddOnDeploymentConfig>(&[]),
        crd::<AddOnTemplate>(&[]),
        crd::<AddOnRolloutPolicy>(&[]),
        crd::<AddOnRolloutRecord>(&[]),
        crd::<ManagedCluster>(&[]),
        crd::<ManagedClusterSet>(&[]),
        crd::<ManagedClusterSetBinding>(&[(
            "self.metadata.name == self.spec.clusterSet",
            "a binding must have the same name as its clusterSet",
        )]),
        crd::<Placement>(&[]),
        crd::<PlacementDecision>(&[]),
        manifest_work(),
    ]
}

/// Every CRD, with v1beta1 of the add-on kinds beside v1alpha1. Two of them need a conversion,
/// which `service` provides. On the embedded hub, any does.
pub fn with_beta(service: &ConversionService<'_>) -> Vec<CustomResourceDefinition> {
    let mut all = all();
    for crd in &mut all {
        beta::add(crd, service);
    }
    all
}

/// The kinds that an Open Cluster Management hub already has. There, they are OCM's: Aviary neither
/// installs, changes nor deletes them.
const OF_OCM: [&str; 10] = [
    "clustermanagementaddons.addon.open-cluster-management.io",
    "managedclusteraddons.addon.open-cluster-management.io",
    "addondeploymentconfigs.addon.open-cluster-management.io",
    "addontemplates.addon.open-cluster-management.io",
    "managedclusters.cluster.open-cluster-management.io",
    "managedclustersets.cluster.open-cluster-management.io",
    "managedclustersetbindings.cluster.open-cluster-management.io",
    "placements.cluster.open-cluster-management.io",
    "placementdecisions.cluster.open-cluster-management.io",
    "manifestworks.work.open-cluster-management.io",
];

/// Whether an Open Cluster Management hub already has this CRD.
pub fn is_of_ocm(name: &str) -> bool {
    OF_OCM.contains(&name)
}

/// The CRDs that Aviary adds to an Open Cluster Management hub.
pub fn added_to_ocm() -> Vec<CustomResourceDefinition> {
    all().into_iter().filter(|crd| !crd.metadata.name.as_deref().is_some_and(is_of_ocm)).collect()
}

/// The file name of a CRD.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// A kustomization that lists those files.
pub fn kustomization() -> String {
    let mut text = "# All custom resource definitions.\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n".to_owned();
    for crd in all() {
        text.push_str(&format!("- {}\n", file_name(&crd)));
    }
    text
}

/// The CRD as a YAML document.
///
/// # Errors
/// If the CRD cannot be expressed in YAML.
pub fn to_yaml(crd: &CustomResourceDefinition) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(crd)
}

/// The CRD of one kind. `rules` apply to the object as a whole, including its name.
fn crd<T: CustomResourceExt + JsonSchema>(rules: &[(&str, &str)]) -> CustomResourceDefinition {
    let mut crd = T::crd();
    let schema = root::<T>(rules);
    for version in &mut crd.spec.versions {
        version.schema = serde_json::from_value(schema.clone())
            .ok()
            .map(|schema| CustomResourceValidation { open_api_v3_schema: Some(schema) });
    }
    crd
}

/// The CRD of works.
pub(crate) fn manifest_work() -> CustomResourceDefinition {
    with_optional_spec(crd::<ManifestWork>(&[]))
}

/// OCM neither requires nor defaults the spec of a work.
fn with_optional_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        schema.required = None;
        if let Some(spec) = schema.properties.as_mut().and_then(|properties| properties.get_mut("spec")) {
            spec.default = None;
        }
    }
    crd
}

/// The structural schema of a type.
fn generated<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.transforms.clear();
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    structural(&mut schema, "");
    schema
}

fn root<T: JsonSchema>(rules: &[(&str, &str)]) -> Value {
    let mut schema = generated::<T>();
    if let Value::Object(root) = &mut schema {
        require_spec(root);
        if !rules.is_empty() {
            let rules: Vec<Value> =
                rules.iter().map(|(rule, message)| json!({ "rule": rule, "message": message })).collect();
            root.insert("x-kubernetes-validations".to_owned(), rules.into());
        }
    }
    schema
}

/// Every kind with a spec requires it. If all fields of the spec are optional, the API server fills
/// in an empty spec, unless a missing spec is likely a mistake.
fn require_spec(root: &mut Map<String, Value>) {
    let Some(Value::Object(spec)) = root.get_mut("properties").and_then(|all| all.get_mut("spec")) else {
        return;
    };
    let is_asked_for = spec.remove(crate::schema::SPEC_IS_ASKED_FOR).is_some();
    if !spec.contains_key("required") && !is_asked_for {
        spec.insert("default".to_owned(), json!({}));
    }
    root.insert("required".to_owned(), json!(["spec"]));
}

/// Makes a schema and its subschemas structural and bounded. `name` is the name of the property
/// that it describes.
fn structural(schema: &mut Value, name: &str) {
    let Value::Object(schema) = schema else { return };
    unwrap_optional(schema);
    schema.retain(|key, _| !NOT_STRUCTURAL.contains(&key.as_str()));
    if schema.remove("x-aviary-nullable").is_some() {
        schema.insert("nullable".to_owned(), true.into());
    }
    if schema.get("default").is_some_and(says_nothing) {
        schema.remove("default");
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        schema.remove("format");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = reflow(description);
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&true.into()) {
        schema.insert("anyOf".to_owned(), json!([{ "type": "integer" }, { "type": "string" }]));
    }
    bounds(schema, name);

    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            structural(property, name);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            structural(inner, "");
        }
    }
    default_keys(schema);
}

/// Turns "this or null" into "this": an optional field needs no null. Keywords of the field, such
/// as its description, take precedence over those of its type.
fn unwrap_optional(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(variants)) = schema.get("anyOf") else { return };
    let is_null = |variant: &Value| variant.get("type").is_some_and(|name| name == "null");
    let mut others = variants.iter().filter(|variant| !is_null(variant));
    if let (Some(Value::Object(only)), None) = (others.next(), others.next()) {
        let only = only.clone();
        schema.remove("anyOf");
        for (key, value) in only {
            schema.entry(key).or_insert(value);
        }
    }
}

/// Whether a default is only the zero value of its type, which Rust adds even if no default is
/// intended.
fn says_nothing(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(says_nothing),
    }
}

/// Joins the lines of each paragraph; an empty line ends a paragraph.
fn reflow(text: &str) -> String {
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    paragraphs.join("\n\n")
}

/// Adds a limit to every string, list and map without one.
fn bounds(schema: &mut Map<String, Value>, name: &str) {
    let (key, most) = match schema.get("type").and_then(Value::as_str) {
        Some("string") if !schema.contains_key("enum") && !schema.contains_key("format") => {
            ("maxLength", MAX_LENGTH)
        }
        Some("array") if name == "conditions" => ("maxItems", MAX_CONDITIONS),
        Some("array") => ("maxItems", MAX_ITEMS),
        Some("object") if schema.contains_key("additionalProperties") => ("maxProperties", MAX_PROPERTIES),
        _ => return,
    };
    schema.entry(key).or_insert_with(|| most.into());
}

/// A key field of a list map must exist: if it is optional, its default is empty.
fn default_keys(list: &mut Map<String, Value>) {
    let Some(Value::Array(keys)) = list.get("x-kubernetes-list-map-keys").cloned() else { return };
    let Some(Value::Object(items)) = list.get_mut("items") else { return };
    let required = items.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = items.get_mut("properties") else { return };
    for key in keys.iter().filter(|key| !required.contains(key)).filter_map(Value::as_str) {
        if let Some(Value::Object(property)) = properties.get_mut(key) {
            property.insert("default".to_owned(), "".into());
        }
    }
}
