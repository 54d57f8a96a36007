//! Many writers of one object: no write is lost, whichever way they write.

use std::collections::BTreeMap;
use std::future::Future;

use aviary_hub::{Hub, HubOptions};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{Place, config_map, is_code, maps, within};

const WRITERS: usize = 40;
const TURNS: usize = 15;

/// Runs all writers concurrently, and returns the final content of the object.
async fn after_all<F: Future<Output = ()> + Send + 'static>(
    turn: impl Fn(Api<ConfigMap>, usize, usize) -> F + Clone + Send + Sync + 'static,
) -> BTreeMap<String, String> {
    let place = Place::new();
    let hub = Hub::open(place.path(), HubOptions::default()).await.unwrap();
    let api = maps(&hub.client());
    api.create(&PostParams::default(), &config_map("one", &[("n", "0".into())])).await.unwrap();
    let writers = (0..WRITERS).map(|writer| {
        let (turn, api) = (turn.clone(), api.clone());
        tokio::spawn(async move {
            for count in 0..TURNS {
                turn(api.clone(), writer, count).await;
            }
        })
    });
    for ended in within("all writers are done", join_all(writers)).await {
        ended.unwrap();
    }
    let before = api.get("one").await.unwrap();
    hub.stop().await;
    drop((api, hub));
    let hub = Hub::open(place.path(), HubOptions::default()).await.unwrap();
    assert_eq!(maps(&hub.client()).get("one").await.unwrap(), before, "what was read was on disk");
    hub.stop().await;
    before.data.unwrap()
}

fn number(map: &ConfigMap) -> usize {
    map.data.as_ref().unwrap()["n"].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_read_modify_write_loops_lose_nothing() {
    let data = after_all(|api, _, _| async move {
        loop {
            let mut map = api.get("one").await.unwrap();
            let next = number(&map) + 1;
            map.data.as_mut().unwrap().insert("n".into(), next.to_string());
            let replaced = api.replace("one", &PostParams::default(), &map).await;
            if is_code(&replaced, 409) {
                continue;
            }
            assert_eq!(number(&replaced.unwrap()), next);
            return;
        }
    });
    assert_eq!(data.await["n"], (WRITERS * TURNS).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_patches_that_test_what_they_change_lose_nothing() {
    let data = after_all(|api, _, _| async move {
        loop {
            let seen = number(&api.get("one").await.unwrap());
            let patch = json!([
                {"op": "test", "path": "/data/n", "value": seen.to_string()},
                {"op": "replace", "path": "/data/n", "value": (seen + 1).to_string()},
            ]);
            let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
            let patched = api.patch("one", &PatchParams::default(), &patch).await;
            if is_code(&patched, 422) {
                continue;
            }
            assert_eq!(number(&patched.unwrap()), seen + 1);
            return;
        }
    });
    assert_eq!(data.await["n"], (WRITERS * TURNS).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merge_patches_of_different_fields_all_stay_without_a_conflict() {
    let data = after_all(|api, writer, count| async move {
        let patch = Patch::Merge(json!({"data": {format!("writer-{writer}"): count.to_string()}}));
        api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    });
    let data = data.await;
    assert_eq!(data.len(), WRITERS + 1);
    for writer in 0..WRITERS {
        assert_eq!(data[&format!("writer-{writer}")], (TURNS - 1).to_string());
    }
}
