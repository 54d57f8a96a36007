//! Messages of `k8s.io/api` v0.35 that are stored: core, events, coordination and apps.

use super::{
    message::{Message, Type},
    meta::{METADATA, always, field, pointer},
};

pub(super) static NAMESPACE: Message = Message(&[
    METADATA,
    always(2, "spec", Type::Message(&NAMESPACE_SPEC)),
    always(3, "status", Type::Message(&NAMESPACE_STATUS)),
]);

static NAMESPACE_SPEC: Message = Message(&[field(1, "finalizers", Type::Texts)]);

static NAMESPACE_STATUS: Message =
    Message(&[field(1, "phase", Type::Text), field(2, "conditions", Type::Messages(&NAMESPACE_CONDITION))]);

static NAMESPACE_CONDITION: Message = Message(&[
    always(1, "type", Type::Text),
    always(2, "status", Type::Text),
    always(4, "lastTransitionTime", Type::Time),
    field(5, "reason", Type::Text),
    field(6, "message", Type::Text),
]);

pub(super) static CONFIG_MAP: Message = Message(&[
    METADATA,
    field(2, "data", Type::TextMap),
    field(3, "binaryData", Type::BytesMap),
    pointer(4, "immutable", Type::Bool),
]);

pub(super) static SECRET: Message = Message(&[
    METADATA,
    field(2, "data", Type::BytesMap),
    field(3, "type", Type::Text),
    field(4, "stringData", Type::TextMap),
    pointer(5, "immutable", Type::Bool),
]);

pub(super) static SERVICE_ACCOUNT: Message = Message(&[
    METADATA,
    field(2, "secrets", Type::Messages(&OBJECT_REFERENCE)),
    field(3, "imagePullSecrets", Type::Messages(&LOCAL_OBJECT_REFERENCE)),
    pointer(4, "automountServiceAccountToken", Type::Bool),
]);

static LOCAL_OBJECT_REFERENCE: Message = Message(&[field(1, "name", Type::Text)]);

static OBJECT_REFERENCE: Message = Message(&[
    field(1, "kind", Type::Text),
    field(2, "namespace", Type::Text),
    field(3, "name", Type::Text),
    field(4, "uid", Type::Text),
    field(5, "apiVersion", Type::Text),
    field(6, "resourceVersion", Type::Text),
    field(7, "fieldPath", Type::Text),
]);

/// `v1`.
pub(super) static EVENT: Message = Message(&[
    METADATA,
    always(2, "involvedObject", Type::Message(&OBJECT_REFERENCE)),
    field(3, "reason", Type::Text),
    field(4, "message", Type::Text),
    always(5, "source", Type::Message(&EVENT_SOURCE)),
    always(6, "firstTimestamp", Type::Time),
    always(7, "lastTimestamp", Type::Time),
    field(8, "count", Type::Int32),
    field(9, "type", Type::Text),
    always(10, "eventTime", Type::MicroTime),
    pointer(11, "series", Type::Message(&EVENT_SERIES)),
    field(12, "action", Type::Text),
    pointer(13, "related", Type::Message(&OBJECT_REFERENCE)),
    always(14, "reportingComponent", Type::Text),
    always(15, "reportingInstance", Type::Text),
]);

static EVENT_SOURCE: Message = Message(&[field(1, "component", Type::Text), field(2, "host", Type::Text)]);

static EVENT_SERIES: Message =
    Message(&[field(1, "count", Type::Int32), always(2, "lastObservedTime", Type::MicroTime)]);

/// `events.k8s.io/v1`.
pub(super) static NEW_EVENT: Message = Message(&[
    METADATA,
    always(2, "eventTime", Type::MicroTime),
    pointer(3, "series", Type::Message(&NEW_EVENT_SERIES)),
    field(4, "reportingController", Type::Text),
    field(5, "reportingInstance", Type::Text),
    field(6, "action", Type::Text),
    field(7, "reason", Type::Text),
    always(8, "regarding", Type::Message(&OBJECT_REFERENCE)),
    pointer(9, "related", Type::Message(&OBJECT_REFERENCE)),
    field(10, "note", Type::Text),
    field(11, "type", Type::Text),
    always(12, "deprecatedSource", Type::Message(&EVENT_SOURCE)),
    always(13, "deprecatedFirstTimestamp", Type::Time),
    always(14, "deprecatedLastTimestamp", Type::Time),
    field(15, "deprecatedCount", Type::Int32),
]);

static NEW_EVENT_SERIES: Message =
    Message(&[always(1, "count", Type::Int32), always(2, "lastObservedTime", Type::MicroTime)]);

pub(super) static LEASE: Message = Message(&[METADATA, always(2, "spec", Type::Message(&LEASE_SPEC))]);

static LEASE_SPEC: Message = Message(&[
    pointer(1, "holderIdentity", Type::Text),
    pointer(2, "leaseDurationSeconds", Type::Int32),
    pointer(3, "acquireTime", Type::MicroTime),
    pointer(4, "renewTime", Type::MicroTime),
    pointer(5, "leaseTransitions", Type::Int32),
    pointer(6, "strategy", Type::Text),
    pointer(7, "preferredHolder", Type::Text),
]);

pub(super) static CONTROLLER_REVISION: Message =
    Message(&[METADATA, always(2, "data", Type::Json), always(3, "revision", Type::Int64)]);
