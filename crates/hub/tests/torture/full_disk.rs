//! A full disk: writes fail, reads continue, and when there is room again, everything acknowledged
//! is there.
//!
//! The test runs in a separate process, because the limit on file sizes, which works everywhere, is
//! per process. If a process can have its own mounts, the test also runs on a real file system that
//! is full.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use aviary_hub::{Hub, HubOptions};
use futures_util::StreamExt;
use futures_util::future::join_all;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::support::{Place, config_map, is_code, listed, maps, revision, within};

const DIRECTORY: &str = "AVIARY_TORTURE_FULL_DISK";
const MOUNTED: &str = "AVIARY_TORTURE_MOUNTED";

/// Runs the test under a shell script, as `"$@"`.
fn told(place: &Place, script: &str, mounted: bool) -> (bool, String) {
    let mut child = Command::new("sh");
    child
        .args(["-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::the_story_of_a_full_disk", "--nocapture"])
        .env(DIRECTORY, place.path());
    if mounted {
        child.env(MOUNTED, "1");
    }
    let child = child.output().unwrap();
    let output =
        [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (child.status.success() && output.contains("the story has ended well"), output)
}

#[test]
fn a_limit_on_the_file_refuses_writes_and_nothing_else_and_the_hub_recovers() {
    // A process that ignores the signal gets an error instead; ignored signals are inherited.
    let (well, output) = told(&Place::new(), "trap '' XFSZ; exec \"$@\"", false);
    assert!(well, "{output}");
}

#[test]
fn a_full_file_system_refuses_writes_and_nothing_else_and_the_hub_recovers() {
    let mount = format!("mount -t tmpfs -o size=12m none \"${DIRECTORY}\"");
    let may_mount = format!("unshare -rm sh -c '{mount}'");
    let place = Place::new();
    let tried = Command::new("sh").args(["-c", &may_mount]).env(DIRECTORY, place.path()).output().unwrap();
    if !tried.status.success() {
        println!("no mounts here: the other test has told the story");
        return;
    }
    let script = format!("exec unshare -rm sh -c '{mount} && exec \"$@\"' sh \"$@\"");
    let (well, output) = told(&place, &script, true);
    assert!(well, "{output}");
}

/// Fills the disk.
fn fill(directory: &Path) {
    if std::env::var_os(MOUNTED).is_none() {
        let size = std::fs::metadata(directory.join("hub.redb")).unwrap().len();
        let maximum = getrlimit(Resource::Fsize).maximum;
        setrlimit(Resource::Fsize, Rlimit { current: Some(size), maximum }).unwrap();
        return;
    }
    let mut filler = std::fs::File::create(directory.join("filler")).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while filler.write_all(&vec![0; size]).is_ok() {}
    }
}

/// Frees the disk.
fn free(directory: &Path) {
    if std::env::var_os(MOUNTED).is_none() {
        let maximum = getrlimit(Resource::Fsize).maximum;
        setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum }).unwrap();
        return;
    }
    std::fs::remove_file(directory.join("filler")).unwrap();
}

#[test]
fn the_story_of_a_full_disk() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(within("the story ends", story(Path::new(&directory))));
    println!("the story has ended well");
}

async fn story(directory: &Path) {
    let hub = Hub::open(directory, HubOptions::default()).await.unwrap();
    let api = maps(&hub.client());
    let post = PostParams::default();
    let large = |name: &str| config_map(name, &[("text", "x".repeat(60_000))]);
    let mut acknowledged = BTreeMap::new();
    api.create(&post, &config_map("first", &[("n", "1".into())])).await.unwrap();
    let (_, began) = listed(&api).await;
    let mut events = Box::pin(api.watch(&WatchParams::default(), &began.to_string()).await.unwrap());

    for time in 0..3 {
        // Fills the disk until there is no room.
        fill(directory);
        let mut refused = false;
        for number in 0..10_000 {
            let name = format!("t{time}-{number}");
            match api.create(&post, &large(&name)).await {
                Ok(made) => drop(acknowledged.insert(name, revision(&made))),
                Err(kube::Error::Api(status)) => {
                    assert_eq!((status.code, status.reason.as_str()), (500, "InternalError"), "{status:?}");
                    refused = true;
                    break;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused, "the disk never filled up");

        // Many concurrent writes fail one by one; nothing hangs, and none of them is visible or
        // counts as "no change".
        let name = |number: usize| format!("lost{time}-{number}");
        let creates = (0..32).map(|number| {
            let (api, post) = (&api, &post);
            async move {
                let made = api.create(post, &large(&name(number))).await;
                let patch = Patch::Merge(json!({"data": {"text": "x".repeat(60_000)}}));
                let patched = api.patch(&name(number), &PatchParams::default(), &patch).await;
                (number, made, patched)
            }
        });
        for (number, made, patched) in join_all(creates).await {
            assert!(is_code(&made, 500), "{made:?}");
            assert!(is_code(&patched, 404) || is_code(&patched, 500), "{patched:?}");
            assert!(api.get_opt(&name(number)).await.unwrap().is_none());
        }
        let (mut found, newest) = listed(&api).await;
        found.remove("first");
        assert_eq!(found, acknowledged, "reads go on");

        // Room again.
        free(directory);
        let made = api.create(&post, &large(&format!("again{time}"))).await.unwrap();
        assert!(revision(&made) > newest);
        acknowledged.insert(made.name_any(), revision(&made));
        let gone = format!("t{time}-0");
        if acknowledged.remove(&gone).is_some() {
            api.delete(&gone, &DeleteParams::default()).await.unwrap();
        }
    }

    // Watchers got what was acknowledged, and nothing else.
    let marker = api.create(&post, &config_map("zz-marker", &[])).await.unwrap();
    acknowledged.insert(marker.name_any(), revision(&marker));
    let mut told = BTreeMap::new();
    while !told.contains_key("zz-marker") {
        match events.next().await.unwrap().unwrap() {
            WatchEvent::Added(map) | WatchEvent::Modified(map) => told.insert(map.name_any(), revision(&map)),
            WatchEvent::Deleted(map) => told.remove(&map.name_any()),
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(told, acknowledged);
    let (before, newest) = listed(&api).await;
    drop(events);
    hub.stop().await;
    drop((api, hub));

    let hub = Hub::open(directory, HubOptions::default()).await.unwrap();
    let api = maps(&hub.client());
    assert_eq!(listed(&api).await.0, before);
    let made = api.create(&post, &config_map("last", &[])).await.unwrap();
    assert!(revision(&made) > newest);
    hub.stop().await;
}
