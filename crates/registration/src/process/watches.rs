//! One stream per kind, read into plain facts.

use std::fmt::Debug;

use aviary_api::names::labels;
use aviary_api::{Guarded, ManagedCluster, ManagedClusterAddOn};
use aviary_controller::{StoredRevision, stored_template};
use aviary_engine::hash;
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

use crate::grants::{ObjectKey, SeenBinding, token_rules};
use crate::instance::AgentInstance;
use crate::names::{AgentKey, BINDING_OF, TEMPLATE_LABEL, TOKEN_LABEL};
use crate::request::SigningRequest;
use crate::state::{OwnedObject, SeenObject, StateChange, TemplateContent, WatchedKind};
use crate::template::Registrations;

type Changes = mpsc::Sender<(WatchedKind, StateChange)>;

/// Follows a kind until nobody receives changes any more.
pub(super) async fn follow(client: Client, namespace: String, kind: WatchedKind, changes: Changes) {
    let all = watcher::Config::default();
    match kind {
        WatchedKind::Cluster => {
            stream(Api::<Guarded<ManagedCluster>>::all(client), all, kind, changes, cluster).await;
        }
        WatchedKind::Instance => {
            let read = |object: ManagedClusterAddOn| {
                AgentInstance::read(&object).map(|read| SeenObject::Instance(Box::new(read)))
            };
            stream(Api::<Guarded<ManagedClusterAddOn>>::all(client), all, kind, changes, read).await;
        }
        WatchedKind::Template => {
            let resource = ApiResource {
                group: "addon.open-cluster-management.io".into(),
                version: "v1alpha1".into(),
                api_version: "addon.open-cluster-management.io/v1alpha1".into(),
                kind: "AddOnTemplate".into(),
                plural: "addontemplates".into(),
            };
            let api: Api<Guarded<DynamicObject>> = Api::all_with(client, &resource);
            stream(api, all, kind, changes, |object| template(&object)).await;
        }
        WatchedKind::Revision => {
            let api: Api<Guarded<StoredRevision>> = Api::namespaced(client, &namespace);
            stream(api, all.labels(labels::ADDON_NAME), kind, changes, |object| revision(&object)).await;
        }
        WatchedKind::Binding => {
            let read = |object: RoleBinding| {
                SeenBinding::read(object).map(|read| SeenObject::Binding(Box::new(read)))
            };
            let api: Api<Guarded<RoleBinding>> = Api::all(client);
            stream(api, all.labels(TEMPLATE_LABEL), kind, changes, read).await;
        }
        WatchedKind::Request => {
            let read = |object| SigningRequest::read(object).map(|read| SeenObject::Request(Box::new(read)));
            let api: Api<Guarded<CertificateSigningRequest>> = Api::all(client);
            stream(api, all.labels(labels::ADDON_NAME), kind, changes, read).await;
        }
        WatchedKind::Account => {
            let api: Api<Guarded<ServiceAccount>> = Api::all(client);
            stream(api, all.labels(TOKEN_LABEL), kind, changes, |object| owned(&object.metadata, |_| true))
                .await;
        }
        WatchedKind::TokenRole => {
            let api: Api<Guarded<Role>> = Api::all(client);
            let is_right = |role: Role| owned(&role.metadata, |of| json!(role.rules) == token_rules(of));
            stream(api, all.labels(TOKEN_LABEL), kind, changes, is_right).await;
        }
    }
}

async fn stream<K>(
    api: Api<Guarded<K>>,
    config: watcher::Config,
    kind: WatchedKind,
    changes: Changes,
    read: impl Fn(K) -> Option<SeenObject>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let stream = watcher(api, config).default_backoff();
    pin_mut!(stream);
    while let Some(event) = stream.next().await {
        let change = match event {
            Ok(Event::Init) => StateChange::Begin,
            Ok(Event::InitDone) => StateChange::End,
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let key = key(object.meta());
                match object.0.map(&read) {
                    Ok(Some(seen)) => StateChange::Put(seen),
                    Ok(None) => StateChange::Unreadable(key),
                    Err(error) => {
                        tracing::warn!(?kind, namespace = key.0, name = key.1, %error, "an object cannot be read; its last known state is kept");
                        StateChange::Unreadable(key)
                    }
                }
            }
            Ok(Event::Delete(object)) => StateChange::Gone(key(object.meta())),
            Err(error) => {
                match error {
                    watcher::Error::InitialListFailed(error) => {
                        tracing::warn!(?kind, %error, "a list failed and is retried; nothing is decided until it succeeds");
                    }
                    error => tracing::debug!(?kind, %error, "a watch was interrupted and is resumed"),
                }
                continue;
            }
        };
        if changes.send((kind, change)).await.is_err() {
            return;
        }
    }
}

fn key(metadata: &ObjectMeta) -> ObjectKey {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

fn cluster(object: ManagedCluster) -> Option<SeenObject> {
    Some(SeenObject::Cluster(object.metadata.name?, object.spec.hub_accepts_client))
}

fn template(object: &DynamicObject) -> Option<SeenObject> {
    let name = object.metadata.name.clone()?;
    let value = json!({"spec": object.data.get("spec").unwrap_or(&Value::Null)});
    let registrations = Registrations::read(&value);
    let hash = hash::spec_hash(&object.data);
    Some(SeenObject::Content(
        name,
        TemplateContent { addon: registrations.addon.clone(), hash, registrations: Arc::new(registrations) },
    ))
}

/// The registrations of a stored template. Other revisions are not needed.
fn revision(object: &StoredRevision) -> Option<SeenObject> {
    let (addon, hash, content) = stored_template(object)?;
    let registrations = Registrations::read(&content);
    // A template of another add-on grants nothing.
    if registrations.addon != addon {
        return None;
    }
    Some(SeenObject::Content(
        object.meta().name.clone()?,
        TemplateContent { addon, hash, registrations: Arc::new(registrations) },
    ))
}

fn owned(metadata: &ObjectMeta, is_right: impl FnOnce(&AgentKey) -> bool) -> Option<SeenObject> {
    let (cluster, addon) = metadata.annotations.as_ref()?.get(BINDING_OF)?.split_once('/')?;
    let of = AgentKey::new(cluster, addon);
    Some(SeenObject::Owned(OwnedObject {
        key: key(metadata),
        is_right: is_right(&of),
        of,
        uid: metadata.uid.clone()?,
        resource_version: metadata.resource_version.clone()?,
    }))
}
