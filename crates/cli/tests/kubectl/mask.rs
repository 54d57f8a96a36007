//! Masks everything that differs between runs or between versions of kubectl.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Patterns that are masked everywhere.
static ANYWHERE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        // Old clients always colour their output.
        (r"\x1b\[[0-9;]*m", ""),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
        (r#"("?resourceVersion"?: ?)"\d+""#, r#"$1"RV""#),
        (r"(Resource Version: +)\d+", "${1}RV"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"(LIVE|MERGED)-\d+", "$1"),
        // Only in 1.27.
        (r"(?m) annotate$", " annotated"),
        // Since 1.34.
        (r#"" deleted from \S+ namespace"#, r#"" deleted"#),
    ];
    rules.map(|(pattern, mask)| (Regex::new(pattern).unwrap(), mask)).into()
});

/// The cell of a table with an age.
static AGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(^|\s)(\d+[smhdy](?:\d+[smhdy])?\s*)(\s|$)").unwrap());

/// `desk` is the directory of the test, with a trailing slash.
pub(crate) fn mask(told: &str, desk: &Path) -> String {
    let mut told = told.replace(&*desk.to_string_lossy(), "");
    for (pattern, mask) in ANYWHERE.iter() {
        told = pattern.replace_all(&told, *mask).into_owned();
    }
    without_managers(&told).map(age).collect()
}

/// Up to 1.20 kubectl shows managed fields; later versions hide them.
fn without_managers(told: &str) -> impl Iterator<Item = &str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut hidden: Option<usize> = None;
    told.split_inclusive('\n').filter(move |line| {
        let text = line.trim();
        if let Some(start) = hidden {
            let goes_on = indent(line) > start || indent(line) == start && text.starts_with(['-', ']']);
            if goes_on {
                return false;
            }
            hidden = None;
        }
        if matches!(text, "managedFields:" | "\"managedFields\": [" | "Managed Fields:") {
            hidden = Some(indent(line));
        }
        hidden.is_none()
    })
}

fn age(line: &str) -> String {
    // A duration in an object is part of the test.
    if line.contains(": ") || line.starts_with("$ ") {
        return line.to_owned();
    }
    let cell = |found: &Captures<'_>| {
        let width = found[2].trim_end_matches('\n').len();
        format!("{}{:<width$}{}", &found[1], "AGE", &found[3])
    };
    AGE.replace_all(line.trim_end_matches('\n'), cell).trim_end().to_owned() + "\n"
}
