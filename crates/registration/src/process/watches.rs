//! One stream per kind, read into plain facts.

use std::fmt::Debug;

use aviary_api::names::labels;
use aviary_api::{Guarded, ManagedCluster, ManagedClusterAddOn};
use aviary_controller::stored_template;
use aviary_engine::hash;
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::ControllerRevision;
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
use crate::instance::Instance;
use crate::names::{AgentKey, BINDING_OF, TEMPLATE_LABEL, TOKEN_LABEL};
use crate::request::Request;
use crate::state::{Change, Content, Kind, OwnedObject, Seen};
use crate::template::Registrations;

type Changes = mpsc::Sender<(Kind, Change)>;

/// Follows a kind until nobody receives changes any more.
pub(super) async fn follow(client: Client, namespace: String, kind: Kind, changes: Changes) {
    let all = watcher::Config::default();
    match kind {
        Kind::Cluster => {
            stream(Api::<Guarded<ManagedCluster>>::all(client), all, kind, changes, cluster).await;
        }
        Kind::Instance => {
            let read = |object: ManagedClusterAddOn| {
                Instance::read(&object).map(|read| Seen::Instance(Box::new(read)))
            };
            stream(Api::<Guarded<ManagedClusterAddOn>>::all(client), all, kind, changes, read).await;
        }
        Kind::Template => {
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
        Kind::Revision => {
            let api: Api<Guarded<ControllerRevision>> = Api::namespaced(client, &namespace);
            stream(api, all.labels(labels::ADDON_NAME), kind, changes, revision).await;
        }
        Kind::Binding => {
            let read =
                |object: RoleBinding| SeenBinding::read(object).map(|read| Seen::Binding(Box::new(read)));
            let api: Api<Guarded<RoleBinding>> = Api::all(client);
            stream(api, all.labels(TEMPLATE_LABEL), kind, changes, read).await;
        }
        Kind::Request => {
            let read = |object| Request::read(object).map(|read| Seen::Request(Box::new(read)));
            let api: Api<Guarded<CertificateSigningRequest>> = Api::all(client);
            stream(api, all.labels(labels::ADDON_NAME), kind, changes, read).await;
        }
        Kind::Account => {
            let api: Api<Guarded<ServiceAccount>> = Api::all(client);
            stream(api, all.labels(TOKEN_LABEL), kind, changes, |object| owned(&object.metadata, |_| true))
                .await;
        }
        Kind::TokenRole => {
            let api: Api<Guarded<Role>> = Api::all(client);
            let is_right = |role: Role| owned(&role.metadata, |of| json!(role.rules) == token_rules(of));
            stream(api, all.labels(TOKEN_LABEL), kind, changes, is_right).await;
        }
    }
}

async fn stream<K>(
    api: Api<Guarded<K>>,
    config: watcher::Config,
    kind: Kind,
    changes: Changes,
    read: impl Fn(K) -> Option<Seen>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let stream = watcher(api, config).default_backoff();
    pin_mut!(stream);
    while let Some(event) = stream.next().await {
        let change = match event {
            Ok(Event::Init) => Change::Begin,
            Ok(Event::InitDone) => Change::End,
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let key = key(object.meta());
                match object.0.map(&read) {
                    Ok(Some(seen)) => Change::Put(seen),
                    Ok(None) => Change::Unreadable(key),
                    Err(error) => {
                        tracing::warn!(?kind, namespace = key.0, name = key.1, %error, "an object cannot be read; its last known state is kept");
                        Change::Unreadable(key)
                    }
                }
            }
            Ok(Event::Delete(object)) => Change::Gone(key(object.meta())),
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

fn cluster(object: ManagedCluster) -> Option<Seen> {
    Some(Seen::Cluster(object.metadata.name?, object.spec.hub_accepts_client))
}

fn template(object: &DynamicObject) -> Option<Seen> {
    let name = object.metadata.name.clone()?;
    let value = json!({"spec": object.data.get("spec").unwrap_or(&Value::Null)});
    let registrations = Registrations::read(&value);
    let hash = hash::spec_hash(&object.data);
    Some(Seen::Content(
        name,
        Content { addon: registrations.addon.clone(), hash, registrations: Arc::new(registrations) },
    ))
}

/// The registrations of a stored template. Other revisions are not needed.
fn revision(object: ControllerRevision) -> Option<Seen> {
    let (addon, hash, content) = stored_template(&object)?;
    let registrations = Registrations::read(&content);
    // A template of another add-on grants nothing.
    if registrations.addon != addon {
        return None;
    }
    Some(Seen::Content(
        object.metadata.name?,
        Content { addon, hash, registrations: Arc::new(registrations) },
    ))
}

fn owned(metadata: &ObjectMeta, is_right: impl FnOnce(&AgentKey) -> bool) -> Option<Seen> {
    let (cluster, addon) = metadata.annotations.as_ref()?.get(BINDING_OF)?.split_once('/')?;
    let of = AgentKey::new(cluster, addon);
    Some(Seen::Owned(OwnedObject {
        key: key(metadata),
        is_right: is_right(&of),
        of,
        uid: metadata.uid.clone()?,
        resource_version: metadata.resource_version.clone()?,
    }))
}
