//! The web page: a rollout over thousands of clusters at a glance, live.
//!
//! Owns the routes, the events that are pushed, and the static page, which is in the binary. It has no rights of its own: it looks at a hub with
//! the rights of the kubeconfig it was given, or with those of whoever asks. What it tells is worked out by the engine, as for every other
//! command. Whatever comes from a cluster leaves here as JSON data and nothing else.

mod access;
mod action;
mod cluster;
mod columns;
mod detail;
mod events;
mod guard;
mod list;
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

pub use access::{Access, Connect, SessionToken, TokenError};
pub use action::{Action, Answer, Operate, Verb};
pub use guard::HostCheck;
pub use page::page;
pub use refusal::Refusal;
pub use serve::serve;

use access::Doorkeeper;

/// How a dashboard is served.
#[derive(Clone)]
pub struct Settings {
    /// Of the program, for people.
    pub version: String,
    /// The address of the hub, for people.
    pub server: String,
    /// Where the hub's manager keeps revisions.
    pub namespace: String,
    pub access: Access,
    /// By which names it may be called.
    pub hosts: HostCheck,
    /// It is served over TLS.
    pub secure: bool,
    /// Carries actions out; without it there are none.
    pub operate: Option<Arc<dyn Operate>>,
    pub clock: Clock,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A dashboard. Clones are the same one.
#[derive(Clone)]
pub struct Dashboard {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dashboard").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) doorkeeper: Doorkeeper,
    /// Whether it is closing: streams do not end by themselves.
    pub(crate) closing: watch::Sender<bool>,
}

impl Dashboard {
    pub fn new(settings: Settings) -> Self {
        let doorkeeper = Doorkeeper::new(&settings);
        Self { shared: Arc::new(Shared { settings, doorkeeper, closing: watch::Sender::new(false) }) }
    }

    /// Looks at the hub for the first time, where that needs nobody's token. Fails if it cannot be read.
    pub async fn open(&self) -> Result<(), aviary_controller::LookError> {
        self.shared.doorkeeper.open().await
    }

    /// Everything that is served.
    pub fn router(&self) -> Router {
        routes::router(&self.shared)
    }

    /// Ends all streams: those who watch come back when it is there again.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }
}
