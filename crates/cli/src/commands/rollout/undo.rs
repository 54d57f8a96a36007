//! `undo`: rolls a placement back to a revision that it has completed before.
//!
//! A revision is a set of configs with their contents. A rollback is therefore one of two things:
//! reference the earlier configs again, or, if an object was edited in place, restore its earlier
//! content. The first changes only the add-on's placement. The second changes an object that others
//! may use as well, so it needs an explicit option. Before anything is written, the engine checks
//! that the result is exactly the desired revision.

mod entry;

use std::collections::BTreeSet;

use anyhow::{anyhow, bail};
use aviary_api::ClusterManagementAddOn;
use aviary_controller::{CompletedRevision, View};
use aviary_engine::configs::{ConfigRef, GroupResource, Pin, Revision};
use aviary_engine::fleet::Fleet;
use aviary_engine::observed::Observed;
use aviary_engine::{hash, normalise, plan};
use kube::api::{Api, ListParams, PostParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::authors;
use super::spec::{PlacementEntry, StoredAddOn, WRITER};
use super::{Outcome, RolloutSelection, Session, WriteArgs};
use crate::connect::{Connection, refused};
use crate::live::told;
use crate::objects;
use crate::output::Printout;
use entry::ChangedReference;

const DESCRIPTION: &str = "\
Roll back each placement to the revision that it completed before the current one, or to the revision with the number that \
aviary rollout history shows.

A canary never delays a rollback. A rollback replaces the rollout in progress at once, stays within the budget, and changes only \
clusters that had been updated.

The rollback restores the references to configs in the add-on's placements. If a config itself was edited since, \
referencing it again would not restore its content: the command reports that and writes nothing. With --restore-configs it also \
restores the content of such a config, which the manager has stored, or recreates the config if it was deleted. This affects everything \
that uses the config; the command lists those users. Every write is conditional on the object being unchanged since it was read.";

const EXAMPLES: &str = "\
Examples:
  What would a rollback write?
    $ aviary rollout undo helloworld --dry-run

  Roll back, and wait until it is done
    $ aviary rollout undo helloworld && aviary status helloworld -w

  Roll back one placement to a specific revision
    $ aviary rollout undo helloworld --placement default/fleet --to-revision 3";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; later versions may add fields, but never change or remove one
  addOn, dryRun
  placements[]   {placement, number, from, to, references[]}; references[]: {kind, from, to};
                 from or to is absent if there is none
  restored[]     {config, usedBy[]}: configs whose earlier content is restored
  warning        why the rollback may not last; absent if nothing hints at that

Exit codes:
  0 success; 1 nothing was written: there is nothing to roll back to, or a config was edited
  in place and --restore-configs was not given; 2 wrong usage";

/// Roll back to a revision that was completed before
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(super) struct Args {
    #[command(flatten)]
    which: RolloutSelection,

    /// Number of the revision; if the add-on has several placements, select one with --placement
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    to_revision: Option<i64>,

    /// Restore the content of configs that were edited or deleted since
    #[arg(long)]
    restore_configs: bool,

    #[command(flatten)]
    writing: WriteArgs,
}

impl Args {
    /// The command as the user would type it again, without a dry run.
    fn typed(&self, restore_configs: bool) -> String {
        let revision = self.to_revision.map(|number| format!(" --to-revision {number}"));
        let restore = if restore_configs { " --restore-configs" } else { "" };
        let RolloutSelection { addon, .. } = &self.which;
        format!("rollout undo {addon}{}{restore}{}", revision.unwrap_or_default(), self.which.options())
    }
}

/// The rollback that was made, or would be made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Undone {
    version: u32,
    add_on: String,
    dry_run: bool,
    pub(in crate::commands) placements: Vec<UndonePlacement>,
    pub(in crate::commands) restored: Vec<Restored>,
    /// Why the rollback may not last, such as a GitOps tool that restores its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) warning: Option<String>,
}

#[derive(Debug, Serialize)]
pub(in crate::commands) struct UndonePlacement {
    pub(in crate::commands) placement: String,
    pub(in crate::commands) number: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) from: Option<String>,
    pub(in crate::commands) to: String,
    /// It was rolled back from: going there again is an upgrade.
    #[serde(skip)]
    pub(in crate::commands) forward: bool,
    references: Vec<ChangedReference>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Restored {
    config: String,
    used_by: Vec<String>,
}

/// What to roll back to.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct UndoRequest<'a> {
    pub(in crate::commands) addon: &'a str,
    pub(in crate::commands) placement: Option<&'a str>,
    pub(in crate::commands) to_revision: Option<i64>,
    pub(in crate::commands) restore_configs: bool,
    /// The command that also restores configs.
    pub(in crate::commands) with_configs: &'a str,
}

/// A placement, and the revision that it rolls back to.
struct Back {
    entry: PlacementEntry,
    kept: CompletedRevision,
    /// Its current desired revision.
    from: Option<Revision>,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let which = &args.which;
    let mut live = which.live.read(Some(&which.addon)).await?;
    let addon = &which.addon;
    let asked = UndoRequest {
        addon,
        placement: which.placement.as_deref(),
        to_revision: args.to_revision,
        restore_configs: args.restore_configs,
        with_configs: &format!("{} {}", session.program, args.typed(true)),
    };
    let told = apply(&live.connection, &mut live.view, asked, args.writing).await?;
    if !session.output.data(&told)? {
        let text = render(&told, args, &session.program);
        session.output.text(&text)?;
    }
    Ok(Outcome::Done)
}

/// Rolls back. Afterwards the view shows the hub as it will be.
pub(in crate::commands) async fn apply(
    connection: &Connection,
    view: &mut View,
    asked: UndoRequest<'_>,
    writing: WriteArgs,
) -> anyhow::Result<Undone> {
    let UndoRequest { addon, placement, to_revision, restore_configs, with_configs } = asked;
    let stored = StoredAddOn::read(connection, addon).await?;
    let chosen = stored.chosen(placement)?;
    if to_revision.is_some() && chosen.len() > 1 {
        let names = chosen.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
        bail!(
            "every placement has its own revision numbers: use --placement to select which of {names} rolls back to revision {}",
            to_revision.unwrap_or_default()
        );
    }
    let back = choose(view, addon, chosen, to_revision)?;
    let objects = named_after_versions(connection, &back).await?;
    let mut placements = stored.placements();
    let mut undone = Vec::new();
    for one in &back {
        let Some(value) = placements.get_mut(one.entry.index) else { continue };
        let references = entry::go_back(value, one.from.as_ref(), &one.kept.revision, &objects);
        let label = |view: &mut View, revision: &Revision| {
            view.observe(addon, |observed| plan::label(observed, revision).to_string())
        };
        undone.push(UndonePlacement {
            placement: one.entry.name.clone(),
            number: one.kept.number,
            from: one.from.as_ref().and_then(|from| label(view, from)),
            to: label(view, &one.kept.revision).unwrap_or_default(),
            forward: one.kept.withdrawn,
            references,
        });
    }
    let lost = lost(connection, view, addon, &back).await?;
    let restored = usage(connection, &lost).await;
    if !lost.is_empty() && !restore_configs {
        bail!("{}", in_place(&restored, with_configs));
    }
    check(view, connection, &stored, &placements, &lost, &back).await?;
    for one in &lost {
        restore(connection, one, writing).await?;
    }
    let changed = placements != stored.placements();
    if changed {
        stored.write(placements, writing).await?;
    }
    Ok(Undone {
        version: 1,
        add_on: addon.to_owned(),
        dry_run: writing.dry_run,
        placements: undone,
        restored,
        warning: authors::undone_by(&stored.object),
    })
}

/// What a placement rolls back to unless it is told otherwise. `own` are its completed revisions,
/// the oldest first.
pub(super) fn previous<'a>(
    own: &[&'a CompletedRevision],
    desired: Option<&Revision>,
) -> Option<&'a CompletedRevision> {
    own.iter().rev().find(|kept| !kept.withdrawn && desired != Some(&kept.revision)).copied()
}

/// Chooses the revision for each placement. A placement with nothing to roll back to is skipped,
/// unless it is the only one.
fn choose(
    view: &mut View,
    addon: &str,
    chosen: Vec<PlacementEntry>,
    number: Option<i64>,
) -> anyhow::Result<Vec<Back>> {
    let history = view.history(addon);
    let wanted = |observed: &Observed, entry: &PlacementEntry| {
        let fleet = Fleet::line_up(observed);
        let governor = fleet.governors.iter().find(|governor| governor.spec.name.to_string() == entry.name);
        governor.and_then(|governor| governor.desired.clone().ok())
    };
    let mut back = Vec::new();
    let mut nowhere = Vec::new();
    for entry in chosen {
        let from = view.observe(addon, |observed| wanted(observed, &entry)).flatten();
        let own: Vec<&CompletedRevision> =
            history.iter().filter(|kept| kept.placement.to_string() == entry.name).collect();
        let kept = match number {
            Some(number) => own.iter().find(|kept| kept.number == number).copied(),
            None => previous(&own, from.as_ref()),
        };
        match kept {
            Some(kept) if from.as_ref() == Some(&kept.revision) => {
                bail!(
                    "the desired revision of {} is already {}: there is nothing to undo",
                    entry.name,
                    kept.number
                )
            }
            Some(kept) => back.push(Back { kept: kept.clone(), entry, from }),
            None => {
                let numbers: Vec<String> = own.iter().map(|kept| kept.number.to_string()).collect();
                nowhere.push(match (number, numbers.is_empty()) {
                    (_, true) => format!("{} has completed no revision yet", entry.name),
                    (Some(number), false) => {
                        format!("{} has no revision {number}: it has {}", entry.name, numbers.join(", "))
                    }
                    (None, false) => match own.iter().rev().find(|kept| kept.withdrawn) {
                        Some(withdrawn) => format!(
                            "{} has already been rolled back; to go forward again use --to-revision {}, which is an upgrade like any other",
                            entry.name, withdrawn.number
                        ),
                        None => format!("{} has completed no other revision than its desired one", entry.name),
                    },
                });
            }
        }
    }
    if back.is_empty() {
        return Err(anyhow!("there is nothing to roll back to: {}", nowhere.join("; ")));
    }
    Ok(back)
}

/// AddOnHubConfigs that have the same content as the version shorthand and exist as objects.
async fn named_after_versions(connection: &Connection, back: &[Back]) -> anyhow::Result<BTreeSet<ConfigRef>> {
    let pins = back.iter().flat_map(|one| one.kept.revision.pins());
    let mut there = BTreeSet::new();
    for pin in pins.filter(|pin| entry::inline_version(pin).is_some()) {
        let (_, live) = objects::get(connection, &pin.config).await?;
        if live.is_some_and(|live| hash::spec_hash(&live) == pin.hash) {
            there.insert((*pin.config).clone());
        }
    }
    Ok(there)
}

/// A config whose content has changed since that revision.
struct Lost {
    config: ConfigRef,
    /// Its current content; `None` if it was deleted.
    live: Option<Value>,
    content: Value,
}

/// The configs of the revisions whose content has changed.
async fn lost(
    connection: &Connection,
    view: &mut View,
    addon: &str,
    back: &[Back],
) -> anyhow::Result<Vec<Lost>> {
    let mut seen = BTreeSet::new();
    let mut lost: Vec<Lost> = Vec::new();
    for pin in back.iter().flat_map(|one| one.kept.revision.pins()) {
        if entry::inline_version(pin).is_some() || !seen.insert((pin.config.clone(), pin.hash.clone())) {
            continue;
        }
        let (_, live) = objects::get(connection, &pin.config).await?;
        if live.as_ref().is_some_and(|live| hash::spec_hash(live) == pin.hash) {
            continue;
        }
        if lost.iter().any(|known| known.config == *pin.config) {
            bail!(
                "the placements would roll back to different contents of {}: undo them one by one with --placement",
                pin.config
            );
        }
        let content =
            view.observe(addon, |observed| observed.revisions.contents.get(&pin.hash).cloned()).flatten();
        let Some(content) = content else {
            bail!(
                "the content of {} at {} is no longer stored: you cannot roll back to it",
                pin.config,
                pin.hash.short()
            );
        };
        lost.push(Lost { config: (*pin.config).clone(), live, content: (**content).clone() });
    }
    Ok(lost)
}

/// Finds the users of the configs. Failures are ignored: the result is only shown, not used for a
/// decision.
async fn usage(connection: &Connection, lost: &[Lost]) -> Vec<Restored> {
    if lost.is_empty() {
        return Vec::new();
    }
    let api: Api<ClusterManagementAddOn> = Api::all(connection.client.clone());
    let addons = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    let read: Vec<_> = addons.iter().map(|addon| normalise::addon(addon).0).collect();
    let used = |config: &ConfigRef| {
        let mut users = Vec::new();
        for addon in &read {
            if addon.defaults.contains(config) {
                users.push(format!("add-on {}", addon.name));
            }
            let placements = addon.strategy.placements().iter().filter(|spec| spec.configs.contains(config));
            users.extend(placements.map(|spec| format!("add-on {} in {}", addon.name, spec.name)));
        }
        users
    };
    lost.iter().map(|one| Restored { config: one.config.to_string(), used_by: used(&one.config) }).collect()
}

fn in_place(restored: &[Restored], with_configs: &str) -> String {
    let mut text = String::from("nothing was written: ");
    for one in restored {
        let users = if one.used_by.is_empty() {
            String::new()
        } else {
            format!(", which is used by {}", one.used_by.join(", "))
        };
        text.push_str(&format!("{}{users}, was edited or deleted since that revision; ", one.config));
    }
    text.push_str(&format!(
        "referencing it again would not restore its content. {with_configs} restores the content for everything that uses it"
    ));
    text
}

/// Asks the engine whether the writes would result in exactly the chosen revisions.
async fn check(
    view: &mut View,
    connection: &Connection,
    stored: &StoredAddOn<'_>,
    placements: &[Value],
    lost: &[Lost],
    back: &[Back],
) -> anyhow::Result<()> {
    let mut object = stored.object.clone();
    object["spec"]["installStrategy"]["placements"] = json!(placements);
    let addons =
        GroupResource::new(aviary_api::names::ADDON_GROUP, aviary_api::names::CLUSTER_MANAGEMENT_ADDONS);
    view.suppose(&addons, &object);
    view.complete().await.map_err(|error| told(&error, connection))?;
    for one in lost {
        view.suppose(&one.config.kind, &with_content(one));
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let wrong = view.observe(&name, |observed| {
        let fleet = Fleet::line_up(observed);
        back.iter().find_map(|one| {
            let governor =
                fleet.governors.iter().find(|governor| governor.spec.name == one.kept.placement)?;
            match &governor.desired {
                Ok(desired) if *desired == one.kept.revision => None,
                Ok(desired) => Some((one.entry.name.clone(), differing(desired, &one.kept.revision))),
                Err(problem) => Some((one.entry.name.clone(), problem.to_string())),
            }
        })
    });
    match wrong.flatten() {
        None => Ok(()),
        Some((placement, why)) => Err(anyhow!(
            "{placement} cannot be rolled back by changing its own configs only: {why}; nothing was written: change the add-on itself; aviary plan shows the effect"
        )),
    }
}

/// The kinds of config in which two revisions differ.
fn differing(one: &Revision, other: &Revision) -> String {
    let kinds: BTreeSet<&GroupResource> =
        one.pins().iter().chain(other.pins()).map(|pin: &Pin| &pin.config.kind).collect();
    let differ: Vec<String> =
        kinds.into_iter().filter(|kind| !one.same_of(other, kind)).map(ToString::to_string).collect();
    format!("{} would still differ", differ.join(", "))
}

/// The config with its earlier content.
fn with_content(lost: &Lost) -> Value {
    let mut object = match &lost.live {
        Some(live) => {
            let mut kept = json!({});
            for key in ["apiVersion", "kind", "metadata", "status"] {
                if let Some(value) = live.get(key) {
                    kept[key] = value.clone();
                }
            }
            kept
        }
        None => json!({"metadata": {"name": lost.config.name, "namespace": lost.config.namespace}}),
    };
    if let (Value::Object(object), Value::Object(content)) = (&mut object, &lost.content) {
        object.extend(content.clone());
    }
    object
}

/// Writes the earlier content, on condition that the object is unchanged since it was read.
async fn restore(connection: &Connection, lost: &Lost, writing: WriteArgs) -> anyhow::Result<()> {
    let served = objects::find_kind(connection, &lost.config.kind).await?;
    let api = served.api(connection, lost.config.namespace.as_deref());
    let params = PostParams { dry_run: writing.dry_run, field_manager: Some(WRITER.to_owned()) };
    let mut value = with_content(lost);
    value["apiVersion"] = json!(served.resource.api_version);
    value["kind"] = json!(served.resource.kind);
    let object = serde_json::from_value(value)?;
    let (doing, written) = match &lost.live {
        Some(_) => {
            (format!("restore {}", lost.config), api.replace(&lost.config.name, &params, &object).await)
        }
        None => (format!("recreate {}", lost.config), api.create(&params, &object).await),
    };
    written.map(drop).map_err(|error| refused(&doing, &error, &connection.server))
}

fn render(told: &Undone, args: &Args, program: &str) -> Printout {
    let mark = args.writing.mark();
    let mut text = Printout::default();
    for one in &told.placements {
        let from = one.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let goes = if one.forward { "goes forward" } else { "rolls back" };
        let line = format!("{} {goes}{from} to {}, its revision {}{mark}", one.placement, one.to, one.number);
        text.wrapped("", "  ", &line);
        for reference in &one.references {
            let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
            let (from, to) = (shown(&reference.from), shown(&reference.to));
            text.wrapped("  ", "    ", &format!("{}: {from} -> {to}", reference.kind));
        }
    }
    for one in &told.restored {
        let users = if one.used_by.is_empty() { "no object".to_owned() } else { one.used_by.join(", ") };
        let line = format!("{} has its earlier content again{mark}; used by {users}", one.config);
        text.wrapped("", "  ", &line);
    }
    if let Some(warning) = &told.warning {
        text.wrapped("Warning: ", "  ", warning);
    }
    let (addon, hub) = (&told.add_on, args.which.live.typed());
    text.line(match told.dry_run {
        true => format!("Nothing was written. Next: {program} {}", args.typed(args.restore_configs)),
        false => format!("Next: {program} status {addon} -w{hub}"),
    });
    text
}
