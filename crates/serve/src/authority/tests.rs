//! The authority survives restarts and crashes, and damage is reported instead of repaired.

use std::fs;

use super::*;
use tempfile::TempDir;

use crate::testing::{mode_of, names};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn error_of(result: Result<Authority, AuthorityError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_authority_survives_a_restart() {
    let dir = TempDir::new().unwrap();
    let state = dir.path().join("security");
    let first = Authority::open(&state, NOW).unwrap();
    let second = Authority::open(&state, NOW).unwrap();
    assert_eq!(first.pem(), second.pem());
    assert_eq!(first.certificate(), second.certificate());
    let modes = ["", "ca.crt", "ca.key"].map(|name| mode_of(&state.join(name)));
    assert_eq!(modes, [0o700, 0o600, 0o600]);
}

#[test]
fn two_authorities_share_nothing() {
    let (a, b) = (Authority::ephemeral(NOW).unwrap(), Authority::ephemeral(NOW).unwrap());
    assert_ne!(a.certificate(), b.certificate());
}

#[test]
fn a_crash_between_the_two_files_is_completed_with_the_same_key() {
    let dir = TempDir::new().unwrap();
    Authority::open(dir.path(), NOW).unwrap();
    let key = fs::read(dir.path().join("ca.key")).unwrap();
    fs::remove_file(dir.path().join("ca.crt")).unwrap();
    Authority::open(dir.path(), NOW).unwrap();
    assert_eq!(fs::read(dir.path().join("ca.key")).unwrap(), key);
    Authority::open(dir.path(), NOW).unwrap();
}

#[test]
fn damage_is_named_and_nothing_is_overwritten() {
    let truncated = |text: &str| text[..text.len() / 2].to_owned();
    let other = Authority::ephemeral(NOW).unwrap();
    let table: [(&str, String); 6] = [
        ("ca.crt", String::new()),
        ("ca.crt", truncated(other.pem())),
        ("ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into()),
        ("ca.crt", other.pem().to_owned()),
        ("ca.key", String::new()),
        ("ca.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".into()),
    ];
    for (name, contents) in table {
        let dir = TempDir::new().unwrap();
        Authority::open(dir.path(), NOW).unwrap();
        write_private(&dir.path().join(name), contents.as_bytes()).unwrap();
        let before = ["ca.crt", "ca.key"].map(|name| fs::read(dir.path().join(name)).unwrap());
        let error = error_of(Authority::open(dir.path(), NOW));
        assert!(error.contains(name) && error.contains("is damaged"), "{name} {contents:?}: {error}");
        let after = ["ca.crt", "ca.key"].map(|name| fs::read(dir.path().join(name)).unwrap());
        assert_eq!(before, after);
    }
}

#[test]
fn a_certificate_without_its_key_is_an_error() {
    let dir = TempDir::new().unwrap();
    Authority::open(dir.path(), NOW).unwrap();
    fs::remove_file(dir.path().join("ca.key")).unwrap();
    assert!(error_of(Authority::open(dir.path(), NOW)).contains("ca.key is missing"));
    assert_eq!(names(dir.path()), ["ca.crt"]);
}

#[test]
fn an_expired_authority_is_refused_and_a_clock_set_back_is_not() {
    let dir = TempDir::new().unwrap();
    Authority::open(dir.path(), NOW).unwrap();
    let day = SignedDuration::from_hours(24);
    Authority::open(dir.path(), NOW - day * 400).unwrap();
    Authority::open(dir.path(), NOW + AUTHORITY_LIFETIME - day).unwrap();
    let error = error_of(Authority::open(dir.path(), NOW + AUTHORITY_LIFETIME + day));
    assert!(error.contains("ca.crt has expired"), "{error}");
}

#[test]
fn an_absurd_clock_does_not_panic() {
    for now in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
        Authority::ephemeral(now).unwrap();
    }
}

#[test]
fn the_debug_form_does_not_show_the_key() {
    let authority = Authority::ephemeral(NOW).unwrap();
    assert!(!format!("{authority:?}").contains("PRIVATE KEY"));
}
