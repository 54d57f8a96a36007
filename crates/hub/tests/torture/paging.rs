//! Large lists, page by page, during concurrent writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aviary_hub::{Hub, HubOptions};
use aviary_testing::Random;
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};

use crate::support::{FakeClock, config_map, ephemeral, is_code, listed, maps, revision, within};

const OBJECTS: usize = 10_000;
const PAGE: u32 = 500;

async fn fill(api: &Api<ConfigMap>, count: usize) {
    let post = PostParams::default();
    let creates = stream::iter(0..count)
        .map(|number| {
            let map = config_map(&format!("m{number:05}"), &[("n", "0".into())]);
            let (api, post) = (api, &post);
            async move { api.create(post, &map).await }
        })
        .buffer_unordered(64);
    creates.try_for_each(|_| async { Ok(()) }).await.unwrap();
}

/// Creates, changes and deletes until it is stopped.
async fn churn(api: Api<ConfigMap>, seed: u64, end: Arc<AtomicBool>) {
    let mut random = Random::new(seed);
    while !end.load(Ordering::Relaxed) {
        let name = format!("m{:05}", random.below(OBJECTS * 5 / 4));
        let map = config_map(&name, &[("n", random.number().to_string())]);
        // Any of these may conflict with another one.
        let _ = match random.below(3) {
            0 => api.delete(&name, &DeleteParams::default()).await.map(drop),
            1 => api.replace(&name, &PostParams::default(), &map).await.map(drop),
            _ => api.create(&PostParams::default(), &map).await.map(drop),
        };
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_a_list_are_the_objects_of_one_revision_whatever_is_written_meanwhile() {
    let hub = ephemeral(HubOptions { events_kept: 5_000, ..HubOptions::default() }).await;
    let api = maps(&hub.client());
    fill(&api, OBJECTS).await;
    let (mut model, began) = listed(&api).await;
    let events = api.watch(&WatchParams::default(), &began.to_string()).await.unwrap();
    let end = Arc::new(AtomicBool::new(false));
    let churning: Vec<_> =
        (0..4).map(|seed| tokio::spawn(churn(api.clone(), seed, Arc::clone(&end)))).collect();
    // The history from a second source.
    let (first, mut read) = {
        let mut events = Box::pin(events);
        let first = events.next().await.unwrap().unwrap();
        (first, events)
    };
    let history = tokio::spawn(async move {
        let mut history = vec![first];
        while let Some(event) = read.next().await {
            match event.unwrap() {
                WatchEvent::Added(map) if map.name_any() == "the-end" => break,
                event => history.push(event),
            }
        }
        history
    });

    let mut params = ListParams::default().limit(PAGE);
    let (mut items, mut pages, mut listed_at) = (BTreeMap::new(), Vec::new(), None);
    loop {
        let page = within("a page", api.list(&params)).await.unwrap();
        for map in &page.items {
            assert!(items.insert(map.name_any(), revision(map)).is_none(), "{} came twice", map.name_any());
        }
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        pages.push((items.len(), page.items.len(), page.metadata.remaining_item_count));
        let of: u64 = page.metadata.resource_version.unwrap().parse().unwrap();
        assert_eq!(*listed_at.get_or_insert(of), of, "all pages are of the first one's revision");
        match next {
            Some(token) => params.continue_token = Some(token),
            None => break,
        }
    }
    end.store(true, Ordering::Relaxed);
    for ended in churning {
        ended.await.unwrap();
    }
    api.create(&PostParams::default(), &config_map("the-end", &[])).await.unwrap();

    let listed_at = listed_at.unwrap();
    let mut written_since = 0;
    for event in within("the history ends", history).await.unwrap() {
        match event {
            WatchEvent::Added(map) | WatchEvent::Modified(map) if revision(&map) <= listed_at => {
                model.insert(map.name_any(), revision(&map));
            }
            WatchEvent::Deleted(map) if revision(&map) <= listed_at => drop(model.remove(&map.name_any())),
            WatchEvent::Error(status) => panic!("{status:?}"),
            _ => written_since += 1,
        }
    }
    assert!(written_since > 0, "nothing was written while the list went on");
    assert!(items == model, "the pages are not the objects of revision {listed_at}");
    let total = items.len();
    let (last, others) = pages.split_last().unwrap();
    for (so_far, on_page, remaining) in others {
        assert_eq!(*on_page, PAGE as usize);
        assert_eq!(*remaining, Some((total - so_far) as i64));
    }
    assert_eq!(last.2, None);
    assert_eq!(pages.len(), total.div_ceil(PAGE as usize));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_whose_state_is_forgotten_is_gone() {
    let clock = FakeClock::default();
    let options = HubOptions { clock: clock.clock(), events_kept: 50, ..HubOptions::default() };
    let hub: Hub = ephemeral(options).await;
    let api = maps(&hub.client());
    fill(&api, 120).await;
    let page = api.list(&ListParams::default().limit(10)).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    let next = ListParams::default().limit(10).continue_token(&token);
    assert_eq!(api.list(&next).await.unwrap().items[0].name_any(), "m00010");
    for number in 0..60 {
        let map = config_map("m00000", &[("n", format!("later {number}"))]);
        api.replace("m00000", &PostParams::default(), &map).await.unwrap();
    }
    assert_eq!(api.list(&next).await.unwrap().items[0].name_any(), "m00010", "kept, although the log is not");
    clock.forward(3600);
    // A state is dropped when another is kept.
    api.list(&ListParams::default().limit(10)).await.unwrap();
    let gone = api.list(&next).await;
    assert!(is_code(&gone, 410), "{gone:?}");
    let kube::Error::Api(status) = gone.unwrap_err() else { unreachable!() };
    assert_eq!(status.reason, "Expired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_continue_token_that_was_made_up_shows_nothing_that_was_not_asked_for() {
    use base64::Engine;
    let hub = ephemeral(HubOptions::default()).await;
    let client = hub.client();
    fill(&maps(&client), 5).await;
    let system: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    system.create(&PostParams::default(), &config_map("secret", &[])).await.unwrap();
    let (_, newest) = listed(&maps(&client)).await;
    let encode = |text: String| base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(text);
    for (token, code) in [
        (encode(format!(r#"{{"rv":{newest},"after":"","left":99}}"#)), 200),
        (encode(format!(r#"{{"rv":{newest},"after":"aaa","left":0}}"#)), 200),
        (encode(format!(r#"{{"rv":{newest},"after":"default/m00003","left":0}}"#)), 200),
        (encode(format!(r#"{{"rv":{newest},"after":"zzz","left":null}}"#)), 200),
        (encode(r#"{"rv":0,"after":"","left":null}"#.into()), 410),
        (encode(r#"{"rv":1,"after":"","left":null}"#.into()), 410),
        (encode(format!(r#"{{"rv":{},"after":"","left":null}}"#, u64::MAX)), 504),
        (encode(r#"{"rv":-1,"after":""}"#.into()), 400),
        (encode("{}".into()), 400),
        ("%%%".into(), 400),
        ("AAAA".into(), 400),
    ] {
        let answer = maps(&client).list(&ListParams::default().limit(2).continue_token(&token)).await;
        match answer {
            Ok(page) => {
                assert_eq!(code, 200, "{token}");
                assert!(page.items.iter().all(|map| map.namespace().as_deref() == Some("default")));
            }
            Err(kube::Error::Api(status)) => assert_eq!(status.code, code, "{token}"),
            Err(other) => panic!("{other}"),
        }
    }
}
