//! The kinds that the hub serves, as rows of a table: built-in kinds, and kinds that CRDs add at
//! run time.
//!
//! Owns the properties of a kind and how it is found. One set of handlers serves every row.

use std::collections::BTreeMap;
use std::sync::Arc;

use aviary_schema::{Admission, Schema};
use serde_json::Value;

use crate::api::status::About;
use crate::formats::jsonpath::JsonPathExpression;
use crate::formats::table::Columns;
use crate::store::object::{ResourceId, StoredObject};

/// One kind.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    pub(crate) group: String,
    pub(crate) names: Names,
    pub(crate) namespaced: bool,
    /// All versions, in order of preference.
    pub(crate) versions: Vec<KindVersion>,
    pub(crate) traits: Traits,
    /// Its CRD is being deleted: nothing new may be created.
    pub(crate) terminating: bool,
    /// How its versions are converted, if they differ in more than their name.
    pub(crate) converter: Option<Converter>,
}

/// Converts objects between the versions of a kind.
///
/// The hub takes it as a function, so that it need not know any kind. It is called with the object
/// and the apiVersion to convert it to. As the object may be stored, it must not fail for a version
/// that only reads ask for: then the object is served as it is stored, under the other name.
#[derive(Clone)]
pub struct Converter(Arc<ConvertFn>);

type ConvertFn = dyn Fn(Value, &str) -> Result<Value, String> + Send + Sync;

impl Converter {
    pub fn new(convert: impl Fn(Value, &str) -> Result<Value, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(convert))
    }

    pub(crate) fn convert(&self, object: Value, api_version: &str) -> Result<Value, String> {
        (self.0)(object, api_version)
    }
}

impl std::fmt::Debug for Converter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Converter")
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// One version of a kind.
#[derive(Debug)]
pub(crate) struct KindVersion {
    pub(crate) name: String,
    /// `group/version`, or `v1`.
    pub(crate) api_version: String,
    /// The end of every object that is stored in this version.
    pub(crate) suffix: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) admission: Admission,
    /// The schema for field ownership, if it differs from that of admission.
    pub(crate) ownership: Option<Schema>,
    /// The original schema, for `/openapi`.
    pub(crate) schema: Value,
    pub(crate) has_status: bool,
    pub(crate) columns: Columns,
    /// The selectable fields in addition to name and namespace.
    pub(crate) selectable: Vec<(String, JsonPathExpression)>,
    /// Sent with every response if the version is deprecated.
    pub(crate) warning: Option<String>,
}

/// Differences between kinds beyond their schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) origin: Origin,
    /// The hub maintains `metadata.generation`.
    pub(crate) generation: bool,
    /// An update may omit the resource version.
    pub(crate) unconditional_update: bool,
    /// There are never any such objects, but clients list them.
    pub(crate) always_empty: bool,
    /// An update of a missing object creates it.
    pub(crate) create_on_update: bool,
    pub(crate) naming: Naming,
    /// The stored form, if it differs.
    pub(crate) form: Form,
}

/// The origin of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn,
    Custom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Label,
    Subdomain,
    /// Anything that can be a segment of a path.
    PathSegment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Objects are served as stored, except for the name of the version.
    AsStored,
    /// `events.k8s.io`: the objects of `events`, with different names for some fields.
    EventsGroup,
}

impl Resource {
    pub(crate) fn is_custom(&self) -> bool {
        self.traits.origin == Origin::Custom
    }

    /// A served version.
    pub(crate) fn served(&self, name: &str) -> Option<&KindVersion> {
        self.versions.iter().find(|version| version.served && version.name == name)
    }

    pub(crate) fn storage(&self) -> Option<&KindVersion> {
        self.versions.iter().find(|version| version.storage)
    }

    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, resource: &self.names.plural, kind: &self.names.kind, name }
    }

    /// Whether every stored object can be sent unchanged in `version`.
    pub(crate) fn serves_stored_bytes(&self, version: &KindVersion) -> bool {
        self.traits.form == Form::AsStored && self.versions.len() == 1 && version.storage
    }

    /// Whether this stored object can be sent unchanged in `version`. With several versions, the
    /// storage version may have changed since the object was stored.
    pub(crate) fn serves_bytes_of(&self, version: &KindVersion, stored: &StoredObject) -> bool {
        self.serves_stored_bytes(version)
            || self.traits.form == Form::AsStored && version.storage && stored.ends_with(&version.suffix)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct KindTable {
    /// By group, then plural.
    rows: BTreeMap<String, BTreeMap<String, Arc<Resource>>>,
    /// The conversions that the hub was given, by the name of the CRD.
    converters: BTreeMap<String, Converter>,
}

impl KindTable {
    pub(crate) fn with_converters(mut self, converters: BTreeMap<String, Converter>) -> Self {
        self.converters = converters;
        self
    }

    pub(crate) fn converter(&self, crd: &str) -> Option<&Converter> {
        self.converters.get(crd)
    }

    pub(crate) fn insert(&mut self, resource: Resource) {
        let group = self.rows.entry(resource.group.clone()).or_default();
        group.insert(resource.names.plural.clone(), Arc::new(resource));
    }

    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        if let Some(rows) = self.rows.get_mut(group) {
            rows.remove(plural);
            if rows.is_empty() {
                self.rows.remove(group);
            }
        }
    }

    pub(crate) fn get(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.rows.get(group)?.get(plural)
    }

    /// The row of a kind in an owner reference.
    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.rows.get(group)?.values().find(|resource| resource.names.kind == kind)
    }

    /// The rows whose objects are stored under their own name.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.all().filter(|resource| resource.traits.form == Form::AsStored)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.rows.values().flat_map(BTreeMap::values)
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (&str, Vec<&Arc<Resource>>)> {
        self.rows.iter().map(|(group, rows)| (group.as_str(), rows.values().collect()))
    }
}
