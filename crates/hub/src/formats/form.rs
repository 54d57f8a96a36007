//! Conversion between stored and served objects: versions, and the two groups of events.
//!
//! With the conversion strategy `None`, a version is a name and a schema.

use serde_json::{Map, Value};

use crate::kinds::resource::{Form, Resource, Version};

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
pub(crate) fn served(resource: &Resource, version: &Version, mut stored: Value) -> Value {
    if resource.serves_stored_bytes(version) {
        return stored;
    }
    let Value::Object(fields) = &mut stored else { return stored };
    if resource.traits.form == Form::EventsGroup {
        rename(fields, EVENT_FIELDS);
    }
    let same = fields.get("apiVersion").and_then(Value::as_str) == Some(&version.api_version);
    fields.insert("apiVersion".into(), version.api_version.as_str().into());
    if !same && resource.is_custom() {
        // Removes fields that the other version does not have, and adds its defaults.
        aviary_schema::prune::prune(version.admission.schema(), &mut stored);
        aviary_schema::default::apply(version.admission.schema(), &mut stored);
    }
    stored
}

/// The stored form of an object in a version.
pub(crate) fn stored(resource: &Resource, mut served: Value) -> Value {
    let Value::Object(fields) = &mut served else { return served };
    let api_version = match resource.traits.form {
        Form::EventsGroup => {
            rename(fields, EVENT_FIELDS.map(|(core, events)| (events, core)));
            "v1"
        }
        Form::AsStored => match resource.storage() {
            Some(version) => &version.api_version,
            None => return served,
        },
    };
    fields.insert("apiVersion".into(), api_version.into());
    served
}

fn rename(fields: &mut Map<String, Value>, names: [(&str, &str); 7]) {
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.into(), value);
        }
    }
}
