//! `aviary plan` on the worked examples of the final design document.

use crate::transcript::desk;
use crate::transcript::worlds::*;
use expect_test::expect;
use serde_json::{Value, json};

#[test]
fn a_fresh_install_goes_to_all_400_clusters_at_once() {
    let addon = addon(&[placement("aws-placement", "hub-config-xxx", &Value::Null)]);
    desk("fresh_install")
        .file("addon.yaml", stream(&[hub_config("hub-config-xxx", "v0.10.0"), addon]))
        .file("decisions.yaml", stream(&decisions("aws-placement", &names("aws", 400))))
        .check(&format!("plan -f addon.yaml decisions.yaml {NOW}"), &expect![[r#"
            $ aviary plan -f addon.yaml decisions.yaml --now 2026-01-01T00:00:00Z
            Add-on helloworld, 400 clusters: 400 created

            Created now
              CLUSTERS  WHAT             PLACEMENT              WHICH
                   400  install v0.10.0  default/aws-placement  aws001, aws002, aws003 and 397 more

            1 wave, if every cluster succeeds immediately
              WAVE  CLUSTERS  SHARE  REACHED  WHAT
                 1       400   100%     100%  default/aws-placement: 400 install v0.10.0

            Placements
              PLACEMENT              GOVERNS  BUDGET  WANTS    STATE       MESSAGE
              default/aws-placement      400  all     v0.10.0  Installing  installing...

            Assumed
              placement default/aws-placement is not in the files: it is assumed to select the clusters in its decisions

            Notes
              the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable

            Nothing was written. Next: kubectl apply -f addon.yaml
        "#]]);
}

/// A budget does not slow down first installs, and whoever set one should know.
#[test]
fn a_first_install_of_more_clusters_than_the_budget_is_warned_about() {
    let plan = |budget: &str| {
        let addon = addon(&[placement("aws-placement", "hub-config-xxx", &rolling(budget))]);
        desk("first_install_warning")
            .file("addon.yaml", stream(&[hub_config("hub-config-xxx", "v0.10.0"), addon]))
            .file("decisions.yaml", stream(&decisions("aws-placement", &names("aws", 8))))
            .run(&format!("plan -f addon.yaml decisions.yaml {NOW}"))
    };
    let warning = "default/aws-placement: 8 clusters are installed at once: the rollout strategy limits updates, not first installs";
    let told = plan("25%");
    assert!(told.contains(warning) && told.contains("FirstInstallsNotThrottled"), "{told}");
    let told = plan("100%");
    assert!(!told.contains("FirstInstallsNotThrottled"), "{told}");
}

/// 400 clusters, of which the first 100 are assigned v0.11.0 and the first 40 run it.
fn in_the_middle() -> Vec<Value> {
    let [old, new] = [hub_config("hub-config-xxx", "v0.10.0"), hub_config("hub-config-yyy", "v0.11.0")];
    let mut addon = addon(&[placement("aws-placement", "hub-config-yyy", &rolling("25%"))]);
    progression(&mut addon, "aws-placement", [&new, &old, &old]);
    let aws = names("aws", 400);
    let mut world = vec![old.clone(), new.clone(), addon];
    world.extend(decisions("aws-placement", &aws));
    for (index, name) in aws.iter().enumerate() {
        let region = ["eu-west", "us-east"][index % 2];
        world.push(cluster(name, &json!({ "region": region, "name": name }), index != 399));
        world.push(match index {
            0..40 => instance(name, &new, &new),
            40..100 => instance(name, &new, &old),
            _ => instance(name, &old, &old),
        });
    }
    world
}

#[test]
fn a_rolling_upgrade_goes_on_from_where_it_is() {
    desk("rolling_upgrade")
        .file("fleet.yaml", stream(&in_the_middle()))
        .check(&format!("plan -f fleet.yaml {NOW}"), &expect![[r#"
            $ aviary plan -f fleet.yaml --now 2026-01-01T00:00:00Z
            Add-on helloworld, 400 clusters: 40 started, 60 in flight, 260 waiting, 40 settled

            Started now
              CLUSTERS  WHAT                      PLACEMENT              WHICH
                    40  update v0.10.0 → v0.11.0  default/aws-placement  aws101, aws102, aws103 and 37 more

            In flight
              CLUSTERS  WHY       WHICH
                    60  updating  aws041, aws042, aws043 and 57 more

            4 waves, if every cluster succeeds immediately
              WAVE  CLUSTERS  SHARE  REACHED  WHAT
                 1        40    10%      35%  default/aws-placement: 40 update v0.10.0 → v0.11.0
                 2       100    25%      60%  default/aws-placement: 100 update v0.10.0 → v0.11.0
                 3       100    25%      85%  default/aws-placement: 100 update v0.10.0 → v0.11.0
                 4        60    15%     100%  default/aws-placement: 60 update v0.10.0 → v0.11.0
              then 1 cluster is stuck: offline since 2025-12-31T00:00:00Z, in flight: aws400

            By label
              LABEL           FLEET  WAVE 1  WAVE 2  WAVE 3  WAVE 4
              region=eu-west    200      20      50      50      30
              region=us-east    200      20      50      50      30

            Placements
              PLACEMENT              GOVERNS  BUDGET  WANTS    STATE      MESSAGE
              default/aws-placement      400     100  v0.11.0  Upgrading  upgrading...

            Waiting
              CLUSTERS  WHY                                                          WHICH
                   259  budget full: 100 of 100 in flight                            aws141, aws142, aws143 and 256 more
                     1  offline since 2025-12-31T00:00:00Z, starts after all others  aws400

            v0.10.0 → v0.11.0 in default/aws-placement
              addonhubconfigs hub-config-yyy was edited
                spec.desiredVersion: "v0.10.0" → "v0.11.0"

            Assumed
              placement default/aws-placement is not in the files: it is assumed to select the clusters in its decisions
              the files contain none of its ManifestWorks: its instances are assumed to run what their status reports

            Nothing was written. Next: aviary plan -f fleet.yaml --change FILE # to see what a change would do
        "#]]);
}

#[test]
fn the_canary_goes_first() {
    let [old, new] = [hub_config("hub-config-xxx", "v0.10.0"), hub_config("hub-config-yyy", "v0.11.0")];
    let fleet = |config: &str| {
        addon(&[
            placement("aws-placement", config, &with_canary("canary-placement", "25%")),
            placement("canary-placement", config, &rolling("25%")),
        ])
    };
    let mut before = fleet("hub-config-xxx");
    progression(&mut before, "aws-placement", [&old, &old, &old]);
    progression(&mut before, "canary-placement", [&old, &old, &old]);
    let (aws, canary) = (names("aws", 400), names("canary", 100));
    let mut world = vec![old.clone(), before];
    world.extend(decisions("aws-placement", &aws));
    world.extend(decisions("canary-placement", &canary));
    world.extend(aws.iter().chain(&canary).map(|name| instance(name, &old, &old)));
    desk("canary")
        .file("fleet.yaml", stream(&world))
        .file("v2.yaml", stream(&[new, fleet("hub-config-yyy")]))
        .check(&format!("plan -f fleet.yaml --change v2.yaml {NOW}"), &expect![[r#"
            $ aviary plan -f fleet.yaml --change v2.yaml --now 2026-01-01T00:00:00Z
            Add-on helloworld, 500 clusters: 25 started, 475 waiting

            Started now
              CLUSTERS  WHAT                      PLACEMENT                 WHICH
                    25  update v0.10.0 → v0.11.0  default/canary-placement  canary001, canary002, canary003 and 22 more

            8 waves, if every cluster succeeds immediately
              WAVE  CLUSTERS  SHARE  REACHED  WHAT
                 1        25     5%       5%  default/canary-placement: 25 update v0.10.0 → v0.11.0
                 2        25     5%      10%  default/canary-placement: 25 update v0.10.0 → v0.11.0
                 3        25     5%      15%  default/canary-placement: 25 update v0.10.0 → v0.11.0
                 4        25     5%      20%  default/canary-placement: 25 update v0.10.0 → v0.11.0
                 5       100    20%      40%  default/aws-placement: 100 update v0.10.0 → v0.11.0
                 6       100    20%      60%  default/aws-placement: 100 update v0.10.0 → v0.11.0
                 7       100    20%      80%  default/aws-placement: 100 update v0.10.0 → v0.11.0
                 8       100    20%     100%  default/aws-placement: 100 update v0.10.0 → v0.11.0

            Placements
              PLACEMENT                 GOVERNS  BUDGET  WANTS                         STATE             MESSAGE
              default/aws-placement         400     100  v0.11.0 (v0.10.0 until then)  WaitingForCanary  waitingForCanary... canary default/canary-placement: 100 of 100 not passed, first canary001
              default/canary-placement      100      25  v0.11.0                       Upgrading         upgrading...

            Waiting
              CLUSTERS  WHY                                                                      WHICH
                   400  canary default/canary-placement: 100 of 100 not passed, first canary001  aws001, aws002, aws003 and 397 more
                    75  budget full: 25 of 25 in flight                                          canary026, canary027, canary028 and 72 more

            v0.10.0 → v0.11.0 in default/aws-placement, default/canary-placement
              addonhubconfigs: hub-config-xxx → hub-config-yyy
                spec.desiredVersion: "v0.10.0" → "v0.11.0"

            Assumed
              placement default/aws-placement is not in the files: it is assumed to select the clusters in its decisions
              placement default/canary-placement is not in the files: it is assumed to select the clusters in its decisions
              the files contain none of its ManifestWorks: its instances are assumed to run what their status reports

            Notes
              the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable

            Nothing was written. Next: aviary rehearse -f fleet.yaml --change v2.yaml # and then kubectl apply -f v2.yaml
        "#]]);
}

#[test]
fn the_deletion_brake_holds_and_says_what_to_do() {
    let config = hub_config("hub-config-xxx", "v0.10.0");
    let mut addon = addon(&[placement("aws-placement", "hub-config-xxx", &Value::Null)]);
    progression(&mut addon, "aws-placement", [&config, &config, &config]);
    let aws = names("aws", 40);
    let mut world = vec![config.clone(), addon];
    world.extend(decisions("aws-placement", &aws[..4]));
    world.extend(aws.iter().map(|name| instance(name, &config, &config)));
    let desk = desk("brake").file("fleet.yaml", stream(&world));
    desk.check(&format!("plan -f fleet.yaml {NOW}"), &expect![[r#"
        $ aviary plan -f fleet.yaml --now 2026-01-01T00:00:00Z
        Add-on helloworld, 40 clusters: 36 waiting, 4 settled

        Placements
          PLACEMENT              GOVERNS  BUDGET  WANTS    STATE           MESSAGE
          default/aws-placement        4  all     v0.10.0  UpgradeSucceed  upgrade completed with no errors.

        Waiting
          CLUSTERS  WHY                                               WHICH
                36  no longer selected, but the deletion brake holds  aws005, aws006, aws007 and 33 more

        Problems
          SEVERITY  REASON        MESSAGE
          error     DeletionHeld  36 of 40 instances would be deleted: to allow it, annotate the add-on with addon.open-cluster-management.io/allow-deletions="36"

        Assumed
          placement default/aws-placement is not in the files: it is assumed to select the clusters in its decisions
          the files contain none of its ManifestWorks: its instances are assumed to run what their status reports

        Notes
          the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable

        Nothing was written. Next: kubectl annotate clustermanagementaddon helloworld addon.open-cluster-management.io/allow-deletions=36 # to approve the deletion
        exit 1
    "#]]);

    world[1]["metadata"]["annotations"] = json!({ "addon.open-cluster-management.io/allow-deletions": "36" });
    let desk = desk.file("fleet.yaml", stream(&world));
    desk.check(&format!("plan -f fleet.yaml {NOW}"), &expect![[r#"
        $ aviary plan -f fleet.yaml --now 2026-01-01T00:00:00Z
        Add-on helloworld, 40 clusters: 36 removed, 4 settled

        Removed
          CLUSTERS  WHY                 WHICH
                36  no longer selected  aws005, aws006, aws007 and 33 more

        Placements
          PLACEMENT              GOVERNS  BUDGET  WANTS    STATE           MESSAGE
          default/aws-placement        4  all     v0.10.0  UpgradeSucceed  upgrade completed with no errors.

        Assumed
          placement default/aws-placement is not in the files: it is assumed to select the clusters in its decisions
          the files contain none of its ManifestWorks: its instances are assumed to run what their status reports

        Notes
          the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable

        Nothing was written. Next: aviary plan -f fleet.yaml --change FILE # to see what a change would do
    "#]]);
}

#[test]
fn a_canary_cycle_and_a_missing_config_are_problems_and_nothing_moves() {
    let addon = addon(&[
        placement("a", "gone", &with_canary("b", "1")),
        placement("b", "gone", &with_canary("a", "1")),
    ]);
    let mut world = vec![addon];
    world.extend(decisions("a", &names("a", 2)));
    world.extend(decisions("b", &names("b", 2)));
    desk("cycle").file("fleet.yaml", stream(&world)).check(&format!("plan -f fleet.yaml {NOW}"), &expect![[r#"
        $ aviary plan -f fleet.yaml --now 2026-01-01T00:00:00Z
        Add-on helloworld, 4 clusters: 4 created

        Created now
          CLUSTERS  WHAT                    PLACEMENT  WHICH
                 2  nothing to install yet  default/a  a001, a002
                 2  nothing to install yet  default/b  b001, b002

        No wave
          2 clusters are stuck: placements wait for each other as canary: default/a -> default/b -> default/a: a001, a002
          2 clusters are stuck: placements wait for each other as canary: default/b -> default/a -> default/b: b001, b002

        Placements
          PLACEMENT  GOVERNS  BUDGET  WANTS  STATE          MESSAGE
          default/a        2       1      -  InstallFailed  install failed: placements wait for each other as canary: default/a -> default/b -> default/a
          default/b        2       1      -  InstallFailed  install failed: placements wait for each other as canary: default/b -> default/a -> default/b

        Problems
          SEVERITY  REASON                MESSAGE
          error     CanaryCycle           placements wait for each other as canary: default/a -> default/b -> default/a
          error     CanaryCycle           placements wait for each other as canary: default/b -> default/a -> default/b
          error     ConfigurationMissing  addonhubconfigs.addon.open-cluster-management.io gone not found

        Assumed
          placement default/a is not in the files: it is assumed to select the clusters in its decisions
          placement default/b is not in the files: it is assumed to select the clusters in its decisions

        Notes
          the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable

        Nothing was written. Fix the problems of helloworld above, and then run: aviary plan -f fleet.yaml
        exit 1
    "#]]);
}

#[test]
fn an_edit_in_place_is_another_revision_of_the_same_version() {
    let template = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
        "metadata": { "name": "hello-v1" },
        "spec": { "addonName": "helloworld", "version": "v1.0.0", "agentSpec": { "workload": { "manifests": [
            { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c", "namespace": "{{INSTALL_NAMESPACE}}" },
              "data": { "colour": "{{COLOUR}}" } },
        ] } } },
    });
    let variables = |colour: &str| {
        json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
            "metadata": { "name": "vars", "namespace": "default" },
            "spec": { "customizedVariables": [{ "name": "COLOUR", "value": colour }] },
        })
    };
    let mut addon =
        addon(&[json!({ "name": "all", "namespace": "default", "rolloutStrategy": rolling("1") })]);
    addon["spec"]["defaultConfigs"] = json!([{
        "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs", "namespace": "default", "name": "vars",
    }]);
    let pinned = |resource: &str, object: &Value| {
        let hash = aviary_engine::hash::spec_hash(object).to_string();
        json!({
            "group": "addon.open-cluster-management.io", "resource": resource,
            "namespace": object["metadata"]["namespace"].as_str().unwrap_or_default(), "name": object["metadata"]["name"],
            "desiredConfigSpecHash": hash, "lastAppliedConfigSpecHash": hash,
        })
    };
    let blue = variables("blue");
    let references = [pinned("addondeploymentconfigs", &blue), pinned("addontemplates", &template)];
    let mut world = vec![addon, template, blue.clone()];
    world.extend(decisions("all", &names("c", 3)));
    for name in names("c", 3) {
        let mut instance = instance(&name, &blue, &blue);
        instance["status"]["configReferences"] = json!(references);
        instance["status"]["currentVersion"] = json!("v1.0.0");
        world.push(instance);
    }
    desk("edit_in_place")
        .file("fleet.yaml", stream(&world))
        .file("green.yaml", stream(&[variables("green")]))
        .check(&format!("plan -f fleet.yaml -c green.yaml {NOW}"), &expect![[r#"
            $ aviary plan -f fleet.yaml -c green.yaml --now 2026-01-01T00:00:00Z
            Add-on helloworld, 3 clusters: 1 started, 2 waiting

            Started now
              CLUSTERS  WHAT                                                  PLACEMENT    WHICH
                     1  update v1.0.0 (d46f4ca99ac3) → v1.0.0 (39f7451046f1)  default/all  c001

            3 waves, if every cluster succeeds immediately
              WAVE  CLUSTERS  SHARE  REACHED  WHAT
                 1         1    34%      34%  default/all: 1 update v1.0.0 (d46f4ca99ac3) → v1.0.0 (39f7451046f1)
                 2         1    34%      67%  default/all: 1 update v1.0.0 (d46f4ca99ac3) → v1.0.0 (39f7451046f1)
                 3         1    34%     100%  default/all: 1 update v1.0.0 (d46f4ca99ac3) → v1.0.0 (39f7451046f1)

            Placements
              PLACEMENT    GOVERNS  BUDGET  WANTS   STATE      MESSAGE
              default/all        3       1  v1.0.0  Upgrading  upgrading...

            Waiting
              CLUSTERS  WHY                            WHICH
                     2  budget full: 1 of 1 in flight  c002, c003

            Assumed
              placement default/all is not in the files: it is assumed to select the clusters in its decisions
              the files contain none of its ManifestWorks: its instances are assumed to run what their status reports

            Notes
              the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable

            Nothing was written. Next: aviary rehearse -f fleet.yaml --change green.yaml # and then kubectl apply -f green.yaml
        "#]]);
}

#[test]
fn works_in_the_files_are_the_evidence() {
    let [old, new] = [hub_config("hub-config-xxx", "v0.10.0"), hub_config("hub-config-yyy", "v0.11.0")];
    let mut addon = addon(&[placement("aws", "hub-config-yyy", &rolling("2"))]);
    progression(&mut addon, "aws", [&new, &old, &old]);
    addon["spec"]["addOnConfiguration"] = json!({ "crdName": "helloconfigs.example.io" });
    let aws = names("aws", 5);
    let mut world = vec![old.clone(), new.clone(), addon];
    world.extend(decisions("aws", &aws));
    world.extend(aws.iter().take(4).map(|name| cluster(name, &json!({}), true)));
    for (index, name) in aws.iter().take(4).enumerate() {
        let told = if index < 2 { &new } else { &old };
        world.push(instance(name, told, if index == 0 { &new } else { &old }));
        world.push(work(name, told, (index == 1).then_some("no space left on device")));
    }
    desk("evidence")
        .file("fleet.yaml", stream(&world))
        .check(&format!("plan -f fleet.yaml {NOW}"), &expect![[r#"
            $ aviary plan -f fleet.yaml --now 2026-01-01T00:00:00Z
            Add-on helloworld, 5 clusters: 1 started, 1 failed, 2 waiting, 1 settled

            Started now
              CLUSTERS  WHAT                      PLACEMENT    WHICH
                     1  update v0.10.0 → v0.11.0  default/aws  aws003

            Failed
              CLUSTERS  WHY                                                          WHICH
                     1  failed: work reports Applied=False: no space left on device  aws002

            2 waves, if every cluster succeeds immediately
              WAVE  CLUSTERS  SHARE  REACHED  WHAT
                 1         1    20%      60%  default/aws: 1 update v0.10.0 → v0.11.0
                 2         1    20%      80%  default/aws: 1 update v0.10.0 → v0.11.0
              then 1 cluster is stuck: failed: work reports Applied=False: no space left on device: aws002
              then 1 cluster is stuck: selected, but there is no such cluster: aws005

            Placements
              PLACEMENT    GOVERNS  BUDGET  WANTS    STATE      MESSAGE
              default/aws        4       2  v0.11.0  Upgrading  upgrading...

            Waiting
              CLUSTERS  WHY                                                     WHICH
                     1  budget full: 2 of 2 slots taken: 1 in flight, 1 failed  aws004
                     1  selected, but there is no such cluster                  aws005

            Problems
              SEVERITY  REASON           MESSAGE
              warning   FieldDeprecated  spec.addOnConfiguration is deprecated and ignored: use spec.supportedConfigs and spec.defaultConfigs

            v0.10.0 → v0.11.0 in default/aws
              addonhubconfigs hub-config-yyy was edited
                spec.desiredVersion: "v0.10.0" → "v0.11.0"

            Assumed
              placement default/aws is not in the files: it is assumed to select the clusters in its decisions

            Nothing was written. Next: aviary plan -f fleet.yaml --change FILE # to see what a change would do
        "#]]);
}

#[test]
fn an_add_on_that_is_deleted_or_manages_itself() {
    let config = hub_config("hub-config-xxx", "v0.10.0");
    let mut leaving = addon(&[placement("aws", "hub-config-xxx", &Value::Null)]);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut own = addon(&[placement("aws", "hub-config-xxx", &Value::Null)]);
    own["metadata"]["name"] = json!("its-own");
    own["metadata"]["annotations"] = json!({ "addon.open-cluster-management.io/lifecycle": "self" });
    let desk = desk("left_alone")
        .file("fleet.yaml", stream(&[leaving, own, config.clone(), instance("aws001", &config, &config)]));
    desk.check(&format!("plan -f fleet.yaml {NOW}"), &expect![[r#"
        $ aviary plan -f fleet.yaml --now 2026-01-01T00:00:00Z
        Add-on helloworld is not managed: it is being deleted, and its instances with it

        Removed
          CLUSTERS  WHY                                                     WHICH
                 1  the add-on is being deleted, and its instances with it  aws001

        Assumed
          the files contain none of its ManifestWorks: its instances are assumed to run what their status reports

        Add-on its-own is not managed: its lifecycle annotation says that it manages itself

        Notes
          the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable

        Nothing was written. Next: aviary plan -f fleet.yaml --change FILE # to see what a change would do
    "#]]);
    desk.check(&format!("plan -f fleet.yaml --add-on its-own {NOW}"), &expect![[r#"
        $ aviary plan -f fleet.yaml --add-on its-own --now 2026-01-01T00:00:00Z
        Add-on its-own is not managed: its lifecycle annotation says that it manages itself

        Notes
          the files contain no ManagedCluster: every cluster that they name is assumed to exist and to be reachable
          the files contain another add-on, which is not planned here: helloworld

        Nothing was written. Next: kubectl apply -f fleet.yaml
    "#]]);
    desk.check(
        &format!("plan -f fleet.yaml --add-on other {NOW}"),
        &expect![[r#"
        $ aviary plan -f fleet.yaml --add-on other --now 2026-01-01T00:00:00Z
        ! aviary: add-on other is not in the files: they have helloworld, its-own
        exit 1
    "#]],
    );
}

#[test]
fn the_data_is_stable() {
    let desk = desk("stable").file("fleet.yaml", stream(&in_the_middle()));
    let arguments = format!("plan -f fleet.yaml {NOW} -o json");
    let mut data = desk.json(&arguments, 0);
    assert_eq!(data, desk.json(&arguments, 0), "the same files give the same plan");
    shorten(&mut data);
    expect![[r#"
        {
          "addOns": [
            {
              "atRest": false,
              "clusters": 400,
              "contents": [
                {
                  "configs": [
                    {
                      "fields": [
                        {
                          "from": "v0.10.0",
                          "path": "spec.desiredVersion",
                          "to": "v0.11.0"
                        }
                      ],
                      "from": "hub-config-yyy",
                      "kind": "addonhubconfigs",
                      "to": "hub-config-yyy"
                    }
                  ],
                  "from": "v0.10.0",
                  "placements": [
                    "default/aws-placement"
                  ],
                  "to": "v0.11.0"
                }
              ],
              "creates": [],
              "document": 3,
              "failed": [],
              "file": "fleet.yaml",
              "inFlight": [
                {
                  "clusters": [
                    "aws041",
                    "aws042"
                  ],
                  "count": 60,
                  "message": "updating",
                  "reason": "Updating"
                }
              ],
              "name": "helloworld",
              "notes": [
                "placement default/aws-placement is not in the files: it is assumed to select the clusters in its decisions",
                "the files contain none of its ManifestWorks: its instances are assumed to run what their status reports"
              ],
              "placements": [
                {
                  "budget": 100,
                  "desired": "v0.11.0",
                  "failed": 0,
                  "governed": 400,
                  "inFlight": 60,
                  "leaving": 0,
                  "message": "upgrading...",
                  "onTarget": 140,
                  "paused": false,
                  "placement": "default/aws-placement",
                  "reason": "Upgrading",
                  "settled": 40,
                  "slotsUsed": 60,
                  "target": "v0.11.0",
                  "waiting": 300
                }
              ],
              "problems": [],
              "removals": [],
              "settled": 40,
              "starts": [
                {
                  "clusters": [
                    "aws101",
                    "aws102"
                  ],
                  "count": 40,
                  "from": "v0.10.0",
                  "kind": "Update",
                  "placement": "default/aws-placement",
                  "to": "v0.11.0"
                }
              ],
              "waiting": [
                {
                  "clusters": [
                    "aws141",
                    "aws142"
                  ],
                  "count": 259,
                  "message": "budget full: 100 of 100 in flight",
                  "reason": "BudgetFull"
                },
                {
                  "clusters": [
                    "aws400"
                  ],
                  "count": 1,
                  "message": "offline since 2025-12-31T00:00:00Z, starts after all others",
                  "reason": "Offline"
                }
              ],
              "waves": {
                "count": 4,
                "end": "Stands",
                "fleetByLabel": {
                  "region": {
                    "eu-west": 200,
                    "us-east": 200
                  }
                },
                "list": [
                  {
                    "afterSeconds": 0,
                    "byLabel": {
                      "region": {
                        "eu-west": 20,
                        "us-east": 20
                      }
                    },
                    "count": 40,
                    "moves": [
                      {
                        "clusters": [
                          "aws101",
                          "aws102"
                        ],
                        "count": 40,
                        "from": "v0.10.0",
                        "kind": "Update",
                        "placement": "default/aws-placement",
                        "to": "v0.11.0"
                      }
                    ],
                    "reachedPercent": 35,
                    "sharePercent": 10,
                    "wave": 1
                  },
                  {
                    "afterSeconds": 0,
                    "byLabel": {
                      "region": {
                        "eu-west": 50,
                        "us-east": 50
                      }
                    },
                    "count": 100,
                    "moves": [
                      {
                        "clusters": [
                          "aws141",
                          "aws142"
                        ],
                        "count": 100,
                        "from": "v0.10.0",
                        "kind": "Update",
                        "placement": "default/aws-placement",
                        "to": "v0.11.0"
                      }
                    ],
                    "reachedPercent": 60,
                    "sharePercent": 25,
                    "wave": 2
                  }
                ],
                "unsettled": [
                  {
                    "clusters": [
                      "aws400"
                    ],
                    "count": 1,
                    "message": "offline since 2025-12-31T00:00:00Z, in flight",
                    "reason": "OfflineInFlight"
                  }
                ]
              }
            }
          ],
          "notes": [],
          "now": "2026-01-01T00:00:00Z",
          "version": 1
        }"#]].assert_eq(&serde_json::to_string_pretty(&data).unwrap());
}

/// Keeps two clusters of each list, and two waves: the test is about the structure.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.truncate(2);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Without a hub, a changed placement is decided anew as well.
#[test]
fn a_placement_that_a_change_narrows_loses_clusters_in_the_plan() {
    let placement = |stage: &str| {
        let mut placement = aviary_testing::objects::placement_by_labels("all", &json!({ "stage": stage }));
        placement["status"] = json!({"numberOfSelectedClusters": 3});
        placement
    };
    let addon = addon(&[self::placement("all", "hub-config-xxx", &Value::Null)]);
    let mut fleet = vec![hub_config("hub-config-xxx", "v0.10.0"), addon, placement("one")];
    fleet.extend(names("one", 3).iter().map(|name| cluster(name, &json!({"stage": "one"}), true)));
    fleet.extend(names("two", 5).iter().map(|name| cluster(name, &json!({"stage": "two"}), true)));
    fleet.extend(decisions("all", &names("one", 3)));
    let desk = desk("changed_placement")
        .file("fleet.yaml", stream(&fleet))
        .file("two.yaml", stream(&[placement("two")]));
    let told = desk.run(&format!("plan -f fleet.yaml --change two.yaml {NOW}"));
    assert!(told.contains("Add-on helloworld, 5 clusters: 5 created"), "{told}");
    assert!(told.contains("5 clusters instead of 3, 5 added and 3 removed"), "{told}");
}
