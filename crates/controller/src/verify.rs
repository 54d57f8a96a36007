//! Checking a plan against the promises before any of it is written (`--verify`).
//!
//! Owns no rule: the promises are the engine's, stated apart from its decisions. A plan that would break one is not carried out.

use aviary_engine::invariants::Series;
use aviary_engine::observed::Observed;
use aviary_engine::plan::plan;
use aviary_engine::simulate::world::World;
use jiff::Timestamp;

/// The first promise that the plan would break, if any.
///
/// Costs a second plan and two copies of the fleet.
pub(crate) fn broken_promise(observed: &Observed, now: Timestamp) -> Option<String> {
    let mut before = World::new(observed.clone());
    let mut after = World::new(observed.clone());
    let mut promises = Series::default();
    for write in plan(observed, now).writes() {
        after.commit(&write);
        if let Some(violation) = promises.check(&before.observed, &write, &after.observed).first() {
            return Some(format!("{violation:?}"));
        }
        before.commit(&write);
    }
    None
}
