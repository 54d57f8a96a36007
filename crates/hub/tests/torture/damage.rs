//! Damaged files: each is refused and left unchanged, or it still contains everything that was
//! written.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use aviary_hub::{DiskError, Hub, HubOptions, OpenError};
use aviary_testing::Random;
use futures_util::future::join_all;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use redb::{Database, TableDefinition};
use serde_json::Value;

use crate::support::{Place, config_map, is_code, maps, within};

const FILE: &str = "hub.redb";
const LOCK: &str = "hub.lock";
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

async fn open(directory: &Path) -> Result<Hub, OpenError> {
    within("a hub opens, or does not", Hub::open(directory, HubOptions::default())).await
}

async fn everything(hub: &Hub) -> BTreeMap<String, Value> {
    let list = maps(&hub.client()).list(&ListParams::default()).await.unwrap();
    list.iter().map(|map| (map.name_any(), serde_json::to_value(map).unwrap())).collect()
}

/// A file with some history, after a clean stop and after a kill; and its content.
struct Sample {
    ended: Vec<u8>,
    killed: Vec<u8>,
    lock: Vec<u8>,
    contents: BTreeMap<String, Value>,
}

async fn sample() -> Sample {
    let place = Place::new();
    let hub = open(place.path()).await.unwrap();
    let api = maps(&hub.client());
    let post = PostParams::default();
    let create = |number: usize| {
        let (api, post) = (api.clone(), post.clone());
        // Some fill several pages.
        let text = "x".repeat(if number.is_multiple_of(9) { 20_000 } else { 100 * number });
        async move { api.create(&post, &config_map(&format!("m{number}"), &[("k", text)])).await.unwrap() }
    };
    join_all((0..40).map(create)).await;
    for number in [3, 18, 30] {
        api.delete(&format!("m{number}"), &DeleteParams::default()).await.unwrap();
    }
    create(99).await;
    let contents = everything(&hub).await;
    // After a kill: everything that was passed to the kernel is in the file.
    let killed = std::fs::read(place.file()).unwrap();
    hub.stop().await;
    drop((api, hub));
    let lock = std::fs::read(place.path().join(LOCK)).unwrap();
    Sample { ended: std::fs::read(place.file()).unwrap(), killed, lock, contents }
}

/// The outcome of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Refused,
    Whole,
}

/// Opens a file and checks that the outcome is honest.
async fn outcome(place: &Place, bytes: &[u8], sample: &Sample, what: &str) -> Outcome {
    std::fs::write(place.file(), bytes).unwrap();
    std::fs::write(place.path().join(LOCK), &sample.lock).unwrap();
    let hub = match open(place.path()).await {
        Ok(hub) => hub,
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains(FILE), "{what}: {message}");
            assert!(matches!(error, OpenError::Disk(DiskError::Damaged { .. })), "{what}: {error:?}");
            assert!(std::fs::read(place.file()).unwrap() == bytes, "{what}: the refused file was changed");
            return Outcome::Refused;
        }
    };
    let mut found = everything(&hub).await;
    assert!(found == sample.contents, "{what}: opened with other objects than were written");
    // The opened store must work.
    let api = maps(&hub.client());
    let made = within(what, api.create(&PostParams::default(), &config_map("later", &[]))).await.unwrap();
    found.insert("later".into(), serde_json::to_value(&made).unwrap());
    within(what, hub.stop()).await;
    drop((api, hub));
    let hub = open(place.path()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(everything(&hub).await, found, "{what}");
    within(what, hub.stop()).await;
    Outcome::Whole
}

/// Each byte of the header in several ways, and a sample of all others.
fn flips(length: usize, steps: usize, random: &mut Random) -> Vec<(usize, u8)> {
    let header = (0..320).map(|offset| (offset, if offset % 2 == 0 { 0xff } else { 1_u8 << (offset % 8) }));
    let god_byte = (0..8).map(|bit| (9, 1 << bit));
    let stride = (length - 320) / steps;
    let rest: Vec<(usize, u8)> =
        (0..steps).map(|step| (320 + step * stride + random.below(stride), 1 << random.below(8))).collect();
    header.chain(god_byte).chain(rest).collect()
}

/// Tries all flips, and counts the outcomes.
async fn sweep(bytes: &[u8], sample: &Sample, steps: usize) -> BTreeMap<Outcome, usize> {
    let place = Place::new();
    let mut counts = BTreeMap::new();
    for (offset, mask) in flips(bytes.len(), steps, &mut Random::new(7)) {
        let mut damaged = bytes.to_vec();
        damaged[offset] ^= mask;
        let what = format!("byte {offset} of {} xor {mask:#x}", bytes.len());
        *counts.entry(outcome(&place, &damaged, sample, &what).await).or_default() += 1;
    }
    println!("{counts:?}");
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_refused_or_changes_nothing() {
    let sample = sample().await;
    let counts = sweep(&sample.ended, &sample, 400).await;
    assert!(counts[&Outcome::Refused] > 100 && counts[&Outcome::Whole] > 100, "{counts:?}");
}

/// The database alone would treat a damaged last change as unfinished, and undo it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_after_a_crash_is_refused_or_changes_nothing_too() {
    let sample = sample().await;
    let counts = sweep(&sample.killed, &sample, 400).await;
    assert!(counts[&Outcome::Refused] > 50 && counts[&Outcome::Whole] > 50, "{counts:?}");
}

/// An older copy lacks acknowledged writes; it can still be used deliberately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_is_refused_until_its_owner_says_that_it_is_meant() {
    let place = Place::new();
    let hub = open(place.path()).await.unwrap();
    hub.stop().await;
    drop(hub);
    let copy = std::fs::read(place.file()).unwrap();
    let hub = open(place.path()).await.unwrap();
    maps(&hub.client()).create(&PostParams::default(), &config_map("later", &[])).await.unwrap();
    hub.stop().await;
    drop(hub);
    std::fs::write(place.file(), &copy).unwrap();
    let error = open(place.path()).await.unwrap_err();
    assert!(matches!(&error, OpenError::Disk(DiskError::Damaged { .. })), "{error:?}");
    assert!(error.to_string().contains(LOCK), "{error}");
    assert!(std::fs::read(place.file()).unwrap() == copy);
    std::fs::remove_file(place.file()).unwrap();
    let error = open(place.path()).await.unwrap_err();
    assert!(error.to_string().contains("not there"), "{error}");
    assert!(!place.file().exists());
    std::fs::write(place.file(), &copy).unwrap();
    std::fs::remove_file(place.path().join(LOCK)).unwrap();
    let hub = open(place.path()).await.unwrap();
    assert!(everything(&hub).await.is_empty());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_cut_off_empty_or_foreign_is_refused_and_left_alone() {
    let sample = sample().await;
    let place = Place::new();
    let mut random = Random::new(3);
    let length = sample.ended.len();
    let mut cases: Vec<(String, Vec<u8>)> = [0, 1, 8, 9, 319, 320, 4095, 4096, 8192, length / 2, length - 1]
        .into_iter()
        .map(|length| (format!("cut to {length}"), sample.ended[..length].to_vec()))
        .collect();
    cases.push(("text".into(), b"not a database at all\n".to_vec()));
    cases.push(("zeros".into(), vec![0; 100_000]));
    cases.push(("noise".into(), random.bytes(100_000)));
    for (what, bytes) in cases {
        assert_eq!(outcome(&place, &bytes, &sample, &what).await, Outcome::Refused, "{what}");
    }
    let longer = [&sample.ended[..], &[0; 100]].concat();
    outcome(&place, &longer, &sample, "longer").await;
}

/// A foreign database in place of ours.
fn foreign(place: &Place, fill: impl FnOnce(&redb::WriteTransaction)) -> Vec<u8> {
    let _ = std::fs::remove_file(place.file());
    let database = Database::create(place.file()).unwrap();
    let transaction = database.begin_write().unwrap();
    fill(&transaction);
    transaction.commit().unwrap();
    drop(database);
    std::fs::read(place.file()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_another_program_or_version_is_refused_and_left_alone() {
    let place = Place::new();
    let empty = foreign(&place, |_| {});
    let error = open(place.path()).await.unwrap_err();
    assert!(matches!(&error, OpenError::Disk(DiskError::Damaged { .. })), "{error:?}");
    assert!(std::fs::read(place.file()).unwrap() == empty);

    const OTHER: TableDefinition<'_, u32, u32> = TableDefinition::new("numbers");
    let other = foreign(&place, |transaction| drop(transaction.open_table(OTHER).unwrap().insert(1, 1)));
    let error = open(place.path()).await.unwrap_err();
    assert!(matches!(&error, OpenError::Disk(DiskError::Damaged { .. })), "{error:?}");
    assert!(std::fs::read(place.file()).unwrap() == other);

    let newer = foreign(&place, |transaction| {
        transaction.open_table(NUMBERS).unwrap().insert("format", 2).unwrap();
    });
    let error = open(place.path()).await.unwrap_err();
    assert!(matches!(&error, OpenError::Disk(DiskError::Format { found: 2, .. })), "{error:?}");
    assert!(error.to_string().contains("another version"), "{error}");
    assert!(std::fs::read(place.file()).unwrap() == newer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_hub_opens_a_directory() {
    let place = Place::new();
    let hub = open(place.path()).await.unwrap();
    let error = open(place.path()).await.unwrap_err();
    assert!(matches!(&error, OpenError::Disk(DiskError::InUse(_))), "{error:?}");
    let api = maps(&hub.client());
    api.create(&PostParams::default(), &config_map("a", &[])).await.unwrap();
    hub.stop().await;
    assert!(is_code(&api.create(&PostParams::default(), &config_map("b", &[])).await, 503));
    drop((api, hub));
    let hub = open(place.path()).await.unwrap();
    assert_eq!(everything(&hub).await.len(), 1);
    hub.stop().await;
}

/// A crash during the creation of the file: what it leaves must not prevent the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_left_of_a_file_that_was_being_made_is_made_anew() {
    let sample = sample().await;
    let place = Place::new();
    for left in [0, 100, 5_000, sample.ended.len()] {
        for made in [FILE, LOCK] {
            let _ = std::fs::remove_file(place.path().join(made));
        }
        std::fs::write(place.path().join("hub.redb.new"), &sample.ended[..left]).unwrap();
        let hub = open(place.path()).await.unwrap();
        assert!(everything(&hub).await.is_empty());
        hub.stop().await;
        assert!(!place.path().join("hub.redb.new").exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_is_no_directory_or_cannot_be_written_is_refused() {
    let place = Place::new();
    std::fs::write(place.path().join("file"), "").unwrap();
    let error = open(&place.path().join("file/hub")).await.unwrap_err();
    assert!(matches!(&error, OpenError::Disk(DiskError::Directory { .. })), "{error:?}");
    // A file system that accepts no files from anyone.
    let error = open(Path::new("/proc/self")).await.unwrap_err();
    let OpenError::Disk(error) = error else { panic!("{error:?}") };
    assert!(matches!(&error, DiskError::Create { .. }), "{error:?}");
    assert!(error.source().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_owner_can_read_the_data() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let directory = place.path().join("data");
    let hub = open(&directory).await.unwrap();
    hub.stop().await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join(FILE)), 0o600);
}
