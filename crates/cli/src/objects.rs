//! Reads objects of any kind from a hub, complete and as stored, with all fields.

use anyhow::anyhow;
use aviary_engine::configs::{ConfigRef, GroupResource};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::discovery::{self, Scope, verbs};
use serde_json::Value;

use crate::connect::{Connection, refused};

#[derive(Clone, Debug)]
pub(crate) struct ServedResource {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
}

impl ServedResource {
    pub(crate) fn api(&self, connection: &Connection, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => Api::namespaced_with(connection.client.clone(), namespace, &self.resource),
            None => Api::all_with(connection.client.clone(), &self.resource),
        }
    }
}

/// Finds a kind by its resource or by its name. Returns `None` if the hub does not serve it.
pub(crate) async fn find(
    connection: &Connection,
    group: &str,
    wanted: impl Fn(&ApiResource) -> bool,
) -> anyhow::Result<Option<ServedResource>> {
    let asked = if group.is_empty() { discovery::ApiGroup::CORE_GROUP } else { group };
    let found = match discovery::group(&connection.client, asked).await {
        Ok(found) => found,
        Err(kube::Error::Discovery(_)) => return Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(error) => {
            return Err(refused(&format!("list what {asked} serves"), &error, &connection.server));
        }
    };
    let all = found.recommended_resources().into_iter().chain(found.resources_by_stability());
    let served = all
        .into_iter()
        .find(|(resource, capabilities)| wanted(resource) && capabilities.supports_operation(verbs::GET));
    Ok(served.map(|(resource, capabilities)| ServedResource {
        resource,
        namespaced: capabilities.scope == Scope::Namespaced,
    }))
}

pub(crate) async fn find_kind(
    connection: &Connection,
    kind: &GroupResource,
) -> anyhow::Result<ServedResource> {
    let found = find(connection, &kind.group, |resource| *resource.plural == *kind.resource).await?;
    found.ok_or_else(|| anyhow!("{} does not serve {kind}", connection.server))
}

/// Reads a config from the hub.
pub(crate) async fn get(
    connection: &Connection,
    config: &ConfigRef,
) -> anyhow::Result<(ServedResource, Option<Value>)> {
    let served = find_kind(connection, &config.kind).await?;
    let api = served.api(connection, config.namespace.as_deref());
    let object = api
        .get_opt(&config.name)
        .await
        .map_err(|error| refused(&format!("read {config}"), &error, &connection.server))?;
    let value = object.map(serde_json::to_value).transpose()?;
    Ok((served, value))
}
