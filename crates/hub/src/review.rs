//! Questions about oneself: who am I, and may I do this?
//!
//! Owns the three `SelfSubject…Review`s. They are answered, never stored.

use http::Method;
use serde_json::{Value, json};

use crate::metadata::invalid;
use crate::route::Target;
use crate::security::access::{Access, Role, allowed};
use crate::security::tokens::Identity;
use crate::status::{About, Failure};

#[derive(Debug)]
pub(crate) struct Review {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

pub(crate) const REVIEWS: [Review; 3] = [
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectRulesReview",
        plural: "selfsubjectrulesreviews",
    },
    Review { group: "authentication.k8s.io", kind: "SelfSubjectReview", plural: "selfsubjectreviews" },
];

impl Review {
    pub(crate) fn of(target: &Target) -> Option<&'static Self> {
        let matches = |review: &&Self| {
            review.group == target.group && review.plural == target.resource && target.version == "v1"
        };
        REVIEWS.iter().find(matches).filter(|_| target.namespace.is_none() && target.name.is_none())
    }

    pub(crate) fn check(&'static self, method: &Method) -> Result<&'static Self, Failure> {
        if method == Method::POST { Ok(self) } else { Err(Failure::method_not_allowed()) }
    }

    pub(crate) fn answer(&self, identity: &Identity, asked: &Value) -> Result<Value, Failure> {
        let spec = asked.get("spec").cloned().unwrap_or_else(|| json!({}));
        let status = match self.kind {
            "SelfSubjectAccessReview" => {
                if spec.get("resourceAttributes").is_some() == spec.get("nonResourceAttributes").is_some() {
                    let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                    let about = About { group: self.group, resource: self.plural, kind: self.kind, name: "" };
                    return Err(Failure::invalid(about, &[invalid("spec.resourceAttributes", "", why)]));
                }
                may(identity, &spec)
            }
            "SelfSubjectRulesReview" => {
                rules(identity, spec.get("namespace").and_then(Value::as_str).unwrap_or_default())
            }
            _ => json!({"userInfo": {"username": identity.name, "groups": identity.groups}}),
        };
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
        Ok(()) => json!({"allowed": true}),
        Err(denied) => json!({"allowed": false, "reason": denied.message(&identity.name)}),
    }
}

/// What an identity may do in a namespace, as far as rules can say it.
fn rules(identity: &Identity, namespace: &str) -> Value {
    if identity.role == Role::Admin {
        return json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        });
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
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["*"]}],
        "incomplete": true, "evaluationError": "a role of this hub is more than rules can say",
    })
}
