//! `aviary crds`: prints the custom resource definitions.

use anyhow::Context as _;
use aviary_api::crds;
use serde_json::json;

use super::{Outcome, Session};
use crate::conversion;
use crate::output::OutputFormat;
use crate::packaging::NAMESPACE;

const DESCRIPTION: &str = "\
Print the custom resource definitions, for kubectl apply -f -.

Includes every kind that Aviary serves, reads or writes: the add-on kinds, and those of clusters, placements and works, \
which an Open Cluster Management hub already has. With -o json the output is one List.";

/// Print the custom resource definitions, for kubectl apply -f -
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  Install them
    $ aviary crds | kubectl apply --server-side -f -

  List their names
    $ aviary crds -o json | jq -r '.items[].metadata.name'")]
pub(crate) struct Args {
    /// Also serve v1beta1 of the add-on kinds, converted by the managers in this namespace
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, default_missing_value = NAMESPACE, require_equals = true)]
    v1beta1: Option<String>,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let all = match &args.v1beta1 {
        Some(namespace) => crds::with_beta(&conversion::service(namespace)),
        None => crds::all(),
    };
    if session.output.format() == Some(OutputFormat::Json) {
        session.output.data(&json!({ "apiVersion": "v1", "kind": "List", "items": all }))?;
        return Ok(Outcome::Done);
    }
    let mut stream = String::new();
    for crd in &all {
        let yaml = crds::to_yaml(crd)
            .with_context(|| format!("failed to write {} as YAML", crds::file_name(crd)))?;
        stream.push_str("---\n");
        stream.push_str(yaml.trim_end());
        stream.push('\n');
    }
    session.output.file(&stream)?;
    Ok(Outcome::Done)
}
