//! The backlog of requests and the state: bounds, turns, and lists that replace what was known.

use std::sync::Arc;

use aviary_api::ManagedClusterAddOn;
use aviary_engine::hash;
use aviary_registration::backlog::{Backlog, MOST, MOST_PER_USER};
use aviary_registration::decide::{Ignored, RequestDecision};
use aviary_registration::instance::AgentInstance;
use aviary_registration::names::AgentKey;
use aviary_registration::request::{RequestStage, SigningRequest};
use aviary_registration::state::{
    RegistrationState, SeenObject, StateChange, TemplateContent, Want, WatchedKind,
};
use aviary_registration::template::Registrations;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::requests::{draft, now, policy, request};

fn named(name: &str, of: &AgentKey) -> SigningRequest {
    SigningRequest { name: name.into(), uid: name.into(), of: of.clone(), ..request(&draft()) }
}

fn of() -> AgentKey {
    AgentKey::new("c1", "hello")
}

#[test]
fn a_requester_has_few_requests_and_requesters_take_turns() {
    let template = named("x", &of());
    let mut backlog = Backlog::default();
    for number in 0..1000 {
        let request = SigningRequest { name: format!("evil-{number}"), ..template.clone() };
        backlog.put(request, "evil", now());
    }
    backlog.put(SigningRequest { name: "good".into(), ..template.clone() }, "good", now());
    assert_eq!((backlog.len(), backlog.forgotten()), (MOST_PER_USER + 1, 1000 - MOST_PER_USER));
    let first: Vec<String> = (0..2).map(|_| backlog.take_next().unwrap().name).collect();
    assert_eq!(first, ["evil-0", "good"], "one of each");
    for user in 0..MOST {
        backlog.put(
            SigningRequest { name: format!("u-{user}"), ..template.clone() },
            &format!("user {user}"),
            now(),
        );
    }
    assert_eq!(backlog.len(), MOST);
}

#[test]
fn what_did_not_fit_is_looked_for_again_when_there_is_room() {
    let template = named("x", &of());
    let mut backlog = Backlog::default();
    for number in 0..=MOST_PER_USER {
        backlog.put(SigningRequest { name: number.to_string(), ..template.clone() }, "user", now());
    }
    assert!(!backlog.should_list_again(), "some still wait for a decision");
    while backlog.take_next().is_some() {}
    assert!(backlog.should_list_again() && !backlog.should_list_again(), "once");
}

#[test]
fn a_refusal_is_told_once_and_a_decided_request_is_forgotten() {
    let request = named("x", &of());
    let mut backlog = Backlog::default();
    backlog.put(request.clone(), "user", now());
    assert!(backlog.tell("x", "A") && !backlog.tell("x", "A") && backlog.tell("x", "B"));
    assert!(backlog.take_next().is_some() && backlog.take_next().is_none());
    backlog.put(request.clone(), "user", now());
    assert!(backlog.take_next().is_none(), "the same again is no news");
    backlog.reconsider(&of());
    assert_eq!(backlog.take_next().unwrap().name, "x");
    backlog.put(
        SigningRequest { stage: RequestStage::Over { approved_at: Some(now()) }, ..request.clone() },
        "user",
        now(),
    );
    assert!(backlog.is_empty());
    assert_eq!(backlog.recently_approved(&request, now()), 1);
    let later = now() + SignedDuration::from_hours(1);
    assert_eq!(backlog.recently_approved(&request, later), 0);
}

fn instance(template: Option<&hash::Hash>) -> SeenObject {
    let references = match template {
        Some(hash) => json!([{"group": "addon.open-cluster-management.io", "resource": "addontemplates",
            "desiredConfig": {"name": "t", "specHash": hash.as_str()}}]),
        None => json!([]),
    };
    let object: ManagedClusterAddOn = serde_json::from_value(json!({
        "metadata": {"name": "hello", "namespace": "c1", "uid": "u", "resourceVersion": "1"},
        "status": {"configReferences": references},
    }))
    .unwrap();
    SeenObject::Instance(Box::new(AgentInstance::read(&object).unwrap()))
}

fn content(addon: &str) -> (hash::Hash, TemplateContent) {
    let value = json!({"spec": {"addonName": addon, "registration": [{"type": "KubeClient"}]}});
    let hash = hash::spec_hash(&value);
    let registrations = Arc::new(Registrations::read(&value));
    (hash.clone(), TemplateContent { addon: addon.into(), hash, registrations })
}

/// Takes complete lists of every kind.
fn list(state: &mut RegistrationState, objects: &[(WatchedKind, SeenObject)], now: Timestamp) {
    for kind in state.needs() {
        state.take(kind, StateChange::Begin, now);
        for (_, seen) in objects.iter().filter(|(one, _)| *one == kind) {
            state.take(kind, StateChange::Put(seen.clone()), now);
        }
        state.take(kind, StateChange::End, now);
    }
}

#[test]
fn nothing_is_decided_before_everything_is_listed_and_lists_replace_what_was_known() {
    let (hash, content) = content("hello");
    let request = named("x", &of());
    let mut state = RegistrationState::new(policy());
    let all = vec![
        (WatchedKind::Cluster, SeenObject::Cluster("c1".into(), true)),
        (WatchedKind::Instance, instance(Some(&hash))),
        (WatchedKind::Template, SeenObject::Content("t".into(), content)),
        (WatchedKind::Request, SeenObject::Request(Box::new(request.clone()))),
    ];
    for (kind, seen) in &all {
        state.take(*kind, StateChange::Put(seen.clone()), now());
    }
    assert!(!state.is_complete());
    list(&mut state, &all, now());
    assert!(state.is_complete());
    assert_eq!(state.decide(&request, now()), RequestDecision::Approve);
    assert!(matches!(state.want(&of()), Want::Known(_)));

    // An object that cannot be read any more keeps its last known state.
    state.take(WatchedKind::Instance, StateChange::Begin, now());
    state.take(WatchedKind::Instance, StateChange::Unreadable(("c1".into(), "hello".into())), now());
    state.take(WatchedKind::Instance, StateChange::End, now());
    assert_eq!(state.decide(&request, now()), RequestDecision::Approve);

    state.take_dirty();
    list(&mut state, &all[..2], now());
    assert_eq!(state.want(&of()), Want::Unknown, "the template is gone: everything stays as it is");
    assert!(state.take_dirty().contains(&of()));
    list(&mut state, &[], now());
    assert_eq!(state.want(&of()), Want::Nothing);
    assert_eq!(state.decide(&request, now()), RequestDecision::Ignore(Ignored::NotInstalled));
    assert!(state.backlog.is_empty());
}

#[test]
fn a_template_of_another_add_on_and_an_add_on_without_template_grant_nothing() {
    let (hash, content) = content("other");
    let mut state = RegistrationState::new(policy());
    let mut all = vec![
        (WatchedKind::Cluster, SeenObject::Cluster("c1".into(), true)),
        (WatchedKind::Instance, instance(Some(&hash))),
        (WatchedKind::Template, SeenObject::Content("t".into(), content)),
    ];
    list(&mut state, &all, now());
    assert_eq!(state.want(&of()), Want::Unknown);
    all[1].1 = instance(None);
    list(&mut state, &all, now());
    assert_eq!(state.want(&of()), Want::NotOurs);
}
