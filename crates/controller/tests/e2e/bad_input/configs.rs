//! Configs that are not there, not allowed, or of a kind that the hub does not know.

use serde_json::{Value, json};

use super::row::Admission::Taken;
use super::row::Outcome::Says;
use super::row::{Row, row};
use super::site::Site;
use crate::objects::{object, reference, rolling};
use crate::rollout::hub_config;

const PROXY_GROUP: &str = "proxy.open-cluster-management.io";

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("a config that does not exist", Taken, Says("UpgradeFailed: 0/2 upgrade failed: addonhubconfigs.addon.open-cluster-management.io late-<number> not found"))
            .bad(|site| vec![site.addon_with("late", rolling(1))])
            .note("clusters keep their revision, and the rollout continues when the config exists")
            .mends(|site| async move {
                site.until_run(&site.clusters, "v1.0.0").await;
                site.world.put(hub_config(&site.named("late"), "v2.0.0")).await;
                site.until_upgraded().await;
            }),
        row("a namespaced config without a namespace", Taken, Says("UpgradeFailed: 0/2 upgrade failed: addondeploymentconfigs.addon.open-cluster-management.io some: addondeploymentconfigs.addon.open-cluster-management.io are namespaced: the reference needs a namespace"))
            .bad(|site| vec![with_config(site, reference("addondeploymentconfigs", None, "some"))])
            .note("clusters keep their revision")
            .mends(|site| async move { site.upgrade().await }),
        row("an instance's config of a kind that the add-on does not support", Taken, Says("ConfigurationUnsupported: widgets.example.com w is not applied: the add-on does not support configs of widgets.example.com"))
            .bad(|site| vec![site.instance(json!({"configs": [{"group": "example.com", "resource": "widgets", "name": "w"}]}))])
            .at(|site| site.instance(json!({})))
            .note("its other configs are applied; this one is not read")
            .acts(|site| async move {
                site.upgrade().await;
                site.assert_nobody_reads("widgets");
            }),
        row("… in a namespace that it may not use", Taken, Says("ConfigurationOutOfReach: addondeploymentconfigs.addon.open-cluster-management.io foreign-<number>/secret is not applied: an override on cluster <cluster> may not use configs from that namespace"))
            .before(|site| {
                let foreign = site.named("foreign");
                let mut config = object("AddOnDeploymentConfig", "secret", json!({"spec": {"customizedVariables": [{"name": "TOKEN", "value": "hunter2"}]}}));
                config["metadata"]["namespace"] = json!(foreign);
                vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": foreign}}), config, site.addon()]
            })
            .bad(|site| vec![site.instance(json!({"configs": [reference("addondeploymentconfigs", Some(&site.named("foreign")), "secret")]}))])
            .at(|site| site.instance(json!({})))
            .note("it is neither stored nor delivered")
            .acts(|site| async move {
                site.upgrade().await;
                site.assert_nothing_holds("hunter2").await;
            }),
        row("… that is a Secret", Taken, Says("ConfigurationUnsupported: secrets <cluster>/token is not applied: the add-on does not support configs of secrets"))
            .bad(|site| vec![site.instance(json!({"configs": [{"group": "", "resource": "secrets", "namespace": site.clusters[0], "name": "token"}]}))])
            .at(|site| site.instance(json!({})))
            .note("it is not read")
            .acts(|site| async move {
                site.upgrade().await;
                site.assert_nobody_reads("secrets");
            }),
        row("an add-on's config of a core kind that `supportedConfigs` does not list", Taken, Says("UpgradeFailed: 0/2 upgrade failed: configmaps default/token: configmaps must be listed in supportedConfigs to be used as a config"))
            .bad(|site| vec![with_config(site, json!({"group": "", "resource": "configmaps", "namespace": "default", "name": "token"}))])
            .note("it is not read, and clusters keep their revision")
            .mends(|site| async move {
                site.assert_nobody_reads("configmaps");
                site.upgrade().await;
            }),
        row("an add-on's config that is a Secret, even if `supportedConfigs` lists Secrets", Taken, Says("UpgradeFailed: 0/2 upgrade failed: secrets default/token: a Secret cannot be a config, because its content would be copied into revisions that others may read: reference a config that names the Secret"))
            .before(|site| vec![
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "default"}, "stringData": {"password": "hunter2"}}),
                site.addon(),
            ])
            .bad(|site| {
                let mut addon = with_config(site, json!({"group": "", "resource": "secrets", "namespace": "default", "name": "token"}));
                addon["spec"]["supportedConfigs"] = json!([
                    {"group": "", "resource": "secrets"},
                    {"group": "addon.open-cluster-management.io", "resource": "addonhubconfigs"},
                ]);
                vec![addon]
            })
            .note("it is not read, stored or delivered, and clusters keep their revision")
            .mends(|site| async move {
                site.assert_nobody_reads("secrets");
                site.assert_nothing_holds("hunter2").await;
                site.upgrade().await;
            }),
        row("a config of a kind that the hub does not serve", Taken, Says("UpgradeFailed: 0/2 upgrade failed: gadgets.example.com g: the hub does not serve gadgets.example.com: install its CustomResourceDefinition"))
            .bad(|site| vec![with_config(site, json!({"group": "example.com", "resource": "gadgets", "name": "g"}))])
            .note("clusters keep their revision")
            .mends(|site| async move { site.upgrade().await }),
        row("… whose CRD is deleted while it is used", Taken, Says("UpgradeFailed: 0/2 upgrade failed: badconfigs.proxy.open-cluster-management.io mine: the hub does not serve badconfigs.proxy.open-cluster-management.io: install its CustomResourceDefinition"))
            .fresh()
            .acts(|site| async move {
                site.serve().await;
                site.world.put(with_own(&site, "one")).await;
                site.until_message("2/2 install completed with no errors.").await;
                site.world.delete(crd()).await;
                site.world.put(with_own(&site, "two")).await;
            })
            .note("clusters keep their revision, and the rollout continues when the kind is back")
            .mends(|site| async move {
                site.assert_nobody_moved().await;
                site.serve().await;
                site.until_upgraded().await;
                site.world.delete(crd()).await;
            }),
    ]
}

/// The add-on on its way to the second version, with one more config.
fn with_config(site: &Site, config: Value) -> Value {
    let mut addon = site.addon_with("two", rolling(1));
    addon["spec"]["installStrategy"]["placements"][0]["configs"].as_array_mut().unwrap().push(config);
    addon
}

fn with_own(site: &Site, config: &str) -> Value {
    let mut addon = site.addon_with(config, rolling(1));
    let own = json!({"group": PROXY_GROUP, "resource": "badconfigs", "name": "mine"});
    addon["spec"]["installStrategy"]["placements"][0]["configs"].as_array_mut().unwrap().push(own);
    addon
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("badconfigs.{PROXY_GROUP}")},
        "spec": {
            "group": PROXY_GROUP, "scope": "Cluster",
            "names": {"kind": "BadConfig", "plural": "badconfigs", "singular": "badconfig", "listKind": "BadConfigList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }}}],
        },
    })
}

impl Site {
    /// Makes the hub serve a kind of config, with one object of it.
    async fn serve(&self) {
        self.world.put(crd()).await;
        let own = json!({
            "apiVersion": format!("{PROXY_GROUP}/v1alpha1"), "kind": "BadConfig", "metadata": {"name": "mine"}, "spec": {"a": 1},
        });
        self.world.put_soon(&own).await;
    }

    fn assert_nobody_reads(&self, resource: &str) {
        let asked = self.counts.seen();
        assert!(!asked.is_empty(), "nothing is counted");
        let of = format!(" {resource} ");
        assert!(!asked.iter().any(|what| what.contains(&of)), "{}: {asked:?}", self.input);
    }

    /// No revision and no work has a word of it.
    async fn assert_nothing_holds(&self, word: &str) {
        for (version, kind) in
            [("apps/v1", "ControllerRevision"), ("work.open-cluster-management.io/v1", "ManifestWork")]
        {
            let all = self
                .world
                .dynamic(&json!({"apiVersion": version, "kind": kind}))
                .list(&Default::default())
                .await
                .unwrap();
            assert!(!all.items.is_empty(), "there are some");
            assert!(!json!(all.items).to_string().contains(word), "{}: a {kind} has it", self.input);
        }
    }
}
