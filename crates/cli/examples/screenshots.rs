//! Takes the pictures for the documentation from a running demo. `hack/screenshots.sh` runs it.
//!
//! Arguments: the aviary binary, and the directory for the pictures. With the URL of a dashboard of
//! real clusters as well, it takes only their picture.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a tool for people who write the documentation: what goes wrong ends it"
)]

#[path = "../tests/browser/driver.rs"]
mod driver;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use driver::{Browser, Screen};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

const WIDE: Screen = Screen { width: 1360, height: 880, ratio: 1.5, dark: false };
/// With a higher resolution, a picture with much text would be too large a file.
const DENSE: Screen = Screen { width: 1440, height: 860, ratio: 1.0, dark: false };
const LOW: Screen = Screen { height: 600, ..WIDE };
const REAL: Screen = Screen { width: 1280, height: 820, ratio: 1.0, dark: false };
const PHONE: Screen = Screen { width: 390, height: 844, ratio: 2.0, dark: false };
/// The maximum size of a picture, in bytes.
const MOST: usize = 300_000;
const GROUP: &str = "addon.open-cluster-management.io/v1alpha1";

/// A slow demo. It ends on drop.
struct Demo {
    child: Child,
    page: String,
    kubeconfig: PathBuf,
}

impl Demo {
    fn start(program: &str) -> Self {
        let mut child = Command::new(program)
            .args(["demo", "--clusters", "500", "--latency", "2s..5s"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = |what: &str| loop {
            let line = lines.next().expect("the demo to say where it is").unwrap();
            if let Some(rest) = line.trim_start().strip_prefix(what) {
                break rest.trim().to_owned();
            }
        };
        let kubeconfig = told("kubeconfig").into();
        let page = told("dashboard");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, page, kubeconfig }
    }

    async fn client(&self) -> Client {
        let read = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Sends SIGTERM, so that it removes its files.
        let _ = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

async fn apply(client: &Client, object: Value) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let params = PatchParams::apply("pictures").force();
    api.patch(text("/metadata/name"), &params, &Patch::Apply(&object)).await.unwrap();
}

/// Creates another add-on for the same fleet.
async fn add_on(client: &Client, name: &str, title: &str, version: &str, placements: Value) {
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "{{INSTALL_NAMESPACE}}"}, "data": {"version": version},
    });
    apply(client, json!({
        "apiVersion": GROUP, "kind": "AddOnTemplate", "metadata": {"name": format!("{name}-{version}")},
        "spec": {"addonName": name, "version": version, "agentSpec": {"workload": {"manifests": [manifest]}}},
    }))
    .await;
    apply(client, json!({
        "apiVersion": GROUP, "kind": "ClusterManagementAddOn", "metadata": {"name": name},
        "spec": {"addOnMeta": {"displayName": title}, "installStrategy": {"type": "Placements", "placements": placements}},
    }))
    .await;
}

/// A placement at a version, with a limit.
fn at(name: &str, version: &str, limit: &str) -> Value {
    json!({
        "name": name, "namespace": "default", "addonTemplate": {"desiredVersion": version},
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxConcurrentlyUpdating": limit}},
    })
}

async fn take(browser: &Browser, directory: &Path, name: &str) {
    let bytes = STANDARD.decode(browser.picture().await).unwrap();
    assert!(bytes.len() < MOST, "{name} has {} bytes, and {MOST} are allowed", bytes.len());
    let path = directory.join(name);
    std::fs::write(&path, &bytes).unwrap();
    eprintln!("{} {} KB", path.display(), bytes.len() / 1024);
}

/// Waits until the squares and the chart are drawn for this screen.
async fn settle(browser: &Browser) {
    browser
        .until(
            "two frames",
            "window.frames2 ??= (requestAnimationFrame(() => requestAnimationFrame(() => { window.frames2 = 2; })), 1); return window.frames2 === 2",
        )
        .await;
    browser.run("delete window.frames2; scrollTo(0, 0)").await;
}

/// The add-on of `docs/tutorial-real.md`, whose canary is in a crash loop.
async fn take_real_clusters(page: &str, directory: &Path) {
    let browser = Browser::start(REAL).await;
    browser.open(page).await;
    browser.until("the list", "return document.querySelector('.addon')").await;
    browser.run("location.hash = '#/addon/greeter'").await;
    browser
        .until("the canary to fail", "return document.querySelector('.addon-view[data-state=Failed]')")
        .await;
    settle(&browser).await;
    take(&browser, directory, "real-clusters.png").await;
    browser.end(&[]).await;
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(program), Some(directory)) = (arguments.next(), arguments.next()) else {
        panic!("give the binary and a directory");
    };
    let directory = PathBuf::from(directory);
    std::fs::create_dir_all(&directory).unwrap();
    if let Some(page) = arguments.next() {
        return take_real_clusters(&page, &directory).await;
    }
    let demo = Demo::start(&program);
    let client = demo.client().await;
    let browser = Browser::start(WIDE).await;
    browser.open(&demo.page).await;
    browser.until("the list", "return document.querySelector('.addon')").await;
    browser.run("location.hash = '#/addon/helloworld'").await;

    // The canary is upgraded while the fleet waits.
    browser
        .until(
            "the canary to be half full",
            "const card = document.querySelector('[data-placement=\"default/canary-placement\"]');
            const gate = document.querySelector('.gate[data-open=no]');
            const done = Number(card.querySelector('.placement-bar .numbers').innerText.split(' ')[0]);
            return gate && !gate.hidden && done >= 40 && done <= 70",
        )
        .await;
    settle(&browser).await;
    take(&browser, &directory, "addon-canary.png").await;
    browser.screen(Screen { dark: true, ..WIDE }).await;
    settle(&browser).await;
    take(&browser, &directory, "addon-canary-dark.png").await;
    browser.screen(PHONE).await;
    settle(&browser).await;
    take(&browser, &directory, "phone.png").await;
    browser.screen(Screen { dark: true, ..PHONE }).await;
    settle(&browser).await;
    take(&browser, &directory, "phone-dark.png").await;
    browser.screen(WIDE).await;

    // The gate is open, and the fleet is upgraded.
    browser
        .until(
            "the fleet to be half full",
            "const card = document.querySelector('[data-placement=\"default/aws-placement\"]');
            const done = Number(card.querySelector('.placement-bar .numbers').innerText.split(' ')[0]);
            return card.querySelector('.gate[data-open=yes]') && done >= 160 && done <= 260",
        )
        .await;
    settle(&browser).await;
    take(&browser, &directory, "addon-fleet.png").await;

    // After the last step, the bad version again, without a rollback.
    // Clusters are not healthy yet in the good upgrade too, so what counts is the version.
    browser
        .until(
            "the bad version",
            "return [...document.querySelectorAll('.wants')].some((one) => one.innerText.includes('wants v0.12.0'))",
        )
        .await;
    browser.until("the way back", "return document.querySelector('.addon-view[data-state=Done]')").await;
    add_on(
        &client,
        "log-forwarder",
        "Log forwarder",
        "v2.4.1",
        json!([at("aws-placement", "v2.4.1", "50%")]),
    )
    .await;
    add_on(
        &client,
        "cert-rotation",
        "Certificate rotation",
        "v1.7.0",
        json!([at("canary-placement", "v1.7.0", "25%")]),
    )
    .await;
    add_on(&client, "policy-agent", "Policy agent", "v3.1.0", json!([at("aws-placement", "v3.1.0", "10%")]))
        .await;
    want(&client, "helloworld-v0.12.0").await;
    browser
        .until("the rollout to halt", "return document.querySelector('.addon-view[data-state=Failed]') && document.querySelector('.legend .key:nth-child(3) .numbers').innerText === '25'")
        .await;
    browser.click(".examples button").await;
    browser.until_text("#panel", "Works").await;
    browser.screen(DENSE).await;
    settle(&browser).await;
    take(&browser, &directory, "halted.png").await;

    // Other add-ons on the same hub, one of them being upgraded.
    browser.screen(LOW).await;
    browser.run("location.hash = '#/'").await;
    browser
        .until(
            "the others to be done",
            "return document.querySelectorAll('.addon[data-state=Done]').length === 3",
        )
        .await;
    add_on(&client, "policy-agent", "Policy agent", "v3.2.0", json!([at("aws-placement", "v3.2.0", "10%")]))
        .await;
    browser
        .until("a rollout to be under way", "const bar = document.querySelector('.addon[data-state=Progressing] .bar'); return bar && Number(bar.firstChild.style.flexGrow) > 60")
        .await;
    settle(&browser).await;
    take(&browser, &directory, "list.png").await;
    browser.end(&[]).await;
}

/// Sets another config in every placement of the demo's add-on.
async fn want(client: &Client, config: &str) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "addon.open-cluster-management.io",
        "v1alpha1",
        "ClusterManagementAddOn",
    ));
    let addons: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let mut spec = addons.get("helloworld").await.unwrap().data["spec"].take();
    for placement in spec["installStrategy"]["placements"].as_array_mut().unwrap() {
        // Without a deadline, clusters that never get healthy stay in flight.
        placement["rolloutStrategy"]["progressDeadline"] = json!("20s");
        for reference in placement["configs"].as_array_mut().unwrap() {
            if reference["resource"] == "addonhubconfigs" {
                reference["name"] = json!(config);
            }
        }
    }
    let patch = json!({"spec": {"installStrategy": spec["installStrategy"]}});
    addons.patch("helloworld", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}
