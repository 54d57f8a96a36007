//! Finding clusters, everything about one of them, and what to do about it.

use serde_json::json;

use crate::driver::{Browser, DESK, PHONE};
use crate::stand::{Share, Stand, cluster, detail};

/// Whether the placeholder of a field is visible as a whole.
const PLACEHOLDER_FITS: &str = "
    const field = document.querySelector('main input[type=search]');
    const style = getComputedStyle(field);
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return pen.measureText(field.placeholder).width <= room;
";

fn share() -> Share {
    Share { placement: "default/fleet", prefix: "c", kinds: [2, 1, 1, 3, 0] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_found_by_label_and_listed() {
    let stand = Stand::serve(detail(&[share()]), cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text("#connection-text", "live").await;
    assert_eq!(browser.texts("#user").await, ["alice"]);
    assert_eq!(browser.count(".results:not([hidden])").await, 0);
    browser.click(".find .search").await;
    browser.press("cloud=aws").await;
    browser.until_text(".found", "4 clusters found").await;
    let names = browser.texts(".result-list .link").await;
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.contains(&"c-00000".to_owned()) && names.contains(&"c-00006".to_owned()), "{names:?}");
    // Together with the legend.
    browser.click(".legend .key:nth-child(1)").await;
    browser.until_text(".found", "1 cluster found").await;
    browser.click(".legend .key:nth-child(1)").await;
    browser.click(".result-list .link").await;
    browser.until_text(".panel", "Desired").await;

    browser.run("const field = document.querySelector('.find .search'); field.value = 'a=b=c'; field.dispatchEvent(new Event('input'))").await;
    browser.until_text(".found", "no such labels").await;
    browser.run("const field = document.querySelector('.find .search'); field.value = 'cannot be applied'; field.dispatchEvent(new Event('input'))").await;
    browser.until_text(".found", "1 cluster found").await;
    assert!(browser.texts(".result-list li").await[0].contains("failed: its work cannot be applied"));
    // The refused search is logged by the browser.
    browser.end(&["status of 400"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_panel_shows_revisions_health_and_manifests_and_can_retry() {
    let stand = Stand::serve(detail(&[share()]), cluster("c-00003"), true).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello/cluster/c-00003")).await;
    browser.until_text(".panel", "Desired").await;
    let facts = browser.texts(".panel-body > .facts").await.remove(0).replace('\n', " ");
    assert!(facts.contains("Desired rev-c Assigned rev-b Applied rev-a"), "{facts}");
    let told = browser.texts(".panel").await.remove(0);
    for part in ["Health", "no pod runs", "ReadyReplicas", "Rendered manifest"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    browser.click(".content summary").await;
    browser.until_text(".content pre", "<b>text</b>").await;

    browser.run("[...document.querySelectorAll('.panel button')].find((one) => one.innerText === 'Retry…').click()").await;
    browser.until_text("#dialog", "Retry c-00003?").await;
    browser
        .until("the retry to be possible", "return !document.querySelector('#dialog .primary').disabled")
        .await;
    browser.click("#dialog .primary").await;
    browser.until("the dialog to close", "return !document.querySelector('#dialog').open").await;
    let asked = |dry: bool| json!({"action": "retry", "cluster": "c-00003", "dryRun": dry});
    assert_eq!(stand.posted(), [asked(true), asked(false)]);
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_estimates_the_time_left_and_says_when_it_is_paused() {
    let stand = Stand::serve(detail(&[share()]), cluster("c-00000"), true).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    // Two of seven settled in ten minutes; four are left.
    browser.until_text(".state-line", "about 20 min left at this pace (2 settled in 10 min)").await;
    assert_eq!(browser.texts(".actions button").await, ["Pause…", "Undo…", "Retry failed…"]);
    // No space is left under a card beside a longer one.
    let bottoms = "return [...document.querySelectorAll('.below .card')].map((card) => Math.round(card.getBoundingClientRect().bottom))";
    let bottoms: Vec<i64> = serde_json::from_value(browser.run(bottoms).await).unwrap();
    assert!(bottoms.len() == 4 && bottoms[0] == bottoms[1] && bottoms[2] == bottoms[3], "{bottoms:?}");
    stand.say("addon-delta", &json!({"now": "2026-01-01T00:10:01Z", "paused": true}));
    browser.until_text(".state-line .chip", "Paused").await;
    assert!(!browser.texts(".state-line").await[0].contains("left at this pace"));
    browser.until_text(".actions", "Resume…").await;
    stand.say("addon-delta", &json!({"now": "2026-01-01T00:10:02Z", "failed": 0, "paused": false}));
    browser
        .until("nothing to retry", "return document.querySelector('.actions button:last-child').hidden")
        .await;
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pace_of_an_earlier_rollout_does_not_count() {
    let mut again = detail(&[share()]);
    // Seven settled on one revision; then the next began, five minutes ago.
    again["timeline"] = json!([
        [1767225600, 0, 0, 0, 7],
        [1767225660, 7, 0, 0, 0],
        [1767225900, 0, 2, 0, 5],
        [1767226200, 2, 1, 1, 3],
    ]);
    let stand = Stand::serve(again, cluster("c-00000"), true).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text(".state-line", "about 10 min left at this pace (2 settled in 5 min)").await;
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_placeholders_of_searches_fit() {
    let stand = Stand::serve(detail(&[share()]), cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    for view in ["", "/addon/hello"] {
        for screen in [DESK, PHONE] {
            browser.screen(screen).await;
            browser.open(&stand.url(view)).await;
            browser.until("a search", "return document.querySelector('main input[type=search]')").await;
            assert_eq!(browser.run(PLACEHOLDER_FITS).await, true, "{view} {screen:?}");
        }
    }
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_is_visible_even_if_nothing_waits() {
    let share = Share { placement: "default/fleet", prefix: "c", kinds: [4, 0, 0, 0, 0] };
    let mut done = detail(&[share]);
    done["state"] = json!("Done");
    done["paused"] = json!(true);
    done["placements"][0]["state"] = json!("Upgraded");
    done["placements"][0]["paused"] = json!(true);
    let stand = Stand::serve(done, cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("")).await;
    browser.until_text(".addon-names .tag", "paused").await;
    browser.click(".addon").await;
    browser.until_text(".state-line .tag", "paused: fleet").await;
    assert_eq!(browser.texts(".placement-name .tag").await, ["paused"]);
    browser.end(&[]).await;
}

/// No waiting time of zero seconds, and one statement about gates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_begins_now_is_not_shown_and_undo_leaves_canaries_to_the_answer() {
    let mut add_on = detail(&[share()]);
    add_on["oldestWaitSince"] = add_on["now"].clone();
    let stand = Stand::serve(add_on, cluster("c-00000"), true).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    // The clock of the page runs on, so the first state counts.
    browser
        .until(
            "the first state",
            "window.first ??= document.querySelector('.state-line')?.innerText; return window.first",
        )
        .await;
    let first = browser.run("return window.first").await;
    assert!(!first.as_str().unwrap().contains("wait 0"), "{first}");
    browser.click(".actions button:nth-child(2)").await;
    let asked = browser.until_text("#dialog", "Undo hello?").await;
    assert!(asked.contains("an earlier revision") && !asked.contains("gate"), "{asked}");
    // A canary does delay a revision that had been rolled back; only the server knows.
    assert!(!asked.to_lowercase().contains("canary delays"), "{asked}");
    browser.end(&[]).await;
}
