//! Applies patches.
//!
//! Owns the types of patches. Must not validate the result: that is an update like any other.

use json_patch::{PatchOperation, merge, patch_unsafe};
use serde_json::{Map, Value};

use crate::api::status::ApiError;
use crate::formats::json;
use crate::formats::strategic::{self, StrategicError};
use crate::kinds::resource::Resource;

/// The media type of a server-side apply, which is handled in `write::apply`.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
/// The maximum number of operations, as in Kubernetes.
const MOST_OPERATIONS: usize = 10_000;
/// The maximum size of the result: a patch that copies an object into itself would grow without
/// bound.
const LARGEST_RESULT: usize = 3 << 20;

/// A parsed patch.
#[derive(Debug)]
pub(crate) enum Patch {
    Merge(Value),
    Json(Vec<PatchOperation>),
    Strategic(Value),
}

impl Patch {
    pub(crate) fn parse(content_type: &str, body: &[u8], resource: &Resource) -> Result<Self, ApiError> {
        let custom = resource.is_custom();
        let document = || -> Result<Value, ApiError> {
            let (value, _) = json::parse(body)
                .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
            if value.is_object() {
                Ok(value)
            } else {
                Err(ApiError::bad_request("error decoding patch: a patch must be an object"))
            }
        };
        match content_type {
            "application/merge-patch+json" => document().map(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => document().map(Self::Strategic),
            "application/json-patch+json" => {
                let undecodable = |error| ApiError::bad_request(format!("error decoding patch: {error}"));
                let operations: Vec<Map<String, Value>> =
                    serde_json::from_slice(body).map_err(undecodable)?;
                if operations.len() > MOST_OPERATIONS {
                    let message = format!(
                        "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                        operations.len()
                    );
                    return Err(ApiError::too_large(message));
                }
                let read = |operation| {
                    serde_json::from_value(Value::Object(operation)).map_err(|error| rejected(&error))
                };
                operations.into_iter().map(read).collect::<Result<_, _>>().map(Self::Json)
            }
            _ => {
                let known = [
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    APPLY,
                    "application/strategic-merge-patch+json",
                ];
                let known = if custom { known.get(..3).unwrap_or_default() } else { &known[..] };
                let message = format!(
                    "the body of the request was in an unknown format - accepted media types include: {}",
                    known.join(", ")
                );
                Err(ApiError::unsupported_media_type(message))
            }
        }
    }

    pub(crate) fn apply(&self, kind: &str, object: &Value) -> Result<Value, ApiError> {
        match self {
            Self::Merge(patch) => {
                let mut object = object.clone();
                merge(&mut object, patch);
                Ok(object)
            }
            Self::Strategic(patch) => strategic::apply(kind, object, patch).map_err(|error| match error {
                StrategicError::UnsupportedKind(_) => ApiError::unsupported_media_type(error.to_string()),
                _ => ApiError::bad_request(error.to_string()),
            }),
            Self::Json(operations) => apply_operations(operations, object.clone()),
        }
    }
}

fn rejected(why: &dyn std::fmt::Display) -> ApiError {
    ApiError::unprocessable(format!("the server rejected our request due to an error in our request: {why}"))
}

fn apply_operations(operations: &[PatchOperation], mut object: Value) -> Result<Value, ApiError> {
    for operation in operations {
        patch_unsafe(&mut object, std::slice::from_ref(operation)).map_err(|error| rejected(&error))?;
        if matches!(operation, PatchOperation::Copy(_)) && size(&object, LARGEST_RESULT) > LARGEST_RESULT {
            return Err(ApiError::too_large(format!(
                "the patch makes the object larger than {LARGEST_RESULT} bytes"
            )));
        }
    }
    Ok(object)
}

/// The approximate size of a value; stops once it is larger than `enough`.
fn size(value: &Value, enough: usize) -> usize {
    let mut total = 0;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        total += match value {
            Value::String(text) => text.len() + 2,
            Value::Object(fields) => {
                pending.extend(fields.values());
                fields.keys().map(|key| key.len() + 3).sum()
            }
            Value::Array(items) => {
                pending.extend(items);
                items.len() + 2
            }
            _ => 8,
        };
        if total > enough {
            break;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_that_doubles_the_object_again_and_again_is_stopped() {
        let copy = json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let operations: Vec<PatchOperation> = serde_json::from_value(json!(vec![copy; 64])).unwrap();
        let failure = apply_operations(&operations, json!({"a": ["x"]})).unwrap_err();
        assert_eq!(failure.code, 413);
    }
}
