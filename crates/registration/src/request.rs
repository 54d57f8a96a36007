//! A CertificateSigningRequest as plain, bounded facts.

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use crate::names::{AgentKey, CLUSTER_LABEL, ON_BEHALF_OF};
use crate::pkcs10::MOST_BYTES;

/// The most usages and groups that are kept.
const MOST_ITEMS: usize = 64;
/// The longest text that is kept.
const LONGEST_TEXT: usize = 1024;

/// What is known about a CSR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// By its labels, which anyone can set.
    pub of: AgentKey,
    pub signer: String,
    pub usages: Vec<String>,
    pub username: String,
    pub groups: Vec<String>,
    /// By an annotation. Only a hub's gRPC server is trusted to set it.
    pub on_behalf_of: Option<String>,
    pub body: CsrBody,
    pub expiration_seconds: Option<i32>,
    pub stage: RequestStage,
    pub created: Timestamp,
}

/// The PKCS#10 request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CsrBody {
    Pem(Vec<u8>),
    /// It is not kept.
    TooLarge(usize),
}

/// How far a CSR is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStage {
    Pending,
    /// Approved, and not signed yet.
    Approved {
        at: Option<Timestamp>,
    },
    /// Signed, denied or failed: nothing is left to do.
    Over {
        approved_at: Option<Timestamp>,
    },
}

impl SigningRequest {
    /// `None` if it does not name a cluster and an add-on.
    pub fn read(csr: CertificateSigningRequest) -> Option<Self> {
        let CertificateSigningRequest { metadata, spec, status } = csr;
        let label = |name| metadata.labels.as_ref()?.get(name).filter(|value| !value.is_empty());
        let of = AgentKey::new(label(CLUSTER_LABEL)?, label(aviary_api::names::labels::ADDON_NAME)?);
        let on_behalf_of = metadata.annotations.as_ref().and_then(|all| all.get(ON_BEHALF_OF));
        let on_behalf_of = on_behalf_of.filter(|user| user.len() <= LONGEST_TEXT).cloned();
        let stage = stage(status.as_ref());
        let body = match spec.request.0 {
            // Nothing reads it any more.
            _ if matches!(stage, RequestStage::Over { .. }) => CsrBody::Pem(Vec::new()),
            pem if pem.len() > MOST_BYTES => CsrBody::TooLarge(pem.len()),
            pem => CsrBody::Pem(pem),
        };
        let bounded = |mut items: Vec<String>| {
            items.truncate(MOST_ITEMS);
            items.retain(|item| item.len() <= LONGEST_TEXT);
            items
        };
        Some(Self {
            name: metadata.name?,
            uid: metadata.uid?,
            resource_version: metadata.resource_version?,
            of,
            signer: spec.signer_name,
            usages: spec.usages.unwrap_or_default().into_iter().take(MOST_ITEMS).collect(),
            username: spec.username.unwrap_or_default(),
            groups: bounded(spec.groups.unwrap_or_default()),
            on_behalf_of,
            body,
            expiration_seconds: spec.expiration_seconds,
            stage,
            created: metadata.creation_timestamp.map(|at| at.0).unwrap_or_default(),
        })
    }
}

fn stage(
    status: Option<&k8s_openapi::api::certificates::v1::CertificateSigningRequestStatus>,
) -> RequestStage {
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let find = |kind: &str| conditions.iter().find(|one| one.type_ == kind);
    let approved = find("Approved");
    let at = approved.and_then(|one| one.last_update_time.as_ref().map(|at| at.0));
    let has_certificate =
        status.and_then(|status| status.certificate.as_ref()).is_some_and(|one| !one.0.is_empty());
    if has_certificate || find("Denied").is_some() || find("Failed").is_some() {
        return RequestStage::Over { approved_at: at };
    }
    if approved.is_some() { RequestStage::Approved { at } } else { RequestStage::Pending }
}
