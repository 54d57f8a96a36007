//! The engine and a second, independent model of the rollout rules decide the same, in random
//! fleets, after every event.

use crate::reference::generate::{self, Event, Setup};
use crate::reference::scene::Scene;
use crate::reference::{Placement, World};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Every governed instance follows its user: what the placement has settled on cannot be told.
fn all_overridden(world: &World, placement: &Placement) -> bool {
    let own = |name: &String| world.instances.get(name).is_some_and(|one| one.own.is_some());
    world.governed(placement).iter().all(own)
}

fn agree(setup: &Setup, events: &[Event]) -> Result<(), TestCaseError> {
    let mut scene = Scene::new(setup);
    // Enough passes to begin with for everybody to have an instance that has been told something.
    let start = [Event::Nothing, Event::Nothing, Event::Nothing];
    for (step, event) in start.iter().chain(events).enumerate() {
        scene.happen(event);
        let plan = scene.look();
        let world = scene.read();
        let (mut expected, mut decided) = (world.pass(), scene.outcome(&plan));
        for placement in world.placements.iter().filter(|placement| all_overridden(&world, placement)) {
            expected.progress.remove(&placement.name);
            decided.progress.remove(&placement.name);
        }
        if expected != decided {
            let message =
                format!("after step {step}, {event:?}\n{world}expected {expected:?}\ndecided  {decided:?}");
            return Err(TestCaseError::fail(message));
        }
        for write in plan.writes() {
            scene.commit(&write).map_err(TestCaseError::fail)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, max_shrink_iters: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_and_the_reference_decide_the_same(setup in generate::setup(), events in generate::events(40)) {
        agree(&setup, &events)?;
    }
}
