//! The embedded hub as hub of the same members, with a manager and agents of its own.

use std::process::Command;
use std::sync::OnceLock;

use crate::lane::{Lane, NAMESPACE, lane};

static EMBEDDED: OnceLock<Lane> = OnceLock::new();

/// The first caller starts it.
pub(crate) fn embedded() -> &'static Lane {
    EMBEDDED.get_or_init(|| {
        let shared = lane();
        let data = shared.path("embedded");
        let embedded = Lane::new(shared.path(""), data.join("kubeconfig"), "embedded-");
        let mut hub = Command::new(env!("CARGO_BIN_EXE_aviary"));
        hub.args(["hub", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data);
        embedded.spawn("hub", hub);
        let kubeconfig = embedded.kubeconfig("hub");
        embedded.until("the embedded hub", || kubeconfig.exists());
        embedded.kubectl("hub", &format!("create namespace {NAMESPACE}"));
        embedded.start_programs(&shared.manager_arguments(), &kubeconfig);
        embedded
    })
}
