//! `aviary manifests`: prints everything to install on a real hub.

use anyhow::bail;
use serde_json::json;

use super::{Outcome, Session};
use crate::output::OutputFormat;
use crate::packaging::{self, Flavor, Package};

const DESCRIPTION: &str = "\
Print everything to install on a hub, for kubectl apply -f -: custom resource definitions, namespace, service account and roles, \
the manager with two replicas, policies, metrics, alerts and a Grafana dashboard. With --dashboard-host also the web dashboard.

The repository has the same as kustomize overlays (deploy/kustomize) and as a Helm chart (deploy/helm/aviary). \
With -o json the output is one List.";

/// Print everything to install on a hub, for kubectl apply -f -
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Install on a hub without Open Cluster Management
    $ aviary manifests --image my.example/aviary:1.0 | kubectl apply --server-side -f -

  Install on an Open Cluster Management hub without the Prometheus operator
    $ aviary manifests --flavor ocm --without monitoring --image my.example/aviary:1.0 |
        kubectl apply --server-side -f -

  With the web dashboard, for users with their own tokens
    $ aviary manifests --dashboard-host aviary.example.com --image my.example/aviary:1.0 |
        kubectl apply --server-side -f -

  See the rights of the manager
    $ aviary manifests -o json | jq '.items[] | select(.kind == \"ClusterRole\")'")]
pub(crate) struct Args {
    /// The kind of hub
    #[arg(long, value_enum, value_name = "FLAVOR", default_value = "standalone")]
    flavor: Flavor,

    /// Image of the manager; the nodes of the hub must be able to pull it
    #[arg(long, value_name = "IMAGE", default_value = packaging::IMAGE, value_parser = image)]
    image: String,

    /// Namespace of the manager
    #[arg(long, value_name = "NAMESPACE", default_value = packaging::NAMESPACE, value_parser = namespace)]
    namespace: String,

    /// Also install the web dashboard, read-only, at this host name: a Deployment, a Service and an
    /// Ingress. Its certificate must be in the Secret aviary-dashboard-tls
    #[arg(long, value_name = "HOST", value_parser = host)]
    dashboard_host: Option<String>,

    /// Address of the page operations.md, for the links in alerts
    #[arg(long, value_name = "URL", default_value = packaging::RUNBOOK, value_parser = runbook)]
    runbook_url: String,

    /// Also serve v1beta1 of the add-on kinds, for add-ons written for Open Cluster Management 1.3
    /// or later: the managers convert it. An OCM hub does so itself
    #[arg(long)]
    v1beta1: bool,

    /// Leave out a part: monitoring, on a hub without the Prometheus operator
    #[arg(long, value_enum, value_name = "PART")]
    without: Vec<ManifestPart>,

    /// Add an optional part: registration, for templates with spec.registration
    #[arg(long, value_enum, value_name = "PART")]
    with: Vec<OptionalPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ManifestPart {
    Monitoring,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OptionalPart {
    Registration,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let package = Package {
        flavor: args.flavor,
        image: &args.image,
        namespace: &args.namespace,
        monitoring: !args.without.contains(&ManifestPart::Monitoring),
        registration: args.with.contains(&OptionalPart::Registration),
        dashboard: args.dashboard_host.as_deref(),
        runbook: &args.runbook_url,
        v1beta1: args.v1beta1,
    };
    if args.v1beta1 && args.flavor == Flavor::Ocm {
        bail!("an Open Cluster Management hub converts v1beta1 itself: --v1beta1 is for --flavor standalone");
    }
    let objects = package.objects()?;
    if session.output.format() == Some(OutputFormat::Json) {
        session.output.data(&json!({ "apiVersion": "v1", "kind": "List", "items": objects }))?;
    } else {
        session.output.file(&packaging::to_yaml(&objects)?)?;
    }
    Ok(Outcome::Done)
}

fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().any(char::is_whitespace) {
        return Err("must be the name of an image, without white space".to_owned());
    }
    Ok(text.to_owned())
}

fn runbook(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_graphic() && c != '#';
    match !text.is_empty() && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("must be an address without white space and without #".to_owned()),
    }
}

/// An Ingress accepts only names in lower case.
fn host(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(fits)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match text.len() <= 253 && text.split('.').all(is_label) {
        true => Ok(text.to_owned()),
        false => Err("must be a host name in lower case, without a port".to_owned()),
    }
}

fn namespace(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = !text.is_empty() && text.len() <= aviary_api::names::MAX_NAME && text.chars().all(fits);
    if !is_label || text.starts_with('-') || text.ends_with('-') {
        return Err(
            "must be the name of a namespace: at most 63 lower-case letters, digits and dashes".to_owned()
        );
    }
    Ok(text.to_owned())
}
