//! Watches which clusters have a work with which version, for any manager.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use aviary_api::crds;
use futures_util::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use super::objects::{self, ADDON};

/// The works of the measured add-on, kept up to date.
pub(super) struct Works {
    versions: Arc<Mutex<BTreeMap<String, String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Works {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Works {
    pub(super) fn watch(hub: &Client) -> Self {
        let api: Api<DynamicObject> = Api::all_with(hub.clone(), &objects::works());
        let labelled = Config::default().labels(&format!("open-cluster-management.io/addon-name={ADDON}"));
        let versions: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let seen = Arc::clone(&versions);
        let task = tokio::spawn(async move {
            let mut stream = std::pin::pin!(watcher(api, labelled).default_backoff());
            while let Some(event) = stream.next().await {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                match event {
                    Ok(Event::Apply(work) | Event::InitApply(work)) => {
                        seen.insert(work.namespace().unwrap_or_default(), version(&work));
                    }
                    Ok(Event::Delete(work)) => drop(seen.remove(&work.namespace().unwrap_or_default())),
                    Ok(Event::Init) => seen.clear(),
                    // A watch that was cut is taken up again.
                    Ok(Event::InitDone) | Err(_) => {}
                }
            }
        });
        Self { versions, task }
    }

    fn with<T>(&self, look: impl FnOnce(&BTreeMap<String, String>) -> T) -> T {
        look(&self.versions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn count(&self) -> usize {
        self.with(BTreeMap::len)
    }

    /// How many clusters have a work with this version.
    pub(super) fn have(&self, version: &str) -> usize {
        self.with(|all| all.values().filter(|given| *given == version).count())
    }

    /// The progress as text.
    pub(super) fn told(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        self.with(|all| all.values().for_each(|version| *counts.entry(version.clone()).or_default() += 1));
        let told: Vec<String> =
            counts.iter().map(|(version, count)| format!("{count} have {version}")).collect();
        if told.is_empty() { "there is no work".to_owned() } else { told.join(", ") }
    }
}

fn version(work: &DynamicObject) -> String {
    let manifests = work.data.pointer("/spec/workload/manifests").and_then(Value::as_array);
    let found = manifests.into_iter().flatten().find_map(|manifest| manifest.pointer("/data/version"));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Creates missing CRDs, and waits until they are served.
pub(super) async fn install_kinds(hub: &Client) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    for crd in crds::all() {
        let name = crd.name_any();
        let failed = || format!("failed to install the CRD {name}");
        if api.get_opt(&name).await.with_context(failed)?.is_none() {
            api.create(&PostParams::default(), &crd).await.with_context(failed)?;
        }
        let served = await_condition(api.clone(), &name, conditions::is_crd_established());
        served.await.with_context(failed)?;
    }
    Ok(())
}
