//! Which server the suite talks to. The only place that may differ between a foreign server and the hub.

use aviary_hub::{Hub, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// The server under test, and what must live as long as the suite.
pub struct Target {
    pub client: Client,
}

/// The server of `AVIARY_CONFORMANCE_KUBECONFIG`; without it, a hub of our own.
pub async fn target() -> Target {
    match std::env::var_os("AVIARY_CONFORMANCE_KUBECONFIG") {
        Some(path) => {
            let file = Kubeconfig::read_from(&path).expect("AVIARY_CONFORMANCE_KUBECONFIG can be read");
            let options = KubeConfigOptions::default();
            let mut config =
                Config::from_custom_kubeconfig(file, &options).await.expect("the kubeconfig is whole");
            // A retried 504 would hide the answer that a check wants to see.
            config.default_retry = false;
            Target { client: Client::try_from(config).expect("the kubeconfig makes a client") }
        }
        None => own_hub().await,
    }
}

async fn own_hub() -> Target {
    let hub = Hub::ephemeral(Options::default()).await.expect("a hub starts");
    // A client in process retries nothing, and holds the hub.
    Target { client: hub.client() }
}
