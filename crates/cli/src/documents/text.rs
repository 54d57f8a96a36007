//! Parses text as documents: YAML streams and JSON, in the same way as kubectl.

use aviary_schema::MAX_DEPTH;
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error as YamlError, UserMessageFormatter, options};

use super::{Document, Place, Reading};
use crate::findings::Finding;

pub(super) fn parse(file: &str, text: &str) -> Reading {
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json {
        match json(file, text) {
            Ok(documents) => return Reading { documents, faults: Vec::new() },
            Err(fault) if file.ends_with(".json") => {
                return Reading { documents: Vec::new(), faults: vec![*fault] };
            }
            // The text may still be YAML.
            Err(_) => {}
        }
    }
    yaml(file, text)
}

fn json(file: &str, text: &str) -> Result<Vec<Document>, Box<Finding>> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let rest = text.get(stream.byte_offset()..).unwrap_or_default();
        let begins = text.len() - rest.trim_start().len();
        let line = text.get(..begins).unwrap_or_default().matches('\n').count() + 1;
        let place = Place { file: file.into(), document: documents.len() + 1, item: None, line };
        match stream.next() {
            None => return Ok(documents),
            Some(Ok(value)) => documents.push(Document { place, value }),
            Some(Err(error)) => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or(&message);
                let message = if message == "recursion limit exceeded" {
                    too_deep()
                } else {
                    format!("is not JSON: {message}")
                };
                let at = Some((error.line(), error.column()));
                return Err(Box::new(Finding::in_text(&place, at, message)));
            }
        }
    }
}

fn yaml(file: &str, text: &str) -> Reading {
    let mut read = Reading::default();
    let mut number = 0;
    for part in split(text) {
        let Some(first) = part.text.lines().position(says_something) else { continue };
        number += 1;
        let place = Place { file: file.into(), document: number, item: None, line: part.line + first };
        match yaml_value(part.text) {
            Ok(Value::Null) => number -= 1,
            Ok(value) => read.documents.push(Document { place, value }),
            Err(error) => read.faults.push(unreadable(&place, part.line, &error)),
        }
    }
    read
}

/// Whether a line has content: it is not blank, a comment, a directive, or only a marker.
fn says_something(line: &str) -> bool {
    let line = line.strip_prefix("---").or_else(|| line.strip_prefix("...")).unwrap_or(line).trim();
    !line.is_empty() && !line.starts_with(['#', '%'])
}

struct Part<'t> {
    /// Counted from 1.
    line: usize,
    text: &'t str,
}

/// Splits a stream into documents, each with the marker that starts it. A marker starts at the
/// first column, where no other valid YAML looks like one.
fn split(text: &str) -> Vec<Part<'_>> {
    let is_marker = |line: &str, marker: &str| {
        line.strip_prefix(marker)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
    };
    let mut parts = Vec::new();
    let (mut begins, mut begins_line) = (0, 1);
    let mut at = 0;
    let mut cut = |from: usize, to: usize, line: usize| {
        parts.extend(text.get(from..to).filter(|part| !part.is_empty()).map(|text| Part { line, text }));
    };
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        if is_marker(line, "---") {
            cut(begins, at, begins_line);
            (begins, begins_line) = (at, index + 1);
        } else if is_marker(line, "...") {
            cut(begins, at, begins_line);
            (begins, begins_line) = (end, index + 2);
        }
        at = end;
    }
    cut(begins, text.len(), begins_line);
    parts
}

fn yaml_value(text: &str) -> Result<Value, YamlError> {
    // Reading limits the size of the text. These limits bound what a small text can expand to.
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH + 20,
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_total_scalar_bytes: usize::MAX,
    };
    // Parses numbers as Go does, so that a hash computed here equals the one that the hub computes.
    serde_saphyr::from_str_with_options(
        text,
        options! { budget: budget, with_snippet: false, legacy_octal_numbers: true },
    )
}

fn unreadable(place: &Place, part_line: usize, error: &YamlError) -> Finding {
    let whole = error.render_with_formatter(&UserMessageFormatter);
    let (message, _) = whole.rsplit_once(" at line ").unwrap_or((&whole, ""));
    let at = error.location().map(|location| {
        let line = usize::try_from(location.line()).unwrap_or(1);
        (part_line + line.saturating_sub(1), usize::try_from(location.column()).unwrap_or(1))
    });
    let message = match error {
        YamlError::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        _ if message.contains("recursion limit") => too_deep(),
        _ if message.contains("limits breached") || message.contains("alias replay") => {
            "becomes too large: its aliases repeat too much".to_owned()
        }
        _ => format!("is not YAML: {message}"),
    };
    Finding::in_text(place, at, message)
}

fn too_deep() -> String {
    format!("nests too deep: an object may have {MAX_DEPTH} levels")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(usize, usize, String)> {
        let read = parse("f.yaml", text);
        assert!(read.faults.is_empty(), "{:?}", read.faults);
        let told =
            |document: Document| (document.place.document, document.place.line, document.value.to_string());
        read.documents.into_iter().map(told).collect()
    }

    #[test]
    fn a_stream_is_cut_at_its_markers_and_empty_documents_do_not_count() {
        let text = "# head\n---\n# nothing\n---\na: 1\n--- # two\nb: |\n  ---\n  x\n...\n---\n---\nc: 3\n";
        let third = (3, 13, r#"{"c":3}"#.to_owned());
        assert_eq!(
            read(text),
            [(1, 5, r#"{"a":1}"#.to_owned()), (2, 7, r#"{"b":"---\nx\n"}"#.to_owned()), third]
        );
    }

    #[test]
    fn json_documents_may_follow_one_another() {
        assert_eq!(read("{\"a\":1}\n{\"b\":2}"), [(1, 1, r#"{"a":1}"#.into()), (2, 2, r#"{"b":2}"#.into())]);
        assert_eq!(read("{a: 1}\n---\n{b: 2}"), [(1, 1, r#"{"a":1}"#.into()), (2, 3, r#"{"b":2}"#.into())]);
    }

    #[test]
    fn values_are_read_as_go_reads_them() {
        let text = "a: 0777\nb: yes\nc: 1.0\nd: 2022-11-02T05:48:12Z\ne: ~\nf: 25%";
        assert_eq!(
            read(text)[0].2,
            r#"{"a":511,"b":true,"c":1.0,"d":"2022-11-02T05:48:12Z","e":null,"f":"25%"}"#
        );
    }
}
