//! One add-on on the shared clusters: what a user does with it, and what the hub says about it.

use std::sync::Mutex;
use std::time::Instant;

use aviary_testing::objects::{self, ADDON_GROUP};
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::lane::{GIVE_UP, Lane, MEMBERS, Turn, lane};
use crate::member::{INSTALLED, Member, answer, is_gone};

const API: &str = "addon.open-cluster-management.io/v1alpha1";

/// An add-on with a canary of one cluster and two clusters behind it.
pub(crate) struct Story {
    pub(crate) name: String,
    pub(crate) lane: &'static Lane,
    pub(crate) hub: Client,
    pub(crate) members: Vec<Member>,
    soak: Option<&'static str>,
    /// The objects of all versions, as they are on a member.
    published: Mutex<Vec<Value>>,
    _turn: Turn,
}

impl Story {
    pub(crate) async fn new(name: &str, turn: Turn) -> Self {
        Self::on(lane, name, turn).await
    }

    pub(crate) async fn on(lane: fn() -> &'static Lane, name: &str, turn: Turn) -> Self {
        let lane = tokio::task::spawn_blocking(lane).await.unwrap();
        let hub = lane.client("hub").await;
        let mut members = Vec::new();
        for name in MEMBERS {
            members.push(Member { name, client: lane.client(name).await });
        }
        let (soak, published) = (None, Mutex::default());
        let story = Self { name: name.to_owned(), lane, hub, members, soak, published, _turn: turn };
        for (placement, labels) in [("canary", json!({"stage": "canary"})), ("fleet", json!({}))] {
            story.put(objects::placement_by_labels(placement, &labels)).await;
        }
        story
    }

    /// How long the canary must stay healthy.
    pub(crate) fn soaking(self, soak: &'static str) -> Self {
        Self { soak: Some(soak), ..self }
    }

    pub(crate) async fn put(&self, object: Value) {
        aviary_testing::put(&self.hub, &object).await;
    }

    /// Publishes a version.
    pub(crate) async fn publish(&self, version: &str, manifests: &Value) {
        let text = manifests.to_string().replace("{{VERSION}}", version);
        let filled: Vec<Value> =
            serde_json::from_str(&text.replace("{{INSTALL_NAMESPACE}}", INSTALLED)).unwrap();
        self.published.lock().unwrap().extend(filled);
        self.put(objects::template_of(&self.name, version, manifests)).await;
        self.put(objects::hub_config(&format!("{}-{version}", self.name), version)).await;
    }

    /// Asks for a version on all clusters: first on the canary, then on one at a time.
    pub(crate) async fn want(&self, version: &str) {
        let config = format!("{}-{version}", self.name);
        let mut addon = objects::addon_behind_canary(&self.name, &config, "1", "1");
        let placements = &mut addon["spec"]["installStrategy"]["placements"];
        placements[0]["rolloutStrategy"]["rollingUpdateWithCanary"]["maxConcurrentlyUpdating"] = 1.into();
        placements[1]["rolloutStrategy"]["rollingUpdate"]["maxConcurrentlyUpdating"] = 1.into();
        if let Some(soak) = self.soak {
            placements[1]["rolloutStrategy"]["minSuccessTime"] = soak.into();
        }
        addon["spec"]["supportedConfigs"] = json!([{"group": ADDON_GROUP, "resource": "addonhubconfigs"}]);
        self.put(addon).await;
    }

    /// Polls until something is so. What the members do is reported by no event of the hub.
    pub(crate) async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let give_up = Instant::now() + GIVE_UP;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            if Instant::now() > give_up {
                panic!("{}: waited in vain for {what}\n{}", self.name, self.told().await);
            }
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
    }

    /// Everything about the add-on, for a failure, as far as the clusters answer.
    async fn told(&self) -> String {
        let mut told = self.explain();
        for member in &self.members {
            told.push_str(&format!("{}: {:?}\n", member.name, member.try_pods(&self.name).await));
            match self.try_work(member.name).await {
                Ok(Some(work)) => told.push_str(&format!("{work:#}\n")),
                Ok(None) => {}
                Err(error) => told.push_str(&format!("its work cannot be read: {error}\n")),
            }
        }
        told
    }

    /// An object of the hub, if it exists, or why the hub does not answer.
    async fn try_object(
        &self,
        version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> kube::Result<Option<Value>> {
        let of =
            json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace, "name": name}});
        let found = aviary_testing::api_of(&self.hub, &of).get_opt(name).await?;
        Ok(found.map(|object| json!(object)))
    }

    async fn try_work(&self, cluster: &str) -> kube::Result<Option<Value>> {
        let name = format!("addon-{}-deploy-0", self.name);
        self.try_object("work.open-cluster-management.io/v1", "ManifestWork", cluster, &name).await
    }

    pub(crate) async fn addon(&self) -> Option<Value> {
        let kind = "ClusterManagementAddOn";
        answer("the add-on", async || self.try_object(API, kind, "", &self.name).await).await
    }

    pub(crate) async fn instance(&self, cluster: &str) -> Option<Value> {
        let kind = "ManagedClusterAddOn";
        answer("the instance", async || self.try_object(API, kind, cluster, &self.name).await).await
    }

    pub(crate) async fn work(&self, cluster: &str) -> Option<Value> {
        answer("the work", async || self.try_work(cluster).await).await
    }

    /// The condition `Progressing` of an instance: its reason and its message.
    pub(crate) async fn progress(&self, cluster: &str) -> (String, String) {
        let instance = self.instance(cluster).await.unwrap_or_default();
        let condition = condition(&instance, "Progressing");
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }

    /// The version that a cluster is assigned, and the one that it is known to run.
    pub(crate) async fn versions(&self, cluster: &str) -> (String, String) {
        let instance = self.instance(cluster).await.unwrap_or_default();
        let text = |field: &str| instance["status"][field].as_str().unwrap_or_default().to_owned();
        (text("desiredVersion"), text("currentVersion"))
    }

    /// Waits until the add-on has succeeded, with all clusters at this version.
    pub(crate) async fn until_done(&self, version: &str) {
        self.until(&format!("{version} on all clusters"), async || {
            let addon = self.addon().await?;
            let succeeded = condition(&addon, "Succeeded")["status"] == "True";
            let current = addon["status"]["observedGeneration"] == addon["metadata"]["generation"];
            if !(succeeded && current) {
                return None;
            }
            for member in &self.members {
                if self.versions(member.name).await != (version.to_owned(), version.to_owned()) {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }

    /// Waits until exactly two pods run on every member, all of a version and ready.
    pub(crate) async fn until_all_run(&self, version: &str) {
        for member in &self.members {
            self.until_runs(member, version).await;
        }
    }

    /// The same for one member.
    pub(crate) async fn until_runs(&self, member: &Member, version: &str) {
        self.until(&format!("the pods of {version} on {}", member.name), async || {
            member.runs(&self.name, version, 2).await.then_some(())
        })
        .await;
    }

    /// No cluster behind the canary has ever been touched since its install.
    pub(crate) async fn assert_fleet_is_untouched(&self, version: &str) {
        for member in &self.members[1..] {
            self.assert_untouched(member, version).await;
        }
    }

    /// This cluster has never been touched since its install.
    pub(crate) async fn assert_untouched(&self, member: &Member, version: &str) {
        let deployment = member.deployment(&self.name).await.expect("the Deployment");
        let name = member.name;
        assert_eq!(deployment["metadata"]["generation"], 1, "{name}: the Deployment was changed");
        let work = self.work(name).await.expect("the work");
        assert_eq!(work["metadata"]["generation"], 1, "{name}: the work was changed");
        // On a busy machine a pod may be unready for a moment.
        self.until_runs(member, version).await;
        assert_eq!(self.versions(name).await.0, version, "{name}");
    }

    /// What `aviary explain` prints.
    pub(crate) fn explain(&self) -> String {
        let output = self.lane.aviary(&format!("explain {}", self.name));
        let told = [output.stdout, output.stderr].concat();
        // Lines are broken to fit a terminal.
        String::from_utf8_lossy(&told).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn undo(&self) {
        let output = self.lane.aviary(&format!("rollout undo {}", self.name));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Deletes the add-on, and waits until no object of any version is left on any member: no Job,
    /// no definition, no custom resource. No plan of the story may have broken an invariant.
    pub(crate) async fn finish(&self) {
        let addon =
            json!({"apiVersion": API, "kind": "ClusterManagementAddOn", "metadata": {"name": self.name}});
        let params = kube::api::DeleteParams::background();
        aviary_testing::api_of(&self.hub, &addon).delete(&self.name, &params).await.unwrap();
        let published = self.published.lock().unwrap().clone();
        for member in &self.members {
            for object in &published {
                let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                self.until(&format!("{kind} {name} to go from {}", member.name), async || {
                    is_gone(&member.client, object).await.then_some(())
                })
                .await;
            }
            self.until(&format!("{} to be empty", member.name), async || {
                let gone = member.pods(&self.name).await.is_empty();
                (gone && self.work(member.name).await.is_none()).then_some(())
            })
            .await;
        }
        self.assert_no_invariant_was_broken().await;
    }

    /// The manager publishes an Event if `--verify` finds a plan that breaks an invariant.
    async fn assert_no_invariant_was_broken(&self) {
        let mut events =
            Api::<Event>::all(self.hub.clone()).list(&ListParams::default()).await.unwrap().items;
        events.retain(|event| event.involved_object.name.as_ref() == Some(&self.name));
        assert!(!events.is_empty(), "{}: the manager published no Event", self.name);
        events.retain(|event| event.reason.as_deref() == Some("InvariantBroken"));
        assert!(events.is_empty(), "{}: {events:#?}", self.name);
    }
}

/// A condition of an object.
pub(crate) fn condition(object: &Value, type_: &str) -> Value {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|one| one["type"] == type_).cloned().unwrap_or_default()
}
