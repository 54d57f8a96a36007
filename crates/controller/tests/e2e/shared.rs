//! A server that all tests share: whose turn it is, and cleaning up.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use futures_util::{StreamExt, stream};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::json;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::world::GIVE_UP;

static TURN: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// Add-ons first: a manager that is still there makes nothing anew without them.
const KINDS: [(&str, &str, &str); 17] = [
    ("addon.open-cluster-management.io", "v1alpha1", "ClusterManagementAddOn"),
    ("addon.open-cluster-management.io", "v1alpha1", "ManagedClusterAddOn"),
    ("work.open-cluster-management.io", "v1", "ManifestWork"),
    ("addon.open-cluster-management.io", "v1alpha1", "AddOnHubConfig"),
    ("addon.open-cluster-management.io", "v1alpha1", "AddOnDeploymentConfig"),
    ("addon.open-cluster-management.io", "v1alpha1", "AddOnTemplate"),
    ("addon.open-cluster-management.io", "v1alpha1", "AddOnRolloutPolicy"),
    ("addon.open-cluster-management.io", "v1alpha1", "AddOnRolloutRecord"),
    ("cluster.open-cluster-management.io", "v1beta1", "PlacementDecision"),
    ("cluster.open-cluster-management.io", "v1beta1", "Placement"),
    ("cluster.open-cluster-management.io", "v1beta2", "ManagedClusterSetBinding"),
    ("cluster.open-cluster-management.io", "v1beta2", "ManagedClusterSet"),
    ("cluster.open-cluster-management.io", "v1", "ManagedCluster"),
    ("apps", "v1", "ControllerRevision"),
    ("events.k8s.io", "v1", "Event"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
];

/// The kubeconfig of the shared server, if there is one.
pub(crate) fn kubeconfig() -> Option<PathBuf> {
    std::env::var_os("AVIARY_E2E_KUBECONFIG").filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// The kubeconfig that managers use there, if it is another: that of their own ServiceAccount.
pub(crate) fn managers_kubeconfig() -> Option<PathBuf> {
    std::env::var_os("AVIARY_E2E_MANAGER_KUBECONFIG").filter(|file| !file.is_empty()).map(PathBuf::from)
}

pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// The right to use the shared server, which is clean when the turn begins and when it ends.
pub(crate) struct Turn {
    kubeconfig: PathBuf,
    _turn: OwnedMutexGuard<()>,
}

impl Turn {
    pub(crate) async fn take(kubeconfig: &Path) -> Self {
        let turn = Arc::clone(&TURN).lock_owned().await;
        clean(&client(kubeconfig).await).await;
        Self { kubeconfig: kubeconfig.to_owned(), _turn: turn }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // The runtime of the test may be on its way out, so this has one of its own.
        let kubeconfig = self.kubeconfig.clone();
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { clean(&client(&kubeconfig).await).await });
        });
        // A failure has been told; the next turn begins with cleaning too.
        let _ = cleaning.join();
    }
}

/// Takes everything away that tests make, but for namespaces: they are empty then, and the next
/// test has the same.
async fn clean(client: &Client) {
    let cleaning = async { while clean_once(client).await > 0 {} };
    tokio::time::timeout(GIVE_UP, cleaning).await.expect("a clean server");
}

/// How much there was.
async fn clean_once(client: &Client) -> usize {
    let mut found = 0;
    for (group, version, kind) in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let all = match Api::<DynamicObject>::all_with(client.clone(), &resource)
            .list(&ListParams::default())
            .await
        {
            Ok(all) => all.items,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => panic!("{kind}: {error}"),
        };
        let ours: Vec<DynamicObject> = all.into_iter().filter(|object| is_ours(kind, object)).collect();
        found += ours.len();
        stream::iter(ours).for_each_concurrent(32, |object| delete(client, &resource, object)).await;
    }
    found
}

/// Other kinds have objects of the server's own. Our CRDs stay; those that tests define are of
/// groups of their own.
fn is_ours(kind: &str, object: &DynamicObject) -> bool {
    let namespace = object.namespace().unwrap_or_default();
    match kind {
        "Lease" | "ControllerRevision" => namespace == "open-cluster-management",
        "Event" => namespace == "default",
        "CustomResourceDefinition" => {
            ["proxy.open-cluster-management.io", "submarineraddon.open-cluster-management.io"]
                .contains(&object.data["spec"]["group"].as_str().unwrap_or_default())
        }
        _ => true,
    }
}

async fn delete(client: &Client, resource: &ApiResource, object: DynamicObject) {
    let name = object.name_any();
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    if !object.finalizers().is_empty() && resource.kind != "CustomResourceDefinition" {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        drop(api.patch(&name, &PatchParams::default(), &patch).await);
    }
    match api.delete(&name, &DeleteParams::background()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => panic!("{name}: {error}"),
    }
}
