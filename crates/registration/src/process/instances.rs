//! Writes what one instance needs: role bindings, the objects of the token driver, its status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aviary_api::ManagedClusterAddOn;
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role as RoleObject, RoleBinding};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::grants::{self, Binding, BindingWrite, ObjectKey, WantedGrants, binding_writes};
use crate::instance::AgentInstance;
use crate::names::{AgentKey, BINDING_OF};
use crate::state::{OwnedObject, RegistrationState, Want, WatchedKind};
use crate::status::{self, Applied};
use crate::template::{GrantedRole, RoleKind};

/// How long the hub's answer about a role is used.
const ANSWER_LASTS: Duration = Duration::from_secs(30);
/// The most answers that are kept.
const MOST_ANSWERS: usize = 1024;

/// What to do for one instance: a snapshot of the state.
#[derive(Debug)]
pub(super) struct InstanceJob {
    key: AgentKey,
    instance: Option<AgentInstance>,
    wanted: Option<WantedGrants>,
    writes: Vec<BindingWrite>,
    account: Owned,
    role: Owned,
}

/// An object of the token driver, and whether it is wanted.
#[derive(Debug)]
struct Owned {
    there: Option<OwnedObject>,
    is_wanted: bool,
}

impl InstanceJob {
    pub(super) fn new(state: &RegistrationState, key: &AgentKey, want: Want) -> Option<Self> {
        let instance = state.instance(key).cloned();
        let wanted = match want {
            Want::NotOurs => return None,
            Want::Nothing | Want::Unknown => None,
            Want::Known(wanted) => Some(*wanted),
        };
        let bindings = wanted.as_ref().map_or(&[][..], |wanted| &wanted.bindings);
        let there = state.bindings(key, bindings);
        // An unknown template keeps what is there.
        let keeps = instance.is_some() && wanted.is_none();
        let writes = if keeps { Vec::new() } else { binding_writes(key, bindings, &there) };
        let is_wanted = wanted.as_ref().is_some_and(|wanted| wanted.account);
        let owned = |kind, name: String| {
            let there =
                state.owned(kind, &(key.cluster.clone(), name)).filter(|one| one.of == *key && !keeps);
            Owned { there: there.cloned(), is_wanted }
        };
        let account = owned(WatchedKind::Account, key.account());
        let role = owned(WatchedKind::TokenRole, grants::token_role(key));
        Some(Self { key: key.clone(), instance, wanted, writes, account, role })
    }
}

/// Executes a job. Returns whether something failed and is to be retried.
pub(super) async fn execute_instance(
    client: Client,
    job: InstanceJob,
    bindable: Bindable,
    now: Timestamp,
) -> bool {
    let mut applied =
        Applied { account: job.account.there.as_ref().map(|one| one.uid.clone()), ..Applied::default() };
    let mut conflicts = 0;
    let mut note = |what: &str, result: Result<(), GrantError>| match result {
        Ok(()) => {}
        Err(GrantError::Conflict) => conflicts += 1,
        Err(GrantError::Failed(why)) => {
            tracing::warn!(agent = %job.key, what, error = why, "a write for an instance failed");
            applied.failures.push(why);
        }
    };
    for (what, result) in write_owned(&client, &job).await {
        note(what, result);
    }
    for write in &job.writes {
        note("role binding", write_binding(&client, &job.key, write, &bindable).await);
    }
    let Some(instance) = &job.instance else { return conflicts > 0 || !applied.failures.is_empty() };
    let patch = match &job.wanted {
        Some(wanted) => status::patch(instance, wanted, &applied, now),
        None => status::patch_unknown(instance, now),
    };
    let failed = conflicts > 0 || !applied.failures.is_empty();
    // After a conflict, the next pass knows more.
    let Some(patch) = patch.filter(|_| conflicts == 0) else { return failed };
    match write_status(client, instance, patch).await {
        Ok(()) => failed,
        Err(GrantError::Conflict) => true,
        Err(GrantError::Failed(error)) => {
            tracing::warn!(agent = %job.key, error, "the status of an instance could not be written");
            true
        }
    }
}

enum GrantError {
    /// Something changed meanwhile.
    Conflict,
    Failed(String),
}

impl GrantError {
    fn of(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(said) if matches!(said.code, 404 | 409) => Self::Conflict,
            kube::Error::Api(said) => Self::Failed(said.message),
            error => Self::Failed(error.to_string()),
        }
    }
}

async fn write_status(client: Client, instance: &AgentInstance, patch: Value) -> Result<(), GrantError> {
    let api: Api<ManagedClusterAddOn> = Api::namespaced(client, &instance.key.cluster);
    let Ok(patch) = serde_json::from_value(patch) else {
        return Err(GrantError::Failed("an invalid patch".into()));
    };
    let patch = Patch::Json::<()>(patch);
    match api.patch_status(&instance.key.addon, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        // A failed test: somebody else wrote first, and the watch will tell. The message of a test
        // is general; that of an invalid value names it.
        Err(kube::Error::Api(said)) if said.code == 422 && !said.message.contains("is invalid") => {
            Err(GrantError::Conflict)
        }
        Err(error) => Err(GrantError::of(error)),
    }
}

async fn write_binding(
    client: &Client,
    of: &AgentKey,
    write: &BindingWrite,
    bindable: &Bindable,
) -> Result<(), GrantError> {
    match write {
        BindingWrite::Delete { key, uid } => delete::<RoleBinding>(client, key, uid).await,
        BindingWrite::Create(binding) => {
            bindable.check(binding).await?;
            create::<RoleBinding>(client, &binding.namespace, binding.object(of)).await
        }
        BindingWrite::Replace { binding, uid, resource_version } => {
            bindable.check(binding).await?;
            replace::<RoleBinding>(client, &binding.key(), binding.object(of), uid, resource_version).await
        }
        BindingWrite::Taken(binding) => Err(GrantError::Failed(format!(
            "the RoleBinding {}/{} belongs to somebody else",
            binding.namespace, binding.name
        ))),
    }
}

/// The objects of the token driver.
async fn write_owned(client: &Client, job: &InstanceJob) -> Vec<(&'static str, Result<(), GrantError>)> {
    let mut results = Vec::new();
    match (&job.account, &job.instance) {
        (Owned { there: None, is_wanted: true }, Some(instance)) => {
            let made = create::<ServiceAccount>(client, &job.key.cluster, grants::account(instance)).await;
            // Its uid is needed for the status: the watch will tell.
            results.push(("service account", made.and(Err(GrantError::Conflict))));
        }
        (Owned { there: Some(there), is_wanted: false }, _) => {
            results.push(("service account", delete::<ServiceAccount>(client, &there.key, &there.uid).await));
        }
        _ => {}
    }
    match (&job.role, &job.instance) {
        (Owned { there: None, is_wanted: true }, Some(instance)) => {
            let role = grants::token_role_object(instance);
            results.push(("role", create::<RoleObject>(client, &job.key.cluster, role).await));
        }
        (Owned { there: Some(there), is_wanted: true }, Some(instance)) if !there.is_right => {
            let role = grants::token_role_object(instance);
            results.push((
                "role",
                replace::<RoleObject>(client, &there.key, role, &there.uid, &there.resource_version).await,
            ));
        }
        (Owned { there: Some(there), is_wanted: false }, _) => {
            results.push(("role", delete::<RoleObject>(client, &there.key, &there.uid).await));
        }
        _ => {}
    }
    results
}

async fn create<K>(client: &Client, namespace: &str, object: Value) -> Result<(), GrantError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + serde::Serialize
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let object = serde_json::from_value(object).map_err(|error| GrantError::Failed(error.to_string()))?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        // A namespace that does not exist is a mistake in the template, not a race.
        Err(kube::Error::Api(said)) if said.code == 404 => Err(GrantError::Failed(said.message)),
        Err(kube::Error::Api(said)) if said.code == 409 => {
            let there = api.get(&object.name_any()).await.map_err(GrantError::of)?;
            // Ours, and the watch is late; or somebody else's, which the watch does not select.
            let is_ours = there.annotations().get(BINDING_OF) == object.annotations().get(BINDING_OF);
            let what = format!("{} {namespace}/{}", K::kind(&()), there.name_any());
            Err(if is_ours {
                GrantError::Conflict
            } else {
                GrantError::Failed(format!("the {what} belongs to somebody else"))
            })
        }
        Err(error) => Err(GrantError::of(error)),
    }
}

async fn replace<K>(
    client: &Client,
    key: &ObjectKey,
    object: Value,
    uid: &str,
    version: &str,
) -> Result<(), GrantError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + serde::Serialize
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), &key.0);
    let mut object = object;
    object["metadata"]["uid"] = uid.into();
    object["metadata"]["resourceVersion"] = version.into();
    let object = serde_json::from_value(object).map_err(|error| GrantError::Failed(error.to_string()))?;
    api.replace(&key.1, &PostParams::default(), &object).await.map(drop).map_err(GrantError::of)
}

async fn delete<K>(client: &Client, key: &ObjectKey, uid: &str) -> Result<(), GrantError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), &key.0);
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&key.1, &params).await {
        Ok(_) => Ok(()),
        // It is gone, or another one has its name.
        Err(kube::Error::Api(said)) if matches!(said.code, 404 | 409) => Ok(()),
        Err(error) => Err(GrantError::of(error)),
    }
}

/// By namespace and role: the answer, and when it was given.
type BindableRoles = BTreeMap<(Option<String>, GrantedRole), (bool, Instant)>;

/// Which roles the administrator lets this process bind: the hub knows, by the verb `bind`.
///
/// The API server would also allow a role whose rights this process has itself. Templates must not
/// reach for those, so every role is asked for by name.
#[derive(Clone)]
pub(super) struct Bindable {
    client: Client,
    answers: Arc<Mutex<BindableRoles>>,
}

impl Bindable {
    pub(super) fn new(client: Client) -> Self {
        Self { client, answers: Arc::default() }
    }

    async fn check(&self, binding: &Binding) -> Result<(), GrantError> {
        if !binding.is_requested || self.may(binding).await.map_err(GrantError::of)? {
            return Ok(());
        }
        let GrantedRole { kind, name } = &binding.role;
        let kind = kind.name();
        Err(GrantError::Failed(format!(
            "the administrator has not allowed to bind the {kind} {name} (verb bind)"
        )))
    }

    async fn may(&self, binding: &Binding) -> Result<bool, kube::Error> {
        let role = binding.role.clone();
        let namespace = (role.kind == RoleKind::Role).then(|| binding.namespace.clone());
        let key = (namespace.clone(), role.clone());
        let mut answers = self.answers.lock().await;
        if let Some((may, at)) = answers.get(&key)
            && at.elapsed() < ANSWER_LASTS
        {
            return Ok(*may);
        }
        let asked = ResourceAttributes {
            group: Some("rbac.authorization.k8s.io".into()),
            resource: Some(role.kind.resource().into()),
            name: Some(role.name.clone()),
            namespace,
            verb: Some("bind".into()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(asked), ..Default::default() },
            ..Default::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?.status;
        let may = answer.is_some_and(|status| status.allowed);
        if answers.len() >= MOST_ANSWERS {
            answers.clear();
        }
        answers.insert(key, (may, Instant::now()));
        Ok(may)
    }
}
