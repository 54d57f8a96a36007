//! The managers of an object's fields: `metadata.managedFields`.
//!
//! Owns reading, ordering and writing it.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::Set;

/// With more updaters than this, the oldest are merged into one.
const MOST_UPDATERS: usize = 10;
const OLDEST: &str = "ancient-changes";
const LONGEST_NAME: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// A field manager.
#[derive(Clone, Debug)]
pub(crate) struct FieldManager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// The version in which the fields are named.
    pub(crate) api_version: String,
    /// `status`, or nothing.
    pub(crate) subresource: String,
}

impl FieldManager {
    /// An applier is the same in every version; an updater is not.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

/// The text in a conflict.
impl fmt::Display for FieldManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ManagedFieldsEntry {
    pub(crate) manager: FieldManager,
    pub(crate) time: Option<Timestamp>,
    pub(crate) fields: Set,
}

/// All field managers of an object, unordered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managers(pub(crate) Vec<ManagedFieldsEntry>);

/// `managedFields` in a client's request.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// Ignored.
    Nothing,
    /// Removes all managers: an empty list, or one empty entry.
    Reset,
    Managers(Managers),
}

impl Claimed {
    pub(crate) fn read(managed_fields: Option<&Value>) -> Self {
        match managed_fields {
            Some(Value::Array(entries)) => {
                let is_blank = |entry: &Value| entry.as_object().is_some_and(Map::is_empty);
                match entries.as_slice() {
                    [] => Self::Reset,
                    [only] if is_blank(only) => Self::Reset,
                    entries => Managers::read(entries).map_or(Self::Nothing, Self::Managers),
                }
            }
            _ => Self::Nothing,
        }
    }
}

impl Managers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The managers of a stored object.
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        entries.and_then(|entries| Self::read(entries)).unwrap_or_default()
    }

    /// Returns `None` if one of the entries is invalid.
    fn read(entries: &[Value]) -> Option<Self> {
        let mut all = Self::default();
        for entry in entries {
            let entry = ManagedFieldsEntry::read(entry)?;
            all.0.retain(|other| !other.manager.is(&entry.manager));
            all.0.push(entry);
        }
        Some(all)
    }

    pub(crate) fn get(&self, manager: &FieldManager) -> Option<&ManagedFieldsEntry> {
        self.0.iter().find(|entry| entry.manager.is(manager))
    }

    pub(crate) fn take(&mut self, manager: &FieldManager) -> Option<ManagedFieldsEntry> {
        let place = self.0.iter().position(|entry| entry.manager.is(manager))?;
        Some(self.0.swap_remove(place))
    }

    /// `managedFields` in its canonical order. `None` if there are no managers.
    pub(crate) fn to_value(&self) -> Option<Value> {
        let mut entries: Vec<&ManagedFieldsEntry> = self.0.iter().collect();
        entries.sort_by_key(|entry| {
            let manager = &entry.manager;
            let seconds = entry.time.map_or(0, Timestamp::as_second);
            (manager.operation, seconds, &manager.name, &manager.api_version, &manager.subresource)
        });
        let entries: Vec<Value> = entries.into_iter().map(ManagedFieldsEntry::to_value).collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    /// Whether the managers and their fields are equal, ignoring times.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let is_there = |entry: &ManagedFieldsEntry| {
            let there = other.get(&entry.manager);
            there.is_some_and(|there| {
                there.fields == entry.fields && there.manager.api_version == entry.manager.api_version
            })
        };
        self.0.len() == other.0.len() && self.0.iter().all(is_there)
    }

    /// Merges the oldest updaters if there are too many.
    pub(crate) fn cap_updaters(&mut self) {
        let is_updater = |entry: &ManagedFieldsEntry| entry.manager.operation == Operation::Update;
        let count = self.0.iter().filter(|entry| is_updater(entry)).count();
        if count <= MOST_UPDATERS {
            return;
        }
        self.0.sort_by_key(|entry| (entry.time.map(Timestamp::as_second), entry.manager.name.clone()));
        let mut too_many = count - MOST_UPDATERS;
        let mut kept: Vec<ManagedFieldsEntry> = Vec::with_capacity(self.0.len());
        for entry in std::mem::take(&mut self.0) {
            let version = &entry.manager.api_version;
            let older = kept.iter_mut().find(|old| is_updater(old) && old.manager.api_version == *version);
            match older {
                Some(old) if too_many > 0 && is_updater(&entry) => {
                    old.fields = old.fields.union(&entry.fields);
                    old.manager.name = OLDEST.into();
                    old.manager.subresource.clear();
                    old.time = entry.time;
                    too_many -= 1;
                }
                _ => kept.push(entry),
            }
        }
        self.0 = kept;
    }
}

impl ManagedFieldsEntry {
    fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| match entry.get(name) {
            None | Some(Value::Null) => Some(""),
            Some(value) => value.as_str(),
        };
        let operation = match text("operation")? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let (name, api_version) = (text("manager")?, text("apiVersion")?);
        let sound =
            !api_version.is_empty() && text("fieldsType")? == "FieldsV1" && name.len() <= LONGEST_NAME;
        let time = match text("time")? {
            "" => None,
            time => Some(time.parse().ok()?),
        };
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => Set::default(),
            Some(fields) => Set::from_fields(fields).ok()?,
        };
        let manager = FieldManager {
            name: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: text("subresource")?.to_owned(),
        };
        sound.then_some(Self { manager, time, fields })
    }

    fn to_value(&self) -> Value {
        let FieldManager { name, operation, api_version, subresource } = &self.manager;
        let operation = match operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut entry = json!({
            "manager": name, "operation": operation, "apiVersion": api_version, "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_fields(),
        });
        if let Some(time) = self.time {
            let seconds = Timestamp::from_second(time.as_second()).unwrap_or(time);
            entry["time"] = json!(seconds.to_string());
        }
        if !subresource.is_empty() {
            entry["subresource"] = json!(subresource);
        }
        entry
    }
}
