//! Limits on the size of responses: a server that never stops sending makes a request fail, and
//! does not exhaust the memory of the process.
//!
//! Owns the limits, and the layer that every client of a hub is built with. It wraps everything
//! that changes the size of an answer, so that the decompressed size counts.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower::{BoxError, Layer, Service};

use crate::pages::limit_of;
use crate::requests::is_watch;

const MIB: usize = 1 << 20;
/// A whole list, or a discovery document.
const MOST_OF_A_LIST: usize = 64 * MIB;
/// One page of a list. Parsing needs four times as much memory for text, and more for JSON of many
/// small values: those are bounded, too. A manager has 256 MiB.
pub(crate) const MOST_OF_A_PAGE: usize = 4 * MIB;
/// The values of one page: up to a hundred bytes each.
pub(crate) const MOST_VALUES_OF_A_PAGE: usize = 500_000;
/// The maps of one page that are not empty: up to 700 bytes each. Managed fields are counted, but
/// not kept.
pub(crate) const MOST_MAPS_OF_A_PAGE: usize = 80_000;
/// One object, or one event of a watch. The default limit of etcd is 1.5 MiB.
pub(crate) const MOST_OF_AN_OBJECT: usize = 8 * MIB;
/// The body of an error.
const MOST_OF_AN_ERROR: usize = MIB;

/// A layer that limits the answers a client gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct BoundAnswers;

#[derive(Clone, Debug)]
pub struct BoundedService<S>(S);

impl<S> Layer<S> for BoundAnswers {
    type Service = BoundedService<S>;

    fn layer(&self, inner: S) -> BoundedService<S> {
        BoundedService(inner)
    }
}

impl<S, B, R> Service<Request<B>> for BoundedService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = Response<Bounded<R>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let expected = Bound::of(&request);
        let answer = self.0.call(request);
        async move {
            let answer = answer.await?;
            let bound = if answer.status().is_success() { expected } else { Bound::Whole(MOST_OF_AN_ERROR) };
            Ok(answer.map(|body| Bounded { body, bound, read: 0, over: false }))
        }
        .boxed()
    }
}

/// What must end within the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Whole(usize),
    Line(usize),
}

impl Bound {
    fn of<B>(request: &Request<B>) -> Self {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        match *request.method() {
            Method::GET if is_watch(query) => Self::Line(MOST_OF_AN_OBJECT),
            Method::GET if limit_of(request).is_some_and(|limit| limit > 1) => Self::Whole(MOST_OF_A_PAGE),
            Method::GET if limit_of(request).is_some() => Self::Whole(MOST_OF_AN_OBJECT),
            Method::GET | Method::DELETE if !names_an_object(path) => Self::Whole(MOST_OF_A_LIST),
            _ => Self::Whole(MOST_OF_AN_OBJECT),
        }
    }

    fn most(self) -> usize {
        match self {
            Self::Whole(most) | Self::Line(most) => most,
        }
    }

    /// How many bytes of the current line or of the whole are read, with this part; and how many
    /// the longest one has.
    fn count(self, read: usize, part: &[u8]) -> (usize, usize) {
        match self {
            Self::Whole(_) => (read + part.len(), read + part.len()),
            Self::Line(_) => {
                part.split(|byte| *byte == b'\n').enumerate().fold((0, 0), |(_, longest), (index, line)| {
                    let length = if index == 0 { read + line.len() } else { line.len() };
                    (length, longest.max(length))
                })
            }
        }
    }
}

/// Whether a path is that of one object. An unknown path is not.
fn names_an_object(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let group_and_version = match parts.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return false,
    };
    let rest: Vec<&str> = parts.skip(group_and_version).collect();
    match rest.as_slice() {
        ["namespaces", _, _kind] => false,
        ["namespaces", _, _kind, ..] => true,
        rest => rest.len() > 1,
    }
}

/// A body that fails at its limit.
#[derive(Debug)]
pub struct Bounded<B> {
    body: B,
    bound: Bound,
    read: usize,
    over: bool,
}

impl<B> Body for Bounded<B>
where
    B: Body<Data: AsRef<[u8]>, Error: Into<BoxError>> + Unpin,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        if let Some(part) = frame.data_ref() {
            let (read, longest) = self.bound.count(self.read, part.as_ref());
            self.read = read;
            if longest > self.bound.most() {
                self.over = true;
                return Poll::Ready(Some(Err(Box::new(AnswerTooLong { bound: self.bound }))));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A server sends more than any valid answer contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerTooLong {
    bound: Bound,
}

impl AnswerTooLong {
    /// Whether this is the root cause of an error.
    pub fn caused(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<Self>)
    }
}

impl fmt::Display for AnswerTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.bound {
            Bound::Whole(_) => "an answer",
            Bound::Line(_) => "an event",
        };
        write!(
            f,
            "the server sent {what} of more than {} MiB, which is not read any further",
            self.bound.most() / MIB
        )
    }
}

impl std::error::Error for AnswerTooLong {}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::thread::{self, JoinHandle};

    use aviary_api::ManagedCluster;
    use futures_util::TryStreamExt as _;
    use kube::api::{Api, ListParams, WatchParams};
    use kube::client::ClientBuilder;
    use kube::{Client, Config};

    use super::*;

    fn bound(method: Method, path: &str) -> Bound {
        Bound::of(&Request::builder().method(method).uri(path).body(()).unwrap())
    }

    #[test]
    fn a_request_tells_how_much_its_answer_may_hold() {
        let (list, object) = (Bound::Whole(MOST_OF_A_LIST), Bound::Whole(MOST_OF_AN_OBJECT));
        let page = Bound::Whole(MOST_OF_A_PAGE);
        for (path, expected) in [
            ("/api", list),
            ("/apis", list),
            ("/openapi/v3", list),
            ("/version", list),
            ("/api/v1/namespaces", list),
            ("/api/v1/namespaces/c1", object),
            ("/api/v1/namespaces/c1/secrets?limit=500", page),
            ("/api/v1/namespaces/c1/secrets/one", object),
            ("/apis/work.open-cluster-management.io/v1/manifestworks?limit=500&continue=a", page),
            ("/apis/work.open-cluster-management.io/v1/manifestworks?limit=1&continue=a", object),
            ("/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks", list),
            ("/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks/one", object),
            ("/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks/one/status", object),
            ("/apis/addon.open-cluster-management.io/v1alpha1/addontemplates/one", object),
            (
                "/apis/work.open-cluster-management.io/v1/manifestworks?watch=true&x=y",
                Bound::Line(MOST_OF_AN_OBJECT),
            ),
        ] {
            assert_eq!(bound(Method::GET, path), expected, "{path}");
        }
        assert_eq!(bound(Method::POST, "/api/v1/namespaces"), object);
    }

    #[test]
    fn lines_are_counted_wherever_the_parts_are_cut() {
        let text = b"12345\n1\n\n1234567\n123";
        for parts in 1..=text.len() {
            let mut read = 0;
            let mut most = 0;
            for part in text.chunks(parts) {
                let longest;
                (read, longest) = Bound::Line(0).count(read, part);
                most = most.max(longest);
            }
            assert_eq!((read, most), (3, 7), "in parts of {parts}");
        }
    }

    /// Answers one request with an endless line. Returns how much of it was read.
    fn endless(listener: TcpListener) -> JoinHandle<usize> {
        const CHUNK: usize = 64 << 10;
        thread::spawn(move || {
            let (mut client, _): (TcpStream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = client.read(&mut request).unwrap();
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            client.write_all(head.as_bytes()).unwrap();
            let chunk = format!("{CHUNK:x}\r\n{}\r\n", "a".repeat(CHUNK));
            let chunks = (0..4096).take_while(|_| client.write_all(chunk.as_bytes()).is_ok());
            chunks.count() * CHUNK
        })
    }

    /// A client of a server whose answers have no end, and how much of its first answer is read.
    fn endless_server() -> (Client, JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = Config::new(format!("http://{address}").parse().unwrap());
        let client = ClientBuilder::try_from(config).unwrap().with_layer(&BoundAnswers).build();
        (client, endless(listener))
    }

    /// Allows for what the sockets buffer: kernels let that grow to tens of MiB.
    async fn assert_taken(server: JoinHandle<usize>, most: usize) {
        // On another thread: this one closes the connection.
        let taken = tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
        assert!(taken < most + 64 * MIB, "{} MiB were taken", taken / MIB);
    }

    #[tokio::test]
    async fn h7_an_event_without_an_end_ends_the_watch() {
        let (client, server) = endless_server();
        let clusters: Api<ManagedCluster> = Api::all(client);
        let events = clusters.watch(&WatchParams::default(), "0").await.unwrap();
        let error = events.try_collect::<Vec<_>>().await.unwrap_err();
        assert!(AnswerTooLong::caused(&error), "{error:?}");
        assert_taken(server, MOST_OF_AN_OBJECT).await;
    }

    #[tokio::test]
    async fn h7_a_page_an_object_or_a_list_without_an_end_is_an_error() {
        for (limit, name, most) in [
            (Some(500), None, MOST_OF_A_PAGE),
            (None, None, MOST_OF_A_LIST),
            (None, Some("one"), MOST_OF_AN_OBJECT),
        ] {
            let (client, server) = endless_server();
            let clusters: Api<ManagedCluster> = Api::all(client);
            let error = match name {
                Some(name) => clusters.get(name).await.map(drop),
                None => clusters.list(&ListParams { limit, ..ListParams::default() }).await.map(drop),
            };
            let error = error.unwrap_err();
            assert!(AnswerTooLong::caused(&error), "{error:?}");
            drop(clusters);
            assert_taken(server, most).await;
        }
    }
}
