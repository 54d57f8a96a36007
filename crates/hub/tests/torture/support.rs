//! What the tests share: places, chance, deadlines, and the few objects they use.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use aviary_hub::{Clock, Hub, Options};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams, ObjectMeta};

/// How long anything may take before the test gives up.
const DEADLINE: Duration = Duration::from_secs(100);

pub(crate) async fn within<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, event).await {
        Ok(value) => value,
        Err(_) => panic!("it should have happened by now: {what}"),
    }
}

/// A directory that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("aviary-torture-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The file of the store.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("hub.redb")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// SplitMix64: small, seeded, the same everywhere.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A clock that stands still until it is moved.
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

pub(crate) async fn ephemeral(options: Options) -> Hub {
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
