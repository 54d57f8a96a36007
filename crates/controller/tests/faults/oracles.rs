//! The oracles themselves: each finds what is wrong with a run that was falsified after it went
//! well.

use std::sync::Arc;

use aviary_controller::LEASE;
use aviary_hub::Hub;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::fault::Plan;
use crate::hand::{Hand, router};
use crate::leadership::{broken, copy_term, remove_lease};
use crate::objects::{addon, place, update_all};
use crate::plans::{hub, scenario};
use crate::promises::Promises;
use crate::run::{Outcome, Prepared, runtime};
use crate::trouble::Wrote;
use crate::world::NAMESPACE;

/// A rollout with several starts, one after the other.
const SCENARIO: &str = "canary_upgrade";
const ADDONS: usize = 0;
const WORKS: usize = 2;

type Check = fn(&Prepared) -> Result<(), Failed>;

pub(crate) fn trials() -> Vec<Trial> {
    let all: [(&str, Check); 4] = [
        ("s10_finds_writes_after_a_restart", s10),
        ("s11_finds_what_is_missing_left_behind_or_made_twice", s11),
        ("s12_finds_a_start_by_an_earlier_leader", s12),
        ("s13_finds_a_status_that_is_not_computed", s13),
    ];
    let all = all.map(|(name, test)| Trial::test(name, move || test(&scenario(SCENARIO)?)));
    let terms = Trial::test("h3_finds_a_term_that_does_not_go_on_above_what_was_seen", || {
        let root = hub();
        runtime().block_on(h3(root))
    });
    all.into_iter().chain([terms]).collect()
}

/// What is found when the outcome is falsified like that.
fn compared(prepared: &Prepared, falsify: impl FnOnce(&mut Outcome)) -> Vec<String> {
    let mut outcome = prepared.undisturbed.clone();
    falsify(&mut outcome);
    let plan = Plan { scenario: SCENARIO.into(), faults: Vec::new() };
    prepared.compare(&prepared.undisturbed, &plan, &outcome, false)
}

fn must_find(found: &[String], wanted: &str) -> Result<(), Failed> {
    match found.iter().any(|why| why.contains(wanted)) {
        true => Ok(()),
        false => Err(format!("{wanted:?} is not found, but: {found:?}").into()),
    }
}

fn must_find_nothing(found: &[String]) -> Result<(), Failed> {
    if found.is_empty() { Ok(()) } else { Err(format!("found without reason: {found:?}").into()) }
}

fn s10(prepared: &Prepared) -> Result<(), Failed> {
    must_find_nothing(&compared(prepared, |_| {}))?;
    must_find(&compared(prepared, |outcome| outcome.unasked = 1), "S10: 1 writes after a restart")
}

fn s11(prepared: &Prepared) -> Result<(), Failed> {
    let missing = compared(prepared, |outcome| {
        outcome.states.last_mut().unwrap().retain(|key, _| key.0 != WORKS);
    });
    must_find(&missing, "is not there, undisturbed it is")?;
    let left = compared(prepared, |outcome| {
        let state = outcome.states.last_mut().unwrap();
        state.insert((WORKS, "c9".into(), "left".into()), Arc::new(json!({})));
    });
    must_find(&left, "is there, undisturbed it is not")?;
    let twice = compared(prepared, |outcome| {
        outcome.lives.insert((WORKS, "c1".into(), "twice".into()), (2, 1));
    });
    must_find(&twice, "was made 2 times and taken away 1 times, undisturbed 0 and 0")
}

/// Manager 1 makes the first writes, and manager 0 the others.
fn s12(prepared: &Prepared) -> Result<(), Failed> {
    let Outcome { wrote, users, commits, .. } = &prepared.undisturbed;
    let broken = |split: usize| {
        let by =
            |(index, wrote): (usize, &Wrote)| Wrote { manager: usize::from(index < split), ..wrote.clone() };
        let wrote: Vec<Wrote> = wrote.iter().enumerate().map(by).collect();
        let mut promises = Promises::new(&prepared.objects, &wrote, users);
        commits.iter().for_each(|commit| promises.follow(commit));
        promises.broken
    };
    must_find_nothing(&broken(0))?;
    must_find_nothing(&broken(wrote.len()))?;
    let all: Vec<String> = (1..wrote.len()).flat_map(broken).collect();
    must_find(&all, "S12: manager 0 starts c")
}

fn s13(prepared: &Prepared) -> Result<(), Failed> {
    let mut objects = prepared.objects.clone();
    let broken = |objects: &_| {
        let mut promises = Promises::new(objects, &[], &[]);
        promises.at_rest(prepared.at);
        promises.broken
    };
    must_find_nothing(&broken(&objects))?;
    for (_, addon) in objects.iter_mut().filter(|(key, _)| key.0 == ADDONS) {
        Arc::make_mut(addon)["status"]["conditions"][0]["message"] = json!("all is well");
    }
    must_find(&broken(&objects), "S13: helloworld is at rest, and there is something to write")
}

fn lease(transitions: u64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": {"leaseTransitions": transitions},
    })
}

async fn h3(root: &Hub) -> Result<(), Failed> {
    let hub = root.fork(aviary_hub::HubOptions::default()).await?;
    let hand = Hand::new(router(&hub));
    hand.put(&lease(7)).await;
    hand.put(&addon(&[place("fleet", "one", update_all())])).await;
    let seen = [remove_lease(&hand, 0).await];
    for (transitions, leader, is_broken) in [(0, 0, true), (7, 0, true), (8, 0, false), (0, 1, false)] {
        hand.put(&lease(transitions)).await;
        let found = broken(&hand, Some(leader), &seen).await;
        if found.is_some() != is_broken {
            return Err(format!("{transitions} transitions, manager {leader} leads: {found:?}").into());
        }
    }
    hand.put(&lease(7)).await;
    let copied = [copy_term(&hand).await];
    must_find(&Vec::from_iter(broken(&hand, Some(1), &copied).await), "not above 1008")?;
    hand.put(&lease(1008)).await;
    must_find_nothing(&Vec::from_iter(broken(&hand, Some(1), &copied).await))?;
    hand.put(&lease(7)).await;
    hand.delete(&addon(&[])).await;
    must_find_nothing(&Vec::from_iter(broken(&hand, Some(1), &copied).await))
}
