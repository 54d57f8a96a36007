//! On a hub with OCM's CRDs.

use crate::story::check;
use expect_test::expect;

/// OCM's CRD sets `minSuccessTime: "0"`, `progressDeadline: None` and `maxFailures: 0` in every
/// Progressive strategy.
#[test]
fn a_strategy_with_the_defaults_of_ocms_schema_rolls_out() {
    check(
        "
        hub ocm
        config A v1
        config B v2
        clusters a1..a4
        place prod: a1..a4
        rollout prod Progressive 2 config=A minSuccessTime=0 progressDeadline=None maxFailures=0
        settle
        rollout prod Progressive 2 config=B minSuccessTime=0 progressDeadline=None maxFailures=0
        pass
        show clusters
        settle
        show clusters
        pass
        show writes
        ",
        &expect![[r#"
            a1..a2 (2)       in flight v2       updating
            a3..a4 (2)       hold      a84cccaf9d18 budget full: 2 of 2 in flight
            0 writes
        "#]],
    );
}
