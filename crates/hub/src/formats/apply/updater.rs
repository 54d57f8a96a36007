//! The effect of a write on an object and its managers.
//!
//! Owns the rules of server-side apply: who gains and loses fields, what conflicts, and what is
//! removed because no manager owns it any more. Pure: the time is an argument. The reference is
//! `merge/update.go` of structured-merge-diff and the chain of field managers in apimachinery.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::compare::{Comparison, compare};
use super::element::{Element, equal};
use super::fields::fields_of;
use super::managers::{FieldManager, ManagedFieldsEntry, Managers, Operation};
use super::merge::merge;
use super::remove::remove;
use super::set::{Node, Set};
use super::types::ValueType;

const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// Fields without a manager: the identity of the object, and fields that only the server sets.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];
const SERVER_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// The versions of a kind. Only their schemas differ, so no conversion is needed.
#[derive(Clone, Debug)]
pub(crate) struct Versions<'s> {
    /// The version in which the object is written.
    pub(crate) current: &'s str,
    pub(crate) types: BTreeMap<&'s str, ValueType<'s>>,
}

impl<'s> Versions<'s> {
    fn current(&self) -> ValueType<'s> {
        self.get(self.current).unwrap_or(ValueType::Deduced)
    }

    fn get(&self, version: &str) -> Option<ValueType<'s>> {
        self.types.get(version).copied()
    }
}

/// Fields of other managers that an apply would change.
#[derive(Clone, Debug)]
pub(crate) struct Conflicts(pub(crate) Vec<(FieldManager, Set)>);

/// The outcome of an apply.
#[derive(Debug)]
pub(crate) struct ApplyOutcome {
    /// The new state, if it has changed.
    pub(crate) object: Option<Value>,
    pub(crate) managers: Managers,
}

/// Merges a configuration into the live object, and removes what its manager applied before and no
/// manager owns any more.
pub(crate) fn apply(
    versions: &Versions<'_>,
    live: &Value,
    config: &Value,
    managers: Managers,
    manager: &FieldManager,
    force: bool,
    now: Timestamp,
) -> Result<ApplyOutcome, Conflicts> {
    let ty = versions.current();
    let mut managers = reconciled(versions, managers);
    let last = managers.take(manager);
    let entry = ManagedFieldsEntry {
        manager: manager.clone(),
        time: last.as_ref().and_then(|last| last.time),
        fields: fields_of(ty, config),
    };
    managers.0.push(entry);
    let merged = merge(ty, live, config);
    let object = match last {
        // Merged twice for a list that is applied empty: it was removed with its last item, and
        // would reappear next time.
        Some(last) => merge(ty, &prune(versions, merged, &managers, &last), config),
        None => merged,
    };
    settle(versions, live, &object, &mut managers, Some(manager), force)?;
    let changed = !equal(live, &object);
    if let Some(mut entry) = managers.take(manager) {
        entry.fields = entry.fields.difference(&unmanaged());
        if changed {
            entry.time = Some(now);
        }
        if !entry.fields.is_empty() {
            managers.0.push(entry);
        }
    }
    Ok(ApplyOutcome { object: changed.then_some(object), managers })
}

/// Assigns the changed fields of a write to its manager, and removes them from all others.
pub(crate) fn update(
    versions: &Versions<'_>,
    old: &Value,
    new: &Value,
    managers: Managers,
    manager: &FieldManager,
    now: Timestamp,
) -> Managers {
    let mut managers = reconciled(versions, managers);
    let Ok(Comparison { modified, added, .. }) = settle(versions, old, new, &mut managers, None, true) else {
        return managers;
    };
    let fields = modified.union(&added).difference(&unmanaged());
    if !fields.is_empty() {
        let before = managers.take(manager).map(|entry| entry.fields).unwrap_or_default();
        managers.0.push(ManagedFieldsEntry {
            manager: manager.clone(),
            time: Some(now),
            fields: fields.union(&before),
        });
    }
    managers.cap_updaters();
    managers
}

/// The managers of an object that was never applied: everything existed before the first apply.
pub(crate) fn before_first_apply(
    versions: &Versions<'_>,
    live: &Value,
    subresource: &str,
    now: Timestamp,
) -> Managers {
    let manager = FieldManager {
        name: BEFORE_FIRST_APPLY.into(),
        operation: Operation::Update,
        api_version: versions.current.to_owned(),
        subresource: subresource.to_owned(),
    };
    let nothing = Value::Object(serde_json::Map::new());
    update(versions, &nothing, live, Managers::default(), &manager, now)
}

fn unmanaged() -> Set {
    let mut below = Set::default();
    for name in SERVER_METADATA {
        below.put(Element::Field(name.into()), Node::LEAF);
    }
    let mut all = Set::default();
    for name in IDENTITY {
        let below = if name == "metadata" { below.clone() } else { Set::default() };
        all.put(Element::Field(name.into()), Node { member: true, below });
    }
    all
}

/// Drops managers whose fields refer to a version that no longer exists; adapts the others to the
/// current schema.
fn reconciled(versions: &Versions<'_>, managers: Managers) -> Managers {
    let kept = managers.0.into_iter().filter_map(|entry| {
        let ty = versions.get(&entry.manager.api_version)?;
        Some(ManagedFieldsEntry { fields: entry.fields.reconciled(ty), ..entry })
    });
    Managers(kept.collect())
}

/// Removes the changed fields from all managers except one; it is a conflict if they may not lose
/// them.
fn settle(
    versions: &Versions<'_>,
    old: &Value,
    new: &Value,
    managers: &mut Managers,
    but: Option<&FieldManager>,
    force: bool,
) -> Result<Comparison, Conflicts> {
    let current = compare(versions.current(), old, new);
    let mut others: BTreeMap<String, Comparison> = BTreeMap::new();
    let mut conflicts = Vec::new();
    let mut left = Vec::with_capacity(managers.0.len());
    for entry in &managers.0 {
        if but.is_some_and(|manager| entry.manager.is(manager)) {
            left.push(entry.clone());
            continue;
        }
        let version = &entry.manager.api_version;
        let comparison = match versions.get(version) {
            _ if version == versions.current => &current,
            Some(ty) => others.entry(version.clone()).or_insert_with(|| compare(ty, old, new)),
            None => continue,
        };
        let lost = entry.fields.intersection(&comparison.modified.union(&comparison.added));
        let fields = entry.fields.difference(&lost).difference(&comparison.removed);
        left.push(ManagedFieldsEntry { fields, ..entry.clone() });
        if !lost.is_empty() {
            conflicts.push((entry.manager.clone(), lost));
        }
    }
    if !force && !conflicts.is_empty() {
        conflicts.sort_by(|(one, _), (other, _)| {
            let key = |manager: &FieldManager| {
                (manager.name.clone(), manager.operation, manager.subresource.clone())
            };
            key(one).cmp(&key(other))
        });
        return Err(Conflicts(conflicts));
    }
    left.retain(|entry| !entry.fields.is_empty());
    managers.0 = left;
    Ok(current)
}

/// Removes what its manager applied last time and not this time, unless another manager owns it.
fn prune(versions: &Versions<'_>, merged: Value, managers: &Managers, last: &ManagedFieldsEntry) -> Value {
    let version = last.manager.api_version.as_str();
    let Some(ty) = versions.get(version).filter(|_| !last.fields.is_empty()) else { return merged };
    let last = last.fields.with_named(Some(ty));
    let mut pruned = remove(ty, &merged, &last);
    let mut managed: BTreeMap<&str, Set> = BTreeMap::new();
    for entry in &managers.0 {
        let set = managed.entry(&entry.manager.api_version).or_default();
        *set = set.union(&entry.fields);
    }
    // Restores what others own, starting with the version of the pruned fields.
    let first = managed.remove_entry(version);
    for (version, managed) in first.into_iter().chain(managed) {
        let Some(ty) = versions.get(version) else { continue };
        let named = |object: &Value| fields_of(ty, object).with_named(Some(ty));
        let kept = named(&pruned).union(&managed.with_named(Some(ty)));
        pruned = remove(ty, &merged, &named(&merged).difference(&kept));
    }
    // Removes only what was owned: unowned fields below it stay.
    let named = |object: &Value| fields_of(ty, object).with_named(Some(ty));
    let gone = named(&merged).difference(&named(&pruned)).intersection(&last);
    remove(ty, &merged, &gone)
}
