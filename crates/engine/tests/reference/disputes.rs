//! Where the engine is known to decide otherwise than the specification: such moments are left out of the comparison.
//!
//! One function per dispute. Whoever settles one deletes its function and its line here, and the tests take over.

use std::sync::Arc;

use aviary_engine::configs::Pin;
use aviary_engine::hash::Hash;
use aviary_engine::invariants::Violation;
use aviary_engine::observed::{Instance as Stored, Observed, Reference};

use super::scene::Scene;
use super::{Answer, Instance, Placement, World};

/// What is in dispute about the next decision, if anything is.
pub fn in_decision(scene: &Scene) -> Option<&'static str> {
    let world = scene.read();
    let observed = &scene.hub.observed;
    if world.instances.values().any(refused_something_else) {
        return Some("a refusal of an earlier revision is no failure of the one told now (§5.9)");
    }
    if observed.instances.values().any(|one| comes_back(one, &world.instances[one.cluster.as_str()])) {
        return Some("on the way back to what was applied before is in flight (§5.8)");
    }
    if world.placements.iter().any(|placement| misses_completion(&world, placement)) {
        return Some("what all have settled on is applied, though canary clusters go on (§5.7)");
    }
    None
}

/// What is in dispute about the engine's own check: it counts an overridden instance (§2.6), and one whose config was only renamed (§2.2),
/// as in flight.
pub fn in_check(before: &Observed, violation: &Violation) -> bool {
    let renamed = |one: &Reference| one.desired != one.applied && hash(&one.desired) == hash(&one.applied);
    let concerned =
        |one: &Arc<Stored>| !one.overrides.is_empty() || one.status.references.iter().any(renamed);
    violation.rule == "S1" && before.instances.values().any(concerned)
}

/// The work that the agent refused is not, or will not be, what the instance is told.
fn refused_something_else(one: &Instance) -> bool {
    one.answer == Answer::Refused && (one.carries != one.told || one.fresh())
}

/// It is told what was last applied, left it in between, and has not arrived again.
fn comes_back(stored: &Stored, one: &Instance) -> bool {
    let mut references = stored.status.references.iter();
    let recorded = references.all(|reference| hash(&reference.desired) == hash(&reference.applied));
    !one.fresh() && !one.arrived_once && one.answer != Answer::Healthy && (recorded || one.own.is_some())
}

/// Some of its clusters are in its canary, all have settled on what is known good, and more is desired.
fn misses_completion(world: &World, placement: &Placement) -> bool {
    let settled = world.settled_on(placement);
    let inside = !world.governed(placement).is_disjoint(&world.canary(placement));
    settled.is_some_and(|settled| settled != placement.desired) && inside && placement.applied != settled
}

fn hash(pin: &Option<Pin>) -> Option<&Hash> {
    pin.as_ref().map(|pin| &pin.hash)
}
