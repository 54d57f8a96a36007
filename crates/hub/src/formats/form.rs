//! The forms in which one stored object is shown: its versions, and the two groups of events.
//!
//! Owns the conversion between what is stored and what is served. With strategy `None` a version is a name and a schema.

use serde_json::{Map, Value};

use crate::resource::{Form, Resource, Version};

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

/// An object as a version shows it.
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
        // What the other version does not know is not shown, and what it adds is.
        aviary_schema::prune::prune(version.admission.schema(), &mut stored);
        aviary_schema::default::apply(version.admission.schema(), &mut stored);
    }
    stored
}

/// An object of a version as it is stored.
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
