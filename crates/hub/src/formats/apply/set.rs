//! Sets of fields, in the form of `fieldsV1`.
//!
//! Owns the set and its operations. Membership of a field is independent of the fields below and
//! above it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::{BadElement, Element};
use super::types::{MapField, ValueType};

/// Fields below one place. No node in it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(BTreeMap<Element, Node>);

/// A field, and the fields below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// Whether the field itself is in the set.
    pub(crate) member: bool,
    pub(crate) below: Set,
}

impl Node {
    pub(crate) const LEAF: Self = Self { member: true, below: Set(BTreeMap::new()) };

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, element: &Element) -> Option<&Node> {
        self.0.get(element)
    }

    /// Inserts a field and the fields below it, if there are any.
    pub(crate) fn put(&mut self, element: Element, node: Node) {
        if !node.is_empty() {
            self.0.insert(element, node);
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (element, node) in &other.0 {
            let mine = all.0.entry(element.clone()).or_default();
            mine.member |= node.member;
            if mine.below.is_empty() {
                mine.below = node.below.clone();
            } else if !node.below.is_empty() {
                mine.below = mine.below.union(&node.below);
            }
        }
        all
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for (element, node) in &self.0 {
            if let Some(theirs) = other.get(element) {
                let node = Node {
                    member: node.member && theirs.member,
                    below: node.below.intersection(&theirs.below),
                };
                both.put(element.clone(), node);
            }
        }
        both
    }

    /// The fields in this set and not in the other. Removing a field does not remove the fields
    /// below it.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut rest = Self::default();
        for (element, node) in &self.0 {
            let node = match other.get(element) {
                Some(theirs) => Node {
                    member: node.member && !theirs.member,
                    below: node.below.difference(&theirs.below),
                },
                None => node.clone(),
            };
            rest.put(element.clone(), node);
        }
        rest
    }

    /// Adds the named fields on the path to others: `spec.size` adds `spec`, but no key of a map
    /// and no item of a list.
    pub(crate) fn with_named(&self, ty: Option<ValueType<'_>>) -> Self {
        let mut all = Self::default();
        for (element, node) in &self.0 {
            let (below, named) = match (element, ty) {
                (Element::Field(name), Some(ty)) => match ty.field(name) {
                    MapField::Named(below) => (Some(below), true),
                    MapField::Other(below) => (Some(below), false),
                    MapField::Unknown => (None, false),
                },
                (Element::Key(_), Some(ty)) => (Some(ty.list().item), false),
                _ => (None, false),
            };
            let member = node.member || named;
            all.put(element.clone(), Node { member, below: node.below.with_named(below) });
        }
        all
    }

    /// The set adapted to the current schema: what became atomic is owned as a whole.
    pub(crate) fn reconciled(&self, ty: ValueType<'_>) -> Self {
        let mut all = Self::default();
        let is_list = ty.is_list();
        for (element, node) in &self.0 {
            let below = match element {
                Element::Field(name) if !is_list => match ty.field(name) {
                    MapField::Named(below) | MapField::Other(below) => Some(below),
                    MapField::Unknown => None,
                },
                _ if is_list => Some(ty.list().item),
                _ => None,
            };
            let became_atomic = below.is_some_and(|below| {
                let owned_whole = node.member && node.below.is_empty();
                !owned_whole && below.is_atomic() && (below.is_list() || !node.below.is_empty())
            });
            let node = match below {
                _ if became_atomic => Node::LEAF,
                Some(below) => Node { member: node.member, below: node.below.reconciled(below) },
                None => node.clone(),
            };
            all.put(element.clone(), node);
        }
        all
    }

    /// The paths of all fields: those of one place before those below.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.add_paths("", &mut paths);
        paths
    }

    fn add_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        let members = self.0.iter().filter(|(_, node)| node.member);
        paths.extend(members.map(|(element, _)| format!("{prefix}{element}")));
        for (element, node) in self.0.iter().filter(|(_, node)| !node.below.is_empty()) {
            node.below.add_paths(&format!("{prefix}{element}"), paths);
        }
    }

    pub(crate) fn from_fields(fields: &Value) -> Result<Self, BadElement> {
        Ok(read(fields)?.below)
    }

    pub(crate) fn to_fields(&self) -> Value {
        let write = |(element, node): (&Element, &Node)| {
            let mut below = node.below.to_fields();
            if let Value::Object(fields) = &mut below
                && node.member
                && !fields.is_empty()
            {
                fields.insert(".".into(), Value::Object(Map::new()));
            }
            (element.text(), below)
        };
        Value::Object(self.0.iter().map(write).collect())
    }
}

/// A field with nothing below is in the set; a field with fields below is in the set if it has a
/// dot.
fn read(fields: &Value) -> Result<Node, BadElement> {
    let mut node = Node::default();
    let entries = fields.as_object();
    for (name, value) in entries.into_iter().flatten() {
        if name == "." {
            node.member = true;
        } else if let Some(element) = Element::parse(name)? {
            node.below.put(element, read(value)?);
        }
    }
    node.member |= node.below.is_empty();
    Ok(node)
}
