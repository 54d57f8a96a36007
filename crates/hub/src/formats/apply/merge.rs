//! Merges an applied configuration into the existing object.
//!
//! Fields in the configuration replace those of the object; everything else stays. Must not remove
//! anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aviary_schema::structural::ListType;
use serde_json::{Map, Value};

use super::super::json::JsonObject;
use super::element::Element;
use super::types::{Atom, ListSchema, ValueType, filled_list, filled_map};

pub(crate) fn merge(ty: ValueType<'_>, live: &Value, config: &Value) -> Value {
    node(ty, Some(live), Some(config)).unwrap_or_default()
}

fn node(ty: ValueType<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let whole = || config.or(live).cloned();
    // If the types differ, the configuration decides.
    match ty.atoms(config.or(live)).first() {
        Atom::Scalar => whole(),
        Atom::Map => match (filled_map(live), filled_map(config)) {
            (None, None) => whole(),
            _ if ty.is_atomic_map() => whole(),
            (live, config) => map(ty, live, config),
        },
        Atom::List => {
            let of = ty.list();
            match (filled_list(live), filled_list(config)) {
                (None, None) => whole(),
                _ if *of.kind == ListType::Atomic => whole(),
                (live, config) => list(&of, live.unwrap_or_default(), config.unwrap_or_default()),
            }
        }
    }
}

fn map(ty: ValueType<'_>, live: Option<&JsonObject>, config: Option<&JsonObject>) -> Option<Value> {
    let mut merged = Map::new();
    let names: BTreeSet<&String> = live.into_iter().chain(config).flat_map(Map::keys).collect();
    for name in names {
        let (live, config) =
            (live.and_then(|live| live.get(name)), config.and_then(|config| config.get(name)));
        if let Some(value) = node(ty.below(name), live, config) {
            merged.insert(name.clone(), value);
        }
    }
    (!merged.is_empty()).then_some(Value::Object(merged))
}

/// Merges items of both, in the order of the configuration; other items of the live object keep
/// their positions.
fn list(of: &ListSchema<'_>, live: &[Value], config: &[Value]) -> Option<Value> {
    let mut left: VecDeque<(Element, &Value)> = of.elements(live).into_iter().zip(live).collect();
    let mut right: VecDeque<(Element, &Value)> = of.elements(config).into_iter().zip(config).collect();
    // Items with the same name cannot be distinguished: the configuration replaces them.
    let mut lives: BTreeMap<Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in &left {
        lives.entry(element.clone()).and_modify(|item| *item = None).or_insert(Some(*item));
    }
    let configured: BTreeSet<Element> = right.iter().map(|(element, _)| element.clone()).collect();
    let mut shared: VecDeque<Element> = right
        .iter()
        .map(|(element, _)| element)
        .filter(|element| lives.contains_key(*element))
        .cloned()
        .collect();
    let mut next_shared = shared.pop_front();
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let mut done = BTreeSet::new();
    while !left.is_empty() || !right.is_empty() {
        if let (Some((mine, _)), Some((theirs, item))) = (left.front(), right.front()) {
            if mine == theirs {
                done.insert(mine.clone());
                merged.extend(node(of.item, lives.get(mine).copied().flatten(), Some(item)));
                left.pop_front();
                right.pop_front();
                next_shared = shared.pop_front();
                continue;
            }
            if configured.contains(mine) && next_shared.as_ref().is_some_and(|next| next != mine) {
                // The item comes later in the configuration.
                left.pop_front();
                continue;
            }
        }
        if let Some((mine, item)) = left.front() {
            if !configured.contains(mine) {
                merged.extend(node(of.item, Some(item), None));
                left.pop_front();
                continue;
            }
            if done.contains(mine) {
                left.pop_front();
            }
        }
        if let Some((theirs, item)) = right.pop_front() {
            merged.extend(node(of.item, lives.get(&theirs).copied().flatten(), Some(item)));
            if next_shared.as_ref() == Some(&theirs) {
                next_shared = shared.pop_front();
            }
            done.insert(theirs);
        }
    }
    (!merged.is_empty()).then_some(Value::Array(merged))
}
