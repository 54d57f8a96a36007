//! Fencing off an earlier leader, and a hub that goes away in the middle of a wave.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use http::{Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::json;
use tower::service_fn;

use super::*;

type Sent = Arc<Mutex<Vec<(String, String)>>>;

/// A hub that notes patches. It accepts patches of instances, and rejects those of the add-on, as
/// if it had changed.
fn hub(sent: &Sent) -> Client {
    let sent = Arc::clone(sent);
    let service = service_fn(move |request: Request<Body>| {
        let sent = Arc::clone(&sent);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await?;
            let is_addon = path.contains("/clustermanagementaddons/");
            sent.lock().unwrap().push((path, String::from_utf8(body.to_vec()).unwrap()));
            let (code, answer) = if is_addon {
                (
                    409,
                    json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": ""}),
                )
            } else {
                (
                    200,
                    json!({"metadata": {"name": "helloworld", "namespace": "c1", "uid": "one"}, "spec": {}}),
                )
            };
            let answer = Body::from(answer.to_string().into_bytes());
            Ok::<_, kube::Error>(Response::builder().status(code).body(answer).unwrap())
        }
    });
    Client::new(service, "default")
}

fn target(resource_version: &str) -> Target {
    Target {
        name: "helloworld".into(),
        uid: "addon".into(),
        resource_version: resource_version.into(),
        placements: Vec::new(),
        written_by: WrittenBy { term: 1, leader: "earlier".into() },
        served: Served::default(),
    }
}

fn executor(client: Client, stores: mpsc::Sender<WatchEvent>) -> Executor {
    Executor {
        client: client.clone(),
        namespace: "default".into(),
        limit: WriteLimit::default(),
        stores,
        term: Term { number: 2, handed_over_by: None, leases: 0 },
        identity: "later".into(),
        over: Arc::default(),
        voided: Arc::default(),
        events: Events::new(client, "later", Arc::new(|| Timestamp::UNIX_EPOCH)),
    }
}

/// How a request fails.
#[derive(Clone, Copy)]
enum Failing {
    Never,
    Connection,
    /// A load balancer answers that it reaches no API server.
    Gateway(u16),
}

/// Deletes 1,000 instances on a hub on which the requests for some paths fail. Returns the number
/// of requests and the result.
async fn deletions(failing: impl Fn(&str) -> Failing + Clone + Send + Sync + 'static) -> (usize, Tally) {
    let sent: Arc<Mutex<usize>> = Arc::default();
    let counted = Arc::clone(&sent);
    let service = service_fn(move |request: Request<Body>| {
        *counted.lock().unwrap() += 1;
        let failing = failing(request.uri().path());
        async move {
            let (code, body) = match failing {
                Failing::Connection => return Err(kube::Error::Service("connection refused".into())),
                Failing::Gateway(code) => (code, "<html>no healthy upstream</html>".to_owned()),
                Failing::Never => {
                    (200, json!({"kind": "Status", "status": "Success", "metadata": {}}).to_string())
                }
            };
            Ok(Response::builder().status(code).body(Body::from(body.into_bytes())).unwrap())
        }
    });
    let (stores, mut taken) = mpsc::channel(16);
    let reader = tokio::spawn(async move { while taken.recv().await.is_some() {} });
    let delete = |n: usize| aviary_engine::install::Delete {
        cluster: ClusterName::parse(&format!("c{n:04}")).unwrap(),
        uid: "one".into(),
        why: aviary_engine::explain::Removal::Deselected,
    };
    let plan = Plan::of_deletes((0..1000).map(delete).collect());
    let (history, fence, departed) = Default::default();
    let job = Job { target: target("5"), plan, history, fence, departed };
    let tally = executor(Client::new(service, "default"), stores).execute(job).await;
    reader.await.unwrap();
    let sent = *sent.lock().unwrap();
    (sent, tally)
}

#[tokio::test]
async fn a_hub_that_goes_away_in_a_wave_is_not_asked_for_the_rest() {
    for failing in [Failing::Connection, Failing::Gateway(502), Failing::Gateway(503), Failing::Gateway(504)]
    {
        let (sent, tally) = deletions(move |_| failing).await;
        assert!(sent <= 64, "at most what was under way is sent: {sent}");
        assert_eq!((tally.written, tally.failed), (0, 1000), "all are tried again");
    }
}

#[tokio::test]
async fn a_write_that_always_fails_stops_no_other() {
    for failing in [Failing::Connection, Failing::Gateway(504)] {
        let at = move |path: &str| match path.contains("/c0000/") || path.contains("/c0500/") {
            true => failing,
            false => Failing::Never,
        };
        let (sent, tally) = deletions(at).await;
        assert_eq!((sent, tally.written, tally.failed), (1000, 998, 2));
    }
}

#[tokio::test]
async fn to_fence_off_again_changes_every_instance_again() {
    let sent = Sent::default();
    let client = hub(&sent);
    let (stores, mut taken) = mpsc::channel(16);
    let executor = executor(client, stores);
    let fence = [(ClusterName::parse("c1").unwrap(), Text::from("one"))];
    // Between the two the earlier leader has reserved another wave, from what the first had left.
    for resource_version in ["5", "6"] {
        let mut tally = Tally::default();
        executor.fence_off(&target(resource_version), &fence, &mut tally).await;
        assert_eq!(tally.conflicts, 1, "the add-on was not as it had been seen");
    }
    let sent = sent.lock().unwrap();
    let touched: Vec<&String> =
        sent.iter().filter(|(path, _)| path.contains("/namespaces/c1/")).map(|(_, body)| body).collect();
    assert_eq!(touched.len(), 2);
    assert_ne!(touched.first(), touched.last(), "the same patch again would change nothing");
    assert!(taken.try_recv().is_ok(), "the stores get what was written");
}
