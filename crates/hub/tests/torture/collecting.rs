//! Garbage collection with concurrent writes.

use std::time::Duration;

use aviary_hub::{Hub, HubOptions};
use futures_util::StreamExt;
use futures_util::future::{join, join_all};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::ResourceExt;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent,
    WatchParams,
};
use serde_json::json;

use crate::support::{FakeClock, Place, config_map, ephemeral, is_code, maps, within};

/// Waits until only these objects are left. Waits for changes only, never for time.
async fn until_only(api: &Api<ConfigMap>, expected: &[&str]) {
    let names = |maps: Vec<ConfigMap>| -> Vec<String> { maps.iter().map(ResourceExt::name_any).collect() };
    let wait = async {
        loop {
            let list = api.list(&ListParams::default()).await.unwrap();
            let newest = list.metadata.resource_version.clone().unwrap();
            if names(list.items) == expected {
                return;
            }
            let mut events = Box::pin(api.watch(&WatchParams::default(), &newest).await.unwrap());
            assert!(!matches!(events.next().await, None | Some(Ok(WatchEvent::Error(_)))));
        }
    };
    within(&format!("only {expected:?} are left"), wait).await;
}

fn owner(map: &ConfigMap, blocks: bool) -> OwnerReference {
    OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: map.name_any(),
        uid: map.uid().unwrap(),
        block_owner_deletion: Some(blocks),
        ..OwnerReference::default()
    }
}

fn owned(name: &str, owners: Vec<OwnerReference>) -> ConfigMap {
    let metadata =
        ObjectMeta { name: Some(name.into()), owner_references: Some(owners), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dependent_that_is_made_while_its_owner_goes_does_not_stay_behind() {
    let hub = ephemeral(HubOptions::default()).await;
    let api = maps(&hub.client());
    let post = PostParams::default();
    for round in 0..30 {
        let made = api.create(&post, &config_map(&format!("owner{round}"), &[])).await.unwrap();
        let policy = match round % 2 {
            0 => DeleteParams::background(),
            _ => DeleteParams::foreground(),
        };
        let dependents = (0..8).map(|number| {
            let dependent = owned(&format!("d{round}-{number}"), vec![owner(&made, true)]);
            let (api, post) = (api.clone(), post.clone());
            tokio::spawn(async move { api.create(&post, &dependent).await.map(drop) })
        });
        let name = made.name_any();
        let (created, deleted) = join(join_all(dependents), api.delete(&name, &policy)).await;
        deleted.unwrap();
        for created in created {
            created.unwrap().unwrap();
        }
    }
    until_only(&api, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dependent_that_is_freed_while_its_owner_goes_stays() {
    let hub = ephemeral(HubOptions::default()).await;
    let api = maps(&hub.client());
    let post = PostParams::default();
    let mut freed_names = Vec::new();
    for round in 0..200 {
        let made = api.create(&post, &config_map("owner", &[])).await.unwrap();
        let name = format!("d{round:03}");
        api.create(&post, &owned(&name, vec![owner(&made, false)])).await.unwrap();
        let free = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
        let free_params = PatchParams::default();
        let (freed, deleted) = join(
            {
                let (api, name) = (api.clone(), name.clone());
                tokio::spawn(async move { api.patch(&name, &free_params, &free).await })
            },
            api.delete("owner", &DeleteParams::background()),
        )
        .await;
        deleted.unwrap();
        match freed.unwrap() {
            Ok(_) => freed_names.push(name),
            Err(error) => assert!(is_code(&Err::<(), _>(error), 404)),
        }
    }
    let names: Vec<&str> = freed_names.iter().map(String::as_str).collect();
    until_only(&api, &names).await;
    // Everything that the collector still had to examine comes before this one.
    api.create(&post, &owned("zz", vec![owner(&made_up(), false)])).await.unwrap();
    until_only(&api, &names).await;
}

fn made_up() -> ConfigMap {
    let mut map = config_map("never-was", &[]);
    map.metadata.uid = Some("00000000-0000-4000-8000-000000000000".into());
    map
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_two_owners_outlives_the_first_however_that_one_goes() {
    let hub = ephemeral(HubOptions::default()).await;
    let api = maps(&hub.client());
    let post = PostParams::default();
    for policy in [PropagationPolicy::Foreground, PropagationPolicy::Background, PropagationPolicy::Orphan] {
        let first = api.create(&post, &config_map("first", &[])).await.unwrap();
        let second = api.create(&post, &config_map("second", &[])).await.unwrap();
        let owners = vec![owner(&first, true), owner(&second, true)];
        api.create(&post, &owned("shared", owners)).await.unwrap();
        let params = DeleteParams { propagation_policy: Some(policy.clone()), ..DeleteParams::default() };
        api.delete("first", &params).await.unwrap();
        until_only(&api, &["second", "shared"]).await;
        // Its owner is deleted; the reference may be removed slightly later.
        let wait = async {
            loop {
                let shared = api.list(&ListParams::default()).await.unwrap();
                let newest = shared.metadata.resource_version.clone().unwrap();
                let map = shared.items.iter().find(|map| map.name_any() == "shared").unwrap().clone();
                assert_eq!(map.metadata.deletion_timestamp, None, "{policy:?}");
                if map.owner_references().len() == 1 {
                    return;
                }
                let mut events = Box::pin(api.watch(&WatchParams::default(), &newest).await.unwrap());
                events.next().await.unwrap().unwrap();
            }
        };
        within("the dead owner is forgotten", wait).await;
        api.delete("second", &DeleteParams::foreground()).await.unwrap();
        until_only(&api, &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_deleted_under_concurrent_creates_leaves_nothing() {
    let place = Place::new();
    let hub = Hub::open(place.path(), HubOptions::default()).await.unwrap();
    let client = hub.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let post = PostParams::default();
    for round in 0..5 {
        let name = format!("doomed{round}");
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let made = namespaces.create(&post, &namespace).await.unwrap();
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &name);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &name);
        api.create(&post, &config_map("there-before", &[])).await.unwrap();
        let writers = (0..16).map(|writer| {
            let (api, secrets) = (api.clone(), secrets.clone());
            tokio::spawn(async move {
                for number in 0..10_000 {
                    let name = format!("w{writer}-{number}");
                    let created = if number % 2 == 0 {
                        api.create(&PostParams::default(), &config_map(&name, &[])).await.map(drop)
                    } else {
                        let secret = json!({"metadata": {"name": name}, "stringData": {"k": "v"}});
                        let secret: Secret = serde_json::from_value(secret).unwrap();
                        secrets.create(&PostParams::default(), &secret).await.map(drop)
                    };
                    match created {
                        Ok(()) => {}
                        Err(kube::Error::Api(status)) => {
                            assert!(matches!(status.code, 403 | 404), "{status:?}");
                            return;
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                panic!("the namespace took objects for ever");
            })
        });
        let writers: Vec<_> = writers.collect();
        tokio::task::yield_now().await;
        namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        for writer in within("the writers are refused", join_all(writers)).await {
            writer.unwrap();
        }
        let gone = async {
            let newest = made.resource_version().unwrap();
            let params = WatchParams::default().fields(&format!("metadata.name={name}"));
            let mut events = Box::pin(namespaces.watch(&params, &newest).await.unwrap());
            while !matches!(events.next().await.unwrap().unwrap(), WatchEvent::Deleted(_)) {}
        };
        within("the namespace goes", gone).await;
        assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
        assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
        // A new one of the same name starts empty, also after a restart.
        namespaces.create(&post, &namespace).await.unwrap();
        assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
    }
    hub.stop().await;
    drop((hub, client, namespaces));
    let hub = Hub::open(place.path(), HubOptions::default()).await.unwrap();
    let everywhere: Api<ConfigMap> = Api::all(hub.client());
    assert!(everywhere.list(&ListParams::default()).await.unwrap().items.is_empty());
    hub.stop().await;
}

/// The next start finishes what a crash interrupted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_the_end_of_a_hub_interrupted_is_finished_by_the_next() {
    let place = Place::new();
    let post = PostParams::default();
    for _ in 0..10 {
        let hub = Hub::open(place.path(), HubOptions::default()).await.unwrap();
        let api = maps(&hub.client());
        until_only(&api, &[]).await;
        let made = api.create(&post, &config_map("owner", &[])).await.unwrap();
        let creates = (0..20).map(|number| {
            let dependent = owned(&format!("d{number}"), vec![owner(&made, true)]);
            let (api, post) = (&api, &post);
            async move { api.create(post, &dependent).await.unwrap() }
        });
        join_all(creates).await;
        api.delete("owner", &DeleteParams::foreground()).await.unwrap();
        hub.stop().await;
        drop((api, hub));
    }
    let hub = Hub::open(place.path(), HubOptions::default()).await.unwrap();
    until_only(&maps(&hub.client()), &[]).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_expire_by_the_hubs_clock_and_not_before() {
    let clock = FakeClock::default();
    let lifetime = Duration::from_secs(600);
    let options = HubOptions { clock: clock.clock(), event_lifetime: lifetime, ..HubOptions::default() };
    let hub = ephemeral(options).await;
    let events: Api<Event> = Api::namespaced(hub.client(), "default");
    let create = async |name: &str, last: Option<jiff::Timestamp>| {
        let event = Event {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            involved_object: ObjectReference {
                namespace: Some("default".into()),
                ..ObjectReference::default()
            },
            last_timestamp: last.map(Time),
            ..Event::default()
        };
        events.create(&PostParams::default(), &event).await.unwrap();
    };
    let names = async || -> Vec<String> {
        hub.expire_events().await;
        events.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    };
    create("early", None).await;
    create("seen-again", Some(hub.now() + jiff::SignedDuration::from_secs(300))).await;
    clock.forward(300);
    create("late", None).await;
    assert_eq!(names().await, ["early", "late", "seen-again"]);
    clock.forward(300);
    assert_eq!(names().await, ["early", "late", "seen-again"], "to the second, and not before");
    clock.forward(1);
    assert_eq!(names().await, ["late", "seen-again"]);
    clock.forward(300);
    assert_eq!(names().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_that_wait_for_each_other_go_whoever_of_them_is_deleted() {
    let hub = ephemeral(HubOptions::default()).await;
    let api = maps(&hub.client());
    let names = ["a", "b", "c", "d"];
    // The owners of each object: a ring; and a ring with an extra edge in which one object owns
    // itself.
    let ring = [vec![3], vec![0], vec![1], vec![2]];
    let tangle = [vec![3], vec![0, 3], vec![1, 2], vec![2]];
    for (owners, deleted) in [(&ring, &names[..1]), (&ring, &names[1..3]), (&ring, &names), (&tangle, &names)]
    {
        let mut made = Vec::new();
        for name in names {
            made.push(api.create(&PostParams::default(), &config_map(name, &[])).await.unwrap());
        }
        for (name, owners) in names.iter().zip(owners) {
            let owners: Vec<_> = owners.iter().map(|by: &usize| owner(&made[*by], true)).collect();
            let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owners}}));
            api.patch(name, &PatchParams::default(), &patch).await.unwrap();
        }
        let deletions = deleted.iter().map(|name| {
            let api = api.clone();
            async move { api.delete(name, &DeleteParams::foreground()).await }
        });
        for answer in join_all(deletions).await {
            // Another deletion may already have deleted it.
            assert!(answer.is_ok() || is_code(&answer, 404), "{answer:?}");
        }
        until_only(&api, &[]).await;
    }
}
