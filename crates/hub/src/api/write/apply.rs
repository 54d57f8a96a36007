//! Server-side apply, and the record of field managers, as parts of a write.
//!
//! Owns the connection between a request and the rules in [`crate::formats::apply`]. An object that
//! was never applied has no record. The first apply assigns all its fields to `before-first-apply`,
//! and from then on every write is recorded.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::update::WrittenPart;
use super::{RequestScope, metadata_of, text};
use crate::api::status::ApiError;
use crate::formats::apply::{
    self, ApplyOutcome, Claimed, Conflicts, FieldManager, Managers, Operation, ValueType, Versions,
    allowed_by_last_applied, before_first_apply, renew_last_applied,
};
use crate::formats::json;

/// The default manager.
const UNKNOWN: &str = "unknown";
const STATUS: &str = "status";

/// The body of an apply: the fields that its manager wants, and nothing else.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(super) object: Value,
    pub(super) duplicates: Vec<String>,
    force: bool,
    /// Whether the client may create the object if it does not exist.
    pub(super) may_create: Result<(), ApiError>,
}

impl Configuration {
    /// Parses YAML. JSON is YAML, and parsed as JSON.
    pub(crate) fn parse(
        body: &[u8],
        force: bool,
        may_create: Result<(), ApiError>,
    ) -> Result<Self, ApiError> {
        let undecodable = |why: &str| {
            ApiError::bad_request(format!("error decoding YAML: {}", why.lines().next().unwrap_or_default()))
        };
        let (object, duplicates) = match json::parse(body) {
            Ok(read) => read,
            Err(_) => {
                (serde_saphyr::from_slice(body).map_err(|error| undecodable(&error.to_string()))?, Vec::new())
            }
        };
        if aviary_schema::nests_too_deep(&object) {
            return Err(undecodable("it nests too deep"));
        }
        let object = if object.is_null() { Value::Object(Map::new()) } else { object };
        if object.is_object() {
            Ok(Self { object, duplicates, force, may_create })
        } else {
            Err(undecodable("not an object"))
        }
    }
}

/// Applies a configuration to the existing object, or to none. Returns the new state without its
/// managers, and the managers.
pub(super) fn onto(
    scope: &RequestScope,
    part: WrittenPart,
    live: Option<&Value>,
    config: &Configuration,
    manager: &str,
    now: Timestamp,
) -> Result<(Value, Managers), ApiError> {
    let versions = versions(scope)?;
    let manager = self::manager(&versions, manager, Operation::Apply, part);
    let wanted = relevant(scope, part, &config.object)?;
    let ty = versions.types.get(versions.current).copied().unwrap_or(ValueType::Deduced);
    let wrong = apply::check(ty, &wanted);
    if !wrong.is_empty() {
        return Err(untypable(&wanted, &wrong));
    }
    let mut managers = live.map(Managers::of).unwrap_or_default();
    let mut live = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    take_managed_fields(&mut live);
    if managers.is_empty() {
        let others = without(&live, hidden(scope, part));
        managers = before_first_apply(&versions, &others, subresource(part), now);
    }
    let outcome = apply::apply(&versions, &live, &wanted, managers.clone(), &manager, config.force, now);
    let applied = outcome.or_else(|conflicts| {
        let left = allowed_by_last_applied(&versions, &live, &manager.name, conflicts);
        if left.0.is_empty() {
            apply::apply(&versions, &live, &wanted, managers, &manager, true, now)
        } else {
            Err(left)
        }
    });
    let ApplyOutcome { object, managers } = applied.map_err(|conflicts| conflict(&conflicts))?;
    let mut object = object.unwrap_or(live);
    renew_last_applied(&mut object, &wanted, &manager.name);
    Ok((object, managers))
}

/// The managers of an object after an ordinary write. `None` if they are not recorded.
pub(super) fn recorded(
    scope: &RequestScope,
    part: WrittenPart,
    old: &Value,
    new: &Value,
    claimed: Claimed,
    manager: &str,
    now: Timestamp,
) -> Result<Managers, ApiError> {
    let managers = match (part, claimed) {
        (WrittenPart::Main, Claimed::Reset) => Managers::default(),
        (WrittenPart::Main, Claimed::Managers(managers)) => managers,
        _ => Managers::of(old),
    };
    if managers.is_empty() {
        return Ok(managers);
    }
    let versions = versions(scope)?;
    let manager = self::manager(&versions, manager, Operation::Update, part);
    Ok(apply::update(&versions, old, new, managers, &manager, now))
}

/// Removes `managedFields`.
pub(super) fn take_managed_fields(object: &mut Value) -> Option<Value> {
    metadata_of(object)?.remove("managedFields")
}

/// Sets `managedFields`.
pub(super) fn put_managers(object: &mut Value, managers: &Managers) {
    if let (Some(metadata), Some(managers)) = (metadata_of(object), managers.to_value()) {
        metadata.insert("managedFields".into(), managers);
    }
}

fn versions(scope: &RequestScope) -> Result<Versions<'_>, ApiError> {
    let current = &scope.required_version()?.api_version;
    let types = scope.resource.versions.iter().map(|version| {
        let schema = version.ownership.as_ref().unwrap_or(version.admission.schema());
        (version.api_version.as_str(), ValueType::resource(schema))
    });
    Ok(Versions { current, types: types.collect() })
}

fn manager(versions: &Versions<'_>, name: &str, operation: Operation, part: WrittenPart) -> FieldManager {
    FieldManager {
        name: if name.is_empty() { UNKNOWN.into() } else { name.to_owned() },
        operation,
        api_version: versions.current.to_owned(),
        subresource: subresource(part).to_owned(),
    }
}

fn subresource(part: WrittenPart) -> &'static str {
    match part {
        WrittenPart::Main => "",
        WrittenPart::Status => STATUS,
        WrittenPart::Finalize => "finalize",
    }
}

/// The field of the object that a write of this part does not see.
fn hidden(scope: &RequestScope, part: WrittenPart) -> &'static str {
    let has_status = scope.version().is_some_and(|version| version.has_status);
    match part {
        WrittenPart::Main if has_status => STATUS,
        WrittenPart::Main => "",
        WrittenPart::Status | WrittenPart::Finalize => "spec",
    }
}

fn without(object: &Value, field: &str) -> Value {
    let fields = object.as_object().into_iter().flatten().filter(|(name, _)| *name != field);
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The part of a configuration that is written, if it is of the right kind.
fn relevant(scope: &RequestScope, part: WrittenPart, config: &Value) -> Result<Value, ApiError> {
    let version = scope.required_version()?;
    let (api_version, kind) = (text(config, "/apiVersion"), text(config, "/kind"));
    if api_version != version.api_version || kind != scope.resource.names.kind {
        return Err(ApiError::bad_request(format!("invalid object type: {}", kind_of(config))));
    }
    if config.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let mut config = without(config, hidden(scope, part));
    if let Some(metadata) = metadata_of(&mut config) {
        // Go clients write a null `creationTimestamp`.
        metadata.retain(|_, value| !value.is_null());
    }
    if part == WrittenPart::Status
        && let Value::Object(fields) = &mut config
    {
        fields.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | STATUS));
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            let identity = ["name", "namespace", "uid", "resourceVersion"];
            metadata.retain(|name, _| identity.contains(&name.as_str()));
        }
    }
    Ok(config)
}

/// Its kind, as Go prints it.
fn kind_of(config: &Value) -> String {
    let api_version = text(config, "/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={}", text(config, "/kind"))
}

fn untypable(config: &Value, wrong: &[String]) -> ApiError {
    let (name, namespace) = (text(config, "/metadata/name"), text(config, "/metadata/namespace"));
    let kind = kind_of(config);
    let wrong = match wrong {
        [only] => only.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    ApiError::failed(format!("failed to create typed patch object ({namespace}/{name}; {kind}): {wrong}"))
}

fn conflict(conflicts: &Conflicts) -> ApiError {
    let list: Vec<(String, Vec<String>)> =
        conflicts.0.iter().map(|(manager, fields)| (manager.to_string(), fields.paths())).collect();
    ApiError::apply_conflict(&list)
}
