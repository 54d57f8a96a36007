//! Whatever a name or a message holds, it is shown as text and nothing of it runs.

use serde_json::json;

use crate::driver::{Browser, DESK, key};
use crate::stand::{Share, Stand, cluster, detail};

const IMAGE: &str = "<img src=x onerror=\"window.ran='image'\">";
const SCRIPT: &str = "</p><script>window.ran='script'</script>";
const LINK: &str = "<a href=\"javascript:window.ran='link'\">click</a>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_messages_with_markup_are_shown_as_text_and_nothing_runs() {
    let mut add_on = detail(&[Share { placement: "default/fleet", prefix: "c", kinds: [0, 0, 1, 2, 0] }]);
    add_on["name"] = json!(IMAGE);
    add_on["displayName"] = json!(format!("{SCRIPT}{LINK}"));
    add_on["description"] = json!(IMAGE);
    add_on["message"] = json!(SCRIPT);
    add_on["version"] = json!(IMAGE);
    add_on["problems"] = json!([{"severity": "error", "message": SCRIPT}]);
    add_on["brake"] = json!({"held": 3, "message": IMAGE, "acknowledge": "3"});
    add_on["reasons"] =
        json!([{"code": IMAGE, "kind": 2, "message": SCRIPT, "count": 1, "examples": [IMAGE]}]);
    add_on["revisions"] = json!([{
        "label": IMAGE, "number": 1, "placement": IMAGE, "version": SCRIPT, "at": null, "current": true, "clusters": 1, "changes": [LINK],
    }]);
    add_on["events"] = json!([{"at": "2026-01-01T00:09:00Z", "type": "Warning", "reason": IMAGE, "message": SCRIPT, "about": LINK}]);
    add_on["dictionary"][2] = json!(SCRIPT);
    add_on["dictionary"][5] = json!(LINK);
    add_on["clusters"]["name"][0] = json!(IMAGE);
    add_on["placements"][0]["name"] = json!(format!("default/{IMAGE}"));
    add_on["placements"][0]["message"] = json!(SCRIPT);
    add_on["placements"][0]["strategy"] = json!(LINK);
    add_on["placements"][0]["gate"] =
        json!({"canary": IMAGE, "open": false, "message": format!("{IMAGE}{SCRIPT}")});
    let mut one = cluster(IMAGE);
    one["message"] = json!(SCRIPT);
    one["labels"] = json!({IMAGE: SCRIPT});
    one["conditions"][0]["message"] = json!(IMAGE);
    one["works"][0]["manifests"][0]["name"] = json!(SCRIPT);
    let stand = Stand::serve(add_on, one, true).await;
    let browser = Browser::start(DESK).await;

    browser.open(&stand.url("/")).await;
    let listed = browser.until_text(".addons", SCRIPT).await;
    assert!(listed.contains(IMAGE) && listed.contains(LINK), "{listed}");

    browser.click(".addon").await;
    browser.until_text("h1", &format!("{SCRIPT}{LINK}")).await;
    browser.until_text(".addon-header .lede", SCRIPT).await;
    for (place, part) in [
        (".banners", SCRIPT),
        (".banners", IMAGE),
        (".placement h3", IMAGE),
        (".placement .message", SCRIPT),
        (".gate", SCRIPT),
        (".strategy", LINK),
        (".reason-list", SCRIPT),
        (".examples", IMAGE),
        (".revision-list", LINK),
        (".event-list", SCRIPT),
    ] {
        browser.until_text(place, part).await;
    }

    browser.hover(".placement canvas", 5.0, 5.0).await;
    let tip = browser.until_text(".tip", IMAGE).await;
    assert!(tip.contains(SCRIPT) && tip.contains(LINK), "{tip}");
    browser.until_text(".inspector", IMAGE).await;

    browser.click_here().await;
    browser.until_text("#panel h2", IMAGE).await;
    let panel = browser.until_text(".panel-body", SCRIPT).await;
    assert!(panel.contains(&format!("{IMAGE}={SCRIPT}")), "{panel}");
    assert!(panel.contains(&format!("default/{SCRIPT}")), "{panel}");
    browser.press(key::ESCAPE).await;

    browser.click(".actions button").await;
    browser.until_text("#dialog", "<b>Nothing</b>").await;

    let made = browser
        .run("return [...document.querySelectorAll('img, b, script, a')].map((one) => one.outerHTML)")
        .await;
    let made: Vec<String> = serde_json::from_value(made).unwrap();
    assert!(!made.iter().any(|html| html.contains("ran=") || html.contains("javascript:")), "{made:#?}");
    assert_eq!(browser.run("return window.ran ?? 'nothing'").await, "nothing");
    browser.end(&[]).await;
}
