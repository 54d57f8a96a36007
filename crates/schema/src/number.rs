//! The value checks of numbers. Two JSON numbers compare as integers if both are, otherwise as
//! floats.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::cause::{Cause, Path};
use crate::format::integer;
use crate::structural::{JsonType, Schema};

pub(crate) fn check(schema: &Schema, number: &Number, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let values = &schema.values;
    let mut refuse = |detail: String| {
        causes.push(Cause::invalid(
            path,
            &Value::Number(number.clone()),
            &format!("{} {detail}", path.in_body()),
        ));
    };
    if let Some(factor) = values.multiple_of.as_ref().filter(|factor| !is_multiple(number, factor)) {
        refuse(format!("in body should be a multiple of {}", shown(factor)));
    }
    if let Some(max) = &values.maximum {
        let order = compare(number, &max.limit);
        if order == Ordering::Greater || (max.exclusive && order == Ordering::Equal) {
            let than = if max.exclusive { "less than" } else { "less than or equal to" };
            refuse(format!("in body should be {than} {}", shown(&max.limit)));
        }
    }
    if let Some(min) = &values.minimum {
        let order = compare(number, &min.limit);
        if order == Ordering::Less || (min.exclusive && order == Ordering::Equal) {
            let than = if min.exclusive { "greater than" } else { "greater than or equal to" };
            refuse(format!("in body should be {than} {}", shown(&min.limit)));
        }
    }
    let Some(kind) = schema.kind.filter(|kind| matches!(kind, JsonType::Integer | JsonType::Number)) else {
        return;
    };
    if let Some(format) = values.format.filter(|format| !format.accepts_number(number)) {
        let (kind, format) = (kind.as_str(), format.as_str());
        let detail =
            format!("Checked value must be of type {kind} with format {format} in {}", path.in_body());
        causes.push(Cause::invalid(path, &Value::Number(number.clone()), &detail));
    }
}

/// Equality of an enum's value and an object's: `1` and `1.0` are the same number.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Ordering::Equal,
        (one, other) => one == other,
    }
}

fn compare(one: &Number, other: &Number) -> Ordering {
    if let (Some(one), Some(other)) = (integer(one), integer(other)) {
        return one.cmp(&other);
    }
    float(one).total_cmp(&float(other))
}

fn is_multiple(number: &Number, factor: &Number) -> bool {
    if let (Some(number), Some(factor)) = (integer(number), integer(factor)) {
        return factor != 0 && number % factor == 0;
    }
    let quotient = float(number) / float(factor);
    (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0)
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// Integers without a fraction, as Go prints them.
fn shown(number: &Number) -> String {
    integer(number).map_or_else(|| number.to_string(), |whole| whole.to_string())
}
