//! What every write must keep, and what must be so in the end: computed here from the snapshot,
//! beside the engine's own check.

use std::collections::BTreeSet;

use aviary_engine::explain::Decision;
use aviary_engine::plan::{Plan, Step, Write, plan};

use super::scene::Scene;
use super::{Instance, Kind, Rev, World};

pub type Checked = Result<(), String>;

/// What the test itself counts as in flight: told something and not there, or not well any more,
/// and not excused.
fn in_flight(world: &World, name: &str, one: &Instance, deadline: bool) -> bool {
    let placement = world.governor(name).unwrap();
    let here = world.clusters[name];
    if (deadline && !here) || world.waits_as_joined(placement, name) {
        return false;
    }
    // What its user does takes no slot.
    if one.own.is_some() && one.holds_none(world.goal(placement, name)) {
        return false;
    }
    if one.fresh() {
        // A first install of another revision than the goal is no part of the rollout.
        let part = one.told == Some(world.goal(placement, name));
        return here && part && !(one.failed() && placement.max_failures.is_some());
    }
    let tolerated = placement.max_failures.is_some() && one.failed();
    !one.settled() && !tolerated && (here || !one.broken())
}

/// S1: a settled instance is moved into flight only while fewer than the budget are in flight; one
/// that is broken where it stands only while fewer than the budget are on their way.
fn within_budget(world: &World, cluster: &str, deadline: bool) -> Checked {
    let (Some(placement), one) = (world.governor(cluster), &world.instances[cluster]) else { return Ok(()) };
    let moved = one.settled() || one.broken();
    if placement.kind == Kind::UpdateAll || one.fresh() || one.own.is_some() || !moved {
        return Ok(());
    }
    let governed = world.governed(placement);
    let counts = |(name, other): &(&String, &Instance)| {
        governed.contains(*name)
            && *name != cluster
            && in_flight(world, name, other, deadline)
            && (one.settled() || !other.broken())
    };
    let flying: Vec<&String> = world.instances.iter().filter(counts).map(|(name, _)| name).collect();
    let budget = placement.budget.of(governed.len());
    if flying.len() < budget {
        Ok(())
    } else {
        Err(format!("S1: {cluster} starts while {flying:?} are in flight, budget {budget}"))
    }
}

/// S2: no instance behind a canary gets what the canary never had, applied and healthy, all of it
/// at once; nor what the placement never completed.
fn behind_canary(world: &World, passed: &BTreeSet<(String, Rev)>, cluster: &str, told: Rev) -> Checked {
    let (Some(placement), one) = (world.governor(cluster), &world.instances[cluster]) else { return Ok(()) };
    let inside = !matches!(placement.kind, Kind::WithCanary(_)) || world.canary(placement).contains(cluster);
    if inside || one.fresh() || one.own.is_some() || placement.history.contains(&told) {
        return Ok(());
    }
    let known = passed.contains(&(placement.name.clone(), told));
    if known { Ok(()) } else { Err(format!("S2: {cluster} gets {told}, which the canary never passed")) }
}

/// Stages are in the order of their steps, a wave is reserved before it starts, and only a
/// reservation may write nothing.
fn in_order(plan: &Plan) -> Checked {
    let steps: Vec<Step> = plan.stages.iter().map(|stage| stage.step).collect();
    let idle = plan.stages.iter().find(|stage| stage.writes.is_empty() && stage.step != Step::Reserve);
    let reserved = !steps.contains(&Step::Start) || steps.contains(&Step::Reserve);
    if steps.is_sorted_by(|a, b| a < b) && idle.is_none() && reserved {
        return Ok(());
    }
    Err(format!("stages out of order: {steps:?}"))
}

/// Makes the first `most` writes of a plan, each under the engine's own check and under the two
/// above.
pub fn commit(scene: &mut Scene, plan: Plan, most: usize) -> Checked {
    in_order(&plan)?;
    let deadline = scene.specs().iter().any(|spec| spec.rollout.progress_deadline.is_some());
    let outcome = scene.outcome(&plan);
    for write in plan.writes().take(most) {
        if let Write::Instance(write) = &write
            && let Some(&told) = outcome.starts.get(write.cluster.as_str())
        {
            let (world, cluster) = (scene.read(), write.cluster.as_str());
            within_budget(&world, cluster, deadline).map_err(|why| format!("{why}\n{world}"))?;
            behind_canary(&world, &scene.passed, cluster, told).map_err(|why| format!("{why}\n{world}"))?;
        }
        scene.commit(&write).map_err(|why| format!("{why}\n{}", scene.read()))?;
    }
    Ok(())
}

pub fn whole_pass(scene: &mut Scene) -> Checked {
    let plan = scene.look();
    commit(scene, plan, usize::MAX)
}

/// Everybody has what they should have, or something named rightly keeps them from it.
pub fn at_the_end(scene: &Scene) -> Checked {
    let world = scene.read();
    let plan = plan(&scene.hub.observed, scene.now);
    let wrong = |name: &str, why: &str| Err(format!("{name} {why}\n{world}"));
    if !plan.is_at_rest() {
        return Err(format!("not at rest\n{world}"));
    }
    for name in world.clusters.keys() {
        let Some(one) = world.instances.get(name) else {
            if world.governor(name).is_some() {
                return wrong(name, "is selected and has no instance");
            }
            continue;
        };
        let report = plan.report.clusters.iter().find(|report| report.cluster.as_str() == name);
        let held = matches!(report.map(|report| &report.decision), Some(Decision::Hold(_)));
        let placement = world.governor(name);
        let desired = one.own.unwrap_or(placement.map_or(world.defaults, |placement| placement.desired));
        if one.told == Some(desired) && one.arrived() {
            continue;
        }
        let Some(placement) = placement else { return wrong(name, "follows nobody, and not the defaults") };
        let gated = matches!(placement.kind, Kind::WithCanary(_)) && !world.canary(placement).contains(name);
        let waits = gated && !world.canary_passed(placement, desired);
        let still = placement.paused || world.in_cycle(placement);
        if one.own.is_some() || !held || !(still || waits) {
            return wrong(name, "has not what is desired, and nothing rightly holds it");
        }
        let joined = world.waits_as_joined(placement, name);
        if waits && !still && !joined && placement.known_good.is_some_and(|good| !one.settled_on(good)) {
            return wrong(name, "has not settled on what is known good");
        }
    }
    Ok(())
}
