//! `aviary lint`: the checks of admission and of the engine, offline.

mod engine;
mod field;

use std::collections::HashMap;

use serde::Serialize;

use super::{Files, Outcome, Session};
use crate::checks;
use crate::documents;
use crate::findings::{Finding, Severity};
use crate::kinds::Kinds;
use crate::output::{Output, Style, counted};
use crate::snapshot;

const DESCRIPTION: &str = "\
Check files as the API server and the manager would, without either.

Checked are: apiVersion, kind, names and scope; the schema and the rules of our kinds, with fields that a kind does not \
have; the same object given twice; and all that the manager would complain about: install and rollout strategies, canaries \
that wait for each other, configs and versions, templates with their variables, what instances override, names of clusters. \
What an object refers to and the files do not hold is only a warning, and so is what is odd in a status.";

const EXAMPLES: &str = "\
Examples:
  $ aviary lint -f addon.yaml
  $ kubectl kustomize ./overlays/prod | aviary lint -f -
  $ aviary lint -f deploy/ -o json | jq -r '.findings[].message'";

const STRUCTURE: &str = "\
Output, one line each; what cannot be read at all is told on standard error:
  FILE: document N (Kind name): FIELD: what is wrong
  FILE: document N (Kind name): FIELD: warning: what is odd

Output with -o json:
  documents, errors, warnings   how many
  findings[]   {severity, file, document, item, line, column, kind, namespace, name,
               field, reason, message}; item is the place in a List; what a finding
               does not concern is left out

Exit codes:
  0 no error, though there may be warnings; 1 errors; 2 wrong usage";

/// Check files as the API server and the manager would, without either
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
}

#[derive(Serialize)]
struct Report<'a> {
    documents: usize,
    errors: usize,
    warnings: usize,
    findings: &'a [Finding],
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let kinds = Kinds::new()?;
    let read = documents::read(&args.files.files, &mut session.stdin);
    let documents = read.documents.len();
    let mut order: HashMap<String, usize> = HashMap::new();
    for document in &read.documents {
        let next = order.len();
        order.entry(document.place.file.to_string()).or_insert(next);
    }
    let checked = checks::check(read.documents, &kinds)?;
    let snapshot = snapshot::build(&checked.documents, &[], &kinds);
    let engine = engine::findings(&snapshot, &checked.documents);
    let mut found = merge(checked.findings, snapshot.findings.iter().cloned().chain(engine));
    found.sort_by_key(|finding| (order.get(&finding.file).copied(), finding.document, finding.item));
    let unread = read.faults.len();
    let findings: Vec<Finding> = read.faults.into_iter().chain(found).collect();
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let outcome = if errors == 0 { Outcome::Done } else { Outcome::NotDone };
    let report = Report { documents, errors, warnings: findings.len() - errors, findings: &findings };
    if session.output.data(&report)? {
        return Ok(outcome);
    }
    let (unreadable, rest) = findings.split_at(unread);
    session.output.refuse(unreadable);
    let mut text = lines(rest, &session.output);
    text.push_str(&summary(&report, args, &session.program, !snapshot.addons.is_empty()));
    session.output.text(&text)?;
    Ok(outcome)
}

/// Puts what admission and the engine found together, each thing once.
///
/// Where both speak of the very same field the engine's word goes first, because it is made for people; where admission refuses more
/// than that field, its word stands for both.
fn merge(admission: Vec<Finding>, engine: impl Iterator<Item = Finding>) -> Vec<Finding> {
    let mut found: Vec<Vec<Finding>> = Vec::new();
    let mut known: HashMap<(String, Option<usize>, Option<usize>), usize> = HashMap::new();
    let admission = admission.into_iter().map(|finding| (finding, false));
    for (finding, is_engine) in admission.chain(engine.map(|finding| (finding, true))) {
        let index =
            *known.entry((finding.file.clone(), finding.document, finding.item)).or_insert(found.len());
        match found.get_mut(index) {
            Some(there) if is_engine => add(there, finding),
            Some(there) => there.push(finding),
            None => found.push(vec![finding]),
        }
    }
    found.into_iter().flatten().collect()
}

fn add(there: &mut Vec<Finding>, finding: Finding) {
    let same_field = |known: &Finding| known.field == finding.field;
    let refused = |known: &&Finding| known.is_error() && !known.field.is_empty();
    if there.iter().any(|known| same_field(known) && known.message == finding.message) {
        return;
    }
    if finding.is_error() && there.iter().filter(refused).any(same_field) {
        there.retain(|known| !same_field(known) || known.reason == finding.reason);
        there.push(finding);
    } else if !there.iter().filter(refused).any(|known| !same_field(known) && finding.is_within(known)) {
        there.push(finding);
    }
}

fn lines(findings: &[Finding], output: &Output) -> String {
    let mut text = String::new();
    for finding in findings {
        let style = if finding.severity == Severity::Error { Style::Red } else { Style::Yellow };
        text.push_str(&output.paint.paint(style, &finding.to_string()));
        text.push('\n');
    }
    text
}

fn summary(report: &Report<'_>, args: &Args, program: &str, has_addon: bool) -> String {
    let of = counted(report.documents, "document");
    let wrong = match (report.errors, report.warnings) {
        (0, 0) => "nothing wrong".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    };
    let next = match report.errors {
        0 if has_addon => format!(" Next: {program} plan {}", args.files.typed()),
        0 => String::new(),
        _ => format!(" Mend and run again: {program} lint {}", args.files.typed()),
    };
    format!("{of}: {wrong}.{next}\n")
}
