//! What the hub's schemas can hold of what Aviary writes.
//!
//! An API server prunes fields that a schema lacks. Such a field is neither written nor compared:
//! otherwise it would be written again in every pass. OCM's schemas lack some of our fields, and
//! speak another vocabulary.

use serde_json::Value;

use crate::observed::AddOnStatus;

/// The words and fields in which statuses are written. Chosen here, once, by what the hub serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The design documents' API, on a hub with our CRDs.
    #[default]
    Design,
    /// OCM's, on a hub with its CRDs.
    Ocm,
}

/// The parts of the statuses that the hub keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    pub dialect: Dialect,
    /// `status.conditions` of an add-on. Elsewhere they are in its AddOnRolloutRecord.
    pub addon_conditions: bool,
    pub observed_generation: bool,
    /// `supportedVersions` and `defaultVersion` of an add-on.
    pub addon_versions: bool,
    /// `installProgression`, as the design documents spell it.
    pub progression: bool,
    /// `defaultconfigReferences`, as OCM spells it.
    pub default_references: bool,
    /// `desiredVersion`, `currentVersion` and `lastVersion` of an instance.
    pub instance_versions: bool,
}

impl Default for Served {
    /// A hub with our CRDs.
    fn default() -> Self {
        Self {
            dialect: Dialect::Design,
            addon_conditions: true,
            observed_generation: true,
            addon_versions: true,
            progression: true,
            default_references: false,
            instance_versions: true,
        }
    }
}

impl Served {
    /// What these schemas keep (`openAPIV3Schema` of the version that Aviary uses). A kind whose
    /// schema is not known keeps everything.
    pub fn of(addon: Option<&Value>, instance: Option<&Value>) -> Self {
        let of_addon = |field: &str| addon.is_none_or(|schema| keeps(schema, &["status", field]));
        let of_instance = |field: &str| instance.is_none_or(|schema| keeps(schema, &["status", field]));
        let addon_conditions = of_addon("conditions");
        Self {
            // Ours has conditions; OCM's never had.
            dialect: if addon_conditions { Dialect::Design } else { Dialect::Ocm },
            addon_conditions,
            observed_generation: of_addon("observedGeneration"),
            addon_versions: of_addon("supportedVersions") && of_addon("defaultVersion"),
            progression: of_addon("installProgression"),
            default_references: !addon_conditions && of_addon("defaultconfigReferences"),
            instance_versions: ["desiredVersion", "currentVersion", "lastVersion"].map(of_instance)
                == [true; 3],
        }
    }

    pub(crate) fn is_ocm(&self) -> bool {
        self.dialect == Dialect::Ocm
    }

    /// Takes out what the hub would prune.
    pub(crate) fn clip(&self, status: &mut AddOnStatus, has_record: bool) {
        if !self.observed_generation {
            status.observed_generation = None;
        }
        if !self.addon_versions {
            status.supported_versions.clear();
            status.default_version = None;
        }
        if !self.addon_conditions {
            status.rollout = None;
        }
        if !self.addon_conditions && !has_record {
            status.attempts.clear();
            status.conditions.clear();
        }
    }
}

/// Whether a structural schema keeps the field at this path.
fn keeps(schema: &Value, path: &[&str]) -> bool {
    let Some((field, rest)) = path.split_first() else { return true };
    match schema.get("properties").and_then(|fields| fields.get(field)) {
        Some(inner) => keeps(inner, rest),
        None => {
            schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
                || schema.get("additionalProperties").is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status_of(fields: &[&str]) -> Value {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "array"}))).collect();
        json!({"type": "object", "properties": {"status": {"type": "object", "properties": fields}}})
    }

    #[test]
    fn a_hub_with_our_schemas_keeps_everything() {
        let crds = aviary_api::crds::all();
        let schema = |plural: &str| {
            let crd = crds.iter().find(|crd| crd.spec.names.plural == plural);
            let version = crd.and_then(|crd| crd.spec.versions.iter().find(|one| one.name == "v1alpha1"));
            json!(version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref()))
        };
        let (addons, instances) = (schema("clustermanagementaddons"), schema("managedclusteraddons"));
        assert_eq!(Served::of(Some(&addons), Some(&instances)), Served::default());
        assert_eq!(Served::of(None, None), Served::default());
    }

    #[test]
    fn ocms_schemas_keep_no_conditions_and_no_versions() {
        let addon = status_of(&["defaultconfigReferences", "installProgressions"]);
        let instance = status_of(&["conditions", "configReferences", "supportedConfigs"]);
        let expected = Served {
            dialect: Dialect::Ocm,
            addon_conditions: false,
            observed_generation: false,
            addon_versions: false,
            progression: false,
            default_references: true,
            instance_versions: false,
        };
        assert_eq!(Served::of(Some(&addon), Some(&instance)), expected);
    }

    #[test]
    fn an_open_schema_keeps_everything() {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(Served::of(Some(&open), Some(&open)), Served::default());
    }
}
