//! Messages of `k8s.io/apimachinery/pkg/apis/meta/v1` v0.35, and the shorthands in which tables are
//! written.

use super::message::{Field, Message, Printed, Type};

/// `omitempty`.
pub(super) const fn field(number: u32, name: &'static str, type_: Type) -> Field {
    Field { number, name, type_, printed: Printed::NonZero }
}

/// No `omitempty`, or a struct.
pub(super) const fn always(number: u32, name: &'static str, type_: Type) -> Field {
    Field { number, name, type_, printed: Printed::Always }
}

/// A pointer.
pub(super) const fn pointer(number: u32, name: &'static str, type_: Type) -> Field {
    Field { number, name, type_, printed: Printed::IfSent }
}

/// `metav1.ObjectMeta` as field 1, which every object has.
pub(super) const METADATA: Field = always(1, "metadata", Type::Message(&OBJECT_META));

static OBJECT_META: Message = Message(&[
    field(1, "name", Type::Text),
    field(2, "generateName", Type::Text),
    field(3, "namespace", Type::Text),
    field(4, "selfLink", Type::Text),
    field(5, "uid", Type::Text),
    field(6, "resourceVersion", Type::Text),
    field(7, "generation", Type::Int64),
    field(8, "creationTimestamp", Type::Time),
    pointer(9, "deletionTimestamp", Type::Time),
    pointer(10, "deletionGracePeriodSeconds", Type::Int64),
    field(11, "labels", Type::TextMap),
    field(12, "annotations", Type::TextMap),
    field(13, "ownerReferences", Type::Messages(&OWNER_REFERENCE)),
    field(14, "finalizers", Type::Texts),
    field(17, "managedFields", Type::Messages(&MANAGED_FIELDS_ENTRY)),
]);

static OWNER_REFERENCE: Message = Message(&[
    always(1, "kind", Type::Text),
    always(3, "name", Type::Text),
    always(4, "uid", Type::Text),
    always(5, "apiVersion", Type::Text),
    pointer(6, "controller", Type::Bool),
    pointer(7, "blockOwnerDeletion", Type::Bool),
]);

static MANAGED_FIELDS_ENTRY: Message = Message(&[
    field(1, "manager", Type::Text),
    field(2, "operation", Type::Text),
    field(3, "apiVersion", Type::Text),
    pointer(4, "time", Type::Time),
    field(6, "fieldsType", Type::Text),
    pointer(7, "fieldsV1", Type::Json),
    field(8, "subresource", Type::Text),
]);

pub(super) static DELETE_OPTIONS: Message = Message(&[
    pointer(1, "gracePeriodSeconds", Type::Int64),
    pointer(2, "preconditions", Type::Message(&PRECONDITIONS)),
    pointer(3, "orphanDependents", Type::Bool),
    pointer(4, "propagationPolicy", Type::Text),
    field(5, "dryRun", Type::Texts),
    pointer(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Type::Bool),
]);

static PRECONDITIONS: Message =
    Message(&[pointer(1, "uid", Type::Text), pointer(2, "resourceVersion", Type::Text)]);

pub(super) static LABEL_SELECTOR: Message = Message(&[
    field(1, "matchLabels", Type::TextMap),
    field(2, "matchExpressions", Type::Messages(&SELECTOR_REQUIREMENT)),
]);

/// `LabelSelectorRequirement` and `FieldSelectorRequirement`.
pub(super) static SELECTOR_REQUIREMENT: Message = Message(&[
    always(1, "key", Type::Text),
    always(2, "operator", Type::Text),
    field(3, "values", Type::Texts),
]);
