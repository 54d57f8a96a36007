//! `aviary demo`: the story of one add-on on a simulated fleet, told in virtual time by the code that would run it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aviary_engine::name::{ClusterName, PlacementName};
use aviary_engine::observed::{DecisionGroup, Observed, Selection};
use aviary_engine::simulate::agents::Profile;
use aviary_engine::simulate::{self, Rehearsal, fleet};
use jiff::{SignedDuration, Timestamp};

use super::rehearse::report::RehearsalReport;
use super::rehearse::text;
use super::{Outcome, Session};
use crate::kinds::Kinds;
use crate::output::Style;
use crate::{checks, documents, snapshot};

const DESCRIPTION: &str = "\
Tell the story of one add-on on a simulated fleet: a fresh install, a canary upgrade, a bad version that the canary catches, \
and the way back. Every decision is made by the code that would make it on a hub. It all happens in memory and in virtual \
time: nothing is started, nothing is written.";

const EXAMPLES: &str = "\
Examples:
  Watch a canary catch a bad version
    $ aviary demo

  The same on a larger fleet
    $ aviary demo --clusters 5000

Exit codes: 0 the story went as it should, 1 it did not, 2 wrong usage.";

const ADDON: &str = include_str!("../../../../examples/canary/addon.yaml");
const CONFIGS: &str = include_str!("../../../../examples/canary/configs.yaml");
const TEMPLATES: &str = include_str!("../../../../examples/canary/templates.yaml");

/// Tell the story of one add-on on a simulated fleet, in memory
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How many clusters there are; one in five is a canary
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(5..=20_000))]
    clusters: u32,

    /// Which of all possible fleets
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// One act: what is wanted, what the clusters make of it, and what must come of it.
struct Act {
    title: &'static str,
    /// The AddOnHubConfig that both placements name.
    config: &'static str,
    fail: f64,
    /// Everybody has it in the end; otherwise only the canary has ever seen it.
    everybody: bool,
}

const STORY: [Act; 4] = [
    Act { title: "v0.10.0 is installed everywhere", config: "hub-config-xxx", fail: 0.0, everybody: true },
    Act {
        title: "v0.11.0 goes to the canary, then to the fleet",
        config: "hub-config-yyy",
        fail: 0.0,
        everybody: true,
    },
    Act {
        title: "v0.12.0 is bad: it stops in the canary",
        config: "hub-config-zzz",
        fail: 1.0,
        everybody: false,
    },
    Act {
        title: "back to v0.11.0, which touches only what had moved",
        config: "hub-config-yyy",
        fail: 0.0,
        everybody: true,
    },
];

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let kinds = Kinds::new()?;
    let mut before: Option<Observed> = None;
    let mut now = Timestamp::UNIX_EPOCH;
    let mut outcome = Outcome::Done;
    for (number, act) in STORY.iter().enumerate() {
        let mut observed = stage(act, args.clusters as usize, &kinds)?;
        if let Some(before) = before.take() {
            carry_on(&mut observed, before);
        }
        let profile = Profile { seed: args.seed, fail: act.fail, ..Profile::default() };
        let clusters = observed.clusters.len();
        let run = simulate::rehearse(observed, &profile, now);
        let paint = session.output.paint;
        session
            .output
            .text(&format!("{}\n", paint.paint(Style::Cyan, &format!("{}. {}", number + 1, act.title))))?;
        if let Err(why) = went_well(act, &run) {
            outcome = Outcome::NotDone;
            session.output.complaint(&format!("act {}: {why}", number + 1));
        }
        now = now.checked_add(SignedDuration::try_from(run.took + Duration::from_secs(60))?)?;
        before = Some(run.world.observed.clone());
        let mut report = RehearsalReport::new(&profile, 1);
        report.add("helloworld".to_owned(), clusters, vec![run]);
        session.output.text(&text::render(&report, paint))?;
    }
    let program = &session.program;
    let next = format!("Nothing was written. Next: {program} rehearse --help # with your own files\n");
    session.output.text(&next)?;
    Ok(outcome)
}

/// The files of the example with what the act wants, on a fleet of so many clusters.
fn stage(act: &Act, clusters: usize, kinds: &Kinds) -> anyhow::Result<Observed> {
    // v0.12.0 is v0.11.0 under another name: what makes it bad is the clusters.
    let newer = |text: &str| text.replace("hub-config-yyy", "hub-config-zzz").replace("v0.11.0", "v0.12.0");
    let addon = ADDON.replace("hub-config-yyy", act.config);
    let only_newer = |text: &str| {
        let documents = text.split("\n---\n").filter(|document| document.contains("v0.11.0"));
        documents.map(newer).collect::<Vec<_>>().join("\n---\n")
    };
    let files = [addon, CONFIGS.to_owned(), TEMPLATES.to_owned(), only_newer(CONFIGS), only_newer(TEMPLATES)];
    let text = files.join("\n---\n");
    let read = documents::read(&[PathBuf::from("-")], &mut text.as_bytes());
    let checked = checks::check(read.documents, kinds)?;
    if let Some(fault) = read.faults.iter().chain(&checked.errors()).next() {
        return Err(anyhow!("the built-in example is wrong: {fault}"));
    }
    let snapshot = snapshot::build(&checked.documents, &[], kinds);
    let addon = snapshot.addons.into_iter().next().context("the built-in example has no add-on")?;
    let mut observed = addon.observed;
    observed.placements.clear();
    let canaries = clusters / 5;
    for (name, prefix, count) in
        [("aws-placement", "aws", clusters - canaries), ("canary-placement", "canary", canaries)]
    {
        let width = count.to_string().len();
        let names =
            (1..=count).filter_map(|number| ClusterName::parse(&format!("{prefix}-{number:0width$}")).ok());
        let groups = vec![DecisionGroup { name: "".into(), clusters: names.collect() }];
        let selection = Selection { groups, ..Selection::default() };
        observed.placements.insert(PlacementName::new("default", name), selection);
    }
    fleet::assume_clusters(&mut observed);
    Ok(observed)
}

/// Everything that was there at the end of the act before is there at the beginning of this one.
fn carry_on(observed: &mut Observed, before: Observed) {
    observed.instances = before.instances;
    observed.works = before.works;
    observed.revisions = before.revisions;
    observed.addon.status = before.addon.status;
    observed.addon.uid = before.addon.uid;
}

fn went_well(act: &Act, run: &Rehearsal) -> Result<(), String> {
    if act.everybody {
        return match run.unsettled.first() {
            None => Ok(()),
            Some((cluster, decision)) => Err(format!("{cluster} did not settle: {decision}")),
        };
    }
    let outside = run.starts.iter().find(|start| !start.cluster.as_str().starts_with("canary-"));
    match (outside, run.unsettled.is_empty()) {
        (Some(start), _) => Err(format!("{} got it, which is outside the canary", start.cluster)),
        (None, true) => Err("it did not stop".to_owned()),
        (None, false) => Ok(()),
    }
}
