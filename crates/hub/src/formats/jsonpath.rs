//! The JSONPath of printer columns: what it finds is what `k8s.io/client-go/util/jsonpath` finds.
//!
//! Owns fields, quoted keys, indices, slices, wildcards and filters. Unions, recursive descent and
//! templates are refused: one path is one column. Must not format what it finds.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

/// Why a path was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonPathError {
    #[error("unterminated {0}")]
    Unterminated(&'static str),
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    #[error("invalid array index {0}")]
    Index(String),
    #[error("unrecognized character {0:?}")]
    Character(char),
    #[error("cannot parse operand {0:?}")]
    Operand(String),
    #[error("unrecognized filter operator {0}")]
    Operator(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPathExpression(Vec<PathStep>);

#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Field(String),
    /// `['a.b']`: the key `a.b`, or else the path `.a.b`, as which Go reads it.
    Quoted {
        key: String,
        path: Vec<Self>,
    },
    /// `.*`: of an object or an array.
    Children,
    Index(i64),
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        step: Option<i64>,
    },
    Filter(Box<FilterExpression>),
}

#[derive(Clone, Debug, PartialEq)]
enum FilterExpression {
    Exists(Operand),
    Compare(Operand, Comparator, Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Vec<PathStep>),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPathExpression {
    /// Parses `.a.b`, with or without the braces `{.a.b}`.
    pub(crate) fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::path(text).map(Self)
    }

    /// What the path finds, in document order. Nothing, if a step does not fit anywhere: one index
    /// out of bounds or one filter over something else than an array loses every result, as in Go.
    pub(crate) fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        walk(&self.0, root).unwrap_or_default()
    }
}

/// `None` is Go's evaluation error.
fn walk<'v>(steps: &[PathStep], root: &'v Value) -> Option<Vec<&'v Value>> {
    let mut found = vec![root];
    for step in steps {
        if found.is_empty() {
            break;
        }
        found = step.apply(&found)?;
    }
    Some(found)
}

impl PathStep {
    fn apply<'v>(&self, input: &[&'v Value]) -> Option<Vec<&'v Value>> {
        match self {
            Self::Field(name) => Some(input.iter().filter_map(|value| value.get(name)).collect()),
            Self::Quoted { key, path } => {
                let mut found = Vec::new();
                for value in input {
                    match value.get(key) {
                        Some(value) => found.push(value),
                        None => found.extend(walk(path, value)?),
                    }
                }
                Some(found)
            }
            Self::Children => Some(input.iter().flat_map(|value| children(value)).collect()),
            Self::Index(index) => {
                let one = |items: &&'v Vec<Value>| items.get(position(*index, items.len())?);
                arrays(input)?.iter().map(one).collect()
            }
            Self::Slice { from, to, step } => slice(&arrays(input)?, *from, *to, *step),
            Self::Filter(filter) => {
                let mut found = Vec::new();
                for value in input {
                    for item in value.as_array()? {
                        if filter.passes(item)? {
                            found.push(item);
                        }
                    }
                }
                Some(found)
            }
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// The arrays among the input, without nulls; anything else is an error.
fn arrays<'v>(input: &[&'v Value]) -> Option<Vec<&'v Vec<Value>>> {
    input.iter().filter(|value| !value.is_null()).map(|value| value.as_array()).collect()
}

/// Counts negative indices from the end.
fn position(index: i64, len: usize) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(from_start).ok()
}

fn slice<'v>(
    arrays: &[&'v Vec<Value>],
    from: Option<i64>,
    to: Option<i64>,
    step: Option<i64>,
) -> Option<Vec<&'v Value>> {
    let step = usize::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0)?;
    let mut found = Vec::new();
    for items in arrays {
        let from = position(from.unwrap_or(0), items.len())?;
        let to = to.map_or(Some(items.len()), |to| position(to, items.len()))?;
        if from == to {
            // Go leaves the whole step here, not just this array.
            return Some(found);
        }
        found.extend(items.get(from..to)?.iter().step_by(step));
    }
    Some(found)
}

impl FilterExpression {
    fn passes(&self, item: &Value) -> Option<bool> {
        match self {
            Self::Exists(operand) => Some(operand.value(item).ok().flatten().is_some()),
            Self::Compare(left, comparison, right) => {
                let (Some(left), Some(right)) = (left.value(item).ok()?, right.value(item).ok()?) else {
                    return Some(false);
                };
                comparison.holds(left, right)
            }
        }
    }
}

/// An operand that finds several values, or cannot be evaluated.
struct NotOne;

impl Operand {
    fn value<'a>(&'a self, item: &'a Value) -> Result<Option<&'a Value>, NotOne> {
        match self {
            Self::Literal(value) => Ok(Some(value)),
            Self::Path(steps) => match walk(steps, item).as_deref() {
                Some([]) => Ok(None),
                Some([value]) => Ok(Some(value)),
                _ => Err(NotOne),
            },
        }
    }
}

impl Comparator {
    /// Only scalars of one type compare; booleans only for equality.
    fn holds(self, left: &Value, right: &Value) -> Option<bool> {
        if let (Value::Bool(left), Value::Bool(right)) = (left, right) {
            return match self {
                Self::Equal => Some(left == right),
                Self::NotEqual => Some(left != right),
                _ => None,
            };
        }
        let ordering = match (left, right) {
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => left.cmp(&right),
                (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?)?,
                _ => return None,
            },
            _ => return None,
        };
        Some(match self {
            Self::Equal => ordering == Ordering::Equal,
            Self::NotEqual => ordering != Ordering::Equal,
            Self::Less => ordering == Ordering::Less,
            Self::LessOrEqual => ordering != Ordering::Greater,
            Self::Greater => ordering == Ordering::Greater,
            Self::GreaterOrEqual => ordering != Ordering::Less,
        })
    }
}

#[cfg(test)]
mod tests;
