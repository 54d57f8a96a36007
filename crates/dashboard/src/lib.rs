//! The web page: shows a rollout over thousands of clusters, live.
//!
//! Owns the routes, the events that are pushed, and the static page, which is part of the binary.
//! It has no rights of its own: it uses those of the given kubeconfig, or those of the user who
//! sends a request. The engine computes what is shown, as for every other command. Everything that
//! comes from a cluster is sent as JSON data and nothing else.

mod access;
mod action;
mod actor;
mod cluster;
mod columns;
mod detail;
mod events;
mod guard;
mod labels;
mod list;
mod messages;
mod page;
mod refusal;
mod revisions;
mod routes;
mod serve;
mod stream;
mod summary;
mod timeline;
mod topic;
mod watcher;

use std::sync::Arc;

use aviary_controller::Clock;
use axum::Router;
use tokio::sync::watch;

pub use access::{Connect, RightsMode, SessionToken, SessionTokenError};
pub use action::{Action, ActionResult, ActionVerb, Operate};
pub use guard::HostCheck;
pub use page::page;
pub use refusal::ErrorResponse;
pub use serve::serve;

use access::Doorkeeper;

/// The settings of a dashboard.
#[derive(Clone)]
pub struct DashboardSettings {
    /// The version of the program, for display.
    pub version: String,
    /// The address of the hub, for display.
    pub server: String,
    /// The namespace where the hub's manager keeps revisions.
    pub namespace: String,
    pub access: RightsMode,
    /// The host names of the dashboard.
    pub hosts: HostCheck,
    /// Served over TLS.
    pub secure: bool,
    /// Executes actions; without it there are none.
    pub operate: Option<Arc<dyn Operate>>,
    pub clock: Clock,
}

impl std::fmt::Debug for DashboardSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A dashboard. Clones share the same state.
#[derive(Clone)]
pub struct Dashboard {
    shared: Arc<ServerState>,
}

impl std::fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dashboard").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

/// What all requests share.
pub(crate) struct ServerState {
    pub(crate) settings: DashboardSettings,
    pub(crate) doorkeeper: Doorkeeper,
    /// Set while closing, because streams do not end by themselves.
    pub(crate) closing: watch::Sender<bool>,
    /// Set when somebody has opened the page.
    pub(crate) visited: watch::Sender<bool>,
}

impl Dashboard {
    pub fn new(settings: DashboardSettings) -> Self {
        let doorkeeper = Doorkeeper::new(&settings);
        let (closing, visited) = (watch::Sender::new(false), watch::Sender::new(false));
        Self { shared: Arc::new(ServerState { settings, doorkeeper, closing, visited }) }
    }

    /// Reads the hub for the first time, if that needs no user's token. Fails if the hub cannot be
    /// read.
    pub async fn open(&self) -> Result<(), aviary_controller::LookError> {
        self.shared.doorkeeper.open().await
    }

    pub fn router(&self) -> Router {
        routes::router(&self.shared)
    }

    /// Waits until somebody has opened the page.
    pub async fn visited(&self) {
        // The channel cannot close: this holds its sender.
        let _ = self.shared.visited.subscribe().wait_for(|visited| *visited).await;
    }

    /// Ends all streams. Pages reconnect when the dashboard is available again.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }
}
