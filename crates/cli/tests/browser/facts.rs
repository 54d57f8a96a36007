//! The page shows what the hub records, not what a manager would do next.

use crate::driver::{Browser, DESK};
use crate::run::{Hub, start};
use crate::transcript::desk;

/// Settled, in flight, failed and waiting, as the legend counts them.
const LEGEND: &str = ".legend .key .numbers";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_manager_nothing_is_in_flight() {
    let desk = desk("browser-facts");
    let _hub = start(&desk, "hub --ephemeral --listen 127.0.0.1:0 --kubeconfig-out kubeconfig");
    let hub = Hub::of(&desk, "kubeconfig").await;
    hub.put_helloworld().await;
    hub.want("v1.0.0").await;
    let manager =
        || start(&desk, "manager --kubeconfig kubeconfig --placement --metrics 127.0.0.1:0 --log warn");
    let first = manager();
    let _fleet = start(&desk, "fleet --clusters 8 --latency 0s..0s --kubeconfig kubeconfig");
    hub.until_done(8, "v1.0.0").await;
    first.stop("TERM");

    hub.want("v2.0.0").await;
    let dashboard = start(&desk, "dashboard --kubeconfig kubeconfig --listen 127.0.0.1:0");
    let browser = Browser::start(DESK).await;
    browser.open(dashboard.word("dashboard")).await;
    browser.until_text(".addon", "0 of 8 clusters in 1 placement").await;
    browser.click(".addon").await;
    browser.until_text(".addon-header .state-line", "v2.0.0").await;
    assert_eq!(browser.texts(LEGEND).await[..4], ["0", "0", "0", "8"]);
    assert_eq!(browser.texts(".budget .numbers").await, ["0 of 2 slots in use"]);
    browser.until_text(".addon-header .lede", "8 clusters wait: not started yet.").await;

    // The same page shows the facts once there are some.
    let _second = manager();
    browser
        .until(
            "every cluster to settle",
            "return document.querySelector('.legend .key .numbers').innerText === '8'",
        )
        .await;
    assert_eq!(browser.texts(LEGEND).await[..4], ["8", "0", "0", "0"]);
    browser.end(&[]).await;
}
