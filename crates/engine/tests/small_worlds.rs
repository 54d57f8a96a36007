//! Every small world: all that can happen to a few clusters, in every order, up to a number of
//! disturbances. No write breaks a promise, and from everywhere the fleet comes to its end when
//! agents answer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::reference::generate::{Event, KindSetup, PlacementSetup, Setup};
use crate::reference::promises::{at_the_end, whole_pass};
use crate::reference::scene::Scene;
use crate::reference::{Rev, Share};
use aviary_engine::observed::{Lookup, ObservedCondition, Seen};

/// A world on the way, and how often it may still be disturbed.
#[derive(Clone)]
struct State {
    scene: Scene,
    left: usize,
    /// How it came about, latest first.
    path: Option<Arc<Step>>,
}

struct Step {
    event: Event,
    passed: bool,
    before: Option<Arc<Step>>,
}

impl State {
    /// What happened, from the beginning; a pass is a dot.
    fn story(&self) -> String {
        let mut steps = Vec::new();
        let mut at = self.path.as_ref();
        while let Some(step) = at {
            steps.push(if step.passed { ".".to_owned() } else { format!("{:?}", step.event) });
            at = step.before.as_ref();
        }
        steps.reverse();
        steps.join(" ")
    }

    fn after(&self, event: &Event, disturbs: bool) -> Option<Self> {
        let left = if disturbs { self.left.checked_sub(1)? } else { self.left };
        if self.scene.is_vain(event) {
            return None;
        }
        let mut scene = self.scene.clone();
        scene.happen(event);
        forget_generations(&mut scene);
        let path = Some(Arc::new(Step { event: event.clone(), passed: false, before: self.path.clone() }));
        Some(Self { scene, left, path })
    }

    fn after_pass(&self) -> Self {
        let mut scene = self.scene.clone();
        let path = Some(Arc::new(Step { event: Event::Nothing, passed: true, before: self.path.clone() }));
        if let Err(why) = whole_pass(&mut scene) {
            panic!("{}\n{why}", self.story());
        }
        Self { scene, left: self.left, path }
    }

    /// Two among a million worlds have the same key with a chance of one in ten million.
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.left.hash(&mut hasher);
        digest(&self.scene, &mut hasher);
        hasher.finish()
    }
}

/// Counters only ever grow, and decide nothing: without them the world is finite.
fn forget_generations(scene: &mut Scene) {
    scene.hub.observed.addon.generation = 1;
    for found in scene.hub.observed.configs.values_mut() {
        if let Lookup::Found(live) = found {
            live.generation = 1;
        }
    }
    for mut instance in scene.hub.observed.instances.values_mut().filter(|instance| instance.generation != 1)
    {
        instance.generation = 1;
    }
}

/// All of a scene that a plan can depend on.
fn digest(scene: &Scene, hasher: &mut DefaultHasher) {
    let observed = &scene.hub.observed;
    let conditions = |conditions: &[ObservedCondition], hasher: &mut DefaultHasher| {
        for one in conditions {
            (&one.kind, &one.status, &one.reason, &one.message).hash(hasher);
        }
    };
    scene.memory().hash(hasher);
    for (name, cluster) in observed.clusters.iter() {
        (name, cluster.unreachable.is_some()).hash(hasher);
    }
    for (name, instance) in observed.instances.iter() {
        (name, instance.marker.is_some(), &instance.overrides).hash(hasher);
        for reference in &instance.status.references {
            let [desired, applied] = [&reference.desired, &reference.applied]
                .map(|pin| pin.as_ref().map(|pin| (&pin.config, &pin.hash)));
            (desired, applied).hash(hasher);
        }
        (&instance.status.desired_version, &instance.status.current_version, &instance.status.last_version)
            .hash(hasher);
        conditions(&instance.status.conditions, hasher);
    }
    for (name, works) in observed.works.iter() {
        for work in works.iter() {
            (name, &work.hashes, answer(&work.applied), answer(&work.available)).hash(hasher);
        }
    }
    for (name, selection) in &observed.placements {
        (name, selection.clusters().collect::<Vec<_>>()).hash(hasher);
    }
    for spec in scene.specs() {
        (&spec.configs, &spec.rollout.canary, spec.rollout.paused).hash(hasher);
    }
    for (config, found) in &observed.configs {
        if let Lookup::Found(live) = found {
            (config, &live.hash).hash(hasher);
        }
    }
    for (name, recorded) in &observed.addon.status.placements {
        name.hash(hasher);
        for revision in [&recorded.desired, &recorded.known_good, &recorded.applied] {
            revision
                .as_ref()
                .map(|revision| {
                    revision.pins().iter().map(|pin| (&pin.config, &pin.hash)).collect::<Vec<_>>()
                })
                .hash(hasher);
        }
        conditions(&recorded.conditions, hasher);
    }
    conditions(&observed.addon.status.conditions, hasher);
    for (name, completed) in &observed.revisions.completed {
        for revision in completed {
            (name, revision.pins().first().map(|pin| &pin.hash)).hash(hasher);
        }
    }
    observed.revisions.contents.keys().for_each(|hash| hash.hash(hasher));
}

fn answer(seen: &Seen) -> u8 {
    match seen {
        Seen::NotYet => 0,
        Seen::Yes => 1,
        Seen::No { .. } => 2,
    }
}

/// What may happen: agents answer freely, everything else is a disturbance.
fn events(clusters: usize, placements: usize, more: &[Event]) -> Vec<(Event, bool)> {
    let mut events: Vec<(Event, bool)> = Vec::new();
    for cluster in 0..clusters {
        events.push((Event::Ack(cluster), false));
        events.push((Event::Online(cluster), false));
        events.push((Event::Fail(cluster), true));
        events.push((Event::Unavailable(cluster), true));
        events.push((Event::Offline(cluster), true));
    }
    for revision in ['A', 'B', 'C'] {
        events.push((Event::Edit(0, revision), true));
    }
    events.extend((0..placements).map(|placement| (Event::Pause(placement), true)));
    events.extend(more.iter().map(|event| (event.clone(), true)));
    events
}

/// From here, when every cluster is back and every agent answers, the fleet comes to its end.
/// `seen` are worlds that do.
fn comes_to_its_end(from: &State, seen: &mut HashSet<u64>) {
    let mut at = State { left: 0, ..from.clone() };
    at.scene.everybody_answers();
    let mut key = at.key();
    for _ in 0..100 {
        if !seen.insert(key) {
            return;
        }
        at = at.after_pass();
        at.scene.everybody_answers();
        let before = std::mem::replace(&mut key, at.key());
        if key == before {
            if let Err(why) = at_the_end(&at.scene) {
                panic!("{}\n{why}", from.story());
            }
            return;
        }
    }
    panic!("{}\nnever comes to rest:\n{}", from.story(), at.scene.read());
}

/// Explores all worlds within the bound, and says how many there are.
fn explore(setup: &Setup, installed: bool, disturbances: usize, more: &[Event]) -> usize {
    let mut scene = Scene::new(setup);
    forget_generations(&mut scene);
    if installed {
        scene.settle().unwrap();
    }
    let events = events(setup.clusters, setup.placements.len(), more);
    let first = State { scene, left: disturbances, path: None };
    let (mut visited, mut seen) = (HashSet::from([first.key()]), HashSet::new());
    let mut open = VecDeque::from([first]);
    while let Some(state) = open.pop_front() {
        comes_to_its_end(&state, &mut seen);
        let happens = events.iter().filter_map(|(event, disturbs)| state.after(event, *disturbs));
        for next in happens.chain([state.after_pass()]) {
            if visited.insert(next.key()) {
                open.push_back(next);
            }
        }
    }
    visited.len()
}

fn placement(selects: &[usize], kind: KindSetup, budget: usize) -> PlacementSetup {
    PlacementSetup {
        selects: selects.to_vec(),
        config: 0,
        kind,
        budget: Share::Count(budget),
        max_failures: None,
    }
}

fn world(clusters: usize, placements: Vec<PlacementSetup>) -> Setup {
    Setup { clusters, templated: false, configs: ['A' as Rev; 3], placements, outside: vec![] }
}

/// Explores, and requires as many worlds as the bound is known to let through: fewer means that the
/// events have lost their meaning.
fn explored(setup: &Setup, installed: bool, disturbances: usize, more: &[Event], least: usize) {
    let worlds = explore(setup, installed, disturbances, more);
    assert!(worlds >= least, "{worlds} worlds within {disturbances} disturbances, at least {least} expected");
}

#[test]
fn no_world_of_a_rolling_update_breaks_a_promise_or_is_stuck() {
    let setup = world(3, vec![placement(&[0, 1, 2], KindSetup::Rolling, 1)]);
    explored(&setup, true, 3, &[], 10_000);
}

#[test]
fn no_world_behind_a_canary_breaks_a_promise_or_is_stuck() {
    let placements =
        vec![placement(&[0, 1, 2], KindSetup::Canary(1), 1), placement(&[0], KindSetup::Rolling, 1)];
    explored(&world(3, placements), true, 4, &[], 100_000);
}

#[test]
fn no_world_whose_canary_is_governed_by_what_it_gates_breaks_a_promise_or_is_stuck() {
    let placements =
        vec![placement(&[0], KindSetup::Rolling, 1), placement(&[0, 1, 2], KindSetup::Canary(0), 1)];
    explored(&world(3, placements), true, 3, &[], 10_000);
}

#[test]
fn no_world_of_four_clusters_in_two_placements_breaks_a_promise_or_is_stuck() {
    let placements =
        vec![placement(&[0, 1, 2, 3], KindSetup::Canary(1), 2), placement(&[0, 1], KindSetup::Rolling, 1)];
    explored(&world(4, placements), true, 3, &[], 30_000);
}

#[test]
fn no_world_that_begins_with_nothing_breaks_a_promise_or_is_stuck() {
    let placements =
        vec![placement(&[0, 1], KindSetup::Rolling, 1), placement(&[1], KindSetup::Canary(2), 1)];
    let more = [
        Event::Join(0, 2),
        Event::Join(2, 0),
        Event::Leave(0, 0),
        Event::Leave(1, 1),
        Event::Override(0, 1),
        Event::NoOverride(0),
        Event::User(2),
        Event::Edit(1, 'B'),
    ];
    explored(&world(3, placements), false, 2, &more, 10_000);
}
