//! A panic stays with the add-on that it happened to.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::AtomicBool;

use aviary_api::ClusterManagementAddOn;
use aviary_engine::configs::GroupResource;
use aviary_engine::observed::Options;
use aviary_engine::served::Served;
use http::{Request, Response};
use kube::client::Body;
use serde_json::json;
use tower::service_fn;

use super::*;
use crate::leader::Term;
use crate::seen::{Change, ObjectVersion, Watched};
use crate::stores::KindState;

fn addon(name: &str) -> WatchEvent {
    let object: ClusterManagementAddOn = serde_json::from_value(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": {},
    }))
    .unwrap();
    WatchEvent::AddOn(Change::Put(ObjectVersion::of(&object.metadata), object.read().unwrap()))
}

/// A leader that knows the add-ons `bad` and `good`, on a hub that has nothing else, serves no
/// other kinds of add-ons, and never answers. Passes panic while `broken`.
fn leader(broken: &Arc<AtomicBool>) -> Loop {
    let client = Client::new(
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, kube::Error>>()),
        "default",
    );
    let broken = Arc::clone(broken);
    let settings = Settings {
        namespace: "default".into(),
        identity: "only".into(),
        leader_elect: true,
        verify: false,
        placement: false,
        options: Options::default(),
        clock: Arc::new(move || {
            assert!(!broken.swap(false, Ordering::Relaxed), "a panic that is being tried out");
            Timestamp::UNIX_EPOCH
        }),
    };
    let tenure = Tenure::default();
    tenure.renew(Instant::now(), LONG);
    let reporting =
        Reporting { health: watch::Sender::new(ManagerHealth::default()), metrics: Metrics::default() };
    let mut manager = Loop::new(client, settings, reporting, tenure);
    for event in [
        WatchEvent::AddOn(Change::Begin),
        addon("bad"),
        addon("good"),
        WatchEvent::AddOn(Change::End),
        WatchEvent::Instance(Change::End),
        WatchEvent::Work(Change::End),
        WatchEvent::Cluster(Change::End),
        WatchEvent::Placement(Change::End),
        WatchEvent::Decision(Change::End),
        WatchEvent::Revision(Change::End),
        WatchEvent::Served(Served::default()),
    ] {
        manager.stores.take(event);
    }
    for kind in [GroupResource::templates(), GroupResource::policies(), GroupResource::records()] {
        manager.stores.set_kind(kind, Some(KindState::NotServed));
    }
    manager.lead(Leadership::Leading(Term { number: 1, handed_over_by: None, leases: 0 }));
    manager
}

fn plan(manager: &mut Loop) {
    manager.note_changes();
    manager.pass_over_due();
    manager.report_health();
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_panics_is_put_off_and_the_others_go_on() {
    let broken = Arc::new(AtomicBool::new(true));
    let mut manager = leader(&broken);
    let health = manager.reporting.health.subscribe();
    plan(&mut manager);
    tokio::time::advance(QUIET).await;
    plan(&mut manager);
    let bad: Text = "bad".into();
    assert_eq!(manager.unplanned, BTreeSet::from([bad.clone()]), "the other was planned");
    assert_eq!(manager.skipped.get(&bad), Some(&SkipReason::Panicked));
    assert!(!health.borrow().is_ready());
    assert!(manager.stores.addons().any(|known| *known == bad), "nothing was lost of it");
    // Watch events do not make it any sooner.
    manager.stores.mark(&bad);
    plan(&mut manager);
    tokio::time::advance(QUIET).await;
    plan(&mut manager);
    assert_eq!(manager.skipped.len(), 1);
    tokio::time::advance(Duration::from_millis(400)).await;
    plan(&mut manager);
    assert!(manager.skipped.is_empty() && manager.unplanned.is_empty());
    assert!(health.borrow().is_ready());
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_panics_makes_no_other_add_on_idle() {
    let broken = Arc::new(AtomicBool::new(false));
    let mut manager = leader(&broken);
    let (bad, good): (Text, Text) = ("bad".into(), "good".into());
    for addon in [&bad, &good] {
        manager.queue.begin(addon.clone());
        manager.queue.soon(addon.clone(), Duration::ZERO);
    }
    let Err(panic) = contain::<()>(|| panic!("a panic that is being tried out")) else { return };
    manager.record(&bad, Err(panic));
    let free = |addon: &Text| manager.queue.next(|one| one == addon).is_some();
    assert!(free(&bad) && !free(&good), "the other is still being written for");
    assert_eq!(manager.skipped.keys().collect::<Vec<_>>(), [&bad]);
}
