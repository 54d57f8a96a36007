//! The line between a manager and the hub: every request and every event goes through it, and here
//! is where they come to harm.

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aviary_hub::Hub;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use futures_util::{FutureExt, StreamExt, stream};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;
use tower::{ServiceExt, service_fn};

use crate::fault::{Effect, Point};
use crate::hand::Hand;
use crate::leadership::{Surpass, copy_term, remove_lease, reset_lease};
use crate::loss::Loss;
use crate::planted::Planted;
use crate::trouble::{Demand, Trouble, Wrote};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A client gives an answer up that does not come for so long.
const HANG: Duration = Duration::from_secs(295);
const DELAY: Duration = Duration::from_secs(20);
/// Until the leader looks at its Lease again, and has fenced off what it finds.
const FENCING: Duration = Duration::from_secs(20);
/// Small, so that small fleets are listed in pages too.
const PAGE: &str = "limit=3";
/// What a planted panic says.
pub(crate) const PLANTED_PANIC: &str = "a panic that is being tried out";
const CONFIGS: [&str; 3] = ["/addonhubconfigs", "/addondeploymentconfigs", "/addontemplates"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    /// Nothing passes for now.
    Closed,
    /// Nothing ever passes again.
    Dead,
}

/// A value that is waited for. Those who wait go on in the order in which they came; with
/// `tokio::sync::watch` chance would decide.
#[derive(Clone)]
struct Awaited<T>(Arc<(Mutex<T>, Notify)>);

impl<T: Copy> Awaited<T> {
    fn new(value: T) -> Self {
        Self(Arc::new((Mutex::new(value), Notify::new())))
    }

    fn get(&self) -> T {
        *self.0.0.lock().unwrap()
    }

    fn set(&self, value: T) {
        *self.0.0.lock().unwrap() = value;
        self.0.1.notify_waiters();
    }

    async fn until(&self, is: impl Fn(T) -> bool) {
        loop {
            let mut changed = pin!(self.0.1.notified());
            changed.as_mut().enable();
            if is(self.get()) {
                return;
            }
            changed.await;
        }
    }
}

pub(crate) struct Line {
    pub(crate) id: usize,
    hub: Hub,
    router: Router,
    hand: Hand,
    trouble: Trouble,
    gate: Awaited<Gate>,
    /// The revision that this manager sees until it is let to catch up.
    stale: Option<u64>,
    fresh: Awaited<bool>,
    /// How wrong the clocks of managers are, in seconds.
    skew: Arc<AtomicI64>,
    planted: Option<Planted>,
}

enum Asked {
    Watch,
    Lease,
    Read { page: bool },
    Write,
}

impl Asked {
    fn of(parts: &Parts) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        if parts.uri.path().contains("/leases") {
            return Self::Lease;
        }
        match parts.method {
            Method::GET if query.contains("watch=") => Self::Watch,
            Method::GET => Self::Read { page: query.contains("continue=") },
            _ => Self::Write,
        }
    }
}

impl Line {
    pub(crate) fn new(
        id: usize,
        hub: &Hub,
        router: Router,
        trouble: &Trouble,
        stale: Option<u64>,
        skew: &Arc<AtomicI64>,
        planted: Option<Planted>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            hub: hub.clone(),
            hand: Hand::new(router.clone()),
            router,
            trouble: trouble.clone(),
            gate: Awaited::new(Gate::Open),
            stale,
            fresh: Awaited::new(stale.is_none()),
            skew: Arc::clone(skew),
            planted,
        })
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        let line = Arc::clone(self);
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let line = Arc::clone(&line);
            async move { line.handle(request).await }.boxed()
        });
        Client::new(service, "default")
    }

    /// Nothing of this manager reaches the hub from now on, and nothing reaches it.
    pub(crate) fn die(&self) {
        self.gate.set(Gate::Dead);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.gate.get() == Gate::Dead
    }

    pub(crate) fn wake(&self) {
        if self.gate.get() == Gate::Closed {
            self.gate.set(Gate::Open);
        }
    }

    /// Follows the closing of the gate.
    pub(crate) fn closed(&self) -> impl Fn() -> bool + Send + 'static {
        let gate = self.gate.clone();
        move || gate.get() == Gate::Closed
    }

    pub(crate) fn opens(&self) -> impl Future<Output = ()> + Send + 'static {
        let gate = self.gate.clone();
        async move { gate.until(|gate| gate == Gate::Open).await }
    }

    pub(crate) fn is_stale(&self) -> bool {
        !self.fresh.get()
    }

    pub(crate) fn catch_up(&self) {
        self.fresh.set(true);
    }

    async fn handle(
        self: Arc<Self>,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Body>, Failure> {
        self.opens().await;
        self.trouble.asked();
        let (mut parts, body) = request.into_parts();
        let body = to_bytes(Body::new(body), usize::MAX).await?;
        let path = parts.uri.path().to_owned();
        if self.trouble.hides_kinds() && CONFIGS.iter().any(|kind| path.contains(kind)) {
            return Ok(refusal(404));
        }
        match Asked::of(&parts) {
            Asked::Watch => self.watch(parts).await,
            Asked::Lease => {
                if self.trouble.has_lost_lease(self.id) {
                    return Err(reset());
                }
                let effect = self.trouble.pass(Point::Lease);
                self.answer(parts, body, effect, true).await
            }
            Asked::Read { page } => {
                let effect = self.trouble.pass(Point::Read);
                let effect = effect.or_else(|| page.then(|| self.trouble.pass(Point::Page)).flatten());
                parts.uri = self.listed_as(&parts.uri);
                self.answer(parts, body, effect, false).await
            }
            Asked::Write => {
                self.trouble.asked_to_write(parts.method.as_str(), &path);
                let effect = self.trouble.pass(Point::Write);
                self.answer(parts, body, effect, false).await
            }
        }
    }

    /// In small pages; and while the view is stale, as it was then.
    fn listed_as(&self, uri: &Uri) -> Uri {
        let query = uri.query().unwrap_or_default();
        if !query.contains("limit=500") {
            return uri.clone();
        }
        let mut query = query.replace("limit=500", PAGE);
        if let Some(revision) = self.stale.filter(|_| self.is_stale())
            && !query.contains("continue=")
        {
            query = format!("{query}&resourceVersion={revision}&resourceVersionMatch=Exact");
        }
        format!("{}?{query}", uri.path()).parse().unwrap()
    }

    async fn answer(
        &self,
        parts: Parts,
        body: Bytes,
        effect: Option<Effect>,
        lease: bool,
    ) -> Result<Response<Body>, Failure> {
        let Some(effect) = effect else { return self.pass_on(parts, body, lease).await };
        match effect {
            Effect::Crash { applied, stale } => {
                if applied {
                    drop(self.pass_on(parts, body, lease).await);
                }
                self.die();
                self.trouble.demand(Demand::Restart { stale });
                pending().await
            }
            Effect::Answer(code) => Ok(refusal(code)),
            Effect::AppliedTimeout => {
                drop(self.pass_on(parts, body, lease).await);
                Ok(refusal(504))
            }
            Effect::Reset { applied } => {
                if applied {
                    drop(self.pass_on(parts, body, lease).await);
                }
                Err(reset())
            }
            Effect::Hang { applied } => {
                if applied {
                    drop(self.pass_on(parts, body, lease).await);
                }
                let _stall = self.trouble.stall();
                sleep(HANG).await;
                Err(Box::new(std::io::Error::from(std::io::ErrorKind::TimedOut)))
            }
            Effect::Truncated => {
                let (parts, body) = self.pass_on(parts, body, lease).await?.into_parts();
                let whole = to_bytes(body, usize::MAX).await?;
                Ok(Response::from_parts(parts, Body::from(whole.slice(..whole.len() / 2))))
            }
            Effect::LateAnswer(milliseconds) => {
                let (path, from) = (parts.uri.path().to_owned(), self.hub.revision());
                let answer = self.pass_on(parts, body, lease).await;
                let changed = from + 1..=self.hub.revision();
                let _stall = self.trouble.stall();
                sleep(Duration::from_millis(milliseconds)).await;
                self.trouble.answers_late(&path, changed);
                answer
            }
            Effect::Pause => {
                self.gate.set(Gate::Closed);
                self.trouble.demand(Demand::Beside { paused: self.id });
                self.opens().await;
                self.pass_on(parts, body, lease).await
            }
            Effect::LoseLease => {
                self.trouble.lose_lease(self.id, Duration::from_secs(100));
                self.trouble.demand(Demand::Candidate);
                self.pass_on(parts, body, lease).await
            }
            Effect::RemoveLease { beside } => {
                let seen = remove_lease(&self.hand, self.id).await;
                self.spoilt(seen, beside);
                self.pass_on(parts, body, lease).await
            }
            Effect::ResetLease { again, beside } => {
                let seen = reset_lease(&self.hand, self.id, again, beside).await;
                self.spoilt(seen, beside);
                self.pass_on(parts, body, lease).await
            }
            Effect::CopyTerm { crash } => {
                let copied = copy_term(&self.hand).await;
                self.trouble.busy_for(FENCING);
                if crash {
                    self.trouble.surpass(copied);
                    self.die();
                    self.trouble.demand(Demand::Restart { stale: false });
                    return pending().await;
                }
                self.pass_on(parts, body, lease).await
            }
            Effect::Panic => panic!("{PLANTED_PANIC}"),
            Effect::Clock(hours) => {
                self.skew.store(hours * 3600, Ordering::Relaxed);
                self.pass_on(parts, body, lease).await
            }
            Effect::ClockSwing => {
                self.skew.store(24 * 3600, Ordering::Relaxed);
                let (skew, stall) = (Arc::clone(&self.skew), self.trouble.stall());
                tokio::spawn(async move {
                    sleep(Duration::from_secs(30)).await;
                    skew.store(0, Ordering::Relaxed);
                    drop(stall);
                });
                self.pass_on(parts, body, lease).await
            }
            Effect::HideKinds => {
                self.trouble.hide_kinds(DELAY);
                self.pass_on(parts, body, lease).await
            }
            Effect::RemoveCrd | Effect::RemoveNamespace => {
                let lost = if effect == Effect::RemoveCrd {
                    Loss::of_crd(&self.hand).await
                } else {
                    Loss::of_namespace(&self.hand).await
                };
                self.trouble.demand(Demand::Restore(lost));
                self.pass_on(parts, body, lease).await
            }
            _ => self.pass_on(parts, body, lease).await,
        }
    }

    /// Somebody has spoilt the Lease.
    fn spoilt(&self, seen: Surpass, beside: bool) {
        self.trouble.surpass(seen);
        self.trouble.busy_for(FENCING);
        if beside {
            self.trouble.demand(Demand::Candidate);
        }
    }

    async fn pass_on(&self, parts: Parts, body: Bytes, lease: bool) -> Result<Response<Body>, Failure> {
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        let from = self.hub.revision();
        let body = match &self.planted {
            Some(planted) if method != Method::GET && lease => planted.write_lease(body),
            Some(planted) if method != Method::GET => planted.write(&path, body),
            _ => body,
        };
        let answer = self.router.clone().oneshot(Request::from_parts(parts, Body::from(body))).await?;
        let to = self.hub.revision();
        if method == Method::GET {
            return match &self.planted {
                Some(planted) if answer.status() == StatusCode::OK => planted.read(&path, answer).await,
                _ => Ok(answer),
            };
        }
        if lease {
            self.trouble.lease_committed(to - from);
        } else {
            let written =
                Wrote { manager: self.id, method: method.to_string(), path: path.clone(), from, to };
            self.trouble.wrote(written);
            if let Some(planted) = &self.planted {
                planted.after(&self.router, &path).await;
            }
        }
        Ok(answer)
    }

    async fn watch(self: Arc<Self>, parts: Parts) -> Result<Response<Body>, Failure> {
        let path = parts.uri.path().to_owned();
        if self.trouble.always(Effect::ListsOnly) {
            return Ok(Response::new(Body::from(too_old())));
        }
        let answer = self.router.clone().oneshot(Request::from_parts(parts, Body::empty())).await?;
        if answer.status() != StatusCode::OK {
            return Ok(answer);
        }
        self.trouble.watches(&path);
        let (parts, body) = answer.into_parts();
        let state = (self, body.into_data_stream(), false, path);
        let frames = stream::unfold(state, |(line, mut frames, over, path)| async move {
            if over {
                return None;
            }
            let frame = frames.next().await?;
            line.opens().await;
            line.catches_up().await;
            if line.trouble.hides_kinds() && CONFIGS.iter().any(|kind| path.contains(kind)) {
                return None;
            }
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => return Some((Err::<Bytes, Failure>(error.into()), (line, frames, true, path))),
            };
            let frame = match &line.planted {
                Some(planted) => planted.event(&path, frame),
                None => frame,
            };
            if frame.starts_with(br#"{"type":"BOOKMARK"#) {
                return Some((Ok(frame), (line, frames, false, path)));
            }
            let (frame, over) = match line.trouble.pass(Point::Event) {
                Some(Effect::Cut { delivered: false }) => return None,
                Some(Effect::Cut { delivered: true }) => (Ok(frame), true),
                Some(Effect::StreamReset) => (Err(reset()), true),
                Some(Effect::Gone) => (Ok(too_old()), true),
                Some(Effect::Duplicate) => (Ok([&*frame, &*frame].concat().into()), false),
                Some(Effect::Delay) => {
                    let _stall = line.trouble.stall();
                    sleep(DELAY).await;
                    (Ok(frame), false)
                }
                _ => (Ok(frame), line.trouble.always(Effect::CutEach)),
            };
            if let Ok(frame) = &frame {
                line.trouble.told(frame);
            }
            Some((frame, (line, frames, over, path)))
        });
        Ok(Response::from_parts(parts, Body::from_stream(frames)))
    }

    async fn catches_up(&self) {
        self.fresh.until(|fresh| fresh).await;
    }
}

fn reset() -> Failure {
    Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
}

/// An answer that nothing was done.
fn refusal(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::from(failure(code).to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    if code == 429 {
        response.headers_mut().insert("retry-after", "1".parse().unwrap());
    }
    response
}

fn failure(code: u16) -> Value {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "a fault that is being tried out",
        "reason": reason, "code": code,
    })
}

fn too_old() -> Bytes {
    format!("{}\n", json!({"type": "ERROR", "object": failure(410)})).into()
}
