//! What holds in every fleet, whatever happens to it: the budget, the canary's gate, rest in the
//! end, the way back, and a reason for everybody who waits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use crate::reference::Share;
use crate::reference::generate::{self, Event, KindSetup, PlacementSetup, Setup};
use crate::reference::promises::{Checked, at_the_end, commit, whole_pass};
use crate::reference::scene::Scene;
use aviary_engine::explain::Decision;
use aviary_engine::invariants::{Series, check};
use aviary_engine::name::Text;
use aviary_engine::observed::{InstallRule, Observed, Pace, Seen};
use aviary_engine::plan::plan;
use aviary_engine::reason::Reason;
use aviary_engine::shared::{Pool, Shared, Texts};
use aviary_engine::simulate::world::World;
use jiff::SignedDuration;
use proptest::prelude::*;

fn live(
    setup: &Setup,
    events: &[Event],
    mut each: impl FnMut(&mut Scene, usize) -> Checked,
) -> Result<Scene, String> {
    let mut scene = Scene::new(setup);
    let start = [Event::Nothing, Event::Nothing, Event::AckAll];
    for (step, event) in start.iter().chain(events).enumerate() {
        scene.happen(event);
        each(&mut scene, step).map_err(|why| format!("after step {step}, {event:?}: {why}"))?;
    }
    Ok(scene)
}

/// The same snapshot, with every list whose order means nothing turned round.
fn turned_round(observed: &Observed) -> Observed {
    let mut turned = observed.clone();
    turned.templates.reverse();
    for mut works in turned.works.values_mut() {
        works.reverse();
    }
    for selection in turned.placements.values_mut() {
        selection.groups.iter_mut().for_each(|group| group.clusters.reverse());
    }
    if let Some(supported) = &mut turned.addon.supported {
        supported.reverse();
    }
    turned
}

/// The same snapshot, in which no two clusters share a value: nothing can be known of one from
/// another.
fn alone(observed: &Observed) -> Observed {
    let mut alone = observed.clone();
    let own = |text: &mut Text| *text = (**text).into();
    for mut instance in alone.instances.values_mut() {
        instance.status = Shared::new((*instance.status).clone());
        own(&mut instance.uid);
        own(&mut instance.install_namespace);
        instance.owner.iter_mut().for_each(own);
    }
    for mut works in alone.works.values_mut() {
        for work in works.iter_mut() {
            work.state = Shared::new((*work.state).clone());
            work.hashes = work.hashes.as_ref().map(|hashes| Shared::new((**hashes).clone()));
            work.owner.iter_mut().for_each(own);
        }
    }
    alone
}

/// The same snapshot, in which every two equal values are one.
fn pooled(observed: &Observed) -> Observed {
    let mut pooled = observed.clone();
    let (mut statuses, mut states, mut hashes) = (Pool::default(), Pool::default(), Pool::default());
    let mut texts = Texts::default();
    texts.share(&mut pooled.addon.uid);
    for mut instance in pooled.instances.values_mut() {
        instance.status = statuses.share(instance.status.clone());
        texts.share(&mut instance.uid);
        texts.share(&mut instance.install_namespace);
        instance.owner.iter_mut().for_each(|owner| texts.share(owner));
    }
    for mut works in pooled.works.values_mut() {
        for work in works.iter_mut() {
            work.state = states.share(work.state.clone());
            work.hashes = work.hashes.take().map(|found| hashes.share(found));
            work.owner.iter_mut().for_each(|owner| texts.share(owner));
        }
    }
    pooled
}

/// A second work beside each first one, not answered yet.
fn with_more_works(observed: &Observed) -> Observed {
    let mut more = observed.clone();
    for mut works in more.works.values_mut() {
        if let Some(mut second) = works.first().cloned() {
            second.name = "addon-helloworld-deploy-9".into();
            second.uid = "second".into();
            second.available = Seen::NotYet;
            works.push(second);
        }
    }
    more
}

fn same(one: &Observed, other: &Observed, scene: &Scene) -> Checked {
    let (one, other) = (plan(one, scene.now), plan(other, scene.now));
    let (one, other) = (format!("{one:?}"), format!("{other:?}"));
    let Some(at) = one.bytes().zip(other.bytes()).position(|(a, b)| a != b) else { return Ok(()) };
    let around = |text: &str| text.chars().skip(at.saturating_sub(120)).take(240).collect::<String>();
    Err(format!("\n{}\n{}\n{}", around(&one), around(&other), scene.read()))
}

/// Writes that know no budget and no gate, judged one by one and as a series: both must say the
/// same.
fn judged_alike(scene: &Scene) -> Checked {
    let mut lawless = scene.hub.observed.clone();
    if let InstallRule::Placements(specs) = &mut lawless.addon.strategy {
        for spec in specs.iter_mut() {
            spec.rollout.pace = Pace::AllAtOnce;
            spec.rollout.canary = None;
        }
    }
    let mut after = World::new(scene.hub.observed.clone());
    let mut series = Series::default();
    for write in plan(&lawless, scene.now).writes() {
        let before = after.observed.clone();
        after.commit(&write);
        let (alone, together) =
            (check(&before, &write, &after.observed), series.check(&before, &write, &after.observed));
        if alone != together {
            return Err(format!("{write:?}: alone {alone:?}, in a series {together:?}\n{}", scene.read()));
        }
    }
    Ok(())
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

fn tell(checked: Checked) -> Result<(), TestCaseError> {
    checked.map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn the_budget_and_the_gate_hold_in_every_write(setup in generate::setup(), events in generate::events(40)) {
        tell(live(&setup, &events, |scene, _| whole_pass(scene)).map(drop))?;
    }

    #[test]
    fn when_faults_stop_everything_reaches_what_is_desired_and_rests(setup in generate::setup(), events in generate::events(30)) {
        let mut scene = live(&setup, &events, |scene, _| whole_pass(scene)).map_err(TestCaseError::fail)?;
        tell(scene.settle())?;
        tell(at_the_end(&scene))?;
        scene.now = scene.now.checked_add(SignedDuration::from_hours(24)).unwrap();
        tell(at_the_end(&scene))?;
    }

    #[test]
    fn a_crash_after_any_write_breaks_nothing_and_stops_nothing(
        setup in generate::setup(), events in generate::events(30), cuts in prop::collection::vec(0usize..12, 33),
    ) {
        let lived = live(&setup, &events, |scene, step| {
            let plan = scene.look();
            commit(scene, plan, cuts[step])
        });
        let mut scene = lived.map_err(TestCaseError::fail)?;
        tell(scene.settle())?;
        tell(at_the_end(&scene))?;
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn a_plan_depends_on_no_order_and_is_the_same_twice(setup in generate::setup(), events in generate::events(25)) {
        tell(live(&setup, &events, |scene, _| {
            let observed = &scene.hub.observed;
            same(observed, observed, scene).map_err(|why| format!("twice: {why}"))?;
            same(observed, &turned_round(observed), scene)?;
            let more = with_more_works(observed);
            same(&more, &turned_round(&more), scene)?;
            whole_pass(scene)
        }).map(drop))?;
    }

    #[test]
    fn what_clusters_share_changes_no_decision(setup in generate::setup(), events in generate::events(25)) {
        tell(live(&setup, &events, |scene, _| {
            let observed = &scene.hub.observed;
            same(&alone(observed), &pooled(observed), scene)?;
            let more = with_more_works(observed);
            same(&alone(&more), &pooled(&more), scene)?;
            whole_pass(scene)
        }).map(drop))?;
    }

    #[test]
    fn every_cluster_has_exactly_one_reason(setup in generate::setup(), events in generate::events(25)) {
        tell(live(&setup, &events, |scene, _| {
            let plan = scene.look();
            let world = scene.read();
            for name in world.clusters.keys() {
                let reports: Vec<_> = plan.report.clusters.iter().filter(|one| one.cluster.as_str() == name).collect();
                let concerned = world.instances.contains_key(name) || world.governor(name).is_some();
                if reports.len() != usize::from(concerned) {
                    return Err(format!("{name} has {} reasons\n{world}", reports.len()));
                }
                let settled = world.instances.get(name).is_some_and(|one| {
                    world.governor(name).is_none_or(|placement| one.settled_on(placement.desired))
                });
                if let [report] = reports.as_slice() && !settled && report.decision == Decision::Settled {
                    return Err(format!("{name} counts as settled\n{world}"));
                }
            }
            whole_pass(scene)
        }).map(drop))?;
    }

    #[test]
    fn a_clock_that_jumps_breaks_neither_budget_nor_gate(
        setup in generate::setup(), events in generate::events(30), jumps in prop::collection::vec(-24i64..=24, 33),
        soak in 0u64..48, deadline in prop::option::of(1u64..48),
    ) {
        let hours = |hours: u64| std::time::Duration::from_secs(hours * 3600);
        tell(live(&setup, &events, |scene, step| {
            scene.now = scene.now.checked_add(SignedDuration::from_hours(jumps[step])).unwrap();
            for spec in scene.specs_mut() {
                spec.rollout.min_success_time = hours(soak);
                spec.rollout.progress_deadline = deadline.map(hours);
                // What a deadline may excuse is excused by tolerance only, and that is not what is
                // tried here.
                spec.rollout.max_failures = spec.rollout.max_failures.filter(|_| deadline.is_none());
            }
            whole_pass(scene)
        }).map(drop))?;
    }
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn from_every_state_there_is_a_way_back_to_what_was_completed(setup in generate::setup(), events in generate::events(25)) {
        tell(live(&setup, &events, |scene, _| {
            whole_pass(scene)?;
            let world = scene.read();
            // A cycle of canaries is a fault of the strategy itself: nothing moves until it is
            // mended.
            for (number, placement) in world.placements.iter().enumerate().filter(|(_, one)| !world.in_cycle(one)) {
                for revision in placement.history.iter().filter(|revision| **revision != placement.desired) {
                    let mut back = scene.clone();
                    back.happen(&Event::Edit(1, *revision));
                    back.happen(&Event::Switch(number, 1));
                    back.specs_mut()[number].rollout.paused = false;
                    back.settle()?;
                    let world = back.read();
                    let settled = |name: &String| world.instances.get(name).is_some_and(|one| one.settled_on(*revision));
                    if !world.governed(&world.placements[number]).iter().all(settled) {
                        return Err(format!("{} does not come back to {revision} from\n{}but is\n{world}", placement.name, scene.read()));
                    }
                }
            }
            Ok(())
        }).map(drop))?;
    }

    /// A canary that refers to itself, or placements that are each other's canary, are a named
    /// problem, and nothing moves.
    #[test]
    fn a_cycle_of_canaries_moves_nothing_that_is_installed(setup in generate::setup(), events in generate::events(25)) {
        tell(live(&setup, &events, |scene, _| {
            whole_pass(scene)?;
            let mut round = scene.clone();
            let names: Vec<_> = round.specs().iter().map(|spec| spec.name.clone()).collect();
            for (number, spec) in round.specs_mut().iter_mut().enumerate() {
                spec.rollout.canary = Some(names[(number + 1) % names.len()].clone());
            }
            let world = round.read();
            let plan = round.look();
            for (name, told) in round.outcome(&plan).starts {
                let one = &world.instances[&name];
                if let Some(placement) = world.governor(&name) && one.own.is_none()
                    && !(one.fresh() && placement.known_good == Some(told))
                {
                    return Err(format!("{name} moves\n{world}"));
                }
            }
            let named = plan.report.problems.iter().any(|problem| problem.code() == Reason::CanaryCycle);
            if named { Ok(()) } else { Err(format!("nothing says why\n{world}")) }
        }).map(drop))?;
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_series_of_writes_is_judged_like_each_alone(setup in generate::setup(), events in generate::events(20)) {
        tell(live(&setup, &events, |scene, _| judged_alike(scene).and_then(|()| whole_pass(scene))).map(drop))?;
    }
}

/// Found by `a_crash_after_any_write_breaks_nothing_and_stops_nothing`.
#[test]
fn a_cluster_that_was_told_twice_before_anything_was_applied_keeps_to_the_budget() {
    let place = |selects: &[usize], config, kind| PlacementSetup {
        selects: selects.to_vec(),
        config,
        kind,
        budget: Share::Count(1),
        max_failures: None,
    };
    let setup = Setup {
        clusters: 6,
        templated: true,
        configs: ['A', 'A', 'B'],
        placements: vec![
            place(&[4, 5], 0, KindSetup::All),
            place(&[1, 2, 3], 1, KindSetup::Rolling),
            place(&[], 0, KindSetup::All),
        ],
        outside: Vec::new(),
    };
    let mut events = vec![Event::Join(0, 0); 2];
    events.push(Event::Switch(0, 2));
    events.extend(vec![Event::Join(0, 0); 2]);
    events.extend([Event::Kind(0, KindSetup::All), Event::Offline(2)]);
    events.extend(vec![Event::Join(0, 0); 3]);
    events.push(Event::Render(0));
    events.push(Event::Join(0, 0));
    events.extend([
        Event::Override(2, 0),
        Event::Budget(0, Share::Count(1)),
        Event::Offline(0),
        Event::Budget(2, Share::Count(1)),
        Event::SwitchAll(2),
        Event::NoOverride(0),
        Event::SwitchAll(0),
        Event::AckAll,
    ]);
    let cuts = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 7, 1, 4, 4, 4, 1];
    let lived = live(&setup, &events, |scene, step| {
        let plan = scene.look();
        commit(scene, plan, cuts.get(step).copied().unwrap_or_default())
    });
    let mut scene = lived.unwrap();
    scene.settle().unwrap();
    at_the_end(&scene).unwrap();
}

/// Found by `make soak`. The cluster has C, is on its way back to B and then to A, which the canary
/// has not passed: it goes on to B, not to C, which the rollback has withdrawn.
#[test]
fn a_canary_that_is_added_in_a_rollback_hands_out_nothing_that_was_withdrawn() {
    let only = PlacementSetup {
        selects: vec![0],
        config: 0,
        kind: KindSetup::Rolling,
        budget: Share::Count(1),
        max_failures: None,
    };
    let setup = Setup {
        clusters: 4,
        templated: false,
        configs: ['B', 'A', 'A'],
        placements: vec![only],
        outside: Vec::new(),
    };
    let events = [
        Event::Edit(0, 'C'),
        Event::AckAll,
        Event::Join(0, 0),
        Event::Edit(0, 'B'),
        Event::Switch(0, 1),
        Event::Kind(0, KindSetup::Canary(1)),
    ];
    let scene = live(&setup, &events, |scene, _| whole_pass(scene)).unwrap();
    let world = scene.read();
    assert_eq!(
        (world.placements[0].known_good, world.instances["c1"].told),
        (Some('B'), Some('B')),
        "{world}"
    );
    // Wherever the manager dies in any of these passes, and whatever it has missed by then.
    for first in 0..6 {
        for second in 0..6 {
            let lived = live(&setup, &events, |scene, step| {
                let plan = scene.look();
                let most = match step {
                    6 => first,
                    7 => second,
                    _ => usize::MAX,
                };
                commit(scene, plan, most)
            });
            let mut scene = lived.map_err(|why| format!("{first}, {second}: {why}")).unwrap();
            let told_c = scene.read().instances["c1"].told == Some('C');
            // Until the rollback is on record, nobody has left C.
            assert!(!told_c || first < 3, "{first}, {second}: {}", scene.read());
            scene.settle().unwrap();
            at_the_end(&scene).unwrap();
        }
    }
}
