//! The input of `plan` and `rehearse`: the fleet in files, or the fleet on a hub with the files
//! applied to it.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use aviary_api::names::{ADDON_GROUP, CLUSTER_GROUP};
use aviary_controller::View;
use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::observed::Observed;
use aviary_engine::problem::Problem;
use jiff::Timestamp;
use serde_json::Value;

use super::{Session, typed};
use crate::change::{self, Changed};
use crate::checks::{self, Checked};
use crate::connect::{Connection, refused};
use crate::difference::Difference;
use crate::documents::{self, Document};
use crate::findings::Finding;
use crate::kinds::Kinds;
use crate::live::{LiveArgs, told, unknown};
use crate::nearest::did_you_mean;
use crate::objects;
use crate::output::first_few;
use crate::redecide::{self, Effects, PlacementFacts};
use crate::snapshot::{self, is_config};

/// The file name of an add-on that comes from a hub.
pub(crate) const HUB: &str = "hub";

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").args(["addon", "files"]).required(true).multiple(true))]
pub(crate) struct SourceArgs {
    /// Name of an add-on on a hub, which is read with everything related to it
    #[arg(value_name = "ADDON")]
    pub(crate) addon: Option<String>,

    /// YAML or JSON file with any number of documents, a directory (its .yaml, .yml and .json
    /// files), or - for standard input. May be given several times, and with several files. Without
    /// a hub, the files are the fleet; with one, they are applied to what is there, as kubectl
    /// apply would
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    pub(crate) files: Vec<PathBuf>,

    /// Read directories with all directories below them
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// File with changes, applied to the other objects as kubectl apply would; status and identity
    /// are kept
    #[arg(short, long, value_name = "FILE", num_args = 1..)]
    pub(crate) change: Vec<PathBuf>,

    /// Plan only this add-on of the files
    #[arg(long, value_name = "NAME", conflicts_with = "addon")]
    pub(crate) add_on: Option<String>,

    /// Apply the files to the hub of the current kubeconfig; implied by ADDON, --kubeconfig and
    /// --context
    #[arg(long)]
    pub(crate) live: bool,

    #[command(flatten)]
    pub(crate) hub: LiveArgs,
}

/// The fleets of one or more add-ons.
#[derive(Debug, Default)]
pub(crate) struct Fleets {
    pub(crate) addons: Vec<AddOnFleet>,
    /// Assumptions, and what was ignored.
    pub(crate) notes: Vec<String>,
    pub(crate) differences: Vec<Difference>,
}

/// One add-on and everything related to it.
#[derive(Debug)]
pub(crate) struct AddOnFleet {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) document: usize,
    pub(crate) observed: Observed,
    pub(crate) instance_problems: Vec<Problem>,
    pub(crate) notes: Vec<String>,
    /// Placements that the change affects in a way that is not known before it is applied.
    pub(crate) unknown: Vec<String>,
}

impl AddOnFleet {
    /// Chooses the clusters of the placements again that the change affects.
    fn redecide(&mut self, before: &PlacementFacts, after: &PlacementFacts, now: Timestamp) {
        let Effects { notes, unknown } = redecide::apply(&mut self.observed, before, after, now);
        self.notes.extend(notes);
        self.unknown.extend(unknown);
    }
}

impl SourceArgs {
    pub(crate) fn is_live(&self) -> bool {
        self.live || self.addon.is_some() || self.hub.hub.is_given()
    }

    /// The arguments as the user would type them again.
    pub(crate) fn typed(&self) -> String {
        let mut text = self.addon.clone().unwrap_or_default();
        for (option, files) in [("-f", &self.files), ("--change", &self.change)] {
            if !files.is_empty() {
                text.push(' ');
                text.push_str(&typed(option, files));
            }
        }
        for (given, option) in [(self.recursive, " -R"), (self.live, " --live")] {
            text.push_str(if given { option } else { "" });
        }
        if let Some(addon) = &self.add_on {
            text.push_str(&format!(" --add-on {addon}"));
        }
        text.push_str(&self.hub.typed());
        text.trim_start().to_owned()
    }

    /// Reads everything, or reports what is wrong with the files.
    pub(crate) async fn load(&self, session: &mut Session) -> anyhow::Result<Result<Fleets, Vec<Finding>>> {
        let kinds = Kinds::new()?;
        let mut faults = Vec::new();
        let mut accepted = |files: &[PathBuf]| -> anyhow::Result<Vec<Document>> {
            let read = documents::read(files, self.recursive, &mut session.stdin);
            faults.extend(read.faults);
            let checked: Checked = checks::check(read.documents, &kinds)?;
            faults.extend(checked.errors());
            Ok(checked.documents)
        };
        let there = accepted(&self.files)?;
        let new = accepted(&self.change)?;
        if !faults.is_empty() {
            return Ok(Err(faults));
        }
        let changed = change::apply(there, new);
        if self.is_live() {
            return Ok(Ok(self.on_hub(&changed.documents, session.now).await?));
        }
        let mut fleets = from_files(&changed, &kinds, session.now);
        self.choose(&mut fleets)?;
        Ok(Ok(fleets))
    }

    /// Keeps only the requested add-on.
    fn choose(&self, fleets: &mut Fleets) -> anyhow::Result<()> {
        let names: Vec<String> = fleets.addons.iter().map(|addon| addon.name.clone()).collect();
        if names.is_empty() {
            return Err(anyhow!("there is nothing to plan: no ClusterManagementAddOn is in the files"));
        }
        let Some(asked) = &self.add_on else { return Ok(()) };
        fleets.addons.retain(|addon| addon.name == *asked);
        fleets.notes.extend(not_planned(asked, &names));
        if fleets.addons.is_empty() {
            let meant = did_you_mean(asked, names.iter().map(String::as_str));
            return Err(anyhow!("add-on {asked} is not in the files: they have {}{meant}", names.join(", ")));
        }
        Ok(())
    }

    /// Reads the hub and applies the documents to it.
    async fn on_hub(&self, documents: &[Document], now: Timestamp) -> anyhow::Result<Fleets> {
        let wanted = self.addon.as_deref().or(self.add_on.as_deref());
        let in_files =
            |name: &str| documents.iter().any(|document| is_addon(document) && document.name() == name);
        if let Some(addon) = wanted {
            crate::live::check_name(addon)?;
        }
        let connection = self.hub.hub.connect().await?;
        let mut view = self.hub.read_from(&connection, wanted).await?;
        if let Some(addon) = wanted.filter(|addon| view.addons().is_empty() && !in_files(addon)) {
            return Err(unknown(addon, &connection).await);
        }
        let mut differences = Vec::new();
        let mut supposed = Vec::new();
        let mut decides_anew = false;
        for document in documents {
            let (kind, object, difference) = laid_over(&connection, document).await?;
            decides_anew |= difference.is_some() && redecide::is_of_placements(document);
            differences.extend(difference);
            supposed.push((document, kind, object));
        }
        // Configs come after the objects that reference them: a referenced config is fetched first,
        // and then replaced by the one in the files.
        let facts = match decides_anew {
            true => Some(PlacementFacts::read(&connection).await?),
            false => None,
        };
        let facts = facts.map(|before| {
            let mut after = before.clone();
            supposed.iter().for_each(|(document, _, object)| after.put(document, object));
            (before, after)
        });
        let (configs, others): (Vec<_>, Vec<_>) =
            supposed.iter().partition(|(document, _, _)| is_config(document));
        for (_, kind, object) in others {
            view.suppose(kind, object);
        }
        view.complete().await.map_err(|error| told(&error, &connection))?;
        for (_, kind, object) in configs {
            view.suppose(kind, object);
        }
        let mut fleets =
            Fleets { differences, notes: super::status::report::left_out(&view), ..Fleets::default() };
        if let Some(wanted) = wanted {
            let in_files = documents.iter().filter(|document| is_addon(document));
            let names: Vec<String> = in_files.map(|document| document.name().to_owned()).collect();
            fleets.notes.extend(not_planned(wanted, &names));
        }
        for addon in view.addons() {
            let bears =
                wanted == Some(&*addon) || documents.is_empty() || bears_on(&mut view, &addon, &supposed);
            if wanted.is_some_and(|wanted| *wanted != *addon) || !bears {
                continue;
            }
            let Some(observed) = view.observe(&addon, Observed::clone) else { continue };
            let mut fleet = AddOnFleet {
                name: addon.to_string(),
                file: HUB.to_owned(),
                document: 0,
                observed,
                instance_problems: Vec::new(),
                notes: Vec::new(),
                unknown: Vec::new(),
            };
            if let Some((before, after)) = &facts {
                fleet.redecide(before, after, now);
            }
            fleets.addons.push(fleet);
        }
        if fleets.addons.is_empty() {
            bail!("there is nothing to plan: the files do not affect any add-on on {}", connection.server);
        }
        Ok(fleets)
    }
}

/// A note about add-ons in the files that are not planned.
fn not_planned(asked: &str, in_files: &[String]) -> Option<String> {
    let others: Vec<&str> = in_files.iter().map(String::as_str).filter(|name| *name != asked).collect();
    let what = match others.len() {
        0 => return None,
        1 => "another add-on, which is",
        _ => "other add-ons, which are",
    };
    Some(format!("the files contain {what} not planned here: {}", first_few(&others)))
}

fn is_addon(document: &Document) -> bool {
    document.group() == ADDON_GROUP && document.kind() == "ClusterManagementAddOn"
}

/// Whether the files can change anything for an add-on.
fn bears_on(view: &mut View, addon: &str, supposed: &[(&Document, GroupResource, Value)]) -> bool {
    let of_fleet = |document: &Document| document.group() == CLUSTER_GROUP;
    let own = |document: &Document| {
        document.group() == ADDON_GROUP
            && matches!(document.kind(), "ClusterManagementAddOn" | "ManagedClusterAddOn")
            && document.name() == addon
    };
    let template = |object: &Value| object.pointer("/spec/addonName").and_then(Value::as_str) == Some(addon);
    let referred: Vec<ConfigRef> = supposed
        .iter()
        .map(|(document, kind, _)| ConfigRef {
            kind: kind.clone(),
            namespace: Some(document.namespace()).filter(|namespace| !namespace.is_empty()).map(Into::into),
            name: document.name().into(),
        })
        .collect();
    let uses =
        view.observe(addon, |observed| referred.iter().any(|config| observed.configs.contains_key(config)));
    uses == Some(true)
        || supposed.iter().any(|(document, kind, object)| {
            of_fleet(document) || own(document) || (kind == GroupResource::templates() && template(object))
        })
}

/// A document as it would be on the hub, and what that changes.
async fn laid_over(
    connection: &Connection,
    document: &Document,
) -> anyhow::Result<(GroupResource, Value, Option<Difference>)> {
    let served = objects::find(connection, document.group(), |resource| {
        resource.kind == document.kind() && resource.version == document.version()
    })
    .await?;
    let Some(served) = served else {
        bail!(
            "{} does not serve {} {}, as {} needs",
            connection.server,
            document.api_version(),
            document.kind(),
            document.said()
        );
    };
    let kind = GroupResource::new(document.group(), &served.resource.plural);
    let namespace = Some(document.namespace()).filter(|namespace| !namespace.is_empty());
    let live =
        served.api(connection, namespace).get_opt(document.name()).await.map_err(|error| {
            refused(&format!("read {kind} {}", document.name()), &error, &connection.server)
        })?;
    let live = live.map(serde_json::to_value).transpose()?;
    let object = match &live {
        Some(live) => change::merged(live, document.value.clone()),
        None => document.value.clone(),
    };
    let difference = Difference::between(document, live.as_ref(), &object);
    Ok((kind, object, difference))
}

fn from_files(changed: &Changed, kinds: &Kinds, now: Timestamp) -> Fleets {
    let facts = changed_facts(changed);
    let snapshot = snapshot::build(&changed.documents, &changed.former, kinds);
    let left_out = snapshot.findings.iter().filter(|finding| finding.field != "status.decisions");
    let notes = snapshot.notes.iter().cloned().chain(left_out.map(ToString::to_string)).collect();
    let addons = snapshot.addons.into_iter().map(|addon| {
        let mut fleet = AddOnFleet {
            name: addon.document.name().to_owned(),
            file: addon.document.place.file.to_string(),
            document: addon.document.place.document,
            observed: addon.observed,
            instance_problems: addon.instance_problems.into_iter().map(|(_, problem)| problem).collect(),
            notes: addon.notes,
            unknown: Vec::new(),
        };
        if let Some((before, after)) = &facts {
            fleet.redecide(before, after, now);
        }
        fleet
    });
    Fleets { addons: addons.collect(), notes, differences: Vec::new() }
}

/// What placements depend on before and after the change, if the change affects any of it.
fn changed_facts(changed: &Changed) -> Option<(PlacementFacts, PlacementFacts)> {
    let Changed { documents, former, added } = changed;
    let new = added.iter().filter_map(|index| documents.get(*index));
    if !former.iter().chain(new).any(redecide::is_of_placements) {
        return None;
    }
    let (mut before, mut after) = (PlacementFacts::default(), PlacementFacts::default());
    for (index, document) in documents.iter().enumerate() {
        after.put(document, &document.value);
        if !added.contains(&index) {
            before.put(document, &document.value);
        }
    }
    former.iter().for_each(|document| before.put(document, &document.value));
    Some((before, after))
}
