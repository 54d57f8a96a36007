//! Deserialisers for fields that a stored object may hold in an odd form.
//!
//! Each of them gives a value for anything that is JSON: an odd field must not make its object unreadable.

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

/// Reads a whole number: what does not fit is clamped to the nearest value that does, what is no number is `None`.
pub(crate) fn whole<'de, D>(from: D) -> Result<Option<i64>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match Option::<Value>::deserialize(from)? {
        Some(Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_u64().map(|_| i64::MAX))
            // `as` saturates, which is the clamping wanted here.
            .or_else(|| number.as_f64().map(|float| float as i64)),
        _ => None,
    })
}

/// Reads a string, and anything that is none as `None`.
pub(crate) fn text<'de, D>(from: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match Option::<Value>::deserialize(from)? {
        Some(Value::String(text)) => Some(text),
        _ => None,
    })
}
