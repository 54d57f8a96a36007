//! Messages of `k8s.io/apimachinery/pkg/apis/meta/v1` v0.35, and the shorthands in which tables are
//! written.

use super::message::{FieldType, Message, MessageField, Printed};

/// `omitempty`.
pub(super) const fn field(number: u32, name: &'static str, type_: FieldType) -> MessageField {
    MessageField { number, name, type_, printed: Printed::NonZero }
}

/// No `omitempty`, or a struct.
pub(super) const fn always(number: u32, name: &'static str, type_: FieldType) -> MessageField {
    MessageField { number, name, type_, printed: Printed::Always }
}

/// A pointer.
pub(super) const fn pointer(number: u32, name: &'static str, type_: FieldType) -> MessageField {
    MessageField { number, name, type_, printed: Printed::IfSent }
}

/// `metav1.ObjectMeta` as field 1, which every object has.
pub(super) const METADATA: MessageField = always(1, "metadata", FieldType::Message(&OBJECT_META));

static OBJECT_META: Message = Message(&[
    field(1, "name", FieldType::Text),
    field(2, "generateName", FieldType::Text),
    field(3, "namespace", FieldType::Text),
    field(4, "selfLink", FieldType::Text),
    field(5, "uid", FieldType::Text),
    field(6, "resourceVersion", FieldType::Text),
    field(7, "generation", FieldType::Int64),
    field(8, "creationTimestamp", FieldType::Time),
    pointer(9, "deletionTimestamp", FieldType::Time),
    pointer(10, "deletionGracePeriodSeconds", FieldType::Int64),
    field(11, "labels", FieldType::TextMap),
    field(12, "annotations", FieldType::TextMap),
    field(13, "ownerReferences", FieldType::Messages(&OWNER_REFERENCE)),
    field(14, "finalizers", FieldType::Texts),
    field(17, "managedFields", FieldType::Messages(&MANAGED_FIELDS_ENTRY)),
]);

static OWNER_REFERENCE: Message = Message(&[
    always(1, "kind", FieldType::Text),
    always(3, "name", FieldType::Text),
    always(4, "uid", FieldType::Text),
    always(5, "apiVersion", FieldType::Text),
    pointer(6, "controller", FieldType::Bool),
    pointer(7, "blockOwnerDeletion", FieldType::Bool),
]);

static MANAGED_FIELDS_ENTRY: Message = Message(&[
    field(1, "manager", FieldType::Text),
    field(2, "operation", FieldType::Text),
    field(3, "apiVersion", FieldType::Text),
    pointer(4, "time", FieldType::Time),
    field(6, "fieldsType", FieldType::Text),
    pointer(7, "fieldsV1", FieldType::Json),
    field(8, "subresource", FieldType::Text),
]);

pub(super) static DELETE_OPTIONS: Message = Message(&[
    pointer(1, "gracePeriodSeconds", FieldType::Int64),
    pointer(2, "preconditions", FieldType::Message(&PRECONDITIONS)),
    pointer(3, "orphanDependents", FieldType::Bool),
    pointer(4, "propagationPolicy", FieldType::Text),
    field(5, "dryRun", FieldType::Texts),
    pointer(6, "ignoreStoreReadErrorWithClusterBreakingPotential", FieldType::Bool),
]);

static PRECONDITIONS: Message =
    Message(&[pointer(1, "uid", FieldType::Text), pointer(2, "resourceVersion", FieldType::Text)]);

pub(super) static LABEL_SELECTOR: Message = Message(&[
    field(1, "matchLabels", FieldType::TextMap),
    field(2, "matchExpressions", FieldType::Messages(&SELECTOR_REQUIREMENT)),
]);

/// `LabelSelectorRequirement` and `FieldSelectorRequirement`.
pub(super) static SELECTOR_REQUIREMENT: Message = Message(&[
    always(1, "key", FieldType::Text),
    always(2, "operator", FieldType::Text),
    field(3, "values", FieldType::Texts),
]);
