//! The health checks and metrics of a manager, and who may read them.

use aviary_hub::security::Role;
use aviary_hub::{Endpoint, Hub};
use aviary_serve::write_private;
use expect_test::expect;
use tokio::net::TcpListener;

use crate::run::{Process, get, start, until_ready};
use crate::transcript::{Desk, desk};

/// The tokens of a hub that runs as long as the test.
struct Tokens {
    admin: String,
    reader: String,
}

/// Serves a hub with our kinds; writes its kubeconfig to the desk.
async fn hub(desk: &Desk) -> Tokens {
    let hub = Hub::ephemeral(Default::default()).await.unwrap();
    aviary_testing::prepare_hub(&hub.client()).await;
    let endpoint = Endpoint::ephemeral(&hub, &[]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let admin = endpoint.issue_token("manager", Role::Admin).unwrap().expose().to_owned();
    let reader = endpoint.issue_token("reader", Role::ReadOnly).unwrap().expose().to_owned();
    let kubeconfig = endpoint.kubeconfig(listener.local_addr().unwrap(), &admin);
    write_private(&desk.path("kubeconfig"), kubeconfig.as_bytes()).unwrap();
    tokio::spawn(async move { hub.serve(listener, &endpoint, std::future::pending()).await });
    Tokens { admin, reader }
}

fn manager(desk: &Desk, arguments: &str) -> Process {
    start(desk, &format!("manager --kubeconfig kubeconfig {arguments}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_loopback_metrics_are_told_to_everybody() {
    let desk = desk("telemetry-loopback");
    hub(&desk).await;
    let manager = manager(&desk, "--metrics 127.0.0.1:0 --health 127.0.0.1:0");
    until_ready(&manager.address("health")).await;
    let (code, text) = get(&manager.address("metrics"), "/metrics", None).await;
    assert_eq!(code, 200);
    assert!(text.ends_with("# EOF\n"), "{text}");
    for name in [
        "aviary_leader",
        "aviary_queue_depth",
        "aviary_plan_duration_seconds_count",
        "aviary_api_requests_total",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is not in:\n{text}");
    }
    assert!(text.contains(r#"aviary_api_requests_total{verb="watch",code="200"}"#), "{text}");
    assert_eq!(get(&manager.address("health"), "/metrics", None).await.0, 404, "health tells nothing else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_elsewhere_they_are_told_over_tls_to_those_whom_the_hub_lets() {
    let desk = desk("telemetry-open");
    let tokens = hub(&desk).await;
    let manager = manager(&desk, "--metrics 0.0.0.0:0");
    let base = manager.address("metrics");
    assert!(base.starts_with("https://"), "{base}");
    let code = async |token: Option<&str>| get(&base, "/metrics", token).await;
    assert_eq!(code(None).await, (401, "a bearer token is required\n".into()));
    assert_eq!(code(Some("somebody-else")).await, (401, "the hub does not know this token\n".into()));
    assert_eq!(code(Some(&tokens.reader)).await, (403, "the hub does not allow you to get this\n".into()));
    let (answer, text) = code(Some(&tokens.admin)).await;
    assert_eq!(answer, 200);
    assert!(text.contains("aviary_leader"), "{text}");
    until_ready(&base).await;
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let desk = desk("telemetry-wrong").file("cert.pem", "").file("key.pem", "");
    expect![[r#"
        $ aviary manager --metrics 127.0.0.1:0 --metrics-cert cert.pem --metrics-key key.pem
        ! aviary: --metrics-cert is only for an address that other machines can reach; loopback is unencrypted
        exit 1
    "#]]
    .assert_eq(&desk.run("manager --metrics 127.0.0.1:0 --metrics-cert cert.pem --metrics-key key.pem"));
    expect![[r#"
        $ aviary manager --log ,,=
        ! aviary: --log ,,= is not a valid filter: invalid filter directive
        exit 1
    "#]]
    .assert_eq(&desk.run("manager --log ,,="));
}
