//! Contents that are large, deep, hostile, or not enough.

use serde_json::{Value, json};

use super::row::Admission::{Never, Refused, Taken};
use super::row::Outcome::{Does, Says};
use super::row::{Outcome, Row, row};
use super::site::{Site, deployment_config, deployment_reference};
use crate::objects::rolling;
use crate::rollout::hub_config;
use crate::shared;

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("a config of 1 MiB", Taken, Does("is rolled out like any other"))
            .before(|site| vec![deployment_config(&site.named("large"), json!({})), site.addon()])
            .bad(|site| vec![with_deployment(site, "large"), deployment_config(&site.named("large"), variables(255, 4096))])
            .acts(|site| async move { site.until_upgraded().await }),
        row("a config of more than 1280 KiB", Taken, Says("UpgradeFailed: 0/2 upgrade failed: addondeploymentconfigs.addon.open-cluster-management.io open-cluster-management/large-<number> cannot be stored as a revision: it has … KiB of content, more than 1280"))
            .before(|site| vec![deployment_config(&site.named("large"), json!({})), site.addon()])
            .bad(|site| vec![with_deployment(site, "large"), deployment_config(&site.named("large"), variables(345, 4096))])
            .note("clusters keep their revision")
            .mends(|site| async move {
                site.assert_nobody_moved().await;
                site.world.put(deployment_config(&site.named("large"), variables(1, 1))).await;
                site.until_upgraded().await;
            }),
        row("10,000 variables", Refused("must have at most 1024 items"), Does("are used"))
            .before(|site| vec![deployment_config(&site.named("many"), json!({})), site.addon()])
            .bad(|site| vec![with_deployment(site, "many"), deployment_config(&site.named("many"), variables(10_000, 10))])
            .acts(|site| async move { site.until_upgraded().await }),
        row("a template nested 10,000 levels deep", Never("every API server rejects it"), Does("cannot be stored")).acts(|site| async move {
            let refused = site.put_nested(10_000).await.expect_err(site.input);
            assert!(refused.contains("depth") || refused.contains("recursion"), "{}: {refused}", site.input);
        }),
        row("… nested more than 90 levels deep", Taken, Says("UpgradeFailed: 0/2 upgrade failed: addontemplates.addon.open-cluster-management.io deep-<number> cannot be stored as a revision: its content nests deeper than 90 levels"))
            .bad(|site| vec![hub_config(&site.named("deep"), "v3.0.0"), site.addon_with("deep", rolling(1))])
            .note("clusters keep their revision; other objects are still read")
            .acts(|site| async move {
                // The embedded hub takes no more than a hundred levels.
                let levels = if shared::kubeconfig().is_some() { 5_000 } else { 89 };
                site.put_nested(levels).await.expect(site.input);
            })
            .mends(|site| async move {
                site.assert_nobody_moved().await;
                let path = format!("{TEMPLATES}/{}", site.named("deep"));
                let request = http::Request::delete(path).body(Vec::new()).unwrap();
                site.world.client.request_text(request).await.unwrap();
                site.upgrade().await;
            }),
        row("quotes, newlines, NUL and `{{CLUSTER_NAME}}` in a variable's value", Taken, Does("stay inside the value: no key is added, no type changes"))
            .before(|site| vec![deployment_config(&site.named("hostile"), json!({})), site.addon()])
            .bad(|site| {
                let tagged = site.template_of("v2.0.0", json!([{
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}, "data": {"tag": "image:{{TAG}}"},
                }]));
                let value = json!({"customizedVariables": [{"name": "TAG", "value": HOSTILE}]});
                vec![tagged, with_deployment(site, "hostile"), deployment_config(&site.named("hostile"), value)]
            })
            .acts(|site| async move {
                site.until_upgraded().await;
                for cluster in &site.clusters {
                    let works = site.works(cluster).await;
                    let filled = HOSTILE.replace("{{CLUSTER_NAME}}", cluster);
                    assert_eq!(
                        works[0]["spec"]["workload"]["manifests"],
                        json!([{
                            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}, "data": {"tag": format!("image:{filled}")},
                        }]),
                        "{}", site.input
                    );
                }
            }),
        unrendered("an undefined variable", Says("UpgradeFailed: 0/2 upgrade failed: template <addon>-v2.0.0 uses the variable NOBODY, which is not defined"), |site| {
            let mut manifest = site.manifest("agent", "v2.0.0");
            manifest["data"]["nobody"] = json!("{{NOBODY}}");
            json!([manifest])
        }),
        unrendered("a template without manifests", Says("UpgradeFailed: 0/2 upgrade failed: template <addon>-v2.0.0 has no manifests"), |_| json!([])),
        unrendered("a template with the same object twice", Says("UpgradeFailed: 0/2 upgrade failed: template <addon>-v2.0.0 has ConfigMap {{INSTALL_NAMESPACE}}/agent twice"), |site| {
            json!([site.manifest("agent", "v2.0.0"), site.manifest("other", "v2.0.0"), site.manifest("agent", "v2.0.0")])
        }),
        row("a proxy of 1 KB for 1,000 containers", Taken, Says("UpgradeFailed: 0/2 upgrade failed: template <addon>-v2.0.0: Deployment.apps default/wide has more than 400 KiB once it is rendered, more than a work can carry"))
            .before(|site| vec![deployment_config(&site.named("proxy"), json!({})), site.addon()])
            .bad(|site| {
                let wide = json!([{
                    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "wide", "namespace": "default"},
                    "spec": {"template": {"spec": {"containers": vec![json!({}); 1000]}}},
                }]);
                let proxy = json!({"proxyConfig": {"httpProxy": "x".repeat(1000)}});
                vec![site.template_of("v2.0.0", wide), deployment_config(&site.named("proxy"), proxy), with_deployment(site, "proxy")]
            })
            .note("clusters keep their revision")
            .mends(|site| async move {
                site.assert_nobody_moved().await;
                site.world.put(site.template("v2.0.0")).await;
                site.until_upgraded().await;
            }),
        row("a variable with the name of a built-in one", Taken, Says("UpgradeFailed: 0/2 upgrade failed: addondeploymentconfigs.addon.open-cluster-management.io open-cluster-management/shadow-<number> defines the variable CLUSTER_NAME, which is built in and cannot be replaced"))
            .before(|site| vec![deployment_config(&site.named("shadow"), json!({})), site.addon()])
            .bad(|site| {
                let value = json!({"customizedVariables": [{"name": "CLUSTER_NAME", "value": "another"}]});
                vec![with_deployment(site, "shadow"), deployment_config(&site.named("shadow"), value)]
            })
            .note("clusters keep their revision")
            .mends(|site| async move {
                site.assert_nobody_moved().await;
                site.world.put(deployment_config(&site.named("shadow"), variables(1, 1))).await;
                site.until_upgraded().await;
            }),
    ]
}

const TEMPLATES: &str = "/apis/addon.open-cluster-management.io/v1alpha1/addontemplates";
const HOSTILE: &str = "v5\",\"pwned\":\"yes\r\n\t}]\\u0022\u{0}{{CLUSTER_NAME}}{{ TAG }}<script>'";

/// A template that cannot be rendered: nobody is told it.
fn unrendered(
    input: &'static str,
    outcome: Outcome,
    manifests: impl Fn(&Site) -> Value + Send + Sync + 'static,
) -> Row {
    row(input, Taken, outcome)
        .bad(move |site| {
            vec![site.addon_with("two", rolling(1)), site.template_of("v2.0.0", manifests(site))]
        })
        .note("clusters keep their revision")
        .mends(|site| async move {
            site.assert_nobody_moved().await;
            site.world.put(site.template("v2.0.0")).await;
            site.until_upgraded().await;
        })
}

/// The add-on on its way to the second version, with a deployment config.
fn with_deployment(site: &Site, config: &str) -> Value {
    let mut addon = site.addon_with("two", rolling(1));
    let reference = deployment_reference(&site.named(config));
    addon["spec"]["installStrategy"]["placements"][0]["configs"].as_array_mut().unwrap().push(reference);
    addon
}

/// So many variables with values of so many characters.
fn variables(count: usize, length: usize) -> Value {
    let all = (0..count).map(|number| json!({"name": format!("V{number}"), "value": "x".repeat(length)}));
    json!({"customizedVariables": all.collect::<Vec<_>>()})
}

impl Site {
    /// Puts a template that nests so deep, as text: no value that deep is built here.
    async fn put_nested(&self, depth: usize) -> Result<(), String> {
        let (head, name) = (json!({"name": self.named("deep")}), self.name());
        let body = format!(
            "{{\"apiVersion\":\"addon.open-cluster-management.io/v1alpha1\",\"kind\":\"AddOnTemplate\",\"metadata\":{head},\"spec\":{{\"addonName\":\"{name}\",\"version\":\"v3.0.0\",\
             \"agentSpec\":{{\"workload\":{{\"manifests\":[{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"deep\"}},\"data\":{}1{}}}]}}}}}}}}",
            "{\"a\":".repeat(depth),
            "}".repeat(depth),
        );
        let request = http::Request::post(TEMPLATES)
            .header("content-type", "application/json")
            .body(body.into_bytes())
            .unwrap();
        self.world.client.request_text(request).await.map(drop).map_err(|error| error.to_string())
    }
}
