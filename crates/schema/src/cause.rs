//! Causes: the entries of `details.causes` in an API server's error, and the field paths in them.
//!
//! Owns the messages that every check shares ("Invalid value: …"). Must not decide whether
//! something is wrong.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Why a field is rejected, as in `details.causes[].reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum CauseReason {
    #[serde(rename = "FieldValueRequired")]
    Required,
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    #[serde(rename = "FieldValueTypeInvalid")]
    TypeInvalid,
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    #[serde(rename = "FieldValueTooLong")]
    TooLong,
    #[serde(rename = "FieldValueTooMany")]
    TooMany,
    /// An unknown field under strict field validation. An API server answers with 400, not 422.
    #[serde(rename = "UnknownField")]
    UnknownField,
}

impl CauseReason {
    /// The machine-readable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::UnknownField => "UnknownField",
        }
    }
}

impl fmt::Display for CauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    pub reason: CauseReason,
    pub message: String,
    pub field: String,
}

impl Cause {
    pub(crate) fn required(path: &Path<'_>, detail: &str) -> Self {
        Self::new(CauseReason::Required, path, detailed("Required value", detail))
    }

    pub(crate) fn forbidden(path: &Path<'_>, detail: &str) -> Self {
        Self::new(CauseReason::Forbidden, path, detailed("Forbidden", detail))
    }

    pub(crate) fn invalid(path: &Path<'_>, value: &Value, detail: &str) -> Self {
        Self::new(CauseReason::Invalid, path, detailed(&format!("Invalid value: {}", shown(value)), detail))
    }

    /// `got` is the JSON type found, or the text that does not have the wanted format.
    pub(crate) fn type_invalid(path: &Path<'_>, wanted: &str, got: &str) -> Self {
        let message =
            format!("Invalid value: {got:?}: {} in body must be of type {wanted}: {got:?}", path.in_body());
        Self::new(CauseReason::TypeInvalid, path, message)
    }

    pub(crate) fn not_supported<'v>(
        path: &Path<'_>,
        value: &Value,
        supported: impl Iterator<Item = &'v Value>,
    ) -> Self {
        let supported: Vec<String> = supported
            .map(|value| match value {
                Value::String(text) => format!("{text:?}"),
                other => format!("{:?}", other.to_string()),
            })
            .collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", shown(value), supported.join(", "));
        Self::new(CauseReason::NotSupported, path, message)
    }

    pub(crate) fn duplicate(path: &Path<'_>, value: &Value) -> Self {
        Self::new(CauseReason::Duplicate, path, format!("Duplicate value: {}", shown(value)))
    }

    pub(crate) fn too_long(path: &Path<'_>, max: u64) -> Self {
        Self::new(CauseReason::TooLong, path, format!("Too long: may not be more than {max} bytes"))
    }

    pub(crate) fn too_many(path: &Path<'_>, actual: usize, max: u64) -> Self {
        Self::new(CauseReason::TooMany, path, format!("Too many: {actual}: must have at most {max} items"))
    }

    pub(crate) fn unknown_field(field: &str) -> Self {
        Self {
            reason: CauseReason::UnknownField,
            message: format!("unknown field {field:?}"),
            field: field.to_owned(),
        }
    }

    pub(crate) fn new(reason: CauseReason, path: &Path<'_>, message: String) -> Self {
        Self { reason, message, field: path.to_string() }
    }
}

impl fmt::Display for Cause {
    /// As a `Status` message lists it: `spec.a: Required value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

fn detailed(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Null => "\"null\"".to_owned(),
        other => other.to_string(),
    }
}

/// A field path that is cheap until a cause needs it: each level borrows the one above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    pub(crate) fn root() -> Self {
        Self { parent: None, segment: Segment::Root }
    }

    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Field(name) }
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), segment: Segment::Index(index) }
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Key(key) }
    }

    /// The path in the messages of value checks: at the root it is empty, not `<nil>`.
    pub(crate) fn in_body(&self) -> String {
        let mut text = String::new();
        self.render(&mut text);
        text
    }

    fn render(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.render(out);
        }
        match self.segment {
            Segment::Root => {}
            Segment::Field(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Segment::Index(index) => out.push_str(&format!("[{index}]")),
            Segment::Key(key) => {
                out.push('[');
                out.push_str(key);
                out.push(']');
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    /// The root is `<nil>`, as in an API server's causes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.in_body();
        f.write_str(if text.is_empty() { "<nil>" } else { &text })
    }
}
