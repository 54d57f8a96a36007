//! Takes the rows of a group through the same life, side by side.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
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
    let mut failures = side_by_side(&cases, async |case| {
        case.site.prepare().await;
        for object in (case.row.before)(&case.site) {
            case.site.world.put_whole(object).await;
        }
    })
    .await;
    let manager = world.manager("before");
    healthy::until_installed(&world).await;
    failures.extend(
        side_by_side(&cases, async |case| {
            if case.row.installed {
                let all = case.site.clusters.len();
                case.site.until_message(&format!("{all}/{all} install completed with no errors.")).await;
            }
        })
        .await,
    );
    manager.stop().await;

    // What is bad is refused, or was there before it could be.
    failures.extend(side_by_side(&cases, async |case| case.is_admitted_as_said().await).await);
    failures.extend(store(&world, &cases).await);

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
    let ((), failed) = futures_util::join!(healthy::upgrade(&world), beside);
    failures.extend(failed);
    manager.stop().await;
    failures.extend(rest(&world).await);

    // What is mended heals.
    let manager = world.manager("after");
    failures.extend(
        side_by_side(&cases, async |case| {
            if let Some(mend) = &case.row.mends {
                mend(Arc::clone(&case.site)).await;
            }
        })
        .await,
    );
    manager.stop().await;
    assert_no_promise_broken(&world).await;
    assert!(failures.is_empty(), "{} failures:\n\n{}", failures.len(), failures.join("\n\n"));
}

/// Does the same for all, and gives back what went wrong: one row's failure must not hide
/// another's.
async fn side_by_side(cases: &[Case], each: impl AsyncFn(&Case)) -> Vec<String> {
    stream::iter(cases)
        .map(|case| {
            let done = AssertUnwindSafe(each(case)).catch_unwind();
            async move { done.await.err().map(|panic| format!("{}: {}", case.row.input, words(panic))) }
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(async |failure| failure)
        .collect()
        .await
}

fn words(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
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
async fn store(world: &World, cases: &[Case]) -> Vec<String> {
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
    let failures = side_by_side(cases, async |case| {
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
    failures
}

fn crd_of(object: &Value) -> String {
    let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap();
    format!("{}s.{group}", object["kind"].as_str().unwrap().to_lowercase())
}

/// Comes to an end: after a few passes one writes nothing, nor does one an hour later. Gives back
/// what is written for ever.
async fn rest(world: &World) -> Option<String> {
    let mut written = Vec::new();
    for pass in 0..PASSES {
        written = pass_at(world, &format!("pass-{pass}"), Duration::ZERO).await;
        if written.is_empty() {
            break;
        }
    }
    if written.is_empty() {
        written = pass_at(world, "later", Duration::from_secs(3600)).await;
    }
    (!written.is_empty()).then(|| format!("no rest: {written:#?}"))
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

/// The manager holds every plan against what it promises, and leaves alone what would break it: it
/// must never have come to that.
async fn assert_no_promise_broken(world: &World) {
    let events: Api<Event> = Api::all(world.client.clone());
    let all = events.list(&ListParams::default()).await.unwrap();
    let broken: Vec<_> =
        all.iter().filter(|event| event.reason.as_deref() == Some("InvariantBroken")).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
