//! The work agents of all clusters: they answer for every work as soon as they see it.

use aviary_api::ManifestWork;
use futures_util::StreamExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;

/// Agents that run until they are dropped.
#[derive(Debug)]
pub(crate) struct Agents(JoinHandle<()>);

impl Agents {
    /// `answer` says what an agent makes of a work: applied and available, or not applied and why.
    pub(crate) fn start(client: &Client, answer: fn(&ManifestWork) -> Result<(), String>) -> Self {
        let client = client.clone();
        Self(tokio::spawn(async move {
            let works: Api<ManifestWork> = Api::all(client.clone());
            let mut events = std::pin::pin!(watcher(works, watcher::Config::default()));
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(work) | Event::InitApply(work)) = event {
                    report(&client, &work, answer(&work)).await;
                }
            }
        }))
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn report(client: &Client, work: &ManifestWork, answer: Result<(), String>) {
    let generation = work.metadata.generation;
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if conditions.iter().any(|condition| condition.observed_generation == generation) {
        return;
    }
    let (status, message) = match answer {
        Ok(()) => ("True", String::new()),
        Err(why) => ("False", why),
    };
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": status, "reason": "Answered", "message": message, "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let patch = json!({"status": {"conditions": [condition("Applied"), condition("Available")]}});
    let works: Api<ManifestWork> = Api::namespaced(client.clone(), &work.namespace().unwrap_or_default());
    let answered = works.patch_status(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
    if let Err(error) = answered
        && !matches!(&error, kube::Error::Api(status) if status.code == 404)
    {
        panic!("an agent could not answer: {error}");
    }
}
