//! The fields of a value.

use std::collections::BTreeSet;

use aviary_schema::structural::ListType;
use serde_json::Value;

use super::element::Element;
use super::set::{Node, Set};
use super::types::{Atom, MapField, ValueType};

/// All fields of an object: what a client that applies it owns.
pub(crate) fn fields_of(ty: ValueType<'_>, object: &Value) -> Set {
    node(ty, object).below
}

fn node(ty: ValueType<'_>, value: &Value) -> Node {
    match ty.atoms(Some(value)).first() {
        Atom::Scalar => Node::LEAF,
        Atom::List => list(ty, value),
        Atom::Map => map(ty, value),
    }
}

fn map(ty: ValueType<'_>, value: &Value) -> Node {
    if ty.is_atomic_map() {
        return Node::LEAF;
    }
    let mut below = Set::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let mut field = node(ty.below(name), value);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        field.member |= empty || !matches!(ty.field(name), MapField::Named(_));
        below.put(Element::Field(name.clone()), field);
    }
    Node { member: false, below }
}

fn list(ty: ValueType<'_>, value: &Value) -> Node {
    let list = ty.list();
    if *list.kind == ListType::Atomic {
        return Node::LEAF;
    }
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut below = Set::default();
    let mut seen = BTreeSet::new();
    for (element, item) in list.elements(items).into_iter().zip(items) {
        // Items with the same name are owned together, as a whole.
        let node = if seen.insert(element.clone()) {
            Node { member: true, below: node(list.item, item).below }
        } else {
            Node::LEAF
        };
        below.put(element, node);
    }
    Node { member: false, below }
}
