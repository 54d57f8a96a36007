//! Reads a hub: the same snapshots that a manager there uses for its decisions. Writes nothing.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use aviary_api::ClusterManagementAddOn;
use aviary_controller::{LEASE, LookError, Scope, View, why_skipped};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use crate::commands::typed;
use crate::connect::{Connection, HubArgs, refused};
use crate::nearest::did_you_mean;
use crate::output::first_few;

/// Where a manager runs, unless it was told otherwise.
const MANAGER_NAMESPACE: &str = "open-cluster-management";

/// A lease that was renewed longer ago has no holder, whatever it says of itself; nor has one that
/// was renewed that far in the future.
const STALE: SignedDuration = SignedDuration::from_secs(60);

/// The options that select a hub and the namespace of its manager.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LiveArgs {
    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// Namespace where the manager keeps its lease and revisions
    #[arg(long, value_name = "NAMESPACE", default_value = MANAGER_NAMESPACE)]
    pub(crate) manager_namespace: String,
}

/// A hub, and a snapshot of it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) view: View,
}

/// Runs a command that communicates with a hub.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(work)
}

impl LiveArgs {
    /// The options as the user would type them again, with a leading space.
    pub(crate) fn typed(&self) -> String {
        let namespace = match self.manager_namespace.as_str() {
            MANAGER_NAMESPACE => String::new(),
            other => format!(" {}", typed("--manager-namespace", &[PathBuf::from(other)])),
        };
        format!("{namespace}{}", self.hub.typed())
    }

    /// Reads one add-on with everything related to it, or all add-ons.
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

    /// Who looks after the hub. `addon` is the one that the user asks about.
    pub(crate) async fn leader(&self, client: &Client, addon: Option<&str>, now: Timestamp) -> Leader {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &self.manager_namespace);
        match leases.get_opt(LEASE).await {
            Ok(lease) => Leader::of(lease, &self.manager_namespace, addon, now),
            Err(_) => Leader::Unknown,
        }
    }
}

/// The manager that leads on a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// The user may not read the lease.
    Unknown,
    /// Nobody leads: why.
    Nobody(String),
    Leads {
        /// Why the leader does nothing for the add-on, if it skips it.
        skips: Option<String>,
    },
}

impl Leader {
    fn of(lease: Option<Lease>, namespace: &str, addon: Option<&str>, now: Timestamp) -> Self {
        let Some(lease) = lease else {
            return Self::Nobody(format!(
                "no manager has ever run here: there is no lease {namespace}/{LEASE}; nothing moves without a manager, unless it runs with --leader-elect=false"
            ));
        };
        let skips = addon.and_then(|addon| why_skipped(&lease, addon));
        let spec = lease.spec.unwrap_or_default();
        let renewed = spec.renew_time.map(|renewed| renewed.0);
        // Twice its duration, since the clocks of hub and user may differ.
        let lasts = spec.lease_duration_seconds.filter(|seconds| *seconds > 0).map(i64::from);
        let patience =
            lasts.map_or(STALE, |seconds| SignedDuration::from_secs(seconds.saturating_mul(2)).min(STALE));
        let at = renewed.map_or_else(|| "an unknown time".to_owned(), |at| seconds(at).to_string());
        match spec.holder_identity.filter(|holder| !holder.is_empty()) {
            Some(holder) if renewed.is_none_or(|renewed| now.duration_since(renewed).abs() > patience) => {
                Self::Nobody(format!(
                    "the manager {holder} has not renewed its lease {namespace}/{LEASE} since {at}: is it running? Nothing moves without a manager"
                ))
            }
            Some(_) => Self::Leads { skips },
            None => Self::Nobody(format!(
                "no manager is the leader: the lease {namespace}/{LEASE} was released at {at}; nothing moves without a manager"
            )),
        }
    }

    /// What the user should know about it, if anything.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::Unknown | Self::Leads { skips: None } => None,
            Self::Nobody(why) => Some(why.clone()),
            Self::Leads { skips: Some(why) } => Some(format!("the leading manager skips this add-on: {why}")),
        }
    }
}

/// Truncates a time to whole seconds.
pub(crate) fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Describes why reading a hub failed, and what to do.
pub(crate) fn told(error: &LookError, connection: &Connection) -> anyhow::Error {
    refused(&error.doing, &error.source, &connection.server)
}

/// Rejects a name that no object can have, before it becomes part of a selector.
pub(crate) fn check_name(addon: &str) -> anyhow::Result<()> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    if addon.is_empty() || addon.len() > 253 || !addon.bytes().all(plain) {
        return Err(anyhow!(
            "{addon:?} is not a valid name of an add-on: use lower-case letters, digits, '-' and '.'"
        ));
    }
    Ok(())
}

/// An error for an unknown add-on, which lists the existing ones.
pub(crate) async fn unknown(addon: &str, connection: &Connection) -> anyhow::Error {
    let api: Api<ClusterManagementAddOn> = Api::all(connection.client.clone());
    let names: Vec<String> = match api.list_metadata(&ListParams::default().limit(500)).await {
        Ok(list) => list.items.iter().map(ResourceExt::name_any).collect(),
        Err(error) => {
            let doing = "list clustermanagementaddons.addon.open-cluster-management.io";
            return refused(doing, &error, &connection.server);
        }
    };
    let there = match names.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}", first_few(&names)),
    };
    let meant = did_you_mean(addon, names.iter().map(String::as_str));
    anyhow!("there is no add-on {addon} on {}: {there}{meant}", connection.server)
}
