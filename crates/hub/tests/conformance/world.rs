//! The environment of one check: its own namespace, its requests, and the cleanup.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::answer::Answer;
use crate::crds::{CRDS, widget_crd};
use crate::objects::{name_of, rv_of};
use crate::stream::Watch;

pub const JSON: &str = "application/json";
pub const MERGE: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

/// What all checks of a run share: the client, and one custom resource.
pub struct Shared {
    client: Client,
    group: String,
    widgets: OnceCell<()>,
}

impl Shared {
    pub fn new(client: Client) -> Shared {
        Shared { client, group: format!("{}.conformance.test", fresh("shared")), widgets: OnceCell::new() }
    }

    pub async fn clear(&self) {
        if self.widgets.initialized() {
            let path = format!("{CRDS}/widgets.{}", self.group);
            let request = Request::delete(path).body(Body::empty()).expect("a request");
            // Best effort: a failure does not affect the result.
            let _ = self.client.send(request).await;
        }
    }
}

/// A name that no other check and no other run has used.
pub fn fresh(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static START: std::sync::LazyLock<u128> = std::sync::LazyLock::new(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros())
    });
    format!("{prefix}-{:x}-{}", *START & 0xff_ffff_ffff, COUNT.fetch_add(1, Ordering::Relaxed))
}

#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
    pub ns: String,
    /// Paths of cluster-scoped objects that are deleted when the check ends.
    litter: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub async fn open(shared: Arc<Shared>) -> World {
        let world = World { shared, ns: fresh("conformance"), litter: Arc::default() };
        world.make_namespace(&world.ns).await;
        world
    }

    pub async fn close(&self) {
        let litter = std::mem::take(&mut *self.litter.lock().expect("no poison"));
        for path in litter.into_iter().rev() {
            self.delete(&path).await;
        }
    }

    /// Creates a namespace that is deleted with this world.
    pub async fn make_namespace(&self, name: &str) -> Value {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/{name}");
        self.forget_later(&path);
        self.post("/api/v1/namespaces", &body).await.created()
    }

    /// Deletes this cluster-scoped object when the check ends.
    pub fn forget_later(&self, path: &str) {
        self.litter.lock().expect("no poison").push(path.to_owned());
    }

    // Paths.

    pub fn configmaps(&self) -> String {
        self.core("configmaps")
    }

    pub fn configmap(&self, name: &str) -> String {
        format!("{}/{name}", self.configmaps())
    }

    pub fn core(&self, resource: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}", self.ns)
    }

    pub fn apis(&self, group_version: &str, resource: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{resource}", self.ns)
    }

    // The shared custom resource: see `crds::widget_crd`.

    pub fn group(&self) -> &str {
        &self.shared.group
    }

    /// The path of the widgets in this namespace, once they are served.
    pub async fn widgets(&self) -> String {
        let ready = || async { self.establish(&widget_crd(self.group())).await };
        self.shared.widgets.get_or_init(ready).await;
        self.apis(&format!("{}/v1", self.group()), "widgets")
    }

    pub fn widget(&self, name: &str, spec: Value) -> Value {
        let version = format!("{}/v1", self.group());
        json!({"apiVersion": version, "kind": "Widget", "metadata": {"name": name}, "spec": spec})
    }

    /// Creates a CRD for this check only, and waits until its first version is served. Returns the
    /// path of its objects.
    pub async fn serve_crd(&self, crd: &Value) -> String {
        self.forget_later(&format!("{CRDS}/{}", name_of(crd)));
        self.establish(crd).await;
        self.crd_path(crd, crd["spec"]["versions"][0]["name"].as_str().expect("a version"))
    }

    pub fn crd_path(&self, crd: &Value, version: &str) -> String {
        let (group, plural) = (&crd["spec"]["group"], &crd["spec"]["names"]["plural"]);
        self.apis(
            &format!("{}/{version}", group.as_str().expect("a group")),
            plural.as_str().expect("a plural"),
        )
    }

    async fn establish(&self, crd: &Value) {
        self.post(CRDS, crd).await.created();
        let spec = &crd["spec"];
        for version in
            spec["versions"].as_array().expect("versions").iter().filter(|version| version["served"] == true)
        {
            let path = self.crd_path(crd, version["name"].as_str().expect("a name"));
            self.eventually("the custom resource is served", || async {
                self.get(&path).await.status == 200
            })
            .await;
        }
    }

    // Requests.

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], Vec::new()).await
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[("accept", accept)], Vec::new()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("content-type", JSON)], body.to_string().into()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[("content-type", JSON)], body.to_string().into()).await
    }

    pub async fn patch(&self, path: &str, content_type: &str, body: &Value) -> Answer {
        self.send("PATCH", path, &[("content-type", content_type)], body.to_string().into()).await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, MERGE, body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], Vec::new()).await
    }

    pub async fn delete_with(&self, path: &str, options: Value) -> Answer {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        body.as_object_mut().expect("an object").extend(options.as_object().cloned().expect("options"));
        self.send("DELETE", path, &[("content-type", JSON)], body.to_string().into()).await
    }

    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let response = self.respond(method, path, headers, body).await;
        let (head, body) = response.into_parts();
        let bytes =
            body.collect().await.unwrap_or_else(|error| panic!("{method} {path}: {error}")).to_bytes();
        Answer {
            request: format!("{method} {path}"),
            status: head.status.as_u16(),
            headers: head.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    async fn respond(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> http::Response<Body> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut request = Request::builder().method(method).uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(Body::from(body.clone())).expect("a request");
            let response = self.shared.client.send(request).await;
            let response = response.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"));
            // Retries on 429, like every client: kube-apiserver sends it while a changed CRD
            // settles.
            if response.status() != 429 || Instant::now() > deadline {
                return response;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    // Watches and waiting.

    /// Watches this collection; `path` may already contain a query.
    pub async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, JSON).await
    }

    pub async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let joint = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{joint}watch=true");
        let response = self.respond("GET", &path, &[("accept", accept)], Vec::new()).await;
        let status = response.status();
        if status != 200 {
            let text = response.into_body().collect().await.expect("a body").to_bytes();
            panic!("GET {path} answered {status}: {}", String::from_utf8_lossy(&text));
        }
        Watch::new(response.into_body())
    }

    /// Watches this collection from now on.
    pub async fn watch_from_now(&self, path: &str) -> Watch {
        let rv = rv_of(&self.get(path).await.ok());
        let joint = if path.contains('?') { '&' } else { '?' };
        self.watch(&format!("{path}{joint}resourceVersion={rv}")).await
    }

    /// Waits until this object is deleted.
    pub async fn gone(&self, path: &str) {
        let (collection, name) = path.rsplit_once('/').expect("the path of an object");
        let one = format!("{collection}?fieldSelector=metadata.name={name}");
        let list = self.get(&one).await.ok();
        if list["items"].as_array().is_some_and(|items| !items.is_empty()) {
            let mut watch = self.watch(&format!("{one}&resourceVersion={}", rv_of(&list))).await;
            watch.until("DELETED").await;
        }
    }

    /// Polls for what no event reports; fails after a minute.
    pub async fn eventually<F: Future<Output = bool>>(&self, what: &str, mut holds: impl FnMut() -> F) {
        let deadline = Instant::now() + PATIENCE;
        while !holds().await {
            assert!(Instant::now() < deadline, "not in {} s: {what}", PATIENCE.as_secs());
            tokio::time::sleep(PAUSE).await;
        }
    }
}
