//! The table of requests. The same cases run on a real API server, in crates/cli/tests/kubernetes.

use aviary_registration::decide::{
    ApprovalPolicy, MOST_APPROVALS, RegistrationFacts, RequestDecision, RequestFacts, decide,
};
use aviary_registration::names::{AgentKey, KUBE_CLIENT};
use aviary_registration::pkcs10::MOST_BYTES;
use aviary_registration::request::{CsrBody, RequestStage, SigningRequest};
use aviary_registration::template::{Registrations, SecretRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::csr::Draft;

const CUSTOM: &str = "example.com/agent";
const GRPC: &str = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa";

pub(crate) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn of() -> AgentKey {
    AgentKey::new("c1", "hello")
}

pub(crate) fn policy() -> ApprovalPolicy {
    let ca = SecretRef { namespace: "hub".into(), name: "ca".into() };
    ApprovalPolicy {
        namespace: "hub".into(),
        signers: vec![(CUSTOM.into(), ca)],
        grpc_server: None,
        request_lifetime: SignedDuration::from_hours(1),
        tokens: false,
    }
}

fn template() -> Registrations {
    Registrations::read(&json!({"spec": {"addonName": "hello", "registration": [
        {"type": "KubeClient"},
        {"type": "CustomSigner", "customSigner": {"signerName": CUSTOM, "signingCA": {"name": "ca"}}},
        {"type": "CustomSigner", "customSigner": {"signerName": "example.com/other", "signingCA": {"name": "ca"}}},
        {"type": "CustomSigner", "customSigner": {"signerName": "example.com/units", "signingCA": {"name": "ca"},
            "subject": {"groups": ["g"], "organizationUnit": ["u"]}}},
    ]}}))
}

pub(crate) fn draft() -> Draft {
    Draft { in_one_set: true, ..Draft::new(&of().default_user(), &of().groups()) }.with_dns(&of().dns_name())
}

pub(crate) fn request(draft: &Draft) -> SigningRequest {
    let strings = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
    SigningRequest {
        name: "addon-c1-hello-x".into(),
        uid: "u".into(),
        resource_version: "1".into(),
        of: of(),
        signer: KUBE_CLIENT.into(),
        usages: strings(&["digital signature", "key encipherment", "client auth"]),
        username: "system:open-cluster-management:c1:agent7".into(),
        groups: strings(&[
            "system:open-cluster-management:c1",
            "system:open-cluster-management:managed-clusters",
            "system:authenticated",
        ]),
        on_behalf_of: None,
        body: CsrBody::Pem(draft.pem()),
        expiration_seconds: None,
        stage: RequestStage::Pending,
        created: now(),
    }
}

fn judged(
    policy: &ApprovalPolicy,
    request: &SigningRequest,
    change: impl FnOnce(&mut RequestFacts<'_>),
) -> String {
    let registrations = template();
    let instance = RegistrationFacts::Known { registrations: &registrations, uses_tokens: false };
    let mut facts = RequestFacts { accepted: Some(true), instance, recently_approved: 0 };
    change(&mut facts);
    match decide(policy, request, facts, now()) {
        RequestDecision::Refuse(refusal) => format!("{}: {refusal}", refusal.code()),
        RequestDecision::Ignore(why) => format!("ignored: {why:?}"),
        RequestDecision::Approve => "approved".into(),
        RequestDecision::Sign { ca, .. } => format!("signed with {}/{}", ca.namespace, ca.name),
    }
}

fn table(cases: Vec<(&str, SigningRequest)>) -> String {
    table_under(&policy(), cases)
}

fn table_under(policy: &ApprovalPolicy, cases: Vec<(&str, SigningRequest)>) -> String {
    let line =
        |(name, request): (&str, SigningRequest)| format!("{name}\n  {}\n", judged(policy, &request, |_| {}));
    cases.into_iter().map(line).collect()
}

fn with(change: impl FnOnce(&mut SigningRequest)) -> SigningRequest {
    let mut request = request(&draft());
    change(&mut request);
    request
}

#[test]
fn good_requests_are_approved() {
    let groups = [of().groups(), vec!["system:authenticated".into()]].concat();
    let cases = vec![
        ("as OCM's agent sends it", request(&draft())),
        (
            "every organization in its own set, no DNS name",
            request(&Draft::new(&of().default_user(), &of().groups())),
        ),
        (
            "an older agent, which also asks for system:authenticated",
            request(&Draft::new(&of().default_user(), &groups)),
        ),
        ("a custom signer that is listed", with(|request| request.signer = CUSTOM.into())),
        ("an elliptic key needs no key encipherment", with(|request| drop(request.usages.remove(1)))),
    ];
    expect![[r#"
        as OCM's agent sends it
          approved
        every organization in its own set, no DNS name
          approved
        an older agent, which also asks for system:authenticated
          approved
        a custom signer that is listed
          approved
        an elliptic key needs no key encipherment
          approved
    "#]]
    .assert_eq(&table(cases));
}

#[test]
fn requests_of_others_and_for_others_are_left_alone() {
    let cases = vec![
        (
            "another cluster asks for this one",
            with(|request| {
                request.username = "system:open-cluster-management:c2:agent7".into();
                request.groups = vec!["system:open-cluster-management:c2".into()];
            }),
        ),
        (
            "a cluster whose name begins the same",
            with(|request| {
                request.username = "system:open-cluster-management:c1-evil:agent7".into();
                request.groups = vec!["system:open-cluster-management:c1-evil".into()];
            }),
        ),
        (
            "the right name without the cluster's group",
            with(|request| {
                request.groups = vec!["system:open-cluster-management:managed-clusters".into()];
            }),
        ),
        ("an add-on's agent of the same cluster", with(|request| request.username = of().default_user())),
        (
            "an agent without a name",
            with(|request| request.username = "system:open-cluster-management:c1:".into()),
        ),
        ("somebody else", with(|request| request.username = "system:serviceaccount:default:x".into())),
        (
            "an annotation that names the agent, without a gRPC server",
            with(|request| {
                request.on_behalf_of = Some(std::mem::replace(&mut request.username, GRPC.into()));
            }),
        ),
        (
            "the label names another cluster than the subject",
            with(|request| request.of = AgentKey::new("c2", "hello")),
        ),
        (
            "the label names another add-on than the subject",
            with(|request| request.of = AgentKey::new("c1", "other")),
        ),
    ];
    expect![[r#"
        another cluster asks for this one
          WrongRequester: the requester system:open-cluster-management:c2:agent7 is not an agent of the cluster that its label names
        a cluster whose name begins the same
          WrongRequester: the requester system:open-cluster-management:c1-evil:agent7 is not an agent of the cluster that its label names
        the right name without the cluster's group
          WrongRequester: the requester system:open-cluster-management:c1:agent7 is not an agent of the cluster that its label names
        an add-on's agent of the same cluster
          WrongRequester: the requester system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent is not an agent of the cluster that its label names
        an agent without a name
          WrongRequester: the requester system:open-cluster-management:c1: is not an agent of the cluster that its label names
        somebody else
          WrongRequester: the requester system:serviceaccount:default:x is not an agent of the cluster that its label names
        an annotation that names the agent, without a gRPC server
          WrongRequester: the requester system:serviceaccount:open-cluster-management-hub:grpc-server-sa is not an agent of the cluster that its label names
        the label names another cluster than the subject
          WrongRequester: the requester system:open-cluster-management:c1:agent7 is not an agent of the cluster that its label names
        the label names another add-on than the subject
          WrongCommonName: its common name is system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent, expected system:open-cluster-management:cluster:c1:addon:other:agent:other-agent
    "#]].assert_eq(&table(cases));
}

#[test]
fn a_grpc_server_is_trusted_to_name_the_agent_and_nobody_else_is() {
    let policy = ApprovalPolicy { grpc_server: Some(GRPC.into()), ..policy() };
    let agent = "system:open-cluster-management:c1:agent7";
    let through = |user: &str, named: Option<&str>| {
        with(|request| {
            request.username = user.into();
            request.groups = vec!["system:serviceaccounts".into()];
            request.on_behalf_of = named.map(str::to_owned);
        })
    };
    let cases = vec![
        ("through the server", through(GRPC, Some(agent))),
        (
            "through the server, for another cluster",
            through(GRPC, Some("system:open-cluster-management:c2:agent7")),
        ),
        ("through the server, for nobody", through(GRPC, None)),
        ("through another account", through("system:serviceaccount:default:x", Some(agent))),
        (
            "directly, with the annotation of another",
            with(|request| request.on_behalf_of = Some("root".into())),
        ),
    ];
    expect![[r#"
        through the server
          approved
        through the server, for another cluster
          WrongRequester: the requester system:open-cluster-management:c2:agent7 is not an agent of the cluster that its label names
        through the server, for nobody
          WrongRequester: the requester  is not an agent of the cluster that its label names
        through another account
          WrongRequester: the requester system:serviceaccount:default:x is not an agent of the cluster that its label names
        directly, with the annotation of another
          approved
    "#]].assert_eq(&table_under(&policy, cases));
}

#[test]
fn wrong_subjects_are_left_alone() {
    let (user, groups) = (of().default_user(), of().groups());
    let and = |more: &str| [groups.clone(), vec![more.to_owned()]].concat();
    let cases = vec![
        ("an extra group", request(&Draft::new(&user, &and("system:masters")))),
        (
            "the common group of another add-on",
            request(&Draft::new(&user, &and("system:open-cluster-management:addon:other"))),
        ),
        (
            "the group of another cluster",
            request(&Draft::new(&user, &and("system:open-cluster-management:cluster:c2:addon:hello"))),
        ),
        (
            "another group instead of one",
            request(&Draft::new(&user, &[groups[0].clone(), "system:masters".into()])),
        ),
        ("a group is missing", request(&Draft::new(&user, &groups[..1]))),
        ("a group twice", request(&Draft::new(&user, &and(&groups[0])))),
        ("no group", request(&Draft::new(&user, &[]))),
        (
            "the name of the cluster's own agent",
            request(&Draft::new("system:open-cluster-management:c1:agent7", &groups)),
        ),
        (
            "the name of another cluster's agent",
            request(&Draft::new(&AgentKey::new("c2", "hello").default_user(), &groups)),
        ),
        ("another agent of the same add-on", request(&Draft::new(&of().user("other"), &groups))),
        ("a longer name", request(&Draft::new(&format!("{user}2"), &groups))),
        ("no name", request(&Draft::new("", &groups))),
        ("two names", request(&draft().with_second_name("system:admin"))),
        ("an organizational unit", request(&draft().with_unit("x"))),
        ("another DNS name", request(&Draft::new(&user, &groups).with_dns("kubernetes.default.svc"))),
        ("a second DNS name", request(&draft().with_dns("kubernetes.default.svc"))),
    ];
    expect![[r#"
        an extra group
          WrongGroups: it asks for organizations that the agent must not have: system:masters
        the common group of another add-on
          WrongGroups: it asks for organizations that the agent must not have: system:open-cluster-management:addon:other
        the group of another cluster
          WrongGroups: it asks for organizations that the agent must not have: system:open-cluster-management:cluster:c2:addon:hello
        another group instead of one
          WrongGroups: its organizations lack system:open-cluster-management:addon:hello
        a group is missing
          WrongGroups: its organizations lack system:open-cluster-management:addon:hello
        a group twice
          WrongGroups: it asks for organizations that the agent must not have: a group twice
        no group
          WrongGroups: its organizations lack system:open-cluster-management:addon:hello, system:open-cluster-management:cluster:c1:addon:hello
        the name of the cluster's own agent
          WrongCommonName: its common name is system:open-cluster-management:c1:agent7, expected system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent
        the name of another cluster's agent
          WrongCommonName: its common name is system:open-cluster-management:cluster:c2:addon:hello:agent:hello-agent, expected system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent
        another agent of the same add-on
          WrongCommonName: its common name is system:open-cluster-management:cluster:c1:addon:hello:agent:other, expected system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent
        a longer name
          WrongCommonName: its common name is system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent2, expected system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent
        no name
          WrongCommonName: its common name is , expected system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent
        two names
          UnreadableRequest: its subject has several common names
        an organizational unit
          WrongOrganizationalUnits: its organizational units differ from those of the registration
        another DNS name
          WrongDNSNames: it asks for the DNS names kubernetes.default.svc
        a second DNS name
          WrongDNSNames: it asks for the DNS names hello.addon.open-cluster-management.io, kubernetes.default.svc
    "#]].assert_eq(&table(cases));
}

#[test]
fn malformed_requests_are_left_alone() {
    let body = |bytes: Vec<u8>| with(|request| request.body = CsrBody::Pem(bytes));
    let pem = draft().pem();
    let text = String::from_utf8(pem.clone()).unwrap();
    let cases = vec![
        ("not PEM", body(b"hello".to_vec())),
        ("empty", body(Vec::new())),
        ("not text", body(vec![0xff; 100])),
        ("PEM of something else", body(text.replace("CERTIFICATE REQUEST", "CERTIFICATE").into_bytes())),
        ("two requests", body([pem.clone(), pem.clone()].concat())),
        ("text before it", body([b"x\n".to_vec(), pem.clone()].concat())),
        ("headers", body(text.replacen("-----\n", "-----\nProc-Type: 4\n\n", 1).into_bytes())),
        ("not base64", body(text.replace('M', "*").into_bytes())),
        ("not PKCS#10", body(crate::csr::wrapped(&[0x30, 0x03, 0x02, 0x01, 0x00]))),
        ("a deep nest", body(crate::csr::wrapped(&[0x30, 0x80].repeat(2000)))),
        ("signed with another key", request(&Draft { broken_signature: true, ..draft() })),
        ("wants to be a CA", request(&Draft { wants_ca: true, ..draft() })),
        ("huge", request(&Draft { padding: MOST_BYTES, ..draft() })),
        ("huge, and not kept", with(|request| request.body = CsrBody::TooLarge(1 << 20))),
    ];
    let printed = table(cases);
    // The size of a signature varies by a byte or two.
    let printed = printed.lines().map(|line| match line.split_once("it has ") {
        Some((before, rest)) if !rest.starts_with("1048576") => {
            format!("{before}it has MANY {}\n", rest.split_once(' ').unwrap().1)
        }
        _ => format!("{line}\n"),
    });
    expect![[r#"
        not PEM
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        empty
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        not text
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        PEM of something else
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        two requests
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        text before it
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        headers
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        not base64
          UnreadableRequest: it is not exactly one PEM block of type CERTIFICATE REQUEST
        not PKCS#10
          UnreadableRequest: it is not a PKCS#10 request
        a deep nest
          UnreadableRequest: it is not a PKCS#10 request
        signed with another key
          UnreadableRequest: its signature does not match its key
        wants to be a CA
          UnreadableRequest: it requests more than alternative names
        huge
          UnreadableRequest: it has MANY bytes, and at most 8192 are read
        huge, and not kept
          UnreadableRequest: it has 1048576 bytes, and at most 8192 are read
    "#]]
    .assert_eq(&printed.collect::<String>());
}

#[test]
fn wrong_signers_usages_and_times_are_left_alone() {
    let usages = |all: &'static [&'static str]| {
        with(|request| request.usages = all.iter().map(|one| (*one).to_owned()).collect())
    };
    let cases = vec![
        (
            "a signer for kubelets",
            with(|request| request.signer = "kubernetes.io/kube-apiserver-client-kubelet".into()),
        ),
        (
            "a signer that the template does not use",
            with(|request| request.signer = "example.com/agen".into()),
        ),
        ("a signer that is not listed", with(|request| request.signer = "example.com/other".into())),
        ("server auth as well", usages(&["digital signature", "client auth", "server auth"])),
        ("server auth instead", usages(&["digital signature", "key encipherment", "server auth"])),
        ("to sign certificates", usages(&["client auth", "digital signature", "cert sign"])),
        ("no client auth", usages(&["digital signature", "key encipherment"])),
        ("no usage", usages(&[])),
        ("a usage twice", usages(&["client auth", "client auth", "digital signature"])),
        ("just in time", with(|request| request.created = now() - SignedDuration::from_mins(60))),
        ("too late", with(|request| request.created = now() - SignedDuration::from_mins(61))),
        (
            "from a clock that is ahead",
            with(|request| request.created = now() + SignedDuration::from_mins(5)),
        ),
    ];
    expect![[r#"
        a signer for kubelets
          WrongSigner: the add-on's template does not use the signer kubernetes.io/kube-apiserver-client-kubelet
        a signer that the template does not use
          WrongSigner: the add-on's template does not use the signer example.com/agen
        a signer that is not listed
          SignerNotListed: the administrator has not listed the signer example.com/other (--signer)
        server auth as well
          WrongUsages: its usages are digital signature, client auth, server auth, expected client auth and digital signature, optionally key encipherment
        server auth instead
          WrongUsages: its usages are digital signature, key encipherment, server auth, expected client auth and digital signature, optionally key encipherment
        to sign certificates
          WrongUsages: its usages are client auth, digital signature, cert sign, expected client auth and digital signature, optionally key encipherment
        no client auth
          WrongUsages: its usages are digital signature, key encipherment, expected client auth and digital signature, optionally key encipherment
        no usage
          WrongUsages: its usages are , expected client auth and digital signature, optionally key encipherment
        a usage twice
          WrongUsages: its usages are client auth, client auth, digital signature, expected client auth and digital signature, optionally key encipherment
        just in time
          approved
        too late
          RequestExpired: it is older than 3600 s: the agent must send a new one
        from a clock that is ahead
          approved
    "#]].assert_eq(&table(cases));
}

#[test]
fn facts_about_the_hub_decide_too() {
    let good = request(&draft());
    let mut printed = String::new();
    let mut note = |name: &str, told: String| printed.push_str(&format!("{name}\n  {told}\n"));
    note("no such cluster", judged(&policy(), &good, |facts| facts.accepted = None));
    note("a cluster that is not accepted", judged(&policy(), &good, |facts| facts.accepted = Some(false)));
    note("not installed", judged(&policy(), &good, |facts| facts.instance = RegistrationFacts::Missing));
    note(
        "an add-on with its own manager",
        judged(&policy(), &good, |facts| facts.instance = RegistrationFacts::NotATemplate),
    );
    note(
        "a template that is not stored",
        judged(&policy(), &good, |facts| facts.instance = RegistrationFacts::Unknown),
    );
    let kept = |registrations| -> &'static Registrations { Box::leak(Box::new(registrations)) };
    let empty = kept(Registrations::read(&json!({"spec": {"addonName": "hello"}})));
    note(
        "a template without registration",
        judged(&policy(), &good, |facts| {
            facts.instance = RegistrationFacts::Known { registrations: empty, uses_tokens: false };
        }),
    );
    note("one too many", judged(&policy(), &good, |facts| facts.recently_approved = MOST_APPROVALS));
    note("the last one", judged(&policy(), &good, |facts| facts.recently_approved = MOST_APPROVALS - 1));
    let tokens = ApprovalPolicy { tokens: true, ..policy() };
    let registrations = kept(template());
    note(
        "the agent uses tokens",
        judged(&tokens, &good, |facts| {
            facts.instance = RegistrationFacts::Known { registrations, uses_tokens: true };
        }),
    );
    note(
        "tokens are off, whatever the agent says",
        judged(&policy(), &good, |facts| {
            facts.instance = RegistrationFacts::Known { registrations, uses_tokens: true };
        }),
    );
    let elsewhere = SecretRef { namespace: "hub".into(), name: "ca2".into() };
    let listed = ApprovalPolicy { signers: vec![(CUSTOM.into(), elsewhere)], ..policy() };
    note(
        "another CA than the administrator lists",
        judged(&listed, &with(|request| request.signer = CUSTOM.into()), |_| {}),
    );
    expect![[r#"
        no such cluster
          ClusterUnknown: the cluster that its label names does not exist
        a cluster that is not accepted
          ClusterNotAccepted: the hub has not accepted the cluster (spec.hubAcceptsClient)
        not installed
          ignored: NotInstalled
        an add-on with its own manager
          ignored: NotATemplate
        a template that is not stored
          TemplateUnknown: the template that the instance is assigned is not stored on the hub
        a template without registration
          WrongSigner: the add-on's template does not use the signer kubernetes.io/kube-apiserver-client
        one too many
          TooManyRequests: 10 requests of this agent were approved within the last hour
        the last one
          approved
        the agent uses tokens
          TokenDriver: the agent uses tokens, not certificates (status.kubeClientDriver)
        tokens are off, whatever the agent says
          approved
        another CA than the administrator lists
          WrongSigningCA: the template names another signingCA for example.com/agent than the administrator (--signer)
    "#]].assert_eq(&printed);
}

#[test]
fn only_approved_requests_of_custom_signers_are_signed_after_the_same_checks() {
    let at = Some(now());
    let approved = |request: &mut SigningRequest| {
        request.stage = RequestStage::Approved { at };
        request.created = now() - SignedDuration::from_hours(30);
    };
    let (user, groups) = (of().default_user(), of().groups());
    let units = Draft::new(&of().user("agent7"), &["g".into()]).with_unit("u");
    let bad = Draft::new(&user, &[groups.clone(), vec!["system:masters".into()]].concat());
    let custom = |draft: &Draft, signer: &str| {
        let mut request = request(draft);
        request.signer = signer.into();
        approved(&mut request);
        request
    };
    let mut policy = policy();
    policy
        .signers
        .push(("example.com/units".into(), SecretRef { namespace: "hub".into(), name: "ca".into() }));
    let cases = vec![
        ("approved, custom signer", custom(&draft(), CUSTOM)),
        ("with the subject of the template", custom(&units, "example.com/units")),
        ("without its unit", custom(&Draft::new(&of().user("agent7"), &["g".into()]), "example.com/units")),
        ("approved by hand, with an extra group", custom(&bad, CUSTOM)),
        ("approved, for Kubernetes' signer", with(approved)),
        ("over", with(|request| request.stage = RequestStage::Over { approved_at: at })),
    ];
    expect![[r#"
        approved, custom signer
          signed with hub/ca
        with the subject of the template
          signed with hub/ca
        without its unit
          WrongOrganizationalUnits: its organizational units differ from those of the registration
        approved by hand, with an extra group
          WrongGroups: it asks for organizations that the agent must not have: system:masters
        approved, for Kubernetes' signer
          ignored: KubernetesSigns
        over
          ignored: Over
    "#]]
    .assert_eq(&table_under(&policy, cases));
}

/// Whoever changes a request in transit, or finds a gap in the parser, gets nothing.
#[test]
fn no_request_with_a_single_changed_bit_is_approved() {
    let pem = String::from_utf8(draft().pem()).unwrap();
    let packed: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(packed).unwrap();
    let mut approved = 0;
    for at in 0..der.len() * 8 {
        let mut changed = der.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let told = judged(
            &policy(),
            &with(|request| request.body = CsrBody::Pem(crate::csr::wrapped(&changed))),
            |_| {},
        );
        approved += usize::from(!told.starts_with("UnreadableRequest") && !told.starts_with("Wrong"));
    }
    assert_eq!(approved, 0, "of {}", der.len() * 8);
    let text = pem.into_bytes();
    for length in 0..text.len() - 1 {
        let told =
            judged(&policy(), &with(|request| request.body = CsrBody::Pem(text[..length].to_vec())), |_| {});
        assert!(told.starts_with("UnreadableRequest"), "{length} bytes: {told}");
    }
}
