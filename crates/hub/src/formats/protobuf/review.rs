//! Messages of `k8s.io/api` v0.35 about who may do what: authentication, authorization and RBAC.

use super::{
    message::{Message, Type},
    meta::{LABEL_SELECTOR, METADATA, SELECTOR_REQUIREMENT, always, field, pointer},
};

pub(super) static SELF_SUBJECT_ACCESS_REVIEW: Message = Message(&[
    METADATA,
    always(2, "spec", Type::Message(&SELF_SUBJECT_ACCESS_REVIEW_SPEC)),
    always(3, "status", Type::Message(&SUBJECT_ACCESS_REVIEW_STATUS)),
]);

static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Message = Message(&[
    pointer(1, "resourceAttributes", Type::Message(&RESOURCE_ATTRIBUTES)),
    pointer(2, "nonResourceAttributes", Type::Message(&NON_RESOURCE_ATTRIBUTES)),
]);

static SUBJECT_ACCESS_REVIEW_STATUS: Message = Message(&[
    always(1, "allowed", Type::Bool),
    field(2, "reason", Type::Text),
    field(3, "evaluationError", Type::Text),
    field(4, "denied", Type::Bool),
]);

static RESOURCE_ATTRIBUTES: Message = Message(&[
    field(1, "namespace", Type::Text),
    field(2, "verb", Type::Text),
    field(3, "group", Type::Text),
    field(4, "version", Type::Text),
    field(5, "resource", Type::Text),
    field(6, "subresource", Type::Text),
    field(7, "name", Type::Text),
    pointer(8, "fieldSelector", Type::Message(&SELECTOR_ATTRIBUTES)),
    pointer(9, "labelSelector", Type::Message(&SELECTOR_ATTRIBUTES)),
]);

/// `FieldSelectorAttributes` and `LabelSelectorAttributes`.
static SELECTOR_ATTRIBUTES: Message = Message(&[
    field(1, "rawSelector", Type::Text),
    field(2, "requirements", Type::Messages(&SELECTOR_REQUIREMENT)),
]);

static NON_RESOURCE_ATTRIBUTES: Message =
    Message(&[field(1, "path", Type::Text), field(2, "verb", Type::Text)]);

pub(super) static SELF_SUBJECT_RULES_REVIEW: Message = Message(&[
    METADATA,
    always(2, "spec", Type::Message(&SELF_SUBJECT_RULES_REVIEW_SPEC)),
    always(3, "status", Type::Message(&SUBJECT_RULES_REVIEW_STATUS)),
]);

static SELF_SUBJECT_RULES_REVIEW_SPEC: Message = Message(&[field(1, "namespace", Type::Text)]);

static SUBJECT_RULES_REVIEW_STATUS: Message = Message(&[
    always(1, "resourceRules", Type::Messages(&RESOURCE_RULE)),
    always(2, "nonResourceRules", Type::Messages(&NON_RESOURCE_RULE)),
    always(3, "incomplete", Type::Bool),
    field(4, "evaluationError", Type::Text),
]);

static RESOURCE_RULE: Message = Message(&[
    always(1, "verbs", Type::Texts),
    field(2, "apiGroups", Type::Texts),
    field(3, "resources", Type::Texts),
    field(4, "resourceNames", Type::Texts),
]);

static NON_RESOURCE_RULE: Message =
    Message(&[always(1, "verbs", Type::Texts), field(2, "nonResourceURLs", Type::Texts)]);

pub(super) static SELF_SUBJECT_REVIEW: Message =
    Message(&[METADATA, always(2, "status", Type::Message(&SELF_SUBJECT_REVIEW_STATUS))]);

static SELF_SUBJECT_REVIEW_STATUS: Message = Message(&[always(1, "userInfo", Type::Message(&USER_INFO))]);

static USER_INFO: Message = Message(&[
    field(1, "username", Type::Text),
    field(2, "uid", Type::Text),
    field(3, "groups", Type::Texts),
    field(4, "extra", Type::TextsMap),
]);

pub(super) static ROLE: Message = Message(&[METADATA, always(2, "rules", Type::Messages(&POLICY_RULE))]);

pub(super) static CLUSTER_ROLE: Message = Message(&[
    METADATA,
    always(2, "rules", Type::Messages(&POLICY_RULE)),
    pointer(3, "aggregationRule", Type::Message(&AGGREGATION_RULE)),
]);

static POLICY_RULE: Message = Message(&[
    always(1, "verbs", Type::Texts),
    field(2, "apiGroups", Type::Texts),
    field(3, "resources", Type::Texts),
    field(4, "resourceNames", Type::Texts),
    field(5, "nonResourceURLs", Type::Texts),
]);

static AGGREGATION_RULE: Message =
    Message(&[field(1, "clusterRoleSelectors", Type::Messages(&LABEL_SELECTOR))]);

/// `RoleBinding` and `ClusterRoleBinding`.
pub(super) static ROLE_BINDING: Message = Message(&[
    METADATA,
    field(2, "subjects", Type::Messages(&SUBJECT)),
    always(3, "roleRef", Type::Message(&ROLE_REF)),
]);

static SUBJECT: Message = Message(&[
    always(1, "kind", Type::Text),
    field(2, "apiGroup", Type::Text),
    always(3, "name", Type::Text),
    field(4, "namespace", Type::Text),
]);

static ROLE_REF: Message = Message(&[
    always(1, "apiGroup", Type::Text),
    always(2, "kind", Type::Text),
    always(3, "name", Type::Text),
]);
