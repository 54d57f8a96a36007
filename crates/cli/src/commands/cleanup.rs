//! `aviary cleanup`: removes what a manager leaves on a hub, so that another can take over.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use aviary_api::names::conditions::REVISION_HEALTHY;
use aviary_api::names::{ADDON_GROUP, annotations, labels};
use aviary_api::{Condition, ManagedClusterAddOn, ManifestWork};
use aviary_controller::LEASE;
use aviary_registration::names::{BINDING_OF, TEMPLATE_LABEL, TOKEN_LABEL};
use aviary_registration::process::LEASE as REGISTRATION_LEASE;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    Preconditions,
};
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Outcome, Session};
use crate::connect::{Connection, HubArgs, refused};
use crate::output::Printout;

const DESCRIPTION: &str = "\
Remove what Aviary leaves on a hub, after its managers and registrations have stopped: the marker and term on add-ons and instances, \
the condition RevisionHealthy of instances, \
annotations that say what works were rendered from, stored revisions and rollout records with their finalizers, the Leases, and role bindings, \
roles and service accounts of aviary registration.

Apart from that, add-ons, instances and works stay as they are, and so does everything on the clusters. Without --yes it only prints what it would remove.";

/// How many objects are read at a time.
const PAGE: u32 = 500;
/// On works that Aviary rendered. Without them, another manager's works are known as such when
/// Aviary comes again. OCM's own annotation stays.
const OF_WORKS: [&str; 4] = [
    annotations::CONFIGS_SPEC_HASH,
    annotations::RENDERED_FROM,
    annotations::RENDERED_DIGEST,
    annotations::PROBES_DIGEST,
];

/// Remove what Aviary leaves on a hub, so that another manager can take over
#[derive(Debug, clap::Args)]
#[command(long_about = DESCRIPTION, after_help = "\
Examples:
  See what would be removed
    $ aviary cleanup

  Go back to the add-on manager of Open Cluster Management. Delete the manifests last: with their
  kinds, all objects of those kinds go
    $ kubectl -n open-cluster-management delete deployment aviary-manager aviary-registration --ignore-not-found
    $ aviary cleanup --yes
    $ aviary manifests --flavor ocm | kubectl delete --ignore-not-found -f -")]
pub(crate) struct Args {
    #[command(flatten)]
    hub: HubArgs,

    /// Namespace of the manager
    #[arg(long, value_name = "NAMESPACE", default_value = crate::packaging::NAMESPACE)]
    namespace: String,

    /// Remove what is listed. Without this option, nothing is removed
    #[arg(long)]
    yes: bool,
}

/// What was found, and removed with `--yes`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct CleanupReport {
    removed: bool,
    /// How many objects are deleted or changed, by what is removed: whole objects of a kind, or a
    /// part of them.
    counts: BTreeMap<&'static str, usize>,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("failed to start the runtime")?;
    let removed = runtime.block_on(clean(args, session))?;
    if !session.output.data(&removed)? {
        let head = if removed.removed { "Removed:" } else { "Would remove (add --yes to do it):" };
        let mut text = Printout::of(head);
        for (what, count) in &removed.counts {
            text.line(format_args!("  {count:>6}  {what}"));
        }
        session.output.text(&text)?;
    }
    Ok(Outcome::Done)
}

async fn clean(args: &Args, session: &Session) -> anyhow::Result<CleanupReport> {
    let connection = args.hub.connect().await?;
    let hand = Hand { connection: &connection, yes: args.yes };
    hand.check_stopped("manager", LEASE, &args.namespace, session).await?;
    hand.check_stopped("registration", REGISTRATION_LEASE, &args.namespace, session).await?;
    let mut counts = BTreeMap::new();
    let terms = [annotations::MANAGER_TERM, annotations::MANAGER_IDENTITY];
    let kind = |kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk(ADDON_GROUP, "v1alpha1", kind));
    let all = ListParams::default();
    let addons = hand.strip(&kind("ClusterManagementAddOn"), &all, &[], &terms).await?;
    counts.insert("add-ons: term", addons);
    let markers = [labels::INSTALLED_BY_STRATEGY];
    let instances = hand.strip(&kind("ManagedClusterAddOn"), &all, &markers, &terms).await?;
    counts.insert("instances: marker and term", instances);
    counts.insert("instances: condition RevisionHealthy", hand.forget_clocks().await?);
    let works = ApiResource::erase::<ManifestWork>(&());
    let of_addons = ListParams::default().labels(labels::ADDON_NAME);
    let works = hand.strip(&works, &of_addons, &[labels::ADDON_VERSION], &OF_WORKS).await?;
    counts.insert("works: what they were rendered from", works);
    counts.insert("rollout records", hand.records().await?);
    let revisions: Api<ControllerRevision> = Api::namespaced(connection.client.clone(), &args.namespace);
    let ours = ListParams::default().labels(labels::ADDON_NAME);
    counts.insert("stored revisions", hand.delete_all(&revisions, ours, |_| true).await?);
    counts
        .insert("role bindings of registration", hand.of_registration::<RoleBinding>(TEMPLATE_LABEL).await?);
    counts.insert("roles of registration", hand.of_registration::<Role>(TOKEN_LABEL).await?);
    counts.insert(
        "service accounts of registration",
        hand.of_registration::<ServiceAccount>(TOKEN_LABEL).await?,
    );
    let leases: Api<Lease> = Api::namespaced(connection.client.clone(), &args.namespace);
    let mut found = 0;
    for name in [LEASE, REGISTRATION_LEASE] {
        let ours = ListParams::default().fields(&format!("metadata.name={name}"));
        found += hand.delete_all(&leases, ours, |_| true).await?;
    }
    counts.insert("leases", found);
    Ok(CleanupReport { removed: args.yes, counts })
}

struct Hand<'c> {
    connection: &'c Connection,
    yes: bool,
}

impl Hand<'_> {
    fn refused(&self, doing: &str, error: &kube::Error) -> anyhow::Error {
        refused(doing, error, &self.connection.server)
    }

    /// One that runs would write everything again.
    async fn check_stopped(
        &self,
        what: &str,
        lease: &str,
        namespace: &str,
        session: &Session,
    ) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.connection.client.clone(), namespace);
        let lease = leases.get_opt(lease).await.map_err(|error| self.refused("read the Lease", &error))?;
        let Some(spec) = lease.and_then(|lease| lease.spec) else { return Ok(()) };
        let holder = spec.holder_identity.unwrap_or_default();
        let kept_for = i64::from(spec.lease_duration_seconds.unwrap_or(15));
        let age = spec.renew_time.map(|time| session.now.duration_since(time.0).as_secs());
        if !holder.is_empty() && age.is_some_and(|age| age < 2 * kept_for) {
            bail!(
                "{what} {holder} runs on this hub: stop every {what} first, then wait for {} s",
                2 * kept_for
            );
        }
        Ok(())
    }

    /// Removes labels and annotations from objects of a kind.
    async fn strip(
        &self,
        resource: &ApiResource,
        which: &ListParams,
        labels: &[&str],
        annotations: &[&str],
    ) -> anyhow::Result<usize> {
        let all: Api<DynamicObject> = Api::all_with(self.connection.client.clone(), resource);
        let doing = format!("change the {}.{}", resource.plural, resource.group);
        let mut count = 0;
        let mut params = which.clone().limit(PAGE);
        loop {
            let page = all.list_metadata(&params).await.map_err(|error| self.refused(&doing, &error))?;
            for object in &page.items {
                let Some(patch) = without(object, labels, annotations) else { continue };
                count += 1;
                if !self.yes {
                    continue;
                }
                let one: Api<DynamicObject> = match object.namespace() {
                    Some(namespace) => {
                        Api::namespaced_with(self.connection.client.clone(), &namespace, resource)
                    }
                    None => all.clone(),
                };
                let name = object.name_any();
                let patched = one.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
                patched.map_err(|error| self.refused(&doing, &error))?;
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok(count);
            }
        }
    }

    /// Removes the condition in which a manager keeps when a revision started on a cluster. Another
    /// manager would leave it there, and it would be of another revision when Aviary comes again.
    async fn forget_clocks(&self) -> anyhow::Result<usize> {
        let client = &self.connection.client;
        let all: Api<ManagedClusterAddOn> = Api::all(client.clone());
        let doing = "change the statuses of instances";
        let mut count = 0;
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = all.list(&params).await.map_err(|error| self.refused(doing, &error))?;
            for object in &page.items {
                let Some(patch) = without_clock(object) else { continue };
                count += 1;
                if self.yes {
                    let namespace = object.namespace().unwrap_or_default();
                    let one: Api<ManagedClusterAddOn> = Api::namespaced(client.clone(), &namespace);
                    let (name, patch) = (object.name_any(), Patch::Merge(patch));
                    let patched = one.patch_status(&name, &PatchParams::default(), &patch).await;
                    patched.map_err(|error| self.refused(doing, &error))?;
                }
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok(count);
            }
        }
    }

    /// Records exist only on hubs that serve the kind.
    async fn records(&self) -> anyhow::Result<usize> {
        let gvk = GroupVersionKind::gvk(ADDON_GROUP, "v1alpha1", "AddOnRolloutRecord");
        let all: Api<DynamicObject> =
            Api::all_with(self.connection.client.clone(), &ApiResource::from_gvk(&gvk));
        match all.list_metadata(&ListParams::default().limit(1)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(0),
            _ => self.delete_all(&all, ListParams::default(), |_| true).await,
        }
    }

    /// Objects that `aviary registration` made, selected by a label. OCM's have the label too.
    async fn of_registration<K>(&self, label: &str) -> anyhow::Result<usize>
    where
        K: Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let all: Api<K> = Api::all(self.connection.client.clone());
        let is_ours = |object: &PartialObjectMeta<K>| object.annotations().contains_key(BINDING_OF);
        self.delete_all(&all, ListParams::default().labels(label), is_ours).await
    }

    /// Deletes objects, and their finalizers with them: nobody is left to remove those.
    async fn delete_all<K>(
        &self,
        all: &Api<K>,
        params: ListParams,
        is_ours: impl Fn(&PartialObjectMeta<K>) -> bool,
    ) -> anyhow::Result<usize>
    where
        K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let doing = format!("delete from {}", all.resource_url());
        let mut count = 0;
        let mut params = params.limit(PAGE);
        loop {
            let page = all.list_metadata(&params).await.map_err(|error| self.refused(&doing, &error))?;
            for object in page.items.iter().filter(|object| is_ours(object)) {
                count += 1;
                if self.yes {
                    self.delete(object, all).await.map_err(|error| self.refused(&doing, &error))?;
                }
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok(count);
            }
        }
    }

    async fn delete<K>(&self, object: &PartialObjectMeta<K>, all: &Api<K>) -> Result<(), kube::Error>
    where
        K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let (name, uid) = (object.name_any(), object.uid());
        let url = all.resource_url();
        let url = match object.namespace() {
            // The list may be of all namespaces.
            Some(namespace) if !url.contains("/namespaces/") => in_namespace(url, &namespace),
            _ => url.to_owned(),
        };
        let requests = kube::core::Request::new(url);
        if !object.finalizers().is_empty() {
            let patch = json!({"metadata": {"uid": uid, "finalizers": null}});
            let request = requests.patch(&name, &PatchParams::default(), &Patch::Merge(patch));
            let request = request.map_err(kube::Error::BuildRequest)?;
            gone_is_fine(self.connection.client.request_text(request).await)?;
        }
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::background() };
        let request = requests.delete(&name, &params).map_err(kube::Error::BuildRequest)?;
        gone_is_fine(self.connection.client.request_text(request).await)
    }
}

fn gone_is_fine(answer: Result<String, kube::Error>) -> Result<(), kube::Error> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

/// The address of the same kind in one namespace.
fn in_namespace(url: &str, namespace: &str) -> String {
    let (version, plural) = url.rsplit_once('/').unwrap_or(("", url));
    format!("{version}/namespaces/{namespace}/{plural}")
}

/// The patch that removes the condition, on condition that the object is unchanged.
fn without_clock(object: &ManagedClusterAddOn) -> Option<Value> {
    let conditions = &object.status.as_ref()?.conditions;
    let left: Vec<&Condition> = conditions.iter().filter(|one| one.type_ != REVISION_HEALTHY).collect();
    let version = object.resource_version();
    (left.len() < conditions.len())
        .then(|| json!({"metadata": {"resourceVersion": version}, "status": {"conditions": left}}))
}

/// The patch that removes these labels and annotations, on condition that the object is unchanged.
/// `None` if it has none of them.
fn without(
    object: &PartialObjectMeta<DynamicObject>,
    labels: &[&str],
    annotations: &[&str],
) -> Option<Value> {
    let found = |keys: &[&str], on: &BTreeMap<String, String>| -> Map<String, Value> {
        keys.iter().filter(|key| on.contains_key(**key)).map(|key| ((*key).to_owned(), Value::Null)).collect()
    };
    let labels = found(labels, object.labels());
    let annotations = found(annotations, object.annotations());
    if labels.is_empty() && annotations.is_empty() {
        return None;
    }
    let version = object.resource_version();
    Some(json!({"metadata": {"resourceVersion": version, "labels": labels, "annotations": annotations}}))
}
