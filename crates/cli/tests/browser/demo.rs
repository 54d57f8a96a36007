//! The demo in a browser: opens its page during the demo, and then pauses and resumes a rollout
//! with its buttons.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde::Deserialize;
use serde_json::json;

use crate::driver::{Browser, DESK};
use crate::run::{Hub, Process};
use crate::transcript::desk;

/// One in five of sixty clusters is a canary.
const FLEET: usize = 48;
const CANARY: usize = 12;

/// Records every state that the page shows.
const NOTE: &str = "
    window.story = [];
    let last = '';
    const words = (root, css) => { const node = root?.querySelector(css); return node && !node.hidden ? node.innerText : ''; };
    const placement = (name) => {
      const card = document.querySelector(`[data-placement='default/${name}']`);
      const [done] = words(card, '.placement-bar .numbers').split(' of ');
      return { state: words(card, '.chip'), done: Number(done.replace(',', '')), gate: words(card, '.gate') };
    };
    const note = () => {
      if (!document.querySelector('[data-placement]')) return;
      const now = {
        state: words(document, '.state-line .chip'), version: words(document, '.state-line .fact'),
        fleet: placement('aws-placement'), canary: placement('canary-placement'), why: words(document, '.why'),
      };
      const text = JSON.stringify(now);
      if (text !== last) { last = text; window.story.push(now); }
    };
    new MutationObserver(note).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true, attributes: true });
";

#[derive(Clone, Debug, Deserialize)]
struct Seen {
    state: String,
    version: String,
    fleet: PlacementSeen,
    canary: PlacementSeen,
    why: String,
}

#[derive(Clone, Debug, Deserialize)]
struct PlacementSeen {
    state: String,
    done: usize,
    gate: String,
}

async fn story(browser: &Browser) -> Vec<Seen> {
    serde_json::from_value(browser.run("return window.story").await).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_the_demo_shows_the_canary_fill_the_fleet_wait_and_then_fill() {
    let desk = desk("browser-demo");
    let demo = Process::start_until(
        desk.command(&format!("demo --wait --clusters {} --latency 1s..3s --data-dir data", FLEET + CANARY)),
        "Open the dashboard",
    );
    let browser = Browser::start(DESK).await;
    let address = demo.word("dashboard");
    // Nothing begins before somebody looks.
    let hub = Hub::of(&desk, "data/kubeconfig").await;
    let addons: Api<aviary_api::ClusterManagementAddOn> = Api::all(hub.client.clone());
    assert!(addons.list(&Default::default()).await.unwrap().items.is_empty());
    browser.open(address).await;
    browser.until("the add-on to be listed", "return document.querySelector('.addon')").await;
    browser.run(NOTE).await;
    browser.click(".addon").await;

    // Waits for the end: the bad version was caught and rolled back.
    browser
        .until(
            "the story to be told",
            "const caught = window.story.findLastIndex((one) => one.why.includes('not healthy yet: Deployment'));
            return caught >= 0 && window.story.slice(caught).some((one) => one.state === 'Done')",
        )
        .await;
    let seen = story(&browser).await;
    assert_is_the_story(&seen);

    pause_and_resume(&browser, &Hub::of(&desk, "data/kubeconfig").await).await;
    browser.end(&[]).await;
    demo.stop("TERM");
}

/// Checks the canary upgrade and the bad version in what the page showed.
fn assert_is_the_story(seen: &[Seen]) {
    let text = || format!("{seen:#?}");
    let behind = |one: &Seen| one.fleet.gate.starts_with("Gate closed: waiting for canary-placement");
    let is_caught = |one: &Seen| one.why.contains("not healthy yet: Deployment");
    let caught = seen.iter().rposition(is_caught).unwrap();

    // The canary is upgraded while all others wait for it, and the page says so.
    let good: Vec<&Seen> = seen.iter().filter(|one| one.version.contains("v0.11.0")).collect();
    let filling: Vec<&&Seen> =
        good.iter().filter(|one| behind(one) && (1..CANARY).contains(&one.canary.done)).collect();
    assert!(filling.len() > 1, "the canary was not seen to fill: {}", text());
    for one in &filling {
        assert_eq!(one.fleet.done, 0, "the fleet moved before the canary had passed: {one:#?}");
        assert_eq!(one.fleet.state, "Waiting for canary", "{one:#?}");
        assert!(one.fleet.gate.contains("not passed"), "{one:#?}");
    }
    assert!(
        filling
            .iter()
            .any(|one| one.why.contains(&FLEET.to_string())
                && one.why.contains("canary default/canary-placement")),
        "nothing said why the fleet waits: {}",
        text()
    );
    // Then the gate opens and the fleet is upgraded.
    let open = good
        .iter()
        .position(|one| one.fleet.gate.starts_with("Gate open"))
        .unwrap_or_else(|| panic!("{}", text()));
    let after = &good[open..];
    assert!(
        after.iter().any(|one| one.canary.done == CANARY && (1..FLEET).contains(&one.fleet.done)),
        "the fleet was not seen to fill: {}",
        text()
    );
    assert!(after.iter().any(|one| one.state == "Done" && one.fleet.done == FLEET), "{}", text());

    // The bad version stops in the canary.
    let bad: Vec<&Seen> = seen[..=caught].iter().filter(|one| one.version.contains("v0.12.0")).collect();
    assert!(!bad.is_empty(), "{}", text());
    assert!(bad.iter().all(|one| one.canary.done == 0 && one.fleet.done == 0), "{bad:#?}");
    assert!(bad.iter().any(|one| is_caught(one) && behind(one)), "{bad:#?}");
}

/// A rollout that is paused with the button does not start until it is resumed.
async fn pause_and_resume(browser: &Browser, hub: &Hub) {
    browser.until_text(".actions button", "Pause…").await;
    browser.click(".actions button").await;
    browser
        .until("the blast radius", "return !document.querySelector('#dialog [type=submit]').disabled")
        .await;
    let asked = browser.texts("#dialog").await.remove(0);
    assert!(asked.contains("Pause helloworld?") && asked.contains("cluster"), "{asked}");
    browser.click("#dialog [type=submit]").await;
    browser.until_text(".actions button", "Resume…").await;

    browser.run("window.story = []").await;
    want(hub, "helloworld-v0.10.0").await;
    browser.until_text(".state-line", "v0.10.0").await;
    browser.until_text(".state-line .chip", "Paused").await;
    browser.until_text(".why", "paused").await;
    let legend = browser.texts(".legend .key .numbers").await;
    assert_eq!(legend[1..4], ["0".to_owned(), "0".to_owned(), (FLEET + CANARY).to_string()]);
    assert!(story(browser).await.iter().all(|one| one.canary.done % CANARY == 0));

    browser.click(".actions button").await;
    browser.until_text("#dialog", "Resume helloworld?").await;
    browser
        .until("the blast radius", "return !document.querySelector('#dialog [type=submit]').disabled")
        .await;
    browser.click("#dialog [type=submit]").await;
    browser.until_text(".state-line .chip", "Done").await;
    browser.until_text(".addon-header", &format!("{0} of {0} clusters settled", FLEET + CANARY)).await;
    assert!(story(browser).await.iter().any(|one| (1..FLEET).contains(&one.fleet.done)));
}

/// Sets another config in every placement of the demo's add-on.
async fn want(hub: &Hub, config: &str) {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "addon.open-cluster-management.io",
        "v1alpha1",
        "ClusterManagementAddOn",
    ));
    let addons: Api<DynamicObject> = Api::all_with(hub.client.clone(), &kind);
    let mut spec = addons.get("helloworld").await.unwrap().data["spec"].take();
    for placement in spec["installStrategy"]["placements"].as_array_mut().unwrap() {
        for reference in placement["configs"].as_array_mut().unwrap() {
            if reference["resource"] == "addonhubconfigs" {
                reference["name"] = json!(config);
            }
        }
    }
    hub.put(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn", "metadata": {"name": "helloworld"},
        "spec": {"installStrategy": spec["installStrategy"]},
    }))
    .await;
}
