//! The work agents of all clusters: they answer for works as soon as they are let.

use std::collections::HashMap;
use std::sync::Arc;

use aviary_api::ManifestWork;
use aviary_testing::resource_status;
use futures_util::{StreamExt, stream};
use kube::api::{Api, Patch, PatchParams};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What an agent makes of a work: nothing yet, or applied and available, or not applied and why.
pub(crate) type Answer = Option<Result<(), String>>;

type Rule = Arc<dyn Fn(&ManifestWork) -> Answer + Send + Sync>;

/// How many answers are on their way at once.
const AT_ONCE: usize = 16;

/// Agents that run until they are dropped.
pub(crate) struct Agents {
    task: JoinHandle<()>,
    rule: watch::Sender<Rule>,
}

impl Agents {
    /// Agents that answer for every work at once.
    pub(crate) fn start(client: &Client, answer: fn(&ManifestWork) -> Result<(), String>) -> Self {
        Self::by(client, Arc::new(move |work| Some(answer(work))))
    }

    /// Agents that say nothing before they are let.
    pub(crate) fn held(client: &Client) -> Self {
        Self::by(client, Arc::new(|_| None))
    }

    /// From now on agents answer like this, for the works that are there too.
    pub(crate) fn answer(&self, rule: impl Fn(&ManifestWork) -> Answer + Send + Sync + 'static) {
        self.rule.send_replace(Arc::new(rule));
    }

    /// From now on all is well everywhere.
    pub(crate) fn let_go(&self) {
        self.answer(|_| Some(Ok(())));
    }

    /// From now on the agents of these clusters find all well, and the others say nothing new.
    pub(crate) fn let_go_of(&self, clusters: impl Fn(&str) -> bool + Send + Sync + 'static) {
        self.answer(move |work| clusters(&work.namespace().unwrap_or_default()).then_some(Ok(())));
    }

    fn by(client: &Client, rule: Rule) -> Self {
        let (rule, rules) = watch::channel(rule);
        Self { task: tokio::spawn(run(client.clone(), rules)), rule }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(client: Client, mut rules: watch::Receiver<Rule>) {
    // One that cannot be read has no agent.
    let works: Api<DeserializeGuard<ManifestWork>> = Api::all(client.clone());
    let mut events = std::pin::pin!(watcher(works, watcher::Config::default()).ready_chunks(AT_ONCE));
    let mut known: HashMap<(String, String), ManifestWork> = HashMap::new();
    loop {
        let news: Vec<(String, String)> = tokio::select! {
            Some(events) = events.next() => events.into_iter().filter_map(|event| match event {
                Ok(Event::Apply(work) | Event::InitApply(work)) => {
                    let work = work.0.ok()?;
                    let key = key(&work);
                    known.insert(key.clone(), work);
                    Some(key)
                }
                Ok(Event::Delete(work)) => {
                    known.remove(&(work.namespace().unwrap_or_default(), work.name_any()));
                    None
                }
                _ => None,
            }).collect(),
            Ok(()) = rules.changed() => known.keys().cloned().collect(),
            else => return,
        };
        // Not marked as seen here: what was known before must hear of a new rule too.
        let rule = Arc::clone(&rules.borrow());
        let works = news.iter().filter_map(|key| known.get(key));
        let reports = works.filter_map(|work| rule(work).map(|answer| report(&client, work, answer)));
        stream::iter(reports).for_each_concurrent(AT_ONCE, |report| report).await;
    }
}

fn key(work: &ManifestWork) -> (String, String) {
    (work.namespace().unwrap_or_default(), work.name_any())
}

async fn report(client: &Client, work: &ManifestWork, answer: Result<(), String>) {
    let generation = work.metadata.generation;
    let (status, message) = match answer {
        Ok(()) => ("True", String::new()),
        Err(why) => ("False", why),
    };
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let said = |kind: &str| {
        conditions
            .iter()
            .any(|one| one.type_ == kind && one.observed_generation == generation && one.status == status)
    };
    if said("Applied") && said("Available") {
        return;
    }
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": status, "reason": "Answered", "message": message, "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let objects = resource_status(&json!(work), status == "True");
    let patch: Value = json!({"status": {
        "conditions": [condition("Applied"), condition("Available")], "resourceStatus": objects,
    }});
    let works: Api<ManifestWork> = Api::namespaced(client.clone(), &work.namespace().unwrap_or_default());
    let answered = works.patch_status(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
    if let Err(error) = answered
        && !matches!(&error, kube::Error::Api(status) if status.code == 404)
    {
        panic!("an agent could not answer: {error}");
    }
}
