//! What all writes have in common.
//!
//! Owns the way from a request's body to a change of the store. A write is computed against the
//! newest state, then passed to the store on condition that this is still the newest state;
//! otherwise it is computed again.

pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod delete;
mod kinds;
pub(crate) mod patch;
pub(crate) mod update;

use std::collections::BTreeSet;
use std::sync::Arc;

use aviary_schema::{CauseReason, UnknownFields};
use http::StatusCode;
use serde_json::{Map, Value};

use crate::api::status::{About, ApiError};
use crate::formats::embedded;
use crate::formats::form;
use crate::formats::metadata;
use crate::hub::HubState;
use crate::kinds::builtin::CONTROLLER_REVISIONS;
use crate::kinds::resource::{KindVersion, Resource};
use crate::security::access::Extent;
use crate::store::object::{Draft, ObjectFacts, StoreKey, StoredObject};
use crate::store::{ChangeAction, LostChange, RefusedChange, StoreChange, StoreState};

/// The maximum encoded size of an object: what etcd accepts in one request.
const LARGEST_OBJECT: usize = 3 << 19;
/// The maximum number of reported unknown and duplicate fields.
const MOST_ODDITIES: usize = 100;
/// How often a write is computed again because of concurrent writes.
const MOST_TRIES: usize = 1_000;

/// The kind, version and namespace of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestScope {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: usize,
    pub(crate) namespace: Option<String>,
}

impl RequestScope {
    pub(crate) fn version(&self) -> Option<&KindVersion> {
        self.resource.versions.get(self.version)
    }

    pub(crate) fn key(&self, name: &str) -> StoreKey {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{name}").into(),
            None => name.into(),
        }
    }

    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        self.resource.about(name)
    }

    /// The version, or an error if its CRD was deleted in the meantime.
    pub(crate) fn required_version(&self) -> Result<&KindVersion, ApiError> {
        self.version().ok_or_else(ApiError::no_such_path)
    }
}

/// Options of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mode<'m> {
    pub(crate) dry_run: bool,
    pub(crate) unknown_fields: UnknownFields,
    /// The field manager.
    pub(crate) manager: &'m str,
    /// How much of an object the client may change, and its identity.
    pub(crate) extent: Extent,
    pub(crate) user: &'m str,
}

/// A parsed body, and its duplicate fields.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) object: Value,
    pub(crate) duplicates: Vec<String>,
}

/// The outcome of a write.
#[derive(Debug)]
pub(crate) struct WriteResponse {
    pub(crate) code: StatusCode,
    pub(crate) content: Content,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Content {
    Stored(Arc<StoredObject>),
    /// What a dry run would have stored, in stored form.
    Imagined(Value),
    /// A response that is not an object of the kind: a `Status` or a list.
    Other(Value),
}

impl WriteResponse {
    pub(crate) fn ok(content: Content) -> Self {
        Self { code: StatusCode::OK, content, warnings: Vec::new() }
    }
}

/// An admitted object, and warnings for the client.
struct AdmittedWrite {
    object: Value,
    warnings: Vec<String>,
}

/// Converts a client's object from its version to the stored form, and validates it.
fn admit(
    hub: &HubState,
    scope: &RequestScope,
    body: Body,
    old: Option<&Value>,
    unknown_fields: UnknownFields,
) -> Result<AdmittedWrite, ApiError> {
    let version = scope.required_version()?;
    let resource = &scope.resource;
    let Body { mut object, duplicates } = body;
    let cannot = |why: &str| {
        let kind = &resource.names.kind;
        ApiError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: {why}",
            version.name
        ))
    };
    let mut oddities: Vec<String> =
        duplicates.iter().map(|field| format!("duplicate field {field:?}")).collect();
    let Value::Object(fields) = &mut object else { return Err(cannot("not an object")) };
    let unknown =
        metadata::shape(fields.entry("metadata").or_insert(Value::Null)).map_err(|why| cannot(&why))?;
    if !resource.is_custom() {
        // The content of a ControllerRevision is not interpreted, and keeps its nulls.
        let own = &*resource.id == CONTROLLER_REVISIONS;
        fields
            .iter_mut()
            .filter(|(name, _)| !(own && *name == "data"))
            .for_each(|(_, value)| drop_nulls(value));
        fields.retain(|_, value| !value.is_null());
    }
    let pruned = aviary_schema::prune::prune(version.admission.schema(), &mut object);
    oddities.extend(unknown.iter().chain(&pruned).map(|field| format!("unknown field {field:?}")));
    let mut seen = BTreeSet::new();
    oddities.retain(|oddity| seen.insert(oddity.clone()));
    oddities.truncate(MOST_ODDITIES);
    if unknown_fields == UnknownFields::Strict && !oddities.is_empty() {
        return Err(cannot(&format!("strict decoding error: {}", oddities.join(", "))));
    }
    let name = text(&object, "/metadata/name").to_owned();
    let refused = |causes: Vec<_>| ApiError::invalid(scope.about(&name), &causes);
    let mut causes = match object.get("metadata") {
        Some(Value::Object(fields)) => metadata::validate(fields, resource.traits.naming),
        _ => Vec::new(),
    };
    let mut object = match version.admission.admit(object, old, UnknownFields::Ignore) {
        Ok(admitted) => admitted.object,
        Err(found) => {
            // Kubernetes decodes built-in kinds into Go types: a value of a wrong type cannot be
            // decoded.
            if let Some(cause) =
                found.iter().find(|cause| !resource.is_custom() && cause.reason == CauseReason::TypeInvalid)
            {
                return Err(cannot(&format!("{}.{cause}", resource.names.kind)));
            }
            causes.extend(found);
            return Err(refused(causes));
        }
    };
    if !resource.is_custom()
        && let Err(found) = kinds::complete(resource, &mut object, old, &hub.table(), &hub.now_text())
    {
        causes.extend(found);
    }
    causes.extend(embedded::validate(version.admission.schema(), &object));
    if !causes.is_empty() {
        return Err(refused(causes));
    }
    let warnings = if unknown_fields == UnknownFields::Warn { oddities } else { Vec::new() };
    Ok(AdmittedWrite { object, warnings })
}

/// The stored form of an admitted object.
fn to_stored(scope: &RequestScope, object: Value) -> Result<Value, ApiError> {
    let of = scope.version().map(|version| version.api_version.clone()).unwrap_or_default();
    let kind = &scope.resource.names.kind;
    form::stored(&scope.resource, object)
        .map_err(|why| ApiError::failed(format!("conversion webhook for {of}, Kind={kind} failed: {why}")))
}

/// As in Go's decoding, a null counts as absent.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Encodes the object for the store, or fails if it is too large.
fn encode(scope: &RequestScope, object: &Value) -> Result<ChangeAction, ApiError> {
    let draft = Draft::of(object).map_err(ApiError::internal)?;
    if draft.len() > LARGEST_OBJECT {
        let name = text(object, "/metadata/name");
        let message = format!(
            "{} {name:?} is too large: {} bytes, the limit is {LARGEST_OBJECT}",
            scope.resource.names.kind,
            draft.len()
        );
        return Err(ApiError::too_large(message));
    }
    let facts = ObjectFacts::of(object).map_err(ApiError::internal)?;
    Ok(ChangeAction::Put(draft, facts))
}

/// Submits a change to the store and waits until it is on disk. `None` if the object has changed in
/// the meantime.
async fn commit(
    hub: &HubState,
    change: StoreChange,
    allow: impl FnOnce(&StoreState) -> Result<(), ApiError>,
) -> Result<Option<Arc<StoredObject>>, ApiError> {
    match hub.store.submit(change, allow) {
        Ok(written) => match written.await {
            Ok(Ok(stored)) => Ok(Some(stored)),
            Ok(Err(lost)) => Err(lost_write(&lost)),
            Err(_) => Err(ApiError::stopping()),
        },
        Err(RefusedChange::Raced) => Ok(None),
        Err(RefusedChange::By(failure)) => Err(*failure),
        Err(RefusedChange::Closed) => Err(ApiError::stopping()),
    }
}

fn lost_write(lost: &LostChange) -> ApiError {
    ApiError::internal(lost)
}

fn too_busy(scope: &RequestScope, name: &str) -> ApiError {
    ApiError::conflict(scope.about(name), "others kept changing the object; please try again")
}

pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn metadata_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata").and_then(Value::as_object_mut)
}

/// Checks that a body has the kind of its endpoint, and fills in what a client may omit.
fn check_kind(scope: &RequestScope, object: &mut Value) -> Result<(), ApiError> {
    let version = scope.required_version()?;
    let Value::Object(fields) = object else {
        return Err(ApiError::bad_request(
            "the object provided is unrecognized: couldn't get version/kind; json parse error: not an object",
        ));
    };
    let is_no_text =
        |name: &str| fields.get(name).is_some_and(|value| !value.is_string() && !value.is_null());
    if is_no_text("apiVersion") || is_no_text("kind") {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: not a string",
            scope.resource.names.kind
        )));
    }
    let custom = scope.resource.is_custom();
    let given = |fields: &Map<String, Value>, name: &str| {
        fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (given(fields, "apiVersion"), given(fields, "kind"));
    if custom && (api_version.is_empty() || kind.is_empty()) {
        let missing = if kind.is_empty() { "Kind" } else { "apiVersion" };
        return Err(ApiError::bad_request(format!(
            "Object '{missing}' is missing in the body of the request"
        )));
    }
    if !api_version.is_empty() && api_version != version.api_version {
        let message = format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            version.api_version
        );
        return Err(ApiError::bad_request(message));
    }
    if !kind.is_empty() && kind != scope.resource.names.kind {
        let expected = &scope.resource.names.kind;
        if custom {
            let name = text(object, "/metadata/name").to_owned();
            return Err(ApiError::invalid(
                About { kind: &kind, ..scope.about(&name) },
                &[metadata::invalid("kind", &kind, &format!("must be {expected}"))],
            ));
        }
        return Err(ApiError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {expected}",
            version.name
        )));
    }
    fields.insert("apiVersion".into(), version.api_version.as_str().into());
    fields.insert("kind".into(), scope.resource.names.kind.as_str().into());
    Ok(())
}
