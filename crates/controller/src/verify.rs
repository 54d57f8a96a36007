//! Checking a plan against the promises before any of it is written (`--verify`).
//!
//! Owns no rule: the promises are the engine's, stated independently of its decisions. A plan that
//! would break one is not carried out.

use aviary_engine::invariants::Series;
use aviary_engine::observed::Observed;
use aviary_engine::plan::Plan;
use aviary_engine::simulate::world::World;

/// The first promise that the plan would break, if any.
///
/// Makes the writes in the plan's order, on two copies of the fleet.
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
