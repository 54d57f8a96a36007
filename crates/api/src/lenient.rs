//! Deserialisers for fields that may be malformed in a stored object.
//!
//! Each of them accepts any JSON: a malformed field must not make its object unreadable.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
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

/// Reads a string; anything else becomes empty.
pub(crate) fn text_or_empty<'de, D>(from: D) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(text(from)?.unwrap_or_default())
}

/// Reads a boolean; anything else becomes `None`.
pub(crate) fn flag<'de, D>(from: D) -> Result<Option<bool>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(Value::deserialize(from)?.as_bool())
}

/// Reads a list of anything; what is no list becomes an empty one.
pub(crate) fn values<'de, D>(from: D) -> Result<Vec<Value>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match Value::deserialize(from)? {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

/// Reads a list of strings; what is no string is left out.
pub(crate) fn texts<'de, D>(from: D) -> Result<Vec<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let is_text = |item| match item {
        Value::String(text) => Some(text),
        _ => None,
    };
    Ok(values(from)?.into_iter().filter_map(is_text).collect())
}

/// Reads a list of objects; what is no object is left out. Nothing is buffered.
pub(crate) fn list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_any(LenientList(PhantomData))
}

/// Reads an object; anything else becomes `None`. Nothing is buffered.
///
/// The type must read any object, so its fields are read with the functions of this module.
pub(crate) fn object<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_any(LenientObject(PhantomData))
}

/// Reads an object; anything else becomes the type's default.
pub(crate) fn object_or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(object(from)?.unwrap_or_default())
}

struct LenientObject<T>(PhantomData<T>);
struct LenientList<T>(PhantomData<T>);

/// What a visitor does with everything but objects and lists: it becomes nothing.
macro_rules! scalars_are_nothing {
    () => {
        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("anything")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for LenientObject<T> {
    type Value = Option<T>;
    scalars_are_nothing!();

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for LenientObject<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for LenientList<T> {
    type Value = Vec<T>;
    scalars_are_nothing!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(LenientObject(PhantomData))? {
            read.extend(item);
        }
        Ok(read)
    }
}
