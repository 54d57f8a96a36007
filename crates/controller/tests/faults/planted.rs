//! Known defects of another manager, imitated by bending what the manager reads and writes: the
//! proof that the oracles see them.
//!
//! Nothing of this is in the manager. Each is what its user would see of that defect.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use aviary_testing::resource_status;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use http::Response;
use serde_json::{Value, json};

use crate::hand::{Hand, KINDS};

const WORKS: &str = "/apis/work.open-cluster-management.io/v1";
const INSTANCES: &str = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Works are rendered from what configs say now, so an edit in place reaches everybody at once.
    F1,
    /// A limit that cannot be read is no limit.
    F2,
    /// When a cluster joins that sorts before those in flight, they are not counted any more: they
    /// pass for settled.
    F3,
    /// A placement that is gone is one that selects nobody.
    F5,
    /// Variables are put into the text of a manifest.
    F6,
    /// A work that is available is healthy, whatever its pods do.
    AvailableIsHealthy,
    /// A work that another manager rendered counts for nothing, so a take-over renders everything
    /// anew.
    TakeOverRewrites,
    /// Every Lease that is written says that nobody has led before.
    TermRestarts,
}

#[derive(Clone, Debug)]
pub(crate) struct Planted {
    defect: Defect,
    joined: Arc<AtomicBool>,
    /// What has reached everybody once. The manager puts it right, and it is not to go on for ever.
    leaked: Arc<Mutex<BTreeSet<String>>>,
}

impl Planted {
    pub(crate) fn new(defect: Defect) -> Self {
        Self { defect, joined: Arc::default(), leaked: Arc::default() }
    }

    /// What the manager writes, as the defect would write it.
    pub(crate) fn write(&self, path: &str, body: Bytes) -> Bytes {
        if self.defect != Defect::F6 || !path.contains("/manifestworks") {
            return body;
        }
        let Ok(mut object) = serde_json::from_slice::<Value>(&body) else { return body };
        if let Some(workload) = object.pointer_mut("/spec/workload")
            && let Ok(torn) = serde_json::from_str(&workload.to_string().replace("\\\"", "\""))
        {
            *workload = torn;
        }
        object.to_string().into()
    }

    /// The Lease that the manager writes, as the defect would write it.
    pub(crate) fn write_lease(&self, body: Bytes) -> Bytes {
        match serde_json::from_slice::<Value>(&body) {
            Ok(mut lease) if self.defect == Defect::TermRestarts => {
                lease["spec"]["leaseTransitions"] = json!(0);
                lease.to_string().into()
            }
            _ => body,
        }
    }

    /// What the manager reads, as the defect would understand it.
    pub(crate) async fn read(
        &self,
        path: &str,
        answer: Response<Body>,
    ) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
        let (parts, body) = answer.into_parts();
        let body = to_bytes(body, usize::MAX).await?;
        let Ok(mut list) = serde_json::from_slice::<Value>(&body) else {
            return Ok(Response::from_parts(parts, Body::from(body)));
        };
        for item in list["items"].as_array_mut().into_iter().flatten() {
            self.bend(path, item);
        }
        Ok(Response::from_parts(parts, Body::from(list.to_string())))
    }

    pub(crate) fn event(&self, path: &str, frame: Bytes) -> Bytes {
        let Ok(mut event) = serde_json::from_slice::<Value>(&frame) else { return frame };
        if self.defect == Defect::F5 && path.ends_with("/placements") && event["type"] == "DELETED" {
            event["type"] = json!("MODIFIED");
            let counted = json!({
                "type": "PlacementSatisfied", "status": "False", "reason": "NoManagedClusterMatched", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            event["object"]["status"] = json!({"numberOfSelectedClusters": 0, "conditions": [counted]});
        }
        if self.defect == Defect::F5 && path.ends_with("/placementdecisions") && event["type"] == "DELETED" {
            event["type"] = json!("MODIFIED");
            event["object"]["status"] = json!({"decisions": []});
        }
        self.bend(path, &mut event["object"]);
        format!("{event}\n").into()
    }

    fn bend(&self, path: &str, object: &mut Value) {
        match self.defect {
            Defect::F2 if path.contains("/clustermanagementaddons") => {
                let placements = object.pointer_mut("/spec/installStrategy/placements");
                for placement in placements.and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(limit) =
                        placement.pointer_mut("/rolloutStrategy/rollingUpdate/maxConcurrentlyUpdating")
                        && [json!(0), json!(-1), json!("0%")].contains(limit)
                    {
                        *limit = json!("100%");
                    }
                }
            }
            Defect::TakeOverRewrites if path.contains("/manifestworks") => {
                let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
                if let Some(annotations) = annotations
                    && !annotations.contains_key(aviary_api::names::annotations::RENDERED_FROM)
                {
                    annotations.clear();
                }
            }
            Defect::AvailableIsHealthy if path.contains("/manifestworks") => {
                let objects = resource_status(object, true);
                if let Some(reported) = object.pointer_mut("/status/resourceStatus") {
                    *reported = objects;
                }
            }
            Defect::F3 if path.ends_with("/managedclusters") && object["metadata"]["name"] == "a0" => {
                self.joined.store(true, Ordering::Relaxed);
            }
            Defect::F3 if path.contains("/managedclusteraddons") && self.joined.load(Ordering::Relaxed) => {
                let references = object.pointer_mut("/status/configReferences");
                for one in references.and_then(Value::as_array_mut).into_iter().flatten() {
                    one["lastAppliedConfigSpecHash"] = one["desiredConfigSpecHash"].clone();
                    one["lastAppliedConfig"] = one["desiredConfig"].clone();
                }
            }
            Defect::F3 if path.contains("/manifestworks") && self.joined.load(Ordering::Relaxed) => {
                let generation = object["metadata"]["generation"].clone();
                let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
                for one in conditions.into_iter().flatten() {
                    one["observedGeneration"] = generation.clone();
                }
                let objects = resource_status(object, true);
                if let Some(reported) = object.pointer_mut("/status/resourceStatus") {
                    *reported = objects;
                }
            }
            _ => {}
        }
    }

    /// What the defect writes beside what the manager does.
    pub(crate) async fn after(&self, router: &Router, path: &str) {
        let Some((_, place)) = path.split_once("/namespaces/") else { return };
        let hand = Hand::new(router.clone());
        if self.defect == Defect::F3 && place == "a0/managedclusteraddons" {
            // What it knows of the others it looks up anew.
            for one in hand.list(&KINDS[1]).await {
                let cluster = one["metadata"]["namespace"].as_str().unwrap();
                let note = json!({"metadata": {"annotations": {"looked-up": "anew"}}});
                hand.patch(&format!("{INSTANCES}/{cluster}/managedclusteraddons/helloworld"), &note).await;
                hand.patch(
                    &format!("{WORKS}/namespaces/{cluster}/manifestworks/addon-helloworld-deploy-0"),
                    &note,
                )
                .await;
            }
        }
        let Some((cluster, name)) = place.split_once("/manifestworks/").filter(|_| self.defect == Defect::F1)
        else {
            return;
        };
        let Some(written) = hand.get(path).await else { return };
        if !self.leaked.lock().unwrap().insert(written["spec"].to_string().replace(cluster, "")) {
            return;
        }
        let all = hand.get(&format!("{WORKS}/manifestworks")).await.unwrap();
        for other in
            all["items"].as_array().into_iter().flatten().filter(|one| one["metadata"]["name"] == name)
        {
            let to = other["metadata"]["namespace"].as_str().unwrap();
            let text = written["spec"]["workload"].to_string().replace(cluster, to);
            let patch = json!({"spec": {"workload": serde_json::from_str::<Value>(&text).unwrap()}});
            hand.patch(&format!("{WORKS}/namespaces/{to}/manifestworks/{name}"), &patch).await;
        }
    }
}
