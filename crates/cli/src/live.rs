//! A hub read for people: the same snapshots that a manager there decides on. Nothing is written.

use anyhow::{Context as _, anyhow};
use aviary_api::ClusterManagementAddOn;
use aviary_controller::{LookError, Scope, View};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use crate::connect::{Connection, HubArgs, refused};

/// The lease that managers share.
const LEASE: &str = "aviary-manager";
/// A lease that was not renewed for so long has no holder.
const STALE: SignedDuration = SignedDuration::from_secs(60);

/// Which hub, and where its manager keeps what it remembers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LiveArgs {
    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// Namespace in which the manager keeps its lease and revisions
    #[arg(long, value_name = "NAMESPACE", default_value = "open-cluster-management")]
    pub(crate) manager_namespace: String,
}

/// A hub, and what was seen of it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) view: View,
}

/// Runs a command that talks to a hub.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(work)
}

impl LiveArgs {
    /// Reads an add-on and all that bears on it, or all add-ons.
    pub(crate) async fn read(&self, addon: Option<&str>) -> anyhow::Result<Live> {
        let connection = self.hub.connect().await?;
        if let Some(addon) = addon {
            check_name(addon)?;
        }
        let view = self.read_from(&connection, addon).await?;
        if let Some(addon) = addon
            && view.addons().is_empty()
        {
            return Err(unknown(addon, &connection).await);
        }
        Ok(Live { connection, view })
    }

    pub(crate) async fn read_from(
        &self,
        connection: &Connection,
        addon: Option<&str>,
    ) -> anyhow::Result<View> {
        let scope = Scope { namespace: self.manager_namespace.clone(), addon: addon.map(str::to_owned) };
        View::read(&connection.client, scope).await.map_err(|error| told(&error, connection))
    }

    /// What is odd about the manager of the hub, if anything. Who may not look at its lease is told nothing.
    pub(crate) async fn manager_note(&self, client: &Client, now: Timestamp) -> Option<String> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &self.manager_namespace);
        let namespace = &self.manager_namespace;
        let Some(lease) = leases.get_opt(LEASE).await.ok()? else {
            return Some(format!(
                "no manager has ever led here: there is no lease {namespace}/{LEASE}; without one nothing moves, unless it runs with --leader-elect=false"
            ));
        };
        let spec = lease.spec.unwrap_or_default();
        let renewed = spec.renew_time?.0;
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        match holder {
            Some(holder) if now.duration_since(renewed) > STALE => Some(format!(
                "the manager {holder} has not renewed its lease {namespace}/{LEASE} since {}: is it running? Without one nothing moves",
                seconds(renewed)
            )),
            Some(_) => None,
            None => Some(format!(
                "no manager leads: the lease {namespace}/{LEASE} was given up at {}; without one nothing moves",
                seconds(renewed)
            )),
        }
    }
}

/// A time in whole seconds.
pub(crate) fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Why a look failed, and what to do.
pub(crate) fn told(error: &LookError, connection: &Connection) -> anyhow::Error {
    refused(&error.doing, &error.source, &connection.server)
}

/// A name that no object can have must not become part of a selector.
pub(crate) fn check_name(addon: &str) -> anyhow::Result<()> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    if addon.is_empty() || addon.len() > 253 || !addon.bytes().all(plain) {
        return Err(anyhow!(
            "{addon:?} is no name of an add-on: those have lower-case letters, digits, '-' and '.'"
        ));
    }
    Ok(())
}

/// There is no such add-on; those that there are.
pub(crate) async fn unknown(addon: &str, connection: &Connection) -> anyhow::Error {
    let api: Api<ClusterManagementAddOn> = Api::all(connection.client.clone());
    let names: Vec<String> = match api.list_metadata(&ListParams::default().limit(20)).await {
        Ok(list) => list.items.iter().map(ResourceExt::name_any).collect(),
        Err(error) => {
            let doing = "list clustermanagementaddons.addon.open-cluster-management.io";
            return refused(doing, &error, &connection.server);
        }
    };
    let there =
        if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    anyhow!("there is no add-on {addon} on {}: {there}", connection.server)
}
