//! The conversion between v1alpha1 and v1beta1 of the add-on kinds, as hubs use it.
//!
//! The embedded hub gets it as a function. A real hub calls a webhook, which every manager serves;
//! the leader looks after the certificates.

mod keys;
mod review;
mod upkeep;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use aviary_api::crds::{self, ConversionService};
use aviary_controller::{Clock, ManagerHealth};
use aviary_hub::Converter;
use kube::Client;
use tokio::sync::watch;

use crate::process::listen;

/// The Service that a hub calls, and the Secret with the certificate authority.
pub(crate) const NAME: &str = "aviary-conversion";
pub(crate) const PATH: &str = "/convert";
const PORT: u16 = 443;

/// How a hub finds the managers in a namespace.
pub(crate) fn service(namespace: &str) -> ConversionService<'_> {
    ConversionService { namespace, name: NAME, port: PORT, path: PATH, ca_bundle: None }
}

/// The conversions of the embedded hub, by CRD.
pub(crate) fn converters() -> BTreeMap<String, Converter> {
    let converter = Converter::new(|object, api_version| {
        aviary_api::convert::convert(object, api_version).map_err(|error| error.to_string())
    });
    crds::CONVERTED.iter().map(|name| ((*name).to_owned(), converter.clone())).collect()
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConversionArgs {
    /// Address for the conversion between v1alpha1 and v1beta1, over TLS, for a hub whose CRDs call
    /// it; port 0 picks a free port
    #[arg(long, value_name = "ADDR")]
    conversion: Option<SocketAddr>,

    /// How long the hub trusts a new certificate authority before managers use it, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    conversion_overlap: u32,
}

/// What the webhook needs of a manager.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    pub(crate) health: watch::Receiver<ManagerHealth>,
}

impl ConversionArgs {
    /// Starts serving, until the process ends. Returns the address.
    pub(crate) async fn start(&self, around: Surroundings) -> anyhow::Result<Option<SocketAddr>> {
        let Some(address) = self.conversion else { return Ok(None) };
        let listener = listen(address, "--conversion").await?;
        let address = listener.local_addr().context("failed to read the address")?;
        let overlap = Duration::from_secs(self.conversion_overlap.into());
        tokio::spawn(upkeep::run(listener, around, overlap));
        Ok(Some(address))
    }
}
