//! Reaching a hub: which one, with whose rights, and what to do where it cannot be reached.
//!
//! Owns the options that name a hub and the words for every way in which a request to one can fail. Must not read or write objects.

use std::error::Error as _;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::slice;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aviary_api::names::{ADDON_GROUP, CLUSTER_GROUP, WORK_GROUP};
use aviary_controller::{CountRequests, Metrics};
use kube::client::ClientBuilder;
use kube::config::{AuthInfo, InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::commands::typed;

/// A hub that does not answer for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which hub.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HubArgs {
    /// Kubeconfig of the hub [default: KUBECONFIG, the one in the home directory, or that of the pod]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// A hub that can be asked.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// Its address.
    pub(crate) server: String,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

impl HubArgs {
    /// Whether a hub was named.
    pub(crate) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// The options as they would be typed again, with a space before them.
    pub(crate) fn typed(&self) -> String {
        let mut text = String::new();
        if let Some(file) = &self.kubeconfig {
            text.push(' ');
            text.push_str(&typed("--kubeconfig", slice::from_ref(file)));
        }
        if let Some(context) = &self.context {
            text.push(' ');
            text.push_str(&typed("--context", &[PathBuf::from(context)]));
        }
        text
    }

    /// A client of the hub. Nothing is asked of it yet.
    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(PATIENCE);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client =
            Client::try_from(config).with_context(|| format!("failed to make a client for {server}"))?;
        Ok(Connection { client, server })
    }

    /// A client of the hub whose requests are counted, and that has all the time it needs: a watch may be silent for long.
    pub(crate) async fn connect_counted(&self, metrics: &Metrics) -> anyhow::Result<Connection> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(PATIENCE);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = ClientBuilder::try_from(config)
            .with_context(|| format!("failed to make a client for {server}"))?
            .with_layer(&CountRequests(metrics.clone()))
            .build();
        Ok(Connection { client, server })
    }

    /// How the hub is reached, without any credentials: those of whoever asks are added to it. And its address.
    pub(crate) async fn without_rights(&self) -> anyhow::Result<(Config, String)> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(PATIENCE);
        config.auth_info = AuthInfo::default();
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        Ok((config, server))
    }

    async fn config(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if let Some(file) = &self.kubeconfig {
            let shown = file.display();
            let read = Kubeconfig::read_from(file).map_err(|error| {
                anyhow!(
                    "failed to read the kubeconfig {shown}: {}: name the file of the hub with --kubeconfig",
                    cause(&error)
                )
            })?;
            let contexts: Vec<String> = read.contexts.iter().map(|context| context.name.clone()).collect();
            return Config::from_custom_kubeconfig(read, &options).await.map_err(|error| {
                anyhow!(
                    "failed to use the kubeconfig {shown}: {}{}",
                    cause(&error),
                    known_contexts(&contexts)
                )
            });
        }
        if self.context.is_some() {
            return Config::from_kubeconfig(&options).await.map_err(|error| {
                let contexts = Kubeconfig::read().map(|read| read.contexts).unwrap_or_default();
                let contexts: Vec<String> = contexts.into_iter().map(|context| context.name).collect();
                anyhow!("failed to use the kubeconfig: {}{}", cause(&error), known_contexts(&contexts))
            });
        }
        Config::infer().await.map_err(|error| {
            anyhow!(
                "failed to find a hub: {}: give --kubeconfig FILE or set KUBECONFIG; aviary hub runs a hub to try things on",
                missing(&error).unwrap_or_else(|| cause(&error))
            )
        })
    }
}

/// That there is no kubeconfig at all, if that is it.
fn missing(error: &InferConfigError) -> Option<String> {
    match error.source()?.downcast_ref()? {
        KubeconfigError::ReadConfig(error, file) if error.kind() == ErrorKind::NotFound => {
            Some(format!("there is no kubeconfig {}, and this is no pod", file.display()))
        }
        KubeconfigError::FindPath => Some("no kubeconfig is named, and this is no pod".to_owned()),
        _ => None,
    }
}

fn known_contexts(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(": its contexts are {}", names.join(", ")) }
}

/// That a hub does not do what was asked.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The status, where it answered at all.
    pub(crate) code: Option<u16>,
    message: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

/// An error of a hub, in words that say what to do. `doing` completes "failed to".
pub(crate) fn refused(doing: &str, error: &kube::Error, server: &str) -> anyhow::Error {
    let code = match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    };
    anyhow::Error::new(Refused { code, message: refusal(doing, error, server) })
}

fn refusal(doing: &str, error: &kube::Error, server: &str) -> String {
    let kube::Error::Api(status) = error else {
        return format!("failed to {doing}: {}", reached(error, server));
    };
    let said = status.message.trim_end_matches('.');
    match status.code {
        401 => format!(
            "failed to {doing}: {server} does not accept your credentials: log in again, or choose others with --kubeconfig or --context"
        ),
        403 => format!("failed to {doing}: {said}: ask the hub's administrator for that right"),
        404 if said.contains("could not find the requested resource") || said == "404 page not found" => {
            format!("failed to {doing}: {server} does not serve that kind: {}", install(doing))
        }
        409 => {
            format!("failed to {doing}: somebody else changed it at the same time: look at it again ({said})")
        }
        422 | 400 => format!("failed to {doing}: the hub refuses it: {said}"),
        429 | 500..=599 => format!("failed to {doing}: the hub is in trouble, try again later: {said}"),
        _ => format!("failed to {doing}: {said}"),
    }
}

/// What to do about a kind that is not served.
fn install(doing: &str) -> String {
    let ours = [ADDON_GROUP, CLUSTER_GROUP, WORK_GROUP].iter().any(|group| doing.contains(group));
    if ours {
        "install the custom resource definitions with: aviary crds | kubectl apply --server-side -f -"
            .to_owned()
    } else {
        "install its custom resource definition".to_owned()
    }
}

/// Why a hub could not be reached.
fn reached(error: &kube::Error, server: &str) -> String {
    let why = cause(error);
    if matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_)) {
        let advice = if why.contains("certificate") {
            "the kubeconfig is not that of this hub, or is out of date"
        } else {
            "is it running, and is the kubeconfig that of this hub?"
        };
        return format!("{server} cannot be reached: {why}: {advice}");
    }
    why
}

/// The innermost cause: what wraps it only repeats it.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    // The number of the system's error tells people nothing.
    match text.find(" (os error") {
        Some(at) => text.get(..at).unwrap_or(&text).to_lowercase(),
        None => text,
    }
}
