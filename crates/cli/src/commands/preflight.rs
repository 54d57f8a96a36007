//! `aviary preflight`: what a hub serves, and what prevents a manager from running on it.

mod fields;
mod rights;

use anyhow::Context as _;
use aviary_api::crds;
use aviary_api::names::ADDON_GROUP;
use aviary_controller::{LEASE, OCM_LEASE, OCM_NAMESPACE, rival};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde::Serialize;

use super::{Outcome, Session};
use crate::connect::{Connection, HubArgs, refused};
use crate::output::{Printout, Style, Table};
use crate::packaging;

const DESCRIPTION: &str = "\
Check a hub before a manager runs on it: which kind of hub it is, which versions of each kind it serves and whether they can be read, \
which of Aviary's fields its schemas do not keep, and what prevents a manager from running on it.

It only reads. The exit code is 1 if a manager cannot run on it.";

/// Check what a hub serves, and what prevents a manager from running on it
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Check the hub of the current kubeconfig
    $ aviary preflight

  Check a hosted Open Cluster Management hub
    $ aviary preflight --ocm-namespace my-hub -o json")]
pub(crate) struct Args {
    #[command(flatten)]
    hub: HubArgs,

    /// Namespace of Open Cluster Management's controllers
    #[arg(long, value_name = "NAMESPACE", default_value = OCM_NAMESPACE)]
    ocm_namespace: String,
}

/// What to look at beside the definitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scrutiny<'a> {
    /// Where OCM's add-on manager would hold its Lease.
    pub(super) ocm_namespace: Option<&'a str>,
    /// Whether to read objects of every kind in every version. A manager may not.
    pub(super) reads: bool,
}

/// The kind of a hub, by the definition of its add-ons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HubFlavor {
    /// Its add-on kinds are Aviary's.
    Standalone,
    /// Its add-on kinds are OCM's.
    Ocm,
    /// It has no add-on kinds.
    Empty,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreflightReport {
    server: String,
    version: String,
    pub(super) flavor: HubFlavor,
    kinds: Vec<KindReport>,
    /// Fields that Aviary writes elsewhere, because this hub would drop them.
    pub(super) not_kept: Vec<String>,
    pub(super) in_the_way: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct KindReport {
    name: String,
    versions: Vec<VersionReport>,
    stored: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionReport {
    name: String,
    /// Why its objects cannot be read.
    problem: Option<String>,
    /// There is no object to convert, so nothing shows whether the webhook works.
    not_tried: bool,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let scrutiny = Scrutiny { ocm_namespace: Some(&args.ocm_namespace), reads: true };
    let report = runtime.context("failed to start the runtime")?.block_on(async {
        let connection = args.hub.connect().await?;
        inspect(&connection, scrutiny, session.now).await
    })?;
    let outcome = if report.in_the_way.is_empty() { Outcome::Done } else { Outcome::NotDone };
    if !session.output.data(&report)? {
        let text = text(&report, session);
        session.output.text(&text)?;
    }
    Ok(outcome)
}

/// What a hub serves, and what prevents a manager from running on it. Only reads.
pub(super) async fn inspect(
    connection: &Connection,
    scrutiny: Scrutiny<'_>,
    now: Timestamp,
) -> anyhow::Result<PreflightReport> {
    let Connection { client, server } = connection;
    let version = client.apiserver_version().await;
    let version = version.map_err(|error| refused("ask the hub for its version", &error, server))?;
    let found: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut kinds = Vec::new();
    let mut in_the_way = Vec::new();
    let mut not_kept = Vec::new();
    let mut flavor = HubFlavor::Empty;
    for ours in crds::all() {
        let name = ours.metadata.name.clone().unwrap_or_default();
        let doing = format!("read the definition of {name}");
        // A list, because a manager has no right to get single definitions.
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let served = found.list(&named).await.map_err(|error| refused(&doing, &error, server))?;
        let Some(served) = served.items.into_iter().next() else {
            in_the_way.push(absent(&name));
            continue;
        };
        let missing = fields::missing(&ours, &served);
        if name == crds::CONVERTED[0] {
            let is_ours = !missing.iter().any(|field| field == "status.conditions");
            flavor = if is_ours { HubFlavor::Standalone } else { HubFlavor::Ocm };
        }
        let kind = &ours.spec.names.kind;
        not_kept.extend(missing.into_iter().map(|field| format!("{kind} {field}")));
        let needed = ours.spec.versions.first().map(|version| version.name.as_str()).unwrap_or_default();
        let reader = scrutiny.reads.then_some(connection);
        kinds.push(kind_report(reader, &served, needed, &mut in_the_way).await);
    }
    if flavor == HubFlavor::Empty {
        in_the_way.clear();
        in_the_way
            .push("the hub has none of the add-on kinds: install them with aviary manifests".to_owned());
    }
    // On other hubs, a manager has no right to look.
    let may_look = scrutiny.reads || flavor == HubFlavor::Ocm;
    if let Some(namespace) = scrutiny.ocm_namespace.filter(|_| may_look) {
        in_the_way.extend(other_manager(connection, namespace, now).await);
    }
    Ok(PreflightReport {
        server: server.clone(),
        version: version.git_version,
        flavor,
        kinds,
        not_kept,
        in_the_way,
    })
}

/// The rights that a manager in this namespace lacks. Only reads.
pub(super) async fn denied_to_manager(
    connection: &Connection,
    namespace: &str,
    decides_placements: bool,
) -> anyhow::Result<Vec<String>> {
    let needed = packaging::of_manager(namespace, decides_placements)?;
    let denied = rights::denied(&connection.client, needed).await;
    denied.map_err(|error| refused("ask the hub what this manager may do", &error, &connection.server))
}

fn absent(name: &str) -> String {
    let remedy =
        if crds::is_of_ocm(name) { "the hub is incomplete" } else { "install it with aviary manifests" };
    format!("the hub does not serve {name}: {remedy}")
}

/// Reads one object in every served version, given a reader. On a hub with a conversion webhook,
/// that tries the webhook too.
async fn kind_report(
    reader: Option<&Connection>,
    crd: &CustomResourceDefinition,
    needed: &str,
    in_the_way: &mut Vec<String>,
) -> KindReport {
    let (spec, name) = (&crd.spec, crd.metadata.name.clone().unwrap_or_default());
    let mut versions = Vec::new();
    for version in spec.versions.iter().filter(|version| version.served) {
        let is_converted = !version.storage && calls_webhook(crd);
        let (problem, not_tried) = match reader {
            Some(connection) => match objects_of(connection, crd, &version.name).await {
                Ok(found) => (None, is_converted && found == 0),
                Err(problem) => (Some(problem), false),
            },
            None => (None, false),
        };
        versions.push(VersionReport { name: version.name.clone(), problem, not_tried });
    }
    match versions.iter().find(|version| version.name == needed) {
        None => in_the_way.push(format!("{name} is not served as {needed}, which Aviary uses")),
        Some(version) => in_the_way.extend(version.problem.clone()),
    }
    let stored = spec.versions.iter().find(|version| version.storage);
    let stored = stored.map(|version| version.name.clone()).unwrap_or_default();
    if spec.group == ADDON_GROUP && stored != needed {
        in_the_way.push(format!(
            "{name} is stored as {stored}, and Aviary reads and writes {needed}: what only one of them can hold would be lost"
        ));
    }
    KindReport { name, versions, stored }
}

fn calls_webhook(crd: &CustomResourceDefinition) -> bool {
    crd.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook")
}

/// Reads at most one object of a kind in this version: how many there are, or why they cannot be
/// read.
async fn objects_of(
    connection: &Connection,
    crd: &CustomResourceDefinition,
    version: &str,
) -> Result<usize, String> {
    let spec = &crd.spec;
    let gvk = GroupVersionKind::gvk(&spec.group, version, &spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &spec.names.plural);
    let api: Api<DynamicObject> = Api::all_with(connection.client.clone(), &resource);
    let listed = api.list(&ListParams::default().limit(1)).await;
    let name = crd.metadata.name.as_deref().unwrap_or_default();
    listed.map(|listed| listed.items.len()).map_err(|error| {
        refused(&format!("read {name} in {version}"), &error, &connection.server).to_string()
    })
}

/// Whether OCM's add-on manager runs.
async fn other_manager(connection: &Connection, namespace: &str, now: Timestamp) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(connection.client.clone(), namespace);
    match leases.get_opt(OCM_LEASE).await {
        Ok(lease) => {
            let rival = rival(&lease?, now)?;
            Some(format!(
                "the add-on manager of Open Cluster Management runs and writes the same objects: {} holds the Lease {namespace}/{OCM_LEASE} and renewed it at \
                 {}: disable the feature AddonManagement of the ClusterManager, and wait until the Lease {LEASE} has one holder",
                rival.holder, rival.renewed
            ))
        }
        Err(error) => {
            let doing = format!("find out whether the Lease {namespace}/{OCM_LEASE} is held");
            Some(refused(&doing, &error, &connection.server).to_string())
        }
    }
}

fn text(report: &PreflightReport, session: &Session) -> Printout {
    let mut text = Printout::of(format_args!("Hub {}, version {}", report.server, report.version));
    text.line(match report.flavor {
        HubFlavor::Standalone => "  Its add-on kinds are Aviary's (--flavor standalone).",
        HubFlavor::Ocm => "  Its add-on kinds are those of Open Cluster Management (--flavor ocm).",
        HubFlavor::Empty => "  It has no add-on kinds.",
    });
    if !report.kinds.is_empty() {
        text.gap();
        text.add(&kinds(report).render(session.output.paint));
    }
    let unread = report.kinds.iter().flat_map(|kind| &kind.versions);
    let mut unread = unread.filter_map(|version| version.problem.as_ref()).peekable();
    if unread.peek().is_some() {
        text.gap();
        text.line("Served, and not readable:");
        unread.for_each(|problem| text.line(format_args!("  - {problem}")));
    }
    if !report.not_kept.is_empty() {
        text.gap();
        text.line("Fields of Aviary that this hub's schemas do not keep, and that are not written there:");
        for field in &report.not_kept {
            text.line(format_args!("  {field}"));
        }
    }
    text.gap();
    if report.in_the_way.is_empty() {
        text.line("Nothing is in the way.");
    } else {
        text.line("In the way:");
        for problem in &report.in_the_way {
            text.line(format_args!("  - {problem}"));
        }
    }
    text
}

fn kinds(report: &PreflightReport) -> Table {
    let mut table = Table::default();
    table.head(&["KIND", "SERVED", "STORED", "READABLE"]);
    for kind in &report.kinds {
        let served: Vec<&str> = kind.versions.iter().map(|version| version.name.as_str()).collect();
        let named = |of: fn(&VersionReport) -> bool| -> Option<String> {
            let named: Vec<&str> =
                kind.versions.iter().filter(|one| of(one)).map(|one| one.name.as_str()).collect();
            (!named.is_empty()).then(|| named.join(", "))
        };
        let (style, mut readable) = match named(|one| one.problem.is_some()) {
            None => (Style::Plain, "yes".to_owned()),
            Some(unread) => (Style::Red, format!("not {unread}")),
        };
        if let Some(not_tried) = named(|one| one.not_tried) {
            readable.push_str(&format!("; {not_tried} not tried, no object"));
        }
        table.row([
            (Style::Plain, kind.name.clone()),
            (Style::Plain, served.join(", ")),
            (Style::Plain, kind.stored.clone()),
            (style, readable),
        ]);
    }
    table
}
