//! Many clusters: each one is drawn and can be pointed at, and a change redraws only what has
//! changed.

use serde_json::json;

use crate::driver::{Browser, DESK, PHONE, Screen};
use crate::run::{Hub, start};
use crate::stand::{Share, Stand, cluster, detail};
use crate::transcript::desk;

const CANVAS: &str = "[data-placement=\"default/fleet\"] canvas";

fn ten_thousand() -> [Share; 2] {
    [
        Share { placement: "default/fleet", prefix: "c", kinds: [3000, 2000, 100, 2900, 0] },
        Share { placement: "default/canary", prefix: "k", kinds: [2000, 0, 0, 0, 0] },
    ]
}

/// The layout of the squares: their distance in CSS pixels, and how many are in a row.
async fn raster(browser: &Browser) -> (u64, u64) {
    let script = format!(
        "const {{ pitch, columns }} = document.querySelector('{CANVAS}')?.dataset; return pitch && [Number(pitch), Number(columns)]"
    );
    serde_json::from_value(browser.until("the squares", &script).await).unwrap()
}

/// The number of painted squares per placement: the upper left corner is painted in every shape.
async fn painted(browser: &Browser) -> Vec<u64> {
    let script = "return [...document.querySelectorAll('canvas')].map((canvas) => {
        const { pitch, columns } = canvas.dataset;
        const data = pixels(canvas, 0, 0, canvas.width, canvas.height);
        const cells = columns * Math.round(canvas.height / pitch);
        let count = 0;
        for (let cell = 0; cell < cells; cell += 1) {
          const x = (cell % columns) * pitch, y = Math.floor(cell / columns) * pitch;
          if (data[(y * canvas.width + x) * 4 + 3] > 0) count += 1;
        }
        return count;
      })";
    serde_json::from_value(browser.run(script).await).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_clusters_are_drawn_and_can_be_pointed_at() {
    let stand = Stand::serve(detail(&ten_thousand()), cluster("c-05050"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text(".legend", "5,000").await;
    let (pitch, columns) = raster(&browser).await;

    assert_eq!(painted(&browser).await, [8000, 2000]);

    // Rows are in order here, so the position of a square is its row number.
    for (number, words) in [
        (0_u64, "settled"),
        (2999, "settled"),
        (3000, "in flight"),
        (4321, "in flight"),
        (5050, "failed"),
        (5100, "waiting"),
        (7999, "waiting"),
    ] {
        let (x, y) = (number % columns * pitch + pitch / 2, number / columns * pitch + pitch / 2);
        browser.hover(CANVAS, x as f64, y as f64).await;
        let tip = browser.until_text(".tip", &format!("c-{number:05}")).await;
        assert!(tip.contains(words) && tip.contains("default/fleet · rev-b"), "{tip}");
    }
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_draws_only_the_squares_that_look_different() {
    let stand = Stand::serve(detail(&ten_thousand()), cluster("c-05050"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    let (pitch, columns) = raster(&browser).await;
    browser
        .run(
            "window.cleared = 0;
            const clear = CanvasRenderingContext2D.prototype.clearRect;
            CanvasRenderingContext2D.prototype.clearRect = function (...all) { window.cleared += 1; return clear.apply(this, all); };",
        )
        .await;
    // Three waiting clusters start. Sorted by state, three squares change at the start of those in
    // flight, and three at the start of those that failed.
    stand.say(
        "addon-delta",
        &json!({"now": "2026-01-01T00:11:00Z", "inFlight": 2003, "waiting": 2897, "rows": [[5100, 7, 1, 5], [5101, 7, 1, 5], [5102, 7, 1, 5]]}),
    );
    browser.until_text(".legend", "2,003").await;
    browser.until("the squares to be drawn", "return window.cleared").await;
    assert_eq!(browser.run("return window.cleared").await, 6);
    // The square at the position of the first failed one is now one of the three.
    let cell = 5000;
    browser.hover(CANVAS, (cell % columns * pitch + 3) as f64, (cell / columns * pitch + 3) as f64).await;
    browser.until_text(".tip", "c-05100").await;

    // A text that many clusters share changes once, and redraws nothing.
    stand.say(
        "addon-delta",
        &json!({"now": "2026-01-01T00:12:00Z", "dictionarySet": [[1, "told two minutes ago"]]}),
    );
    browser.hover(CANVAS, (cell % columns * pitch + 4) as f64, (cell / columns * pitch + 4) as f64).await;
    browser.until(
        "the new words",
        &format!("const at = document.querySelector('{CANVAS}').getBoundingClientRect();
            document.querySelector('{CANVAS}').dispatchEvent(new PointerEvent('pointermove', {{ clientX: at.left + {x}, clientY: at.top + {y} }}));
            return document.querySelector('.tip').innerText.includes('told two minutes ago')",
            x = cell % columns * pitch + 3, y = cell / columns * pitch + 3),
    ).await;
    assert_eq!(browser.run("return window.cleared").await, 6);
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_clusters_fit_a_phone_and_a_wall() {
    let share = Share { placement: "default/fleet", prefix: "c", kinds: [12000, 2000, 100, 5900, 0] };
    let stand = Stand::serve(detail(&[share]), cluster("c-05050"), false).await;
    let browser = Browser::start(PHONE).await;
    browser.open(&stand.url("/addon/hello")).await;
    let (_, narrow) = raster(&browser).await;
    let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.run(overflow).await, 0);
    browser.screen(Screen { width: 2560, height: 1400, ratio: 1.0, dark: true }).await;
    browser
        .until(
            "the squares to spread",
            &format!("return Number(document.querySelector('{CANVAS}').dataset.columns) > {}", narrow * 4),
        )
        .await;
    assert_eq!(browser.run(overflow).await, 0);
    browser.end(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_clusters_of_a_real_hub_are_drawn_and_can_be_pointed_at() {
    let desk = desk("browser-scale");
    let _hub = start(&desk, "hub --ephemeral --listen 127.0.0.1:0 --kubeconfig-out kubeconfig");
    let hub = Hub::of(&desk, "kubeconfig").await;
    hub.put_helloworld().await;
    hub.want("v1.0.0").await;
    let _manager =
        start(&desk, "manager --kubeconfig kubeconfig --placement --metrics 127.0.0.1:0 --log warn");
    let dashboard = start(&desk, "dashboard --kubeconfig kubeconfig --listen 127.0.0.1:0");
    let browser = Browser::start(DESK).await;
    browser.open(&format!("{}/addon/helloworld", dashboard.word("dashboard"))).await;
    browser.until("the add-on", "return document.querySelector('[data-placement]')").await;
    // The clusters appear while the page is open.
    let _fleet = start(&desk, "fleet --clusters 10000 --latency 0s..0s --kubeconfig kubeconfig");
    browser
        .until(
            "all clusters to be there",
            "return [...document.querySelectorAll('.legend .numbers')].reduce((sum, one) => sum + Number(one.textContent.replace(/,/g, '')), 0) === 10000",
        )
        .await;
    // From here on nothing moves on the page.
    hub.until_done(10_000, "v1.0.0").await;
    browser
        .until(
            "all clusters to be settled",
            "return document.querySelector('.legend .numbers').textContent === '10,000'",
        )
        .await;
    assert_eq!(painted(&browser).await, [10_000]);
    let canvas = "[data-placement=\"default/all\"] canvas";
    let raster = browser.run(&format!("const {{ pitch, columns }} = document.querySelector('{canvas}').dataset; return [Number(pitch), Number(columns)]")).await;
    let (pitch, columns): (u64, u64) = serde_json::from_value(raster).unwrap();
    let mut named = std::collections::BTreeSet::new();
    for number in [0, 4_999, 9_999] {
        let (x, y) = (number % columns * pitch + pitch / 2, number / columns * pitch + pitch / 2);
        browser.hover(canvas, x as f64, y as f64).await;
        let tip = browser.until_text(".tip", "default/all").await;
        named.insert(tip.lines().next().unwrap().to_owned());
    }
    assert_eq!(named.len(), 3, "{named:?}");
    browser.end(&[]).await;
}
