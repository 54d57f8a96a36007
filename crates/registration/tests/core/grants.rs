//! Role bindings and the status of an instance.

#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

use aviary_api::ManagedClusterAddOn;
use aviary_registration::decide::ApprovalPolicy;
use aviary_registration::grants::{BindingWrite, SeenBinding, WantedGrants, binding_writes, wanted};
use aviary_registration::instance::AgentInstance;
use aviary_registration::status::{Applied, patch};
use aviary_registration::template::Registrations;
use expect_test::expect;
use jiff::Timestamp;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn instance(status: Value) -> AgentInstance {
    let object: ManagedClusterAddOn = serde_json::from_value(json!({
        "metadata": {"name": "hello", "namespace": "c1", "uid": "u1", "resourceVersion": "7", "generation": 3},
        "status": status,
    }))
    .unwrap();
    AgentInstance::read(&object).unwrap()
}

fn template(permissions: Value) -> Registrations {
    Registrations::read(&json!({"spec": {"addonName": "hello", "registration": [
        {"type": "KubeClient", "kubeClient": {"hubPermissions": permissions}},
        {"type": "CustomSigner", "customSigner": {"signerName": "example.com/agent", "signingCA": {"name": "ca"}}},
    ]}}))
}

fn permissions() -> Value {
    json!([
        {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": "reader"}},
        {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": "writer"}},
        {"type": "SingleNamespace", "singleNamespace": {"namespace": "shared", "roleRef":
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "config"}}},
    ])
}

fn told(wanted: &WantedGrants) -> String {
    let bindings = wanted.bindings.iter().map(|one| {
        let owner = one.owner.as_deref().unwrap_or("nobody");
        format!(
            "{} {}: {} {} for {:?}, owned by {owner}\n",
            one.namespace,
            one.name,
            one.role.kind.name(),
            one.role.name,
            one.subject
        )
    });
    let registrations = wanted.registrations.iter().map(|one| format!("{one}\n"));
    let problems = wanted.problems.iter().map(|one| format!("! {one}\n"));
    bindings.chain(registrations).chain(problems).collect()
}

#[test]
fn every_binding_names_the_agent_of_one_cluster() {
    let policy = crate::requests::policy();
    let wants = wanted(&policy, &instance(json!({})), &template(permissions()), true);
    expect![[r#"
        c1 open-cluster-management:hello:clusterrole:agent: ClusterRole reader for Group("system:open-cluster-management:cluster:c1:addon:hello"), owned by u1
        c1 open-cluster-management:hello:clusterrole:agent:writer: ClusterRole writer for Group("system:open-cluster-management:cluster:c1:addon:hello"), owned by u1
        shared open-cluster-management:hello:role:agent:c1: Role config for Group("system:open-cluster-management:cluster:c1:addon:hello"), owned by nobody
        {"signerName":"kubernetes.io/kube-apiserver-client","subject":{"groups":["system:open-cluster-management:cluster:c1:addon:hello","system:open-cluster-management:addon:hello"],"user":"system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent"}}
        {"signerName":"example.com/agent","subject":{"groups":["system:open-cluster-management:cluster:c1:addon:hello","system:open-cluster-management:addon:hello"],"user":"system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent"}}
    "#]].assert_eq(&told(&wants));
    for binding in &wants.bindings {
        let object = binding.object(&instance(json!({})).key);
        assert_eq!(object["subjects"].as_array().unwrap().len(), 1);
        assert!(
            !object["subjects"].to_string().contains("\"system:open-cluster-management:addon:"),
            "{object}"
        );
    }
}

#[test]
fn a_cluster_that_is_not_accepted_gets_nothing() {
    let wants = wanted(&crate::requests::policy(), &instance(json!({})), &template(permissions()), false);
    expect![[r#"
        ! the hub has not accepted the cluster (spec.hubAcceptsClient)
    "#]]
    .assert_eq(&told(&wants));
}

#[test]
fn tokens_are_used_only_if_the_administrator_and_the_agent_want_them() {
    let asks = instance(json!({"kubeClientDriver": "token"}));
    let policy = crate::requests::policy();
    let on = ApprovalPolicy { tokens: true, ..policy.clone() };
    assert!(!wanted(&policy, &asks, &template(permissions()), true).account);
    assert!(!wanted(&on, &instance(json!({})), &template(permissions()), true).account);
    expect![[r#"
        c1 open-cluster-management:hello:clusterrole:agent: ClusterRole reader for Account { namespace: "c1", name: "hello-agent" }, owned by u1
        c1 open-cluster-management:hello:clusterrole:agent:writer: ClusterRole writer for Account { namespace: "c1", name: "hello-agent" }, owned by u1
        shared open-cluster-management:hello:role:agent:c1: Role config for Account { namespace: "c1", name: "hello-agent" }, owned by nobody
        c1 hello-token-role: Role hello-token-role for Group("system:open-cluster-management:c1"), owned by u1
        {"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":"system:serviceaccount:c1:hello-agent"}}
        {"signerName":"example.com/agent","subject":{"groups":["system:open-cluster-management:cluster:c1:addon:hello","system:open-cluster-management:addon:hello"],"user":"system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent"}}
    "#]].assert_eq(&told(&wanted(&on, &asks, &template(permissions()), true)));
}

#[test]
fn invalid_entries_are_named_and_the_others_are_used() {
    let mut listed = permissions();
    listed.as_array_mut().unwrap().extend([
        json!({"type": "CurrentCluster"}),
        json!({"type": "SingleNamespace", "singleNamespace": {"namespace": "../x", "roleRef": {"kind": "Role", "name": "a"}}}),
        json!({"type": "SingleNamespace", "singleNamespace": {"namespace": "x", "roleRef": {"kind": "User", "name": "a"}}}),
        json!("text"),
    ]);
    let content = json!({"spec": {"addonName": "hello", "registration": [
        {"type": "KubeClient", "kubeClient": {"hubPermissions": listed}},
        {"type": "KubeClient"},
        {"type": "Other"},
        {"type": "CustomSigner", "customSigner": {"signerName": "kubernetes.io/kubelet-serving", "signingCA": {"name": "ca"}}},
        {"type": "CustomSigner", "customSigner": {"signerName": "example.com/unlisted", "signingCA": {"name": "ca"}}},
        {"type": "CustomSigner", "customSigner": {"signerName": "example.com/agent", "signingCA": {"name": "other"}}},
        {"type": "CustomSigner"},
        7,
    ]}});
    let wants =
        wanted(&crate::requests::policy(), &instance(json!({})), &Registrations::read(&content), true);
    assert_eq!(wants.bindings.len(), 3);
    expect![[r#"
        spec.registration[0].kubeClient.hubPermissions[3] needs the field that its type names, with a role
        spec.registration[0].kubeClient.hubPermissions[4] needs the field that its type names, with a role
        spec.registration[0].kubeClient.hubPermissions[5] needs the field that its type names, with a role
        spec.registration[0].kubeClient.hubPermissions[6] needs the field that its type names, with a role
        spec.registration[1]: only one entry may have type KubeClient
        spec.registration[2]: type must be KubeClient or CustomSigner
        spec.registration[3].customSigner needs a signerName other than Kubernetes' own, and signingCA.name
        spec.registration[6].customSigner needs a signerName other than Kubernetes' own, and signingCA.name
        spec.registration[7] cannot be read
        the administrator has not listed the signer example.com/unlisted (--signer)
        the template names another signingCA for example.com/agent than the administrator (--signer)"#]]
    .assert_eq(&wants.problems.join("\n"));
    let odd = Registrations::read(&json!({"spec": {"registration": {"type": "KubeClient"}}}));
    assert_eq!(odd.problems.len(), 1);
}

/// What the hub holds after a binding was written.
fn seen(object: &Value) -> SeenBinding {
    let mut object = object.clone();
    object["metadata"]["uid"] = "b1".into();
    object["metadata"]["resourceVersion"] = "5".into();
    SeenBinding::read(serde_json::from_value(object).unwrap()).unwrap()
}

#[test]
fn bindings_are_written_once_repaired_and_cleaned_up() {
    let instance = instance(json!({}));
    let of = &instance.key;
    let wants = wanted(&crate::requests::policy(), &instance, &template(permissions()), true);
    assert_eq!(binding_writes(of, &wants.bindings, &[]).len(), 3);
    let there: Vec<SeenBinding> = wants.bindings.iter().map(|one| seen(&one.object(of))).collect();
    let all: Vec<&SeenBinding> = there.iter().collect();
    assert_eq!(binding_writes(of, &wants.bindings, &all), [], "at rest");
    let gone = binding_writes(of, &[], &all);
    assert!(
        gone.len() == 3 && gone.iter().all(|write| matches!(write, BindingWrite::Delete { .. })),
        "{gone:?}"
    );

    let first = &wants.bindings[..1];
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut object = first[0].object(of);
        change(&mut object);
        binding_writes(of, first, &[&seen(&object)])
    };
    let group = json!({"kind": "Group", "name": "system:authenticated"});
    let writes = changed(&|object| object["subjects"].as_array_mut().unwrap().push(group.clone()));
    assert!(matches!(writes[..], [BindingWrite::Replace { .. }]), "a holder was added: {writes:?}");
    let writes = changed(&|object| object["subjects"] = json!([{"kind": "User", "name": "eve"}]));
    assert!(matches!(writes[..], [BindingWrite::Replace { .. }]), "the holder was replaced: {writes:?}");
    let writes = changed(&|object| object["roleRef"]["name"] = "admin".into());
    assert!(matches!(writes[..], [BindingWrite::Delete { .. }, BindingWrite::Create(_)]), "{writes:?}");
    let writes = changed(&|object| object["metadata"]["annotations"] = json!({}));
    assert!(matches!(writes[..], [BindingWrite::Replace { .. }]), "OCM's own is taken over: {writes:?}");
    let writes = changed(&|object| {
        object["metadata"]["annotations"] = json!({});
        object["metadata"]["labels"] = json!({});
    });
    assert!(matches!(writes[..], [BindingWrite::Taken(_)]), "somebody else's: {writes:?}");
    let writes = changed(&|object| {
        object["metadata"]["annotations"]["addon.open-cluster-management.io/registration-of"] =
            "c2/hello".into();
    });
    assert!(matches!(writes[..], [BindingWrite::Taken(_)]), "of another cluster: {writes:?}");
}

#[test]
fn the_status_is_patched_entry_by_entry_and_only_when_it_differs() {
    let policy = crate::requests::policy();
    let template = template(json!([]));
    let done = Applied::default();
    let bare = instance(json!({}));
    let wants = wanted(&policy, &bare, &template, true);
    let first = patch(&bare, &wants, &done, now()).unwrap();
    expect![[r#"
        [
          {
            "op": "test",
            "path": "/metadata/uid",
            "value": "u1"
          },
          {
            "op": "test",
            "path": "/metadata/resourceVersion",
            "value": "7"
          },
          {
            "op": "add",
            "path": "/status/registrations",
            "value": [
              {
                "signerName": "kubernetes.io/kube-apiserver-client",
                "subject": {
                  "groups": [
                    "system:open-cluster-management:cluster:c1:addon:hello",
                    "system:open-cluster-management:addon:hello"
                  ],
                  "user": "system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent"
                }
              },
              {
                "signerName": "example.com/agent",
                "subject": {
                  "groups": [
                    "system:open-cluster-management:cluster:c1:addon:hello",
                    "system:open-cluster-management:addon:hello"
                  ],
                  "user": "system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent"
                }
              }
            ]
          },
          {
            "op": "add",
            "path": "/status/conditions",
            "value": [
              {
                "lastTransitionTime": "2026-01-01T12:00:00Z",
                "message": "Registration of the addon agent is configured",
                "observedGeneration": 3,
                "reason": "SetPermissionApplied",
                "status": "True",
                "type": "RegistrationApplied"
              }
            ]
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&first).unwrap());

    let other = json!({"type": "Available", "status": "True", "reason": "X", "message": "m"});
    let applied = first[3]["value"][0].clone();
    let there = instance(json!({"registrations": wants.registrations, "conditions": [other, applied]}));
    assert_eq!(patch(&there, &wants, &done, now()), None, "at rest");
    let failed = Applied { failures: vec!["no".into()], ..Applied::default() };
    expect![[r#"
        [
          {
            "op": "test",
            "path": "/metadata/uid",
            "value": "u1"
          },
          {
            "op": "test",
            "path": "/metadata/resourceVersion",
            "value": "7"
          },
          {
            "op": "replace",
            "path": "/status/conditions/1",
            "value": {
              "lastTransitionTime": "2026-01-01T12:00:00Z",
              "message": "no",
              "observedGeneration": 3,
              "reason": "SetPermissionFailed",
              "status": "False",
              "type": "RegistrationApplied"
            }
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&patch(&there, &wants, &failed, now()).unwrap()).unwrap());
    let nil = wanted(&policy, &bare, &Registrations::default(), true);
    let written = patch(&instance(json!({"conditions": [other]})), &nil, &done, now()).unwrap();
    assert_eq!(written[2]["path"], "/status/conditions/-");
    assert_eq!(written[2]["value"]["reason"], "NilRegistration");
}

#[test]
fn what_ocm_wrote_of_a_registration_stays_as_it_is() {
    let policy = crate::requests::policy();
    let bare = instance(json!({}));
    let ocms = |reason: &str| {
        json!({
            "type": "RegistrationApplied", "status": "True", "reason": reason,
            "message": "Registration of the addon agent is configured",
            "lastTransitionTime": "2025-01-01T12:00:00Z",
        })
    };
    let wants = wanted(&policy, &bare, &template(json!([])), true);
    let there = json!({"registrations": wants.registrations, "conditions": [ocms("SetPermissionApplied")]});
    assert_eq!(patch(&instance(there), &wants, &Applied::default(), now()), None);
    let nil = wanted(&policy, &bare, &Registrations::default(), true);
    for reason in ["NilRegistration", "SetPermissionApplied"] {
        let there = json!({"conditions": [ocms(reason)]});
        assert_eq!(patch(&instance(there), &nil, &Applied::default(), now()), None, "{reason}");
    }
    // A reason that says something else is replaced.
    let there = json!({"registrations": wants.registrations, "conditions": [ocms("NilRegistration")]});
    assert!(patch(&instance(there), &wants, &Applied::default(), now()).is_some());
}
