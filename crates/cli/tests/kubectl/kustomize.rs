//! The steps of `examples/kustomize`, as people take them: `kubectl kustomize DIR | kubectl apply
//! -f -`, with a manager at work.

use aviary_api::ClusterManagementAddOn;
use aviary_testing::GIVE_UP;
use futures_util::StreamExt as _;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::path::Path;

use crate::agents::Agents;
use crate::harness::{Hub, Process, hub};
use crate::show;

/// A hub with eight clusters and four canaries, a manager, and agents that do not report yet.
pub(crate) struct World {
    pub(crate) hub: Hub,
    client: Client,
    pub(crate) agents: Agents,
    manager: Option<Process>,
}

impl World {
    pub(crate) async fn new(name: &str) -> Self {
        let mut clusters = String::new();
        let canaries = (1..=4).map(|number| (format!("can{number}"), "{cloud: aws, stage: canary}"));
        for (name, labels) in (1..=8).map(|number| (format!("aws{number}"), "{cloud: aws}")).chain(canaries) {
            clusters.push_str(&format!(
                "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n\
                 apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n\
                 metadata: {{name: {name}, labels: {labels}}}\nspec: {{hubAcceptsClient: true}}\n---\n",
            ));
        }
        let hub = hub(name).file("clusters.yaml", &clusters);
        hub.given("create namespace open-cluster-management\n apply -f clusters.yaml");
        let manager = hub.manager();
        let kubeconfig = Kubeconfig::read_from(hub.desk.path("hub/kubeconfig")).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        Self { hub, agents: Agents::held(&client), client, manager: Some(manager) }
    }

    pub(crate) fn stop_manager(&mut self) {
        self.manager.take().unwrap().stop("TERM");
    }

    pub(crate) fn start_manager(&mut self) {
        self.manager = Some(self.hub.manager());
    }

    /// Applies one of the examples. Returns the name that its config has now.
    pub(crate) fn apply(&self, step: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kustomize").join(step);
        let built = self.hub.output(&format!("kustomize '{}'", folder.display()), b"");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let applied = self.hub.output("apply -f -", &built.stdout);
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        let told = String::from_utf8_lossy(&applied.stdout).into_owned();
        let config = told.lines().find(|line| line.starts_with("addonhubconfig")).unwrap();
        let name = config.split(['/', ' ']).nth(1).unwrap().to_owned();
        assert!(name.starts_with("hub-config-"), "{name}");
        name
    }

    async fn until_told(&self, expected: &str) {
        let expected = show::plain(expected);
        self.until(&expected, |addon| show::plain(&show::placements(addon))).await;
    }

    /// Waits until a part of the add-on, as a text, is this.
    pub(crate) async fn until(&self, expected: &str, part: impl Fn(&Value) -> String) {
        let api: Api<ClusterManagementAddOn> = Api::all(self.client.clone());
        let mut seen = String::new();
        let mut addons = std::pin::pin!(watcher(api, Config::default()).applied_objects());
        let wait = async {
            while seen != expected {
                let addon = addons.next().await.unwrap().unwrap();
                assert_eq!(addon.name_any(), "helloworld");
                seen = part(&json!(addon));
            }
        };
        if tokio::time::timeout(GIVE_UP, wait).await.is_err() {
            panic!("not within {GIVE_UP:?}:\n{expected}\n\nbut:\n{seen}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_install_and_a_rolling_update() {
    let world = World::new("kustomize-rolling").await;
    let xxx = world.apply("fresh-install");
    world
        .until_told(&format!(
            "aws-placement  True Installing  12/12 installing...\n desired {xxx} good - applied -"
        ))
        .await;
    world.agents.let_go();
    let done = "install completed with no errors.";
    world
        .until_told(&format!(
            "aws-placement  False InstallSucceed  12/12 {done}\n desired {xxx} good {xxx} applied {xxx}"
        ))
        .await;
    world.agents.answer(|_| None);
    let yyy = world.apply("rolling-update");
    assert_ne!(xxx, yyy, "the name has the hash of the content");
    world
        .until_told(&format!(
            "aws-placement  True Upgrading  3/12 upgrading...\n desired {yyy} good {xxx} applied {xxx}"
        ))
        .await;
    world.agents.let_go();
    let done = "upgrade completed with no errors.";
    world
        .until_told(&format!(
            "aws-placement  False UpgradeSucceed  12/12 {done}\n desired {yyy} good {yyy} applied {yyy}"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_update_behind_a_canary_and_a_rollback() {
    let world = World::new("kustomize-canary").await;
    let xxx = world.apply("fresh-install");
    world.agents.let_go();
    let done = "install completed with no errors.";
    world
        .until_told(&format!(
            "aws-placement  False InstallSucceed  12/12 {done}\n desired {xxx} good {xxx} applied {xxx}"
        ))
        .await;
    world.agents.answer(|_| None);
    let yyy = world.apply("canary");
    world
        .until_told(&format!(
            "aws-placement  True WaitingForCanary  waitingForCanary... canary default/canary-placement: 4 of 4 not passed, first can1
                desired {yyy} good {xxx} applied {xxx}
            canary-placement  True Upgrading  1/4 upgrading...
                desired {yyy} good - applied -"
        ))
        .await;
    world.agents.let_go_of(|cluster| cluster.starts_with("can"));
    let done = "upgrade completed with no errors.";
    world
        .until_told(&format!(
            "aws-placement  True Upgrading  2/8 upgrading...
                desired {yyy} good {yyy} applied {xxx}
            canary-placement  False UpgradeSucceed  4/4 {done}
                desired {yyy} good {yyy} applied {yyy}"
        ))
        .await;
    world.agents.let_go();
    let all_on = |config: &str| {
        format!(
            "aws-placement  False UpgradeSucceed  8/8 {done}
                desired {config} good {config} applied {config}
            canary-placement  False UpgradeSucceed  4/4 {done}
                desired {config} good {config} applied {config}"
        )
    };
    world.until_told(&all_on(&yyy)).await;

    world.agents.answer(|_| None);
    assert_eq!(world.apply("rollback"), xxx, "the same content has the same name");
    world
        .until_told(&format!(
            "aws-placement  True Upgrading  2/8 upgrading...
                desired {xxx} good {xxx} applied {yyy}
            canary-placement  True Upgrading  1/4 upgrading...
                desired {xxx} good {yyy} applied {yyy}"
        ))
        .await;
    world.agents.let_go();
    world.until_told(&all_on(&xxx)).await;
}
