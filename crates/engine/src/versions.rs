//! Versions of an add-on: which are available, in which order, and which is the default (rules,
//! chapter 3).

use std::cmp::Ordering;

use aviary_api::names::annotations;
use serde_json::Value;

use crate::configs::{self, GroupResource, Revision};
use crate::name::Text;
use crate::observed::Observed;

/// How many versions a status lists. All of them can be used.
pub const MOST_VERSIONS: usize = 256;

/// The available versions, newest first: those of the add-on's templates, otherwise those that its
/// own manager published.
pub fn offered(observed: &Observed) -> Vec<Text> {
    let mut offered: Vec<Text> =
        observed.templates.iter().filter_map(|template| template.version.clone()).collect();
    if offered.is_empty() && !observed.renders_templates() {
        return observed.addon.status.supported_versions.clone();
    }
    offered.sort_by(|a, b| compare(b, a));
    offered.dedup();
    offered
}

/// The highest release; if there are only pre-releases, the highest of those.
pub fn default_version(newest_first: &[Text]) -> Option<Text> {
    newest_first.iter().find(|version| !is_prerelease(version)).or_else(|| newest_first.first()).cloned()
}

fn semantic(version: &str) -> Option<semver::Version> {
    semver::Version::parse(version.strip_prefix('v').unwrap_or(version)).ok()
}

fn is_prerelease(version: &str) -> bool {
    semantic(version).is_some_and(|version| !version.pre.is_empty())
}

/// Compares two versions. Semantic versions are ordered by precedence. All other texts come before
/// them, in natural order. The order is total: semantic versions with equal precedence, which
/// differ in build metadata or a leading `v`, are ordered by their text.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (semantic(a), semantic(b)) {
        (Some(x), Some(y)) => x.cmp_precedence(&y).then_with(|| natural(a, b)).then_with(|| a.cmp(b)),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => natural(a, b).then_with(|| a.cmp(b)),
    }
}

/// Whether `version` is older than `other`. If one of them is not a semantic version, only their
/// numbers are compared.
pub(crate) fn is_before(version: &str, other: &str) -> bool {
    match (semantic(version), semantic(other)) {
        (Some(a), Some(b)) => a.cmp_precedence(&b).is_lt(),
        _ => natural(version, other).is_lt(),
    }
}

/// Compares runs of digits as numbers and everything else as text: `v9` before `v10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (run_a, rest_a) = next_run(a);
        let (run_b, rest_b) = next_run(b);
        if run_a.is_empty() || run_b.is_empty() {
            return run_a.len().cmp(&run_b.len());
        }
        let both_numbers = [run_a, run_b].iter().all(|run| run.bytes().all(|c| c.is_ascii_digit()));
        let order = if both_numbers {
            let (x, y) = (run_a.trim_start_matches('0'), run_b.trim_start_matches('0'));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            run_a.cmp(run_b)
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
}

fn next_run(text: &str) -> (&str, &str) {
    let digit = |c: char| c.is_ascii_digit();
    let first = text.chars().next().is_some_and(digit);
    let end = text.find(|c| digit(c) != first).unwrap_or(text.len());
    text.split_at(end)
}

/// The longest version in an annotation, which no schema bounds.
pub const LONGEST_ANNOTATED: usize = 253;

/// The version of a template: `spec.version`, otherwise the annotation on the first manifest that
/// has it, for hubs whose schema lacks the field.
pub(crate) fn of_template(content: &Value) -> Option<&str> {
    let stated = content.pointer("/spec/version").and_then(Value::as_str);
    let annotated = || {
        let manifests = content.pointer("/spec/agentSpec/workload/manifests")?.as_array()?;
        manifests.iter().find_map(annotation)
    };
    stated.filter(|version| !version.is_empty()).or_else(annotated)
}

fn annotation(manifest: &Value) -> Option<&str> {
    let version = manifest.get("metadata")?.get("annotations")?.get(annotations::TEMPLATE_VERSION)?.as_str();
    version.filter(|version| !version.is_empty() && version.len() <= LONGEST_ANNOTATED)
}

/// The version of a revision, if known: its template's, otherwise the one that its AddOnHubConfig
/// selects.
pub fn of_revision(observed: &Observed, revision: &Revision) -> Option<Text> {
    let template = revision.pin(GroupResource::templates()).and_then(|pin| observed.content(pin));
    if let Some(version) = template.and_then(|content| of_template(content)) {
        return Some(version.into());
    }
    let hub_config = revision.pin(GroupResource::hub_configs())?;
    if let Some(content) = observed.content(hub_config) {
        return configs::version_in(content);
    }
    // The shorthand has no object; its name is its version, and its hash proves it.
    let inline = configs::inline_content(&hub_config.config.name);
    (crate::hash::spec_hash(&inline) == hub_config.hash).then(|| hub_config.config.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest_first(versions: &[&str]) -> Vec<Text> {
        let mut sorted: Vec<Text> = versions.iter().map(|&v| v.into()).collect();
        sorted.sort_by(|a, b| compare(b, a));
        sorted
    }

    #[test]
    fn semantic_versions_come_newest_first_and_the_rest_after_them_in_natural_order() {
        let sorted = newest_first(&["v2", "0.9.0", "v0.10.0", "v10", "v0.11.0-rc.1", "latest", "v0.11.0"]);
        let shown: Vec<&str> = sorted.iter().map(|v| &**v).collect();
        assert_eq!(shown, ["v0.11.0", "v0.11.0-rc.1", "v0.10.0", "0.9.0", "v10", "v2", "latest"]);
    }

    #[test]
    fn a_template_has_its_version_in_its_spec_or_in_a_manifest() {
        use serde_json::json;
        let manifest =
            |annotations: Value| json!({"kind": "ConfigMap", "metadata": {"annotations": annotations}});
        let template = |version: Value, manifests: Value| json!({"spec": {"version": version, "agentSpec": {"workload": {"manifests": manifests}}}});
        let annotated = manifest(json!({"addon.open-cluster-management.io/template-version": "v2"}));
        let manifests = json!([manifest(json!({})), annotated, 7]);
        assert_eq!(of_template(&template(json!("v1"), manifests.clone())), Some("v1"));
        assert_eq!(of_template(&template(Value::Null, manifests.clone())), Some("v2"));
        assert_eq!(of_template(&template(json!(""), manifests)), Some("v2"));
        let long = manifest(json!({"addon.open-cluster-management.io/template-version": "v".repeat(254)}));
        assert_eq!(of_template(&template(Value::Null, json!([long]))), None);
        assert_eq!(of_template(&json!({})), None);
    }

    #[test]
    fn the_default_is_the_highest_release() {
        assert_eq!(default_version(&newest_first(&["v1.0.0", "v1.1.0-rc.1"])).as_deref(), Some("v1.0.0"));
        assert_eq!(
            default_version(&newest_first(&["v1.1.0-rc.2", "v1.1.0-rc.1"])).as_deref(),
            Some("v1.1.0-rc.2")
        );
        assert_eq!(default_version(&newest_first(&["v1", "v2"])).as_deref(), Some("v2"));
        assert_eq!(default_version(&[]), None);
    }
}
