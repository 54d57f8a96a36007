//! What is really there on a member.

use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::lane::GIVE_UP;

/// Where add-ons run.
pub(crate) const INSTALLED: &str = "open-cluster-management-agent-addon";

pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
}

/// A pod, reduced to what stories ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) name: String,
    /// The tag of its image.
    pub(crate) version: String,
    pub(crate) ready: bool,
    /// Whether its container runs.
    pub(crate) started: bool,
    pub(crate) restarts: i64,
    /// Why its container waits or last ended, such as `CrashLoopBackOff` and `OOMKilled`.
    pub(crate) reasons: Vec<String>,
}

impl Member {
    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), INSTALLED, &resource)
    }

    /// An object in the namespace of the add-ons, if it exists.
    pub(crate) async fn get(&self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        let api = self.api(api_version, kind);
        answer(&format!("{kind} {name} of {}", self.name), async || api.get_opt(name).await)
            .await
            .map(|object| json!(object))
    }

    pub(crate) async fn deployment(&self, name: &str) -> Option<Value> {
        self.get("apps/v1", "Deployment", name).await
    }

    /// The pods of an add-on that are not being deleted.
    pub(crate) async fn pods(&self, app: &str) -> Vec<Pod> {
        answer(&format!("the pods of {app} on {}", self.name), async || self.try_pods(app).await).await
    }

    /// The same, or why the member does not answer.
    pub(crate) async fn try_pods(&self, app: &str) -> kube::Result<Vec<Pod>> {
        let params = ListParams::default().labels(&format!("app={app}"));
        let listed = self.api("v1", "Pod").list(&params).await?;
        let kept = listed.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(kept.map(|pod| Pod::of(&json!(pod))).collect())
    }

    /// Whether exactly so many pods run, all at this version and ready.
    pub(crate) async fn runs(&self, app: &str, version: &str, count: usize) -> bool {
        let pods = self.pods(app).await;
        pods.len() == count && pods.iter().all(|pod| pod.ready && pod.version == version)
    }

    /// Whether the node says of itself that it is ready.
    pub(crate) async fn node_is_ready(&self) -> Option<bool> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
        let node =
            Api::<DynamicObject>::all_with(self.client.clone(), &resource).get(self.name).await.ok()?;
        let conditions = node.data["status"]["conditions"].as_array()?;
        Some(conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
    }
}

/// Asks until an API server answers: an error does not mean that there is nothing.
pub(crate) async fn answer<T>(what: &str, mut ask: impl AsyncFnMut() -> kube::Result<T>) -> T {
    let give_up = Instant::now() + GIVE_UP;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < give_up, "{what} cannot be read: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Whether an object does not exist. An API server that does not answer leaves that open.
pub(crate) async fn is_gone(client: &Client, object: &Value) -> bool {
    match aviary_testing::api_of(client, object).get_opt(aviary_testing::name_of(object)).await {
        Ok(found) => found.is_none(),
        // Its kind has gone, and it with it.
        Err(kube::Error::Api(status)) => status.code == 404,
        Err(_) => false,
    }
}

impl Pod {
    fn of(pod: &Value) -> Self {
        let container = &pod["status"]["containerStatuses"][0];
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        let ready = pod["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
        let reasons = ["/state/waiting/reason", "/state/terminated/reason", "/lastState/terminated/reason"];
        Self {
            name: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            version: image.rsplit_once(':').map_or("", |(_, tag)| tag).to_owned(),
            ready,
            started: container["started"] == true,
            restarts: container["restartCount"].as_i64().unwrap_or(0),
            reasons: reasons
                .iter()
                .filter_map(|at| container.pointer(at)?.as_str())
                .map(str::to_owned)
                .collect(),
        }
    }
}
