//! A hub in a separate process, which can be killed: the test binary, started again to run one
//! function of this module.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use aviary_hub::security::Role;
use aviary_hub::{Endpoint, Hub, HubOptions};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::support::within;

/// The data directory of the child; without it, the function below is an empty test.
const DIRECTORY: &str = "AVIARY_TORTURE_SERVE";
const EVENTS_KEPT: &str = "AVIARY_TORTURE_EVENTS_KEPT";
const READY: &str = "serves on ";

/// The other half of [`Served`]. Prints its address, and stops cleanly when its input ends.
#[test]
fn a_hub_is_served_when_another_test_asks_for_it() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let mut options = HubOptions::default();
    if let Ok(kept) = std::env::var(EVENTS_KEPT) {
        options.events_kept = kept.parse().unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let hub = Hub::open(directory, options).await.unwrap();
        let endpoint = Endpoint::open(&hub, directory, &[]).unwrap();
        let token = endpoint.issue_token("torture", Role::Admin).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let kubeconfig = endpoint.kubeconfig(address, token.expose());
        std::fs::write(directory.join("kubeconfig"), kubeconfig).unwrap();
        println!("{READY}{address}");
        let ended = tokio::task::spawn_blocking(|| drop(std::io::stdin().read(&mut [0])));
        hub.serve(listener, &endpoint, async { drop(ended.await) }).await.unwrap();
    });
}

/// A running child.
pub(crate) struct Served {
    process: Child,
    pub(crate) client: Client,
}

impl Served {
    pub(crate) async fn start(directory: &Path, events_kept: usize) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::a_hub_is_served_when_another_test_asks_for_it", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(EVENTS_KEPT, events_kept.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (tell, ready) = tokio::sync::oneshot::channel();
        // Read to the end, so that the child never blocks on its output.
        std::thread::spawn(move || {
            let mut tell = Some(tell);
            for line in lines.map_while(Result::ok).filter(|line| line.contains(READY)) {
                let _ = tell.take().map(|tell| tell.send(line));
            }
        });
        within("the child serves", ready).await.expect("the child did not start");
        let client = client(&std::fs::read_to_string(directory.join("kubeconfig")).unwrap()).await;
        Self { process, client }
    }

    /// SIGKILL: no destructors, no flush.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Stops cleanly.
    pub(crate) async fn stop(mut self) {
        drop(self.process.stdin.take());
        let ended = tokio::task::spawn_blocking(move || self.process.wait());
        assert!(within("the child ends", ended).await.unwrap().unwrap().success());
    }
}

/// A client without retries: a retried write could not be distinguished from a lost one.
pub(crate) async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
