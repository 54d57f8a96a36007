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
use crate::output::{Output, Printout, Style, counted};
use crate::snapshot;

const DESCRIPTION: &str = "\
Check files as the API server and the manager would, offline.

Checks apiVersion, kind, names and scope; the schema and the rules of Aviary's kinds, including unknown fields; \
duplicate objects; and everything that the manager would report: install and rollout strategies, canaries \
that wait for each other, configs and versions, templates and their variables, overrides of instances, cluster names. \
A reference to an object that is not in the files is only a warning, and so is a problem in a status.";

const EXAMPLES: &str = "\
Examples:
  $ aviary lint -f addon.yaml
  $ aviary lint deploy/ -R
  $ kubectl kustomize ./overlays/prod | aviary lint -f -
  $ aviary lint -f deploy/ -o json | jq -r '.findings[].message'";

const STRUCTURE: &str = "\
Output, one line each; files that cannot be read are reported on standard error:
  FILE: document N (Kind name): FIELD: what is wrong
  FILE: document N (Kind name): FIELD: warning: what is suspicious

Output with -o json:
  documents, errors, warnings   counts
  findings[]   {severity, file, document, item, line, column, kind, namespace, name,
               field, reason, message}; item is the position in a List; fields that
               do not apply are absent

Exit codes:
  0 no errors, but perhaps warnings; 1 errors; 2 wrong usage";

/// Check files as the API server and the manager would, offline
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = EXAMPLES, after_long_help = format!("{STRUCTURE}\n\n{EXAMPLES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
}

#[derive(Serialize)]
struct LintReport<'a> {
    documents: usize,
    errors: usize,
    warnings: usize,
    findings: &'a [Finding],
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let kinds = Kinds::new()?;
    let read = documents::read(&args.files.all(), args.files.recursive, &mut session.stdin);
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
    let report = LintReport { documents, errors, warnings: findings.len() - errors, findings: &findings };
    if session.output.data(&report)? {
        return Ok(outcome);
    }
    let (unreadable, rest) = findings.split_at(unread);
    session.output.refuse(unreadable);
    let mut text = lines(rest, &session.output);
    text.line(summary(&report, args, &session.program, !snapshot.addons.is_empty()));
    session.output.text(&text)?;
    Ok(outcome)
}

/// Merges the findings of admission and of the engine, each problem once.
///
/// If both report the same field, the engine's message wins, because it is easier to understand. If
/// admission rejects more than that field, its message replaces both.
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

fn lines(findings: &[Finding], output: &Output) -> Printout {
    let mut text = Printout::default();
    for finding in findings {
        let style = if finding.severity == Severity::Error { Style::Red } else { Style::Yellow };
        text.line(output.paint.paint(style, &finding.to_string()));
    }
    text
}

fn summary(report: &LintReport<'_>, args: &Args, program: &str, has_addon: bool) -> String {
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
        _ => format!(" Fix and run again: {program} lint {}", args.files.typed()),
    };
    format!("{of}: {wrong}.{next}")
}
