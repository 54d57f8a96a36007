//! Takes the rows of a group through the same life, side by side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::Value;

use super::gate::Gate;
use super::hands::Hands;
use super::healthy;
use super::row::{Admission, Outcome, Row};
use super::site::Site;
use crate::counting::Counts;
use crate::world::{World, names};

/// How many rows go on at once.
const AT_ONCE: usize = 16;
/// More passes than it takes to come to rest, by far.
const PASSES: usize = 6;

struct Case {
    row: Row,
    site: Arc<Site>,
}

/// All rows, on a hub of their own beside an add-on in good health.
pub(super) async fn all(rows: Vec<Row>) {
    let world = Arc::new(World::new().await);
    let hands = Arc::new(Hands::start(&world.client));
    let gate = Gate::of("addondeploymentconfigs");
    let counts = Counts::default();
    let cases: Vec<Case> = rows
        .into_iter()
        .enumerate()
        .map(|(index, row)| {
            let number = format!("{:02}", index + 1);
            let clusters = names(&format!("c{number}-"), 1..=row.clusters, 1);
            let site = Site {
                world: Arc::clone(&world),
                hands: Arc::clone(&hands),
                gate: gate.clone(),
                counts: counts.clone(),
                input: row.input,
                number,
                clusters,
            };
            Case { row, site: Arc::new(site) }
        })
        .collect();

    // All is well.
    healthy::prepare(&world).await;
    side_by_side(&cases, async |case| {
        case.site.prepare().await;
        for object in (case.row.before)(&case.site) {
            case.site.world.put_whole(object).await;
        }
    })
    .await;
    let manager = world.manager("before");
    healthy::until_installed(&world).await;
    side_by_side(&cases, async |case| {
        if case.row.installed {
            let all = case.site.clusters.len();
            case.site.until_message(&format!("{all}/{all} install completed with no errors.")).await;
        }
    })
    .await;
    manager.stop().await;

    // What is bad is refused, or was there before it could be.
    side_by_side(&cases, async |case| case.is_admitted_as_said().await).await;
    store(&world, &cases).await;

    // And somebody has to live with it.
    let manager = world.manager_through(counts.client(&gate.client(&world.managers)), "beside");
    let beside = side_by_side(&cases, async |case| {
        if let Some(act) = &case.row.acts {
            act(Arc::clone(&case.site)).await;
        }
        match case.row.outcome {
            Outcome::Says(text) => case.site.until_says(&(case.row.at)(&case.site), text).await,
            Outcome::Does(_) => assert!(case.row.acts.is_some(), "{}: nothing shows it", case.row.input),
        }
    });
    futures_util::join!(healthy::upgrade(&world), beside);
    manager.stop().await;
    rest(&world).await;
    assert_no_promise_broken(&world).await;

    // What is mended heals.
    let manager = world.manager("after");
    side_by_side(&cases, async |case| {
        if let Some(mend) = &case.row.mends {
            mend(Arc::clone(&case.site)).await;
        }
    })
    .await;
    manager.stop().await;
    assert_no_promise_broken(&world).await;
}

async fn side_by_side(cases: &[Case], each: impl AsyncFn(&Case)) {
    stream::iter(cases).for_each_concurrent(AT_ONCE, |case| each(case)).await;
}

impl Case {
    /// Puts what is bad without keeping it: the last is what is judged.
    async fn is_admitted_as_said(&self) {
        let Self { row, site } = self;
        let bad = (row.bad)(site);
        let Some(judged) = bad.last() else { return };
        let answer = site.world.try_store(judged, true).await;
        match (row.admission, answer) {
            (Admission::Taken, Ok(())) => {}
            (Admission::Taken, Err(error)) => panic!("{}: refused: {error}", row.input),
            (Admission::Refused(why), Err(kube::Error::Api(status))) => {
                let why = site.filled(why);
                assert!(status.code == 422 && status.message.contains(&why), "{}: {status:?}", row.input);
            }
            (Admission::Refused(_), answer) => panic!("{}: not refused: {answer:?}", row.input),
            (Admission::Never(_), _) => panic!("{}: what nobody can store is not stored", row.input),
        }
    }
}

/// Stores what is bad; what is refused with all schemas laid open for so long.
async fn store(world: &World, cases: &[Case]) {
    let kinds: Vec<String> = cases
        .iter()
        .filter(|case| matches!(case.row.admission, Admission::Refused(_)))
        .flat_map(|case| (case.row.bad)(&case.site).last().map(crd_of))
        .collect();
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    for kind in kinds {
        if !schemas.contains_key(&kind) {
            schemas.insert(kind.clone(), world.loosen(&kind).await);
        }
    }
    side_by_side(cases, async |case| {
        for object in (case.row.bad)(&case.site) {
            match case.row.admission {
                Admission::Refused(_) => world.put_soon(&object).await,
                _ => world.put_whole(object).await,
            }
        }
    })
    .await;
    for (kind, schema) in schemas {
        world.tighten(&kind, schema).await;
    }
}

fn crd_of(object: &Value) -> String {
    let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap();
    format!("{}s.{group}", object["kind"].as_str().unwrap().to_lowercase())
}

/// Comes to an end: after a few passes one writes nothing, nor does one an hour later.
async fn rest(world: &World) {
    let mut written = Vec::new();
    for pass in 0..PASSES {
        written = pass_at(world, &format!("pass-{pass}"), Duration::ZERO).await;
        if written.is_empty() {
            break;
        }
    }
    assert!(written.is_empty(), "no rest: {written:#?}");
    let later = pass_at(world, "later", Duration::from_secs(3600)).await;
    assert!(later.is_empty(), "no rest in an hour: {later:#?}");
}

/// What one pass over everything has written.
async fn pass_at(world: &World, identity: &str, later: Duration) -> Vec<String> {
    let counts = Counts::default();
    let clock = Arc::new(move || Timestamp::now() + later);
    let manager = world.manager_at(counts.client(&world.managers), identity, clock);
    manager.first_pass().await;
    manager.stop().await;
    counts.committed()
}

/// The manager holds every plan against what it promises, and leaves alone what would break it: it must never have come to that.
async fn assert_no_promise_broken(world: &World) {
    let events: Api<Event> = Api::all(world.client.clone());
    let all = events.list(&ListParams::default()).await.unwrap();
    let broken: Vec<_> =
        all.iter().filter(|event| event.reason.as_deref() == Some("InvariantBroken")).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
