//! Conversion between stored and served objects: versions, and the two groups of events.
//!
//! With the conversion strategy `None`, a version is a name and a schema. With `Webhook`, the
//! function that was handed to the hub converts.

use serde_json::{Map, Value};

use crate::kinds::resource::{Form, KindVersion, Resource};

/// Fields of an event: in the core group (as stored), and in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The object in a version.
pub(crate) fn served(resource: &Resource, version: &KindVersion, mut stored: Value) -> Value {
    if resource.serves_stored_bytes(version) {
        return stored;
    }
    let Value::Object(fields) = &mut stored else { return stored };
    if resource.traits.form == Form::EventsGroup {
        rename(fields, EVENT_FIELDS);
    }
    let same = fields.get("apiVersion").and_then(Value::as_str) == Some(&version.api_version);
    if !same && let Some(converter) = &resource.converter {
        match converter.convert(stored.clone(), &version.api_version) {
            Ok(converted) => stored = converted,
            Err(why) => tracing::error!(kind = resource.names.kind, why, "a stored object was not converted"),
        }
    }
    let Value::Object(fields) = &mut stored else { return stored };
    fields.insert("apiVersion".into(), version.api_version.as_str().into());
    if !same && resource.is_custom() {
        // Removes fields that the other version does not have, and adds its defaults.
        aviary_schema::prune::prune(version.admission.schema(), &mut stored);
        aviary_schema::default::apply(version.admission.schema(), &mut stored);
    }
    stored
}

/// The stored form of an object in a version.
pub(crate) fn stored(resource: &Resource, mut served: Value) -> Result<Value, String> {
    if let (Some(converter), Some(storage)) = (&resource.converter, resource.storage())
        && served.get("apiVersion").and_then(Value::as_str) != Some(&storage.api_version)
    {
        let mut converted = converter.convert(served, &storage.api_version)?;
        aviary_schema::prune::prune(storage.admission.schema(), &mut converted);
        aviary_schema::default::apply(storage.admission.schema(), &mut converted);
        return Ok(converted);
    }
    let Value::Object(fields) = &mut served else { return Ok(served) };
    let api_version = match resource.traits.form {
        Form::EventsGroup => {
            rename(fields, EVENT_FIELDS.map(|(core, events)| (events, core)));
            "v1"
        }
        Form::AsStored => match resource.storage() {
            Some(version) => &version.api_version,
            None => return Ok(served),
        },
    };
    fields.insert("apiVersion".into(), api_version.into());
    Ok(served)
}

fn rename(fields: &mut Map<String, Value>, names: [(&str, &str); 7]) {
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.into(), value);
        }
    }
}
