//! Who changed an object last, who approved deletions, and whose source an object comes from: read
//! from its `managedFields`, annotations and labels. Only shown, never used for a decision.

use aviary_api::names::annotations::ALLOW_DELETIONS;
use serde::Serialize;
use serde_json::Value;

use super::spec::WRITER;

/// The last change of the part of an object that users write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Author {
    /// The field manager: the name of the program that wrote it.
    pub(super) manager: String,
    /// The object.
    pub(super) changed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
}

/// The deletions that the annotation of an add-on approves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Approval {
    pub(super) deletions: u64,
    /// The field manager that owns the annotation.
    pub(super) manager: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
}

/// Field managers of GitOps tools, by the beginning of their names.
const GITOPS: [(&str, &str); 6] = [
    ("argocd", "Argo CD"),
    ("kustomize-controller", "Flux"),
    ("helm-controller", "Flux"),
    ("flux", "Flux"),
    ("fleetagent", "Rancher Fleet"),
    ("config-sync", "Config Sync"),
];
/// Annotations and labels of GitOps tools.
const MARKS: [(&str, &str); 4] = [
    ("argocd.argoproj.io/", "Argo CD"),
    ("kustomize.toolkit.fluxcd.io/", "Flux"),
    ("helm.toolkit.fluxcd.io/", "Flux"),
    ("configmanagement.gke.io/", "Config Sync"),
];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Who changed the object's own fields last. `None` if the hub does not record it.
pub(super) fn last(object: &Value, shown: &str) -> Option<Author> {
    let (manager, at) = newest(writers(object))?;
    Some(Author { manager, changed: shown.to_owned(), at })
}

/// Who approved deletions of the add-on, and how many. `None` if nobody has, or if the hub does not
/// record who.
pub(super) fn approval(addon: &Value) -> Option<Approval> {
    let annotations = addon.pointer("/metadata/annotations")?;
    let deletions = annotations.get(ALLOW_DELETIONS)?.as_str()?.trim().parse().ok()?;
    let field = format!("f:{ALLOW_DELETIONS}");
    let owns = |entry: &&Value| {
        let owned = entry.pointer("/fieldsV1/f:metadata/f:annotations");
        owned.is_some_and(|owned| owned.get(&field).is_some())
    };
    let (manager, at) = newest(entries(addon).filter(owns))?;
    Some(Approval { deletions, manager, at })
}

/// The manager and the time of the newest of these entries.
fn newest<'a>(entries: impl Iterator<Item = &'a Value>) -> Option<(String, Option<String>)> {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let newest = entries.max_by_key(|entry| text(entry, "time"))?;
    Some((text(newest, "manager")?, text(newest, "time")))
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten()
}

/// The entries about fields other than metadata and status.
fn writers(object: &Value) -> impl Iterator<Item = &Value> {
    entries(object).filter(|entry| {
        let fields = entry.get("fieldsV1").and_then(Value::as_object);
        let own = fields.is_some_and(|fields| {
            fields
                .keys()
                .any(|key| !matches!(key.as_str(), "f:metadata" | "f:status" | "f:apiVersion" | "f:kind"))
        });
        own && entry.get("subresource").and_then(Value::as_str).unwrap_or_default().is_empty()
    })
}

/// Why a change of the object may be undone, or `None` if nothing hints at that.
pub(super) fn undone_by(object: &Value) -> Option<String> {
    let keys = |pointer: &str| {
        object.pointer(pointer).and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key.as_str())
    };
    let managers = || writers(object).filter_map(|entry| entry.get("manager").and_then(Value::as_str));
    let by_manager = managers().find_map(|manager| tool(&GITOPS, manager));
    let marks = || keys("/metadata/annotations").chain(keys("/metadata/labels"));
    if let Some(tool) = by_manager.or_else(|| marks().find_map(|mark| tool(&MARKS, mark))) {
        return Some(format!(
            "{tool} manages this add-on and will restore what is in its repository: revert the change there as well, or suspend the sync first"
        ));
    }
    let applied = keys("/metadata/annotations").any(|key| key == LAST_APPLIED)
        || writers(object).any(|entry| {
            entry.get("operation").and_then(Value::as_str) == Some("Apply")
                && entry.get("manager").and_then(Value::as_str) != Some(WRITER)
        });
    applied.then(|| {
        "this add-on was written with kubectl apply: applying the same file again restores the change, so revert the file as well"
            .to_owned()
    })
}

fn tool(known: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    known.iter().find(|(beginning, _)| text.starts_with(beginning)).map(|(_, tool)| *tool)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(entries: &[(&str, &str, &str, &str)]) -> Value {
        let entry = |(manager, operation, time, field): &(&str, &str, &str, &str)| json!({"manager": manager, "operation": operation, "time": time, "fieldsV1": {*field: {}}});
        json!({"metadata": {"managedFields": entries.iter().map(entry).collect::<Vec<_>>()}})
    }

    #[test]
    fn the_last_writer_of_the_spec_is_the_author() {
        let object = object(&[
            ("kubectl-create", "Update", "2026-01-01T00:00:00Z", "f:spec"),
            ("kubectl-edit", "Update", "2026-01-02T00:00:00Z", "f:spec"),
            ("aviary-manager", "Update", "2026-01-03T00:00:00Z", "f:status"),
            ("kubectl-label", "Update", "2026-01-04T00:00:00Z", "f:metadata"),
        ]);
        let author = last(&object, "the add-on").unwrap();
        assert_eq!(
            (author.manager.as_str(), author.at.as_deref()),
            ("kubectl-edit", Some("2026-01-02T00:00:00Z"))
        );
        assert_eq!(last(&json!({}), "x"), None);
        assert_eq!(undone_by(&object), None);
    }

    #[test]
    fn whoever_owns_the_annotation_has_approved_the_deletions() {
        let entry = |manager: &str, time: &str, annotation: &str| {
            let fields = json!({"f:metadata": {"f:annotations": {annotation: {}}}});
            json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields})
        };
        let allowed = format!("f:{ALLOW_DELETIONS}");
        let mut addon = json!({"metadata": {"annotations": {ALLOW_DELETIONS: "12"}, "managedFields": [
            entry("alice", "2026-01-01T00:00:00Z", &allowed),
            entry("bob", "2026-01-02T00:00:00Z", &allowed),
            entry("kubectl-annotate", "2026-01-03T00:00:00Z", "f:note"),
        ]}});
        let expected = Approval {
            deletions: 12,
            manager: "bob".to_owned(),
            at: Some("2026-01-02T00:00:00Z".to_owned()),
        };
        assert_eq!(approval(&addon), Some(expected));
        // It is no change of the spec.
        assert_eq!(last(&addon, "the add-on"), None);
        addon["metadata"]["annotations"][ALLOW_DELETIONS] = json!("all");
        assert_eq!(approval(&addon), None, "it approves nothing");
        assert_eq!(approval(&json!({"metadata": {"annotations": {ALLOW_DELETIONS: "12"}}})), None);
    }

    #[test]
    fn whoever_has_the_source_will_write_it_again() {
        let time = "2026-01-01T00:00:00Z";
        let said = |object: &Value| undone_by(object).unwrap_or_default();
        assert!(said(&object(&[("argocd-controller", "Apply", time, "f:spec")])).starts_with("Argo CD"));
        assert!(said(&object(&[("kustomize-controller", "Apply", time, "f:spec")])).starts_with("Flux"));
        assert!(said(&object(&[("kubectl", "Apply", time, "f:spec")])).contains("kubectl apply"));
        assert!(said(&json!({"metadata": {"annotations": {LAST_APPLIED: "{}"}}})).contains("kubectl apply"));
        let marked = json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "addons"}}});
        assert!(said(&marked).starts_with("Flux"));
        // A tool that writes only a status has no source.
        assert_eq!(undone_by(&object(&[("argocd-controller", "Update", time, "f:status")])), None);
    }
}
