//! OCM's later strategies on the same machinery: decision groups one after another.

use crate::story::check;
use expect_test::expect;

#[test]
fn ocm_progressive_per_group_goes_group_by_group() {
    check(
        "
        config A v1
        config B v2
        place prod: a1 a2 | b1 b2 | c1
        rollout prod config=A All
        settle
        rollout prod config=B PerGroup mandatory=g2
        pass
        show clusters
        ack c1
        pass
        show clusters
        ack a1 a2
        pass
        show clusters",
        &expect![[r#"
            a1..b2 (4)       hold      v1       group g2 goes first
            c1               in flight v2       updating
            a1..a2 (2)       in flight v2       updating
            b1..b2 (2)       hold      v1       group g0 goes first
            b1..b2 (2)       in flight v2       updating
        "#]],
    );
}

#[test]
fn ocm_progressive_takes_mandatory_groups_first_and_keeps_its_concurrency_in_them() {
    check(
        "
        config A v1
        config B v2
        place prod: a1 a2 | b1 b2 | c1
        rollout prod config=A All
        settle
        rollout prod config=B Progressive 1 mandatory=g1
        pass
        show clusters
        ack b1
        pass
        ack b2
        pass
        show clusters",
        &expect![[r#"
            a1..a2 (2)       hold      v1       group g1 goes first
            b1               in flight v2       updating
            b2               hold      v1       budget full: 1 of 1 in flight
            c1               hold      v1       group g1 goes first
            a1               in flight v2       updating
            a2..c1 (2)       hold      v1       budget full: 1 of 1 in flight
        "#]],
    );
}
