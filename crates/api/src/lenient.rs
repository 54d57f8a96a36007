//! Deserialisers for fields that may be malformed in a stored object.
//!
//! Each of them accepts any JSON: a malformed field must not make its object unreadable.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads `null` as the type's default, as the API server's own clients do.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Reads an integer. A number out of range is clamped; anything else becomes `None`.
pub(crate) fn whole<'de, D>(from: D) -> Result<Option<i64>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match Option::<Value>::deserialize(from)? {
        Some(Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_u64().map(|_| i64::MAX))
            // `as` saturates, which clamps the value.
            .or_else(|| number.as_f64().map(|float| float as i64)),
        _ => None,
    })
}

/// Reads a string; anything else becomes `None`.
pub(crate) fn text<'de, D>(from: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match Option::<Value>::deserialize(from)? {
        Some(Value::String(text)) => Some(text),
        _ => None,
    })
}
