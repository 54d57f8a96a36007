//! A client whose watches can be held: what happens meanwhile is seen all at once when they go on.

use std::sync::Arc;

use futures_util::StreamExt;
use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tower::service_fn;

/// Holds the watches of one kind.
#[derive(Clone)]
pub(super) struct Gate {
    resource: &'static str,
    held: Arc<watch::Sender<bool>>,
}

impl Gate {
    pub(super) fn of(resource: &'static str) -> Self {
        Self { resource, held: Arc::new(watch::Sender::new(false)) }
    }

    pub(super) fn hold(&self) {
        self.held.send_replace(true);
    }

    pub(super) fn open(&self) {
        self.held.send_replace(false);
    }

    /// The same client, with this gate in it.
    pub(super) fn client(&self, inner: &Client) -> Client {
        let (gate, inner) = (self.clone(), inner.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (gate, inner) = (gate.clone(), inner.clone());
            async move {
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                let is_held = is_watch && request.uri().path().ends_with(&format!("/{}", gate.resource));
                let response = inner.send(request).await?.map(axum::body::Body::new);
                Ok::<_, kube::Error>(if is_held {
                    response.map(|body| gate.put_before(body))
                } else {
                    response
                })
            }
        });
        Client::new(service, "default")
    }

    fn put_before(&self, body: axum::body::Body) -> axum::body::Body {
        let held = self.held.subscribe();
        axum::body::Body::from_stream(body.into_data_stream().then(move |part| {
            let mut held = held.clone();
            async move {
                // Whoever shuts it is gone: nothing holds it any more.
                let _ = held.wait_for(|held| !held).await;
                part
            }
        }))
    }
}
