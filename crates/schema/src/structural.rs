//! A CRD version's `openAPIV3Schema`, parsed once: after [`Schema::parse`] every pattern and every
//! rule is compiled, and the tree is known to be structural.
//!
//! Owns the tree. Must not examine objects.

mod node;
mod parse;
mod rules;
mod values;

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use crate::cause::{Cause, Path};
use crate::cel::Rule;
use crate::depth;
use crate::format::Format;
use crate::pattern::Pattern;

/// JSON levels a schema may nest: each field costs two (`properties`, then the field).
const MAX_SCHEMA_DEPTH: usize = 200;

/// One node of a structural schema, or of the value validation under `anyOf`, `oneOf`, `allOf` and
/// `not` — there without type, default or extension.
#[derive(Debug, Default)]
pub struct Schema {
    pub kind: Option<JsonType>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub properties: BTreeMap<String, Schema>,
    pub additional: Option<Additional>,
    pub items: Option<Box<Schema>>,
    pub preserve_unknown: bool,
    pub embedded_resource: bool,
    pub int_or_string: bool,
    pub list: ListType,
    /// `x-kubernetes-map-type: atomic`: the fields of this object are not correlated individually.
    pub atomic_map: bool,
    pub values: ValueValidations,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
    /// Whether there is a rule here or below; other nodes are not walked.
    pub(crate) has_rules: bool,
    /// Whether there is a list of type set or map here or below.
    pub(crate) has_unique: bool,
    /// Whether objects may be embedded here or below.
    pub has_resources: bool,
}

/// `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// `additionalProperties`.
#[derive(Debug)]
pub enum Additional {
    /// `true`.
    Any,
    Schema(Box<Schema>),
}

/// `x-kubernetes-list-type`, with its `x-kubernetes-list-map-keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// The value validations of a node, which may appear both outside and inside `anyOf` and the like.
#[derive(Debug, Default)]
pub struct ValueValidations {
    pub required: Vec<String>,
    pub one_of_values: Vec<Value>,
    pub pattern: Option<Pattern>,
    pub format: Option<Format>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub minimum: Option<NumberBound>,
    pub maximum: Option<NumberBound>,
    pub multiple_of: Option<Number>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub all_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
}

/// `minimum` or `maximum`, with its `exclusive…`.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberBound {
    pub limit: Number,
    pub exclusive: bool,
}

impl Schema {
    /// Parses and checks an `openAPIV3Schema`.
    ///
    /// The causes contain paths below `openAPIV3Schema`; all of them are found in one pass. A rule
    /// or a pattern that does not compile is a cause: nothing is skipped.
    pub fn parse(open_api_v3_schema: &Value) -> Result<Self, Vec<Cause>> {
        let root = Path::root();
        let path = root.field("openAPIV3Schema");
        if let Some(cause) = depth::guard(open_api_v3_schema, MAX_SCHEMA_DEPTH, &path) {
            return Err(vec![cause]);
        }
        let mut causes = Vec::new();
        let schema = parse::parse(open_api_v3_schema, &path, &mut causes);
        rules::check(&schema, &path, &mut causes);
        if causes.is_empty() { Ok(schema) } else { Err(causes) }
    }

    /// The schema that governs the field `name`, declared or additional.
    pub fn child(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            Some(Additional::Any) | None => None,
        })
    }

    fn summarise(&mut self) {
        let additional = match &self.additional {
            Some(Additional::Schema(schema)) => Some(&**schema),
            Some(Additional::Any) | None => None,
        };
        let children = || self.properties.values().chain(additional).chain(self.items.as_deref());
        let has_rules = !self.rules.is_empty() || children().any(|child| child.has_rules);
        let has_unique = self.list != ListType::Atomic || children().any(|child| child.has_unique);
        let has_resources = self.embedded_resource || children().any(|child| child.has_resources);
        self.has_resources = has_resources;
        self.has_rules = has_rules;
        self.has_unique = has_unique;
    }

    /// `type` as in messages, with the two types of int-or-string joined.
    pub(crate) fn type_name(&self) -> Option<&'static str> {
        if self.int_or_string {
            return Some("integer,string");
        }
        self.kind.map(JsonType::as_str)
    }
}

impl JsonType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }

    pub(crate) fn is_scalar(self) -> bool {
        !matches!(self, Self::Object | Self::Array)
    }
}
