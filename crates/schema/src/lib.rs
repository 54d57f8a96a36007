//! What a Kubernetes API server does with a custom resource at admission, as pure functions over
//! JSON values.
//!
//! Owns schemas and what they say about objects: prune, default, validate, rules, in that order.
//! Must not read files, the network or the clock, and does not know clusters: a linter and an API
//! server get the same result.
//!
//! ```
//! use aviary_schema::{Admission, UnknownFields};
//! use serde_json::json;
//!
//! let admission = Admission::new(&json!({
//!     "type": "object",
//!     "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}},
//! }))
//! .unwrap();
//! let admitted = admission.admit(json!({"spec": {"sise": 3}}), None, UnknownFields::Warn).unwrap();
//! assert_eq!(admitted.object, json!({"spec": {"size": 1}}));
//! assert_eq!(admitted.pruned, ["spec.sise"]);
//! ```

mod cause;
mod cel;
pub mod default;
mod depth;
mod format;
mod former;
mod number;
mod pattern;
pub mod prune;
pub mod structural;
mod unique;
mod validate;

use serde_json::Value;

pub use cause::{Cause, CauseReason};
pub use cel::Rule;
pub use depth::{MAX_DEPTH, nests_too_deep};
pub use format::Format;
pub use pattern::Pattern;
pub use structural::Schema;
pub use validate::validate;

/// The admission of one version of one custom resource.
#[derive(Debug)]
pub struct Admission {
    schema: Schema,
}

/// What to do about unknown fields: the `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// Drop them.
    Ignore,
    /// Drop them; the caller warns about [`Admitted::pruned`].
    #[default]
    Warn,
    /// Reject the object, with one [`Reason::UnknownField`] each and no other cause.
    Strict,
}

/// An object as it would be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    pub object: Value,
    /// Paths of the dropped fields.
    pub pruned: Vec<String>,
}

impl Admission {
    /// Parses an `openAPIV3Schema`. The causes explain why it is not structural.
    pub fn new(open_api_v3_schema: &Value) -> Result<Self, Vec<Cause>> {
        Schema::parse(open_api_v3_schema).map(|schema| Self { schema })
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Admits a new object, or one that replaces `old`.
    pub fn admit(
        &self,
        object: Value,
        old: Option<&Value>,
        unknown: UnknownFields,
    ) -> Result<Admitted, Vec<Cause>> {
        if let Some(cause) = depth::guard(&object, MAX_DEPTH, &cause::Path::root()) {
            depth::dismantle(object);
            return Err(vec![cause]);
        }
        let mut object = object;
        let pruned = prune::prune(&self.schema, &mut object);
        if unknown == UnknownFields::Strict && !pruned.is_empty() {
            return Err(pruned.iter().map(|field| Cause::unknown_field(field)).collect());
        }
        default::apply(&self.schema, &mut object);
        let causes = validate(&self.schema, &object, old);
        if causes.is_empty() { Ok(Admitted { object, pruned }) } else { Err(causes) }
    }
}
