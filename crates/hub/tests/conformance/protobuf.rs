//! Protobuf bodies: kubectl and typed Go clients send these for built-in kinds, and do not fall
//! back on 415.

use serde_json::json;

use crate::answer::Answer;
use crate::check::{Check, checks};
use crate::objects::{configmap, uid_of};
use crate::world::{World, fresh};

pub fn checks() -> Vec<Check> {
    checks![
        a_configmap_can_be_created_in_protobuf,
        a_secret_can_be_created_in_protobuf,
        a_namespace_can_be_created_in_protobuf,
        a_lease_can_be_created_and_updated_in_protobuf,
        an_event_can_be_created_in_protobuf,
        delete_options_can_be_sent_in_protobuf,
        an_access_review_can_be_asked_for_in_protobuf,
        a_protobuf_body_without_its_magic_is_refused,
    ]
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A message under construction: fields are written in the order of the calls.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn text(self, field: u64, value: &str) -> Message {
        self.bytes(field, value.as_bytes())
    }

    fn message(self, field: u64, value: Message) -> Message {
        self.bytes(field, &value.0)
    }

    fn number(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    /// An entry of a map.
    fn entry(self, field: u64, key: &str, value: &str) -> Message {
        self.message(field, Message::default().text(1, key).text(2, value))
    }

    /// The envelope in which Kubernetes sends a message of this type.
    fn envelope(self, api_version: &str, kind: &str) -> Vec<u8> {
        let kind = Message::default().text(1, api_version).text(2, kind);
        let body = Message::default().message(1, kind).message(2, self).text(3, "").text(4, "");
        [b"k8s\0".as_slice(), &body.0].concat()
    }
}

/// ObjectMeta as Go encodes it, including empty strings.
fn metadata(name: &str) -> Message {
    let meta = Message::default()
        .text(1, name)
        .text(2, "")
        .text(3, "")
        .text(4, "")
        .text(5, "")
        .text(6, "")
        .number(7, 0);
    meta.message(8, Message::default()).entry(11, "color", "red").entry(12, "note", "of protobuf")
}

async fn send(w: &World, method: &str, path: &str, body: Vec<u8>) -> Answer {
    w.send(method, path, &[("content-type", PROTOBUF), ("accept", "application/json")], body).await
}

async fn a_configmap_can_be_created_in_protobuf(w: World) {
    let body =
        Message::default().message(1, metadata("a")).entry(2, "k", "v").entry(3, "b", "raw").number(4, 0);
    let made = send(&w, "POST", &w.configmaps(), body.envelope("v1", "ConfigMap")).await.created();
    assert_eq!(
        (&made["data"], &made["binaryData"], &made["immutable"]),
        (&json!({"k": "v"}), &json!({"b": "cmF3"}), &false.into())
    );
    assert_eq!(
        (&made["metadata"]["labels"], &made["metadata"]["annotations"]),
        (&json!({"color": "red"}), &json!({"note": "of protobuf"}))
    );
}

async fn a_secret_can_be_created_in_protobuf(w: World) {
    let body =
        Message::default().message(1, metadata("a")).entry(2, "k", "v").text(3, "Opaque").entry(4, "l", "w");
    let made = send(&w, "POST", &w.core("secrets"), body.envelope("v1", "Secret")).await.created();
    assert_eq!((&made["data"], &made["type"]), (&json!({"k": "dg==", "l": "dw=="}), &"Opaque".into()));
}

async fn a_namespace_can_be_created_in_protobuf(w: World) {
    let name = fresh("wired");
    w.forget_later(&format!("/api/v1/namespaces/{name}"));
    let empty = Message::default().text(1, "");
    let body =
        Message::default().message(1, metadata(&name)).message(2, Message::default()).message(3, empty);
    let made = send(&w, "POST", "/api/v1/namespaces", body.envelope("v1", "Namespace")).await.created();
    assert_eq!(
        (&made["status"]["phase"], &made["metadata"]["labels"]["color"]),
        (&"Active".into(), &"red".into())
    );
}

async fn a_lease_can_be_created_and_updated_in_protobuf(w: World) {
    let path = w.apis("coordination.k8s.io/v1", "leases");
    // 2024-05-06T07:08:09.123456Z
    let time = || Message::default().number(1, 1_714_979_289).number(2, 123_456_000);
    let spec = |who: &str| {
        Message::default().text(1, who).number(2, 15).message(3, time()).message(4, time()).number(5, 1)
    };
    let body = Message::default().message(1, metadata("a")).message(2, spec("me"));
    let made = send(&w, "POST", &path, body.envelope("coordination.k8s.io/v1", "Lease")).await.created();
    let told = json!({
        "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 1,
        "acquireTime": "2024-05-06T07:08:09.123456Z", "renewTime": "2024-05-06T07:08:09.123456Z",
    });
    assert_eq!(made["spec"], told);
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let meta = Message::default().text(1, "a").text(3, &w.ns).text(5, &uid_of(&made)).text(6, version);
    let body = Message::default().message(1, meta).message(2, spec("you"));
    let new =
        send(&w, "PUT", &format!("{path}/a"), body.envelope("coordination.k8s.io/v1", "Lease")).await.ok();
    assert_eq!((&new["spec"]["holderIdentity"], new["metadata"].get("labels")), (&"you".into(), None));
}

async fn an_event_can_be_created_in_protobuf(w: World) {
    let about = Message::default().text(1, "ConfigMap").text(2, &w.ns).text(3, "a").text(5, "v1");
    let time = Message::default().number(1, 1_714_979_289).number(2, 0);
    let event =
        Message::default().message(1, metadata("a")).message(2, about).text(3, "Tested").text(4, "a text");
    let source = Message::default().text(1, "conformance").text(2, "");
    let event = event.message(5, source).message(6, time).number(8, 3).text(9, "Normal");
    let made = send(&w, "POST", &w.core("events"), event.envelope("v1", "Event")).await.created();
    assert_eq!(
        (&made["reason"], &made["message"], &made["count"]),
        (&"Tested".into(), &"a text".into(), &3.into())
    );
    assert_eq!(
        (&made["involvedObject"]["name"], &made["firstTimestamp"]),
        (&"a".into(), &"2024-05-06T07:08:09Z".into())
    );
    assert_eq!((&made["type"], &made["source"]["component"]), (&"Normal".into(), &"conformance".into()));
}

async fn delete_options_can_be_sent_in_protobuf(w: World) {
    let made = w.post(&w.configmaps(), &configmap("a", json!({}))).await.created();
    let options = |uid: &str| {
        Message::default().number(1, 0).message(2, Message::default().text(1, uid)).text(4, "Background")
    };
    let wrong = options("11111111-1111-1111-1111-111111111111").envelope("v1", "DeleteOptions");
    send(&w, "DELETE", &w.configmap("a"), wrong)
        .await
        .refused(409, "Conflict")
        .says("the UID in the precondition");
    // Typed clients set the group of the object here.
    let right = options(&uid_of(&made)).envelope("v1", "DeleteOptions");
    assert_eq!(send(&w, "DELETE", &w.configmap("a"), right).await.ok()["status"], "Success");
}

async fn an_access_review_can_be_asked_for_in_protobuf(w: World) {
    let attributes =
        Message::default().text(1, &w.ns).text(2, "list").text(3, "").text(4, "v1").text(5, "configmaps");
    let body = Message::default()
        .message(1, Message::default())
        .message(2, Message::default().message(1, attributes));
    let body = body
        .message(3, Message::default().number(1, 0))
        .envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview");
    let answer =
        send(&w, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).await.created();
    assert_eq!(
        (&answer["status"]["allowed"], &answer["spec"]["resourceAttributes"]["verb"]),
        (&true.into(), &"list".into())
    );
}

async fn a_protobuf_body_without_its_magic_is_refused(w: World) {
    let answer = send(&w, "POST", &w.configmaps(), b"no magic".to_vec()).await;
    answer.refused(400, "BadRequest");
}
