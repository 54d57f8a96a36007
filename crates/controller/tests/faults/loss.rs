//! What is taken away from a hub in the middle of things, and put back a little later: a kind, a namespace.

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
        Self { objects: objects.iter().map(as_put).collect(), going, held: None }
    }

    /// A namespace goes, and something in it takes its time.
    pub(crate) async fn of_namespace(hand: &Hand) -> Self {
        let going = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LOST_NAMESPACE}});
        if hand.find(&going).await.is_none() {
            return Self { objects: Vec::new(), going, held: None };
        }
        let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "held", "namespace": LOST_NAMESPACE, "finalizers": ["example.com/held"],
        }});
        hand.put(&held).await;
        hand.delete(&going).await;
        let held = Some(format!("/api/v1/namespaces/{LOST_NAMESPACE}/configmaps/held"));
        Self { objects: vec![going.clone()], going, held }
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
    }
}

/// An object as its user would put it there again.
fn as_put(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|part, _| ["name", "namespace", "labels", "annotations"].contains(&part.as_str()));
    object.as_object_mut().unwrap().remove("status");
    object
}
