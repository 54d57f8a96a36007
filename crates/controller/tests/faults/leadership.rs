//! The Lease and the terms on add-ons: how strangers spoil them, and what must hold of them at rest
//! (H3).

use aviary_api::names::annotations::{MANAGER_IDENTITY, MANAGER_TERM};
use aviary_controller::LEASE;
use aviary_engine::problem::Problem;
use serde_json::{Value, json};

use crate::hand::{Hand, KINDS};
use crate::world::NAMESPACE;

/// What the name of every manager begins with.
pub(crate) const MANAGERS: &str = "manager-";
/// By so much a copied term is higher than that of the Lease.
const AHEAD: u64 = 1000;

/// What an add-on says of a copied term begins so.
const IS_ODD: &str = "the annotation addon.open-cluster-management.io/manager-term is ";

/// A term that the Lease must get above.
#[derive(Clone, Debug)]
pub(crate) struct Surpass {
    term: u64,
    /// The manager that has seen it: a later one need not know of it.
    by: Option<usize>,
    /// The add-ons that it is on; without them nobody need know of it.
    on: Vec<Value>,
}

fn path() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}")
}

async fn term(hand: &Hand) -> u64 {
    let lease = hand.get(&path()).await.unwrap_or_default();
    lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0) + 1
}

/// Somebody deletes the Lease. Its holder has seen it.
pub(crate) async fn remove_lease(hand: &Hand, holder: usize) -> Surpass {
    let seen = Surpass { term: term(hand).await, by: Some(holder), on: Vec::new() };
    hand.delete(&json!({"kind": "Lease", "metadata": {"name": LEASE, "namespace": NAMESPACE}})).await;
    seen
}

/// Somebody resets the Lease as if nobody had ever led: in place, or as another object. It may have
/// no holder then.
pub(crate) async fn reset_lease(hand: &Hand, holder: usize, again: bool, released: bool) -> Surpass {
    let seen = Surpass { term: term(hand).await, by: Some(holder), on: Vec::new() };
    let Some(lease) = hand.get(&path()).await else { return seen };
    let mut spec = lease["spec"].clone();
    spec["leaseTransitions"] = json!(0);
    if released {
        spec["holderIdentity"] = json!("");
    }
    if again {
        let another = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
            "metadata": {"name": LEASE, "namespace": NAMESPACE},
        });
        hand.delete(&another).await;
        hand.put(&another).await;
    } else {
        hand.patch(&path(), &json!({"spec": spec})).await;
    }
    seen
}

/// Somebody copies a term to every add-on that the Lease has not reached, and could.
pub(crate) async fn copy_term(hand: &Hand) -> Surpass {
    let copied = term(hand).await + AHEAD;
    let mut on = Vec::new();
    for addon in hand.list(&KINDS[0]).await {
        let path = format!("{}/{}", KINDS[0].path(), addon["metadata"]["name"].as_str().unwrap());
        let annotations = json!({MANAGER_TERM: copied.to_string(), MANAGER_IDENTITY: "elsewhere"});
        hand.patch(&path, &json!({"metadata": {"annotations": annotations}})).await;
        on.push(addon["metadata"]["uid"].clone());
    }
    Surpass { term: copied, by: None, on }
}

/// What is wrong with the terms at a rest, where this manager leads.
pub(crate) async fn broken(hand: &Hand, leader: Option<usize>, surpass: &[Surpass]) -> Option<String> {
    let term = term(hand).await;
    let addons = hand.list(&KINDS[0]).await;
    let matters = |one: &&Surpass| match one.by {
        Some(by) => leader == Some(by),
        None => addons.iter().any(|addon| one.on.contains(&addon["metadata"]["uid"])),
    };
    if let Some(seen) = surpass.iter().filter(matters).find(|seen| term <= seen.term) {
        return Some(format!("H3: the Lease is at term {term}, which is not above {}", seen.term));
    }
    addons.iter().find_map(|addon| {
        let annotation = |name: &str| addon["metadata"]["annotations"][name].as_str().unwrap_or_default();
        let entered: u64 = annotation(MANAGER_TERM).parse().ok()?;
        (annotation(MANAGER_IDENTITY).starts_with(MANAGERS) && entered > term).then(|| {
            format!("H3: {} is at term {entered}, and the Lease at {term}", addon["metadata"]["name"])
        })
    })
}

/// What an add-on says of a term that was copied to it, if that is true.
pub(crate) fn odd_term(addon: &Value) -> Option<Problem> {
    let conditions = addon["status"]["conditions"].as_array()?;
    let valid = conditions.iter().find(|condition| condition["type"] == "Valid")?;
    let (_, said) = valid["message"].as_str()?.split_once(IS_ODD)?;
    let mut numbers = said.split(|letter: char| !letter.is_ascii_digit()).filter_map(|one| one.parse().ok());
    let (term, own): (u64, u64) = (numbers.next()?, numbers.next()?);
    let is: u64 = addon["metadata"]["annotations"][MANAGER_TERM].as_str()?.parse().ok()?;
    (term == is && own < term).then_some(Problem::TermUnreached { term, own })
}

/// Whether an add-on is as it should be, but for saying that its term was copied.
pub(crate) fn differs_only_in_odd_term(is: &Value, should: &Value) -> bool {
    let mut is = is.clone();
    let conditions = is.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter(|condition| condition["type"] == "Valid") {
        let message = condition["message"].as_str().unwrap_or_default();
        let Some((before, said)) = message.split_once(IS_ODD) else { continue };
        let after = said.split_once("remove it").map_or("", |(_, after)| after);
        let others = format!("{before}{after}");
        let others = others.trim_matches(|letter| "; ".contains(letter));
        if others.is_empty() {
            condition["status"] = json!("True");
            condition["reason"] = json!("Valid");
            condition["message"] = json!("the spec is valid");
        } else {
            condition["message"] = json!(others);
        }
    }
    is == *should
}
