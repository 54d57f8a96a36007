use serde_json::json;

use super::*;

fn sections() -> Sections {
    Sections {
        heading: Heading { name: "hello".into(), display_name: "Hello".into(), description: None },
        progress: RolloutProgress {
            state: Verdict::Progressing,
            message: "It rolls out.".into(),
            settled: 1,
            in_flight: 0,
            failed: 0,
            waiting: 0,
            leaving: 0,
            version: None,
            oldest_wait_since: None,
            paused: false,
        },
        placements: Vec::new(),
        problems: Vec::new(),
        brake: Some(BrakeLine { held: 2, message: "held".into(), acknowledge: "2".into() }),
        reasons: Vec::new(),
        revisions: vec![RevisionLine::sample("v1", 3), RevisionLine::sample("v2", 0)],
        events: Vec::new(),
    }
}

#[test]
fn what_is_the_same_is_not_told() {
    let new = sections();
    assert!(AddOnDelta::between(&sections(), &new).is_empty());
}

#[test]
fn a_section_that_became_empty_is_told() {
    let new = Sections { brake: None, ..sections() };
    let delta = AddOnDelta::between(&sections(), &new);
    assert!(!delta.is_empty());
    assert_eq!(json!(delta), json!({"now": "", "brake": null}));
}

#[test]
fn of_revisions_only_the_counts_are_told_where_nothing_else_changed() {
    let told = |revisions: Vec<RevisionLine>| {
        let new = Sections { revisions, ..sections() };
        let delta = json!(AddOnDelta::between(&sections(), &new));
        (delta["revisionClusters"].clone(), delta["revisions"].as_array().map(Vec::len))
    };
    let line = RevisionLine::sample;
    assert_eq!(told(vec![line("v1", 1), line("v2", 2)]), (json!([1, 2]), None));
    assert_eq!(told(vec![line("v1", 3)]), (json!(null), Some(1)));
    assert_eq!(told(vec![line("v1", 3), line("v3", 0)]), (json!(null), Some(2)));
}

#[test]
fn the_dictionary_has_the_names_that_messages_have() {
    use ClusterKind::{Failed, InFlight, Leaving, Settled, Waiting};
    for kind in [Settled, InFlight, Failed, Waiting, Leaving] {
        assert_eq!(json!(kind), kind.name());
    }
}
