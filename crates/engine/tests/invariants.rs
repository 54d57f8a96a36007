//! The check of a write finds what it is for: each test breaks one promise.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use crate::story::{Story, cluster};
use aviary_engine::invariants;
use aviary_engine::observed::Observed;
use aviary_engine::plan::{Write, plan};

/// An add-on with two versions that rolls one of them out, and the first write of a kind that its
/// plans make.
fn first_write(version: &str, is_it: fn(&Write) -> bool) -> (Story, Write) {
    let mut story = Story::new();
    story.run(&format!("template v1 v2\n place prod: a1\n rollout prod version={version}"));
    for _ in 0..9 {
        if let Some(write) = plan(&story.world.observed, story.now).writes().find(is_it) {
            return (story, write);
        }
        story.pass();
    }
    panic!("no plan makes such a write");
}

fn rules(before: &Observed, write: &Write, after: &Observed) -> Vec<&'static str> {
    invariants::check(before, write, after).into_iter().map(|broken| broken.rule).collect()
}

#[test]
fn s3_finds_a_work_of_another_revision_than_the_assigned_one() {
    let is_work = |write: &Write| matches!(write, Write::Work(_));
    let (_, stale) = first_write("v1", is_work);
    let (mut story, right) = first_write("v2", is_work);
    let before = story.world.observed.clone();
    assert!(story.world.commit(&right));
    assert_eq!(rules(&before, &right, &story.world.observed), [""; 0]);
    assert!(rules(&before, &stale, &story.world.observed).contains(&"S3"));
}

#[test]
fn s4_finds_a_write_to_the_spec_of_an_instance() {
    let (mut story, write) = first_write("v1", |write| matches!(write, Write::Instance(_)));
    let before = story.world.observed.clone();
    assert!(story.world.commit(&write));
    assert_eq!(rules(&before, &write, &story.world.observed), [""; 0]);
    story.world.observed.instances.get_mut(&cluster("a1")).expect("an instance").version = Some("v2".into());
    assert_eq!(rules(&before, &write, &story.world.observed), ["S4"]);
}
