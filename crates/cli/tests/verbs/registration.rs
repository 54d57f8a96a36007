//! Two processes of `aviary registration` that both work: a lost Lease, or leader election that was
//! turned off.

use aviary_testing::Process;
use serde_json::{Value, json};

use crate::world::{LIMIT, World};

const ADDONS: &str = "addon.open-cluster-management.io";
const OWN: &str = "open-cluster-management:hello:clusterrole:agent";

/// The embedded hub does not serve requests for certificates, so it is given the kind.
fn certificate_requests() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "certificatesigningrequests.certificates.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": "certificates.k8s.io", "scope": "Cluster",
            "names": {"kind": "CertificateSigningRequest", "plural": "certificatesigningrequests",
                "singular": "certificatesigningrequest", "listKind": "CertificateSigningRequestList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

fn template(name: &str, roles: &[&str]) -> Value {
    let permission =
        |role: &&str| json!({"type": "CurrentCluster", "currentCluster": {"clusterRoleName": role}});
    let permissions: Vec<Value> = roles.iter().map(permission).collect();
    json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "AddOnTemplate", "metadata": {"name": name},
        "spec": {
            "addonName": "hello", "agentSpec": {"workload": {"manifests": []}},
            "registration": [{"type": "KubeClient", "kubeClient": {"hubPermissions": permissions}}],
        },
    })
}

/// The instance, assigned a template as the manager records it.
fn assigned(world: &World, template: &str) -> Value {
    let hash = aviary_engine::normalise::config(&world.get("AddOnTemplate", template)).hash;
    json!({
        "apiVersion": format!("{ADDONS}/v1alpha1"), "kind": "ManagedClusterAddOn",
        "metadata": {"name": "hello", "namespace": "c1"}, "spec": {},
        "status": {"configReferences": [{
            "group": ADDONS, "resource": "addontemplates", "name": template,
            "desiredConfig": {"name": template, "specHash": hash.as_str()},
        }]},
    })
}

/// The names of the role bindings in the cluster's namespace, each with its role and holders.
fn bindings(world: &World) -> Vec<Value> {
    let kind = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"namespace": "c1"}});
    let all = world.block_on(aviary_testing::api_of(&world.client, &kind).list(&Default::default())).unwrap();
    let shown =
        |one: &Value| json!([one["metadata"]["name"], one["roleRef"]["name"], one["subjects"][0]["name"]]);
    let mut all: Vec<Value> = all.items.iter().map(|one| shown(&json!(one))).collect();
    all.sort_by_key(ToString::to_string);
    all
}

fn until(world: &World, what: &str, is: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is() {
        let instance = world.get("ManagedClusterAddOn", "c1/hello");
        assert!(began.elapsed() < LIMIT, "not {what}: {:#?} {:#}", bindings(world), instance["status"]);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn two_registrations_at_once_agree_and_harm_nothing() {
    let world = World::quiet("registration-two");
    world.give(certificate_requests());
    world.give(aviary_testing::objects::namespace("c1"));
    let mut cluster = aviary_testing::objects::cluster("c1", &json!({}));
    cluster["spec"]["hubAcceptsClient"] = json!(true);
    world.give(cluster);
    world.give(template("first", &["reader"]));
    world.give(template("second", &["writer", "lister"]));
    world.give(assigned(&world, "first"));

    let start = || {
        let command = "registration --leader-elect=false --kubeconfig hub.kubeconfig --log info";
        let process = Process::start(world.desk.command(command));
        process.complains(&["this process leads"]);
        process
    };
    let both = [start(), start()];
    let group = "system:open-cluster-management:cluster:c1:addon:hello";
    let is_applied = |expected: &[Value]| {
        let status = world.get("ManagedClusterAddOn", "c1/hello")["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let applied: Vec<&Value> =
            conditions.iter().filter(|one| one["type"] == "RegistrationApplied").collect();
        let listed = status["registrations"].as_array().map_or(0, Vec::len);
        bindings(&world) == expected && listed == 1 && applied.len() == 1 && applied[0]["status"] == "True"
    };
    let first = [json!([OWN, "reader", group])];
    until(&world, "registered", || is_applied(&first));

    // The role of a binding cannot change: both delete the old one, and one makes the new ones.
    world.give(assigned(&world, "second"));
    let second = [json!([OWN, "lister", group]), json!([format!("{OWN}:writer"), "writer", group])];
    until(&world, "registered again", || is_applied(&second));

    // Somebody removes what is wanted: whoever is first makes it again.
    let kind = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"namespace": "c1"}});
    world.block_on(aviary_testing::api_of(&world.client, &kind).delete(OWN, &Default::default())).unwrap();
    until(&world, "made again", || is_applied(&second));

    // One alone goes on.
    let [one, other] = both;
    one.stop("TERM");
    world.give(assigned(&world, "first"));
    until(&world, "registered by the other", || is_applied(&first));
    other.stop("TERM");
}
