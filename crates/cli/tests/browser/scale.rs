//! Many clusters: every one is drawn, every one can be pointed at, and a change draws only what has changed.

use serde_json::json;

use crate::driver::{Browser, DESK, PHONE};
use crate::stand::{Share, Stand, cluster, detail};

const CANVAS: &str = "[data-placement=\"default/fleet\"] canvas";

fn ten_thousand() -> [Share; 2] {
    [
        Share { placement: "default/fleet", prefix: "c", kinds: [3000, 2000, 100, 2900, 0] },
        Share { placement: "default/canary", prefix: "k", kinds: [2000, 0, 0, 0, 0] },
    ]
}

/// Where the squares are: from one to the next in CSS pixels, and how many are side by side.
async fn raster(browser: &Browser) -> (u64, u64) {
    let script = format!(
        "const {{ pitch, columns }} = document.querySelector('{CANVAS}')?.dataset; return pitch && [Number(pitch), Number(columns)]"
    );
    serde_json::from_value(browser.until("the squares", &script).await).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_clusters_are_drawn_and_can_be_pointed_at() {
    let stand = Stand::serve(detail(&ten_thousand()), cluster("c-05050"), false).await;
    let browser = Browser::start(DESK).await;
    browser.open(&stand.url("/addon/hello")).await;
    browser.until_text(".legend", "5,000").await;
    let (pitch, columns) = raster(&browser).await;

    // The upper left corner of every square is painted, whatever its shape.
    let painted = browser
        .run(
            "return [...document.querySelectorAll('canvas')].map((canvas) => {
              const { pitch, columns } = canvas.dataset;
              const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              const cells = columns * Math.round(canvas.height / pitch);
              let count = 0;
              for (let cell = 0; cell < cells; cell += 1) {
                const x = (cell % columns) * pitch, y = Math.floor(cell / columns) * pitch;
                if (data[(y * canvas.width + x) * 4 + 3] > 0) count += 1;
              }
              return count;
            })",
        )
        .await;
    assert_eq!(painted, json!([8000, 2000]));

    // Rows are in order here, so the place of a square is its number.
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
    // Three that waited are told. In order of state, three squares change at the front of those in flight, and three at the front of those that failed.
    stand.say(
        "addon-delta",
        &json!({"now": "2026-01-01T00:11:00Z", "inFlight": 2003, "waiting": 2897, "rows": [[5100, 1, 1, 5], [5101, 1, 1, 5], [5102, 1, 1, 5]]}),
    );
    browser.until_text(".legend", "2,003").await;
    browser.until("the squares to be drawn", "return window.cleared").await;
    assert_eq!(browser.run("return window.cleared").await, 6);
    // And the one that stands where the first failed one stood is one of the three.
    let cell = 5000;
    browser.hover(CANVAS, (cell % columns * pitch + 3) as f64, (cell / columns * pitch + 3) as f64).await;
    browser.until_text(".tip", "c-05100").await;

    // Words that many clusters share change at once, and draw nothing.
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
    browser.screen(crate::driver::Screen { width: 2560, height: 1400, ratio: 1.0, dark: true }).await;
    browser
        .until(
            "the squares to spread",
            &format!("return Number(document.querySelector('{CANVAS}').dataset.columns) > {}", narrow * 4),
        )
        .await;
    assert_eq!(browser.run(overflow).await, 0);
    browser.end(&[]).await;
}
