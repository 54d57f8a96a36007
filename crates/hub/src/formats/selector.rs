//! `labelSelector` and `fieldSelector` of a list, a watch or a deletecollection.
//!
//! Owns their syntax, their error texts (those of a real API server; of several problems the first)
//! and what they match. Must not know which fields a kind can be selected by: the caller asks
//! [`FieldSelector::paths`] and answers 400 itself.

mod field;
mod label;
pub(crate) mod syntax;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;

/// Why a selector was refused; the text goes into a 400 as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("unable to parse requirement: {0}")]
    Requirement(String),
    #[error("found '{found}', expected: {expected}")]
    Unexpected { found: String, expected: &'static str },
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NotATerm { selector: String, term: String },
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}
