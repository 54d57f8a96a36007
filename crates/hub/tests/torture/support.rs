//! Shared by the tests: directories, deadlines, and a few objects.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aviary_hub::{Clock, Hub, HubOptions};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams, ObjectMeta};
use tempfile::TempDir;

/// How long anything may take before the test fails.
const DEADLINE: Duration = Duration::from_secs(100);

pub(crate) async fn within<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, event).await {
        Ok(value) => value,
        Err(_) => panic!("it should have happened by now: {what}"),
    }
}

/// A directory for the files of a hub, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The file of the store.
    pub(crate) fn file(&self) -> PathBuf {
        self.path().join("hub.redb")
    }
}

/// A clock that the test controls.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeClock(Arc<AtomicI64>);

impl FakeClock {
    pub(crate) fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        let seconds = Arc::clone(&self.0);
        Arc::new(move || jiff_second(1_800_000_000 + seconds.load(Ordering::SeqCst)))
    }
}

fn jiff_second(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap()
}

pub(crate) async fn ephemeral(options: HubOptions) -> Hub {
    Hub::ephemeral(options).await.unwrap()
}

pub(crate) fn config_map(name: &str, data: &[(&str, String)]) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()),
        ..ConfigMap::default()
    }
}

pub(crate) fn maps(client: &kube::Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

pub(crate) fn revision(object: &ConfigMap) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

/// Names and revisions of all config maps, and the revision of the list.
pub(crate) async fn listed(maps: &Api<ConfigMap>) -> (std::collections::BTreeMap<String, u64>, u64) {
    let list = maps.list(&ListParams::default()).await.unwrap();
    let newest = list.metadata.resource_version.as_deref().unwrap().parse().unwrap();
    (list.iter().map(|map| (map.name_any(), revision(map))).collect(), newest)
}

/// Whether an answer of the API has this code.
pub(crate) fn is_code<T>(answer: &Result<T, kube::Error>, code: u16) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == code)
}
