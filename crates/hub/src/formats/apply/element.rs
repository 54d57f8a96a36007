//! A path element: its order and its text.
//!
//! Owns what structured-merge-diff calls a path element. Numbers are compared by value: `1` and
//! `1.0` are the same key.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

#[derive(Clone, Debug)]
pub(crate) enum Element {
    Field(String),
    /// An item of a list map, by its keys, sorted by name.
    Key(Vec<(String, Value)>),
    /// An item of a set.
    Item(Value),
    Index(i64),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadElement {
    #[error("missing colon: {0}")]
    NoColon(String),
    #[error("{0} is not readable")]
    Unreadable(String),
}

impl Element {
    /// Parses `f:name`, `k:{…}`, `v:…` or `i:3`. `None` is a type of element that a later version
    /// may define.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, BadElement> {
        let unreadable = || BadElement::Unreadable(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(|| BadElement::NoColon(text.to_owned()))?;
        match kind {
            "f" => Ok(Some(Self::Field(rest.to_owned()))),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).map_err(|_| unreadable())?;
                Ok(Some(Self::key(keys.into_iter().collect())))
            }
            "v" => serde_json::from_str(rest).map(|item| Some(Self::Item(item))).map_err(|_| unreadable()),
            "i" => rest.parse().map(|index| Some(Self::Index(index))).map_err(|_| unreadable()),
            other if other.len() == 1 => Ok(None),
            _ => Err(BadElement::NoColon(text.to_owned())),
        }
    }

    pub(crate) fn key(mut keys: Vec<(String, Value)>) -> Self {
        keys.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self::Key(keys)
    }

    /// The text in `fieldsV1`.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => format!("k:{}", Value::Object(keys.iter().cloned().collect())),
            Self::Item(item) => format!("v:{item}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Item(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// The text in a path: `.name`, `[key="a"]`, `[="item"]`, `[3]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    let joint = if index > 0 { "," } else { "" };
                    write!(f, "{joint}{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Item(item) => write!(f, "[={item}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(one), Self::Field(other)) => one.cmp(other),
            (Self::Key(one), Self::Key(other)) => {
                let pairs = one.iter().zip(other).map(|((name, value), (other_name, other_value))| {
                    name.cmp(other_name).then_with(|| compare(value, other_value))
                });
                pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
            }
            (Self::Item(one), Self::Item(other)) => compare(one, other),
            (Self::Index(one), Self::Index(other)) => one.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// Whether two values are equal.
pub(crate) fn equal(one: &Value, other: &Value) -> bool {
    one == other || compare(one, other).is_eq()
}

fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => {
                let float = |number: &serde_json::Number| number.as_f64().unwrap_or_default();
                float(one).total_cmp(&float(other))
            }
        },
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).map(|(one, other)| compare(one, other));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            let pairs = one.iter().zip(other).map(|((name, value), (other_name, other_value))| {
                name.cmp(other_name).then_with(|| compare(value, other_value))
            });
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
