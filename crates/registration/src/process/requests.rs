//! Approves requests, and signs those of custom signers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::pkcs10::RequestedCertificate;
use crate::request::SigningRequest;
use crate::sign::Ca;
use crate::template::SecretRef;

/// The reason of the condition `Approved`.
const APPROVED: &str = "ApprovedByAviaryRegistration";

/// What to write for a request.
#[derive(Debug)]
pub(super) enum CsrAction {
    Approve,
    Sign { ca: SecretRef, asked: Box<RequestedCertificate> },
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) name: String,
    /// Why it failed. It is tried again later.
    pub(super) event: Option<(Box<SigningRequest>, &'static str, String)>,
}

pub(super) async fn execute_request(
    client: Client,
    request: SigningRequest,
    answer: CsrAction,
    now: Timestamp,
) -> Answered {
    let name = request.name.clone();
    let result = match answer {
        CsrAction::Approve => approve(client, &request, now).await,
        CsrAction::Sign { ca, asked } => sign(client, &request, &ca, &asked, now).await,
    };
    match result {
        Ok(()) => {
            tracing::info!(request = name, agent = %request.of, signer = request.signer, "approved or signed a request");
            Answered { name, event: None }
        }
        // Gone, or changed: the watch tells.
        Err(AnswerError::Hub(kube::Error::Api(said))) if matches!(said.code, 404 | 409) => {
            Answered { name, event: None }
        }
        Err(trouble) => {
            let (reason, note) = trouble.told();
            tracing::warn!(request = name, reason, note, "a request could not be approved or signed");
            Answered { name, event: Some((Box::new(request), reason, note)) }
        }
    }
}

enum AnswerError {
    Hub(kube::Error),
    Secret(String),
}

impl AnswerError {
    fn told(self) -> (&'static str, String) {
        match self {
            Self::Hub(kube::Error::Api(said)) => ("ApprovalFailed", said.message),
            Self::Hub(error) => ("ApprovalFailed", error.to_string()),
            Self::Secret(why) => ("SigningFailed", why),
        }
    }
}

async fn approve(client: Client, request: &SigningRequest, now: Timestamp) -> Result<(), AnswerError> {
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let now = format!("{now:.0}");
    let patch = Patch::Merge(json!({
        "metadata": {"uid": request.uid, "resourceVersion": request.resource_version},
        "status": {"conditions": [{
            "type": "Approved", "status": "True", "reason": APPROVED,
            "message": format!("The request is that of the agent of {}", request.of),
            "lastUpdateTime": now, "lastTransitionTime": now,
        }]},
    }));
    api.patch_approval(&request.name, &PatchParams::default(), &patch)
        .await
        .map(drop)
        .map_err(AnswerError::Hub)
}

async fn sign(
    client: Client,
    request: &SigningRequest,
    ca: &SecretRef,
    asked: &RequestedCertificate,
    now: Timestamp,
) -> Result<(), AnswerError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &ca.namespace);
    let named = format!("the Secret {}/{} of the signer {}", ca.namespace, ca.name, request.signer);
    let data = match secrets.get(&ca.name).await {
        Ok(secret) => secret.data.unwrap_or_default(),
        Err(kube::Error::Api(said)) => {
            return Err(AnswerError::Secret(format!("{named} cannot be read: {}", said.message)));
        }
        Err(error) => return Err(AnswerError::Hub(error)),
    };
    let field = |name| data.get(name).map(|field| field.0.as_slice()).unwrap_or_default();
    let bad = |error| AnswerError::Secret(format!("{named} cannot be used: {error}"));
    let authority = Ca::read(field("tls.crt"), field("tls.key")).map_err(bad)?;
    let mut serial = [0; 16];
    getrandom::fill(&mut serial)
        .map_err(|error| AnswerError::Secret(format!("no random numbers: {error}")))?;
    let wanted = request.expiration_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
    let certificate = authority.sign(asked, wanted, now, serial).map_err(bad)?;
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let patch = Patch::Merge(json!({
        "metadata": {"uid": request.uid, "resourceVersion": request.resource_version},
        "status": {"certificate": STANDARD.encode(certificate)},
    }));
    api.patch_status(&request.name, &PatchParams::default(), &patch).await.map(drop).map_err(AnswerError::Hub)
}
