//! Serves the webhook with the authority in the Secret. The leader keeps the Secret, and what the
//! hub trusts, up to date.
//!
//! Every step is conditional on what was read, and the next one starts from what is stored: a
//! manager may end after any of them.

use std::sync::Arc;
use std::time::Duration;

use aviary_api::crds::CONVERTED;
use aviary_serve::{
    AllowedHosts, Authority, Limits, ServerCertificate, host_allowed, keep_renewed, serve_tls,
};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::{Instant, interval};

use super::keys::Keys;
use super::{NAME, Surroundings, review};

/// On the Secret: a new value requests a new certificate authority.
const ROTATE: &str = "conversion.addon.open-cluster-management.io/rotate";
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

type UpkeepError = Box<dyn std::error::Error + Send + Sync>;

struct Upkeep {
    around: Surroundings,
    overlap: Duration,
    hosts: AllowedHosts,
    served: Option<ServedCertificate>,
    /// Since when this manager knows that the hub trusts these certificates.
    trusted: Option<(String, Instant)>,
}

struct ServedCertificate {
    certificate: Arc<ServerCertificate>,
    /// The authority that it is from.
    pem: String,
}

pub(super) async fn run(listener: TcpListener, around: Surroundings, overlap: Duration) {
    let host = format!("{NAME}.{}.svc", around.namespace);
    let hosts = match AllowedHosts::new([&host]) {
        Ok(hosts) => hosts,
        Err(error) => return tracing::error!(%error, "conversions are not served"),
    };
    let mut upkeep = Upkeep { around, overlap, hosts, served: None, trusted: None };
    let mut ticks = interval(LONGEST_PAUSE.min(overlap / 3));
    let mut listener = Some(listener);
    loop {
        ticks.tick().await;
        if let Err(error) = upkeep.tick().await {
            tracing::warn!(error, "failed to look after the certificates of the conversion");
        }
        if let Some(served) = &upkeep.served
            && let Some(listener) = listener.take()
        {
            upkeep.serve(served, listener);
        }
    }
}

impl Upkeep {
    fn serve(&self, served: &ServedCertificate, listener: TcpListener) {
        let (certificate, clock) = (Arc::clone(&served.certificate), Arc::clone(&self.around.clock));
        tokio::spawn(async move {
            let tls = match certificate.tls() {
                Ok(tls) => tls,
                Err(error) => return tracing::error!(%error, "conversions are not served"),
            };
            let limits = Limits { connections: 256, ..Limits::default() };
            tokio::select! {
                ended = serve_tls(listener, tls, review::routes(), limits, std::future::pending()) => {
                    tracing::error!(?ended, "conversions are no longer served");
                }
                () = keep_renewed(certificate, move || clock()) => {}
            }
        });
    }

    async fn tick(&mut self) -> Result<(), String> {
        let secrets: Api<Secret> = Api::namespaced(self.around.client.clone(), &self.around.namespace);
        let secret =
            secrets.get(NAME).await.map_err(|error| format!("failed to read the Secret {NAME}: {error}"))?;
        let mut keys = Keys::read(secret.data.as_ref());
        if self.around.health.borrow().leading {
            keys = self.lead(&secrets, secret, keys).await.map_err(|error| error.to_string())?;
        }
        self.follow(&keys).map_err(|error| error.to_string())
    }

    /// Advances the Secret, and lets the hub trust what it holds.
    async fn lead(
        &mut self,
        secrets: &Api<Secret>,
        mut secret: Secret,
        keys: Keys,
    ) -> Result<Keys, UpkeepError> {
        let is_trusted = self.is_trusted(&keys.bundle());
        let asked = secret.metadata.annotations.as_ref().and_then(|all| all.get(ROTATE));
        let asked = asked.cloned().unwrap_or_default();
        let keys = match keys.advanced((self.around.clock)(), &asked, is_trusted)? {
            Some(advanced) => {
                secret.data = Some(advanced.data());
                // The resource version in it is a condition: another leader may have been faster.
                secrets.replace(NAME, &PostParams::default(), &secret).await?;
                tracing::info!("changed the certificate authority of the conversion");
                advanced
            }
            None => keys,
        };
        self.publish(&keys.bundle()).await?;
        Ok(keys)
    }

    fn is_trusted(&self, bundle: &str) -> bool {
        let trusted = self.trusted.as_ref().filter(|(known, _)| known == bundle);
        trusted.is_some_and(|(_, since)| since.elapsed() >= self.overlap)
    }

    /// Writes the bundle into the CRDs that call this webhook. On a hub of Open Cluster Management
    /// they call another one.
    async fn publish(&mut self, bundle: &str) -> Result<(), UpkeepError> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.around.client.clone());
        for name in CONVERTED {
            let crd = crds.get(name).await?;
            let webhook = crd.spec.conversion.and_then(|conversion| conversion.webhook);
            let Some(config) = webhook.and_then(|webhook| webhook.client_config) else { continue };
            if !is_ours(&config, &self.around.namespace, &self.hosts) {
                tracing::debug!(crd = name, "the kind is converted by another webhook");
                continue;
            }
            if config.ca_bundle.is_some_and(|known| known.0 == bundle.as_bytes()) {
                continue;
            }
            let bundle = ByteString(bundle.as_bytes().to_vec());
            let patch = json!({
                "metadata": {"resourceVersion": crd.metadata.resource_version},
                "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}},
            });
            crds.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            tracing::info!(crd = name, "the hub trusts the certificates of the conversion");
        }
        if self.trusted.as_ref().is_none_or(|(known, _)| known != bundle) {
            self.trusted = Some((bundle.to_owned(), Instant::now()));
        }
        Ok(())
    }

    /// Uses the authority in the Secret.
    fn follow(&mut self, keys: &Keys) -> Result<(), UpkeepError> {
        let now = (self.around.clock)();
        let Some(pair) = &keys.current else { return Ok(()) };
        if self.served.as_ref().is_some_and(|served| served.pem == pair.certificate) {
            return Ok(());
        }
        let authority: Arc<Authority> = match keys.authority(now) {
            Some(authority) => Arc::new(authority?),
            None => return Ok(()),
        };
        match &mut self.served {
            Some(served) => {
                served.certificate.follow(authority, now)?;
                served.pem.clone_from(&pair.certificate);
            }
            None => {
                let certificate = ServerCertificate::issue(authority, &self.hosts, now)?;
                self.served = Some(ServedCertificate { certificate, pem: pair.certificate.clone() });
            }
        }
        Ok(())
    }
}

/// Whether a hub that calls this reaches the managers of this namespace.
fn is_ours(config: &WebhookClientConfig, namespace: &str, hosts: &AllowedHosts) -> bool {
    match (&config.service, &config.url) {
        (Some(service), _) => service.name == NAME && service.namespace == namespace,
        (None, Some(url)) => {
            let authority = url.strip_prefix("https://").and_then(|rest| rest.split('/').next());
            authority.is_some_and(|host| host_allowed(host, hosts))
        }
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_webhooks_of_these_managers_get_their_authority() {
        let hosts = AllowedHosts::new(["aviary-conversion.ours.svc"]).unwrap();
        let ours =
            |config: serde_json::Value| is_ours(&serde_json::from_value(config).unwrap(), "ours", &hosts);
        let service =
            |namespace: &str, name: &str| json!({"service": {"namespace": namespace, "name": name}});
        assert!(ours(service("ours", "aviary-conversion")));
        assert!(!ours(service("theirs", "aviary-conversion")));
        assert!(!ours(service("open-cluster-management-hub", "cluster-manager-addon-webhook")));
        for url in ["https://127.0.0.1:9443/convert", "https://aviary-conversion.ours.svc/convert"] {
            assert!(ours(json!({"url": url})), "{url}");
        }
        for url in
            ["https://aviary-conversion.ours.svc.example.com/convert", "https://webhook.example.com", ""]
        {
            assert!(!ours(json!({"url": url})), "{url}");
        }
        assert!(!ours(json!({})));
    }
}
