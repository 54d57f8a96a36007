//! A connection that breaks, and a server that restarts.

use serde_json::json;

use crate::driver::{Browser, DESK};
use crate::run::{Hub, start};
use crate::stand::{Share, Stand, cluster, detail};
use crate::transcript::desk;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_cut_is_taken_up_where_it_ended() {
    let share = Share { placement: "default/fleet", prefix: "c", kinds: [1, 0, 0, 3, 0] };
    let stand = Stand::serve(detail(&[share]), cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text("#connection-text", "live").await;
    stand.say(
        "addon-delta",
        &json!({"now": "2026-01-01T00:11:00Z", "message": "The first.", "rows": [[1, 6, 0, 5]]}),
    );
    browser.until_text(".addon-header .lede", "The first.").await;

    browser.run("window.states = []; new MutationObserver(() => window.states.push(document.getElementById('connection-text').textContent)).observe(document.getElementById('connection'), { subtree: true, childList: true, characterData: true, attributes: true })").await;
    stand.cut();
    browser
        .until(
            "the cut to be told",
            "return window.states.some((state) => state.startsWith('reconnecting since '))",
        )
        .await;
    // Sent while no stream is open, or to the new stream: either way it arrives once.
    stand.say(
        "addon-delta",
        &json!({"now": "2026-01-01T00:12:00Z", "message": "The second.", "rows": [[2, 6, 0, 5]]}),
    );
    browser.until_text(".addon-header .lede", "The second.").await;
    browser.until_text("#connection-text", "live").await;
    assert_eq!(stand.opened(), ["", "made-1"]);
    let legend = browser.texts(".legend .key .numbers").await;
    assert_eq!(legend[..4], ["3", "0", "0", "1"]);
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_outlives_a_restart_of_its_server() {
    let desk = desk("browser-restart");
    let _hub = start(&desk, "hub --ephemeral --listen 127.0.0.1:0 --kubeconfig-out kubeconfig");
    let hub = Hub::of(&desk, "kubeconfig").await;
    hub.put_helloworld().await;
    hub.want("v1.0.0").await;
    let _manager =
        start(&desk, "manager --kubeconfig kubeconfig --placement --metrics 127.0.0.1:0 --log warn");
    let _fleet = start(&desk, "fleet --clusters 8 --latency 0s..0s --kubeconfig kubeconfig");
    hub.until_done(8, "v1.0.0").await;

    let dashboard = |listen: &str| {
        start(&desk, &format!("dashboard --kubeconfig kubeconfig --listen {listen} --token-file token"))
    };
    let first = dashboard("127.0.0.1:0");
    let address = first.address("dashboard").trim_start_matches("http://").to_owned();
    let browser = Browser::start(DESK).await;
    browser.open(first.word("dashboard")).await;
    browser.until_text(".addons", "helloworld").await;
    browser.click(".addon").await;
    browser.until_text(".addon-header", "8 of 8 clusters settled").await;
    browser.until_text(".addon-header .state-line", "Done").await;

    first.kill();
    browser.until_text("#connection-text", "reconnecting since").await;
    // The known state stays on the page, and is marked as old.
    browser.until_text(".addon-header", "8 of 8 clusters settled").await;
    assert_eq!(browser.run("return document.body.classList.contains('stale')").await, true);
    hub.want("v2.0.0").await;
    hub.until_done(8, "v2.0.0").await;

    let _second = dashboard(&address);
    browser.until_text(".addon-header .state-line", "v2.0.0").await;
    browser.until_text(".addon-header", "8 of 8 clusters settled").await;
    browser.until_text("#connection-text", "live").await;
    assert_eq!(browser.run("return document.body.classList.contains('stale')").await, false);
    // The browser itself logs unreachable servers.
    browser.end(&["net::ERR_"]).await;
}
