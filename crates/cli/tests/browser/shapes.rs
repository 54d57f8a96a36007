//! States are recognisable without colour, and the page is complete in light, dark, narrow and wide
//! layouts.

use std::collections::BTreeSet;

use serde_json::json;

use crate::driver::{Browser, DESK, PHONE, Screen};
use crate::stand::{Share, Stand, cluster, detail};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_has_a_shape_of_its_own() {
    let share = Share { placement: "default/fleet", prefix: "c", kinds: [1, 1, 1, 1, 1] };
    let stand = Stand::serve(detail(&[share]), cluster("c-00002"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until("the squares", "return document.querySelector('canvas')?.dataset.pitch").await;
    // The five squares in black and white: a pixel is ink if it is clearly darker than the
    // background.
    let shapes = browser
        .run(
            "const canvas = document.querySelector('canvas');
            const pitch = Number(canvas.dataset.pitch);
            return [0, 1, 2, 3, 4].map((cell) => {
              const data = pixels(canvas, cell * pitch, 0, pitch, pitch);
              let shape = '';
              for (let at = 0; at < data.length; at += 4) {
                const light = (0.3 * data[at] + 0.6 * data[at + 1] + 0.1 * data[at + 2]) / 255;
                shape += data[at + 3] > 128 && light < 0.7 ? '#' : '.';
              }
              return shape;
            })",
        )
        .await;
    let shapes: Vec<String> = serde_json::from_value(shapes).unwrap();
    for shape in &shapes {
        assert!(shape.contains('#'), "{shapes:#?}");
    }
    let unlike = |a: &str, b: &str| a.chars().zip(b.chars()).filter(|(a, b)| a != b).count();
    for (at, shape) in shapes.iter().enumerate() {
        for other in &shapes[at + 1..] {
            assert!(unlike(shape, other) * 10 > shape.len(), "{shapes:#?}");
        }
    }
    // There is also a word next to the mark, in the legend and for each state.
    let legend = browser.texts(".legend .key").await;
    let legend: Vec<String> =
        legend.iter().map(|key| key.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(legend, ["1 settled", "1 in flight", "1 failed", "1 waiting", "1 leaving"]);
    // The bar has the counts of the legend, and the figure below it their sum.
    assert_eq!(
        browser.run("return document.querySelector('.total .bar').getAttribute('aria-label')").await,
        "1 settled, 1 in flight, 1 failed, 1 waiting, 1 leaving"
    );
    assert_eq!(browser.texts(".total .numbers").await, ["1 of 5 clusters settled"]);
    // The figure beside the bar counts settled clusters. A second count in the message would
    // contradict it.
    assert_eq!(browser.texts(".placement-bar .numbers").await, ["1 of 4"]);
    assert_eq!(browser.texts(".placement .message").await, ["upgrading..."]);
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn colours_follow_the_system_until_somebody_chooses() {
    let share = Share { placement: "default/fleet", prefix: "c", kinds: [1, 0, 0, 0, 0] };
    let stand = Stand::serve(detail(&[share]), cluster("c-00000"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until("the squares", "return document.querySelector('canvas')?.dataset.pitch").await;
    let look = "const canvas = document.querySelector('canvas');
        const data = pixels(canvas, 4, 4, 1, 1);
        return [getComputedStyle(document.body).backgroundColor, [...data].join(' ')].join(' / ')";
    let light = browser.run(look).await;
    browser.screen(Screen { dark: true, ..DESK }).await;
    let dark = browser.until("the squares to follow", &format!("const now = (() => {{ {look} }})(); const [paper, ink] = now.split(' / '); const [was, before] = {light}.split(' / '); return paper !== was && ink !== before && now")).await;

    browser.click("#theme").await;
    browser.until_text("#theme-text", "light").await;
    browser.until("light to be chosen", &format!("return (() => {{ {look} }})() === {light}")).await;
    browser.click("#theme").await;
    browser.until("dark to be chosen", &format!("return (() => {{ {look} }})() === {dark}")).await;
    // The choice is remembered.
    browser.screen(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until("dark to be remembered", &format!("return (() => {{ {look} }})() === {dark}")).await;
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_sticks_out_of_a_phone() {
    let long = "a-very-long-name-that-no-phone-can-show-in-one-line-".repeat(4);
    let mut add_on = detail(&[
        Share { placement: "default/canary", prefix: "canary", kinds: [3, 1, 1, 0, 1] },
        Share { placement: "default/fleet", prefix: "fleet", kinds: [0, 0, 0, 200, 0] },
    ]);
    add_on["displayName"] = json!(long);
    add_on["message"] = json!(long);
    add_on["placements"][1]["name"] = json!(format!("default/{long}"));
    add_on["placements"][1]["gate"] = json!({"canaries": ["default/canary"], "open": false, "message": long});
    add_on["reasons"] = json!([{"code": "Canary", "kind": "waiting", "message": long, "count": 200, "examples": [long, "fleet-00010"]}]);
    add_on["revisions"] = json!([{
        "label": "rev-b", "number": 2, "placement": "default/canary", "version": "v2", "at": "2026-01-01T00:00:00Z", "current": true, "clusters": 5, "changes": [long],
    }]);
    add_on["events"] = json!([{"at": "2026-01-01T00:09:00Z", "type": "Warning", "reason": "Halted", "message": long, "about": "ClusterManagementAddOn hello"}]);
    let stand = Stand::serve(add_on, cluster("canary-00004"), true).await;
    let browser = Browser::start(PHONE).await;
    let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    browser.open(&stand.url("/")).await;
    browser.until_text(".addons", "a-very-long").await;
    assert_eq!(browser.run(overflow).await, 0);
    browser.click(".addon").await;
    browser.until_text(".event-list", "Halted").await;
    assert_eq!(browser.run(overflow).await, 0);
    // All buttons are within the screen.
    let outside = browser
        .run("return [...document.querySelectorAll('button, a, input, canvas')].filter((one) => one.offsetParent && one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML)")
        .await;
    assert_eq!(outside, json!([]));
    browser.click(".examples button").await;
    browser.until_text("#panel", "no pod runs").await;
    assert_eq!(browser.run(overflow).await, 0);
    browser.click("#panel button").await;
    browser.until("the panel to close", "return document.getElementById('panel').hidden").await;
    browser.end(&[]).await;
}

/// The contrast of two colours, by the accessibility guidelines.
fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let light = |colour: [f64; 3]| {
        let [r, g, b] = colour.map(|part| {
            let part = part / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_has_enough_contrast_in_light_and_dark() {
    let mut add_on = detail(&[
        Share { placement: "default/canary", prefix: "canary", kinds: [3, 1, 1, 0, 1] },
        Share { placement: "default/fleet", prefix: "fleet", kinds: [0, 0, 0, 20, 0] },
    ]);
    add_on["placements"][1]["gate"] =
        json!({"canaries": ["default/canary", "other/early"], "open": false, "message": "1 of 5 not passed"});
    add_on["placements"][0]["state"] = json!("Failed");
    add_on["placements"][1]["state"] = json!("WaitingForCanary");
    add_on["problems"] = json!([{"severity": "error", "message": "mend it"}, {"severity": "warning", "message": "look at it"}]);
    add_on["brake"] = json!({"held": 3, "message": "3 would go", "acknowledge": "3"});
    add_on["reasons"] = json!([{"code": "Canary", "kind": "waiting", "message": "not passed", "count": 20, "examples": ["fleet-00010"]}]);
    add_on["events"] = json!([{"at": "2026-01-01T00:09:00Z", "type": "Warning", "reason": "Halted", "message": "it is", "about": "ClusterManagementAddOn hello"}]);
    let stand = Stand::serve(add_on, cluster("canary-00004"), true).await;
    let browser = Browser::start(DESK).await;
    for dark in [false, true] {
        browser.screen(Screen { dark, ..DESK }).await;
        browser.open(&stand.url("/addon/hello/cluster/canary-00004")).await;
        browser.until_text("#panel", "no pod runs").await;
        // Each text with its colour, and the first opaque background behind it.
        let found = browser
            .run(
                "const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
                const seen = new Map();
                for (const node of document.querySelectorAll('body *')) {
                  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
                  if (!own || !node.offsetParent || node.closest('svg')) continue;
                  let ground = node;
                  while (ground && (parts(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
                  const pair = [parts(getComputedStyle(node).color), parts(getComputedStyle(ground ?? document.body).backgroundColor)];
                  seen.set(JSON.stringify(pair), [node.innerText.slice(0, 40), ...pair]);
                }
                return [...seen.values()]",
            )
            .await;
        let found: Vec<(String, Vec<f64>, Vec<f64>)> = serde_json::from_value(found).unwrap();
        assert!(found.len() > 5, "{found:?}");
        let weak: BTreeSet<String> = found
            .iter()
            .map(|(text, ink, ground)| {
                (text, contrast([ink[0], ink[1], ink[2]], [ground[0], ground[1], ground[2]]))
            })
            .filter(|(_, contrast)| *contrast < 4.5)
            .map(|(text, contrast)| format!("{contrast:.2} {text}"))
            .collect();
        assert!(weak.is_empty(), "dark: {dark} {weak:#?}");
    }
    browser.end(&[]).await;
}
