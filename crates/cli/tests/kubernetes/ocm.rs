//! On a server whose kinds are those of Open Cluster Management: installing and uninstalling Aviary
//! leaves them as they are.

use aviary_api::crds;
use serde_json::Value;

use crate::server::{NAMESPACE, Server, installed};

/// Puts our kinds back, for the tests that follow.
struct Restored(Server);

impl Drop for Restored {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let manifests = self.0.desk.output("manifests").stdout;
            drop(self.0.try_kubectl("admin.kubeconfig", "apply -f -", &manifests));
        } else {
            self.0.install();
        }
    }
}

/// What OCM's operator would see of its kinds.
fn kinds(server: &Server) -> Vec<(String, Value)> {
    let list = server.get("crds");
    let all = list["items"].as_array().unwrap().iter();
    let named = all.map(|crd| (crd["metadata"]["name"].as_str().unwrap().to_owned(), crd.clone()));
    let theirs = named.filter(|(name, _)| crds::is_of_ocm(name));
    theirs
        .map(|(name, crd)| {
            let metadata = &crd["metadata"];
            let seen = [&metadata["uid"], &metadata["generation"], &metadata["annotations"], &crd["spec"]];
            (name, seen.into_iter().cloned().collect())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installing_and_uninstalling_leaves_the_kinds_and_the_namespace_of_ocm_as_they_are() {
    let server = Restored(installed("ocm"));
    let client = server.0.hub().await.client;
    aviary_testing::install_ocm_crds(&client, None).await;
    let before = kinds(&server.0);
    assert_eq!(before.len(), 10, "{:?}", before.iter().map(|(name, _)| name).collect::<Vec<_>>());
    let namespace = server.0.get(&format!("namespace {NAMESPACE}"))["metadata"].clone();

    let manifests = server.0.aviary("manifests --flavor ocm");
    server.0.kubectl("apply --server-side --force-conflicts -f -", manifests.as_bytes());
    assert_eq!(kinds(&server.0), before);

    server.0.kubectl("delete --ignore-not-found -f -", manifests.as_bytes());
    assert_eq!(kinds(&server.0), before);
    let now = server.0.get(&format!("namespace {NAMESPACE}"));
    assert_eq!(
        (&now["metadata"]["uid"], &now["metadata"]["labels"]),
        (&namespace["uid"], &namespace["labels"])
    );
    assert_eq!(now["status"]["phase"], "Active");
    let left = server.0.get("crds");
    let left = left["items"].as_array().unwrap().iter().filter_map(|crd| crd["metadata"]["name"].as_str());
    for added in crds::added_to_ocm() {
        assert!(
            !left.clone().any(|name| Some(name) == added.metadata.name.as_deref()),
            "{:?}",
            added.metadata.name
        );
    }
}
