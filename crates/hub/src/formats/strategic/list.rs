//! Merging lists: of scalars as sets, of objects by their merge key, and their order afterwards.
//! Lists may be long, so nothing here compares every item with every other, as Go does.

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use serde_json::Value;

use super::{PATCH, PatchStrategy, StrategicError, addition, rules::FieldRule, type_of, unknown_directive};

pub(super) fn merge(
    old: Vec<Value>,
    new: Vec<Value>,
    strategy: PatchStrategy,
    fields: &[FieldRule],
    name: &str,
) -> Result<Vec<Value>, StrategicError> {
    let Some(objects) = of_objects(&old, &new)? else { return Ok(Vec::new()) };
    match strategy {
        PatchStrategy::ByKey(key) if objects => merge_objects(old, new, key, fields),
        _ if objects => Err(StrategicError::ListWithoutKey(name.to_owned())),
        _ => {
            let mut seen = HashSet::new();
            let merged = old.iter().chain(&new).filter(|item| seen.insert(item.to_string())).cloned();
            order(merged.collect(), &new, &old, PatchStrategy::Set)
        }
    }
}

/// `$deleteFromPrimitiveList`.
pub(super) fn delete(items: &mut Vec<Value>, unwanted: &[Value]) -> Result<(), StrategicError> {
    if of_objects(items, unwanted)? == Some(true) {
        return Err(StrategicError::PrimitiveList);
    }
    let unwanted: HashSet<_> = unwanted.iter().map(Value::to_string).collect();
    items.retain(|item| !unwanted.contains(&item.to_string()));
    Ok(())
}

/// Whether the items are objects; `None` if there are none. All must be of one type, and none a
/// list.
fn of_objects(old: &[Value], new: &[Value]) -> Result<Option<bool>, StrategicError> {
    let mut items = old.iter().chain(new);
    let Some(first) = items.next() else { return Ok(None) };
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    if first.is_null() || items.any(|item| type_of(item) != type_of(first)) {
        return Err(StrategicError::MixedList);
    }
    Ok(Some(first.is_object()))
}

/// The items of a patch list, by what they ask for.
struct Items {
    merged: Vec<Value>,
    deleted: Vec<Value>,
    /// Whether a `$patch: replace` discards the old list.
    replace: bool,
}

fn sort_out(new: Vec<Value>) -> Result<Items, StrategicError> {
    let mut items = Items { merged: Vec::new(), deleted: Vec::new(), replace: false };
    for item in new {
        match item.get(PATCH).map(Value::as_str) {
            None => items.merged.push(item),
            Some(Some("delete")) => items.deleted.push(item),
            Some(Some("replace")) => items.replace = true,
            Some(Some("merge")) => return Err(StrategicError::MergeDirectiveInList),
            Some(_) => return Err(unknown_directive(&item)),
        }
    }
    Ok(items)
}

fn merge_objects(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &'static str,
    fields: &[FieldRule],
) -> Result<Vec<Value>, StrategicError> {
    let Items { merged: new, deleted, replace } = sort_out(new)?;
    let patch_places = places(&new, Some(key))?;
    if replace {
        return Ok(new.into_iter().filter_map(addition).collect());
    }
    let deleted = places(&deleted, Some(key))?;
    let mut kept = Vec::with_capacity(old.len());
    for item in old {
        if !deleted.contains_key(&identity(&item, Some(key))?) {
            kept.push(item);
        }
    }
    old = kept;
    let server_places = places(&old, Some(key))?;
    let mut known = server_places.clone();
    for item in new {
        let identity = identity(&item, Some(key))?;
        let existing = known.get(&identity).and_then(|place| old.get_mut(*place));
        match (existing, item) {
            (Some(Value::Object(existing)), Value::Object(item)) => {
                *existing = super::merge(mem::take(existing), item, fields)?;
            }
            (_, item) => {
                known.insert(identity, old.len());
                old.extend(addition(item));
            }
        }
    }
    order_by(old, &patch_places, &server_places, Some(key))
}

/// Puts a merged list into order: the items of the patch as `patch` has them, the others as the
/// `server` had them, both interleaved as the server had them where it knew both.
pub(super) fn order(
    merged: Vec<Value>,
    patch: &[Value],
    server: &[Value],
    strategy: PatchStrategy,
) -> Result<Vec<Value>, StrategicError> {
    let key = strategy.key();
    order_by(merged, &places(patch, key)?, &places(server, key)?, key)
}

/// The order of the server as Go sees it after a merge: its slices share memory, so the first new
/// items have taken the places of the deleted ones.
pub(super) fn server_order(
    old: Vec<Value>,
    new: &[Value],
    merged: &[Value],
    strategy: PatchStrategy,
) -> Result<Vec<Value>, StrategicError> {
    let key = strategy.key();
    if key.is_none() || new.iter().any(|item| item.get(PATCH).is_some_and(|directive| directive == "replace"))
    {
        return Ok(old);
    }
    let (size, before, after) = (old.len(), places(&old, key)?, places(merged, key)?);
    let mut server = Vec::with_capacity(size);
    for item in old {
        if after.contains_key(&identity(&item, key)?) {
            server.push(item);
        }
    }
    for item in new.iter().filter(|item| item.get(PATCH).is_none()) {
        if server.len() < size && !before.contains_key(&identity(item, key)?) {
            server.push(item.clone());
        }
    }
    Ok(server)
}

type Places = HashMap<String, usize>;

fn order_by(
    merged: Vec<Value>,
    patch: &Places,
    server: &Places,
    key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let size = merged.len();
    let (mut patched, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let identity = identity(&item, key)?;
        let on_server = server.get(&identity).copied();
        match patch.get(&identity) {
            Some(place) => patched.push((*place, on_server, item)),
            None => others.push((on_server, item)),
        }
    }
    patched.sort_by_key(|(place, _, _)| *place);
    others.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    let mut others = others.into_iter().peekable();
    let mut ordered = Vec::with_capacity(size);
    for (_, on_server, item) in patched {
        let before = |place: &Option<usize>| place.zip(on_server).is_some_and(|(other, this)| other < this);
        while let Some((_, other)) = others.next_if(|(place, _)| before(place)) {
            ordered.push(other);
        }
        ordered.push(item);
    }
    ordered.extend(others.map(|(_, other)| other));
    Ok(ordered)
}

/// Refuses a patch list that is in another order than its `$setElementOrder`, or has items that are
/// not in there.
pub(super) fn check_order(
    new: &[Value],
    wanted: &[Value],
    strategy: PatchStrategy,
) -> Result<(), StrategicError> {
    if new.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    let key = strategy.key();
    let mut wanted_items = wanted.iter();
    for item in new.iter().filter(|item| item.get(PATCH).is_none()) {
        let item = identity(item, key)?;
        loop {
            let Some(next) = wanted_items.next() else {
                let shown = |items: &[Value]| Value::from(items).to_string();
                return Err(StrategicError::Order { patch: shown(new), order: shown(wanted) });
            };
            if identity(next, key)? == item {
                break;
            }
        }
    }
    Ok(())
}

/// The index of the first occurrence of each item.
fn places(items: &[Value], key: Option<&str>) -> Result<Places, StrategicError> {
    let mut places = Places::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        places.entry(identity(item, key)?).or_insert(place);
    }
    Ok(places)
}

/// What makes two items the same: the scalar itself, or the value of the merge key.
fn identity(item: &Value, key: Option<&str>) -> Result<String, StrategicError> {
    match (item, key) {
        (Value::Object(fields), Some(key)) => {
            let value = fields.get(key);
            let missing = || StrategicError::NoMergeKey { object: item.to_string(), key: key.to_owned() };
            value.map(Value::to_string).ok_or_else(missing)
        }
        (Value::Object(_), None) => Err(StrategicError::ListWithoutKey(item.to_string())),
        (Value::Array(_), _) => Err(StrategicError::ListOfLists),
        (_, Some(_)) => Err(StrategicError::NotAnObject(type_of(item))),
        (scalar, None) => Ok(scalar.to_string()),
    }
}
