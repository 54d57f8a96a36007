//! Where one row takes place: names that no other row has, and what is seen there.

use std::sync::Arc;

use aviary_api::{ManagedClusterAddOn, ManifestWork};
use futures_util::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};

use super::gate::Gate;
use super::hands::Hands;
use crate::counting::Counts;
use crate::objects::{instance, named_addon, object, place, reference, rolling};
use crate::rollout::hub_config;
use crate::world::{GIVE_UP, World};

pub(super) struct Site {
    pub(super) world: Arc<World>,
    pub(super) hands: Arc<Hands>,
    /// In front of the manager that sees what is bad.
    pub(super) gate: Gate,
    pub(super) counts: Counts,
    pub(super) input: &'static str,
    /// Two digits.
    pub(super) number: String,
    pub(super) clusters: Vec<String>,
}

impl Site {
    pub(super) fn name(&self) -> String {
        format!("bad-{}", self.number)
    }

    pub(super) fn placement(&self) -> String {
        self.named("place")
    }

    /// A name that only this row has.
    pub(super) fn named(&self, what: &str) -> String {
        format!("{what}-{}", self.number)
    }

    /// The add-on as it should be: on all of its clusters, at the first version, one after the
    /// other.
    pub(super) fn addon(&self) -> Value {
        self.addon_with("one", rolling(1))
    }

    /// The add-on with one placement, which wants the config `one` or `two`.
    pub(super) fn addon_with(&self, config: &str, strategy: Value) -> Value {
        self.addon_on(&[place(&self.placement(), &self.named(config), strategy)])
    }

    pub(super) fn addon_on(&self, placements: &[Value]) -> Value {
        named_addon(&self.name(), placements)
    }

    /// One entry of the list of placements.
    pub(super) fn entry(&self, placement: &str, config: &str, strategy: Value) -> Value {
        place(&self.named(placement), &self.named(config), strategy)
    }

    /// The instance on one of its clusters.
    pub(super) fn instance(&self, spec: Value) -> Value {
        instance(&self.clusters[0], &self.name(), spec)
    }

    pub(super) fn template(&self, version: &str) -> Value {
        self.template_of(version, json!([self.manifest("agent", version)]))
    }

    pub(super) fn template_of(&self, version: &str, manifests: Value) -> Value {
        aviary_testing::objects::template_of(&self.name(), version, &manifests)
    }

    pub(super) fn manifest(&self, name: &str, version: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "{{INSTALL_NAMESPACE}}"},
            "data": {"version": version},
        })
    }

    /// What every row has: clusters, a placement that selects them, two versions, and a config for
    /// each.
    pub(super) async fn prepare(&self) {
        self.world.clusters(&self.placement(), &self.clusters).await;
        for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
            self.world.put(self.template(version)).await;
            self.world.put(hub_config(&self.named(config), version)).await;
        }
    }

    /// A text with this row's names in it.
    pub(super) fn filled(&self, text: &str) -> String {
        let cluster = self.clusters.first().cloned().unwrap_or_default();
        text.replace("<addon>", &self.name())
            .replace("<placement>", &self.placement())
            .replace("<canary>", &self.named("canary"))
            .replace("<cluster>", &cluster)
            .replace("<number>", &self.number)
    }

    /// Waits until a condition of the object says this: its reason and its message. `…` stands for
    /// any text.
    pub(super) async fn until_says(&self, object: &Value, text: &str) {
        let text = self.filled(text);
        self.until_object(object, &text, |object| said(object).iter().any(|said| reads(said, &text))).await;
    }

    /// Waits until an object is as it should be.
    pub(super) async fn until_object(&self, object: &Value, what: &str, is: impl Fn(&Value) -> bool) {
        let api = self.world.dynamic(object);
        let name = object["metadata"]["name"].as_str().unwrap();
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut events = std::pin::pin!(watcher(api, config));
        let wait = async {
            while let Some(event) = events.next().await {
                match event {
                    // A watch may be cut, as when the schema of its kind changes: it goes on by
                    // itself.
                    Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object))
                        if is(&json!(object)) =>
                    {
                        return;
                    }
                    _ => {}
                }
            }
            panic!("the watch ended")
        };
        if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
            let now = self.world.get(object).await.unwrap_or_default();
            panic!("{}: not within {GIVE_UP:?}:\n{what}\n\nbut:\n{}", self.input, said(&now).join("\n"));
        }
    }

    /// Waits until the placement says this.
    pub(super) async fn until_message(&self, message: &str) {
        self.until_placement(&self.placement(), message).await;
    }

    pub(super) async fn until_placement(&self, placement: &str, message: &str) {
        let message = self.filled(message);
        self.until_object(&self.addon(), &message, |addon| message_of(addon, placement).contains(&message))
            .await;
    }

    /// Waits until all of its instances are as they should be.
    pub(super) async fn until_instances(&self, what: &str, are: impl Fn(&[ManagedClusterAddOn]) -> bool) {
        self.world.until_instances(&self.name(), &format!("{}: {what}", self.input), are).await;
    }

    /// Waits until exactly these of its clusters run this version.
    pub(super) async fn until_run(&self, clusters: &[String], version: &str) {
        self.until_instances(&format!("{clusters:?} run {version}"), |all| {
            all.iter().filter(|one| json!(one.status)["currentVersion"] == version).count() == clusters.len()
                && clusters
                    .iter()
                    .all(|cluster| all.iter().any(|one| one.namespace().as_deref() == Some(cluster)))
        })
        .await;
    }

    /// Who is told the second version.
    pub(super) async fn told_two(&self) -> Vec<String> {
        let two = self.named("two");
        let is_told = |one: &ManagedClusterAddOn| {
            let references = json!(one.status)["configReferences"].as_array().cloned().unwrap_or_default();
            references.iter().any(|one| one["desiredConfig"]["name"] == two.as_str())
        };
        let all = self.world.instances(&self.name()).await;
        all.iter().filter(|one| is_told(one)).filter_map(ResourceExt::namespace).collect()
    }

    /// Waits until so many are told the second version.
    pub(super) async fn until_told_two(&self, count: usize) {
        let two = format!("\"{}\"", self.named("two"));
        self.until_instances(&format!("{count} are told the second version"), |all| {
            all.iter().filter(|one| json!(one.status).to_string().contains(&two)).count() == count
        })
        .await;
    }

    pub(super) async fn assert_nobody_moved(&self) {
        let moved = self.told_two().await;
        assert!(moved.is_empty(), "{}: {moved:?} are told the second version", self.input);
    }

    /// The works of the add-on on one of its clusters.
    pub(super) async fn works(&self, cluster: &str) -> Vec<Value> {
        let label = format!("open-cluster-management.io/addon-name={}", self.name());
        let works: Api<ManifestWork> = Api::namespaced(self.world.client.clone(), cluster);
        let all = works.list(&ListParams::default().labels(&label)).await.unwrap();
        all.items.iter().map(|work| json!(work)).collect()
    }

    pub(super) fn work(&self, cluster: &str) -> Value {
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": format!("addon-{}-deploy-0", self.name()), "namespace": cluster},
        })
    }

    pub(super) async fn merge(&self, object: &Value, patch: Value) {
        let api: Api<DynamicObject> = self.world.dynamic(object);
        let name = object["metadata"]["name"].as_str().unwrap();
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Puts it right: to the second version, one after the other.
    pub(super) async fn upgrade(&self) {
        self.world.put(self.addon_with("two", rolling(1))).await;
        self.until_upgraded().await;
    }

    pub(super) async fn until_upgraded(&self) {
        let all = self.clusters.len();
        self.until_message(&format!("{all}/{all} upgrade completed with no errors.")).await;
    }
}

/// Whether a text has these parts, one after the other.
fn reads(said: &str, parts: &str) -> bool {
    let mut rest = Some(said);
    for part in parts.split('…') {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, rest)| rest);
    }
    rest.is_some()
}

/// Every condition of an object, those of its placements too: `Reason: message`.
pub(super) fn said(object: &Value) -> Vec<String> {
    let status = &object["status"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of_placements =
        list(&status["installProgression"]).into_iter().flat_map(|one| list(&one["conditions"]));
    let all = list(&status["conditions"]).into_iter().chain(of_placements);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|one| format!("{}: {}", text(&one["reason"]), text(&one["message"]))).collect()
}

/// The message of a placement's `Progressing` condition.
fn message_of(addon: &Value, placement: &str) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of = list(&addon["status"]["installProgression"]).into_iter().find(|one| one["name"] == placement);
    let conditions = of.map(|of| list(&of["conditions"])).unwrap_or_default();
    let progressing = conditions.iter().find(|one| one["type"] == "Progressing");
    progressing.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
}

/// A config for how an add-on is deployed, where add-ons may have theirs.
pub(super) fn deployment_config(name: &str, spec: Value) -> Value {
    let mut config = object("AddOnDeploymentConfig", name, json!({"spec": spec}));
    config["metadata"]["namespace"] = json!("open-cluster-management");
    config
}

pub(super) fn deployment_reference(name: &str) -> Value {
    reference("addondeploymentconfigs", Some("open-cluster-management"), name)
}
