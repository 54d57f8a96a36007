//! The work agents of all clusters: well-behaved, or as the rule of the scenario and the faults of
//! the plan say.

use std::collections::BTreeMap;
use std::time::Duration;

use aviary_testing::resource_status;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::fault::{Effect, Misdeed, Point};
use crate::hand::{Hand, KINDS};
use crate::trouble::Trouble;

/// Which agents answer, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// All is well everywhere.
    Well,
    /// Of these clusters all is well; the others say nothing new.
    Only(&'static [&'static str]),
    /// These cannot apply what they are given; of the others all is well.
    Failing(&'static [&'static str]),
    /// The objects exist on these, and their pods are not ready; of the others all is well.
    Unready(&'static [&'static str]),
    /// On these the first attempt of every pre-delete hook is evicted; the second and everything
    /// else is well.
    Evicting(&'static [&'static str]),
}

/// What an agent says of a work.
#[derive(Clone, Debug, PartialEq)]
struct Report {
    applied: bool,
    available: bool,
    generation: i64,
    /// `resourceStatus`: what it reports about the objects.
    objects: Value,
}

pub(crate) struct Agents {
    rule: watch::Sender<Rule>,
    task: JoinHandle<()>,
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Agents {
    pub(crate) async fn start(hand: Hand, trouble: Trouble, rule: Rule, revision: u64) -> Self {
        let (sender, rules) = watch::channel(rule);
        let (works, misdeeds, evicted) = Default::default();
        let mut crew = Crew { hand, trouble, works, misdeeds, evicted };
        for work in crew.hand.list(&KINDS[2]).await {
            crew.works.insert(key(&work), work);
        }
        Self { rule: sender, task: tokio::spawn(crew.run(rules, revision)) }
    }

    pub(crate) fn follow(&self, rule: Rule) {
        self.rule.send_replace(rule);
    }
}

type Key = (String, String);

fn key(work: &Value) -> Key {
    let text = |part: &str| work["metadata"][part].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

struct Crew {
    hand: Hand,
    trouble: Trouble,
    works: BTreeMap<Key, Value>,
    misdeeds: BTreeMap<Key, (Misdeed, Instant)>,
    /// The first work of hooks on each cluster, by uid.
    evicted: BTreeMap<Key, Value>,
}

impl Crew {
    async fn run(mut self, mut rules: watch::Receiver<Rule>, revision: u64) {
        let mut events = Box::pin(self.hand.watch(&KINDS[2], revision, 1_000_000).await);
        loop {
            let next =
                self.misdeeds.values().filter_map(|(misdeed, begun)| next_turn(*misdeed, *begun)).min();
            let keys: Vec<Key> = tokio::select! {
                biased;
                Ok(()) = rules.changed() => self.works.keys().cloned().collect(),
                event = events.next() => {
                    let Some(mut event) = event else { return };
                    let work = event["object"].take();
                    let key = key(&work);
                    if event["type"] == "DELETED" {
                        self.works.remove(&key);
                        continue;
                    }
                    self.works.insert(key.clone(), work);
                    vec![key]
                }
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    self.misdeeds.keys().cloned().collect()
                }
            };
            let rule = *rules.borrow();
            for key in keys {
                self.look_at(rule, &key).await;
            }
        }
    }

    async fn look_at(&mut self, rule: Rule, key: &Key) {
        let Some(work) = self.works.get(key) else { return };
        let generation = work["metadata"]["generation"].as_i64().unwrap_or(0);
        let before = said(work);
        let now = |applied: bool, healthy: bool| Report {
            applied,
            available: applied,
            generation,
            objects: resource_status(work, healthy),
        };
        let within = |clusters: &[&str]| clusters.contains(&&*key.0);
        let uid = &work["metadata"]["uid"];
        let evicts = |clusters: &[&str]| within(clusters) && key.1.ends_with("-pre-delete");
        let mut is_first = || self.evicted.entry(key.clone()).or_insert_with(|| uid.clone()) == uid;
        let wanted = match rule {
            Rule::Only(clusters) if !within(clusters) => return,
            Rule::Failing(clusters) if within(clusters) => now(false, false),
            Rule::Unready(clusters) if within(clusters) => now(true, false),
            Rule::Evicting(clusters) if evicts(clusters) && is_first() => {
                Report { objects: evicted(resource_status(work, false)), ..now(true, false) }
            }
            _ => now(true, true),
        };
        if !self.misdeeds.contains_key(key) {
            if before.as_ref() == Some(&wanted) {
                return;
            }
            if let Some(Effect::Misdeed(misdeed)) = self.trouble.pass(Point::Answer) {
                self.misdeeds.insert(key.clone(), (misdeed, Instant::now()));
                self.trouble.busy_for(lasts(misdeed) + Duration::from_secs(5));
            }
        }
        let report = match self.misdeeds.get(key) {
            Some((misdeed, begun)) => misreport(*misdeed, begun.elapsed(), wanted, before.as_ref(), work),
            None => Some(wanted),
        };
        if let Some(report) = report.filter(|report| before.as_ref() != Some(report)) {
            let condition = |kind: &str, is: bool| {
                json!({
                    "type": kind, "status": if is { "True" } else { "False" }, "reason": "Reported",
                    "message": if is { "" } else { "no space left" }, "observedGeneration": report.generation,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            };
            let conditions = [condition("Applied", report.applied), condition("Available", report.available)];
            let path = format!(
                "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks/{}/status",
                key.0, key.1
            );
            let status = json!({"conditions": conditions, "resourceStatus": report.objects});
            self.hand.patch(&path, &json!({"status": status})).await;
        }
        let over = |(misdeed, begun): &(Misdeed, Instant)| begun.elapsed() >= lasts(*misdeed);
        if self.misdeeds.get(key).is_some_and(over) {
            self.misdeeds.remove(key);
        }
    }
}

fn said(work: &Value) -> Option<Report> {
    let find = |kind: &str| {
        let conditions = work["status"]["conditions"].as_array()?;
        let one = conditions.iter().find(|one| one["type"] == kind)?;
        Some((one["status"] == "True", one["observedGeneration"].as_i64()?))
    };
    let ((applied, generation), (available, _)) = (find("Applied")?, find("Available")?);
    Some(Report { applied, available, generation, objects: work["status"]["resourceStatus"].clone() })
}

fn lasts(misdeed: Misdeed) -> Duration {
    let is_long = matches!(misdeed, Misdeed::Silent | Misdeed::FeedbackLate);
    Duration::from_secs(if is_long { 100 } else { 20 })
}

const UNWELL: Duration = Duration::from_secs(2);

/// When a misdeed has something new to say.
fn next_turn(misdeed: Misdeed, begun: Instant) -> Option<Instant> {
    let turns = match misdeed {
        Misdeed::Flap | Misdeed::FeedbackFlaps => vec![UNWELL, lasts(misdeed)],
        _ => vec![lasts(misdeed)],
    };
    turns.into_iter().map(|turn| begun + turn).find(|turn| *turn > Instant::now())
}

fn misreport(
    misdeed: Misdeed,
    since: Duration,
    right: Report,
    before: Option<&Report>,
    work: &Value,
) -> Option<Report> {
    if since >= lasts(misdeed) {
        return Some(right);
    }
    let generation = right.generation;
    let well = Report { applied: true, available: true, ..right.clone() };
    Some(match misdeed {
        Misdeed::Future => Report { generation: generation + 7, ..well },
        Misdeed::Old => Report { generation: generation - 1, ..well },
        Misdeed::Flap if since < UNWELL => right,
        Misdeed::Flap => Report { available: false, ..right },
        Misdeed::Silent => return None,
        Misdeed::Refuse => Report { applied: false, available: false, ..right },
        Misdeed::FeedbackFlaps if since < UNWELL => right,
        Misdeed::FeedbackFlaps => Report { objects: resource_status(work, false), ..right },
        // OCM's agent does so in most changes: its status loop runs before its apply loop.
        Misdeed::FeedbackOld => {
            let objects = before.map_or(Value::Null, |before| before.objects.clone());
            Report { objects, ..right }
        }
        Misdeed::FeedbackMissing | Misdeed::FeedbackLate => Report { objects: Value::Null, ..right },
        Misdeed::FeedbackOther => Report {
            objects: bent(&right.objects, "aviary-digest", "string", &json!("of-another.revision")),
            ..right
        },
        Misdeed::FeedbackBehind => {
            Report { objects: bent(&right.objects, "aviary-observed", "integer", &json!(0)), ..right }
        }
        Misdeed::FeedbackOddType => {
            Report { objects: bent(&right.objects, "aviary-available", "type", &json!("JsonRaw")), ..right }
        }
    })
}

/// What is reported of hooks whose pods were evicted: their Jobs have failed.
fn evicted(mut objects: Value) -> Value {
    for one in objects["manifests"].as_array_mut().into_iter().flatten() {
        one["statusFeedback"]["values"] =
            json!([{"name": "aviary-hook-failed", "fieldValue": {"type": "String", "string": "True"}}]);
    }
    objects
}

/// The same, but for a part of the value of this name.
fn bent(objects: &Value, name: &str, part: &str, with: &Value) -> Value {
    let mut objects = objects.clone();
    let manifests = objects["manifests"].as_array_mut().into_iter().flatten();
    for values in manifests.filter_map(|one| one["statusFeedback"]["values"].as_array_mut()) {
        for value in values.iter_mut().filter(|value| value["name"] == name) {
            value["fieldValue"][part] = with.clone();
        }
    }
    objects
}
