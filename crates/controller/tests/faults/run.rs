//! Running a plan: the world of its scenario with its faults, and what the oracles say of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use aviary_hub::Hub;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::agents::Rule;
use crate::fault::{Effect, Misdeed, POINTS, Plan, Point};
use crate::hand::{Hand, router};
use crate::history::{self, Commit, Key, Lives, Objects, lives, normal, show};
use crate::leadership::differs_only_in_odd_term;
use crate::loss::LOST_NAMESPACE;
use crate::planted::{Defect, Planted};
use crate::promises::Promises;
use crate::scenario::{Scenario, Step};
use crate::trouble::{Trouble, Wrote};
use crate::world::{NAMESPACE, World};

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    // Waits between retries are drawn by chance.
    fastrand::seed(7);
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn begin() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A hub with our kinds, which all scenarios begin with.
pub(crate) fn root() -> Hub {
    runtime().block_on(async {
        let hub = Hub::ephemeral(Default::default()).await.unwrap();
        let hand = Hand::new(router(&hub));
        for crd in aviary_api::crds::all() {
            hand.put(&serde_json::to_value(crd).unwrap()).await;
        }
        hand.put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await;
        hub
    })
}

/// A scenario whose beginning has been made, and what comes of it when nothing goes wrong.
pub(crate) struct Prepared {
    pub(crate) scenario: Scenario,
    hub: Hub,
    pub(crate) at: Timestamp,
    rule: Rule,
    pub(crate) objects: Objects,
    pub(crate) undisturbed: Outcome,
    /// The same where what is done at once is done one by one.
    one_by_one: Vec<Outcome>,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The state at each rest.
    pub(crate) states: Vec<BTreeMap<Key, Arc<Value>>>,
    pub(crate) lives: Lives,
    pub(crate) broken: Vec<String>,
    pub(crate) counts: [usize; POINTS],
    pub(crate) requests: usize,
    /// How many of its faults came to pass.
    pub(crate) struck: usize,
    /// How many late answers came after the watch had told of their writes.
    pub(crate) overtaken: usize,
    pub(crate) wrote: Vec<Wrote>,
    /// Revisions that users wrote, from and to.
    pub(crate) users: Vec<(u64, u64)>,
    /// The kind of each write, in the order in which they were asked for.
    pub(crate) kinds: Vec<String>,
    /// Writes after a start, before anything has happened.
    pub(crate) unasked: usize,
    pub(crate) commits: Vec<Commit>,
}

/// Of the kinds.
const ADDONS: usize = 0;
const HUB_CONFIGS: usize = 7;

fn last_rule(steps: &[Step], before: Rule) -> Rule {
    let mut rules = steps.iter().filter_map(|step| match step {
        Step::Agents(rule) => Some(*rule),
        _ => None,
    });
    rules.next_back().unwrap_or(before)
}

impl Prepared {
    pub(crate) fn new(root: &Hub, scenario: Scenario) -> Result<Self, String> {
        let given = scenario.given.clone();
        let (hub, at, objects) = runtime().block_on(async {
            let mut world = World::fork(root, begin(), Trouble::default(), Rule::Well, 1, None).await;
            world.slow = scenario.slow;
            world.start_manager(None);
            world.take(&given).await?;
            world.take(&[Step::Rest]).await?;
            world.stop().await;
            let objects = history::objects(&world.hand).await;
            Ok::<_, String>((world.hub.clone(), world.now(), objects))
        })?;
        let at = at.checked_add(jiff::SignedDuration::from_mins(5)).unwrap();
        let rule = last_rule(&given, Rule::Well);
        let undisturbed = Outcome::default();
        let mut prepared = Self { scenario, hub, at, rule, objects, undisturbed, one_by_one: Vec::new() };
        let nothing = Plan { scenario: String::new(), faults: Vec::new() };
        prepared.undisturbed = prepared.carry_out(&prepared.scenario.when, &nothing, None);
        let each = prepared.scenario.one_by_one();
        prepared.one_by_one = each.iter().map(|steps| prepared.carry_out(steps, &nothing, None)).collect();
        match prepared.one_by_one.iter().find(|outcome| !outcome.broken.is_empty()) {
            Some(outcome) => Err(format!("undisturbed, one by one: {}", outcome.broken.join("\n"))),
            None => Ok(prepared),
        }
    }

    /// Runs a plan, and adds to what its outcome says is broken where it differs from the
    /// undisturbed run.
    pub(crate) fn run(&self, plan: &Plan, defect: Option<Defect>) -> Outcome {
        let mut outcome = self.carry_out(&self.scenario.when, plan, defect);
        let mut broken = self.compare(&self.undisturbed, plan, &outcome, false);
        // Who hears of changes one after the other ends as if they had been made so. In which of
        // many orders it has heard of them is its past: an upgrade to what was not there yet may
        // have failed in between.
        let news = [Point::Event, Point::Read, Point::Page, Point::Always];
        if plan.faults.iter().any(|fault| news.contains(&fault.point))
            && self.one_by_one.iter().any(|wanted| self.compare(wanted, plan, &outcome, true).is_empty())
        {
            broken.clear();
        }
        outcome.broken.extend(broken);
        outcome
    }

    fn carry_out(&self, steps: &[Step], plan: &Plan, defect: Option<Defect>) -> Outcome {
        let trouble = Trouble::new(&plan.faults);
        let (world, ended, commits) = runtime().block_on(async {
            let planted = defect.map(Planted::new);
            let mut world =
                World::fork(&self.hub, self.at, trouble.clone(), self.rule, 1 << 40, planted).await;
            let since = world.hub.revision();
            world.slow = self.scenario.slow;
            world.start_manager(None);
            let mut ended = if self.scenario.cold { Ok(()) } else { world.take(&[Step::Rest]).await };
            if ended.is_ok() {
                ended = world.take(steps).await;
            }
            world.kill();
            let commits = history::read(&world.hand, since).await;
            (world, ended, commits)
        });
        let wrote = trouble.take_writes();
        let rested = world.marks.first().filter(|_| !self.scenario.cold).map_or(0, |mark| mark.revision);
        let (overtaken, missed) = trouble.overtaken();
        let mut outcome = Outcome {
            counts: trouble.counts(),
            struck: trouble.struck(),
            overtaken,
            requests: trouble.requests(),
            kinds: trouble.take_kinds(),
            lives: lives(&self.objects, &commits),
            broken: ended.err().into_iter().chain(missed).collect(),
            unasked: wrote.iter().filter(|one| one.from < one.to && one.to <= rested).count(),
            ..Outcome::default()
        };
        let mut promises = Promises::new(&self.objects, &wrote, &world.users);
        let all = commits;
        let mut commits = all.iter().peekable();
        let mut normalised: BTreeMap<Key, (u64, Arc<Value>)> = BTreeMap::new();
        for mark in &world.marks {
            while let Some(commit) = commits.next_if(|commit| commit.revision <= mark.revision) {
                promises.follow(commit);
            }
            promises.at_rest(mark.at);
            outcome.states.push(state(promises.objects(), &mut normalised));
        }
        commits.for_each(|commit| promises.follow(commit));
        // That a cluster loses its namespace or its instance while the manager writes that it has
        // settled, as a canary or not, nobody can know.
        let lost =
            self.scenario.hasty || plan.faults.iter().any(|fault| fault.effect == Effect::RemoveNamespace);
        let unknowable = |why: &String| why.contains("S8: ") || why.contains("the canary has not passed");
        promises.broken.retain(|why| !(lost && unknowable(why)));
        outcome.broken.append(&mut promises.broken);
        outcome.commits = all;
        outcome.wrote = wrote;
        outcome.users = world.users;
        outcome
    }

    /// The two oracles: the same states at rest, and the same lives of all objects.
    pub(crate) fn compare(
        &self,
        wanted: &Outcome,
        plan: &Plan,
        outcome: &Outcome,
        past_differs: bool,
    ) -> Vec<String> {
        let mut broken = Vec::new();
        let has = |effect| plan.faults.iter().any(|fault| fault.effect == effect);
        let (lost, removed) = (has(Effect::RemoveNamespace), has(Effect::RemoveCrd));
        // Where a cluster cannot take a revision, the others may never get it.
        let refused = has(Effect::Misdeed(Misdeed::Refuse));
        // A cluster may never have been healthy with what it got first.
        let unproved = [
            Misdeed::FeedbackFlaps,
            Misdeed::FeedbackOld,
            Misdeed::FeedbackMissing,
            Misdeed::FeedbackOther,
            Misdeed::FeedbackOddType,
            Misdeed::FeedbackBehind,
            Misdeed::FeedbackLate,
        ];
        let unproved = unproved.into_iter().any(|misdeed| has(Effect::Misdeed(misdeed)));
        // An instance that begins anew, or was never healthy, may be on its way when its user makes
        // its override again.
        let in_doubt = unproved || lost;
        // What was without its config, or was made anew, has another past: it may speak of
        // installing where the other speaks of upgrading. So may an instance whose agent reported
        // on another generation until its next revision was assigned: that one is the first that
        // was ever healthy there.
        let late_proof =
            [Misdeed::Old, Misdeed::Future].into_iter().any(|misdeed| has(Effect::Misdeed(misdeed)));
        let blurred =
            past_differs || lost || removed || refused || unproved || late_proof || has(Effect::HideKinds);
        // A cluster that begins anew is not where it was in the middle, only at the end, if its
        // agent says so then.
        let ends_well = last_rule(&self.scenario.when, self.rule) == Rule::Well;
        let last = wanted.states.len().saturating_sub(1);
        for (index, (is, should)) in outcome.states.iter().zip(&wanted.states).enumerate() {
            if lost && !(index == last && ends_well) {
                continue;
            }
            // With a strategy of that kind it is for users to make again what went.
            let manual = lost && is_manual(should);
            for key in is.keys().chain(should.keys()).collect::<std::collections::BTreeSet<_>>() {
                if refused && key.1 == NAMESPACE || manual && key.1 == LOST_NAMESPACE {
                    continue;
                }
                let (is, should) = (is.get(key), should.get(key));
                // An instance less is counted, as S13 checks.
                if manual && key.0 == ADDONS && counts_aside(is) == counts_aside(should) {
                    continue;
                }
                // It stays until the next wave, and the add-on says so.
                let copied = has(Effect::CopyTerm { crash: false }) && key.0 == ADDONS;
                if copied
                    && let (Some(is), Some(should)) = (is, should)
                    && differs_only_in_odd_term(is, should)
                {
                    continue;
                }
                if is != should
                    && !(blurred && past_aside(key, is, in_doubt) == past_aside(key, should, in_doubt))
                {
                    broken.push(format!("rest {index}: {} {}", show(key), difference(is, should)));
                }
            }
            if !broken.is_empty() {
                break;
            }
        }
        let keys = outcome.lives.keys().chain(wanted.lives.keys()).collect::<std::collections::BTreeSet<_>>();
        // Of a namespace that goes everything is made anew, and content that nobody can name is not
        // kept.
        let aside =
            |key: &Key| lost && key.1 == LOST_NAMESPACE || (lost || removed || refused) && key.1 == NAMESPACE;
        for key in keys.into_iter().filter(|key| !aside(key)) {
            let life = |lives: &Lives| lives.get(key).copied().unwrap_or_default();
            let (is, should) = (life(&outcome.lives), life(&wanted.lives));
            let less = is.0 <= should.0 && is.1 <= should.1 && should.0 - is.0 == should.1 - is.1;
            if is != should && !(less && self.scenario.hasty) {
                broken.push(format!(
                    "{} was made {} times and taken away {} times, undisturbed {} and {}",
                    show(key),
                    is.0,
                    is.1,
                    should.0,
                    should.1
                ));
            }
        }
        if outcome.unasked > 0 {
            broken.push(format!("S10: {} writes after a restart", outcome.unasked));
        }
        let restless = plan.faults.iter().any(|fault| fault.point == Point::Always);
        if !restless && outcome.requests > 20 * wanted.requests + 500 {
            broken.push(format!("{} requests, undisturbed {}", outcome.requests, wanted.requests));
        }
        broken
    }
}

fn state(objects: &Objects, normalised: &mut BTreeMap<Key, (u64, Arc<Value>)>) -> BTreeMap<Key, Arc<Value>> {
    let revision = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let all = objects.iter().map(|(key, object)| {
        let revision: u64 = revision(object);
        let known = normalised.get(key).filter(|(of, _)| *of == revision).map(|(_, value)| Arc::clone(value));
        let value = known.unwrap_or_else(|| {
            let value = Arc::new(normal(object));
            normalised.insert(key.clone(), (revision, Arc::clone(&value)));
            value
        });
        (key.clone(), value)
    });
    all.collect()
}

fn is_manual(state: &BTreeMap<Key, Arc<Value>>) -> bool {
    let mut addons = state.iter().filter(|(key, _)| key.0 == ADDONS);
    addons.any(|(_, addon)| addon["spec"]["installStrategy"]["type"] == "Manual")
}

/// An add-on without what its status counts.
fn counts_aside(addon: Option<&Arc<Value>>) -> Option<Value> {
    let mut addon = Value::clone(addon?);
    if let Some(status) = addon.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("rollout");
        for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            condition.as_object_mut()?.remove("message");
        }
    }
    Some(addon)
}

/// An object without what tells of its past; also without the doubt about an override, where there
/// may be one.
fn past_aside(key: &Key, object: Option<&Arc<Value>>, in_doubt: bool) -> Option<Value> {
    let mut object = Value::clone(object?);
    if key.0 == HUB_CONFIGS {
        // Only a config that is referenced is told anew what it offers.
        object.as_object_mut()?.remove("status");
    } else if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastVersion");
        if key.0 == ADDONS {
            // They speak of the placement that has the most to tell.
            status.remove("conditions");
            status.remove("attempts");
        }
    }
    let mut text = object.to_string().replace("Install", "Upgrade").replace("install ", "upgrade ");
    if in_doubt {
        text = text.replace("; its override was in doubt", "");
    }
    Some(text.parse().unwrap())
}

/// The parts in which two values differ.
fn difference(is: Option<&Arc<Value>>, should: Option<&Arc<Value>>) -> String {
    let (is, should) = match (is, should) {
        (Some(is), Some(should)) => (is, should),
        (Some(_), None) => return "is there, undisturbed it is not".into(),
        _ => return "is not there, undisturbed it is".into(),
    };
    let mut parts = Vec::new();
    differ("", is, should, &mut parts);
    parts.truncate(6);
    parts.join("; ")
}

fn differ(path: &str, is: &Value, should: &Value, parts: &mut Vec<String>) {
    match (is, should) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<std::collections::BTreeSet<_>>() {
                let part = |of: &serde_json::Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                differ(&format!("{path}/{key}"), &part(a), &part(b), parts);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}/{index}"), a, b, parts);
            }
        }
        (a, b) if a != b => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            parts.push(format!("{path} is {}, undisturbed {}", short(a), short(b)));
        }
        _ => {}
    }
}
