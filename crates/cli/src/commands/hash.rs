//! `aviary hash`: prints the spec hash of each document, as it appears in statuses and on works.

use aviary_engine::hash;
use serde::Serialize;

use super::{Files, Outcome, Session};
use crate::documents::{self, Document};
use crate::output::Printout;

const DESCRIPTION: &str = "\
Print the spec hash of each document.

The spec hash is the SHA-256 of an object without apiVersion, kind, metadata and status. It shows whether a config has \
changed: only a changed hash starts a rollout. Values that are not Kubernetes objects are hashed as they are.";

const EXAMPLES: &str = "\
Examples:
  $ aviary hash -f hub-config.yaml
  $ kubectl get addonhubconfigs -o yaml | aviary hash -f -
  $ echo '{\"spec\":{\"test\":1}}' | aviary hash -f -";

const STRUCTURE: &str = "\
Output, one line each: the hash, the file and document, and its kind and name.

Output with -o json:
  documents[]  {hash, file, document, item, line, apiVersion, kind, namespace, name};
               item is the position in a List; fields that do not apply are absent

Exit codes:
  0 success; 1 a file is invalid and nothing was hashed; 2 wrong usage";

/// Print the spec hash of each document
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
}

#[derive(Serialize)]
struct Hashes<'a> {
    documents: Vec<Hashed<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hashed<'a> {
    hash: String,
    file: &'a str,
    document: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
    line: usize,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

impl<'a> Hashed<'a> {
    fn of(document: &'a Document) -> Self {
        let place = &document.place;
        Self {
            hash: hash::spec_hash(&document.value).to_string(),
            file: &place.file,
            document: place.document,
            item: place.item,
            line: place.line,
            api_version: document.api_version(),
            kind: document.kind(),
            namespace: document.namespace(),
            name: document.name(),
        }
    }
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let read = documents::read(&args.files.all(), args.files.recursive, &mut session.stdin);
    if !read.faults.is_empty() {
        return Ok(session.output.refuse(&read.faults));
    }
    let hashes = Hashes { documents: read.documents.iter().map(Hashed::of).collect() };
    if session.output.data(&hashes)? {
        return Ok(Outcome::Done);
    }
    let mut text = Printout::default();
    for (document, hashed) in read.documents.iter().zip(&hashes.documents) {
        text.line(format_args!("{}  {}", hashed.hash, document.said()));
    }
    session.output.text(&text)?;
    Ok(Outcome::Done)
}
