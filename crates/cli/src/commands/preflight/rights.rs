//! What a manager may not do on its hub, although the roles that are installed for it grant it.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};

use crate::packaging::Right;

/// How many questions may be in flight.
const AT_ONCE: usize = 8;

/// One text for each right that the hub denies in part or whole, in the order given.
pub(super) async fn denied(client: &Client, rights: Vec<Right>) -> kube::Result<Vec<String>> {
    let asking = rights.into_iter().map(|right| async move {
        let mut missing = Vec::new();
        for verb in &right.verbs {
            if !may(client, &right, verb).await? {
                missing.push(verb.as_str());
            }
        }
        let is_denied = !missing.is_empty();
        Ok::<_, kube::Error>(is_denied.then(|| text(&right, &missing.join(", "))))
    });
    let denied: Vec<Option<String>> = stream::iter(asking).buffered(AT_ONCE).try_collect().await?;
    Ok(denied.into_iter().flatten().collect())
}

async fn may(client: &Client, right: &Right, verb: &str) -> kube::Result<bool> {
    let Right { group, resource, subresource, namespace, name, verbs: _ } = right.clone();
    let asked = ResourceAttributes {
        group: Some(group),
        resource: Some(resource),
        subresource,
        namespace,
        name,
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(asked), ..Default::default() },
        ..Default::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn text(right: &Right, verbs: &str) -> String {
    let Right { group, resource, subresource, namespace, name, verbs: _ } = right;
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let part = subresource.iter().map(|part| format!("/{part}")).collect::<String>();
    let name = name.iter().map(|name| format!(" named {name}")).collect::<String>();
    let place = namespace.iter().map(|place| format!(" in the namespace {place}")).collect::<String>();
    format!(
        "this manager may not {verbs} {resource}{group}{part}{name}{place}: bind the roles of aviary manifests to its account"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_right_is_named_with_its_place() {
        let right = Right {
            group: "coordination.k8s.io".into(),
            resource: "leases".into(),
            subresource: None,
            namespace: Some("mine".into()),
            name: Some("aviary-manager".into()),
            verbs: vec!["get".into(), "update".into()],
        };
        assert_eq!(
            text(&right, "update"),
            "this manager may not update leases.coordination.k8s.io named aviary-manager in the namespace mine: \
             bind the roles of aviary manifests to its account"
        );
        let right = Right { group: String::new(), resource: "events".into(), name: None, ..right };
        assert!(
            text(&right, "create").starts_with("this manager may not create events in the namespace mine:")
        );
    }
}
