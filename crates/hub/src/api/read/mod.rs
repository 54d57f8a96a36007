//! Reading: objects, lists and watches, in the requested format.
//!
//! Owns how stored objects become responses. Everything is read from memory, from states that are
//! on disk.

pub(crate) mod list;
pub(crate) mod snapshots;
pub(crate) mod watch;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::negotiate::{Params, Shape};
use crate::api::status::ApiError;
use crate::api::write::RequestScope;
use crate::formats::form;
use crate::formats::selector::{FieldSelector, LabelSelector};
use crate::formats::table::{self, IncludeObject};
use crate::kinds::resource::{KindVersion, Resource};
use crate::store::object::{StoredObject, type_suffix};

/// Selects objects of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// `namespace/`, or empty for all.
    prefix: String,
    name: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    /// Whether a field selector needs the content of the object.
    reads_content: bool,
}

impl Filter {
    pub(crate) fn new(scope: &RequestScope, name: Option<&str>, params: &Params) -> Result<Self, ApiError> {
        let version = scope.required_version()?;
        let mut reads_content = false;
        for path in params.fields.paths() {
            let by_key = path == "metadata.name" || path == "metadata.namespace" && scope.resource.namespaced;
            if !by_key && !version.selectable.iter().any(|(known, _)| known == path) {
                return Err(ApiError::bad_request(if scope.resource.is_custom() {
                    format!("field label not supported: {path}")
                } else {
                    format!(
                        "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                }));
            }
            reads_content |= !by_key;
        }
        Ok(Self {
            prefix: scope.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default(),
            name: name.map(str::to_owned),
            labels: params.labels.clone(),
            fields: params.fields.clone(),
            reads_content,
        })
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether every object of the namespace matches.
    pub(crate) fn takes_all(&self) -> bool {
        self.name.is_none() && self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, scope: &RequestScope, stored: &StoredObject) -> bool {
        if !stored.key.starts_with(&self.prefix)
            || self.name.as_deref().is_some_and(|name| name != stored.name())
        {
            return false;
        }
        if !self.labels.is_empty() && !self.labels.matches(|key| stored.label(key)) {
            return false;
        }
        self.fields.is_empty() || self.matches_fields(scope, stored)
    }

    fn matches_fields(&self, scope: &RequestScope, stored: &StoredObject) -> bool {
        let Some(version) = scope.version() else { return false };
        let object = if self.reads_content {
            form::served(&scope.resource, version, stored.value())
        } else {
            Value::Null
        };
        self.fields.matches(|path| match path {
            "metadata.name" => Some(stored.name().to_owned()),
            "metadata.namespace" => Some(stored.namespace().unwrap_or_default().to_owned()),
            other => {
                let (_, path) = version.selectable.iter().find(|(known, _)| known == other)?;
                // A missing field selects like an empty one.
                Some(path.find(&object).first().map(|value| plain(value)).unwrap_or_default())
            }
        })
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(source) => {
            source.get("component").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    }
}

/// The format of a response about one kind.
#[derive(Clone, Debug)]
pub(crate) struct ResponseFormat {
    pub(crate) scope: RequestScope,
    pub(crate) shape: Shape,
    pub(crate) include: IncludeObject,
    pub(crate) now: Timestamp,
}

impl ResponseFormat {
    fn parts(&self) -> Option<(&Resource, &KindVersion)> {
        Some((&self.scope.resource, self.scope.version()?))
    }

    /// Encodes a stored object in the requested format.
    pub(crate) fn object(&self, stored: &StoredObject) -> Bytes {
        match self.parts() {
            Some((resource, version))
                if self.shape == Shape::Object && resource.serves_bytes_of(version, stored) =>
            {
                stored.json.clone()
            }
            _ => self.value(stored.value()).to_string().into(),
        }
    }

    /// Converts a stored value to the requested format.
    pub(crate) fn value(&self, stored: Value) -> Value {
        let Some((resource, version)) = self.parts() else { return stored };
        let revision = stored.pointer("/metadata/resourceVersion").cloned().unwrap_or_else(|| json!(""));
        let object = form::served(resource, version, stored);
        match self.shape {
            Shape::Object => object,
            Shape::Partial => table::partial_metadata(&object),
            Shape::Table => {
                let row = table::row(&version.columns, &object, self.now, self.include);
                table::table(
                    json!({"resourceVersion": revision}),
                    vec![row],
                    Some(version.columns.definitions()),
                )
            }
        }
    }

    /// One entry of a list: an object, or a row of a table.
    pub(crate) fn item(&self, stored: &StoredObject) -> Bytes {
        match (self.shape, self.parts()) {
            (Shape::Table, Some((resource, version))) => {
                let object = form::served(resource, version, stored.value());
                table::row(&version.columns, &object, self.now, self.include).to_string().into()
            }
            (Shape::Object, Some((resource, version))) if !resource.is_custom() => {
                self.without_type(stored, resource, version)
            }
            _ => self.object(stored),
        }
    }

    /// Items of a list of a built-in kind omit apiVersion and kind.
    fn without_type(&self, stored: &StoredObject, resource: &Resource, version: &KindVersion) -> Bytes {
        let object = self.object(stored);
        let suffix = type_suffix(&version.api_version, &resource.names.kind);
        match object.strip_suffix(suffix.as_bytes()) {
            Some(rest) => [rest, b"}"].concat().into(),
            None => object,
        }
    }
}
