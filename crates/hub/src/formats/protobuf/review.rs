//! Messages of `k8s.io/api` v0.35 about who may do what: authentication, authorization and RBAC.

use super::{
    message::{FieldType, Message},
    meta::{LABEL_SELECTOR, METADATA, SELECTOR_REQUIREMENT, always, field, pointer},
};

pub(super) static SELF_SUBJECT_ACCESS_REVIEW: Message = Message(&[
    METADATA,
    always(2, "spec", FieldType::Message(&SELF_SUBJECT_ACCESS_REVIEW_SPEC)),
    always(3, "status", FieldType::Message(&SUBJECT_ACCESS_REVIEW_STATUS)),
]);

static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Message = Message(&[
    pointer(1, "resourceAttributes", FieldType::Message(&RESOURCE_ATTRIBUTES)),
    pointer(2, "nonResourceAttributes", FieldType::Message(&NON_RESOURCE_ATTRIBUTES)),
]);

static SUBJECT_ACCESS_REVIEW_STATUS: Message = Message(&[
    always(1, "allowed", FieldType::Bool),
    field(2, "reason", FieldType::Text),
    field(3, "evaluationError", FieldType::Text),
    field(4, "denied", FieldType::Bool),
]);

static RESOURCE_ATTRIBUTES: Message = Message(&[
    field(1, "namespace", FieldType::Text),
    field(2, "verb", FieldType::Text),
    field(3, "group", FieldType::Text),
    field(4, "version", FieldType::Text),
    field(5, "resource", FieldType::Text),
    field(6, "subresource", FieldType::Text),
    field(7, "name", FieldType::Text),
    pointer(8, "fieldSelector", FieldType::Message(&SELECTOR_ATTRIBUTES)),
    pointer(9, "labelSelector", FieldType::Message(&SELECTOR_ATTRIBUTES)),
]);

/// `FieldSelectorAttributes` and `LabelSelectorAttributes`.
static SELECTOR_ATTRIBUTES: Message = Message(&[
    field(1, "rawSelector", FieldType::Text),
    field(2, "requirements", FieldType::Messages(&SELECTOR_REQUIREMENT)),
]);

static NON_RESOURCE_ATTRIBUTES: Message =
    Message(&[field(1, "path", FieldType::Text), field(2, "verb", FieldType::Text)]);

pub(super) static SELF_SUBJECT_RULES_REVIEW: Message = Message(&[
    METADATA,
    always(2, "spec", FieldType::Message(&SELF_SUBJECT_RULES_REVIEW_SPEC)),
    always(3, "status", FieldType::Message(&SUBJECT_RULES_REVIEW_STATUS)),
]);

static SELF_SUBJECT_RULES_REVIEW_SPEC: Message = Message(&[field(1, "namespace", FieldType::Text)]);

static SUBJECT_RULES_REVIEW_STATUS: Message = Message(&[
    always(1, "resourceRules", FieldType::Messages(&RESOURCE_RULE)),
    always(2, "nonResourceRules", FieldType::Messages(&NON_RESOURCE_RULE)),
    always(3, "incomplete", FieldType::Bool),
    field(4, "evaluationError", FieldType::Text),
]);

static RESOURCE_RULE: Message = Message(&[
    always(1, "verbs", FieldType::Texts),
    field(2, "apiGroups", FieldType::Texts),
    field(3, "resources", FieldType::Texts),
    field(4, "resourceNames", FieldType::Texts),
]);

static NON_RESOURCE_RULE: Message =
    Message(&[always(1, "verbs", FieldType::Texts), field(2, "nonResourceURLs", FieldType::Texts)]);

pub(super) static SELF_SUBJECT_REVIEW: Message =
    Message(&[METADATA, always(2, "status", FieldType::Message(&SELF_SUBJECT_REVIEW_STATUS))]);

static SELF_SUBJECT_REVIEW_STATUS: Message =
    Message(&[always(1, "userInfo", FieldType::Message(&USER_INFO))]);

static USER_INFO: Message = Message(&[
    field(1, "username", FieldType::Text),
    field(2, "uid", FieldType::Text),
    field(3, "groups", FieldType::Texts),
    field(4, "extra", FieldType::TextsMap),
]);

pub(super) static ROLE: Message = Message(&[METADATA, always(2, "rules", FieldType::Messages(&POLICY_RULE))]);

pub(super) static CLUSTER_ROLE: Message = Message(&[
    METADATA,
    always(2, "rules", FieldType::Messages(&POLICY_RULE)),
    pointer(3, "aggregationRule", FieldType::Message(&AGGREGATION_RULE)),
]);

static POLICY_RULE: Message = Message(&[
    always(1, "verbs", FieldType::Texts),
    field(2, "apiGroups", FieldType::Texts),
    field(3, "resources", FieldType::Texts),
    field(4, "resourceNames", FieldType::Texts),
    field(5, "nonResourceURLs", FieldType::Texts),
]);

static AGGREGATION_RULE: Message =
    Message(&[field(1, "clusterRoleSelectors", FieldType::Messages(&LABEL_SELECTOR))]);

/// `RoleBinding` and `ClusterRoleBinding`.
pub(super) static ROLE_BINDING: Message = Message(&[
    METADATA,
    field(2, "subjects", FieldType::Messages(&SUBJECT)),
    always(3, "roleRef", FieldType::Message(&ROLE_REF)),
]);

static SUBJECT: Message = Message(&[
    always(1, "kind", FieldType::Text),
    field(2, "apiGroup", FieldType::Text),
    always(3, "name", FieldType::Text),
    field(4, "namespace", FieldType::Text),
]);

static ROLE_REF: Message = Message(&[
    always(1, "apiGroup", FieldType::Text),
    always(2, "kind", FieldType::Text),
    always(3, "name", FieldType::Text),
]);
