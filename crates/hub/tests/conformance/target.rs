//! The server under test. The only code that differs between another server and the hub.

use aviary_hub::{Hub, HubOptions};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// The server under test, and what must live as long as the suite.
pub struct Target {
    pub client: Client,
}

/// The server of `AVIARY_CONFORMANCE_KUBECONFIG`; by default, our own hub.
pub async fn target() -> Target {
    match std::env::var_os("AVIARY_CONFORMANCE_KUBECONFIG") {
        Some(path) => {
            let file = Kubeconfig::read_from(&path).expect("AVIARY_CONFORMANCE_KUBECONFIG can be read");
            let options = KubeConfigOptions::default();
            let mut config =
                Config::from_custom_kubeconfig(file, &options).await.expect("the kubeconfig is whole");
            // Retrying a 504 would hide the response that a check expects.
            config.default_retry = false;
            Target { client: Client::try_from(config).expect("the kubeconfig makes a client") }
        }
        None => own_hub().await,
    }
}

async fn own_hub() -> Target {
    let hub = Hub::ephemeral(HubOptions::default()).await.expect("a hub starts");
    // An in-process client does not retry, and keeps the hub alive.
    Target { client: hub.client() }
}
