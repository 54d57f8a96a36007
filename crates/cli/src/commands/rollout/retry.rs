//! `retry`: failed clusters try the same revision again.
//!
//! An agent does not retry a work that it has rejected, as long as its generation does not change.
//! So retry creates a new generation: it sets an annotation on one manifest. The manager removes
//! the annotation again, like any foreign edit, and the agent applies the work again after each
//! change. Nothing is deleted or restarted on the cluster. For a cluster that timed out, the
//! deadline starts again as well.

use std::collections::BTreeMap;

use anyhow::bail;
use aviary_api::names::conditions::REVISION_HEALTHY;
use aviary_api::{ManagedClusterAddOn, ManifestWork};
use aviary_controller::View;
use aviary_engine::explain::{Decision, Flight};
use aviary_engine::name::{ClusterName, Text};
use aviary_engine::observed::{Observed, Seen};
use aviary_engine::plan;
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::spec::{StoredAddOn, WRITER};
use super::{Outcome, RolloutSelection, Session, WriteArgs};
use crate::connect::{Connection, refused};
use crate::live::seconds;
use crate::nearest::did_you_mean;
use crate::output::{Printout, counted, first_few};

/// The annotation that creates a new generation; the manager removes it again.
const MARK: &str = "addon.open-cluster-management.io/retried-at";
/// The agent or the manager may write the object at the same time.
const ATTEMPTS: usize = 5;

const DESCRIPTION: &str = "\
Let failed clusters try the same revision again.

An agent does not retry a work that it has rejected. Retry creates a new generation of each rejected work: it sets the \
annotation addon.open-cluster-management.io/retried-at on one manifest. The manager removes it again, and the agent applies the \
work again. Nothing is deleted on the cluster, and no pod is restarted. For a cluster that exceeded its progressDeadline, \
the deadline starts again. Until its agent reports, a cluster counts as in flight and not as failed, so a halted rollout \
continues, within its budget.

Works of another manager are skipped. So are clusters whose work could not be rendered: fix the template or \
config, and they continue by themselves.";

const EXAMPLES: &str = "\
Examples:
  $ aviary rollout retry helloworld
  $ aviary rollout retry helloworld --cluster cluster-0042 --dry-run";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  addOn, dryRun
  retried[]      {cluster, works[], clock}; clock: its deadline starts again
  leftAlone[]    {cluster, why}: clusters that were skipped

Exit codes:
  0 all failed clusters try again, or none had failed; 1 some could not be retried; 2 wrong usage";

/// Let failed clusters try again
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(super) struct Args {
    #[command(flatten)]
    which: RolloutSelection,

    /// Retry only this cluster; may be given several times
    #[arg(long, value_name = "CLUSTER")]
    cluster: Vec<String>,

    #[command(flatten)]
    writing: WriteArgs,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryReport {
    version: u32,
    add_on: String,
    dry_run: bool,
    pub(crate) retried: Vec<Retried>,
    pub(crate) left_alone: Vec<LeftAlone>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Retried {
    pub(crate) cluster: String,
    works: Vec<String>,
    clock: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct LeftAlone {
    pub(crate) cluster: String,
    pub(crate) why: String,
}

/// A failed cluster, and what to do about it.
struct Failed {
    cluster: ClusterName,
    works: Vec<Text>,
    clock: bool,
    why: String,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let which = &args.which;
    let mut live = which.live.read(Some(&which.addon)).await?;
    let placement = match which.placement.as_deref() {
        None => None,
        asked => {
            let chosen = StoredAddOn::read(&live.connection, &which.addon).await?.chosen(asked)?;
            chosen.into_iter().next().map(|entry| entry.name)
        }
    };
    let asked =
        RetryRequest { addon: &which.addon, placement: placement.as_deref(), clusters: &args.cluster };
    let told = apply(&live.connection, &mut live.view, asked, args.writing, session.now).await?;
    let outcome = if told.left_alone.is_empty() { Outcome::Done } else { Outcome::NotDone };
    if !session.output.data(&told)? {
        let text = render(&told, args, &session.program);
        session.output.text(&text)?;
    }
    Ok(outcome)
}

/// Which clusters to retry.
pub(crate) struct RetryRequest<'a> {
    pub(crate) addon: &'a str,
    /// As namespace/name; all if it is absent.
    pub(crate) placement: Option<&'a str>,
    /// All failed ones if it is empty.
    pub(crate) clusters: &'a [String],
}

/// Lets the failed clusters try again.
pub(crate) async fn apply(
    connection: &Connection,
    view: &mut View,
    asked: RetryRequest<'_>,
    writing: WriteArgs,
    now: Timestamp,
) -> anyhow::Result<RetryReport> {
    let RetryRequest { addon, placement, clusters } = asked;
    let mut failed = view.observe(addon, |observed| failed(observed, placement, now)).unwrap_or_default();
    if !clusters.is_empty() {
        for asked in clusters {
            if !failed.iter().any(|one| one.cluster.as_str() == asked) {
                let known = view.observe(addon, |observed| unknown(observed, asked));
                bail!(known.flatten().unwrap_or_else(|| {
                    format!("add-on {addon} has not failed on cluster {asked}: there is nothing to retry")
                }));
            }
        }
        failed.retain(|one| clusters.iter().any(|asked| asked == one.cluster.as_str()));
    }
    let writer = RetryWriter { connection, addon, writing, now };
    let mut told = RetryReport {
        version: 1,
        add_on: addon.to_owned(),
        dry_run: writing.dry_run,
        retried: Vec::new(),
        left_alone: Vec::new(),
    };
    for one in failed {
        let cluster = one.cluster.to_string();
        if one.works.is_empty() && !one.clock {
            told.left_alone.push(LeftAlone { cluster, why: one.why });
            continue;
        }
        match writer.retry(&one).await {
            Ok(()) => told.retried.push(Retried {
                cluster,
                works: one.works.iter().map(ToString::to_string).collect(),
                clock: one.clock,
            }),
            // A failure on one cluster is an outcome: the others continue.
            Err(error) => told.left_alone.push(LeftAlone { cluster, why: format!("{error:#}") }),
        }
    }
    Ok(told)
}

/// Says that there is no such cluster, if that is so, and which one may be meant.
fn unknown(observed: &Observed, asked: &str) -> Option<String> {
    let has = |cluster: &ClusterName| cluster.as_str() == asked;
    if observed.clusters.keys().any(has) || observed.instances.keys().any(has) {
        return None;
    }
    let meant = did_you_mean(asked, observed.clusters.keys().map(ClusterName::as_str));
    Some(format!("there is no cluster {asked}{meant}"))
}

fn failed(observed: &Observed, placement: Option<&str>, now: Timestamp) -> Vec<Failed> {
    let specs = observed.addon.strategy.placements();
    let of =
        |index: Option<usize>| index.and_then(|index| specs.get(index)).map(|spec| spec.name.to_string());
    let mut found = Vec::new();
    for report in plan::plan(observed, now).report.clusters {
        if placement.is_some() && of(report.placement).as_deref() != placement {
            continue;
        }
        let Decision::InFlight(flight) = &report.decision else { continue };
        let (clock, why) = match flight {
            Flight::Failed { why } => (false, why.to_string()),
            Flight::TimedOut { .. } => (true, flight.to_string()),
            _ => continue,
        };
        let works = observed.works.get(&report.cluster).map(|works| works.as_slice()).unwrap_or_default();
        let ours = works
            .iter()
            .filter(|work| work.rendered_from.is_some() && work.hosted_on.is_none() && !work.deleting);
        let tried = ours
            .filter(|work| matches!(work.applied, Seen::No { .. }))
            .map(|work| work.name.clone())
            .collect();
        found.push(Failed { cluster: report.cluster, works: tried, clock, why });
    }
    found
}

struct RetryWriter<'a> {
    connection: &'a Connection,
    addon: &'a str,
    writing: WriteArgs,
    now: Timestamp,
}

impl RetryWriter<'_> {
    async fn retry(&self, failed: &Failed) -> anyhow::Result<()> {
        for work in &failed.works {
            self.touch(failed.cluster.as_str(), work).await?;
        }
        if failed.clock {
            self.wind_up(failed.cluster.as_str()).await?;
        }
        Ok(())
    }

    fn params(&self) -> PatchParams {
        PatchParams {
            dry_run: self.writing.dry_run,
            field_manager: Some(WRITER.to_owned()),
            ..PatchParams::default()
        }
    }

    /// Creates a new generation of a work.
    async fn touch(&self, cluster: &str, work: &str) -> anyhow::Result<()> {
        let api: Api<DynamicObject> = Api::namespaced_with(
            self.connection.client.clone(),
            cluster,
            &ApiResource::erase::<ManifestWork>(&()),
        );
        let doing = format!("change manifestworks.work.open-cluster-management.io {cluster}/{work}");
        let failed = |error: &kube::Error| refused(&doing, error, &self.connection.server);
        for attempt in 1.. {
            let object = serde_json::to_value(api.get(work).await.map_err(|error| failed(&error))?)?;
            let Some(manifests) = marked(&object, self.now) else {
                bail!("{cluster}/{work} has no manifest to annotate");
            };
            let patch =
                json!({"metadata": identity(&object), "spec": {"workload": {"manifests": manifests}}});
            match api.patch(work, &self.params(), &Patch::Merge(patch)).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    /// Removes the condition that holds the start time of the revision, so that the manager starts
    /// the deadline again.
    async fn wind_up(&self, cluster: &str) -> anyhow::Result<()> {
        let resource = ApiResource::erase::<ManagedClusterAddOn>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.connection.client.clone(), cluster, &resource);
        let doing = format!(
            "change the status of managedclusteraddons.addon.open-cluster-management.io {cluster}/{}",
            self.addon
        );
        let failed = |error: &kube::Error| refused(&doing, error, &self.connection.server);
        for attempt in 1.. {
            let object = serde_json::to_value(api.get(self.addon).await.map_err(|error| failed(&error))?)?;
            let mut conditions =
                object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
            conditions
                .retain(|condition| condition.get("type").and_then(Value::as_str) != Some(REVISION_HEALTHY));
            let patch = json!({"metadata": identity(&object), "status": {"conditions": conditions}});
            match api.patch_status(self.addon, &self.params(), &Patch::Merge(patch)).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }
}

/// The UID and resource version of the object as it was read.
fn identity(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    json!({"uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion")})
}

/// The manifests of a work, with the annotation on the first.
fn marked(work: &Value, now: Timestamp) -> Option<Value> {
    let mut manifests = work.pointer("/spec/workload/manifests")?.clone();
    let metadata = manifests.get_mut(0)?.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations.as_object_mut()?.insert(MARK.to_owned(), json!(seconds(now).to_string()));
    Some(manifests)
}

fn render(told: &RetryReport, args: &Args, program: &str) -> Printout {
    let mut text = Printout::default();
    let mark = args.writing.mark();
    if told.retried.is_empty() && told.left_alone.is_empty() {
        text.line(format_args!("No cluster of {} has failed: there is nothing to retry", told.add_on));
    }
    if !told.retried.is_empty() {
        let clusters: Vec<&str> = told.retried.iter().map(|one| one.cluster.as_str()).collect();
        let tries = if clusters.len() == 1 { "tries" } else { "try" };
        text.line(format_args!(
            "{} {tries} again{mark}: {}",
            counted(clusters.len(), "cluster"),
            first_few(&clusters)
        ));
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &told.left_alone {
        reasons.entry(&one.why).or_default().push(&one.cluster);
    }
    for (why, clusters) in reasons {
        text.line(format_args!("skipped: {}: {why}", first_few(&clusters)));
    }
    let hub = args.which.live.typed();
    let clusters: String = args.cluster.iter().map(|cluster| format!(" --cluster {cluster}")).collect();
    text.line(match told.dry_run {
        true if told.retried.is_empty() => {
            format!("Nothing was written. Next: {program} status {}{hub}", told.add_on)
        }
        true => {
            format!("Nothing was written. Next: {program} rollout retry {}{clusters}", args.which.typed())
        }
        false => format!("Next: {program} status {} -w{hub}", told.add_on),
    });
    text
}
