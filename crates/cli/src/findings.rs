//! A problem with the input, as one line: file, document, field, message.

use std::fmt;

use serde::Serialize;

use crate::documents::{Document, Place};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Error,
    Warning,
}

/// One problem. Fields that do not apply are left out.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) file: String,
    /// Counted from 1, without empty documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) document: Option<usize>,
    /// The position in a List, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
    /// The reason as a code, for programs.
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Finding {
    /// A file that cannot be read at all.
    pub(crate) fn in_file(file: &str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: file.to_owned(),
            document: None,
            item: None,
            line: None,
            column: None,
            kind: String::new(),
            namespace: String::new(),
            name: String::new(),
            field: String::new(),
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// A document that cannot be parsed.
    pub(crate) fn in_text(place: &Place, at: Option<(usize, usize)>, message: impl Into<String>) -> Self {
        let mut finding = Self::in_file(&place.file, "Unreadable", message);
        finding.document = Some(place.document);
        finding.line = Some(at.map_or(place.line, |(line, _)| line));
        finding.column = at.map(|(_, column)| column);
        finding
    }

    /// A problem with a field of a document.
    pub(crate) fn of(
        document: &Document,
        field: impl Into<String>,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        let mut finding = Self::in_file(&document.place.file, reason, message);
        finding.document = Some(document.place.document);
        finding.item = document.place.item;
        finding.line = Some(document.place.line);
        document.kind().clone_into(&mut finding.kind);
        document.namespace().clone_into(&mut finding.namespace);
        document.name().clone_into(&mut finding.name);
        finding.field = field.into();
        finding
    }

    pub(crate) fn warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The document that the finding is about.
    pub(crate) fn place(&self) -> (&str, Option<usize>, Option<usize>) {
        (&self.file, self.document, self.item)
    }

    /// Whether it is about the same field as the other finding, or about a part of that field.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let rest = self.field.strip_prefix(other.field.as_str());
        self.place() == other.place()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(document) = self.document {
            write!(f, "{}: ", numbered(document, self.item, &self.kind, &self.namespace, &self.name))?;
        }
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        f.write_str(&self.message)
    }
}

/// `document 2, item 3 (Kind namespace/name)`.
pub(crate) fn numbered(
    document: usize,
    item: Option<usize>,
    kind: &str,
    namespace: &str,
    name: &str,
) -> String {
    let mut text = format!("document {document}");
    if let Some(item) = item {
        text.push_str(&format!(", item {item}"));
    }
    let name =
        if namespace.is_empty() || name.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let what: Vec<&str> = [kind, &name].into_iter().filter(|word| !word.is_empty()).collect();
    if !what.is_empty() {
        text.push_str(&format!(" ({})", what.join(" ")));
    }
    text
}
