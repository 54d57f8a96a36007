//! Which plans there are, running them, and the table of what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use aviary_hub::Hub;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::fault::{Effect, FAULTS, Fault, POINTS, Plan, Point};
use crate::history::{Commit, show, trace};
use crate::line::PLANTED_PANIC;
use crate::planted::Defect;
use crate::run::{Outcome, Prepared, root};
use crate::scenario::Scenario;
use crate::{oracles, scenarios};

/// Of so many plans one is run where nothing is said.
const SOME: usize = 40;
/// How often the lease is touched, and so how often that is tried to go wrong.
const LEASES: usize = 6;
/// In CI a fault is tried at one of so many of its points in a scenario, and at no fewer than so
/// many of them.
const CI_EVERY: usize = 40;
const CI_AT_LEAST: usize = 2;
/// Failures of one scenario that are told in full.
const TOLD: usize = 5;

/// Plans that fail and are not mended, what is seen then, and why.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "cluster_moves_between_placements:decisions-torn@1",
        &["was made"],
        "between two pages a cluster is in neither, and the count is the same as before: nobody can tell that more is to come",
    ),
    ("cluster_joins_that_sorts_first:decisions-torn@1", &["was made", "rest 2: "], "the same"),
    (
        "placement_is_deleted:decisions-torn@1",
        &["was made"],
        "a placement that is made again has no count yet, and its decisions are taken as they are",
    ),
    (
        "soak:clock-swing@8",
        &["S13: "],
        "a clock that goes back after a cluster has soaked makes it soak again, but only when something happens",
    ),
    (
        "canary_grows_and_shrinks:lists-only@1",
        &["S8: default/canary", "S2: default/fleet: the canary has not passed"],
        "without watches, the change of the add-on is listed before the canary's new cluster, which came first: nobody can tell",
    ),
    ("hook_is_evicted:clock-forward@", &["was made"], HOOK_DEADLINE),
    ("hook_is_evicted:clock-swing@", &["was made"], HOOK_DEADLINE),
    ("hooks_of_a_cluster_that_is_gone:clock-forward@", &["rest 1: "], HOOK_DEADLINE),
    ("hooks_of_a_cluster_that_is_gone:clock-swing@", &["rest 1: "], HOOK_DEADLINE),
    ("hooks_run_before_an_instance_goes:namespace-removed@", &["rest "], HOOK_NAMESPACE),
    ("hook_is_evicted:namespace-removed@", &["rest "], HOOK_NAMESPACE),
    ("hooks_run_before_an_addon_goes:namespace-removed@", &["rest "], HOOK_NAMESPACE),
    ("hooks_run_before_an_addon_goes:leader-paused@", &["-pre-delete was made"], HOOK_IN_HAND),
    (
        "hooks_run_before_an_instance_goes:leader-paused@",
        &["S25: hooks run on c1, and", "-pre-delete was made"],
        HOOK_IN_HAND,
    ),
    ("hook_is_evicted:leader-paused@", &["S25: hooks run on c1, and", "-pre-delete was made"], HOOK_IN_HAND),
    (
        "overrides_are_broken_before_a_rollout:crd-removed@",
        &["rest 2: ClusterManagementAddOn", "rest 2: ControllerRevision"],
        "while the kind of the overrides is gone, their clusters are left out: the placement completes, and stays so",
    ),
    (
        "overrides_are_broken_before_a_rollout:namespace-removed@",
        &["rest 3: ManagedClusterAddOn c1/helloworld"],
        "the instance that is made again has never been healthy, so what heals it is an install and no upgrade",
    ),
];
const HOOK_DEADLINE: &str = "a clock that jumps ahead ends the time that hooks have";
const HOOK_IN_HAND: &str = "what a leader that was stopped had in hand creates hooks of an instance that is gone; the hub removes them at once";
const HOOK_NAMESPACE: &str =
    "no hook can be created in a namespace that is being deleted, so the instance waits for their deadline";

/// Faults that once broke a scenario, by what was wrong. Each is tried at every point of its
/// scenario: the number of the write or event that it was found at changes whenever the manager
/// comes to write more, or less, or in another order.
const REGRESSIONS: &[(&str, &str, &str)] = &[
    (
        "a_kind_that_the_hub_cannot_speak_of_is_not_taken_for_one_that_is_not_served",
        "canary_change",
        "read-500",
    ),
    ("an_add_on_waits_while_the_hub_does_not_answer_for_its_kinds", "canary_change", "read-hang"),
    (
        "what_was_installed_and_moves_on_in_one_write_is_upgraded",
        "cluster_joins_that_sorts_first",
        "write-500",
    ),
    // It is planned for, and has no history.
    ("an_add_on_that_comes_again_after_a_while_begins_anew", "addon_comes_again", "event-late"),
    ("nothing_is_kept_for_an_add_on_that_is_gone", "addon_is_deleted", "event-late"),
    ("deletions_that_were_acknowledged_go_on_after_a_crash", "brake", "crash-before"),
    ("a_count_of_none_is_not_taken_for_no_count", "brake", "event-late"),
    ("a_clock_that_was_ahead_holds_nothing_up", "soak", "clock-swing"),
    ("a_work_of_the_instance_before_proves_nothing", "instance_is_deleted_by_hand", "event-reset"),
    ("no_work_is_made_for_an_instance_that_is_gone", "instance_is_deleted_by_hand", "event-late"),
    ("nothing_is_completed_while_a_cluster_may_have_joined", "canary_grows_and_shrinks", "event-late"),
    ("a_work_that_is_put_right_is_no_upgrade", "work_is_tampered_with", "write-409"),
    ("an_override_is_not_healthy_before_it_is_applied", "override_during_rollout", "write-429"),
    // An add-on, an instance or a work; nor is a work made for an instance that went meanwhile.
    ("a_late_answer_brings_nothing_back_that_is_gone", "addon_comes_again_within_a_second", "answer-late"),
    ("who_waits_for_a_version_says_the_one_that_it_has", "canary_newer_during_rollout", "event-reset"),
];

/// Several faults at once by chance, until it is stopped or one fails. `AVIARY_FAULT_SEED` begins
/// where another run began, `AVIARY_FAULT_SECONDS` ends after so long.
fn soak() -> ExitCode {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let seed = number("AVIARY_FAULT_SEED").unwrap_or_else(|| fastrand::u64(..));
    let end = number("AVIARY_FAULT_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    println!("AVIARY_FAULT_SEED={seed}");
    let (ended, ends) = std::sync::mpsc::channel();
    for thread in 0..cores() as u64 {
        let ended = ended.clone();
        std::thread::spawn(move || ended.send(soak_from(seed ^ thread, end)));
    }
    drop(ended);
    let begun = Instant::now();
    let mut plans = 0;
    for end in ends {
        match end {
            Ok(done) => plans += done,
            Err(why) => {
                println!("{why}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("soak: {plans} plans of two to four faults, 0 violations, {} s", begun.elapsed().as_secs());
    ExitCode::SUCCESS
}

/// How many plans were run without a failure, or the smallest part of one that fails.
fn soak_from(seed: u64, end: Option<Instant>) -> Result<usize, String> {
    let mut chance = fastrand::Rng::with_seed(seed);
    let begun = Instant::now();
    let mut done = 0_usize;
    while end.is_none_or(|end| Instant::now() < end) {
        let mut all = scenarios::all();
        let prepared = Prepared::new(hub(), all.swap_remove(chance.usize(..all.len())))?;
        for _ in 0..50 {
            let mut plan = Plan { scenario: prepared.scenario.name.into(), faults: Vec::new() };
            for _ in 0..chance.usize(2..=4) {
                let (name, point, _) = FAULTS[chance.usize(..FAULTS.len())];
                let most = prepared.undisturbed.counts[point as usize];
                if most > 0 {
                    plan.faults.extend(Fault::named(name, chance.usize(1..=most)));
                }
            }
            if let Some(why) = judge(&plan, &prepared.run(&plan, None)) {
                return Err(smaller(&prepared, &plan).unwrap_or(why));
            }
            done += 1;
        }
        println!("{done} plans in {} s", begun.elapsed().as_secs());
    }
    Ok(done)
}

/// What fails of a plan that fails, without the faults that it does not need for that.
fn smaller(prepared: &Prepared, plan: &Plan) -> Option<String> {
    (0..plan.faults.len()).find_map(|fault| {
        let mut part = plan.clone();
        part.faults.remove(fault);
        let why = judge(&part, &prepared.run(&part, None))?;
        Some(smaller(prepared, &part).unwrap_or(why))
    })
}

/// Which scenario shows which planted defect, and what of it is seen.
const PLANTED: &[(Defect, &str, &str)] = &[
    (Defect::F1, "config_is_edited_in_place", "S3: "),
    (Defect::F2, "limit_that_cannot_be_read", "S1: "),
    (Defect::F3, "cluster_joins_that_sorts_first", "S1: "),
    (Defect::F5, "placement_is_deleted", "S6: "),
    (Defect::F6, "variables_and_node_placement", "S18: "),
    (Defect::AvailableIsHealthy, "canary_never_gets_ready", "S20: "),
    (Defect::TermRestarts, "canary_upgrade", "H3: "),
    (Defect::TakeOverRewrites, "works_of_another_manager", "S24: "),
];

#[derive(Default)]
struct Tally {
    /// How many plans each choice has.
    some: usize,
    ci: usize,
    all: usize,
    /// How many were run.
    plans: usize,
    /// Which faults struck at which kinds of write, and which could have.
    struck: BTreeSet<(&'static str, String)>,
    possible: BTreeSet<(&'static str, String)>,
    by_fault: BTreeMap<&'static str, usize>,
    not_reached: usize,
    overtaken: usize,
    failed: usize,
    time: Duration,
    writes: usize,
}

type Tallies = Arc<Mutex<BTreeMap<&'static str, Tally>>>;

pub(crate) fn hub() -> &'static Hub {
    static ROOT: OnceLock<Hub> = OnceLock::new();
    ROOT.get_or_init(root)
}

fn how_much() -> String {
    std::env::var("AVIARY_FAULTS").unwrap_or_else(|_| "some".into())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does something with each, on all cores, and gives the outcomes in their order.
fn on_all_cores<T: Sync, O: Send>(all: &[T], each: impl Fn(&T) -> O + Sync) -> Vec<O> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(index) else { return };
                    let outcome = each(one);
                    outcomes.lock().unwrap().insert(index, outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap().into_values().collect()
}

pub(crate) fn main() -> ExitCode {
    // Each test takes all cores.
    quiet_planted_panics();
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    if let Ok(plan) = std::env::var("AVIARY_FAULT") {
        return replay(&plan);
    }
    if how_much() == "soak" {
        return soak();
    }
    let tallies = Tallies::default();
    let trials = trials(&tallies);
    let begun = Instant::now();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        table(&tallies.lock().unwrap(), begun.elapsed());
    }
    conclusion.exit_code()
}

/// A planted panic is contained by the manager, and is not worth a line each time.
fn quiet_planted_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(PLANTED_PANIC) {
            report(panic);
        }
    }));
}

fn trials(tallies: &Tallies) -> Vec<Trial> {
    let mut trials = Vec::new();
    for scenario in scenarios::all() {
        let tallies = Arc::clone(tallies);
        trials.push(Trial::test(scenario.name, move || every_plan(scenario, &tallies)));
    }
    trials.push(Trial::test("two_runs_of_one_plan_are_alike_to_the_byte", alike));
    trials.push(Trial::test("ci_tries_as_many_points_as_it_says", spread));
    trials.extend(oracles::trials());
    for (what, scenario, fault) in REGRESSIONS {
        trials.push(Trial::test(*what, move || again(scenario, fault)));
    }
    for (defect, scenario, seen) in PLANTED {
        let name = format!("planted_{defect:?}_is_found");
        trials.push(Trial::test(name, move || found(*defect, scenario, seen)));
    }
    trials
}

pub(crate) fn scenario(name: &str) -> Result<Prepared, Failed> {
    let found = scenarios::all().into_iter().find(|scenario| scenario.name == name);
    let found = found.ok_or_else(|| format!("there is no scenario {name}"))?;
    Ok(Prepared::new(hub(), found)?)
}

/// How often a fault can strike where its point is passed so often.
fn most(point: Point, counts: [usize; POINTS]) -> usize {
    match point {
        Point::Always => 1,
        Point::Lease => counts[point as usize].min(LEASES),
        _ => counts[point as usize],
    }
}

/// Every plan with one fault, and with two crashes where that is asked for.
fn plans(prepared: &Prepared) -> Vec<Plan> {
    let name = prepared.scenario.name;
    let counts = prepared.undisturbed.counts;
    let mut plans = Vec::new();
    for (fault, point, _) in FAULTS {
        for at in 1..=most(*point, counts) {
            plans.push(Plan { scenario: name.into(), faults: Fault::named(fault, at).into_iter().collect() });
        }
    }
    if prepared.scenario.pairs {
        let crashes = |at| ["crash-before", "crash-after"].map(|fault| Fault::named(fault, at).unwrap());
        let writes = counts[Point::Write as usize];
        for first in 1..=writes {
            for second in first + 1..=writes {
                for (one, other) in
                    crashes(first).into_iter().flat_map(|one| crashes(second).map(|other| (one, other)))
                {
                    plans.push(Plan { scenario: name.into(), faults: vec![one, other] });
                }
            }
        }
    }
    plans
}

/// Every crash, also at every two writes; other faults at some of their points.
fn in_ci(plan: &Plan, counts: [usize; POINTS]) -> bool {
    let Fault { name, point, at, effect } = plan.faults[0];
    let most = most(point, counts);
    let wanted = most.div_ceil(CI_EVERY).max(CI_AT_LEAST);
    matches!(effect, Effect::Crash { .. }) || is_spread(at, most, wanted, offset(&plan.scenario, name))
}

/// Whether a point is one of so many that lie evenly among all; the offset says where they begin.
fn is_spread(at: usize, most: usize, wanted: usize, offset: usize) -> bool {
    wanted >= most || ((at + offset) % most * wanted) % most < wanted
}

/// Another number for every fault in every scenario, so that together they strike everywhere. It is
/// FNV-1a: the same everywhere.
fn offset(scenario: &str, fault: &str) -> usize {
    let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    scenario.bytes().chain(fault.bytes()).fold(0x811c_9dc5, mix) as usize
}

fn every_plan(scenario: Scenario, tallies: &Tallies) -> Result<(), Failed> {
    let begun = Instant::now();
    let name = scenario.name;
    let prepared = Prepared::new(hub(), scenario)?;
    if !prepared.undisturbed.broken.is_empty() {
        return Err(format!("undisturbed: {}", prepared.undisturbed.broken.join("\n")).into());
    }
    let much = how_much();
    let every = match much.as_str() {
        "all" | "ci" => 1,
        number => number.parse().unwrap_or(SOME),
    };
    let only = std::env::var("AVIARY_FAULT_KINDS").unwrap_or_default();
    let mut tally = Tally { writes: prepared.undisturbed.counts[Point::Write as usize], ..Tally::default() };
    let mut told = String::new();
    let mut all = plans(&prepared);
    all.retain(|plan| plan.faults[0].name.starts_with(&*only));
    let counts = prepared.undisturbed.counts;
    tally.some = all.len().div_ceil(SOME);
    tally.ci = all.iter().filter(|plan| in_ci(plan, counts)).count();
    tally.all = all.len();
    let written = |plan: &Plan| {
        let Fault { name, point, at, .. } = plan.faults[0];
        let kind = prepared.undisturbed.kinds.get(at - 1).filter(|_| point == Point::Write);
        kind.map(|kind| (name, kind.clone()))
    };
    tally.possible.extend(all.iter().filter_map(written));
    all.retain(|plan| much != "ci" || in_ci(plan, counts));
    let asked: Vec<&Plan> = all.iter().step_by(every).collect();
    tally.struck.extend(asked.iter().copied().filter_map(written));
    let outcomes = on_all_cores(&asked, |plan| {
        let outcome = prepared.run(plan, None);
        let why = judge(plan, &outcome);
        if let Some(why) = &why {
            // At once: a long run may be stopped before its end.
            println!("{}", why.lines().take(3).collect::<Vec<_>>().join("\n"));
        }
        (why, outcome.struck < plan.faults.len(), outcome.overtaken)
    });
    for (plan, (why, not_reached, overtaken)) in asked.into_iter().zip(outcomes) {
        tally.plans += 1;
        tally.not_reached += usize::from(not_reached);
        tally.overtaken += overtaken;
        let fault = if plan.faults.len() > 1 { "two crashes" } else { plan.faults[0].name };
        *tally.by_fault.entry(fault).or_default() += 1;
        if let Some(why) = why {
            tally.failed += 1;
            told.push_str(&if tally.failed <= TOLD { why } else { format!("  also {plan}\n") });
        }
    }
    tally.time = begun.elapsed();
    tallies.lock().unwrap().insert(name, tally);
    if told.is_empty() { Ok(()) } else { Err(told.into()) }
}

/// What is wrong with the outcome of a plan, and how to see it again.
fn judge(plan: &Plan, outcome: &Outcome) -> Option<String> {
    let name = plan.to_string();
    let is_known = |why: &String| {
        let is = |known: &str| name == known || known.ends_with('@') && name.starts_with(known);
        KNOWN.iter().any(|(known, seen, _)| is(known) && seen.iter().any(|seen| why.contains(seen)))
    };
    if outcome.broken.iter().all(is_known) {
        return None;
    }
    let broken: Vec<&str> = outcome.broken.iter().take(4).map(String::as_str).collect();
    Some(format!("\nAVIARY_FAULT='{plan}' cargo test --test faults\n  {}\n", broken.join("\n  ")))
}

fn replay(plan: &str) -> ExitCode {
    let plan: Plan = plan.parse().unwrap();
    let prepared =
        scenario(&plan.scenario).unwrap_or_else(|failed| panic!("{}", failed.message().unwrap_or_default()));
    let begun = Instant::now();
    let outcome = prepared.run(&plan, None);
    for (index, write) in outcome.wrote.iter().enumerate() {
        println!("{:4} {write}", index + 1);
    }
    for Commit { revision, key, gone, object } in &outcome.commits {
        let told = object["status"]["configReferences"].as_array().into_iter().flatten().map(|one| {
            let name = |part: &str| one[part]["name"].as_str().unwrap_or("-").to_owned();
            format!("{} after {}", name("desiredConfig"), name("lastAppliedConfig"))
        });
        let told = told.collect::<Vec<_>>().join(", ");
        println!("{revision:6} {}{} {told}", show(key), if *gone { " is gone" } else { "" });
        // The whole of objects whose key has this in it.
        if std::env::var("AVIARY_FAULT_SHOW").is_ok_and(|part| show(key).contains(&part)) {
            println!("{object:#}");
        }
    }
    println!(
        "{} requests, {} of {} faults, {:?}",
        outcome.requests,
        outcome.struck,
        plan.faults.len(),
        begun.elapsed()
    );
    println!("undisturbed: {:?} {:?}", prepared.undisturbed.counts, prepared.undisturbed.broken);
    if outcome.broken.is_empty() {
        println!("{plan}: as undisturbed");
        return ExitCode::SUCCESS;
    }
    println!("{plan}:\n  {}", outcome.broken.join("\n  "));
    ExitCode::FAILURE
}

/// Plans can be named by numbers only because of this.
fn alike() -> Result<(), Failed> {
    let found = on_all_cores(&scenarios::all(), |scenario| {
        let prepared = Prepared::new(hub(), scenario.clone())?;
        let plans = plans(&prepared);
        for plan in plans.iter().step_by(plans.len().div_ceil(9)) {
            let (one, other) = (prepared.run(plan, None), prepared.run(plan, None));
            if (trace(&one.commits), &one.wrote) != (trace(&other.commits), &other.wrote) {
                return Err(format!("{plan} went two ways"));
            }
        }
        Ok(())
    });
    Ok(found.into_iter().collect::<Result<(), String>>()?)
}

/// However many points there are, and wherever it begins.
fn spread() -> Result<(), Failed> {
    for most in 1..200 {
        for wanted in 1..=most {
            for offset in [0, 1, most - 1, offset("fresh_install", "write-500")] {
                let chosen: Vec<usize> =
                    (1..=most).filter(|at| is_spread(*at, most, wanted, offset)).collect();
                let widest = chosen.windows(2).map(|two| two[1] - two[0]).max().unwrap_or(0);
                if chosen.len() != wanted || widest > most.div_ceil(wanted) {
                    return Err(format!("{wanted} of {most} from {offset}: {chosen:?}").into());
                }
            }
        }
    }
    Ok(())
}

/// A fault at every point of a scenario that it once broke.
fn again(name: &str, fault: &str) -> Result<(), Failed> {
    let prepared = scenario(name)?;
    let mut all = plans(&prepared);
    all.retain(|plan| matches!(plan.faults.as_slice(), [only] if only.name == fault));
    if all.is_empty() {
        return Err(format!("{name} has no point for {fault}").into());
    }
    let judged = on_all_cores(&all, |plan| {
        let outcome = prepared.run(plan, None);
        (judge(plan, &outcome), outcome.struck)
    });
    if judged.iter().all(|(_, struck)| *struck == 0) {
        return Err(format!("{fault} came to pass nowhere in {name}").into());
    }
    let broken: String = judged.into_iter().filter_map(|(why, _)| why).collect();
    if broken.is_empty() { Ok(()) } else { Err(broken.into()) }
}

fn found(defect: Defect, name: &str, seen: &str) -> Result<(), Failed> {
    let prepared = scenario(name)?;
    if !prepared.undisturbed.broken.is_empty() {
        return Err(format!("broken without the defect: {:?}", prepared.undisturbed.broken).into());
    }
    let outcome = prepared.run(&Plan { scenario: name.into(), faults: Vec::new() }, Some(defect));
    if outcome.broken.iter().any(|broken| broken.contains(seen)) {
        return Ok(());
    }
    let Outcome { broken, wrote, .. } = outcome;
    Err(format!("{defect:?} in {name} should break {seen}, but: {broken:?} {wrote:#?}").into())
}

fn table(tallies: &BTreeMap<&'static str, Tally>, time: Duration) {
    if tallies.is_empty() {
        return;
    }
    println!("\n{:<34} {:>6} {:>7} {:>10} {:>8}", "scenario", "writes", "plans", "violations", "seconds");
    for (name, tally) in tallies {
        println!(
            "{name:<34} {:>6} {:>7} {:>10} {:>8.1}",
            tally.writes,
            tally.plans,
            tally.failed,
            tally.time.as_secs_f64()
        );
    }
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for tally in tallies.values() {
        for (fault, count) in &tally.by_fault {
            *faults.entry(fault).or_default() += count;
        }
    }
    println!("\n{:<34} {:>7}", "fault", "plans");
    for (fault, count) in faults {
        println!("{fault:<34} {count:>7}");
    }
    let sum = |part: fn(&Tally) -> usize| tallies.values().map(part).sum::<usize>();
    let tried = match how_much().as_str() {
        "all" => "every fault at every point".to_owned(),
        "ci" => format!(
            "every crash, the other faults at one of every {CI_EVERY} points, at least at {CI_AT_LEAST} in each scenario"
        ),
        number => format!("one of every {} plans", number.parse().unwrap_or(SOME)),
    };
    for (plan, _, why) in KNOWN {
        println!("\nknown to fail: {plan}: {why}");
    }
    let late = ["answer-overtaken", "answer-late"];
    let late = |tally: &Tally| late.iter().filter_map(|fault| tally.by_fault.get(fault)).sum::<usize>();
    println!(
        "\nlate answers: {}, of which {} came after the watch had told of their write",
        tallies.values().map(late).sum::<usize>(),
        tallies.values().map(|tally| tally.overtaken).sum::<usize>()
    );
    println!("\ntried: {tried}: {} of {} plans", sum(|tally| tally.plans), sum(|tally| tally.all));
    println!(
        "plans by choice: some {}, ci {}, all {}",
        sum(|tally| tally.some),
        sum(|tally| tally.ci),
        sum(|tally| tally.all)
    );
    let pairs = |part: fn(&Tally) -> &BTreeSet<(&'static str, String)>| {
        tallies.values().flat_map(part).collect::<BTreeSet<_>>()
    };
    let (struck, possible) = (pairs(|tally| &tally.struck), pairs(|tally| &tally.possible));
    let kinds: BTreeSet<&String> = possible.iter().map(|(_, kind)| kind).collect();
    println!(
        "{} kinds of write; {} of {} pairs of a fault and a kind of write",
        kinds.len(),
        struck.len(),
        possible.len()
    );
    println!(
        "{} scenarios, {} plans, {} violations, {} in which not every fault was reached, {:.0} s\n",
        tallies.len(),
        sum(|tally| tally.plans),
        sum(|tally| tally.failed),
        sum(|tally| tally.not_reached),
        time.as_secs_f64()
    );
}
