//! Names and messages are always shown as text, and nothing in them runs.

use serde_json::json;

use crate::driver::{Browser, DESK, key};
use crate::run::{Hub, start};
use crate::stand::{Share, Stand, cluster, detail};
use crate::transcript::desk;

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
        json!([{"code": IMAGE, "kind": "failed", "message": SCRIPT, "count": 1, "examples": [IMAGE]}]);
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
        json!({"canaries": [IMAGE], "open": false, "message": format!("{IMAGE}{SCRIPT}")});
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

    assert_nothing_ran(&browser).await;
    browser.end(&[]).await;
}

async fn assert_nothing_ran(browser: &Browser) {
    let made = browser
        .run("return [...document.querySelectorAll('img, b, script, a')].map((one) => one.outerHTML)")
        .await;
    let made: Vec<String> = serde_json::from_value(made).unwrap();
    assert!(!made.iter().any(|html| html.contains("ran=") || html.contains("javascript:")), "{made:#?}");
    assert_eq!(browser.run("return window.ran ?? 'nothing'").await, "nothing");
}

/// A hub rejects such a name for a cluster, but not in a decision, which anyone can write who may
/// decide for a placement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_such_a_name_on_a_hub_is_shown_as_text() {
    let desk = desk("browser-hostile");
    let _hub = start(&desk, "hub --ephemeral --listen 127.0.0.1:0 --kubeconfig-out kubeconfig");
    let hub = Hub::of(&desk, "kubeconfig").await;
    hub.put_helloworld().await;
    let api = |group: &str| format!("{group}.open-cluster-management.io");
    let (cluster_api, addon_api) = (api("cluster"), api("addon"));
    hub.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}})).await;
    hub.put(json!({
        "apiVersion": format!("{cluster_api}/v1"), "kind": "ManagedCluster", "metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": true},
    }))
    .await;
    let decision = json!({
        "apiVersion": format!("{cluster_api}/v1beta1"), "kind": "PlacementDecision",
        "metadata": {"name": "all-1", "namespace": "default", "labels": {format!("{cluster_api}/placement"): "all"}},
        "status": {"decisions": [{"clusterName": IMAGE, "reason": SCRIPT}, {"clusterName": "c1", "reason": ""}]},
    });
    hub.put(decision.clone()).await;
    hub.put_status(decision).await;
    hub.put_status(json!({
        "apiVersion": format!("{cluster_api}/v1beta1"), "kind": "Placement", "metadata": {"name": "all", "namespace": "default"},
        "status": {"numberOfSelectedClusters": 2},
    }))
    .await;
    hub.put(json!({
        "apiVersion": format!("{addon_api}/v1alpha1"), "kind": "ClusterManagementAddOn", "metadata": {"name": "helloworld"},
        "spec": {"addOnMeta": {"displayName": SCRIPT, "description": IMAGE}},
    }))
    .await;
    hub.want("v1.0.0").await;
    let _manager = start(&desk, "manager --kubeconfig kubeconfig --metrics 127.0.0.1:0 --log warn");
    hub.until_made("c1").await;
    hub.put_status(json!({
        "apiVersion": format!("{addon_api}/v1alpha1"), "kind": "ManagedClusterAddOn", "metadata": {"name": "helloworld", "namespace": "c1"},
        "status": {"conditions": [
            {"type": "Available", "status": "False", "reason": "Broken", "message": format!("{SCRIPT}{LINK}"), "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]},
    }))
    .await;

    let dashboard = start(&desk, "dashboard --kubeconfig kubeconfig --listen 127.0.0.1:0 --token-file token");
    let browser = Browser::start(DESK).await;
    browser.open(dashboard.word("dashboard")).await;
    browser.until_text(".addons", SCRIPT).await;
    browser.click(".addon").await;
    browser.until_text("h1", SCRIPT).await;
    // No cluster can have this name, so it is a problem of the placement, which shows the name.
    browser.until_text(".banners", "<img src=x onerror=").await;
    browser.until("the squares", "return document.querySelector('canvas')").await;
    browser.press("/").await;
    browser.press("c1").await;
    browser.until_text(".found", "1 cluster found").await;
    browser.press(key::ENTER).await;
    browser.press(key::ENTER).await;
    browser.until_text("#panel h2", "c1").await;
    browser.until_text(".panel-body", &format!("{SCRIPT}{LINK}")).await;
    assert_nothing_ran(&browser).await;
    browser.end(&[]).await;
}
