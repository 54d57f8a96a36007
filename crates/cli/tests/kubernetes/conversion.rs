//! The conversion webhook on a real server: v1beta1 is served while managers are restarted and
//! their certificate authority is replaced, and nothing that was acknowledged is lost.

#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aviary_api::crds::CONVERTED;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::run::{Process, start};
use crate::server::{NAMESPACE, Server, installed, succeeded};

const SECRET: &str = "aviary-conversion";
const ROTATE: &str = "conversion.addon.open-cluster-management.io/rotate";
const WRITERS: usize = 4;

/// A server whose add-on kinds are converted at a port of this machine. Later tests get the kinds
/// as they were.
struct Converting {
    server: Server,
    kubeconfig: String,
    port: u16,
}

impl Converting {
    fn new() -> Self {
        let server = installed("conversion");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut list: Value = serde_json::from_str(&server.aviary("manifests --v1beta1 -o json")).unwrap();
        for object in list["items"].as_array_mut().unwrap() {
            if let Some(config) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
                // The server is not in a cluster network, so there are no Services.
                assert_eq!(config["service"]["name"], "aviary-conversion");
                *config = json!({"url": format!("https://127.0.0.1:{port}/convert")});
            }
        }
        server.kubectl("apply -f -", list.to_string().as_bytes());
        let kubeconfig = server.kubeconfig_of(NAMESPACE, "aviary-manager");
        Self { server, kubeconfig, port }
    }

    fn manager(&self) -> Process {
        let arguments = format!(
            "manager --namespace={NAMESPACE} --kubeconfig {} --conversion 127.0.0.1:{} --conversion-overlap 3 --lease-duration 2 --log warn",
            self.kubeconfig, self.port
        );
        start(&self.server.desk, &arguments)
    }

    fn bundle(&self) -> Vec<String> {
        CONVERTED
            .iter()
            .map(|name| {
                let crd = self.server.get(&format!("crd {name}"));
                let config = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
                config["caBundle"].as_str().unwrap_or_default().to_owned()
            })
            .collect()
    }

    async fn authority(&self, client: &Client) -> String {
        let secret = Api::<Secret>::namespaced(client.clone(), NAMESPACE).get(SECRET).await.unwrap();
        let certificate = secret.data.unwrap_or_default().remove("ca.crt").map(|bytes| bytes.0);
        String::from_utf8(certificate.unwrap_or_default()).unwrap()
    }

    /// Whether whoever trusts only this authority accepts the certificate that is served.
    fn is_served_by(&self, authority: &str) -> bool {
        let file = self.server.desk.path("authority.pem");
        std::fs::write(&file, authority).unwrap();
        let mut curl = Command::new("curl");
        curl.args([
            "-sS",
            "--max-time",
            "10",
            "-d",
            "{}",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--cacert",
        ]);
        curl.arg(&file).arg(format!("https://127.0.0.1:{}/convert", self.port));
        curl.output().unwrap().stdout == b"400"
    }
}

impl Drop for Converting {
    fn drop(&mut self) {
        // Not `kubectl`, which would panic: the test may be panicking already.
        let manifests = self.server.desk.output("manifests").stdout;
        let restored = self.server.try_kubectl("admin.kubeconfig", "apply -f -", &manifests);
        if !std::thread::panicking() {
            succeeded("the kinds as they were", restored);
            let crd = self.server.get(&format!("crd {}", CONVERTED[0]));
            assert_eq!(crd["spec"]["conversion"]["strategy"], "None");
            assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 1);
        }
    }
}

fn addon(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("addon.open-cluster-management.io/{version}"), "kind": "ClusterManagementAddOn",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// Writers that count in v1beta1, and what went wrong.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    written: AtomicUsize,
    failed: AtomicUsize,
}

impl Load {
    /// Writes one number after the other until stopped. Returns the last one that the hub
    /// acknowledged.
    async fn write(self: Arc<Self>, client: Client, name: String) -> usize {
        let api = aviary_testing::api_of(&client, &addon("v1beta1", &name, json!({})));
        let mut last = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let next = last + 1;
            let configs = json!([{"group": "x.io", "resource": "as", "name": "__reserved_no_default__"},
                {"group": "x.io", "resource": "bs", "name": format!("n{next}")}]);
            let patch = Patch::Merge(json!({"spec": {"defaultConfigs": configs}}));
            match api.patch(&name, &PatchParams::default(), &patch).await {
                Ok(stored) => {
                    assert_eq!(stored.data["spec"]["defaultConfigs"], configs);
                    last = next;
                    self.written.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        last
    }

    /// Waits until so many more writes have succeeded.
    async fn progress(&self, more: usize) {
        let goal = self.written.load(Ordering::Relaxed) + more;
        let wait = async {
            while self.written.load(Ordering::Relaxed) < goal {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), wait).await.expect("writes to succeed");
    }

    fn failures(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_versions_are_served_while_managers_restart_and_certificates_change() {
    let hub = Converting::new();
    let client = hub.server.hub().await.client;
    let first = hub.manager();
    hub.server
        .until("the hub to trust the managers", || hub.bundle().iter().all(|bundle| !bundle.is_empty()));

    // What one version writes, the other reads.
    let old = json!({"supportedConfigs": [{"group": "x.io", "resource": "as"}], "addOnConfiguration": {"crName": "old"}});
    hub.server.until("the first conversion", || {
        let made = addon("v1beta1", "probe", json!({})).to_string();
        hub.server.try_kubectl("admin.kubeconfig", "apply -f -", made.as_bytes()).status.success()
    });
    for writer in 0..WRITERS {
        aviary_testing::put(&client, &addon("v1alpha1", &format!("counter-{writer}"), old.clone())).await;
    }

    let load = Arc::new(Load::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(Arc::clone(&load).write(client.clone(), format!("counter-{writer}"))))
        .collect();
    load.progress(40).await;
    assert_eq!(load.failures(), 0, "nothing fails while a manager runs");

    // Rotation: no write fails, and the new authority is used.
    let (authority, bundle) = (hub.authority(&client).await, hub.bundle());
    assert!(hub.is_served_by(&authority));
    // A value that no earlier run on the same server has used.
    let rotation = std::process::id();
    hub.server
        .kubectl(&format!("annotate secret {SECRET} -n {NAMESPACE} --overwrite {ROTATE}=at-{rotation}"), b"");
    let mut rotated = authority.clone();
    for _ in 0..600 {
        rotated = hub.authority(&client).await;
        if rotated != authority && hub.is_served_by(&rotated) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(rotated != authority && hub.is_served_by(&rotated), "the new authority is used");
    assert!(!hub.is_served_by(&authority));
    load.progress(40).await;
    assert_ne!(hub.bundle(), bundle);
    assert_eq!(load.failures(), 0, "nothing fails while certificates change");

    // Restart: writes fail while nobody converts, and go on afterwards. v1alpha1 goes on all the
    // time.
    first.kill();
    let other = addon("v1alpha1", "untouched", json!({}));
    aviary_testing::put(&client, &other).await;
    let second = hub.manager();
    load.progress(40).await;
    let failures = load.failures();
    load.progress(40).await;
    assert_eq!(load.failures(), failures, "nothing fails once a manager runs again");

    load.stop.store(true, Ordering::Relaxed);
    for (writer, task) in writers.into_iter().enumerate() {
        let last = task.await.unwrap();
        assert!(last > 0);
        let name = format!("counter-{writer}");
        let stored =
            aviary_testing::api_of(&client, &addon("v1alpha1", &name, json!({}))).get(&name).await.unwrap();
        let spec = &stored.data["spec"];
        assert_eq!(spec["supportedConfigs"][1]["defaultConfig"]["name"], format!("n{last}"), "{spec}");
        assert_eq!(spec["addOnConfiguration"], json!({"crName": "old"}), "kept for v1alpha1");
    }
    second.stop("TERM");
    for name in ["probe", "untouched", "counter-0", "counter-1", "counter-2", "counter-3"] {
        let api = aviary_testing::api_of(&client, &addon("v1alpha1", name, json!({})));
        api.delete(name, &Default::default()).await.unwrap();
    }
}
