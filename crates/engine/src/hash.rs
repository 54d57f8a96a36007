//! The spec hash: identifies the content of a config, as 64 hex digits.
//!
//! Computed exactly as OCM's Go code computes it, so that hashes written by other managers and by
//! us are the same: the object without `apiVersion`, `kind`, `metadata` and `status`, encoded as
//! Go's `encoding/json` encodes it.

use std::fmt::{self, Write as _};

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

use crate::name::{Text, same};

/// Lower-case hex SHA-256 of a config's content.
#[derive(Clone, Eq, PartialOrd, Ord)]
pub struct Hash(Text);

impl PartialEq for Hash {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl std::hash::Hash for Hash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Hash {
    /// Takes a hash from a stored object, unchecked. An empty text means that none was recorded.
    pub fn recorded(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A prefix for messages.
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

/// The content of an object: everything except identity and status.
pub fn content(object: &Value) -> Value {
    match object {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(key, _)| !is_identity(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Leaves the content of an object.
pub(crate) fn retain_content(object: &mut Value) {
    if let Value::Object(fields) = object {
        fields.retain(|key, _| !is_identity(key));
    }
}

fn is_identity(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata" | "status")
}

/// The spec hash of a whole object.
pub fn spec_hash(object: &Value) -> Hash {
    spec_hash_and_size(object).0
}

/// The spec hash, and the size of the content in bytes.
pub(crate) fn spec_hash_and_size(object: &Value) -> (Hash, usize) {
    let text = match object {
        Value::Object(fields) => {
            let mut out = String::new();
            write_object(&mut out, fields, |key| !is_identity(key));
            out
        }
        other => canonical(other),
    };
    (Hash(hex_sha256(text.as_bytes())), text.len())
}

/// The hash of a value, without removing anything.
pub fn digest(value: &Value) -> Hash {
    Hash(hex_sha256(canonical(value).as_bytes()))
}

/// The hash of a list of values, without removing anything.
pub fn digest_of_list(items: &[Value]) -> Hash {
    let mut out = String::new();
    write_list(&mut out, items);
    Hash(hex_sha256(out.as_bytes()))
}

/// The hash of bytes, for things that are not configs (what a work was rendered from).
pub fn of_bytes(bytes: &[u8]) -> Hash {
    Hash(hex_sha256(bytes))
}

fn hex_sha256(bytes: &[u8]) -> Text {
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(out, "{byte:02x}");
    }
    out.into()
}

/// The value as Go's `encoding/json` writes it.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => write_list(out, items),
        Value::Object(fields) => write_object(out, fields, |_| true),
    }
}

fn write_list(out: &mut String, items: &[Value]) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_value(out, item);
    }
    out.push(']');
}

fn write_object(out: &mut String, fields: &Map<String, Value>, keep: impl Fn(&str) -> bool) {
    // Sorted here, whatever map type serde_json was built with.
    let mut entries: Vec<_> = fields.iter().filter(|(key, _)| keep(key)).collect();
    entries.sort_by_key(|(key, _)| key.as_str());
    out.push('{');
    for (i, (key, value)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

/// Kubernetes decodes a number as int64 if it fits, otherwise as float64; Go has its own format for
/// floats.
fn write_number(out: &mut String, number: &Number) {
    if let Some(int) = number.as_i64() {
        let _ = write!(out, "{int}");
    } else if let Some(float) = number.as_f64() {
        write_float(out, float);
    }
}

fn write_float(out: &mut String, float: f64) {
    if float == 0.0 {
        out.push_str(if float.is_sign_negative() { "-0" } else { "0" });
        return;
    }
    let magnitude = float.abs();
    if (1e-6..1e21).contains(&magnitude) {
        // Rust prints the shortest digits that read back the same, as Go does, and never an
        // exponent here.
        let _ = write!(out, "{float}");
        return;
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let sign = if exponent.starts_with('-') { '-' } else { '+' };
    let exponent = exponent.trim_start_matches('-');
    // Go pads the exponent to two digits, and its JSON encoder removes a leading zero of a negative
    // one again.
    let padding = if sign == '+' && exponent.len() < 2 { "0" } else { "" };
    let _ = write!(out, "{digits}e{sign}{padding}{exponent}");
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
