//! Updates and patches an object, or its status.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::apply::{self, Configuration, put_managers, take_managed_fields};
use super::create::{create, create_applied};
use super::patch::Patch;
use super::{
    Body, Content, MOST_TRIES, Mode, RequestScope, WriteResponse, admit, check_kind, commit, encode,
    metadata_of, text, to_stored, too_busy,
};
use crate::api::negotiate::no_number;
use crate::api::status::ApiError;
use crate::formats::apply::{Claimed, Managers};
use crate::formats::form;
use crate::formats::metadata;
use crate::hub::HubState;
use crate::kinds::builtin::NAMESPACES;
use crate::security::access::Extent;
use crate::store::object::StoredObject;
use crate::store::{ChangeAction, StoreChange};

/// The part of the object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrittenPart {
    Main,
    Status,
    /// The finalizers in a namespace's spec.
    Finalize,
}

/// The source of the new state.
#[derive(Debug)]
pub(crate) enum NewState {
    Body(Body),
    Patch(Patch),
    Apply(Configuration),
}

/// The outcome of an attempt.
enum UpdateAction {
    Nothing,
    Put(Value),
    Remove(Value),
}

pub(crate) async fn update(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    name: &str,
    part: WrittenPart,
    wanted: &NewState,
    mode: Mode<'_>,
) -> Result<WriteResponse, ApiError> {
    let key = scope.key(name);
    for _ in 0..MOST_TRIES {
        let head = hub.store.head();
        let Some(stored) = head.get(&scope.resource.id, &key).cloned() else {
            return match wanted {
                NewState::Body(body)
                    if scope.resource.traits.create_on_update && part == WrittenPart::Main =>
                {
                    create(hub, scope, body.clone(), mode).await
                }
                NewState::Apply(config) if part == WrittenPart::Main => {
                    match apply_to_nothing(hub, scope, name, config, mode).await? {
                        Some(made) => Ok(made),
                        None => continue,
                    }
                }
                _ => Err(ApiError::not_found(scope.about(name))),
            };
        };
        let (step, warnings) = work_out(hub, scope, &stored, part, wanted, mode)?;
        let answer = |content| WriteResponse { warnings: warnings.clone(), ..WriteResponse::ok(content) };
        let (action, last) = match step {
            UpdateAction::Nothing => {
                // The current object may not be on disk yet.
                hub.store.settled(&head, stored.revision).await.map_err(|lost| super::lost_write(&lost))?;
                return Ok(answer(Content::Stored(stored)));
            }
            UpdateAction::Put(object) | UpdateAction::Remove(object) if mode.dry_run => {
                return Ok(answer(Content::Imagined(object)));
            }
            UpdateAction::Put(object) => (encode(scope, &object)?, None),
            UpdateAction::Remove(object) => (ChangeAction::Remove, Some(object)),
        };
        let change = StoreChange {
            resource: Arc::clone(&scope.resource.id),
            key: key.clone(),
            expect: Some(stored.revision),
            action,
        };
        if let Some(written) = commit(hub, change, |_| Ok(())).await? {
            return Ok(answer(last.map_or(Content::Stored(written), Content::Imagined)));
        }
    }
    Err(too_busy(scope, name))
}

/// An apply without an existing object. `None` if it exists by now.
async fn apply_to_nothing(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    name: &str,
    config: &Configuration,
    mode: Mode<'_>,
) -> Result<Option<WriteResponse>, ApiError> {
    config.may_create.clone()?;
    if scope.resource.terminating {
        return Err(ApiError::crd_terminating(scope.about("")));
    }
    let (mut object, managers) =
        apply::onto(scope, WrittenPart::Main, None, config, mode.manager, hub.now())?;
    check_kind(scope, &mut object)?;
    let given = text(&object, "/metadata/name");
    if given.is_empty() {
        let why =
            format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(ApiError::bad_request(why));
    }
    if given != name {
        return Err(other_name(given, name));
    }
    let uid = text(&object, "/metadata/uid");
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(scope.about(name), &why));
    }
    if let Some(metadata) = metadata_of(&mut object) {
        // The client did not require the state that it was based on.
        metadata.remove("resourceVersion");
    }
    let body = Body { object, duplicates: config.duplicates.clone() };
    create_applied(hub, scope, body, &managers, mode).await
}

/// Computes the new state from the existing object.
fn work_out(
    hub: &HubState,
    scope: &RequestScope,
    stored: &StoredObject,
    part: WrittenPart,
    wanted: &NewState,
    mode: Mode<'_>,
) -> Result<(UpdateAction, Vec<String>), ApiError> {
    let version = scope.required_version()?;
    let before = stored.value();
    let old = form::served(&scope.resource, version, before.clone());
    let mut applied = None;
    let mut body = match wanted {
        NewState::Body(body) => body.clone(),
        NewState::Patch(patch) => {
            Body { object: patch.apply(&scope.resource.names.kind, &old)?, duplicates: Vec::new() }
        }
        NewState::Apply(config) => {
            let (object, managers) = apply::onto(scope, part, Some(&old), config, mode.manager, hub.now())?;
            applied = Some(managers);
            Body { object, duplicates: config.duplicates.clone() }
        }
    };
    let mut claimed = Claimed::read(take_managed_fields(&mut body.object).as_ref());
    let of_patch = |failure: ApiError| {
        if matches!(wanted, NewState::Body(_)) { failure } else { failure.of_patch() }
    };
    if !matches!(wanted, NewState::Body(_)) {
        check_patched_version(scope, &body.object)?;
    }
    check_kind(scope, &mut body.object).map_err(of_patch)?;
    if body.object.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        return Err(of_patch(ApiError::bad_request("metadata is not an object")));
    }
    check_metadata(scope, stored, &mut body.object, matches!(wanted, NewState::Body(_)))?;
    body.object = merge_parts(scope, part, version.has_status, body.object, &old)?;
    if mode.extent == Extent::Finalizers {
        check_only_finalizers(scope, &body.object, &old, mode.user)?;
        claimed = Claimed::Nothing;
    }
    let admitted = admit(hub, scope, body, Some(&old), mode.unknown_fields);
    let admitted = admitted.map_err(of_patch)?;
    let mut object = admitted.object;
    if part == WrittenPart::Finalize {
        object["spec"] = match wanted {
            NewState::Body(body) => body.object.get("spec").cloned().unwrap_or_else(|| json!({})),
            NewState::Patch(_) | NewState::Apply(_) => object["spec"].take(),
        };
    }
    finish_metadata(scope, &mut object, &old, version.has_status)?;
    if let Some(metadata) = metadata_of(&mut object) {
        metadata.insert("resourceVersion".into(), json!(stored.revision.to_string()));
    }
    let managers = match applied {
        Some(managers) => managers,
        None => apply::recorded(scope, part, &old, &object, claimed, mode.manager, hub.now())?,
    };
    let mut object = to_stored(scope, object)?;
    put_managers(&mut object, &managers);
    if same(&object, &before, &managers) {
        return Ok((UpdateAction::Nothing, admitted.warnings));
    }
    let step = if is_finished(&scope.resource.id, &object) {
        UpdateAction::Remove(object)
    } else {
        UpdateAction::Put(object)
    };
    Ok((step, admitted.warnings))
}

/// A patch that changes the version of a custom resource is an invalid field.
fn check_patched_version(scope: &RequestScope, object: &Value) -> Result<(), ApiError> {
    let (given, expected) = (text(object, "/apiVersion"), &scope.required_version()?.api_version);
    if !scope.resource.is_custom() || given.is_empty() || given == expected {
        return Ok(());
    }
    let cause = metadata::invalid("apiVersion", given, &format!("must be {expected}"));
    Err(ApiError::invalid(scope.about(text(object, "/metadata/name")), &[cause]))
}

/// Checks the identity of the object and its resource version.
fn check_metadata(
    scope: &RequestScope,
    stored: &StoredObject,
    object: &mut Value,
    replaces: bool,
) -> Result<(), ApiError> {
    let name = stored.name();
    let about = scope.about(name);
    let given = |field: &str| {
        object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let body_name = given("name");
    if body_name != name {
        return Err(other_name(&body_name, name));
    }
    let namespace = given("namespace");
    if !namespace.is_empty() && Some(namespace.as_str()) != stored.namespace() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let uid = given("uid");
    if uid != *stored.facts.uid && !replaces {
        return Err(ApiError::invalid(
            about,
            &[metadata::invalid("metadata.uid", &uid, "field is immutable")],
        ));
    }
    if !uid.is_empty() && uid != *stored.facts.uid {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            stored.facts.uid
        );
        return Err(ApiError::conflict(about, &why));
    }
    match given("resourceVersion").as_str() {
        "" | "0" if scope.resource.traits.unconditional_update || !replaces => Ok(()),
        "" | "0" => {
            let cause = metadata::invalid("metadata.resourceVersion", "", "must be specified for an update");
            Err(ApiError::invalid(
                about,
                &[aviary_schema::Cause {
                    message: "Invalid value: 0: must be specified for an update".into(),
                    ..cause
                }],
            ))
        }
        given if given == stored.revision.to_string() => Ok(()),
        given if given.parse::<u64>().is_err() => Err(ApiError::failed(no_number(given))),
        _ => Err(ApiError::stale(about)),
    }
}

fn other_name(given: &str, name: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({name})"
    ))
}

/// The main endpoint does not change the status, and the status endpoint changes nothing else.
fn merge_parts(
    scope: &RequestScope,
    part: WrittenPart,
    has_status: bool,
    new: Value,
    old: &Value,
) -> Result<Value, ApiError> {
    let from = |mut base: Value, other: &Value| {
        if let Value::Object(fields) = &mut base {
            match other.get("status") {
                Some(status) => fields.insert("status".into(), status.clone()),
                None => fields.remove("status"),
            };
        }
        base
    };
    match part {
        WrittenPart::Main if has_status => Ok(from(new, old)),
        WrittenPart::Main => Ok(new),
        WrittenPart::Status if has_status => Ok(from(old.clone(), &new)),
        WrittenPart::Finalize if &*scope.resource.id == NAMESPACES => Ok(old.clone()),
        WrittenPart::Status | WrittenPart::Finalize => Err(ApiError::no_such_path()),
    }
}

/// Refuses a write that changes more than finalizers. Fields that clients cannot set are ignored:
/// they are carried over.
fn check_only_finalizers(scope: &RequestScope, new: &Value, old: &Value, user: &str) -> Result<(), ApiError> {
    fn given<'o>(object: &'o Value, field: &str) -> Option<&'o Value> {
        object.get("metadata")?.get(field).filter(|value| !metadata::says_nothing(value))
    }
    let fields = ["labels", "annotations", "ownerReferences"];
    let same_metadata = fields.into_iter().all(|field| given(new, field) == given(old, field));
    if same_metadata && !content_changed(new, old, false) {
        return Ok(());
    }
    let about = scope.about(text(old, "/metadata/name"));
    let why = format!("User {user:?} may change only metadata.finalizers of it");
    Err(ApiError::forbidden_because(about, &why))
}

/// Sets the fields that only the hub sets, and refuses what an object that is being deleted may not
/// get.
fn finish_metadata(
    scope: &RequestScope,
    object: &mut Value,
    old: &Value,
    has_status: bool,
) -> Result<(), ApiError> {
    let changed = content_changed(object, old, has_status);
    let empty = Map::new();
    let before = old.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let name = text(old, "/metadata/name").to_owned();
    let Some(metadata) = metadata_of(object) else { return Ok(()) };
    metadata::carry_over(metadata, before);
    if before.contains_key("deletionTimestamp") {
        let known: Vec<&str> = metadata::texts(before, "finalizers").collect();
        let added: Vec<&str> =
            metadata::texts(metadata, "finalizers").filter(|finalizer| !known.contains(finalizer)).collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
            );
            return Err(ApiError::invalid(
                scope.about(&name),
                &[metadata::forbidden("metadata.finalizers", &why)],
            ));
        }
    }
    if changed && scope.resource.traits.generation {
        let generation = before.get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata.insert("generation".into(), json!(generation + 1));
    }
    Ok(())
}

/// Whether anything outside of metadata (and status, if it has its own endpoint) differs.
fn content_changed(new: &Value, old: &Value, has_status: bool) -> bool {
    let (Value::Object(new), Value::Object(old)) = (new, old) else { return true };
    let counts = |name: &str| name != "metadata" && !(has_status && name == "status");
    let fields = |object: &Map<String, Value>| object.keys().filter(|name| counts(name)).count();
    fields(new) != fields(old)
        || new.iter().filter(|(name, _)| counts(name)).any(|(name, value)| old.get(name) != Some(value))
}

/// Whether only the resource version and the times of managers differ.
fn same(new: &Value, old: &Value, managers: &Managers) -> bool {
    let (Value::Object(new), Value::Object(old_fields)) = (new, old) else { return false };
    let metadata = |fields: &Map<String, Value>| {
        let mut metadata = fields.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        metadata
    };
    new.len() == old_fields.len()
        && new.iter().all(|(name, value)| name == "metadata" || old_fields.get(name) == Some(value))
        && metadata(new) == metadata(old_fields)
        && managers.same(&Managers::of(old))
}

/// Whether an object is being deleted and has no finalizers left.
pub(super) fn is_finished(resource: &str, object: &Value) -> bool {
    let held = |pointer: &str| {
        object.pointer(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    object.pointer("/metadata/deletionTimestamp").is_some()
        && !held("/metadata/finalizers")
        && !(resource == NAMESPACES && held("/spec/finalizers"))
}
