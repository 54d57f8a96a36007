//! Converts JSON to CEL values, guided by the schema.
//!
//! Owns the name and the type of a field inside a rule. Must not evaluate anything.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};
use serde_json::{Number, Value};

use crate::format::{Format, date_time, duration, integer};
use crate::structural::{JsonType, Schema};

pub(super) fn convert(value: &Value, schema: Option<&Schema>) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(value) => number(value, schema),
        Value::String(value) => string(value, schema),
        Value::Array(items) => {
            let child = schema.and_then(|schema| schema.items.as_deref());
            CelValue::List(Arc::new(items.iter().map(|item| convert(item, child)).collect()))
        }
        Value::Object(fields) => {
            // The keys of a map are data; field names are code, and escaped.
            let is_map = schema.is_some_and(|schema| schema.additional.is_some());
            let entry = |(name, field): (&String, &Value)| {
                let key = if is_map { name.clone() } else { escape(name) };
                let child = schema.and_then(|schema| schema.child(name));
                (Key::String(Arc::new(key)), convert(field, child))
            };
            CelValue::Map(Map { map: Arc::new(fields.iter().map(entry).collect::<HashMap<_, _>>()) })
        }
    }
}

fn number(value: &Number, schema: Option<&Schema>) -> CelValue {
    let is_float = schema.is_some_and(|schema| schema.kind == Some(JsonType::Number));
    match integer(value).and_then(|whole| i64::try_from(whole).ok()) {
        Some(whole) if !is_float => CelValue::Int(whole),
        _ => CelValue::Float(value.as_f64().unwrap_or(f64::NAN)),
    }
}

fn string(text: &str, schema: Option<&Schema>) -> CelValue {
    let format =
        schema.filter(|schema| schema.kind == Some(JsonType::String)).and_then(|schema| schema.values.format);
    let typed = match format {
        Some(Format::DateTime) => date_time(text).map(CelValue::Timestamp),
        Some(Format::Date) => date_time(&format!("{text}T00:00:00Z")).map(CelValue::Timestamp),
        Some(Format::Duration) => duration(text).map(CelValue::Duration),
        Some(Format::Byte) => base64(text).map(|bytes| CelValue::Bytes(Arc::new(bytes))),
        _ => None,
    };
    typed.unwrap_or_else(|| CelValue::String(Arc::new(text.to_owned())))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut buffer, mut bits) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        buffer = (buffer << 6) | u32::from(six);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits) as u8);
            buffer &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

/// A field's name inside a rule: `namespace` is `__namespace__`, `a-b` is `a__dash__b`.
///
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-expression>
pub(super) fn escape(name: &str) -> String {
    const RESERVED: [&str; 18] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
