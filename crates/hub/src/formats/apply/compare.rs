//! The differences between two states of an object, field by field.

use std::collections::BTreeMap;

use aviary_schema::structural::ListType;
use serde_json::Value;

use super::super::json::JsonObject;
use super::element::{Element, equal};
use super::set::{Node, Set};
use super::types::{Atom, ListSchema, ValueType, filled_list, filled_map};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) removed: Set,
    pub(crate) modified: Set,
    pub(crate) added: Set,
}

pub(crate) fn compare(ty: ValueType<'_>, old: &Value, new: &Value) -> Comparison {
    let Differences { removed, modified, added } = node(ty, Some(old), Some(new));
    Comparison { removed: removed.below, modified: modified.below, added: added.below }
}

/// The differences at one place and below.
#[derive(Default)]
struct Differences {
    removed: Node,
    modified: Node,
    added: Node,
}

impl Differences {
    fn put(&mut self, element: impl Fn() -> Element, found: Self) {
        for (all, one) in [
            (&mut self.removed, found.removed),
            (&mut self.modified, found.modified),
            (&mut self.added, found.added),
        ] {
            if !one.is_empty() {
                all.below.put(element(), one);
            }
        }
    }

    fn leaf(old: Option<&Value>, new: Option<&Value>) -> Self {
        let mut found = Self::default();
        match (old, new) {
            (None, _) => found.added.member = true,
            (_, None) => found.removed.member = true,
            (Some(old), Some(new)) => found.modified.member = !equal(old, new),
        }
        found
    }
}

fn node(ty: ValueType<'_>, old: Option<&Value>, new: Option<&Value>) -> Differences {
    if let (Some(old), Some(new)) = (old, new) {
        if old == new {
            return Differences::default();
        }
        let (before, after) = (ty.atoms(Some(old)), ty.atoms(Some(new)));
        if before != after {
            // The type of the value has changed: compares the old one with nothing, and nothing
            // with the new one.
            let mut found = as_atom(ty, before.first(), Some(old), Some(new));
            let more = as_atom(ty, after.first(), Some(old), Some(new));
            for (all, one) in [
                (&mut found.removed, more.removed),
                (&mut found.modified, more.modified),
                (&mut found.added, more.added),
            ] {
                all.member |= one.member;
                all.below = all.below.union(&one.below);
            }
            return found;
        }
    }
    as_atom(ty, ty.atoms(new.or(old)).first(), old, new)
}

fn as_atom(ty: ValueType<'_>, atom: Atom, old: Option<&Value>, new: Option<&Value>) -> Differences {
    let mut found = match atom {
        Atom::Scalar => return Differences::leaf(old, new),
        Atom::Map => match (filled_map(old), filled_map(new)) {
            (None, None) => return Differences::leaf(old, new),
            _ if ty.is_atomic_map() => return Differences::leaf(old, new),
            (old, new) => map(ty, old, new),
        },
        Atom::List => {
            let of = ty.list();
            match (filled_list(old), filled_list(new)) {
                (None, None) => return Differences::leaf(old, new),
                _ if *of.kind == ListType::Atomic => return Differences::leaf(old, new),
                (old, new) => list(&of, old.unwrap_or_default(), new.unwrap_or_default()),
            }
        }
    };
    found.added.member |= old.is_none();
    found.removed.member |= new.is_none();
    found
}

fn map(ty: ValueType<'_>, old: Option<&JsonObject>, new: Option<&JsonObject>) -> Differences {
    let mut found = Differences::default();
    let in_new = |name: &String| new.and_then(|new| new.get(name));
    for (name, value) in old.into_iter().flatten() {
        found.put(|| Element::Field(name.clone()), node(ty.below(name), Some(value), in_new(name)));
    }
    let is_new = |name: &String| old.is_none_or(|old| !old.contains_key(name));
    for (name, value) in new.into_iter().flatten().filter(|(name, _)| is_new(name)) {
        found.put(|| Element::Field(name.clone()), node(ty.below(name), None, Some(value)));
    }
    found
}

fn list(of: &ListSchema<'_>, old: &[Value], new: &[Value]) -> Differences {
    let mut items: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (element, item) in of.elements(old).into_iter().zip(old) {
        items.entry(element).or_default().0.push(item);
    }
    for (element, item) in of.elements(new).into_iter().zip(new) {
        items.entry(element).or_default().1.push(item);
    }
    let mut found = Differences::default();
    for (element, (old, new)) in items {
        found.put(|| element.clone(), item(of, &old, &new));
    }
    found
}

/// Items with the same name. If there are several, they are owned as a whole.
fn item(of: &ListSchema<'_>, old: &[&Value], new: &[&Value]) -> Differences {
    let mut found;
    match (old, new) {
        ([] | [_], [] | [_]) => found = node(of.item, old.first().copied(), new.first().copied()),
        ([_, _, ..], [_, _, ..]) => {
            found = Differences::default();
            let same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| equal(old, new));
            found.modified.member = !same;
        }
        ([_, _, ..], _) => {
            found = new.first().map(|new| node(of.item, None, Some(*new))).unwrap_or_default();
            found.removed.member = true;
        }
        (_, _) => {
            found = old.first().map(|old| node(of.item, Some(*old), None)).unwrap_or_default();
            found.added.member = true;
        }
    }
    found
}
