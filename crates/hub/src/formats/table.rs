//! Server-side tables: `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`, and the
//! PartialObjectMetadata of their rows.
//!
//! Owns the columns of a kind and the content of cells, as the API server's table convertors print
//! them. Must not read the clock, negotiate content types or read query parameters.

mod age;
mod builtin;
mod event;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::formats::jsonpath::JsonPathExpression;

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
    resources may allow a client to request the generation of an appropriate name automatically. Name is primarily \
    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It \
    is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. \
    It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More \
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of one kind, in order.
#[derive(Clone, Debug)]
pub(crate) struct Columns(Vec<Column>);

#[derive(Clone, Debug)]
struct Column {
    name: String,
    type_: String,
    format: String,
    description: String,
    /// 0 is always shown, other priorities only with `-o wide`.
    priority: i64,
    source: CellSource,
}

/// The source of a cell.
#[derive(Clone, Debug)]
enum CellSource {
    /// A printer column of a CRD: the first match, converted to the column's type.
    Path(JsonPathExpression),
    /// Computed, as a built-in kind's printer does.
    Printed(fn(&Value, Timestamp) -> Value),
}

/// How much of the object a row contains: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl Columns {
    /// Name and the `additionalPrinterColumns` of a CRD version or, if there are none, Name and
    /// Age. An API server falls back on the latter when a path cannot be read, so the caller may
    /// take `custom(&[])` on an error.
    pub(crate) fn custom(additional_printer_columns: &[Value]) -> Result<Self, String> {
        let mut columns = vec![Column::name()];
        if additional_printer_columns.is_empty() {
            let age = json!({
                "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": CREATED,
            });
            columns.push(Column::additional(&age)?);
        }
        for column in additional_printer_columns {
            columns.push(Column::additional(column)?);
        }
        Ok(Self(columns))
    }

    /// The columns of a built-in kind; Name and Age by default.
    pub(crate) fn builtin(kind: &str) -> Self {
        Self(builtin::columns(kind))
    }

    /// `columnDefinitions`.
    pub(crate) fn definitions(&self) -> Value {
        let definition = |column: &Column| {
            let Column { name, type_, format, description, priority, source: _ } = column;
            json!({
                "name": name, "type": type_, "format": format, "description": description, "priority": priority,
            })
        };
        self.0.iter().map(definition).collect()
    }

    /// One cell for each column; null if a custom resource has no value of the column's type.
    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        self.0.iter().map(|column| column.cell(object, now)).collect()
    }
}

impl Column {
    fn name() -> Self {
        Self {
            name: "Name".to_owned(),
            type_: "string".to_owned(),
            format: "name".to_owned(),
            description: NAME.to_owned(),
            priority: 0,
            source: CellSource::Printed(builtin::name),
        }
    }

    fn additional(column: &Value) -> Result<Self, String> {
        let text = |field: &str| column.get(field).and_then(Value::as_str).unwrap_or_default();
        let json_path = text("jsonPath");
        let path = JsonPathExpression::parse(json_path);
        let path = path.map_err(|error| format!("unrecognized column definition {json_path:?}: {error}"))?;
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {json_path}"),
            description => description.to_owned(),
        };
        Ok(Self {
            name: text("name").to_owned(),
            type_: text("type").to_owned(),
            format: text("format").to_owned(),
            description,
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            source: CellSource::Path(path),
        })
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.source {
            CellSource::Printed(print) => print(object, now),
            CellSource::Path(path) => match path.find(object).first() {
                Some(value) => typed(&self.type_, value, now),
                None => Value::Null,
            },
        }
    }
}

/// Converts a value to a cell of that type; null if it does not match.
fn typed(type_: &str, value: &Value, now: Timestamp) -> Value {
    match (type_, value) {
        ("string", value) => printed(value).into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(integer) => integer.into(),
            // Truncated, and saturated where Go's conversion is undefined.
            None => number.as_f64().map_or(Value::Null, |float| (float as i64).into()),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) => age::since(time, now).into(),
        _ => Value::Null,
    }
}

/// A value in a column of type string, as Go's `jsonpath.PrintResults` writes it.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => printed_float(float),
            None => value.to_string(),
        },
        // encoding/json escapes what could end a script element.
        Value::Array(_) | Value::Object(_) => {
            value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        }
    }
}

/// Go's `%v`: scientific from a million on.
fn printed_float(float: f64) -> String {
    let scientific = format!("{float:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => float.to_string(),
    }
}

/// One row. The bookmark that ends the initial events of a watch needs its annotations: use at
/// least [`IncludeObject::Metadata`] for it, whatever was requested.
pub(crate) fn row(columns: &Columns, object: &Value, now: Timestamp, include: IncludeObject) -> Value {
    let carried = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => partial_metadata(object),
        IncludeObject::Object => object.clone(),
    };
    object_of([("cells", columns.cells(object, now).into()), ("object", carried)])
}

/// A Table. Definitions are null from the second event of a watch on.
pub(crate) fn table(list_meta: Value, rows: Vec<Value>, definitions: Option<Value>) -> Value {
    object_of([
        ("kind", "Table".into()),
        ("apiVersion", "meta.k8s.io/v1".into()),
        ("metadata", list_meta),
        ("columnDefinitions", definitions.unwrap_or_default()),
        ("rows", rows.into()),
    ])
}

/// The object as a PartialObjectMetadata.
pub(crate) fn partial_metadata(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    object_of([
        ("kind", "PartialObjectMetadata".into()),
        ("apiVersion", "meta.k8s.io/v1".into()),
        ("metadata", metadata),
    ])
}

/// Unlike `json!`, moves the values, which may be large.
fn object_of<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests;
