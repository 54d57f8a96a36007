//! The registration of add-on agents, as it is shipped: a table of good and hostile certificate
//! requests with Kubernetes' own signer, role bindings, a custom signer, and tokens.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::csr::Draft;
use crate::run::{Process, start};
use crate::server::{NAMESPACE, Server, installed, root, succeeded};

const KUBE_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const CUSTOM: &str = "example.com/reg";
/// Seconds after which a request counts as expired.
const LIFETIME: i64 = 20;

fn put(server: &Server, object: &Value) {
    server.kubectl("apply -f -", object.to_string().as_bytes());
}

/// Runs openssl in the test's folder.
fn openssl(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(server.desk.path("."));
    succeeded("openssl", command.output().unwrap())
}

/// A PKCS#10 request; its key is in `NAME.key`. (openssl refuses names of more than 64 characters.)
fn pkcs10(server: &Server, name: &str, user: &str, groups: &[String], dns: Option<&str>) -> String {
    let mut draft = Draft { in_one_set: true, ..Draft::new(user, groups) };
    draft.dns_names.extend(dns.map(str::to_owned));
    let (pem, key) = draft.with_key();
    fs::write(server.desk.path(&format!("{name}.key")), key).unwrap();
    String::from_utf8(pem).unwrap()
}

fn user(cluster: &str, addon: &str) -> String {
    format!("system:open-cluster-management:cluster:{cluster}:addon:{addon}:agent:{addon}-agent")
}

fn groups(cluster: &str, addon: &str) -> Vec<String> {
    vec![
        format!("system:open-cluster-management:cluster:{cluster}:addon:{addon}"),
        format!("system:open-cluster-management:addon:{addon}"),
    ]
}

/// One request of the table.
#[derive(Clone)]
struct Case {
    name: &'static str,
    /// The cluster whose agent sends it.
    sender: &'static str,
    sender_groups: Vec<String>,
    cluster: &'static str,
    signer: &'static str,
    usages: &'static [&'static str],
    body: Vec<u8>,
    annotations: Value,
    /// The reason of the Event, or `signed`.
    expected: &'static str,
}

const USAGES: &[&str] = &["digital signature", "key encipherment", "client auth"];

impl Case {
    fn new(name: &'static str, body: String, expected: &'static str) -> Self {
        Self {
            name,
            sender: "reg-c1",
            sender_groups: vec![
                "system:open-cluster-management:reg-c1".into(),
                "system:open-cluster-management:managed-clusters".into(),
            ],
            cluster: "reg-c1",
            signer: KUBE_CLIENT,
            usages: USAGES,
            body: body.into_bytes(),
            annotations: json!({}),
            expected,
        }
    }

    fn from(mut self, sender: &'static str) -> Self {
        self.sender = sender;
        self.sender_groups = vec![format!("system:open-cluster-management:{sender}")];
        self
    }

    fn object(&self) -> Value {
        use base64::Engine as _;
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {
                "name": format!("addon-{}-reg-{}", self.cluster, self.name),
                "labels": {"open-cluster-management.io/cluster-name": self.cluster, "open-cluster-management.io/addon-name": "reg"},
                "annotations": self.annotations,
            },
            "spec": {
                "signerName": self.signer, "usages": self.usages,
                "request": base64::engine::general_purpose::STANDARD.encode(&self.body),
            },
        })
    }

    /// Sends it as the agent. Returns the server's complaint, if it refuses.
    fn send(&self, server: &Server) -> Option<String> {
        let mut arguments = format!("create -f - --as system:open-cluster-management:{}:agent1", self.sender);
        for group in self.sender_groups.iter().map(String::as_str).chain(["system:authenticated"]) {
            arguments.push_str(&format!(" --as-group {group}"));
        }
        let output = server.try_kubectl("admin.kubeconfig", &arguments, self.object().to_string().as_bytes());
        (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
    }

    fn get(&self, server: &Server) -> Value {
        server.get(&format!("csr addon-{}-reg-{}", self.cluster, self.name))
    }
}

/// The table. The clusters reg-c1, reg-c2 and reg-c1-evil are accepted, reg-c3 is not.
fn table(server: &Server) -> Vec<Case> {
    let (me, mine) = (user("reg-c1", "reg"), groups("reg-c1", "reg"));
    let and = |more: &str| [mine.clone(), vec![more.to_owned()]].concat();
    let dns = Some("reg.addon.open-cluster-management.io");
    let pem = |name: &str, user: &str, groups: &[String]| pkcs10(server, name, user, groups, None);
    let good = pkcs10(server, "good", &me, &mine, dns);
    let case = Case::new;
    let mut cases = vec![
        case("good", good.clone(), "signed"),
        case("older-agent", pem("older", &me, &and("system:authenticated")), "signed"),
        case("other-cluster-sends", pem("x1", &me, &mine), "WrongRequester").from("reg-c2"),
        case("prefix", pem("x2", &me, &mine), "WrongRequester").from("reg-c1-evil"),
        case("extra-group", pem("x4", &me, &and("system:nodes")), "WrongGroups"),
        case("group-of-other", pem("x5", &me, &and(&groups("reg-c2", "reg")[0])), "WrongGroups"),
        case("missing-group", pem("x6", &me, &mine[..1]), "WrongGroups"),
        case("name-of-other", pem("x7", &user("reg-c2", "reg"), &mine), "WrongCommonName"),
        case("longer-name", pem("x8", &format!("{me}x"), &mine), "WrongCommonName"),
        case(
            "name-of-cluster",
            pem("x9", "system:open-cluster-management:reg-c1:agent1", &mine),
            "WrongCommonName",
        ),
        case("other-dns", pkcs10(server, "x10", &me, &mine, Some("kubernetes.default.svc")), "WrongDNSNames"),
        case(
            "huge",
            pem("x11", &me, &(0..300).map(|n| format!("system:group:{n:040}")).collect::<Vec<_>>()),
            "UnreadableRequest",
        ),
        case("two-blocks", format!("{good}{good}"), "UnreadableRequest"),
        case("not-pem", "hello".into(), "refused by the server"),
    ];
    let mut more = |case: Case, change: &dyn Fn(&mut Case)| {
        let mut case = case;
        change(&mut case);
        cases.push(case);
    };
    more(case("label-of-other", good.clone(), "WrongRequester"), &|case| case.cluster = "reg-c2");
    more(case("without-cluster-group", good.clone(), "WrongRequester"), &|case| {
        case.sender_groups = vec!["system:open-cluster-management:managed-clusters".into()];
    });
    more(case("annotation", good.clone(), "WrongRequester").from("reg-c2"), &|case| {
        case.annotations =
            json!({"open-cluster-management.io/csr-user": "system:open-cluster-management:reg-c1:agent1"});
    });
    more(
        case(
            "not-accepted",
            pem("x12", &user("reg-c3", "reg"), &groups("reg-c3", "reg")),
            "ClusterNotAccepted",
        )
        .from("reg-c3"),
        &|case| {
            case.cluster = "reg-c3";
        },
    );
    more(case("usage", good.clone(), "WrongUsages"), &|case| {
        case.usages = &["digital signature", "client auth", "server auth"];
    });
    more(case("no-client-auth", good.clone(), "WrongUsages"), &|case| {
        case.usages = &["digital signature", "key encipherment"];
    });
    more(case("signer", good.clone(), "WrongSigner"), &|case| case.signer = "example.com/unknown");
    more(case("kubelet-signer", good.clone(), "WrongSigner"), &|case| {
        case.signer = "kubernetes.io/kubelet-serving";
    });
    more(case("custom", pem("custom", &me, &mine), "signed"), &|case| case.signer = CUSTOM);
    more(case("custom-extra", pem("x13", &me, &and("system:masters")), "WrongGroups"), &|case| {
        case.signer = CUSTOM;
    });
    cases
}

fn setup(server: &Server) {
    let manifests = server.aviary("manifests --with registration --without monitoring");
    server.kubectl("apply -f -", manifests.as_bytes());
    fs::write(server.desk.path("empty.cnf"), "[req]\ndistinguished_name = dn\n[dn]\n").unwrap();
    openssl(
        server,
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "custom-ca.key",
            "-out",
            "custom-ca.crt",
            "-days",
            "2",
            "-config",
            "empty.cnf",
            "-subj",
            "/CN=custom",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
        ],
    );
    server.kubectl(&format!("delete secret reg-ca -n {NAMESPACE} --ignore-not-found"), b"");
    let (crt, key) = (server.desk.path("custom-ca.crt"), server.desk.path("custom-ca.key"));
    server.kubectl(
        &format!(
            "create secret tls reg-ca -n {NAMESPACE} --cert '{}' --key '{}'",
            crt.display(),
            key.display()
        ),
        b"",
    );
    server.kubectl("apply -f -", ALLOWED.as_bytes());
    for (cluster, accepted) in [("reg-c1", true), ("reg-c2", true), ("reg-c1-evil", true), ("reg-c3", false)]
    {
        put(server, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster}}));
        put(
            server,
            &json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": cluster}, "spec": {"hubAcceptsClient": accepted},
            }),
        );
    }
    put(server, &template(true));
    for cluster in ["reg-c1", "reg-c2", "reg-c3"] {
        instance(server, cluster, "reg", "reg-v1");
    }
}

/// The template, optionally with a custom signer.
fn template(with_signer: bool) -> Value {
    let ca = json!({"name": "reg-ca", "namespace": NAMESPACE});
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "reg", "namespace": "default"}});
    let mut registration = vec![json!({"type": "KubeClient", "kubeClient": {"hubPermissions": [
        {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": "reg-reader"}},
        {"type": "SingleNamespace", "singleNamespace": {"namespace": "reg-shared", "roleRef":
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reg-config"}}},
    ]}})];
    if with_signer {
        registration
            .push(json!({"type": "CustomSigner", "customSigner": {"signerName": CUSTOM, "signingCA": ca}}));
    }
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate", "metadata": {"name": "reg-v1"},
        "spec": {"addonName": "reg", "agentSpec": {"workload": {"manifests": [manifest]}}, "registration": registration},
    })
}

/// An instance that is assigned a template, as the manager records it.
fn instance(server: &Server, cluster: &str, addon: &str, template: &str) {
    put(
        server,
        &json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": {"name": addon, "namespace": cluster}, "spec": {},
        }),
    );
    let stored = server.get(&format!("addontemplate {template}"));
    fs::write(server.desk.path("template.json"), stored.to_string()).unwrap();
    let hash = server.aviary("hash -f template.json").split_whitespace().next().unwrap().to_owned();
    let status = json!({"configReferences": [{
        "group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": template,
        "desiredConfig": {"name": template, "specHash": hash},
    }]});
    server.set_status(cluster, addon, &status);
}

/// What an administrator allows, and what agents need of the hub beside it.
const ALLOWED: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: reg-shared}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: reg-allowed
  labels: {addon.open-cluster-management.io/aggregate-to-registration: "true"}
rules:
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [reg-reader], verbs: [bind]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: [reg-config], verbs: [bind]}
- {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [example.com/reg], verbs: [approve, sign]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reg-ca, namespace: open-cluster-management}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [reg-ca], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reg-ca, namespace: open-cluster-management}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reg-ca}
subjects: [{kind: ServiceAccount, name: aviary-registration, namespace: open-cluster-management}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reg-reader}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reg-config, namespace: reg-shared}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reg-agents}
rules:
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reg-agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reg-agents}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:authenticated"}]
"#;

/// The process with the arguments of its Deployment and its own account.
fn registration(server: &Server, more: &str) -> Process {
    let itself = format!("--as system:serviceaccount:{NAMESPACE}:aviary-registration");
    for right in ["list csr", "bind clusterroles/reg-reader", "create serviceaccounts"] {
        if right == "create serviceaccounts" && !more.contains("--tokens") {
            continue;
        }
        server.until(right, || {
            let output = server.try_kubectl("admin.kubeconfig", &format!("auth can-i {right} {itself}"), b"");
            String::from_utf8(output.stdout).unwrap().trim() == "yes"
        });
    }
    let account = server.kubeconfig_of(NAMESPACE, "aviary-registration");
    let deployment = server.get(&format!("deployment aviary-registration -n {NAMESPACE}"));
    let arguments: Vec<String> = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|argument| {
            argument
                .as_str()
                .unwrap()
                .replace("$(POD_NAMESPACE)", NAMESPACE)
                .replace("0.0.0.0:8081", "127.0.0.1:0")
        })
        .collect();
    start(
        &server.desk,
        &format!(
            "{} --kubeconfig {account} --signer {CUSTOM}={NAMESPACE}/reg-ca {more}",
            arguments.join(" ")
        ),
    )
}

fn events(server: &Server) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = server.get("events -n default");
    let about = |event: &Value| (text(&event["involvedObject"]["name"]), text(&event["reason"]));
    all["items"].as_array().unwrap().iter().map(about).collect()
}

fn condition(server: &Server, cluster: &str, kind: &str) -> Value {
    let instance = server.get(&format!("managedclusteraddon reg -n {cluster}"));
    let conditions = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == kind).unwrap_or(Value::Null)
}

fn cleanup(server: &Server) {
    server.kubectl("delete csr -l open-cluster-management.io/addon-name=reg", b"");
    server.kubectl("delete addontemplate reg-v1 --ignore-not-found", b"");
    server.kubectl("delete managedcluster reg-c1 reg-c2 reg-c3 reg-c1-evil --ignore-not-found", b"");
    server.kubectl("delete namespace reg-c1 reg-c2 reg-c3 reg-c1-evil reg-shared --ignore-not-found", b"");
}

#[test]
fn exactly_the_good_requests_are_approved_and_signed() {
    let server = installed("registration-table");
    setup(&server);
    let mine = groups("reg-c1", "reg");
    let late =
        Case::new("expired", pkcs10(&server, "late", &user("reg-c1", "reg"), &mine, None), "RequestExpired");
    assert_eq!(late.send(&server), None);
    let created: jiff::Timestamp =
        late.get(&server)["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    server
        .until("a request to expire", || jiff::Timestamp::now().as_second() > created.as_second() + LIFETIME);
    let _process = registration(&server, &format!("--request-lifetime {LIFETIME} --log debug"));

    // Agents ask once they find their registrations.
    server.until("the registrations", || {
        condition(&server, "reg-c1", "RegistrationApplied")["status"] == "True"
    });
    let registrations = server.get("managedclusteraddon reg -n reg-c1")["status"]["registrations"].clone();
    assert_eq!(registrations[0]["signerName"], KUBE_CLIENT);
    assert_eq!(registrations[0]["subject"], json!({"user": user("reg-c1", "reg"), "groups": mine}));
    assert_eq!(registrations[1]["signerName"], CUSTOM);
    assert_eq!(condition(&server, "reg-c3", "RegistrationApplied")["status"], "False");

    let mut cases = table(&server);
    for case in &mut cases {
        let complaint = case.send(&server);
        assert_eq!(
            complaint.is_some(),
            case.expected == "refused by the server",
            "{}: {complaint:?}",
            case.name
        );
    }
    cases.retain(|case| case.expected != "refused by the server");
    cases.push(late);
    for case in &cases {
        let name = case.object()["metadata"]["name"].as_str().unwrap().to_owned();
        server.until(&format!("{} to be {}", case.name, case.expected), || match case.expected {
            "signed" => case.get(&server)["status"]["certificate"].is_string(),
            reason => events(&server).contains(&(name.clone(), reason.to_owned())),
        });
    }
    let signed: Vec<&str> = cases
        .iter()
        .filter(|case| case.get(&server)["status"]["certificate"].is_string())
        .map(|case| case.name)
        .collect();
    assert_eq!(signed, ["good", "older-agent", "custom"]);
    for case in cases.iter().filter(|case| case.expected != "signed") {
        assert_eq!(case.get(&server)["status"], json!({}), "{} is left alone", case.name);
    }
    the_certificate_works(&server, &cases[0]);
    the_custom_certificate_is_of_its_ca(&server, cases.iter().find(|case| case.name == "custom").unwrap());
    the_bindings_are_kept_and_go_with_the_instance(&server);
    cleanup(&server);
}

fn certificate(server: &Server, case: &Case) -> Vec<u8> {
    use base64::Engine as _;
    let encoded = case.get(server)["status"]["certificate"].as_str().unwrap().to_owned();
    base64::engine::general_purpose::STANDARD.decode(encoded).unwrap()
}

/// The agent can do what its roles allow in its own cluster's namespace, and nothing elsewhere.
fn the_certificate_works(server: &Server, case: &Case) {
    fs::write(server.desk.path("agent.crt"), certificate(server, case)).unwrap();
    let admin = fs::read_to_string(server.desk.path("admin.kubeconfig")).unwrap();
    let (before, _) = admin.split_once("user: {token:").unwrap();
    let agent = format!("{before}user: {{client-certificate: agent.crt, client-key: good.key}}}}]\n");
    fs::write(server.desk.path("agent.kubeconfig"), agent).unwrap();
    let may = |what: &str| {
        let output = server.try_kubectl("agent.kubeconfig", &format!("auth can-i {what}"), b"");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(may("list configmaps -n reg-c1"), "yes");
    assert_eq!(may("get configmaps -n reg-shared"), "yes");
    for not in
        ["list configmaps -n reg-c2", "list configmaps -n reg-shared", "get secrets -n reg-c1", "list csr"]
    {
        assert_eq!(may(not), "no", "{not}");
    }
}

fn the_custom_certificate_is_of_its_ca(server: &Server, case: &Case) {
    fs::write(server.desk.path("custom.crt"), certificate(server, case)).unwrap();
    let told =
        openssl(server, &["verify", "-CAfile", "custom-ca.crt", "-purpose", "sslclient", "custom.crt"]);
    assert!(told.contains("custom.crt: OK"), "{told}");
    let text = openssl(server, &["x509", "-in", "custom.crt", "-noout", "-text"]);
    for part in ["TLS Web Client Authentication", "CA:FALSE", "addon:reg:agent:reg-agent"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("TLS Web Server Authentication"), "{text}");
}

fn the_bindings_are_kept_and_go_with_the_instance(server: &Server) {
    let own = "rolebinding open-cluster-management:reg:clusterrole:agent -n reg-c1";
    let shared = "rolebinding open-cluster-management:reg:role:agent:reg-c1 -n reg-shared";
    let holders = |what: &str| server.get(what)["subjects"].clone();
    let expected = json!([{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": groups("reg-c1", "reg")[0]}]);
    assert_eq!((holders(own), holders(shared)), (expected.clone(), expected.clone()));
    // Somebody adds a holder: it is removed again.
    let more = r#"[{"op": "add", "path": "/subjects/-", "value": {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "eve"}}]"#;
    server.kubectl(&format!("patch {own} --type=json -p '{more}'"), b"");
    server.until("the holder to be removed", || holders(own) == expected);
    // Somebody else has a name that is wanted: the condition says so, and it heals.
    let theirs = "rolebinding open-cluster-management:reg:clusterrole:agent -n reg-c2";
    server.kubectl("delete managedclusteraddon reg -n reg-c2", b"");
    server.until("the binding to go", || {
        !server.try_kubectl("admin.kubeconfig", &format!("get {theirs}"), b"").status.success()
    });
    server.kubectl("create rolebinding open-cluster-management:reg:clusterrole:agent -n reg-c2 --clusterrole=reg-reader --group=theirs", b"");
    instance(server, "reg-c2", "reg", "reg-v1");
    server.until("the condition to say so", || {
        let condition = condition(server, "reg-c2", "RegistrationApplied");
        condition["reason"] == "SetPermissionFailed"
            && condition["message"].as_str().unwrap().contains("belongs to somebody else")
    });
    server.kubectl(&format!("delete {theirs}"), b"");
    server.until("it to heal", || condition(server, "reg-c2", "RegistrationApplied")["status"] == "True");
    // A role that the administrator has not listed is not bound, not even one of our own.
    the_role_is_not_bound(server);
    server.kubectl("delete managedclusteraddon reg -n reg-c1", b"");
    for binding in [own, shared] {
        server.until("the bindings to go", || {
            !server.try_kubectl("admin.kubeconfig", &format!("get {binding}"), b"").status.success()
        });
    }
}

fn the_role_is_not_bound(server: &Server) {
    for role in ["cluster-admin", "aviary-registration"] {
        put(
            server,
            &json!({
                "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate", "metadata": {"name": "reg-v2"},
                "spec": {"addonName": "reg", "agentSpec": {"workload": {"manifests": []}}, "registration": [
                    {"type": "KubeClient", "kubeClient": {"hubPermissions": [
                        {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": role}},
                    ]}},
                ]},
            }),
        );
        instance(server, "reg-c1-evil", "reg", "reg-v2");
        server.until(&format!("the condition to name {role}"), || {
            let condition = condition(server, "reg-c1-evil", "RegistrationApplied");
            condition["status"] == "False"
                && condition["message"].as_str().unwrap().contains(&format!("bind the ClusterRole {role}"))
        });
        let bindings = server.kubectl("get rolebindings -n reg-c1-evil -o name", b"");
        assert_eq!(bindings, "", "{role}");
    }
    server.kubectl("delete managedclusteraddon reg -n reg-c1-evil", b"");
    server.kubectl("delete addontemplate reg-v2", b"");
}

#[test]
fn a_flood_of_requests_holds_nobody_up() {
    let server = installed("registration-flood");
    setup(&server);
    let _process = registration(&server, "--log info");
    server.until("the registrations", || {
        condition(&server, "reg-c1", "RegistrationApplied")["status"] == "True"
    });
    let body = pkcs10(&server, "flood", &user("reg-c1", "reg"), &groups("reg-c1", "reg"), None);
    let flood: Vec<Value> = (0..300)
        .map(|number| {
            let mut object = Case::new("flood", body.clone(), "").object();
            object["metadata"]["name"] = format!("addon-reg-c1-reg-flood-{number}").into();
            object
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": flood});
    let as_evil = "create -f - --as system:open-cluster-management:reg-c1-evil:agent1 --as-group system:open-cluster-management:reg-c1-evil --as-group system:authenticated";
    let began = Instant::now();
    succeeded("the flood", server.try_kubectl("admin.kubeconfig", as_evil, list.to_string().as_bytes()));
    let good = Case::new(
        "good",
        pkcs10(&server, "good", &user("reg-c1", "reg"), &groups("reg-c1", "reg"), None),
        "signed",
    );
    assert_eq!(good.send(&server), None);
    server.until("the good request to be signed", || good.get(&server)["status"]["certificate"].is_string());
    let about = events(&server).iter().filter(|(name, _)| name.contains("-flood-")).count();
    // 60 every half minute.
    let periods = began.elapsed().as_secs() / 30 + 2;
    assert!(about as u64 <= 60 * periods, "{about} events about 300 bad requests in {periods} periods");

    // Valid requests are limited too.
    let mut named = Vec::new();
    for number in 0..15 {
        let mut object = good.object();
        object["metadata"]["name"] = format!("addon-reg-c1-reg-again-{number}").into();
        named.push(object);
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": named});
    let as_agent = "create -f - --as system:open-cluster-management:reg-c1:agent1 --as-group system:open-cluster-management:reg-c1 --as-group system:authenticated";
    succeeded("the requests", server.try_kubectl("admin.kubeconfig", as_agent, list.to_string().as_bytes()));
    server.until("the limit", || events(&server).iter().any(|(_, reason)| reason == "TooManyRequests"));
    let approved = || {
        let all = server.get("csr -l open-cluster-management.io/cluster-name=reg-c1");
        let is_approved = |csr: &&Value| csr["status"]["conditions"][0]["type"] == "Approved";
        all["items"].as_array().unwrap().iter().filter(is_approved).count()
    };
    server.until("ten to be approved", || approved() == 10);
    cleanup(&server);
}

#[test]
fn tokens_are_for_the_cluster_and_not_for_the_registration() {
    let server = installed("registration-tokens");
    setup(&server);
    let tokens = root().join("deploy/kustomize/registration-tokens/registration-tokens.yaml");
    server.kubectl(&format!("apply -f '{}'", tokens.display()), b"");
    let driver = |name: &str| server.set_status("reg-c2", "reg", &json!({"kubeClientDriver": name}));
    for policy in
        ["aviary-registration-bindings", "aviary-registration-tokens", "aviary-registration-accounts"]
    {
        let what = format!("validatingadmissionpolicy {policy}");
        server.until("the expressions to be checked", || {
            let policy = server.get(&what);
            policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
        });
        assert_eq!(server.get(&what)["status"]["typeChecking"], json!({}), "{policy}");
    }
    driver("token");
    let _process = registration(&server, "--tokens --log info");
    server.until("the account", || {
        condition(&server, "reg-c2", "TokenInfrastructureReady")["status"] == "True"
    });
    let account = server.get("serviceaccount reg-agent -n reg-c2");
    let uid = account["metadata"]["uid"].as_str().unwrap();
    let message =
        condition(&server, "reg-c2", "TokenInfrastructureReady")["message"].as_str().unwrap().to_owned();
    assert_eq!(message, format!("ServiceAccount reg-c2/reg-agent (UID: {uid}) is ready"));
    let holders =
        server.get("rolebinding open-cluster-management:reg:clusterrole:agent -n reg-c2")["subjects"].clone();
    assert_eq!(holders, json!([{"kind": "ServiceAccount", "name": "reg-agent", "namespace": "reg-c2"}]));

    let agent = |cluster: &str| {
        format!(
            "--as system:open-cluster-management:{cluster}:agent1 --as-group system:open-cluster-management:{cluster} --as-group system:authenticated"
        )
    };
    // Old versions of kubectl have no `create token`.
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}).to_string();
    let request = request.as_bytes();
    let token_of = |account: &str, flags: &str| {
        format!("create --raw /api/v1/namespaces/reg-c2/serviceaccounts/{account}/token -f - {flags}")
    };
    let told = server.kubectl(&token_of("reg-agent", &agent("reg-c2")), request);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert!(told["status"]["token"].as_str().is_some_and(|token| token.len() > 100), "{told}");
    server.refused("admin.kubeconfig", &token_of("reg-agent", &agent("reg-c1")), request);
    server.refused("admin.kubeconfig", &token_of("default", &agent("reg-c2")), request);
    let told = server.refused("aviary-registration.kubeconfig", &token_of("reg-agent", ""), request);
    assert!(told.contains("the registration may not request tokens"), "{told}");
    let told = server.refused(
        "aviary-registration.kubeconfig",
        "create rolebinding eve -n reg-c2 --clusterrole=reg-reader --user=eve",
        b"",
    );
    assert!(told.contains("may only write role bindings of add-on agents"), "{told}");

    driver("csr");
    server.until("the account to go", || {
        !server
            .try_kubectl("admin.kubeconfig", "get serviceaccount reg-agent -n reg-c2", b"")
            .status
            .success()
    });
    cleanup(&server);
}

/// The writes of our processes in the audit log, except for their leases.
fn writes(server: &Server) -> usize {
    let accounts =
        ["registration", "manager"].map(|name| format!("system:serviceaccount:{NAMESPACE}:aviary-{name}"));
    let log = fs::read_to_string(server.path("audit.log")).unwrap();
    let is_write = |line: &&str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let verb = event["verb"].as_str().unwrap_or_default();
        accounts.iter().any(|account| event["user"]["username"] == *account)
            && ["create", "update", "patch", "delete"].contains(&verb)
            && event["objectRef"]["resource"] != "leases"
    };
    log.lines().filter(is_write).count()
}

#[test]
fn a_successor_continues_and_at_rest_nothing_is_written() {
    let server = installed("registration-rest");
    setup(&server);
    let lease = || server.get(&format!("lease aviary-registration -n {NAMESPACE}"))["spec"].clone();
    let first = registration(&server, "--lease-duration 3 --log info");
    server.until("the registrations", || {
        condition(&server, "reg-c1", "RegistrationApplied")["status"] == "True"
    });
    let leader = lease()["holderIdentity"].clone();
    let _second = registration(&server, "--lease-duration 3 --log info");
    // Killed, not stopped: it hands nothing over.
    drop(first);
    let good = Case::new(
        "good",
        pkcs10(&server, "good", &user("reg-c1", "reg"), &groups("reg-c1", "reg"), None),
        "signed",
    );
    assert_eq!(good.send(&server), None);
    server.until("the successor to approve", || good.get(&server)["status"]["certificate"].is_string());
    assert_ne!(lease()["holderIdentity"], leader);

    nothing_is_written(&server);
    cleanup(&server);
}

/// While the lease is renewed for ten seconds, nothing else is written.
fn nothing_is_written(server: &Server) {
    let before = writes(server);
    let lease = format!("lease aviary-registration -n {NAMESPACE}");
    let time =
        || server.get(&lease)["spec"]["renewTime"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let began = time();
    server.until("the lease to be renewed for a while", || time().duration_since(began).as_secs() >= 10);
    assert_eq!(writes(server) - before, 0, "at rest");
}

#[test]
fn neither_the_manager_nor_the_registration_overwrites_the_other() {
    let server = installed("registration-manager");
    setup(&server);
    let group = "addon.open-cluster-management.io";
    put(
        &server,
        &json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": "ClusterManagementAddOn", "metadata": {"name": "reg"},
            "spec": {
                "supportedConfigs": [{"group": group, "resource": "addontemplates", "defaultConfig": {"name": "reg-v1"}}],
                "installStrategy": {"type": "Manual"},
            },
        }),
    );
    let account = server.kubeconfig_of(NAMESPACE, "aviary-manager");
    let _manager =
        start(&server.desk, &format!("manager --kubeconfig {account} --namespace {NAMESPACE} --log warn"));
    let _registration = registration(&server, "--log info");
    let written = |registrations: usize| {
        let status = server.get("managedclusteraddon reg -n reg-c1")["status"].clone();
        let listed = status["registrations"].as_array().map_or(0, Vec::len);
        let is_there = |kind: &str| !condition(&server, "reg-c1", kind).is_null();
        listed == registrations && is_there("RegistrationApplied") && is_there("Progressing")
    };
    server.until("both to write the status", || written(2));
    // An edit in place gets a new hash. The manager assigns it, and the registration follows.
    put(&server, &template(false));
    server.until("both to follow the template", || written(1));
    assert_eq!(condition(&server, "reg-c1", "RegistrationApplied")["status"], "True");
    nothing_is_written(&server);
    server.kubectl("delete clustermanagementaddon reg", b"");
    cleanup(&server);
}
