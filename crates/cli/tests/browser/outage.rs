//! A hub that is away: the page says since when, greys what it shows, and continues by itself.

use serde_json::json;

use crate::driver::{Browser, DESK};
use crate::run::{Hub, start};
use crate::stand::{Share, Stand, cluster, detail};
use crate::transcript::desk;

const IS_STALE: &str = "return document.body.classList.contains('stale')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_says_since_when_the_hub_is_unreachable() {
    let desk = desk("browser-outage");
    let process = start(&desk, "hub --data-dir hub --listen 127.0.0.1:0");
    let address = process.address("Hub listening on").trim_start_matches("https://").to_owned();
    let hub = Hub::of(&desk, "hub/kubeconfig").await;
    hub.put_helloworld().await;
    hub.want("v1.0.0").await;
    let dashboard = start(&desk, "dashboard --kubeconfig hub/kubeconfig --listen 127.0.0.1:0");
    let browser = Browser::start(DESK).await;
    browser.open(dashboard.word("dashboard")).await;
    browser.until_text(".addons", "helloworld").await;
    browser.until_text("#connection-text", "live").await;
    assert_eq!(browser.run(IS_STALE).await, false);

    process.kill();
    let told = browser.until_text("#trouble", "Hub unreachable since ").await;
    assert!(told.contains("This page shows the state of that time"), "{told}");
    assert_eq!(browser.texts("#connection-text").await, ["hub unreachable"]);
    assert_eq!(browser.run(IS_STALE).await, true);
    // What is known stays, on other views as well.
    browser.click(".addon").await;
    browser.until_text(".addon-header .state-line", "v1.0.0").await;
    browser.until_text("#trouble", "Hub unreachable since ").await;
    // Long enough for a dozen attempts to connect.
    browser.run("window.from = Date.now()").await;
    browser.until("the outage to last", "return Date.now() - window.from > 6000").await;

    let process = start(&desk, &format!("hub --data-dir hub --listen {address}"));
    browser.until("the hub to be back", "return document.getElementById('trouble').hidden").await;
    browser.until_text("#connection-text", "live").await;
    hub.want("v2.0.0").await;
    browser.until_text(".addon-header .state-line", "v2.0.0").await;
    assert_eq!(browser.run(IS_STALE).await, false);

    // A hub that hangs closes no connection.
    process.signal("STOP");
    browser.until_text("#trouble", "Hub unreachable since ").await;
    process.signal("CONT");
    browser.until("the hub to answer", "return document.getElementById('trouble').hidden").await;
    hub.want("v1.0.0").await;
    browser.until_text(".addon-header .state-line", "v1.0.0").await;
    browser.end(&[]).await;

    let log = dashboard.stop_and_log("TERM");
    let count = |part: &str| log.iter().filter(|line| line.contains(part)).count();
    assert_eq!((count("the hub is unreachable"), count("the hub is reachable again")), (2, 2), "{log:#?}");
    assert_eq!(log.len(), 4, "{log:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ages_stand_still_while_the_hub_is_unreachable() {
    let share = Share { placement: "default/fleet", prefix: "c", kinds: [1, 1, 0, 2, 0] };
    let stand = Stand::serve(detail(&[share]), cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text(".state-line", "oldest wait 10 min").await;
    let cause = "Connection refused <b>now</b>";
    stand.say("hub", &json!({"unreachable": {"since": "2026-01-01T00:05:00Z", "cause": cause}}));
    let told = browser.until_text("#trouble", "Hub unreachable since ").await;
    assert!(told.contains(cause), "{told}");
    // The page counts from the last known state, not from now.
    browser.until_text(".state-line", "oldest wait 5 min").await;
    let grey = browser.run("return getComputedStyle(document.querySelector('.addon-view')).filter").await;
    assert_eq!(grey, "grayscale(1)");
    stand.say("hub", &json!({"unreachable": null}));
    browser.until("the banner to go", "return document.getElementById('trouble').hidden").await;
    browser.until_text(".state-line", "oldest wait 10 min").await;
    browser.end(&[]).await;
}
