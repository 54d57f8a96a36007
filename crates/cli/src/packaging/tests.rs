//! Checks that the three forms of the installation agree and follow the rules.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{expect, expect_file};
use serde_json::Value;

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn package(flavor: Flavor) -> Vec<Value> {
    let package = Package {
        flavor,
        image: IMAGE,
        namespace: NAMESPACE,
        monitoring: true,
        registration: false,
        dashboard: Some(HOST),
        runbook: RUNBOOK,
        v1beta1: false,
    };
    package.objects().unwrap()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn named(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// `make manifests` regenerates the files.
#[test]
fn the_chart_is_made_from_the_files_of_kustomize() {
    let folder = root().join("deploy/helm/aviary");
    let mut expected = BTreeSet::new();
    for (name, text) in chart::files().unwrap() {
        expect_file![folder.join(&name)].assert_eq(&text);
        expected.insert(folder.join(name));
    }
    let found = |folder: &Path| -> BTreeSet<PathBuf> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect()
    };
    let found: BTreeSet<PathBuf> = found(&folder).union(&found(&folder.join("templates"))).cloned().collect();
    assert_eq!(found, expected, "a file that is not generated");
    assert_eq!(
        fs::canonicalize(folder.join("definitions")).unwrap(),
        root().join("deploy/crds"),
        "the chart links to the shipped CRDs"
    );
}

#[test]
fn the_deployment_names_the_image_of_this_version() {
    let (_, text) = BASE.iter().find(|(name, _)| *name == "deployment.yaml").unwrap();
    assert!(
        text.contains(&format!("image: {IMAGE}\n")),
        "deploy/kustomize/base/deployment.yaml does not use {IMAGE}"
    );
}

#[test]
fn a_hub_of_open_cluster_management_keeps_what_is_its_own() {
    let names = |flavor| -> BTreeSet<String> {
        package(flavor)
            .iter()
            .map(|object| format!("{} {}", object["kind"].as_str().unwrap(), named(object)))
            .collect()
    };
    let missing: Vec<String> = names(Flavor::Standalone).difference(&names(Flavor::Ocm)).cloned().collect();
    expect![[r#"
        ClusterRole aviary-placement
        ClusterRoleBinding aviary-placement
        CustomResourceDefinition addondeploymentconfigs.addon.open-cluster-management.io
        CustomResourceDefinition addontemplates.addon.open-cluster-management.io
        CustomResourceDefinition clustermanagementaddons.addon.open-cluster-management.io
        CustomResourceDefinition managedclusteraddons.addon.open-cluster-management.io
        CustomResourceDefinition managedclusters.cluster.open-cluster-management.io
        CustomResourceDefinition managedclustersetbindings.cluster.open-cluster-management.io
        CustomResourceDefinition managedclustersets.cluster.open-cluster-management.io
        CustomResourceDefinition manifestworks.work.open-cluster-management.io
        CustomResourceDefinition placementdecisions.cluster.open-cluster-management.io
        CustomResourceDefinition placements.cluster.open-cluster-management.io
        Namespace open-cluster-management"#]]
    .assert_eq(&missing.join("\n"));
    let added: Vec<String> = names(Flavor::Ocm).difference(&names(Flavor::Standalone)).cloned().collect();
    assert_eq!(added, ["Role aviary-manager-ocm", "RoleBinding aviary-manager-ocm"]);
    let arguments = |flavor| {
        let objects = package(flavor);
        let deployment = of_kind(&objects, "Deployment")[0].clone();
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string()
    };
    assert!(arguments(Flavor::Standalone).contains("--placement"));
    assert!(!arguments(Flavor::Ocm).contains("--placement"));
    // Whoever deletes what was installed deletes no kind and no namespace of OCM.
    for object in package(Flavor::Ocm) {
        assert!(!crds::is_of_ocm(named(&object)) && object["kind"] != "Namespace", "{}", named(&object));
    }
}

#[test]
fn v1beta1_is_converted_by_the_managers_in_their_namespace() {
    let package = Package {
        flavor: Flavor::Standalone,
        image: IMAGE,
        namespace: "elsewhere",
        monitoring: false,
        registration: false,
        dashboard: None,
        runbook: RUNBOOK,
        v1beta1: true,
    };
    let objects = package.objects().unwrap();
    let converted: Vec<&Value> = of_kind(&objects, "CustomResourceDefinition")
        .into_iter()
        .filter(|crd| crd["spec"]["conversion"]["strategy"] == "Webhook")
        .collect();
    let names: Vec<&str> = converted.iter().map(|crd| named(crd)).collect();
    assert_eq!(names, crds::CONVERTED);
    let service =
        of_kind(&objects, "Service").into_iter().find(|one| named(one) == conversion::NAME).unwrap();
    for crd in converted {
        let called = &crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"];
        assert_eq!(called["name"], service["metadata"]["name"]);
        assert_eq!(
            (&called["namespace"], &service["metadata"]["namespace"]),
            (&"elsewhere".into(), &"elsewhere".into())
        );
        assert_eq!(called["port"], service["spec"]["ports"][0]["port"]);
    }
    let deployment = of_kind(&objects, "Deployment")[0];
    let manager = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert!(manager["args"].as_array().unwrap().contains(&CONVERSION_ARGUMENT.into()));
    assert!(CONVERSION_ARGUMENT.ends_with(&format!(":{CONVERSION_PORT}")));
    let secret = of_kind(&objects, "Secret")[0];
    assert!(secret.get("data").is_none() && named(secret) == conversion::NAME, "the manager fills it");
    // Rights to one Secret and two CRDs, by name.
    let rules = |kind: &str| -> Vec<Value> {
        let role = of_kind(&objects, kind).into_iter().find(|role| named(role) == conversion::NAME).unwrap();
        role["rules"].as_array().unwrap().clone()
    };
    assert_eq!(
        rules("Role"),
        [
            json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [conversion::NAME], "verbs": ["get", "update"]})
        ]
    );
    assert_eq!(
        rules("ClusterRole"),
        [json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "resourceNames": crds::CONVERTED, "verbs": ["get", "patch"]})]
    );
}

#[test]
fn another_namespace_is_taken_everywhere_and_another_image() {
    let package = Package {
        flavor: Flavor::Standalone,
        image: "other:1",
        namespace: "elsewhere",
        monitoring: true,
        registration: true,
        dashboard: Some("birds.example.org"),
        runbook: "https://docs.example.org/operations",
        v1beta1: false,
    };
    let objects = package.objects().unwrap();
    for object in &objects {
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            assert!(["elsewhere", "default"].contains(&namespace), "{} is in {namespace}", named(object));
        }
        for subject in object["subjects"].as_array().into_iter().flatten() {
            assert_eq!(subject["namespace"], "elsewhere", "{}", named(object));
        }
    }
    assert_eq!(named(of_kind(&objects, "Namespace")[0]), "elsewhere");
    let text = to_yaml(&objects).unwrap();
    assert!(
        text.contains("system:serviceaccount:elsewhere:aviary-manager") && text.contains("image: other:1\n")
    );
    assert!(!text.contains("system:serviceaccount:open-cluster-management:"));
    assert!(!text.contains(IMAGE) && !text.contains(HOST) && !text.contains("docs/operations.md"));
    assert!(
        text.contains("- --allowed-host=birds.example.org\n") && text.contains("host: birds.example.org\n")
    );
    assert!(text.contains("runbook_url: https://docs.example.org/operations#no-leader\n"));
    // The namespaces that any instance may take configs from are independent of the manager's
    // namespace.
    assert!(text.contains("'', request.namespace, 'open-cluster-management'"));
}

#[test]
fn no_role_has_a_wildcard_or_a_right_that_leads_to_others() {
    for flavor in [Flavor::Standalone, Flavor::Ocm] {
        let objects = package(flavor);
        let roles = of_kind(&objects, "ClusterRole").into_iter().chain(of_kind(&objects, "Role"));
        for role in roles {
            for rule in role["rules"].as_array().into_iter().flatten() {
                let text = rule.to_string();
                assert!(!text.contains('*'), "{}: {text}", named(role));
                for forbidden in
                    ["secrets", "escalate", "bind", "impersonate", "approve", "sign", "deletecollection"]
                {
                    assert!(!text.contains(&format!("\"{forbidden}\"")), "{}: {text}", named(role));
                }
            }
        }
        for binding in
            of_kind(&objects, "ClusterRoleBinding").into_iter().chain(of_kind(&objects, "RoleBinding"))
        {
            let subjects = binding["subjects"].as_array().unwrap();
            assert_eq!(subjects.len(), 1, "{}", named(binding));
            assert_eq!(subjects[0]["name"], "aviary-manager", "{}", named(binding));
        }
    }
}

#[test]
fn the_registration_has_its_own_account_and_only_the_rights_that_it_needs() {
    let with = Package {
        flavor: Flavor::Ocm,
        image: IMAGE,
        namespace: NAMESPACE,
        monitoring: false,
        registration: true,
        dashboard: None,
        runbook: RUNBOOK,
        v1beta1: false,
    };
    let all = with.objects().unwrap();
    let mut own: Vec<&Value> =
        all.iter().filter(|object| named(object).starts_with("aviary-registration")).collect();
    let tokens: Vec<Value> = serde_saphyr::from_multiple(REGISTRATION_TOKENS[0].1).unwrap();
    own.extend(&tokens);
    for role in
        own.iter().filter(|object| ["Role", "ClusterRole"].contains(&object["kind"].as_str().unwrap()))
    {
        let name = named(role);
        for rule in role["rules"].as_array().unwrap() {
            let text = rule.to_string();
            for forbidden in [
                "*",
                "\"secrets\"",
                "\"escalate\"",
                "\"bind\"",
                "\"impersonate\"",
                "\"sign\"",
                "deletecollection",
            ] {
                assert!(!text.contains(forbidden), "{name}: {text}");
            }
            let names = &rule["resourceNames"];
            if text.contains("\"approve\"") {
                assert_eq!(names.to_string(), r#"["kubernetes.io/kube-apiserver-client"]"#, "{name}");
            }
            assert!(
                !text.contains("serviceaccounts/token") || name == "aviary-registration-tokens",
                "{name}: {text}"
            );
        }
    }
    for binding in own.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("Binding")) {
        for subject in binding["subjects"].as_array().into_iter().flatten() {
            assert_eq!(subject["name"], "aviary-registration", "{}", named(binding));
        }
    }
    let forbids = |policy: &Value| {
        policy["kind"] == "ValidatingAdmissionPolicy" && policy.to_string().contains("serviceaccounts/token")
    };
    assert!(tokens.iter().any(forbids), "whoever turns tokens on also gets the policy");
    let manager = of_kind(&all, "Deployment")[0];
    assert!(named(manager) == "aviary-manager" && !manager.to_string().contains("registration"));
}

fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("aviary_")).map(str::to_owned).collect()
}

#[test]
fn alerts_and_dashboard_speak_of_metrics_that_the_operations_page_explains() {
    let objects = package(Flavor::Standalone);
    let page = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let known = metrics_in(&page);
    let is_known = |name: &str| {
        known.contains(name) || name.strip_suffix("_bucket").is_some_and(|family| known.contains(family))
    };
    let mut used = BTreeSet::new();
    for rule in of_kind(&objects, "PrometheusRule")[0]["spec"]["groups"][0]["rules"].as_array().unwrap() {
        used.extend(metrics_in(rule["expr"].as_str().unwrap()));
    }
    let board = of_kind(&objects, "ConfigMap")[0]["data"]["aviary.json"].as_str().unwrap();
    let board: Value = serde_json::from_str(board).unwrap();
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            used.extend(metrics_in(target["expr"].as_str().unwrap()));
        }
    }
    assert!(used.len() > 10, "{used:?}");
    let unknown: Vec<&String> = used.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not among {known:?}");
}

/// A leader that skips add-ons holds the lease like any other.
#[test]
fn h3_the_dashboard_shows_skipped_add_ons_beside_the_leader_and_calls_no_leader_healthy() {
    let objects = package(Flavor::Standalone);
    let board = of_kind(&objects, "ConfigMap")[0]["data"]["aviary.json"].as_str().unwrap();
    let board: Value = serde_json::from_str(board).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let at = panels.iter().position(|panel| panel["targets"][0]["expr"] == "sum(aviary_leader)").unwrap();
    let said = panels[at]["description"].as_str().unwrap();
    assert!(said.contains("next panel") && !said.contains("well"), "{said}");
    assert_eq!(panels[at + 1]["targets"][0]["expr"], "count(aviary_addon_skipped) or vector(0)");
}

#[test]
fn every_alert_names_a_part_of_the_operations_page() {
    let page = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let headings: BTreeSet<String> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
        .collect();
    let objects = package(Flavor::Standalone);
    for rule in of_kind(&objects, "PrometheusRule")[0]["spec"]["groups"][0]["rules"].as_array().unwrap() {
        let runbook = rule["annotations"]["runbook_url"].as_str().unwrap();
        let heading = runbook.strip_prefix("docs/operations.md#").unwrap();
        assert!(headings.contains(heading), "{}: there is no {heading:?}", rule["alert"]);
    }
}

/// Failed clusters halt a rollout in two ways, of which only one shows in the reasons of clusters.
#[test]
fn the_alert_for_a_halted_rollout_fires_however_it_was_halted() {
    let objects = package(Flavor::Standalone);
    let rules = of_kind(&objects, "PrometheusRule")[0]["spec"]["groups"][0]["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["alert"] == "AviaryRolloutHalted").unwrap();
    assert_eq!(rule["expr"], "aviary_rollout_halted > 0");
}

/// A misspelt reason would never fire.
#[test]
fn alerts_speak_of_reasons_and_states_that_exist() {
    let objects = package(Flavor::Standalone);
    let rules = of_kind(&objects, "PrometheusRule")[0]["spec"]["groups"][0]["rules"].as_array().unwrap();
    let mut reasons = BTreeSet::new();
    for rule in rules {
        let parts = rule["expr"].as_str().unwrap().split("reason=\"").skip(1);
        reasons.extend(parts.map(|part| part.split('"').next().unwrap()));
    }
    let page = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    for reason in &reasons {
        assert!(page.contains(&format!("`{reason}`")), "{reason} is no reason of the operations page");
    }
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), ["DeletionHeld", "HealthUnknown"]);
}

#[test]
fn the_dashboard_has_no_credentials_and_is_read_only() {
    let objects = package(Flavor::Ocm);
    let is_of_dashboard =
        |object: &&Value| object["metadata"]["labels"]["app.kubernetes.io/component"] == "dashboard";
    let own: Vec<&Value> = objects.iter().filter(is_of_dashboard).collect();
    let kinds: Vec<&str> = own.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "NetworkPolicy", "Service", "Deployment", "Ingress"]);
    let bound = objects.iter().filter(|object| !object["subjects"].is_null());
    assert!(bound.clone().all(|object| object["subjects"][0]["name"] != "aviary-dashboard"), "it has a role");
    let verbs = own[1]["rules"].as_array().unwrap().iter().flat_map(|rule| rule["verbs"].as_array().unwrap());
    assert!(verbs.clone().all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap())));
    let pod = &own[4]["spec"]["template"]["spec"];
    assert_eq!(
        (&own[0]["automountServiceAccountToken"], &pod["automountServiceAccountToken"]),
        (&false.into(), &false.into())
    );
    let arguments = pod["containers"][0]["args"].to_string();
    assert!(!arguments.contains("--enable-writes") && !arguments.contains("--placement"), "{arguments}");
    assert!(!pod.to_string().contains("serviceAccountToken\""), "a token is mounted: {pod}");
}
