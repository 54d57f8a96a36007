//! Which fields of our schemas a hub's schemas do not keep.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// The fields of our only version that the same version of the hub's definition lacks. A field that
/// is missing as a whole is named once, without what is in it.
pub(super) fn missing(ours: &CustomResourceDefinition, served: &CustomResourceDefinition) -> Vec<String> {
    let Some(version) = ours.spec.versions.first() else { return Vec::new() };
    let theirs = served.spec.versions.iter().find(|known| known.name == version.name);
    let schema = |version: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion| {
        version.schema.clone()?.open_api_v3_schema
    };
    let mut found = Vec::new();
    if let (Some(ours), Some(theirs)) = (schema(version), theirs.and_then(schema)) {
        compare("", &ours, &theirs, &mut found);
    }
    found
}

fn compare(path: &str, ours: &JSONSchemaProps, theirs: &JSONSchemaProps, found: &mut Vec<String>) {
    if theirs.x_kubernetes_preserve_unknown_fields == Some(true) {
        return;
    }
    for (name, field) in ours.properties.iter().flatten() {
        if path.is_empty() && name == "metadata" {
            continue;
        }
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{name}");
        match theirs.properties.as_ref().and_then(|all| all.get(name)) {
            Some(known) => compare(&path, field, known, found),
            None if theirs.additional_properties.is_some() => {}
            None => found.push(path),
        }
    }
    if let (Some(JSONSchemaPropsOrArray::Schema(ours)), Some(JSONSchemaPropsOrArray::Schema(theirs))) =
        (&ours.items, &theirs.items)
    {
        compare(&format!("{path}[]"), ours, theirs, found);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use aviary_api::crds;

    use super::*;

    #[test]
    fn a_hub_with_our_definitions_keeps_everything() {
        for crd in crds::all() {
            assert!(missing(&crd, &crd).is_empty());
        }
    }

    #[test]
    fn an_ocm_hub_does_not_keep_conditions_of_add_ons() {
        let ocm = aviary_testing::ocm::crds(None);
        let all = crds::all();
        let missing_in = |plural: &str| {
            let ours = all.iter().find(|crd| crd.spec.names.plural == plural).unwrap();
            let theirs = ocm.iter().find(|crd| crd["spec"]["names"]["plural"] == plural).unwrap();
            missing(ours, &serde_json::from_value(theirs.clone()).unwrap())
        };
        let addon = missing_in("clustermanagementaddons");
        for field in ["status.conditions", "status.installProgression", "spec.defaultConfigs"] {
            assert!(addon.iter().any(|known| known == field), "{field} is not in {addon:?}");
        }
        assert!(!addon.iter().any(|known| known.starts_with("status.installProgressions")), "{addon:?}");
        let instance = missing_in("managedclusteraddons");
        assert!(instance.iter().any(|known| known == "status.currentVersion"), "{instance:?}");
    }
}
