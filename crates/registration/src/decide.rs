//! Decides about one CSR: facts in, a decision with a typed reason out.
//!
//! Pure: reads no clock, client or cache. The order of the checks is the policy. OCM compares
//! prefixes and counts organizations; here, every part must be equal.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::names::{AUTHENTICATED, AgentKey, KUBE_CLIENT, cluster_agent, cluster_group};
use crate::pkcs10::{self, RequestedCertificate};
use crate::refusal::RequestRefusal;
use crate::request::{CsrBody, RequestStage, SigningRequest};
use crate::template::{CertificateSubject, CustomSignerRegistration, Registrations, SecretRef};

/// How many requests of one agent and signer are approved within an hour. OCM's agents stop asking
/// at ten.
pub const MOST_APPROVALS: usize = 10;

/// What the administrator has set.
#[derive(Clone, Debug)]
pub struct ApprovalPolicy {
    /// The namespace of this process, where a `signingCA` without a namespace is.
    pub namespace: String,
    /// The signers that this process may sign for, each with the Secret of its CA.
    pub signers: Vec<(String, SecretRef)>,
    /// The user name of the hub's gRPC server, if there is one.
    pub grpc_server: Option<String>,
    /// A request that is pending for longer is left alone.
    pub request_lifetime: SignedDuration,
    /// Whether agents may use tokens of ServiceAccounts.
    pub tokens: bool,
}

/// What is known about the cluster, the instance and the template that a request names.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    /// Whether the hub has accepted the cluster; `None` if it does not exist.
    pub accepted: Option<bool>,
    pub instance: RegistrationFacts<'a>,
    /// How many requests of this agent and signer were approved within the last hour.
    pub recently_approved: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum RegistrationFacts<'a> {
    /// The add-on is not installed on the cluster.
    Missing,
    /// The add-on has its own manager, which decides.
    NotATemplate,
    /// The template's content is not known.
    Unknown,
    Known {
        registrations: &'a Registrations,
        uses_tokens: bool,
    },
}

/// What to do about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestDecision {
    Approve,
    /// Sign with the CA in this Secret.
    Sign {
        ca: SecretRef,
        asked: Box<RequestedCertificate>,
    },
    /// Another program decides, or nothing is left to decide.
    Ignore(Ignored),
    /// It stays as it is, and an Event says why.
    Refuse(RequestRefusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Signed, denied or failed.
    Over,
    /// Approved; Kubernetes signs it.
    KubernetesSigns,
    NotInstalled,
    NotATemplate,
}

/// Decides about a request.
pub fn decide(
    policy: &ApprovalPolicy,
    request: &SigningRequest,
    facts: RequestFacts<'_>,
    now: Timestamp,
) -> RequestDecision {
    if let Some(ignored) = ignored(request, facts.instance) {
        return RequestDecision::Ignore(ignored);
    }
    match check(policy, request, facts, now) {
        Ok(CheckedRequest { custom: Some(ca), asked }) if request.stage != RequestStage::Pending => {
            RequestDecision::Sign { ca, asked: Box::new(asked) }
        }
        Ok(_) => RequestDecision::Approve,
        Err(refusal) => RequestDecision::Refuse(refusal),
    }
}

fn ignored(request: &SigningRequest, instance: RegistrationFacts<'_>) -> Option<Ignored> {
    match (request.stage, instance) {
        (RequestStage::Over { .. }, _) => Some(Ignored::Over),
        (RequestStage::Approved { .. }, _) if request.signer == KUBE_CLIENT => Some(Ignored::KubernetesSigns),
        (_, RegistrationFacts::Missing) => Some(Ignored::NotInstalled),
        (_, RegistrationFacts::NotATemplate) => Some(Ignored::NotATemplate),
        _ => None,
    }
}

/// A request that passed every check.
struct CheckedRequest {
    /// The Secret of the CA, for a custom signer.
    custom: Option<SecretRef>,
    asked: RequestedCertificate,
}

fn check(
    policy: &ApprovalPolicy,
    request: &SigningRequest,
    facts: RequestFacts<'_>,
    now: Timestamp,
) -> Result<CheckedRequest, RequestRefusal> {
    let RegistrationFacts::Known { registrations, uses_tokens } = facts.instance else {
        return Err(RequestRefusal::TemplateUnknown);
    };
    match facts.accepted {
        None => return Err(RequestRefusal::ClusterUnknown),
        Some(false) => return Err(RequestRefusal::ClusterNotAccepted),
        Some(true) => {}
    }
    let custom = signer(policy, request, registrations)?;
    if custom.is_none() && uses_tokens && policy.tokens {
        return Err(RequestRefusal::TokenDriver);
    }
    if request.stage == RequestStage::Pending {
        check_age(policy, request, facts, now)?;
    }
    let agent = requester(policy, request)?;
    check_usages(&request.usages)?;
    let asked = match &request.body {
        CsrBody::Pem(pem) => pkcs10::read(pem),
        CsrBody::TooLarge(bytes) => Err(pkcs10::Unreadable::TooLarge(*bytes)),
    }
    .map_err(RequestRefusal::Unreadable)?;
    let subject = custom.as_ref().and_then(|(custom, _)| custom.subject.as_ref());
    check_subject(&request.of, agent, subject, &asked)?;
    Ok(CheckedRequest { custom: custom.map(|(_, ca)| ca), asked })
}

/// The custom signer of a request and the Secret of its CA; `None` if Kubernetes signs it.
fn signer<'a>(
    policy: &ApprovalPolicy,
    request: &SigningRequest,
    registrations: &'a Registrations,
) -> Result<Option<(&'a CustomSignerRegistration, SecretRef)>, RequestRefusal> {
    let signer = || request.signer.clone();
    if request.signer == KUBE_CLIENT {
        return match registrations.kube_client {
            Some(_) => Ok(None),
            None => Err(RequestRefusal::WrongSigner { signer: signer() }),
        };
    }
    let custom = registrations
        .custom(&request.signer)
        .ok_or_else(|| RequestRefusal::WrongSigner { signer: signer() })?;
    match policy.ca_of(custom) {
        Some(Ok(ca)) => Ok(Some((custom, ca))),
        Some(Err(())) => Err(RequestRefusal::WrongSecret { signer: signer() }),
        None => Err(RequestRefusal::SignerNotListed { signer: signer() }),
    }
}

impl ApprovalPolicy {
    /// The Secret of a custom signer's CA: `None` if the administrator has not listed the signer,
    /// an error if the template names another Secret than the administrator.
    pub fn ca_of(&self, custom: &CustomSignerRegistration) -> Option<Result<SecretRef, ()>> {
        let (_, listed) = self.signers.iter().find(|(signer, _)| *signer == custom.signer)?;
        let mut named = custom.ca.clone();
        if named.namespace.is_empty() {
            named.namespace.clone_from(&self.namespace);
        }
        Some(if named == *listed { Ok(named) } else { Err(()) })
    }
}

fn check_age(
    policy: &ApprovalPolicy,
    request: &SigningRequest,
    facts: RequestFacts<'_>,
    now: Timestamp,
) -> Result<(), RequestRefusal> {
    let age = now.duration_since(request.created);
    if age > policy.request_lifetime {
        return Err(RequestRefusal::Expired { seconds: policy.request_lifetime.as_secs() });
    }
    if facts.recently_approved >= MOST_APPROVALS {
        return Err(RequestRefusal::TooMany { approved: facts.recently_approved });
    }
    Ok(())
}

/// The name of the cluster's agent that sent the request.
fn requester<'a>(policy: &ApprovalPolicy, request: &'a SigningRequest) -> Result<&'a str, RequestRefusal> {
    let wrong = |user: &str| RequestRefusal::WrongRequester { user: user.to_owned() };
    let is_server = policy.grpc_server.as_deref() == Some(request.username.as_str());
    let user = effective_user(policy, request);
    let (cluster, agent) = cluster_agent(user).ok_or_else(|| wrong(user))?;
    // The server authenticates agents by their user names alone.
    let in_group = is_server || request.groups.contains(&cluster_group(&request.of.cluster));
    if cluster == request.of.cluster && in_group { Ok(agent) } else { Err(wrong(user)) }
}

/// The user that a request comes from: a gRPC server sends requests for others.
pub fn effective_user<'a>(policy: &ApprovalPolicy, request: &'a SigningRequest) -> &'a str {
    match &policy.grpc_server {
        Some(server) if *server == request.username => request.on_behalf_of.as_deref().unwrap_or_default(),
        _ => &request.username,
    }
}

fn check_usages(usages: &[String]) -> Result<(), RequestRefusal> {
    let given: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let required = ["client auth", "digital signature"];
    let allowed = ["client auth", "digital signature", "key encipherment"];
    let fits = given.len() == usages.len()
        && required.iter().all(|usage| given.contains(usage))
        && given.iter().all(|usage| allowed.contains(usage));
    if fits { Ok(()) } else { Err(RequestRefusal::WrongUsages { usages: usages.to_vec() }) }
}

fn check_subject(
    of: &AgentKey,
    agent: &str,
    subject: Option<&CertificateSubject>,
    asked: &RequestedCertificate,
) -> Result<(), RequestRefusal> {
    let expected = match subject {
        None => of.default_user(),
        // An agent that finds no user fills its own name in.
        Some(subject) if subject.user.is_empty() => of.user(agent),
        Some(subject) => subject.user.clone(),
    };
    if asked.common_name != expected {
        return Err(RequestRefusal::WrongCommonName { asked: asked.common_name.clone(), expected });
    }
    let (groups, units) = match subject {
        None => (of.groups(), &[][..]),
        Some(subject) => (subject.groups.clone(), subject.units.as_slice()),
    };
    check_groups(&groups, &asked.organizations, subject.is_none())?;
    if !is_same_set(units, &asked.units) {
        return Err(RequestRefusal::WrongUnits);
    }
    let fits = match asked.dns_names.as_slice() {
        [] => true,
        [one] => *one == of.dns_name(),
        _ => false,
    };
    if fits { Ok(()) } else { Err(RequestRefusal::WrongNames { asked: asked.dns_names.join(", ") }) }
}

/// Older agents also ask for `system:authenticated`, which every user has.
fn check_groups(expected: &[String], asked: &[String], is_default: bool) -> Result<(), RequestRefusal> {
    let wanted: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
    let given: BTreeSet<&str> = asked.iter().map(String::as_str).collect();
    let is_allowed = |group: &str| wanted.contains(group) || (is_default && group == AUTHENTICATED);
    let mut extra: Vec<String> =
        given.iter().filter(|group| !is_allowed(group)).map(|group| (*group).to_owned()).collect();
    let missing: Vec<String> = wanted.difference(&given).map(|group| (*group).to_owned()).collect();
    if given.len() != asked.len() && extra.is_empty() {
        extra.push("a group twice".to_owned());
    }
    if extra.is_empty() && missing.is_empty() {
        Ok(())
    } else {
        Err(RequestRefusal::WrongGroups { extra, missing })
    }
}

fn is_same_set(some: &[String], others: &[String]) -> bool {
    some.len() == others.len()
        && some.iter().collect::<BTreeSet<_>>() == others.iter().collect::<BTreeSet<_>>()
}
