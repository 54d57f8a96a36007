//! Connects to a hub.
//!
//! Owns the options that select a hub and the error messages for every way in which a request to it
//! can fail. Must not read or write objects.

use std::error::Error as _;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::slice;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aviary_api::names::{ADDON_GROUP, CLUSTER_GROUP, WORK_GROUP};
use aviary_controller::{AnswerTooLong, BoundAnswers, CountRequests, Metrics, in_pages};
use kube::client::ClientBuilder;
use kube::config::{AuthInfo, InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::commands::typed;

/// How long to wait for a connection to a hub.
const PATIENCE: Duration = Duration::from_secs(10);

/// The options that select a hub.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HubArgs {
    /// Kubeconfig of the hub [default: KUBECONFIG, then the one in the home directory, then the
    /// pod's service account]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// A client of a hub.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The address of the hub.
    pub(crate) server: String,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

impl HubArgs {
    /// Whether the user selected a hub.
    pub(crate) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// The options as the user would type them again, with a leading space.
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

    /// `kubectl` for the same hub.
    pub(crate) fn kubectl(&self) -> String {
        format!("kubectl{}", self.typed())
    }

    /// Creates a client for the hub, without sending a request yet.
    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(PATIENCE);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client =
            client_of(config, None).with_context(|| format!("failed to create a client for {server}"))?;
        Ok(Connection { client, server })
    }

    /// Creates a client that counts its requests and has no read timeout: a watch may be silent for
    /// a long time.
    pub(crate) async fn connect_counted(&self, metrics: &Metrics) -> anyhow::Result<Connection> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(PATIENCE);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = client_of(config, Some(metrics))
            .with_context(|| format!("failed to create a client for {server}"))?;
        Ok(Connection { client, server })
    }

    /// Returns the configuration for the hub without credentials, and the address of the hub. The
    /// caller adds the credentials of the user who sends a request.
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
                    "failed to read the kubeconfig {shown}: {}: give the hub's kubeconfig with --kubeconfig",
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
                "failed to find a hub: {}: give --kubeconfig FILE or set KUBECONFIG; aviary hub runs a local hub for trying things out",
                missing(&error).unwrap_or_else(|| cause(&error))
            )
        })
    }
}

/// Every client of a hub is created here, so that the size of every response is limited.
pub(crate) fn client_of(config: Config, counted: Option<&Metrics>) -> kube::Result<Client> {
    let builder = ClientBuilder::try_from(config)?.with_layer(&BoundAnswers);
    let client = match counted {
        Some(metrics) => builder.with_layer(&CountRequests(metrics.clone())).build(),
        None => builder.build(),
    };
    Ok(in_pages(client))
}

/// Returns a message if no kubeconfig was found at all.
fn missing(error: &InferConfigError) -> Option<String> {
    match error.source()?.downcast_ref()? {
        KubeconfigError::ReadConfig(error, file) if error.kind() == ErrorKind::NotFound => Some(format!(
            "there is no kubeconfig {}, and this process is not running in a pod",
            file.display()
        )),
        KubeconfigError::FindPath => {
            Some("no kubeconfig is given, and this process is not running in a pod".to_owned())
        }
        _ => None,
    }
}

fn known_contexts(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(": its contexts are {}", names.join(", ")) }
}

/// A request that the hub did not execute.
#[derive(Debug)]
pub(crate) struct RefusedRequest {
    /// The HTTP status, if the hub answered.
    pub(crate) code: Option<u16>,
    message: String,
}

impl std::fmt::Display for RefusedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RefusedRequest {}

/// Describes a hub's error and what to do about it. `doing` completes "failed to".
pub(crate) fn refused(doing: &str, error: &kube::Error, server: &str) -> anyhow::Error {
    let code = match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    };
    anyhow::Error::new(RefusedRequest { code, message: refusal(doing, error, server) })
}

fn refusal(doing: &str, error: &kube::Error, server: &str) -> String {
    let kube::Error::Api(status) = error else {
        return format!("failed to {doing}: {}", reached(error, server));
    };
    let said = status.message.trim_end_matches('.');
    match status.code {
        401 => format!(
            "failed to {doing}: {server} does not accept your credentials: log in again, or select others with --kubeconfig or --context"
        ),
        403 => format!("failed to {doing}: {said}: ask the hub's administrator for that right"),
        404 if said.contains("could not find the requested resource") || said == "404 page not found" => {
            format!("failed to {doing}: {server} does not serve that kind: {}", install(doing))
        }
        409 => {
            format!("failed to {doing}: it was changed at the same time: check it and try again ({said})")
        }
        422 | 400 => format!("failed to {doing}: the hub rejected it: {said}"),
        429 | 500..=599 => format!("failed to {doing}: the hub has a problem, try again later: {said}"),
        _ => format!("failed to {doing}: {said}"),
    }
}

/// Suggests how to install a kind that the hub does not serve.
fn install(doing: &str) -> String {
    let ours = [ADDON_GROUP, CLUSTER_GROUP, WORK_GROUP].iter().any(|group| doing.contains(group));
    if ours {
        "install the custom resource definitions with: aviary crds | kubectl apply --server-side -f -"
            .to_owned()
    } else {
        "install its custom resource definition".to_owned()
    }
}

/// Describes why a hub could not be reached.
fn reached(error: &kube::Error, server: &str) -> String {
    let why = cause(error);
    if AnswerTooLong::caused(error) {
        return format!("{why}: is {server} a Kubernetes API server?");
    }
    if matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_)) {
        let advice = if why.contains("certificate") {
            "the kubeconfig belongs to another hub, or is out of date"
        } else {
            "is it running, and does the kubeconfig belong to it?"
        };
        return format!("{server} cannot be reached: {why}: {advice}");
    }
    why
}

/// Returns the innermost cause: the errors around it only repeat it.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    // Removes the operating system's error number, which does not help users.
    match text.find(" (os error") {
        Some(at) => text.get(..at).unwrap_or(&text).to_lowercase(),
        None => text,
    }
}
