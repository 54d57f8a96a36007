//! The hub's network endpoint: its certificate, its tokens, its address.
//!
//! Owns how a hub is served on a socket. Plain HTTP is never served.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use aviary_serve::{
    AllowedHosts, Authority, AuthorityError, InvalidHost, Limits, ServerCertificate, keep_renewed, serve_tls,
};
use axum::Extension;
use tokio::net::TcpListener;

use crate::hub::Hub;
use crate::security::{Gate, Identity, Role, Secret, TokenError, Tokens, guard, kubeconfig};

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Tokens(#[from] TokenError),
    #[error(transparent)]
    Host(#[from] InvalidHost),
}

/// The certificates and tokens of a hub.
#[derive(Debug)]
pub struct Endpoint {
    authority: Arc<Authority>,
    certificate: Arc<ServerCertificate>,
    tokens: Arc<Tokens>,
    hosts: AllowedHosts,
}

impl Endpoint {
    /// The endpoint of a hub with a data directory: its certificates and tokens are kept there.
    ///
    /// `hosts` are the names and addresses, in addition to loopback, by which clients reach it.
    pub fn open(hub: &Hub, directory: &Path, hosts: &[String]) -> Result<Self, EndpointError> {
        let authority = Authority::open(directory, hub.now())?;
        Self::new(hub, authority, Tokens::open(directory)?, hosts)
    }

    /// An endpoint with new certificates and tokens that are not stored.
    pub fn ephemeral(hub: &Hub, hosts: &[String]) -> Result<Self, EndpointError> {
        Self::new(hub, Authority::ephemeral(hub.now())?, Tokens::ephemeral(), hosts)
    }

    fn new(hub: &Hub, authority: Authority, tokens: Tokens, hosts: &[String]) -> Result<Self, EndpointError> {
        let hosts = AllowedHosts::new(hosts)?;
        let authority = Arc::new(authority);
        let certificate = ServerCertificate::issue(Arc::clone(&authority), &hosts, hub.now())?;
        Ok(Self { authority, certificate, tokens: Arc::new(tokens), hosts })
    }

    /// Issues a token. It is shown once; the hub stores only its hash.
    pub fn issue_token(&self, name: &str, role: Role) -> Result<Secret, TokenError> {
        self.tokens.issue(name, role)
    }

    /// The identity of a token.
    pub fn identify(&self, token: &str) -> Option<Identity> {
        self.tokens.identify(token)
    }

    /// A kubeconfig for the holder of a token.
    pub fn kubeconfig(&self, address: SocketAddr, token: &str) -> String {
        kubeconfig(&format!("https://{address}"), self.authority.pem(), token, "aviary")
    }
}

impl Hub {
    /// Serves this hub over TLS until `shutdown` completes; then ends all watches, finishes
    /// requests in progress, and writes what was accepted.
    pub async fn serve(
        &self,
        listener: TcpListener,
        endpoint: &Endpoint,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let tls = endpoint.certificate.tls()?;
        let router = self.router().layer(Extension(Arc::clone(&endpoint.tokens)));
        let app = guard(router, Gate::new(endpoint.hosts.clone(), Arc::clone(&endpoint.tokens)));
        let clock = Arc::clone(&self.inner.options.clock);
        let renewal = keep_renewed(Arc::clone(&endpoint.certificate), move || clock());
        let stop = async {
            shutdown.await;
            self.end_watches();
        };
        let served = tokio::select! {
            served = serve_tls(listener, tls, app, Limits::default(), stop) => served,
            () = renewal => Ok(()),
        };
        self.stop().await;
        served.map_err(ServeError::Io)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Certificate(#[from] AuthorityError),
    #[error("failed to serve")]
    Io(#[source] std::io::Error),
}
