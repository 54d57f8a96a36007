//! Fencing off an earlier leader.
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
    }
}

#[tokio::test]
async fn to_fence_off_again_changes_every_instance_again() {
    let sent = Sent::default();
    let client = hub(&sent);
    let (stores, mut taken) = mpsc::channel(16);
    let executor = Executor {
        client: client.clone(),
        namespace: "default".into(),
        limit: WriteLimit::default(),
        stores,
        term: Term { number: 2, handed_over_by: None, leases: 0 },
        identity: "later".into(),
        over: Arc::default(),
        voided: Arc::default(),
        events: Events::new(client, "later", Arc::new(|| Timestamp::UNIX_EPOCH)),
    };
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
