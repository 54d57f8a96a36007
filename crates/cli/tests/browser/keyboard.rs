//! The page with the keyboard only: from the list to a cluster and back, and a change of the
//! rollout.

use serde_json::json;

use crate::driver::{Browser, DESK, key};
use crate::stand::{REASONS, Share, Stand, cluster, detail};

fn shares() -> [Share; 2] {
    [
        Share { placement: "default/canary", prefix: "canary", kinds: [2, 0, 0, 0, 0] },
        Share { placement: "default/fleet", prefix: "fleet", kinds: [40, 3, 1, 60, 0] },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_can_be_used_with_the_keyboard_only() {
    let mut add_on = detail(&shares());
    add_on["reasons"] = json!([{"code": "Failed", "kind": "failed", "message": REASONS[2], "count": 1, "examples": ["fleet-00045"]}]);
    let stand = Stand::serve(add_on, cluster("fleet-00045"), true).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/")).await;
    browser.until_text(".addons", "Hello").await;

    // A slash focuses the filter, Tab the first add-on, Enter opens it.
    browser.press("/").await;
    assert_eq!(browser.focused().await, "input Filter add-ons");
    browser.press("hel").await;
    browser.press(key::TAB).await;
    assert!(browser.focused().await.starts_with("a "), "{}", browser.focused().await);
    browser.press(key::ENTER).await;
    browser.until_text("h1", "Hello").await;

    // Into the squares, by the Tab stops before them.
    browser.until("the squares", "return document.querySelector('canvas')").await;
    browser.press("/").await;
    assert_eq!(browser.focused().await, "input Find clusters");
    browser.press(key::TAB).await;
    assert!(browser.focused().await.starts_with("div Clusters as squares"));
    let says = |part: &'static str| browser.until_text(".inspector", part);
    says("canary-00000, settled").await;
    browser.press(key::RIGHT).await;
    says("canary-00001").await;
    // After the last square of one placement comes the first of the next, and back.
    browser.press(key::RIGHT).await;
    says("fleet-00002").await;
    browser.press(key::LEFT).await;
    says("canary-00001").await;
    browser.press(key::PAGE_DOWN).await;
    says("fleet-00002").await;
    let columns = browser.run("return Number(document.querySelectorAll('canvas')[1].dataset.columns)").await;
    let columns = columns.as_u64().unwrap();
    browser.press(key::DOWN).await;
    browser.until_text(".inspector", &format!("fleet-{:05}", 2 + columns)).await;
    browser.press(key::UP).await;
    says("fleet-00002").await;
    browser.press(key::END).await;
    let last = says("fleet-00105, waiting").await;
    assert!(
        last.contains("budget full") && last.contains("rev-b") && last.contains("default/fleet"),
        "{last}"
    );
    browser.press(key::HOME).await;
    says("canary-00000").await;
    assert_eq!(browser.run("return document.querySelector('.tip').hidden").await, false);

    // Search: Enter goes to the first match, Enter opens it, Escape closes it, and the focus
    // returns.
    browser.press("/").await;
    browser.press("cannot be applied").await;
    browser.until_text(".found", "1 cluster found").await;
    browser.press(key::ENTER).await;
    says("fleet-00045, failed").await;
    browser.press(key::ENTER).await;
    browser.until_text("#panel", "no pod runs").await;
    let panel = browser.texts("#panel").await.remove(0);
    for part in [
        "fleet-00045",
        "failed",
        "cloud=aws",
        "addon-hello-deploy-0",
        "Deployment",
        "Forbidden",
        "aviary explain hello fleet-00045",
    ] {
        assert!(panel.contains(part), "{part}: {panel}");
    }
    assert_eq!(browser.focused().await, "h2 fleet-00045");
    assert_eq!(browser.run("return location.hash").await, "#/addon/hello/cluster/fleet-00045");
    browser.press(key::ESCAPE).await;
    browser.until("the panel to close", "return document.getElementById('panel').hidden").await;
    assert!(browser.focused().await.starts_with("div Clusters as squares"));

    // The chart can be read with the keyboard.
    browser.tab_to(".chart").await;
    browser.press(key::HOME).await;
    browser.until_text(".readout", "4 waiting").await;
    browser.press(key::END).await;
    browser.until_text(".readout", "42 settled").await;
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_shows_what_it_would_do_before_it_can_be_confirmed() {
    let stand = Stand::serve(detail(&shares()), cluster("fleet-00045"), true).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until("the button", "return document.querySelector('.actions button')").await;

    // Cancelled: only a dry run was sent.
    browser.tab_to(".actions button").await;
    browser.press(key::ENTER).await;
    browser.until_text("#dialog", "Pause hello?").await;
    browser.until_text("#dialog", "3 clusters of default/fleet stay where they are").await;
    assert_eq!(browser.focused().await, "button Cancel");
    browser.press(key::ESCAPE).await;
    browser.until("the dialog to close", "return !document.getElementById('dialog').open").await;
    assert_eq!(browser.focused().await, "button Pause…");
    assert_eq!(stand.posted(), [json!({"action": "pause", "dryRun": true})]);

    // Confirmed: the action of one placement.
    browser.tab_to("[data-placement=\"default/fleet\"] button").await;
    browser.press(key::ENTER).await;
    browser.until_text("#dialog", "Pause default/fleet?").await;
    browser.until("the answer", "return !document.querySelector('#dialog [type=submit]').disabled").await;
    assert_eq!(browser.texts("#dialog li").await, ["default/fleet: 3 held", "default/canary: nothing moves"]);
    browser.press(key::TAB).await;
    assert_eq!(browser.focused().await, "button Pause");
    browser.press(key::ENTER).await;
    browser.until("the dialog to close", "return !document.getElementById('dialog').open").await;
    let asked = |dry: bool| json!({"action": "pause", "placement": "default/fleet", "dryRun": dry});
    assert_eq!(stand.posted()[1..], [asked(true), asked(false)]);

    // The result arrives by the stream, and the button changes.
    let mut placements = detail(&shares())["placements"].clone();
    placements[1]["paused"] = json!(true);
    stand.say("addon-delta", &json!({"now": "2026-01-01T00:11:00Z", "placements": placements}));
    browser.until_text("[data-placement=\"default/fleet\"] .chip", "Paused").await;
    browser.until_text("[data-placement=\"default/fleet\"] button", "Resume…").await;
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledging_the_brake_sends_the_number_that_was_seen() {
    let mut add_on = detail(&shares());
    add_on["brake"] = json!({"held": 3, "message": "3 would go", "acknowledge": "3 of 106"});
    add_on["revisions"] = json!([
        {"label": "rev-b", "number": 2, "placement": "default/fleet", "version": "v2", "at": null, "current": true, "clusters": 41, "changes": []},
        {"label": "rev-a", "number": 1, "placement": "default/fleet", "version": "v1", "at": null, "current": false, "clusters": 65, "changes": []},
    ]);
    let stand = Stand::serve(add_on, cluster("fleet-00045"), true).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text(".banners", "The brake holds 3 deletions").await;
    browser.click(".banner button").await;
    browser.until_text("#dialog", "Approve 3 deletions?").await;
    browser.until("the answer", "return !document.querySelector('#dialog [type=submit]').disabled").await;
    // If the number changes in the meantime, it is not what the user approved.
    let more = json!({"held": 9, "message": "9 would go", "acknowledge": "9 of 106"});
    stand.say(
        "addon-delta",
        &json!({"now": "2026-01-01T00:11:00Z", "brake": more, "revisionClusters": [42, 64]}),
    );
    browser.until_text(".banners", "The brake holds 9 deletions").await;
    browser.click("#dialog [type=submit]").await;
    browser.until("the dialog to close", "return !document.getElementById('dialog').open").await;
    let asked = |dry: bool| json!({"action": "acknowledge", "acknowledge": "3 of 106", "dryRun": dry});
    assert_eq!(stand.posted(), [asked(true), asked(false)]);
    let told = browser.texts(".revision-head .soft.numbers:not(time)").await;
    assert_eq!(told, ["42 clusters", "64 clusters"]);

    // Undoing to a revision names the revision and the placement.
    browser.click(".revision-foot button:not([hidden])").await;
    browser.until_text("#dialog", "Undo to v1?").await;
    browser.until("the answer", "return !document.querySelector('#dialog [type=submit]').disabled").await;
    browser.click("#dialog [type=submit]").await;
    browser.until("the dialog to close", "return !document.getElementById('dialog').open").await;
    let asked =
        |dry: bool| json!({"action": "undo", "toRevision": 1, "placement": "default/fleet", "dryRun": dry});
    assert_eq!(stand.posted()[2..], [asked(true), asked(false)]);
    browser.end(&[]).await;
}
