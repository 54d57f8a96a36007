//! Reviews: authentication and authorization questions.
//!
//! Owns the `…Review` kinds. They are answered, never stored. Every client may ask about itself;
//! asking about others needs a right.

use http::Method;
use serde_json::{Value, json};

use crate::api::route::ResourcePath;
use crate::api::status::{About, ApiError};
use crate::formats::metadata::invalid;
use crate::security::access::{self, Access, Role, RuleScope, allowed};
use crate::security::tokens::{Identity, Tokens};

#[derive(Debug)]
pub(crate) struct ReviewKind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

/// The client, and the tokens of this hub: none if it is not served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) tokens: Option<&'a Tokens>,
}

pub(crate) const REVIEWS: [ReviewKind; 5] = [
    ReviewKind {
        group: "authorization.k8s.io",
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
    },
    ReviewKind {
        group: "authorization.k8s.io",
        kind: "SelfSubjectRulesReview",
        plural: "selfsubjectrulesreviews",
    },
    ReviewKind { group: "authorization.k8s.io", kind: "SubjectAccessReview", plural: "subjectaccessreviews" },
    ReviewKind { group: "authentication.k8s.io", kind: "SelfSubjectReview", plural: "selfsubjectreviews" },
    ReviewKind { group: "authentication.k8s.io", kind: "TokenReview", plural: "tokenreviews" },
];

impl ReviewKind {
    pub(crate) fn of(target: &ResourcePath) -> Option<&'static Self> {
        let matches = |review: &&Self| {
            review.group == target.group && review.plural == target.resource && target.version == "v1"
        };
        REVIEWS.iter().find(matches).filter(|_| target.namespace.is_none() && target.name.is_none())
    }

    pub(crate) fn check(&'static self, method: &Method) -> Result<&'static Self, ApiError> {
        if method == Method::POST { Ok(self) } else { Err(ApiError::method_not_allowed()) }
    }

    pub(crate) fn answer(&self, asking: Asking<'_>, asked: &Value) -> Result<Value, ApiError> {
        let identity = asking.identity;
        let access = Access { verb: "create", group: self.group, resource: self.plural, ..Access::default() };
        let about = About { group: self.group, resource: self.plural, kind: self.kind, name: "" };
        allowed(&identity.role, &access)
            .map_err(|denied| ApiError::forbidden(denied.message(&identity.name), about))?;
        let spec = asked.get("spec").cloned().unwrap_or_else(|| json!({}));
        let text = |name: &str| spec.get(name).and_then(Value::as_str).unwrap_or_default();
        let one_question =
            spec.get("resourceAttributes").is_some() != spec.get("nonResourceAttributes").is_some();
        if self.kind.ends_with("SubjectAccessReview") && !one_question {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            return Err(ApiError::invalid(about, &[invalid("spec.resourceAttributes", "", why)]));
        }
        let status = match self.kind {
            "SelfSubjectAccessReview" => may(identity, &spec),
            "SubjectAccessReview" => {
                let user = text("user");
                let holders = asking.tokens.map(Tokens::holders).unwrap_or_default();
                match holders.iter().find(|holder| holder.name == user) {
                    Some(holder) => may(holder, &spec),
                    None => json!({"allowed": false, "reason": "this hub has no user of that name"}),
                }
            }
            "TokenReview" => match asking.tokens.and_then(|tokens| tokens.identify(text("token"))) {
                Some(holder) => {
                    json!({"authenticated": true, "user": {"username": holder.name, "groups": holder.groups}})
                }
                None => json!({"authenticated": false, "user": {}}),
            },
            "SelfSubjectRulesReview" => {
                rules(identity, spec.get("namespace").and_then(Value::as_str).unwrap_or_default())
            }
            _ => json!({"userInfo": {"username": identity.name, "groups": identity.groups}}),
        };
        // The token is not repeated in the response.
        let spec = if self.kind == "TokenReview" { json!({}) } else { spec };
        Ok(
            json!({"kind": self.kind, "apiVersion": format!("{}/v1", self.group), "metadata": {"creationTimestamp": null}, "spec": spec, "status": status}),
        )
    }
}

fn may(identity: &Identity, spec: &Value) -> Value {
    let text = |part: &str, name: &str| {
        spec.get(part).and_then(|part| part.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    let given = |text: &'static str| spec.get(text).is_some();
    let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let (namespace, name) =
        (some(text("resourceAttributes", "namespace")), some(text("resourceAttributes", "name")));
    let part = some(text("resourceAttributes", "subresource"));
    let path = some(text("nonResourceAttributes", "path"));
    let access = if given("nonResourceAttributes") {
        Access {
            verb: text("nonResourceAttributes", "verb"),
            non_resource_path: path.as_deref(),
            ..Access::default()
        }
    } else {
        Access {
            verb: text("resourceAttributes", "verb"),
            group: text("resourceAttributes", "group"),
            resource: text("resourceAttributes", "resource"),
            subresource: part.as_deref(),
            namespace: namespace.as_deref(),
            name: name.as_deref(),
            non_resource_path: None,
        }
    };
    match allowed(&identity.role, &access) {
        Ok(_) => json!({"allowed": true}),
        Err(denied) => json!({"allowed": false, "reason": denied.message(&identity.name)}),
    }
}

/// The rights of an identity in a namespace, as far as rules can express them.
fn rules(identity: &Identity, namespace: &str) -> Value {
    if identity.role == Role::Admin {
        return json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        });
    }
    let public = json!([{"verbs": ["get"], "nonResourceURLs": ["*"]}]);
    if let Some(rules) = access::rules(&identity.role, namespace) {
        let rules: Vec<Value> = rules.map(|rule| rule_value(&identity.role, rule)).collect();
        return json!({"resourceRules": rules, "nonResourceRules": public, "incomplete": false});
    }
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    let may = |verb: &&str| {
        let access = Access {
            verb,
            group: "",
            resource: "configmaps",
            namespace: Some(namespace),
            ..Access::default()
        };
        allowed(&identity.role, &access).is_ok()
    };
    let verbs: Vec<&str> = verbs.into_iter().filter(|verb| may(verb)).collect();
    json!({
        "resourceRules": [{"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": public,
        "incomplete": true, "evaluationError": "a role of this hub is more than rules can say",
    })
}

fn rule_value(role: &Role, rule: &access::AccessRule) -> Value {
    let mut value = json!({"verbs": rule.verbs, "apiGroups": [rule.group], "resources": [rule.resource]});
    if let (RuleScope::Named, Role::Agent { namespace }) = (rule.place, role) {
        value["resourceNames"] = json!([namespace]);
    }
    value
}
