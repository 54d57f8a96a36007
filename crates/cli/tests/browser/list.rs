//! The list of add-ons: those that need attention first, kept up to date, and filtered by name.

use serde_json::{Value, json};

use crate::driver::{Browser, DESK};
use crate::stand::{Share, Stand, cluster, detail, summary};

fn add_on(name: &str, state: &str) -> Value {
    let mut one =
        summary(&detail(&[Share { placement: "default/fleet", prefix: "c", kinds: [3, 1, 0, 2, 0] }]));
    one["name"] = json!(name);
    one["displayName"] = json!(name);
    one["state"] = json!(state);
    one
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_has_those_that_failed_first_and_follows_what_changes() {
    let mut first = detail(&[Share { placement: "default/fleet", prefix: "c", kinds: [3, 1, 0, 2, 0] }]);
    first["message"] = json!("default/fleet: 4/6 upgrading...");
    let stand = Stand::serve(first, cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/")).await;
    let row = browser.until_text(".addons", "Hello").await;
    for part in [
        "Progressing",
        "default/fleet: upgrading...",
        "3 of 6 clusters in 1 placement",
        "v2",
        "Oldest wait",
        "10 min",
    ] {
        assert!(row.contains(part), "{part}: {row}");
    }
    let now = "2026-01-01T00:11:00Z";
    let changed = [add_on("zeta", "Failed"), add_on("beta", "Done"), add_on("alpha", "Done")];
    stand.say_list("addons-delta", &json!({"now": now, "changed": changed, "gone": []}));
    browser.until_text(".lede", "4 add-ons · 1 failed · 1 progressing · 2 done").await;
    assert_eq!(browser.texts(".addon-title").await, ["zeta", "Hello", "alpha", "beta"]);
    assert_eq!(browser.run("return document.title").await, "✕ 1 failed · Add-ons · Aviary");

    stand.say_list(
        "addons-delta",
        &json!({"now": now, "changed": [add_on("zeta", "Done")], "gone": ["hello"]}),
    );
    browser.until_text(".lede", "3 add-ons · 3 done").await;
    assert_eq!(browser.texts(".addon-title").await, ["alpha", "beta", "zeta"]);

    browser.press("/").await;
    browser.press("ETA").await;
    browser.until("the filter to work", "return document.querySelectorAll('.addon').length === 2").await;
    browser.press("?").await;
    browser.until_text("main", "No add-on matches “ETA?”.").await;
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_on_that_goes_says_so_and_comes_back() {
    let first = detail(&[Share { placement: "default/fleet", prefix: "c", kinds: [3, 0, 0, 0, 0] }]);
    let stand = Stand::serve(first.clone(), cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text("h1", "Hello").await;
    stand.say("gone", &json!({}));
    browser.until_text("main", "There is no add-on hello on this hub.").await;
    assert_eq!(browser.count("canvas").await, 0);
    stand.say("addon", &first);
    browser.until_text("h1", "Hello").await;
    browser.until("the squares", "return document.querySelector('canvas')?.dataset.pitch").await;
    browser.end(&[]).await;
}
