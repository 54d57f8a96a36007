//! The dashboard with the rights of the shipped role for its users.

use serde_json::Value;

use crate::run::{get, start};
use crate::server::{installed, root};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_has_only_the_shipped_role_can_open_the_dashboard() {
    let server = installed("viewer");
    let manifest = root().join("deploy/kustomize/dashboard/web-dashboard.yaml");
    server.kubectl(&format!("apply -f '{}'", manifest.display()), b"");
    let viewer = server.account_with("aviary-dashboard-viewer");
    // It starts only once it has read everything.
    let line = format!("dashboard --kubeconfig {viewer} --listen 127.0.0.1:0");
    let dashboard = start(&server.desk, &line);
    let (address, token) = dashboard.word("dashboard").split_once("/#token=").unwrap();
    let (status, info) = get(address, "/api/info", Some(token)).await;
    assert_eq!(status, 200, "{info}");
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["user"], "system:serviceaccount:default:test-aviary-dashboard-viewer");
    let (status, told) = get(address, "/api/addons/nothing/clusters/nothing", Some(token)).await;
    assert_eq!(status, 404, "{told}");
    dashboard.stop("TERM");
    // The chart, which other tests install, does not adopt what is there.
    server.kubectl(&format!("delete -f '{}'", manifest.display()), b"");
}
