//! The worked examples of the lifecycle document, whole, with the statuses that it prints at each step.

mod story;

use expect_test::expect;
use story::check;

const FRESH: &str = "
    config hub-config-xxx v0.10.0
    place aws-placement: aws001..aws400
    addon { installStrategy: { type: Placements, placements: [ { name: aws-placement, namespace: default, configs: [ { group: addon.open-cluster-management.io, resource: addonhubconfigs, name: hub-config-xxx } ] } ] } }
    pass 2
";

#[test]
fn fresh_install_of_400_clusters() {
    check(
        &format!("{FRESH} show status\n pass\n show status \n settle\n show status\n show aws001"),
        &expect![""],
    );
}
