//! `undo`: a placement wants again what it has completed before.
//!
//! A revision is a set of configs with their contents. Going back therefore is one of two things: to name the configs of that time again, or,
//! where an object was edited in place, to give it the content of that time again. The first is written to the add-on's placement and touches
//! nothing else. The second changes an object that others may use as well, so it is only done when asked for. Whether what would be written
//! comes to the very revision is asked of the engine before anything is.

mod entry;

use std::collections::BTreeSet;

use anyhow::{anyhow, bail};
use aviary_api::ClusterManagementAddOn;
use aviary_controller::{Kept, View};
use aviary_engine::configs::{ConfigRef, GroupResource, Pin, Revision};
use aviary_engine::fleet::Fleet;
use aviary_engine::observed::Observed;
use aviary_engine::{hash, normalise, plan};
use kube::api::{Api, ListParams, PostParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::spec::{Entry, Stored, WRITER};
use super::{Outcome, Session, Which, Writing};
use crate::connect::{Connection, refused};
use crate::live::told;
use crate::objects;
use entry::Reference;

const DESCRIPTION: &str = "\
Go back: each placement wants again what it completed last before what it wants now, or the revision with the number that \
aviary rollout history shows.

Going back is never held up by a canary, takes over from the rollout under way at once, keeps to the budget, and touches only \
clusters that had moved.

What is written are the references to configs in the add-on's placements, as they were then. Where a config itself was edited since, \
naming it again would not bring its old content back: that is said, and nothing is written. With --restore-configs the content of \
that time, which the manager has kept, is written back to the config, or the config is made again where it was deleted. Whoever else \
uses that config gets it too; who that is, is said. Every write is conditional on what was seen.";

const EXAMPLES: &str = "\
Examples:
  What would going back write
    $ aviary rollout undo helloworld --dry-run

  Go back, and wait until it is there
    $ aviary rollout undo helloworld && aviary status helloworld -w

  One placement, to a certain revision
    $ aviary rollout undo helloworld --placement default/fleet --to-revision 3";

const STRUCTURE: &str = "\
Output with -o json:
  version        1; a later version may add fields, and changes or removes none
  addOn, dryRun
  placements[]   {placement, number, from, to, references[]}; references[]: {kind, from, to},
                 either left out where there is none
  restored[]     {config, usedBy[]}: configs that get their old content back

Exit codes:
  0 it is written; 1 it is not: there is nothing to go back to, or a config was edited in
  place and --restore-configs was not given; 2 wrong usage";

/// Go back to a revision that was completed before
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    /// Number of the revision to go back to; of an add-on with several placements --placement says of which
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    to_revision: Option<i64>,

    /// Write the content of that time back to configs that were edited or deleted since
    #[arg(long)]
    restore_configs: bool,

    #[command(flatten)]
    writing: Writing,
}

/// What was gone back to, or would be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Undone {
    version: u32,
    add_on: String,
    dry_run: bool,
    pub(in crate::commands) placements: Vec<UndonePlacement>,
    pub(in crate::commands) restored: Vec<Restored>,
}

#[derive(Debug, Serialize)]
pub(in crate::commands) struct UndonePlacement {
    pub(in crate::commands) placement: String,
    pub(in crate::commands) number: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) from: Option<String>,
    pub(in crate::commands) to: String,
    references: Vec<Reference>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Restored {
    config: String,
    used_by: Vec<String>,
}

/// What to go back to.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Asked<'a> {
    pub(in crate::commands) addon: &'a str,
    pub(in crate::commands) placement: Option<&'a str>,
    pub(in crate::commands) to_revision: Option<i64>,
    pub(in crate::commands) restore_configs: bool,
    /// The command that restores configs as well.
    pub(in crate::commands) with_configs: &'a str,
}

/// A placement, and where it goes back to.
struct Back {
    entry: Entry,
    kept: Kept,
    /// What it wants now.
    from: Option<Revision>,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let which = &args.which;
    let mut live = which.live.read(Some(&which.addon)).await?;
    let (addon, hub) = (&which.addon, which.live.hub.typed());
    let asked = Asked {
        addon,
        placement: which.placement.as_deref(),
        to_revision: args.to_revision,
        restore_configs: args.restore_configs,
        with_configs: &format!("{} rollout undo {addon} --restore-configs{hub}", session.program),
    };
    let told = apply(&live.connection, &mut live.view, asked, args.writing).await?;
    if !session.output.data(&told)? {
        let text = render(&told, args, &session.program);
        session.output.text(&text)?;
    }
    Ok(Outcome::Done)
}

/// Goes back. The view is left as the hub looks then.
pub(in crate::commands) async fn apply(
    connection: &Connection,
    view: &mut View,
    asked: Asked<'_>,
    writing: Writing,
) -> anyhow::Result<Undone> {
    let Asked { addon, placement, to_revision, restore_configs, with_configs } = asked;
    let stored = Stored::read(connection, addon).await?;
    let chosen = stored.chosen(placement)?;
    if to_revision.is_some() && chosen.len() > 1 {
        let names = chosen.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
        bail!(
            "every placement numbers its own revisions: say with --placement which of {names} goes back to revision {}",
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
    })
}

/// Where each placement goes back to. One that has nowhere to go is left out, unless it is the only one.
fn choose(
    view: &mut View,
    addon: &str,
    chosen: Vec<Entry>,
    number: Option<i64>,
) -> anyhow::Result<Vec<Back>> {
    let history = view.history(addon);
    let wanted = |observed: &Observed, entry: &Entry| {
        let fleet = Fleet::line_up(observed);
        let governor = fleet.governors.iter().find(|governor| governor.spec.name.to_string() == entry.name);
        governor.and_then(|governor| governor.desired.clone().ok())
    };
    let mut back = Vec::new();
    let mut nowhere = Vec::new();
    for entry in chosen {
        let from = view.observe(addon, |observed| wanted(observed, &entry)).flatten();
        let own: Vec<&Kept> =
            history.iter().filter(|kept| kept.placement.to_string() == entry.name).collect();
        let kept = match number {
            Some(number) => own.iter().find(|kept| kept.number == number),
            None => own.iter().rev().find(|kept| from.as_ref() != Some(&kept.revision)),
        };
        match kept {
            Some(kept) if from.as_ref() == Some(&kept.revision) => {
                bail!("{} wants revision {} already: there is nothing to undo", entry.name, kept.number)
            }
            Some(kept) => back.push(Back { kept: (*kept).clone(), entry, from }),
            None => {
                let numbers: Vec<String> = own.iter().map(|kept| kept.number.to_string()).collect();
                nowhere.push(match (number, numbers.is_empty()) {
                    (_, true) => format!("{} has completed no revision yet", entry.name),
                    (Some(number), false) => {
                        format!("{} has no revision {number}: it has {}", entry.name, numbers.join(", "))
                    }
                    (None, false) => {
                        format!("{} has completed no other revision than the one it wants", entry.name)
                    }
                });
            }
        }
    }
    if back.is_empty() {
        return Err(anyhow!("there is nothing to go back to: {}", nowhere.join("; ")));
    }
    Ok(back)
}

/// The AddOnHubConfigs that read as the version shorthand and are there as objects, with that very content.
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

/// A config that does not have the content of that time any more.
struct Lost {
    config: ConfigRef,
    /// As it is now; none: it is gone.
    live: Option<Value>,
    content: Value,
}

/// The configs of the revisions whose content is another now.
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
                "the placements would go back to different contents of {}: undo them one by one with --placement",
                pin.config
            );
        }
        let content =
            view.observe(addon, |observed| observed.revisions.contents.get(&pin.hash).cloned()).flatten();
        let Some(content) = content else {
            bail!(
                "the content that {} had at {} is not kept any more: it cannot be gone back to",
                pin.config,
                pin.hash.short()
            );
        };
        lost.push(Lost { config: (*pin.config).clone(), live, content: (*content).clone() });
    }
    Ok(lost)
}

/// Who uses the configs. What cannot be found out is left out: it is only said, not decided on.
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
        "naming it again would not bring its content back. {with_configs} writes the content of that time back to it, for all that use it"
    ));
    text
}

/// Asks the engine whether what would be written comes to the revisions that are gone back to.
async fn check(
    view: &mut View,
    connection: &Connection,
    stored: &Stored<'_>,
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
            "{placement} cannot go back by its own configs alone: {why}; nothing was written: change the add-on itself, aviary plan shows what that does"
        )),
    }
}

/// The kinds of config in which two revisions differ.
fn differing(one: &Revision, other: &Revision) -> String {
    let kinds: BTreeSet<&GroupResource> =
        one.pins().iter().chain(other.pins()).map(|pin: &Pin| &pin.config.kind).collect();
    let hash = |revision: &Revision, kind: &GroupResource| revision.pin(kind).map(|pin| pin.hash.clone());
    let differ: Vec<String> = kinds
        .into_iter()
        .filter(|kind| hash(one, kind) != hash(other, kind))
        .map(ToString::to_string)
        .collect();
    format!("{} would still be another", differ.join(", "))
}

/// The config with the content of that time.
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

/// Writes the content of that time, over the very state that was seen.
async fn restore(connection: &Connection, lost: &Lost, writing: Writing) -> anyhow::Result<()> {
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
        None => (format!("make {} again", lost.config), api.create(&params, &object).await),
    };
    written.map(drop).map_err(|error| refused(&doing, &error, &connection.server))
}

fn render(told: &Undone, args: &Args, program: &str) -> String {
    let mark = args.writing.mark();
    let mut text = String::new();
    for one in &told.placements {
        let from = one.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        text.push_str(&format!(
            "{} goes back{from} to {}, its revision {}{mark}\n",
            one.placement, one.to, one.number
        ));
        for reference in &one.references {
            let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
            text.push_str(&format!(
                "  {}: {} -> {}\n",
                reference.kind,
                shown(&reference.from),
                shown(&reference.to)
            ));
        }
    }
    for one in &told.restored {
        let users = if one.used_by.is_empty() { "nobody".to_owned() } else { one.used_by.join(", ") };
        text.push_str(&format!("{} has its content of that time again{mark}; used by {users}\n", one.config));
    }
    let (addon, hub) = (&told.add_on, args.which.live.hub.typed());
    text.push_str(&match told.dry_run {
        true => format!("Nothing was written. Next: {program} rollout undo {addon}{hub}\n"),
        false => format!("Next: {program} status {addon} -w{hub}\n"),
    });
    text
}
