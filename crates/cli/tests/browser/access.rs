//! The token: where it comes from, where it is sent, and what is shown without it.

use serde_json::json;

use crate::driver::{Browser, DESK, key};
use crate::stand::{Share, Stand, TOKEN, cluster, detail};

async fn stand(writes: bool) -> Stand {
    let share = Share { placement: "default/fleet", prefix: "c", kinds: [1, 1, 1, 1, 0] };
    Stand::serve(detail(&[share]), cluster("c-00002"), writes).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_is_taken_from_the_address_and_leaves_no_trace_there() {
    let stand = stand(false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text("h1", "Hello").await;
    assert_eq!(browser.run("return location.hash").await, "#/addon/hello");
    let kept = browser
        .run("return [JSON.stringify(localStorage), document.cookie, document.body.outerHTML].join()")
        .await;
    assert!(!kept.as_str().unwrap().contains(TOKEN));
    // Another page in the same tab has it, too.
    browser.open(&format!("http://{}/", stand.address)).await;
    browser.until_text(".addons", "Hello").await;
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_or_with_a_wrong_one_the_page_asks_for_one() {
    let stand = stand(false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&format!("http://{}/#/addon/hello", stand.address)).await;
    browser.until_text(".signin", "Sign in").await;
    assert_eq!(stand.opened().len(), 0);

    browser.press("wrong").await;
    browser.press(key::ENTER).await;
    browser.until_text(".signin .error", "this token is not known here").await;
    assert_eq!(browser.texts("#connection-text").await, ["not signed in"]);

    browser.press(TOKEN).await;
    browser.press(key::ENTER).await;
    browser.until_text("h1", "Hello").await;
    browser.until_text("#connection-text", "live").await;
    // The browser itself logs refused requests.
    browser.end(&["401 (Unauthorized)"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_may_not_write_offers_nothing_to_do() {
    let share = || Share { placement: "default/fleet", prefix: "c", kinds: [1, 0, 0, 1, 0] };
    let mut add_on = detail(&[share()]);
    add_on["brake"] = json!({"held": 3, "message": "3 would go", "acknowledge": "3"});
    add_on["revisions"] = json!([{
        "label": "rev-a", "number": 1, "placement": null, "version": "v1", "at": null, "current": false, "clusters": 1, "changes": [],
    }]);
    let reading = Stand::serve(add_on.clone(), cluster("c-00000"), false).await;
    let writing = Stand::serve(add_on, cluster("c-00000"), true).await;
    let browser = Browser::start(DESK).await;
    let buttons = "return [...document.querySelectorAll('main button')].filter((one) => one.offsetParent && one.innerText.endsWith('…')).map((one) => one.innerText)";

    browser.open(&reading.url("/addon/hello")).await;
    browser.until_text(".banners", "3 would go").await;
    assert_eq!(browser.run(buttons).await, json!([]));
    assert_eq!(browser.texts("#mode").await, ["read-only"]);

    browser.open(&writing.url("/addon/hello")).await;
    browser.until_text(".banners", "3 would go").await;
    assert_eq!(browser.run(buttons).await, json!(["Pause…", "Undo…", "Approve…", "Pause…", "Undo to this…"]));
    browser.end(&[]).await;
}
