//! A hub whose reachability can be switched, and that can be restarted under its clients.

use std::net::SocketAddr;
use std::sync::{Arc, RwLock};

use aviary_hub::security::{Identity, Role};
use aviary_hub::{Hub, HubOptions};
use axum::Router;
use axum::body::Body;
use futures_util::{FutureExt, StreamExt};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;

use crate::child;
use crate::support::{Place, maps};
use crate::tls::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    InProcess,
    Tls,
}

pub(crate) struct World {
    place: Place,
    options: HubOptions,
    hub: Hub,
    server: Option<Server>,
    /// The hub that in-process clients use.
    current: Arc<RwLock<Router>>,
    reachable: watch::Sender<bool>,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn new(way: Way, events_kept: usize) -> Self {
        let place = Place::new();
        let options = HubOptions { events_kept, ..HubOptions::default() };
        let hub = Hub::open(place.path(), options.clone()).await.unwrap();
        let current = Arc::new(RwLock::new(hub.router()));
        let reachable = watch::Sender::new(true);
        let (server, client) = match way {
            Way::InProcess => (None, switched(&current, &reachable)),
            Way::Tls => {
                let server = Server::start(&hub, Some(place.path()), 0).await;
                let proxy = proxy(server.address, &reachable).await;
                let kubeconfig = server.kubeconfig.replace(&server.address.to_string(), &proxy.to_string());
                let client = child::client(&kubeconfig).await;
                (Some(server), client)
            }
        };
        Self { place, options, hub, server, current, reachable, client }
    }

    /// Direct access to the objects, without the switch.
    pub(crate) fn direct(&self) -> Api<ConfigMap> {
        maps(&self.hub.client())
    }

    /// Cuts all streams, and blocks new ones.
    pub(crate) fn away(&self) {
        self.reachable.send_replace(false);
    }

    pub(crate) fn back(&self) {
        self.reachable.send_replace(true);
    }

    /// Stops the hub cleanly and restarts it with the same data, at the same address.
    pub(crate) async fn restart(&mut self) {
        let port = self.server.as_ref().map(|server| server.address.port());
        match self.server.take() {
            Some(server) => server.stop().await,
            None => self.hub.stop().await,
        }
        self.hub = Hub::open(self.place.path(), self.options.clone()).await.unwrap();
        *self.current.write().unwrap() = self.hub.router();
        if let Some(port) = port {
            self.server = Some(Server::start(&self.hub, Some(self.place.path()), port).await);
        }
    }

    pub(crate) async fn end(self) {
        match self.server {
            Some(server) => server.stop().await,
            None => self.hub.stop().await,
        }
    }
}

/// An in-process client whose responses can be cut off in the middle.
fn switched(current: &Arc<RwLock<Router>>, reachable: &watch::Sender<bool>) -> Client {
    let (current, reachable) = (Arc::clone(current), reachable.clone());
    let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
        let (router, mut cut) = (current.read().unwrap().clone(), reachable.subscribe());
        async move {
            if !*cut.borrow_and_update() {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
            }
            request.extensions_mut().insert(Identity::new("follower", Role::Admin));
            let Ok(response) = router.oneshot(request).await;
            let ended = async move { drop(cut.wait_for(|reachable| !reachable).await) }.boxed();
            Ok(response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended))))
        }
    });
    Client::new(service, "default")
}

/// Forwards bytes to an address while it is reachable.
async fn proxy(target: SocketAddr, reachable: &watch::Sender<bool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let reachable = reachable.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut cut = reachable.subscribe();
            tokio::spawn(async move {
                if !*cut.borrow_and_update() {
                    return;
                }
                let Ok(mut far) = TcpStream::connect(target).await else { return };
                tokio::select! {
                    _ = cut.wait_for(|reachable| !reachable) => {}
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                }
            });
        }
    });
    address
}
