//! Compares the roles of the manager, and of the registration, with every request that they made on
//! this server: no missing rules, no unused rules.
//!
//! The requests come from the server's audit log. This must run after all other suites on the
//! server.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::server::{NAMESPACE, root, server};

/// Config kinds that suites define, with a role that lets the manager read them.
const KINDS_OF_SUITES: [&str; 3] =
    ["proxy.open-cluster-management.io", "submarineraddon.open-cluster-management.io", "story.example.com"];

/// Requests that suites let managers make without the right to.
const IN_VAIN: [&str; 2] = ["list configmaps", "list story.example.com tales"];

/// What every client may ask: a manager that starts asks for its rights.
const ALLOWED_TO_ALL: &str = "create authorization.k8s.io selfsubjectaccessreviews";

/// Rights that no request uses directly: the server checks them when an object has an owner with
/// blockOwnerDeletion. Without them the suites fail on this server.
const FOR_OWNERS: [&str; 2] = [
    "update addon.open-cluster-management.io clustermanagementaddons/finalizers",
    "update cluster.open-cluster-management.io placements/finalizers",
];

/// A right, or what a request needs: verb, group, resource, and optionally one namespace and one
/// name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: String,
    group: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Right {
    fn allows(&self, request: &Self) -> bool {
        (&self.verb, &self.group, &self.resource) == (&request.verb, &request.group, &request.resource)
            && (self.namespace.is_none() || self.namespace == request.namespace)
            && (self.name.is_none() || self.name == request.name)
    }

    fn told(&self) -> String {
        let text = format!("{} {} {}", self.verb, self.group, self.resource);
        let text = self.namespace.iter().fold(text, |text, namespace| format!("{text} in {namespace}"));
        self.name.iter().fold(text, |text, name| format!("{text} named {name}"))
    }

    fn plain(&self) -> String {
        format!("{} {} {}", self.verb, self.group, self.resource).replace("  ", " ")
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// All rights in the roles that are bound to an account.
fn shipped(objects: &[Value], account: &str) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for binding in objects.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("Binding")) {
        if binding["roleRef"].is_null() {
            continue;
        }
        if binding["subjects"][0]["name"] != account {
            continue;
        }
        let is_bound = |role: &&Value| {
            let aggregated = binding["roleRef"]["name"] == "aviary-config-kinds"
                && role["metadata"]["labels"]["addon.open-cluster-management.io/aggregate-to-config-kinds"]
                    == "true";
            role["kind"] == binding["roleRef"]["kind"]
                && (role["metadata"]["name"] == binding["roleRef"]["name"] || aggregated)
                && role["metadata"]["namespace"] == binding["metadata"]["namespace"]
        };
        for role in objects.iter().filter(is_bound) {
            for rule in role["rules"].as_array().into_iter().flatten() {
                rights.extend(rights_of(rule, role["metadata"]["namespace"].as_str()));
            }
        }
    }
    rights
}

fn rights_of(rule: &Value, namespace: Option<&str>) -> Vec<Right> {
    let names = texts(&rule["resourceNames"]);
    let names: Vec<Option<String>> =
        if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
    let mut rights = Vec::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                for name in &names {
                    rights.push(Right {
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        namespace: namespace.map(str::to_owned),
                        name: name.clone(),
                    });
                }
            }
        }
    }
    rights
}

/// The requests of an account, each once, and whether they were allowed.
fn asked(audit: &str, account: &str) -> BTreeSet<(Right, bool)> {
    let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
    let mut asked = BTreeSet::new();
    for line in audit.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        // Everyone may use discovery; kubectl requests with the manager's token test what it may
        // not do.
        let is_ours = event["user"]["username"] == *user && !event["objectRef"].is_null();
        if !is_ours || text(&event["userAgent"]).starts_with("kubectl") {
            continue;
        }
        let object = &event["objectRef"];
        if object["resource"].is_null() {
            continue;
        }
        let part = object["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
        let right = Right {
            verb: text(&event["verb"]),
            group: text(&object["apiGroup"]),
            resource: text(&object["resource"]) + &part,
            namespace: object["namespace"].as_str().map(str::to_owned),
            name: object["name"].as_str().map(str::to_owned),
        };
        asked.insert((right, event["annotations"]["authorization.k8s.io/decision"] == "allow"));
    }
    asked
}

#[test]
fn the_manager_may_do_what_it_does_and_nothing_else() {
    let server = server("rights");
    let objects: Value = serde_json::from_str(&server.aviary("manifests --v1beta1 -o json")).unwrap();
    let shipped = shipped(objects["items"].as_array().unwrap(), "aviary-manager");
    let asked = asked(&fs::read_to_string(server.path("audit.log")).unwrap(), "aviary-manager");
    assert!(asked.len() > 100, "the other suites have not run here: {} requests", asked.len());

    let missing: BTreeSet<String> = asked
        .iter()
        .filter(|(request, let_in)| {
            let in_vain = IN_VAIN.contains(&request.plain().as_str()) && !let_in;
            let of_suites = KINDS_OF_SUITES.contains(&request.group.as_str());
            let is_public = request.plain() == ALLOWED_TO_ALL;
            !in_vain && !of_suites && !is_public && !shipped.iter().any(|right| right.allows(request))
        })
        .map(|(request, _)| request.plain())
        .collect();
    assert!(missing.is_empty(), "managers ask for what no role allows: {missing:#?}");
    let refused: BTreeSet<String> = asked
        .iter()
        .filter(|(request, let_in)| !let_in && !IN_VAIN.contains(&request.plain().as_str()))
        .map(|(request, _)| request.told())
        .collect();
    assert!(refused.is_empty(), "the server refused: {refused:#?}");

    let used = |right: &Right| {
        FOR_OWNERS.contains(&right.plain().as_str()) || asked.iter().any(|(request, _)| right.allows(request))
    };
    let unused: Vec<String> = shipped.iter().filter(|right| !used(right)).map(Right::told).collect();
    assert!(unused.is_empty(), "no suite has a manager do this: {unused:#?}");
}

/// What the suite's administrator allows, and what everyone may ask.
const ALLOWED_IN_SUITE: [&str; 2] = ["get secrets", "create authorization.k8s.io selfsubjectaccessreviews"];

/// Rights that no request uses: the server checks the first when a request is approved, the second
/// when a Role is created; the others are for objects that somebody else has changed or made.
const WITHOUT_REQUESTS: [&str; 5] = [
    "approve certificates.k8s.io signers",
    "create serviceaccounts/token",
    "update rbac.authorization.k8s.io roles",
    "get rbac.authorization.k8s.io roles",
    "get serviceaccounts",
];

#[test]
fn the_registration_may_do_what_it_does_and_nothing_else() {
    let server = server("registration-rights");
    let printed: Value =
        serde_json::from_str(&server.aviary("manifests --with registration -o json")).unwrap();
    let mut objects = printed["items"].as_array().unwrap().clone();
    let tokens = root().join("deploy/kustomize/registration-tokens/registration-tokens.yaml");
    objects.extend(serde_saphyr::from_multiple::<Value>(&fs::read_to_string(tokens).unwrap()).unwrap());
    let shipped = shipped(&objects, "aviary-registration");
    let asked = asked(&fs::read_to_string(server.path("audit.log")).unwrap(), "aviary-registration");
    assert!(asked.len() > 20, "the other suites have not run here: {} requests", asked.len());
    let missing: BTreeSet<String> = asked
        .iter()
        .filter(|(request, _)| !ALLOWED_IN_SUITE.contains(&request.plain().as_str()))
        .filter(|(request, _)| !shipped.iter().any(|right| right.allows(request)))
        .map(|(request, _)| request.told())
        .collect();
    assert!(missing.is_empty(), "the registration asks for what no role allows: {missing:#?}");
    let refused: BTreeSet<String> =
        asked.iter().filter(|(_, let_in)| !let_in).map(|(request, _)| request.told()).collect();
    assert!(refused.is_empty(), "the server refused: {refused:#?}");
    let used = |right: &Right| {
        WITHOUT_REQUESTS.contains(&right.plain().as_str())
            || asked.iter().any(|(request, _)| right.allows(request))
    };
    let unused: Vec<String> = shipped.iter().filter(|right| !used(right)).map(Right::told).collect();
    assert!(unused.is_empty(), "no suite has the registration do this: {unused:#?}");
}
