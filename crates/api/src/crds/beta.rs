//! v1beta1 of the add-on kinds: the schemas of v1alpha1, without what v1beta1 dropped.
//!
//! Fields that OCM's v1beta1 does not have, such as our statuses, stay: clients that do not know
//! them ignore them.

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion, ServiceReference,
    WebhookClientConfig, WebhookConversion,
};
use serde_json::{Map, Value};

use super::generated;
use crate::addon::v1beta1::RegistrationConfig;
use crate::convert::ApiVersion;

/// The CRDs whose versions differ, and so need a conversion.
pub const CONVERTED: [&str; 2] = [
    "clustermanagementaddons.addon.open-cluster-management.io",
    "managedclusteraddons.addon.open-cluster-management.io",
];

/// The other CRDs that OCM serves as v1beta1. There, the versions are equal.
const EQUAL: [&str; 2] = [
    "addondeploymentconfigs.addon.open-cluster-management.io",
    "addontemplates.addon.open-cluster-management.io",
];

const DEFAULT_CONFIGS: &str = "Types of config that the add-on supports, each with its default. The name \
    __reserved_no_default__ means that there is no default. A config of the same group and resource in a placement or \
    an instance overrides them.";

/// Where the hub finds the conversion.
#[derive(Clone, Copy, Debug)]
pub struct ConversionService<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub port: u16,
    pub path: &'a str,
    /// The certificates that the hub trusts, PEM. The manager sets them later.
    pub ca_bundle: Option<&'a [u8]>,
}

impl ConversionService<'_> {
    fn webhook(&self) -> CustomResourceConversion {
        CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(WebhookConversion {
                client_config: Some(WebhookClientConfig {
                    ca_bundle: self.ca_bundle.map(|bundle| ByteString(bundle.to_vec())),
                    service: Some(ServiceReference {
                        namespace: self.namespace.to_owned(),
                        name: self.name.to_owned(),
                        path: Some(self.path.to_owned()),
                        port: Some(self.port.into()),
                    }),
                    url: None,
                }),
                conversion_review_versions: vec!["v1".to_owned()],
            }),
        }
    }
}

/// Adds v1beta1 to an add-on kind. Other kinds stay as they are.
pub(super) fn add(crd: &mut CustomResourceDefinition, service: &ConversionService<'_>) {
    let name = crd.metadata.name.clone().unwrap_or_default();
    let is_converted = CONVERTED.contains(&name.as_str());
    if !is_converted && !EQUAL.contains(&name.as_str()) {
        return;
    }
    let Some(alpha) = crd.spec.versions.first() else { return };
    let Some(beta) = version(alpha, &name) else { return };
    crd.spec.versions.push(beta);
    if is_converted {
        crd.spec.conversion = Some(service.webhook());
    }
}

fn version(alpha: &CustomResourceDefinitionVersion, crd: &str) -> Option<CustomResourceDefinitionVersion> {
    let mut raw = serde_json::to_value(alpha).ok()?;
    if let Some(schema) = raw.pointer_mut("/schema/openAPIV3Schema") {
        match crd.split_once('.') {
            Some(("clustermanagementaddons", _)) => addon(schema),
            Some(("managedclusteraddons", _)) => instance(schema),
            _ => {}
        }
    }
    let beta: CustomResourceDefinitionVersion = serde_json::from_value(raw).ok()?;
    Some(CustomResourceDefinitionVersion {
        name: ApiVersion::V1Beta1.name().to_owned(),
        storage: false,
        ..beta
    })
}

fn properties<'s>(schema: &'s mut Value, of: &str) -> Option<&'s mut Map<String, Value>> {
    schema.pointer_mut(&format!("/properties/{of}/properties"))?.as_object_mut()
}

fn addon(schema: &mut Value) {
    if let Some(spec) = properties(schema, "spec") {
        spec.remove("supportedConfigs");
        spec.remove("addOnConfiguration");
        if let Some(Value::Object(list)) = spec.get_mut("defaultConfigs") {
            list.insert("description".to_owned(), DEFAULT_CONFIGS.into());
            if let Some(Value::Object(item)) = list.get_mut("items") {
                item.remove("x-kubernetes-validations");
            }
        }
    }
    if let Some(status) = properties(schema, "status") {
        status.remove("defaultconfigReferences");
    }
}

fn instance(schema: &mut Value) {
    if let Some(spec) = properties(schema, "spec") {
        spec.remove("installNamespace");
    }
    if let Some(status) = properties(schema, "status") {
        status.remove("addOnConfiguration");
        status.remove("kubeClientDriver");
        let Some(Value::Object(list)) = status.get_mut("registrations") else { return };
        list.insert("items".to_owned(), generated::<RegistrationConfig>());
    }
}
