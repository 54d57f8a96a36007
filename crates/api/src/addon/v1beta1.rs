//! The types of v1beta1 that differ from those of v1alpha1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// One way in which the agent registers with the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["type"]))]
pub struct RegistrationConfig {
    /// Which of the two follows.
    #[serde(rename = "type")]
    #[schemars(transform = schema::one_of(&["kubeClient", "customSigner"]))]
    pub type_: String,

    /// For the hub's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_client: Option<KubeClient>,

    /// For a certificate of another signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_signer: Option<CustomSigner>,
}

/// How the agent reaches the hub's API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KubeClient {
    /// As whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<KubeClientSubject>,

    /// How the agent gets its credentials.
    #[schemars(transform = schema::one_of(&["csr", "token"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// The user and groups of the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KubeClientSubject {
    /// User name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,

    /// Groups of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
}

/// A certificate of another signer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = schema::required(&["signerName"]))]
pub struct CustomSigner {
    /// Signer of the certificate.
    #[schemars(transform = schema::max_length(571))]
    pub signer_name: String,

    /// Subject of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<CustomSignerSubject>,
}

/// Subject of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CustomSignerSubject {
    /// User name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,

    /// Groups of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,

    /// Organizational units of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_units: Option<Vec<String>>,
}
