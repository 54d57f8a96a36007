//! Messages of `k8s.io/api` v0.35 that are stored: core, events, coordination and apps.

use super::{
    message::{FieldType, Message},
    meta::{METADATA, always, field, pointer},
};

pub(super) static NAMESPACE: Message = Message(&[
    METADATA,
    always(2, "spec", FieldType::Message(&NAMESPACE_SPEC)),
    always(3, "status", FieldType::Message(&NAMESPACE_STATUS)),
]);

static NAMESPACE_SPEC: Message = Message(&[field(1, "finalizers", FieldType::Texts)]);

static NAMESPACE_STATUS: Message = Message(&[
    field(1, "phase", FieldType::Text),
    field(2, "conditions", FieldType::Messages(&NAMESPACE_CONDITION)),
]);

static NAMESPACE_CONDITION: Message = Message(&[
    always(1, "type", FieldType::Text),
    always(2, "status", FieldType::Text),
    always(4, "lastTransitionTime", FieldType::Time),
    field(5, "reason", FieldType::Text),
    field(6, "message", FieldType::Text),
]);

pub(super) static CONFIG_MAP: Message = Message(&[
    METADATA,
    field(2, "data", FieldType::TextMap),
    field(3, "binaryData", FieldType::BytesMap),
    pointer(4, "immutable", FieldType::Bool),
]);

pub(super) static SECRET: Message = Message(&[
    METADATA,
    field(2, "data", FieldType::BytesMap),
    field(3, "type", FieldType::Text),
    field(4, "stringData", FieldType::TextMap),
    pointer(5, "immutable", FieldType::Bool),
]);

pub(super) static SERVICE_ACCOUNT: Message = Message(&[
    METADATA,
    field(2, "secrets", FieldType::Messages(&OBJECT_REFERENCE)),
    field(3, "imagePullSecrets", FieldType::Messages(&LOCAL_OBJECT_REFERENCE)),
    pointer(4, "automountServiceAccountToken", FieldType::Bool),
]);

static LOCAL_OBJECT_REFERENCE: Message = Message(&[field(1, "name", FieldType::Text)]);

static OBJECT_REFERENCE: Message = Message(&[
    field(1, "kind", FieldType::Text),
    field(2, "namespace", FieldType::Text),
    field(3, "name", FieldType::Text),
    field(4, "uid", FieldType::Text),
    field(5, "apiVersion", FieldType::Text),
    field(6, "resourceVersion", FieldType::Text),
    field(7, "fieldPath", FieldType::Text),
]);

/// `v1`.
pub(super) static EVENT: Message = Message(&[
    METADATA,
    always(2, "involvedObject", FieldType::Message(&OBJECT_REFERENCE)),
    field(3, "reason", FieldType::Text),
    field(4, "message", FieldType::Text),
    always(5, "source", FieldType::Message(&EVENT_SOURCE)),
    always(6, "firstTimestamp", FieldType::Time),
    always(7, "lastTimestamp", FieldType::Time),
    field(8, "count", FieldType::Int32),
    field(9, "type", FieldType::Text),
    always(10, "eventTime", FieldType::MicroTime),
    pointer(11, "series", FieldType::Message(&EVENT_SERIES)),
    field(12, "action", FieldType::Text),
    pointer(13, "related", FieldType::Message(&OBJECT_REFERENCE)),
    always(14, "reportingComponent", FieldType::Text),
    always(15, "reportingInstance", FieldType::Text),
]);

static EVENT_SOURCE: Message =
    Message(&[field(1, "component", FieldType::Text), field(2, "host", FieldType::Text)]);

static EVENT_SERIES: Message =
    Message(&[field(1, "count", FieldType::Int32), always(2, "lastObservedTime", FieldType::MicroTime)]);

/// `events.k8s.io/v1`.
pub(super) static NEW_EVENT: Message = Message(&[
    METADATA,
    always(2, "eventTime", FieldType::MicroTime),
    pointer(3, "series", FieldType::Message(&NEW_EVENT_SERIES)),
    field(4, "reportingController", FieldType::Text),
    field(5, "reportingInstance", FieldType::Text),
    field(6, "action", FieldType::Text),
    field(7, "reason", FieldType::Text),
    always(8, "regarding", FieldType::Message(&OBJECT_REFERENCE)),
    pointer(9, "related", FieldType::Message(&OBJECT_REFERENCE)),
    field(10, "note", FieldType::Text),
    field(11, "type", FieldType::Text),
    always(12, "deprecatedSource", FieldType::Message(&EVENT_SOURCE)),
    always(13, "deprecatedFirstTimestamp", FieldType::Time),
    always(14, "deprecatedLastTimestamp", FieldType::Time),
    field(15, "deprecatedCount", FieldType::Int32),
]);

static NEW_EVENT_SERIES: Message =
    Message(&[always(1, "count", FieldType::Int32), always(2, "lastObservedTime", FieldType::MicroTime)]);

pub(super) static LEASE: Message = Message(&[METADATA, always(2, "spec", FieldType::Message(&LEASE_SPEC))]);

static LEASE_SPEC: Message = Message(&[
    pointer(1, "holderIdentity", FieldType::Text),
    pointer(2, "leaseDurationSeconds", FieldType::Int32),
    pointer(3, "acquireTime", FieldType::MicroTime),
    pointer(4, "renewTime", FieldType::MicroTime),
    pointer(5, "leaseTransitions", FieldType::Int32),
    pointer(6, "strategy", FieldType::Text),
    pointer(7, "preferredHolder", FieldType::Text),
]);

pub(super) static CONTROLLER_REVISION: Message =
    Message(&[METADATA, always(2, "data", FieldType::Json), always(3, "revision", FieldType::Int64)]);
