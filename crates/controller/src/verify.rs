//! Checks a plan against the invariants before any of it is written (`--verify`).
//!
//! Contains no rules: the invariants are in the engine, independent of its decisions. A plan that
//! violates one is not executed.

use aviary_engine::invariants::Series;
use aviary_engine::observed::Observed;
use aviary_engine::plan::Plan;
use aviary_engine::simulate::world::World;

/// The first invariant that the plan would violate, if any.
///
/// Applies the writes in the plan's order to two copies of the fleet.
pub(crate) fn broken_promise(observed: &Observed, plan: &Plan) -> Option<String> {
    let mut before = World::new(observed.clone());
    let mut after = World::new(observed.clone());
    let mut promises = Series::default();
    for write in plan.stages.iter().flat_map(|stage| &stage.writes) {
        after.commit(write);
        if let Some(violation) = promises.check(&before.observed, write, &after.observed).first() {
            return Some(format!("{violation:?}"));
        }
        before.commit(write);
    }
    None
}
