//! Decoding one message by its table. Must not know any kind. The depth of decoding is bounded,
//! because tables do not recurse.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::super::json::JsonObject;
use super::{
    ProtobufError, text,
    wire::{Reader, Wire},
};

/// A value costs some hundred bytes in memory but may take only two in the body.
pub(super) const MAX_VALUES: usize = 250_000;

/// Go's zero time, the beginning of the year 1, which it prints as null.
const ZERO_TIME: i64 = -62_135_596_800;

#[derive(Debug)]
pub(super) struct Message(pub(super) &'static [MessageField]);

#[derive(Debug)]
pub(super) struct MessageField {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) type_: FieldType,
    pub(super) printed: Printed,
}

/// When Go prints a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Printed {
    /// A value without `omitempty`, and any struct: always, with its zero value if need be.
    Always,
    /// A value with `omitempty` (a time: `omitzero`): unless it is zero.
    NonZero,
    /// A pointer: if it was sent.
    IfSent,
}

#[derive(Debug)]
pub(super) enum FieldType {
    Text,
    Bool,
    Int32,
    Int64,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    /// A message with one field of bytes that are JSON: RawExtension, FieldsV1.
    Json,
    Message(&'static Message),
    Texts,
    Messages(&'static Message),
    TextMap,
    /// Values are printed as base64.
    BytesMap,
    /// Values are messages with one field of repeated text: ExtraValue.
    TextsMap,
}

/// How many more values may be made.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MAX_VALUES)
    }
}

impl Budget {
    fn spend(&mut self, values: usize) -> Result<(), ProtobufError> {
        self.0 = self.0.checked_sub(values).ok_or(ProtobufError::TooManyValues)?;
        Ok(())
    }
}

impl Message {
    /// Decodes into an object, which already holds the earlier parts of a message that was sent in
    /// parts.
    pub(super) fn decode(
        &self,
        bytes: &[u8],
        object: &mut JsonObject,
        budget: &mut Budget,
    ) -> Result<(), ProtobufError> {
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            match self.0.iter().find(|field| field.number == number) {
                Some(field) => field.decode(&mut reader, wire, object, budget)?,
                None => reader.skip(wire)?,
            }
        }
        self.0.iter().try_for_each(|field| field.finish(object, budget))
    }

    fn decoded(&self, bytes: &[u8], budget: &mut Budget) -> Result<Value, ProtobufError> {
        let mut object = JsonObject::new();
        self.decode(bytes, &mut object, budget)?;
        Ok(object.into())
    }
}

impl MessageField {
    fn decode(
        &self,
        reader: &mut Reader<'_>,
        wire: Wire,
        object: &mut JsonObject,
        budget: &mut Budget,
    ) -> Result<(), ProtobufError> {
        budget.spend(1)?;
        let name = self.name;
        let value = match &self.type_ {
            FieldType::Bool => (reader.number(wire, name)? != 0).into(),
            // Truncated like Go's conversion.
            FieldType::Int32 => (reader.number(wire, name)? as i32).into(),
            FieldType::Int64 => (reader.number(wire, name)? as i64).into(),
            FieldType::Text => text(reader.delimited(wire, name)?, name)?.into(),
            FieldType::Time => time(reader.delimited(wire, name)?, name, false)?,
            FieldType::MicroTime => time(reader.delimited(wire, name)?, name, true)?,
            FieldType::Json => json(reader.delimited(wire, name)?, name)?,
            FieldType::Message(message) => {
                let mut inner = taken(object, name);
                message.decode(reader.delimited(wire, name)?, &mut inner, budget)?;
                inner.into()
            }
            FieldType::Texts => {
                push(object, name, text(reader.delimited(wire, name)?, name)?.into());
                return Ok(());
            }
            FieldType::Messages(message) => {
                push(object, name, message.decoded(reader.delimited(wire, name)?, budget)?);
                return Ok(());
            }
            FieldType::TextMap | FieldType::BytesMap | FieldType::TextsMap => {
                let (key, value) = self.entry(reader.delimited(wire, name)?, budget)?;
                let mut entries = taken(object, name);
                entries.insert(key, value);
                entries.into()
            }
        };
        object.insert(name.to_owned(), value);
        Ok(())
    }

    /// A map's entry: a message of key and value, either of which may be left out.
    fn entry(&self, bytes: &[u8], budget: &mut Budget) -> Result<(String, Value), ProtobufError> {
        let mut reader = Reader::new(bytes);
        let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
        while let Some((number, wire)) = reader.tag()? {
            match number {
                1 => key = reader.delimited(wire, self.name)?,
                2 => value = reader.delimited(wire, self.name)?,
                _ => reader.skip(wire)?,
            }
        }
        let value = match self.type_ {
            FieldType::BytesMap => STANDARD.encode(value).into(),
            FieldType::TextsMap => texts(value, self.name, budget)?,
            _ => text(value, self.name)?.into(),
        };
        Ok((text(key, self.name)?, value))
    }

    /// Adds what Go prints although it was not sent, and removes what it does not print although it
    /// was.
    fn finish(&self, object: &mut JsonObject, budget: &mut Budget) -> Result<(), ProtobufError> {
        match (self.printed, object.get(self.name)) {
            (Printed::Always, None) => {
                budget.spend(1)?;
                let zero = self.type_.zero(budget)?;
                object.insert(self.name.to_owned(), zero);
            }
            (Printed::NonZero, Some(value)) if is_zero(value) => {
                object.remove(self.name);
            }
            _ => {}
        }
        Ok(())
    }
}

impl FieldType {
    fn zero(&self, budget: &mut Budget) -> Result<Value, ProtobufError> {
        Ok(match self {
            Self::Text => "".into(),
            Self::Bool => false.into(),
            Self::Int32 | Self::Int64 => 0.into(),
            Self::Message(message) => message.decoded(&[], budget)?,
            // A nil slice, map or time.
            _ => Value::Null,
        })
    }
}

/// Empty maps and lists are omitted.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// The existing value of an object that is sent in parts, or of a map.
fn taken(object: &mut JsonObject, name: &str) -> JsonObject {
    match object.remove(name) {
        Some(Value::Object(inner)) => inner,
        _ => JsonObject::new(),
    }
}

fn push(object: &mut JsonObject, name: &str, item: Value) {
    match object.get_mut(name) {
        Some(Value::Array(items)) => items.push(item),
        _ => drop(object.insert(name.to_owned(), vec![item].into())),
    }
}

fn texts(bytes: &[u8], field: &'static str, budget: &mut Budget) -> Result<Value, ProtobufError> {
    let mut reader = Reader::new(bytes);
    let mut items = Vec::new();
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => {
                budget.spend(1)?;
                items.push(text(reader.delimited(wire, field)?, field)?.into());
            }
            _ => reader.skip(wire)?,
        }
    }
    Ok(Value::Array(items))
}

/// The JSON in field 1; null without it.
fn json(bytes: &[u8], field: &'static str) -> Result<Value, ProtobufError> {
    let mut reader = Reader::new(bytes);
    let mut raw: &[u8] = &[];
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => raw = reader.delimited(wire, field)?,
            _ => reader.skip(wire)?,
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).map_err(|error| ProtobufError::Json { field, reason: error.to_string() })
}

/// Seconds and nanoseconds since 1970. Only a MicroTime has a fraction; a message without any field
/// is Go's zero time.
fn time(bytes: &[u8], field: &'static str, micros: bool) -> Result<Value, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let mut reader = Reader::new(bytes);
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => seconds = reader.number(wire, field)? as i64,
            2 => nanos = reader.number(wire, field)? as i32,
            _ => reader.skip(wire)?,
        }
    }
    let nanos = if micros { nanos / 1000 * 1000 } else { 0 };
    if seconds == ZERO_TIME && nanos == 0 {
        return Ok(Value::Null);
    }
    let in_range = seconds >= ZERO_TIME && (0..1_000_000_000).contains(&nanos);
    let time = Timestamp::new(seconds, nanos).ok().filter(|_| in_range).ok_or(ProtobufError::Time(field))?;
    let format = if micros { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(time.to_zoned(TimeZone::UTC).strftime(format).to_string().into())
}
