//! What a pass costs, and that it grows no faster than the fleet.
//!
//! `cargo bench -p aviary-engine` prints divan's table for each shape of pass, then the ratio
//! between 20,000 and 2,000 clusters, which says more than any time on any machine: 10 is linear.
//!
//! `--pass STATE CLUSTERS` runs one pass in [`counted_pass`] and nothing else, so that callgrind
//! can count its instructions (docs/performance.md has the command).

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark talks to people, and stops when it cannot go on"
)]
#![allow(clippy::disallowed_methods, reason = "measuring time is what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use aviary_engine::observed::Observed;
use aviary_engine::plan::{Plan, plan};
use aviary_engine::simulate::agents::Profile;
use aviary_engine::simulate::{fleet, rehearse};
use aviary_engine::{normalise, observed::Lookup};
use jiff::Timestamp;
use serde_json::json;

const SIZES: [usize; 2] = [2_000, 20_000];

const SHAPES: [(&str, Shape); 3] =
    [("at rest", at_rest), ("first wave", first_wave), ("mid rollout", mid_rollout)];

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--pass").skip(1);
    if let Some(state) = arguments.next() {
        let clusters = arguments.next().and_then(|number| number.parse().ok()).expect("a number of clusters");
        let (_, shape) = SHAPES.iter().find(|(name, _)| *name == state).expect("a state");
        let plan = counted_pass(&shape(clusters));
        println!("{state}, {clusters} clusters: {} reported", plan.report.clusters.len());
        return;
    }
    divan::main();
    println!();
    for (what, shape) in SHAPES {
        let fleets = SIZES.map(shape);
        for (caches, evict) in [("cold", true), ("warm", false)] {
            let Compared { small, large, ratio, fastest } = compare(&fleets, evict);
            println!(
                "plan, {what}, {caches} caches: {small:.2?} for 2,000 clusters, {large:.2?} for 20,000: ratio {ratio:.1}, of the fastest passes {fastest:.1} (linear: 10, allowed: 12)"
            );
        }
    }
    let started = Instant::now();
    let run = rehearse(canary(10_000), &Profile::default(), begin());
    println!(
        "rehearse, canary rollout over 10,000 clusters: {:.2?} for {} of virtual time, {} passes, {} writes",
        started.elapsed(),
        aviary_engine::duration::shown(run.took),
        run.passes,
        run.writes,
    );
}

/// Not inlined: callgrind finds it by its name.
#[inline(never)]
fn counted_pass(observed: &Observed) -> Plan {
    plan(black_box(observed), begin())
}

/// Makes a fleet of this many clusters.
type Shape = fn(usize) -> Observed;

struct Compared {
    small: Duration,
    large: Duration,
    ratio: f64,
    /// The same of the fastest pass over each: what else the machine does only makes a pass longer,
    /// and a long one more often.
    fastest: f64,
}

/// The medians of passes over both fleets, which take turns, so that whatever else the machine does
/// meets both: with cold caches after every pass, with warm ones after five, of which the first
/// only warms them.
///
/// With warm caches a fleet of 2,000 still lies in the cache next to the processor from the pass
/// before and one of 20,000 does not fit there: what the larger has to fetch counts against it.
/// With cold ones neither does, as in life, where a pass comes long after the last one and other
/// work lies between. Both are told.
fn compare(fleets: &[Observed; 2], evict: bool) -> Compared {
    let mut other_work = vec![0_u8; 128 << 20];
    let mut pass = |observed: &Observed| {
        if evict {
            other_work.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&other_work);
        }
        let started = Instant::now();
        black_box(plan(black_box(observed), begin()));
        started.elapsed()
    };
    let rounds: Vec<[Duration; 2]> = if evict {
        (0..31).map(|_| fleets.each_ref().map(&mut pass)).collect()
    } else {
        let mut turn = |observed: &Observed| {
            pass(observed);
            [(); 4].map(|()| pass(observed))
        };
        let turns = (0..8).map(|_| fleets.each_ref().map(&mut turn));
        turns
            .flat_map(|[small, large]| small.into_iter().zip(large))
            .map(|(small, large)| [small, large])
            .collect()
    };
    let mut ratios: Vec<f64> =
        rounds.iter().map(|[small, large]| large.as_secs_f64() / small.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let median = |which: usize| {
        let mut taken: Vec<Duration> = rounds.iter().map(|round| round[which]).collect();
        taken.sort();
        taken[taken.len() / 2]
    };
    let fastest =
        |which: usize| rounds.iter().map(|round| round[which].as_secs_f64()).fold(f64::INFINITY, f64::min);
    Compared {
        small: median(0),
        large: median(1),
        ratio: ratios[ratios.len() / 2],
        fastest: fastest(1) / fastest(0),
    }
}

#[divan::bench(args = SIZES)]
fn plan_at_rest(bencher: divan::Bencher<'_, '_>, clusters: usize) {
    let observed = at_rest(clusters);
    bencher.bench_local(|| plan(black_box(&observed), begin()));
}

#[divan::bench(args = SIZES)]
fn plan_first_wave(bencher: divan::Bencher<'_, '_>, clusters: usize) {
    let observed = first_wave(clusters);
    bencher.bench_local(|| plan(black_box(&observed), begin()));
}

#[divan::bench(args = SIZES)]
fn plan_mid_rollout(bencher: divan::Bencher<'_, '_>, clusters: usize) {
    let observed = mid_rollout(clusters);
    bencher.bench_local(|| plan(black_box(&observed), begin()));
}

fn begin() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

/// A template add-on on a canary placement and a large one behind it, all on the revision before.
fn canary(clusters: usize) -> Observed {
    let reference = json!({ "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "name": "hub-config" });
    let entry = |name: &str, strategy: serde_json::Value| json!({ "name": name, "namespace": "default", "configs": [reference], "rolloutStrategy": strategy });
    let addon = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": { "name": "helloworld", "uid": "addon-uid", "generation": 1 },
        "spec": { "installStrategy": { "type": "Placements", "placements": [
            entry("fleet", json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": {
                "placement": { "name": "canary", "namespace": "default" }, "maxConcurrentlyUpdating": "25%" } })),
            entry("canary", json!({ "type": "RollingUpdate", "rollingUpdate": { "maxConcurrentlyUpdating": "25%" } })),
        ] } },
    });
    let template = json!({
        "metadata": { "name": "helloworld-v2", "generation": 1 },
        "spec": { "addonName": "helloworld", "version": "v2.0.0", "agentSpec": { "workload": { "manifests": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "agent", "namespace": "{{INSTALL_NAMESPACE}}" },
            "spec": { "template": { "spec": { "containers": [{ "name": "agent", "args": ["--cluster={{CLUSTER_NAME}}"] }] } } },
        }] } } },
    });
    let mut observed = Observed::default();
    let (addon, problems) = normalise::addon(&serde_json::from_value(addon).expect("an add-on"));
    assert!(problems.is_empty());
    let config = addon.strategy.placements()[0].configs[0].clone();
    observed.addon = addon;
    observed.templates.push(normalise::template(&template).1);
    let hub_config = json!({ "metadata": { "generation": 1 }, "spec": { "desiredVersion": "v2.0.0" } });
    observed.configs.insert(config, Lookup::Found(normalise::config(&hub_config)));
    fleet::populate(&mut observed, clusters, begin());
    observed
}

fn first_wave(clusters: usize) -> Observed {
    canary(clusters)
}

/// The canary has passed, half of the fleet is through.
fn mid_rollout(clusters: usize) -> Observed {
    let profile = Profile {
        latency: (Duration::ZERO, Duration::from_secs(100)),
        tick: Duration::from_secs(10),
        horizon: Duration::from_secs(350),
        ..Profile::default()
    };
    world_after(clusters, &profile)
}

fn at_rest(clusters: usize) -> Observed {
    world_after(clusters, &Profile { latency: (Duration::ZERO, Duration::ZERO), ..Profile::default() })
}

fn world_after(clusters: usize, profile: &Profile) -> Observed {
    rehearse(canary(clusters), profile, begin()).world.observed
}
