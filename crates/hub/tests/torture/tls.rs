//! A hub behind its socket, and clients that send exact bytes.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use aviary_hub::security::Role;
use aviary_hub::{Endpoint, Hub, ServeError};
use base64::Engine;
use kube::config::Kubeconfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::within;

/// A hub that is served in this process.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) kubeconfig: String,
    pub(crate) token: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    /// Serves a hub on a port (0: any); tokens are stored in the directory, if there is one.
    pub(crate) async fn start(hub: &Hub, directory: Option<&Path>, port: u16) -> Self {
        let endpoint = match directory {
            Some(directory) => Endpoint::open(hub, directory, &[]).unwrap(),
            None => Endpoint::ephemeral(hub, &[]).unwrap(),
        };
        // A token that outlives this server, for clients that do.
        let kept = directory.map(|directory| directory.join("token"));
        let token = match kept.as_ref().and_then(|kept| std::fs::read_to_string(kept).ok()) {
            Some(token) => token,
            None => endpoint.issue_token("torture", Role::Admin).unwrap().expose().to_owned(),
        };
        if let Some(kept) = kept {
            std::fs::write(kept, &token).unwrap();
        }
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let kubeconfig = endpoint.kubeconfig(address, &token);
        let (stop, stopped) = oneshot::channel::<()>();
        let hub = hub.clone();
        let served =
            tokio::spawn(async move { hub.serve(listener, &endpoint, async { drop(stopped.await) }).await });
        Self { address, kubeconfig, token, stop, served }
    }

    pub(crate) async fn stop(self) {
        drop(self.stop);
        within("the server ends", self.served).await.unwrap().unwrap();
    }

    /// A connection after its TLS handshake.
    pub(crate) async fn connect(&self, alpn: &str) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(self.authority()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    fn authority(&self) -> CertificateDer<'static> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig).unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        let data = cluster.certificate_authority_data.as_ref().unwrap();
        let pem = base64::prelude::BASE64_STANDARD.decode(data).unwrap();
        CertificateDer::from_pem_slice(&pem).unwrap()
    }

    /// Sends bytes over HTTP/1.1, and returns the response until the server closes. A server that
    /// closes without reading everything may have reset the connection.
    pub(crate) async fn say(&self, bytes: &[u8]) -> String {
        let (mut read, mut write) = tokio::io::split(self.connect("http/1.1").await);
        let mut answer = Vec::new();
        let talk = async {
            let send = async {
                let _ = write.write_all(bytes).await;
                let _ = write.flush().await;
            };
            let _ = tokio::join!(send, read.read_to_end(&mut answer));
        };
        within("an answer to what was said", talk).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}
