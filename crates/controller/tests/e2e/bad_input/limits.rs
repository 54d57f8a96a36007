//! Limits and times that make no sense, and those that only look as if.

use serde_json::{Value, json};

use super::healthy;
use super::row::Admission::{Refused, Taken};
use super::row::Outcome::{Does, Says};
use super::row::{Row, row};
use crate::audit::Auditor;
use crate::objects::{rolling, update_all};
use crate::shared;

const LIMIT: &str = "must be a whole number of at least 1, or a whole percentage from 1% to 100%";

pub(super) fn rows() -> Vec<Row> {
    vec![
        limit(
            "`maxConcurrentlyUpdating: 0`",
            json!(0),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: 0 is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%",
            ),
        ),
        limit(
            "… `-1`",
            json!(-1),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: -1 is not a limit",
            ),
        ),
        limit(
            "… `\"0%\"`",
            json!("0%"),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: \"0%\" is not a limit",
            ),
        ),
        limit(
            "… `\"200%\"`",
            json!("200%"),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: \"200%\" is not a limit",
            ),
        ),
        limit(
            "… `\"-5%\"`",
            json!("-5%"),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: \"-5%\" is not a limit",
            ),
        ),
        limit(
            "… `\"NaN%\"`",
            json!("NaN%"),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: \"NaN%\" is not a limit",
            ),
        ),
        limit(
            "… `\"33.3%\"`",
            json!("33.3%"),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: \"33.3%\" is not a limit",
            ),
        ),
        limit(
            "… 2^31",
            json!(2_147_483_648_u64),
            Says(
                "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: 2147483648 is not a limit",
            ),
        ),
        // Not even a number that an API server counts with: it says so and no more, and some let
        // nobody write the status of what has it.
        limit(
            "… 2^63",
            json!(9_223_372_036_854_775_808_u64),
            Does("the same, if the server accepts a status update of such an object"),
        )
        .admission(Refused("rollingUpdate.maxConcurrentlyUpdating: Invalid value"))
        .acts(|site| async move {
            // By then this one has been planned as well.
            healthy::until_upgraded(&site.world).await;
            site.assert_nobody_moved().await;
            if shared::kubeconfig().is_none() {
                let says = "LimitInvalid: placement default/<placement>: rollingUpdate.maxConcurrentlyUpdating: 9… is not a limit";
                site.until_says(&site.addon(), says).await;
            }
        }),
        row("… `\"5\"`, a number as text", Taken, Does("means 5"))
            .clusters(7)
            .bad(|site| {
                site.hands.hold(&site.name());
                vec![site.addon_with("two", rolling("5"))]
            })
            .acts(|site| async move {
                site.until_message("5/7 upgrading...").await;
                site.until_told_two(5).await;
                site.hands.let_all_go(&site.name());
                site.until_upgraded().await;
            }),
        row("… larger than the fleet", Taken, Does("means the whole fleet"))
            .bad(|site| {
                site.hands.hold(&site.name());
                vec![site.addon_with("two", rolling(1000))]
            })
            .acts(|site| async move {
                site.until_told_two(2).await;
                site.hands.let_all_go(&site.name());
                site.until_upgraded().await;
            }),
        row("… `\"1%\"` of one cluster", Taken, Does("means 1"))
            .clusters(1)
            .bad(|site| vec![site.addon_with("two", rolling("1%"))])
            .acts(|site| async move { site.until_upgraded().await }),
        row(
            "… lowered in mid-rollout",
            Taken,
            Does("nothing new starts until fewer clusters are in flight; nothing is undone"),
        )
        .clusters(6)
        .bad(|site| {
            site.hands.hold(&site.name());
            vec![site.addon_with("two", rolling(4))]
        })
        .acts(|site| async move {
            site.until_told_two(4).await;
            let audit = Auditor::start(&site.world.client, &site.name()).await;
            site.world.put(site.addon_with("two", rolling(1))).await;
            for (index, cluster) in site.clusters.iter().enumerate() {
                site.hands.let_go(&site.name(), cluster);
                site.until_run(&site.clusters[..=index], "v2.0.0").await;
            }
            site.until_upgraded().await;
            let mut on_their_way = 4;
            audit
                .end(|fleet, commit| {
                    let now = fleet.in_flight().len();
                    assert!(now <= on_their_way.max(1), "{}: {now} after {}", site.input, commit.cluster);
                    on_their_way = now;
                })
                .await;
        }),
        duration(
            "`progressDeadline: \"-5m\"`",
            "progressDeadline",
            "-5m",
            Says(
                "DurationInvalid: placement default/<placement>: progressDeadline: \"-5m\" is not a duration: give one such as 90s, 10m or 1h30m",
            ),
        ),
        duration(
            "… `\"5mfoo\"`",
            "progressDeadline",
            "5mfoo",
            Says(
                "DurationInvalid: placement default/<placement>: progressDeadline: \"5mfoo\" is not a duration",
            ),
        ),
        duration(
            "`minSuccessTime: \"-5m\"`",
            "minSuccessTime",
            "-5m",
            Says("DurationInvalid: placement default/<placement>: minSuccessTime: \"-5m\" is not a duration"),
        ),
        duration(
            "… `\"5mfoo\"`",
            "minSuccessTime",
            "5mfoo",
            Says(
                "DurationInvalid: placement default/<placement>: minSuccessTime: \"5mfoo\" is not a duration",
            ),
        ),
    ]
}

/// A limit that is none: nobody moves before it is mended.
fn limit(input: &'static str, limit: Value, says: super::row::Outcome) -> Row {
    stands_still(
        row(input, Refused(LIMIT), says)
            .bad(move |site| vec![site.addon_with("two", rolling(limit.clone()))]),
    )
}

fn duration(input: &'static str, field: &'static str, given: &'static str, says: super::row::Outcome) -> Row {
    stands_still(row(input, Refused("should match '^(0|None|([0-9]+(h|m|s|ms))+)$'"), says).bad(
        move |site| {
            let mut strategy = update_all();
            strategy[field] = json!(given);
            vec![site.addon_with("two", strategy)]
        },
    ))
}

fn stands_still(row: Row) -> Row {
    row.note("no cluster is upgraded until it is fixed").mends(|site| async move {
        site.assert_nobody_moved().await;
        site.upgrade().await;
    })
}
