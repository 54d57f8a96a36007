//! Removes fields from a value.

use aviary_schema::structural::ListType;
use serde_json::{Map, Value};

use super::element::Element;
use super::set::Set;
use super::types::{Atom, ValueType};

/// The object without these fields. A map or list that loses all its entries but is not removed
/// itself becomes empty.
///
/// structured-merge-diff leaves a null there, which the real server then rejects if the field is
/// not nullable.
pub(crate) fn remove(ty: ValueType<'_>, object: &Value, fields: &Set) -> Value {
    match (ty.atoms(Some(object)).first(), object) {
        (Atom::Map, Value::Object(entries)) if !ty.is_atomic_map() => map(ty, entries, fields),
        (Atom::List, Value::Array(items)) if *ty.list().kind != ListType::Atomic => list(ty, items, fields),
        (Atom::Map, Value::Object(_)) => Value::Object(Map::new()),
        (Atom::List, Value::Array(_)) => Value::Array(Vec::new()),
        _ => object.clone(),
    }
}

fn map(ty: ValueType<'_>, entries: &Map<String, Value>, fields: &Set) -> Value {
    let mut left = Map::new();
    for (name, value) in entries {
        let value = match fields.get(&Element::Field(name.clone())) {
            Some(node) if node.member => continue,
            Some(node) => remove(ty.below(name), value, &node.below),
            None => value.clone(),
        };
        left.insert(name.clone(), value);
    }
    Value::Object(left)
}

fn list(ty: ValueType<'_>, items: &[Value], fields: &Set) -> Value {
    let of = ty.list();
    let mut left = Vec::with_capacity(items.len());
    for (element, item) in of.elements(items).iter().zip(items) {
        left.push(match fields.get(element) {
            Some(node) if node.member => continue,
            Some(node) => remove(of.item, item, &node.below),
            None => item.clone(),
        });
    }
    Value::Array(left)
}
