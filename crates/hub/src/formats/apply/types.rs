//! The ownership type of each part of an object: granular or atomic.
//!
//! Owns reading a schema for that purpose, as kube-openapi's conversion does. Must not validate
//! values.

use std::sync::LazyLock;

use aviary_schema::Schema;
use aviary_schema::structural::{Additional, JsonType, ListType};
use serde_json::{Map, Value, json};

use super::element::Element;

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueType<'s> {
    Known(SchemaType<'s>),
    /// No schema: maps are granular, lists atomic.
    Deduced,
    /// No schema, inside a list: everything is atomic.
    Opaque,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemaType<'s> {
    schema: &'s Schema,
    /// Unknown fields are preserved here or above.
    keeps_unknown: bool,
    /// It has `apiVersion`, `kind` and `metadata`, whatever its schema says.
    is_resource: bool,
}

/// The type of a field of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapField<'s> {
    /// The schema defines it: it exists even if no manager owns it.
    Named(ValueType<'s>),
    Other(ValueType<'s>),
    /// The field is not allowed.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ListSchema<'s> {
    pub(crate) kind: &'s ListType,
    pub(crate) item: ValueType<'s>,
}

/// The possible kinds of value at a place. If there are several, the first that matches in this
/// order is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atoms {
    map: bool,
    scalar: bool,
    list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    Map,
    Scalar,
    List,
}

impl Atoms {
    const ANY: Self = Self { map: true, scalar: true, list: true };
    const NONE: Self = Self { map: false, scalar: false, list: false };

    pub(crate) fn first(self) -> Atom {
        match self {
            Self { map: true, .. } => Atom::Map,
            Self { scalar: true, .. } => Atom::Scalar,
            _ => Atom::List,
        }
    }
}

static ATOMIC: ListType = ListType::Atomic;
static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| Schema::parse(&object_meta()).unwrap_or_default());

/// `ObjectMeta`, as Kubernetes' server-side apply knows it.
fn object_meta() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    // A time may be null, and is treated as any scalar.
    let time = json!({"type": "string", "format": "date-time", "nullable": true});
    let texts = json!({"type": "object", "additionalProperties": text});
    let entry = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let owner = json!({
        "type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": text, "kind": text, "name": text, "uid": {"type": "string", "default": ""},
            "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
        },
    });
    json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text, "selfLink": text,
        "generation": number, "deletionGracePeriodSeconds": number,
        "creationTimestamp": time, "deletionTimestamp": time,
        "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "ownerReferences": {"type": "array", "items": owner, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
        "managedFields": {"type": "array", "items": entry},
    }})
}

impl<'s> ValueType<'s> {
    /// The type of whole objects of a kind.
    pub(crate) fn resource(schema: &'s Schema) -> Self {
        Self::Known(SchemaType { schema, keeps_unknown: schema.preserve_unknown, is_resource: true })
    }

    fn inside(schema: &'s Schema, keeps_unknown: bool) -> Self {
        let keeps_unknown = keeps_unknown || schema.preserve_unknown;
        Self::Known(SchemaType { schema, keeps_unknown, is_resource: schema.embedded_resource })
    }

    fn allowed(self) -> Atoms {
        let Self::Known(SchemaType { schema, .. }) = self else { return Atoms::ANY };
        match schema.kind {
            Some(JsonType::Object) => Atoms { map: true, ..Atoms::NONE },
            Some(JsonType::Array) => Atoms { list: true, ..Atoms::NONE },
            Some(_) => Atoms { scalar: true, ..Atoms::NONE },
            None => Atoms::ANY,
        }
    }

    /// The kind of this value; without a value, or with one that does not match, all possible
    /// kinds.
    pub(crate) fn atoms(self, value: Option<&Value>) -> Atoms {
        let allowed = self.allowed();
        let one = match value {
            None | Some(Value::Null) => return allowed,
            Some(Value::Object(_)) => Atoms { map: allowed.map, ..Atoms::NONE },
            Some(Value::Array(_)) => Atoms { list: allowed.list, ..Atoms::NONE },
            Some(_) => Atoms { scalar: allowed.scalar, ..Atoms::NONE },
        };
        if one == Atoms::NONE { allowed } else { one }
    }

    pub(crate) fn is_list(self) -> bool {
        self.allowed().first() == Atom::List
    }

    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Known(SchemaType { schema, .. }) => schema.atomic_map,
            Self::Deduced => false,
            Self::Opaque => true,
        }
    }

    /// Whether a map or a list of this type is atomic.
    pub(crate) fn is_atomic(self) -> bool {
        match (self, self.allowed().first()) {
            (Self::Deduced | Self::Opaque, _) | (_, Atom::Scalar) => false,
            (_, Atom::Map) => self.is_atomic_map(),
            (_, Atom::List) => *self.list().kind == ListType::Atomic,
        }
    }

    pub(crate) fn field(self, name: &str) -> MapField<'s> {
        let known = match self {
            Self::Known(known) => known,
            Self::Deduced => return MapField::Other(Self::Deduced),
            Self::Opaque => return MapField::Other(Self::Opaque),
        };
        let SchemaType { schema, keeps_unknown, is_resource } = known;
        match name {
            "apiVersion" | "kind" if is_resource => {
                let text = OBJECT_META.properties.get("name");
                return MapField::Named(text.map_or(Self::Deduced, |text| Self::inside(text, false)));
            }
            "metadata" if is_resource => return MapField::Named(Self::inside(&OBJECT_META, false)),
            _ => {}
        }
        if let Some(field) = schema.properties.get(name) {
            return MapField::Named(Self::inside(field, keeps_unknown));
        }
        match &schema.additional {
            Some(Additional::Schema(field)) => MapField::Other(Self::inside(field, keeps_unknown)),
            Some(Additional::Any) => MapField::Other(Self::Deduced),
            None if keeps_unknown || schema.properties.is_empty() && !is_resource => {
                MapField::Other(Self::Deduced)
            }
            None => MapField::Unknown,
        }
    }

    /// The type of a field; an unknown field has a deduced type.
    pub(crate) fn below(self, name: &str) -> Self {
        match self.field(name) {
            MapField::Named(ty) | MapField::Other(ty) => ty,
            MapField::Unknown => Self::Deduced,
        }
    }

    pub(crate) fn list(self) -> ListSchema<'s> {
        let Self::Known(SchemaType { schema, keeps_unknown, .. }) = self else {
            return ListSchema { kind: &ATOMIC, item: Self::Opaque };
        };
        let item = schema.items.as_deref().map_or(Self::Opaque, |item| Self::inside(item, keeps_unknown));
        ListSchema { kind: &schema.list, item }
    }

    /// The only kind of scalar that matches, if there is just one.
    pub(crate) fn scalar(self) -> Option<JsonType> {
        match self {
            // A string with a format may have several encodings.
            Self::Known(SchemaType { schema, .. }) if schema.kind == Some(JsonType::String) => {
                schema.values.format.is_none().then_some(JsonType::String)
            }
            Self::Known(SchemaType { schema, .. }) => schema.kind,
            Self::Deduced | Self::Opaque => None,
        }
    }

    fn default_of(self, name: &str) -> Option<&'s Value> {
        let Self::Known(SchemaType { schema, .. }) = self else { return None };
        schema.properties.get(name)?.default.as_ref()
    }
}

impl ListSchema<'_> {
    /// The name of an item.
    pub(crate) fn element(&self, item: &Value) -> Result<Element, String> {
        match self.kind {
            ListType::Atomic => Err("invalid indexing of non-associative list".into()),
            ListType::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                scalar => Ok(Element::Item(scalar.clone())),
            },
            ListType::Map(names) => match item {
                Value::Null => Err("associative list with keys may not have a null element".into()),
                Value::Object(fields) => {
                    let value = |name: &String| fields.get(name).or_else(|| self.item.default_of(name));
                    let keys: Vec<(String, Value)> =
                        names.iter().filter_map(|name| Some((name.clone(), value(name)?.clone()))).collect();
                    if keys.is_empty() && !names.is_empty() {
                        return Err(format!(
                            "associative list with keys has an element that omits all key fields {names:?} (and doesn't have default values for any key fields)"
                        ));
                    }
                    Ok(Element::key(keys))
                }
                _ => Err("associative list with keys may not have non-map elements".into()),
            },
        }
    }

    /// The names of the items, in order. An item without a name is identified by its index.
    pub(crate) fn elements(&self, items: &[Value]) -> Vec<Element> {
        let place = |index: usize| Element::Index(i64::try_from(index).unwrap_or(i64::MAX));
        items
            .iter()
            .enumerate()
            .map(|(index, item)| self.element(item).unwrap_or_else(|_| place(index)))
            .collect()
    }
}

/// The fields of a non-empty map.
pub(crate) fn filled_map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|map| !map.is_empty())
}

/// The items of a non-empty list.
pub(crate) fn filled_list(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).filter(|list| !list.is_empty()).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_metadata_is_sound() {
        Schema::parse(&object_meta()).unwrap();
        assert!(OBJECT_META.properties.contains_key("finalizers"));
    }
}
