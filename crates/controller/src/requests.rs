//! Counting requests to the hub: a layer around a client.

use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use tower::{Layer, Service};

use crate::metrics::Metrics;

/// A layer that counts the requests of a client.
#[derive(Clone, Debug)]
pub struct CountRequests(pub Metrics);

#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    metrics: Metrics,
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, metrics: self.0.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let verb = verb(request.method(), request.uri().query().unwrap_or_default());
        let metrics = self.metrics.clone();
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await;
            metrics.note_request(verb, answer.as_ref().ok().map(|answer| answer.status().as_u16()));
            answer
        }
        .boxed()
    }
}

pub(crate) fn is_watch(query: &str) -> bool {
    query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1")
}

fn verb(method: &Method, query: &str) -> &'static str {
    match *method {
        Method::GET if is_watch(query) => "watch",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}
