//! Deletes an object, or all that match.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::update::is_finished;
use super::{Content, MOST_TRIES, RequestScope, WriteResponse, commit, encode, metadata_of, too_busy};
use crate::api::status::{self, ApiError};
use crate::formats::metadata;
use crate::hub::{FIRST_NAMESPACES, HubState};
use crate::kinds::builtin::{CRDS, NAMESPACES};
use crate::kinds::crd;
use crate::store::object::StoredObject;
use crate::store::{ChangeAction, StoreChange};

/// Keeps an owner until its dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until its dependents no longer reference it.
pub(crate) const ORPHAN: &str = "orphan";

/// `DeleteOptions`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) dry_run: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl DeleteOptions {
    /// The finalizer that implements the policy.
    fn finalizer(&self) -> Result<Option<&'static str>, ApiError> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some(policy), Some(_)) => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                Err(ApiError::options("DeleteOptions", metadata::invalid("propagationPolicy", policy, why)))
            }
            (Some("Background"), None) | (None, Some(false) | None) => Ok(None),
            (Some("Foreground"), None) => Ok(Some(FOREGROUND)),
            (Some("Orphan"), None) | (None, Some(true)) => Ok(Some(ORPHAN)),
            (Some(other), None) => {
                let known = ["Foreground", "Background", "Orphan", ""];
                Err(ApiError::options(
                    "DeleteOptions",
                    metadata::not_supported("propagationPolicy", other, &known),
                ))
            }
        }
    }

    pub(crate) fn is_dry_run(&self) -> Result<bool, ApiError> {
        match self.dry_run.as_deref().unwrap_or_default() {
            [] => Ok(false),
            all if all.iter().all(|value| value == "All") => Ok(true),
            other => {
                let given = other.first().map(String::as_str).unwrap_or_default();
                Err(ApiError::options("DeleteOptions", metadata::not_supported("dryRun", given, &["All"])))
            }
        }
    }
}

/// The outcome of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    Gone(Arc<StoredObject>),
    /// The deletion has started; finalizers keep the object.
    Pending(Content),
}

pub(crate) async fn delete(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    name: &str,
    options: &DeleteOptions,
) -> Result<WriteResponse, ApiError> {
    let deleted = begin(hub, scope, name, options).await?;
    Ok(WriteResponse::ok(match deleted {
        Deleted::Gone(stored) => Content::Other(status::deleted(scope.about(name), &stored.facts.uid)),
        Deleted::Pending(content) => content,
    }))
}

/// Deletes an object, or starts its deletion.
pub(crate) async fn begin(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    if &*scope.resource.id == NAMESPACES && FIRST_NAMESPACES.contains(&name) {
        return Err(ApiError::namespace_stays(scope.about(name)));
    }
    let finalizer = options.finalizer()?;
    let dry_run = options.is_dry_run()?;
    let key = scope.key(name);
    for _ in 0..MOST_TRIES {
        let head = hub.store.head();
        let stored = head
            .get(&scope.resource.id, &key)
            .cloned()
            .ok_or_else(|| ApiError::not_found(scope.about(name)))?;
        check_preconditions(scope, &stored, options)?;
        let object = mark(hub, scope, stored.value(), finalizer);
        let gone = is_finished(&scope.resource.id, &object);
        if dry_run {
            return Ok(if gone {
                Deleted::Gone(stored)
            } else {
                Deleted::Pending(Content::Imagined(object))
            });
        }
        if stored.facts.terminating && object == stored.value() {
            hub.store.settled(&head, stored.revision).await.map_err(|lost| super::lost_write(&lost))?;
            return Ok(Deleted::Pending(Content::Stored(stored)));
        }
        let action = if gone { ChangeAction::Remove } else { encode(scope, &object)? };
        let change = StoreChange {
            resource: Arc::clone(&scope.resource.id),
            key: key.clone(),
            expect: Some(stored.revision),
            action,
        };
        if let Some(written) = commit(hub, change, |_| Ok(())).await? {
            return Ok(if gone { Deleted::Gone(stored) } else { Deleted::Pending(Content::Stored(written)) });
        }
    }
    Err(too_busy(scope, name))
}

fn check_preconditions(
    scope: &RequestScope,
    stored: &StoredObject,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let Some(preconditions) = &options.preconditions else { return Ok(()) };
    let about = scope.about(stored.name());
    let about = if &*scope.resource.id == NAMESPACES {
        about
    } else {
        status::About { resource: about.kind, group: "", ..about }
    };
    if let Some(uid) = &preconditions.uid
        && **uid != *stored.facts.uid
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            stored.facts.uid
        );
        return Err(ApiError::conflict(about, &why));
    }
    if let Some(wanted) = &preconditions.resource_version
        && *wanted != stored.revision.to_string()
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({}). The object might have been modified",
            stored.revision
        );
        return Err(ApiError::conflict(about, &why));
    }
    Ok(())
}

/// The object with its deletion timestamp.
fn mark(hub: &HubState, scope: &RequestScope, mut object: Value, finalizer: Option<&'static str>) -> Value {
    let begins = object.pointer("/metadata/deletionTimestamp").is_none();
    let Some(metadata) = metadata_of(&mut object) else { return object };
    if begins {
        metadata.insert("deletionTimestamp".into(), hub.now_text().into());
        metadata.insert("deletionGracePeriodSeconds".into(), json!(0));
        if scope.resource.traits.generation {
            let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
            metadata.insert("generation".into(), json!(generation + 1));
        }
    }
    if let Some(finalizer) = finalizer
        && begins
    {
        hold(metadata, finalizer);
    }
    match &*scope.resource.id {
        NAMESPACES => object["status"]["phase"] = json!("Terminating"),
        CRDS => object["status"] = crd::terminating(&object["status"], &hub.now_text()),
        _ => {}
    }
    object
}

fn hold(metadata: &mut Map<String, Value>, finalizer: &str) {
    if metadata::texts(metadata, "finalizers").any(|known| known == finalizer) {
        return;
    }
    if let Value::Array(list) = metadata.entry("finalizers").or_insert_with(|| json!([])) {
        list.push(json!(finalizer));
    }
}

/// Deletes objects concurrently: each waits for the disk, and many share one flush.
pub(crate) async fn delete_all(
    hub: &Arc<HubState>,
    scope: &RequestScope,
    found: Vec<Arc<StoredObject>>,
    options: &DeleteOptions,
) -> Result<Vec<Arc<StoredObject>>, ApiError> {
    stream::iter(found)
        .map(|stored| async move {
            let scope = RequestScope { namespace: stored.namespace().map(str::to_owned), ..scope.clone() };
            match begin(hub, &scope, stored.name(), options).await {
                Ok(Deleted::Gone(stored) | Deleted::Pending(Content::Stored(stored))) => Ok(stored),
                Ok(Deleted::Pending(_)) => Ok(stored),
                // It was already deleted.
                Err(failure) if failure.code == http::StatusCode::NOT_FOUND => Ok(stored),
                Err(failure) => Err(failure),
            }
        })
        .buffered(64)
        .try_collect()
        .await
}
