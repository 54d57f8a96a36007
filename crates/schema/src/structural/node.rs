//! Reads the keywords of one schema node.
//!
//! Owns the JSON type of every keyword. Must not know the meaning of a keyword.

use serde_json::{Map, Number, Value, json};

use crate::cause::{Cause, Path};

/// Reads one node's keywords; a keyword of the wrong JSON type becomes a cause and counts as
/// absent.
pub(super) struct NodeReader<'n> {
    fields: &'n Map<String, Value>,
    pub(super) path: &'n Path<'n>,
    pub(super) causes: &'n mut Vec<Cause>,
}

impl<'n> NodeReader<'n> {
    pub(super) fn of(value: &'n Value, path: &'n Path<'n>, causes: &'n mut Vec<Cause>) -> Option<Self> {
        let Value::Object(fields) = value else {
            causes.push(Cause::invalid(path, value, "must be a schema object"));
            return None;
        };
        Some(Self { fields, path, causes })
    }

    pub(super) fn get(&self, keyword: &str) -> Option<&'n Value> {
        self.fields.get(keyword).filter(|value| !value.is_null())
    }

    pub(super) fn forbid(&mut self, keyword: &str, detail: &str) {
        self.causes.push(Cause::forbidden(&self.path.field(keyword), detail));
    }

    pub(super) fn read<T>(
        &mut self,
        keyword: &str,
        wanted: &str,
        read: impl FnOnce(&'n Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(keyword)?;
        let found = read(value);
        if found.is_none() {
            self.causes.push(Cause::invalid(&self.path.field(keyword), value, &format!("must be {wanted}")));
        }
        found
    }

    pub(super) fn flag(&mut self, keyword: &str) -> bool {
        self.read(keyword, "a boolean", Value::as_bool).unwrap_or(false)
    }

    pub(super) fn text(&mut self, keyword: &str) -> Option<&'n str> {
        self.read(keyword, "a string", Value::as_str)
    }

    pub(super) fn count(&mut self, keyword: &str) -> Option<u64> {
        self.read(keyword, "a whole number, not negative", Value::as_u64)
    }

    pub(super) fn number(&mut self, keyword: &str) -> Option<Number> {
        self.read(keyword, "a number", Value::as_number).cloned()
    }

    pub(super) fn list(&mut self, keyword: &str) -> &'n [Value] {
        self.read(keyword, "an array", Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn names(&mut self, keyword: &str) -> Vec<String> {
        let texts =
            |value: &Value| value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        self.read(keyword, "an array of strings", texts).unwrap_or_default()
    }

    pub(super) fn choice(&mut self, keyword: &str, choices: &[&str]) -> Option<&'n str> {
        let name = self.text(keyword)?;
        if choices.contains(&name) {
            return Some(name);
        }
        let supported: Vec<Value> = choices.iter().map(|choice| json!(choice)).collect();
        self.causes.push(Cause::not_supported(&self.path.field(keyword), &json!(name), supported.iter()));
        None
    }

    pub(super) fn refuse_unsupported(&mut self) {
        for keyword in ["$ref", "definitions", "patternProperties", "additionalItems", "dependencies", "id"] {
            if self.get(keyword).is_some() {
                self.forbid(keyword, &format!("{keyword} is not supported"));
            }
        }
        if self.flag("uniqueItems") {
            self.forbid(
                "uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
    }
}
