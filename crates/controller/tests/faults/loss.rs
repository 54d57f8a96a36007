//! What is taken away from a hub in the middle of things, and put back a little later: a kind, a
//! namespace.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::hand::{Hand, KINDS};

/// The cluster whose namespace goes, and the kind whose CRD does.
pub(crate) const LOST_NAMESPACE: &str = "c1";
const LOST_CRD: &str = "addonhubconfigs.addon.open-cluster-management.io";
const TICK: Duration = Duration::from_millis(250);

/// What is to be put back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    objects: Vec<Value>,
    /// What is on its way out.
    going: Value,
    /// What holds it up.
    held: Option<String>,
    /// What users chose for the instances that go with it.
    choices: Vec<Value>,
}

impl Loss {
    /// A kind goes with everything of it.
    pub(crate) async fn of_crd(hand: &Hand) -> Self {
        let going = json!({"kind": "CustomResourceDefinition", "metadata": {"name": LOST_CRD}});
        let mut objects: Vec<Value> = hand.find(&going).await.into_iter().collect();
        objects.extend(hand.list(&KINDS[7]).await.into_iter().map(|mut config| {
            config["kind"] = json!(KINDS[7].2);
            config["apiVersion"] = json!("addon.open-cluster-management.io/v1alpha1");
            config
        }));
        hand.delete(&going).await;
        Self { objects: objects.iter().map(as_put).collect(), going, held: None, choices: Vec::new() }
    }

    /// A namespace goes, and something in it takes its time.
    pub(crate) async fn of_namespace(hand: &Hand) -> Self {
        let going = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LOST_NAMESPACE}});
        if hand.find(&going).await.is_none() {
            return Self { objects: Vec::new(), going, held: None, choices: Vec::new() };
        }
        let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "held", "namespace": LOST_NAMESPACE, "finalizers": ["example.com/held"],
        }});
        let instances = hand.list(&KINDS[1]).await.into_iter();
        let choices =
            instances.filter(|one| one["metadata"]["namespace"] == LOST_NAMESPACE && is_chosen(one));
        let choices = choices.map(|one| {
            json!({"kind": KINDS[1].2, "spec": one["spec"],
                "metadata": {"name": one["metadata"]["name"], "namespace": LOST_NAMESPACE}})
        });
        let choices = choices.collect();
        hand.put(&held).await;
        hand.delete(&going).await;
        let held = Some(format!("/api/v1/namespaces/{LOST_NAMESPACE}/configmaps/held"));
        Self { objects: vec![going.clone()], going, held, choices }
    }

    /// Puts back what was lost, as its users would.
    pub(crate) async fn restore(&self, hand: &Hand) {
        sleep(Duration::from_secs(5)).await;
        if let Some(held) = &self.held {
            hand.patch(held, &json!({"metadata": {"finalizers": null}})).await;
        }
        let begun = Instant::now();
        while hand.find(&self.going).await.is_some() && begun.elapsed() < Duration::from_secs(60) {
            sleep(TICK).await;
        }
        for object in &self.objects {
            hand.put(object).await;
            sleep(TICK).await;
        }
        for choice in &self.choices {
            let begun = Instant::now();
            while hand.find(choice).await.is_none() && begun.elapsed() < Duration::from_secs(60) {
                sleep(TICK).await;
            }
            hand.put(choice).await;
        }
    }
}

/// Its user has said what it is to have.
fn is_chosen(instance: &Value) -> bool {
    ["configs", "desiredVersion", "installVersion"].iter().any(|part| !instance["spec"][*part].is_null())
}

/// An object as its user would put it there again.
fn as_put(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|part, _| ["name", "namespace", "labels", "annotations"].contains(&part.as_str()));
    object.as_object_mut().unwrap().remove("status");
    object
}
