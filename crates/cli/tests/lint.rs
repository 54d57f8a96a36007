//! `aviary lint`: the findings of admission and of the engine, line by line.

use crate::transcript::desk;
use expect_test::expect;

const ADD_ON: &str = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
";

fn strategy(placements: &str) -> String {
    format!("{ADD_ON}  installStrategy:\n    type: Placements\n    placements:\n{placements}")
}

#[test]
fn nothing_wrong() {
    desk("lint_clean").file("addon.yaml", format!("{ADD_ON}  addOnMeta: {{displayName: Hello}}\n")).check(
        "lint -f addon.yaml",
        &expect![[r#"
            $ aviary lint -f addon.yaml
            1 document: nothing wrong. Next: aviary plan -f addon.yaml
        "#]],
    );
}

#[test]
fn what_the_schema_and_its_rules_refuse() {
    let bad = strategy(
        "    - {name: a, namespace: default, rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxConcurrentlyUpdating: 200%}}}
    - {name: b, namespace: default, rolloutStrategy: {type: Blue}}
    - {name: c, namespace: default, rolloutStrategy: {type: RollingUpdateWithCanary}}
    - {name: d, namespace: default, rolloutStrategy: {type: UpdateAll, progressDeadline: 5mfoo, maxFailures: -1}}
    - {name: e, namespace: default, rolloutStrategie: {type: UpdateAll}}
",
    );
    let desk = desk("lint_schema").file("addon.yaml", bad);
    desk.check("lint -f addon.yaml", &expect![[r#"
        $ aviary lint -f addon.yaml
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[4].rolloutStrategie: is not a field of this kind
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating: "200%" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[1].rolloutStrategy.type: placement default/b: rollout type "Blue" is not known: use UpdateAll, RollingUpdate or RollingUpdateWithCanary
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[2].rolloutStrategy.rollingUpdateWithCanary.placement: placement default/c: RollingUpdateWithCanary needs rollingUpdateWithCanary.placement
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[3].rolloutStrategy.maxFailures: -1 is not a limit: give a whole number from 0 to 2147483647, or a percentage from 0% to 100%
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[3].rolloutStrategy.progressDeadline: "5mfoo" is not a duration: give one such as 90s, 10m or 1h30m
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[0]: warning: placement default/a is not in the files: its clusters were not checked
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[1]: warning: placement default/b is not in the files: its clusters were not checked
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[2]: warning: placement default/c is not in the files: its clusters were not checked
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[3]: warning: placement default/d is not in the files: its clusters were not checked
        addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[4]: warning: placement default/e is not in the files: its clusters were not checked
        1 document: 6 errors, 5 warnings. Fix and run again: aviary lint -f addon.yaml
        exit 1
    "#]]);
    desk.check("lint -f addon.yaml -o json", &expect![[r#"
        $ aviary lint -f addon.yaml -o json
        {
          "documents": 1,
          "errors": 6,
          "warnings": 5,
          "findings": [
            {
              "severity": "error",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[4].rolloutStrategie",
              "reason": "UnknownField",
              "message": "is not a field of this kind"
            },
            {
              "severity": "error",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating",
              "reason": "LimitInvalid",
              "message": "\"200%\" is not a limit: give a whole number from 1 to 2147483647, or a percentage from 1% to 100%"
            },
            {
              "severity": "error",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[1].rolloutStrategy.type",
              "reason": "RolloutTypeUnknown",
              "message": "placement default/b: rollout type \"Blue\" is not known: use UpdateAll, RollingUpdate or RollingUpdateWithCanary"
            },
            {
              "severity": "error",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[2].rolloutStrategy.rollingUpdateWithCanary.placement",
              "reason": "CanaryNotNamed",
              "message": "placement default/c: RollingUpdateWithCanary needs rollingUpdateWithCanary.placement"
            },
            {
              "severity": "error",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[3].rolloutStrategy.maxFailures",
              "reason": "LimitInvalid",
              "message": "-1 is not a limit: give a whole number from 0 to 2147483647, or a percentage from 0% to 100%"
            },
            {
              "severity": "error",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[3].rolloutStrategy.progressDeadline",
              "reason": "DurationInvalid",
              "message": "\"5mfoo\" is not a duration: give one such as 90s, 10m or 1h30m"
            },
            {
              "severity": "warning",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[0]",
              "reason": "PlacementUnknown",
              "message": "placement default/a is not in the files: its clusters were not checked"
            },
            {
              "severity": "warning",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[1]",
              "reason": "PlacementUnknown",
              "message": "placement default/b is not in the files: its clusters were not checked"
            },
            {
              "severity": "warning",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[2]",
              "reason": "PlacementUnknown",
              "message": "placement default/c is not in the files: its clusters were not checked"
            },
            {
              "severity": "warning",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[3]",
              "reason": "PlacementUnknown",
              "message": "placement default/d is not in the files: its clusters were not checked"
            },
            {
              "severity": "warning",
              "file": "addon.yaml",
              "document": 1,
              "line": 1,
              "kind": "ClusterManagementAddOn",
              "name": "hello",
              "field": "spec.installStrategy.placements[4]",
              "reason": "PlacementUnknown",
              "message": "placement default/e is not in the files: its clusters were not checked"
            }
          ]
        }
        exit 1
    "#]]);
}

#[test]
fn what_only_the_engine_sees() {
    let addon = strategy(
        "    - name: a
      namespace: default
      configs:
      - {group: addon.open-cluster-management.io, resource: addonhubconfigs, name: v9}
      - {group: '', resource: secrets, name: s, namespace: default}
      rolloutStrategy: {type: RollingUpdateWithCanary, rollingUpdateWithCanary: {placement: {name: b, namespace: default}}}
    - name: b
      namespace: default
      configs:
      - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, name: vars}
      rolloutStrategy: {type: RollingUpdateWithCanary, rollingUpdateWithCanary: {placement: {name: a, namespace: default}}}
    - name: c
      namespace: default
      configs:
      - {group: example.io, resource: helloconfigs, name: elsewhere, namespace: default}
    - name: d
      namespace: default
      configs:
      - {group: addon.open-cluster-management.io, resource: addonhubconfigs, name: v9}
",
    );
    let others = "
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnHubConfig
metadata: {name: v9}
spec: {desiredVersion: v9.0.0}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello-v1}
spec:
  addonName: hello
  version: v1.0.0
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}]}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata: {name: a-1, namespace: default, labels: {cluster.open-cluster-management.io/placement: a}}
status: {decisions: [{clusterName: ../x, reason: ''}, {clusterName: kube-system, reason: ''}, {clusterName: c1, reason: ''}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata: {name: lost, namespace: default}
status: {decisions: []}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: default}
spec: {hubAcceptsClient: true}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {name: hello, namespace: c1}
spec:
  configs:
  - {group: example.io, resource: foreigns, name: x}
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, name: secret, namespace: other-team}
";
    desk("lint_engine")
        .file("addon.yaml", addon)
        .file("others.yaml", others)
        .check("lint -f addon.yaml others.yaml", &expect![[r#"
            $ aviary lint -f addon.yaml others.yaml
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[1]: warning: placement default/b is not in the files: its clusters were not checked
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[2]: warning: placement default/c is not in the files: its clusters were not checked
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[3]: warning: placement default/d is not in the files: its clusters were not checked
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[0].rolloutStrategy.rollingUpdateWithCanary.placement: placements wait for each other as canary: default/a -> default/b -> default/a
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[1].rolloutStrategy.rollingUpdateWithCanary.placement: placements wait for each other as canary: default/b -> default/a -> default/b
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[0].configs: secrets default/s: a Secret cannot be a config, because its content would be copied into revisions that others may read: reference a config that names the Secret
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[1].configs: addondeploymentconfigs.addon.open-cluster-management.io vars: addondeploymentconfigs.addon.open-cluster-management.io are namespaced: the reference needs a namespace
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[2].configs: warning: helloconfigs.example.io default/elsewhere is not in the files: it was not checked
            addon.yaml: document 1 (ClusterManagementAddOn hello): spec.installStrategy.placements[3].configs: no template has version v9.0.0: available are v1.0.0
            others.yaml: document 3 (PlacementDecision default/a-1): status.decisions: placement default/a names the cluster "../x", which may only have lower-case letters, digits and '-', and must start and end with a letter or digit: it is ignored
            others.yaml: document 3 (PlacementDecision default/a-1): status.decisions: placement default/a names the cluster "kube-system", which is a namespace of the hub itself: it is ignored
            others.yaml: document 4 (PlacementDecision default/lost): metadata.labels: the label cluster.open-cluster-management.io/placement is missing: the decision belongs to no placement
            others.yaml: document 5 (ManagedCluster default): metadata.name: "default" is a namespace of the hub itself: add-ons cannot be installed on this cluster
            others.yaml: document 6 (ManagedClusterAddOn c1/hello): spec.configs: addondeploymentconfigs.addon.open-cluster-management.io other-team/secret is not applied: an override on cluster c1 may not use configs from that namespace
            7 documents: 10 errors, 4 warnings. Fix and run again: aviary lint -f addon.yaml others.yaml
            exit 1
        "#]]);
}

#[test]
fn templates() {
    let template = |name: &str, version: &str, manifests: &str| {
        format!(
            "---\napiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnTemplate\nmetadata: {{name: {name}}}\n\
             spec: {{addonName: hello, version: {version}, agentSpec: {{workload: {{manifests: [{manifests}]}}}}}}\n"
        )
    };
    let config = |name: &str, value: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: d}}, data: {{a: '{value}'}}}}"
        )
    };
    let text = [
        template("empty", "v1", ""),
        template("twice", "v2", &format!("{}, {}", config("a", "x"), config("a", "y"))),
        template("unknown", "v3", &config("a", "{{COLOUR}} on {{CLUSTER_NAME}}")),
        template("nameless", "v4", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: d}}"),
        template("good", "v5", &config("a", "{{ADDON_NAME}} {{VERSION}} {{ $labels.pod }}")),
    ];
    let desk = desk("lint_templates").file("templates.yaml", text.concat());
    desk.check("lint -f templates.yaml", &expect![[r#"
        $ aviary lint -f templates.yaml
        templates.yaml: document 1 (AddOnTemplate empty): spec.agentSpec.workload.manifests: template empty has no manifests
        templates.yaml: document 2 (AddOnTemplate twice): spec.agentSpec.workload.manifests: template twice has ConfigMap d/a twice
        templates.yaml: document 3 (AddOnTemplate unknown): spec.agentSpec.workload.manifests: warning: template unknown uses the variable COLOUR, which is not defined
        templates.yaml: document 4 (AddOnTemplate nameless): spec.agentSpec.workload.manifests: template nameless: manifests[0] has no metadata.name
        5 documents: 3 errors, 1 warning. Fix and run again: aviary lint -f templates.yaml
        exit 1
    "#]]);

    let addon = format!(
        "{ADD_ON}  defaultConfigs:\n  - {{group: addon.open-cluster-management.io, resource: addonhubconfigs, name: three}}\n\
         \x20 - {{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, name: vars, namespace: default}}\n---\n\
         apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnHubConfig\nmetadata: {{name: three}}\nspec: {{desiredVersion: v3}}\n---\n\
         apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {{name: vars, namespace: default}}\n"
    );
    let defined = format!("{addon}spec: {{customizedVariables: [{{name: COLOUR, value: blue}}]}}\n");
    let reserved = format!("{addon}spec: {{customizedVariables: [{{name: VERSION, value: mine}}]}}\n");
    let nothing = format!("{addon}spec: {{}}\n");
    let desk = desk
        .file("unknown.yaml", &text[2])
        .file("defined.yaml", defined)
        .file("reserved.yaml", reserved)
        .file("nothing.yaml", nothing);
    desk.check(
        "lint -f unknown.yaml defined.yaml",
        &expect![[r#"
        $ aviary lint -f unknown.yaml defined.yaml
        4 documents: nothing wrong. Next: aviary plan -f unknown.yaml defined.yaml
    "#]],
    );
    desk.check("lint -f unknown.yaml reserved.yaml", &expect![[r#"
        $ aviary lint -f unknown.yaml reserved.yaml
        unknown.yaml: document 1 (AddOnTemplate unknown): spec.agentSpec.workload.manifests: warning: template unknown uses the variable COLOUR, which is not defined
        reserved.yaml: document 3 (AddOnDeploymentConfig default/vars): spec.customizedVariables: addondeploymentconfigs.addon.open-cluster-management.io default/vars defines the variable VERSION, which is built in and cannot be replaced
        4 documents: 1 error, 1 warning. Fix and run again: aviary lint -f unknown.yaml reserved.yaml
        exit 1
    "#]]);
    desk.check("lint -f unknown.yaml nothing.yaml", &expect![[r#"
        $ aviary lint -f unknown.yaml nothing.yaml
        unknown.yaml: document 1 (AddOnTemplate unknown): spec.agentSpec.workload.manifests: template unknown uses the variable COLOUR, which is not defined
        4 documents: 1 error. Fix and run again: aviary lint -f unknown.yaml nothing.yaml
        exit 1
    "#]]);
}

#[test]
fn a_status_in_the_words_of_another_hub_is_only_odd() {
    let cluster = "\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1, managedFields: [{manager: x}], uid: u}
spec: {hubAcceptsClient: true}
status: {conditions: [], somethingNew: {a: b}}
";
    desk("lint_status").file("cluster.yaml", cluster).check("lint -f cluster.yaml", &expect![[r#"
        $ aviary lint -f cluster.yaml
        cluster.yaml: document 1 (ManagedCluster c1): status.somethingNew: warning: is not a field of this kind
        1 document: 1 warning.
    "#]]);
}

/// This spelling once passed, and stopped every agent that received such a work.
#[test]
fn instructions_that_an_agent_cannot_decode() {
    let template = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello-v1}
spec:
  addonName: hello
  agentSpec:
    workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}]}
    manifestConfigs:
    - resourceIdentifier: {resource: configmaps, name: a, namespace: b}
      conditionRules: [{type: CEL, condition: Complete, celExpressions: [{expression: object.data.done}]}]
";
    desk("lint_agent_spec").file("template.yaml", template).check("lint -f template.yaml", &expect![[r#"
        $ aviary lint -f template.yaml
        template.yaml: document 1 (AddOnTemplate hello-v1): spec.agentSpec.manifestConfigs[0].conditionRules[0].celExpressions[0].expression: is not a field of this kind
        template.yaml: document 1 (AddOnTemplate hello-v1): spec.agentSpec.manifestConfigs[0].conditionRules[0].celExpressions[0]: must be a string, not an object: OCM's celExpressions is a list of strings, so write "object.data.done"
        1 document: 2 errors. Fix and run again: aviary lint -f template.yaml
        exit 1
    "#]]);
}

#[test]
fn what_an_author_should_know_about_health() {
    let template = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello}
spec:
  addonName: hello
  version: v1.0.0
  agentSpec:
    workload:
      manifests:
      - {apiVersion: batch/v1, kind: Job, metadata: {name: endless, namespace: hello}, spec: {ttlSecondsAfterFinished: 60}}
      - {apiVersion: batch/v1, kind: Job, metadata: {name: bounded, namespace: hello}, spec: {activeDeadlineSeconds: 60}}
      - apiVersion: batch/v1
        kind: Job
        metadata: {name: ignored, namespace: hello, annotations: {addon.open-cluster-management.io/health: ignore}}
        spec: {}
      - {apiVersion: example.com/v1, kind: Widget, metadata: {name: unknown, namespace: hello}}
      - {apiVersion: example.com/v1, kind: Gadget, metadata: {name: named, namespace: hello}}
      - {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: kept, namespace: hello}, spec: {updateStrategy: {type: OnDelete}}}
      - {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: rolled, namespace: hello}, spec: {updateStrategy: {type: RollingUpdate}}}
    manifestConfigs:
    - resourceIdentifier: {group: example.com, resource: gadgets, name: named, namespace: hello}
";
    let alone = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: alone}
spec:
  addonName: alone
  version: v1.0.0
  agentSpec:
    workload:
      manifests:
      - {apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: hello}, spec: {activeDeadlineSeconds: 60}}
    manifestConfigs:
    - resourceIdentifier: {group: batch, resource: jobs, name: once, namespace: hello}
      conditionRules: [{type: WellKnownConditions, condition: Complete}]
";
    desk("lint_health")
        .file("template.yaml", template)
        .file("alone.yaml", alone)
        .check("lint -f template.yaml -f alone.yaml", &expect![[r#"
            $ aviary lint -f template.yaml -f alone.yaml
            template.yaml: document 1 (AddOnTemplate hello): spec.agentSpec.workload.manifests[0]: warning: Job hello/endless: a cluster is not updated until the Job completes: give it activeDeadlineSeconds, or the annotation addon.open-cluster-management.io/health: ignore if it runs for long
            template.yaml: document 1 (AddOnTemplate hello): spec.agentSpec.workload.manifests[0]: warning: Job hello/endless: with ttlSecondsAfterFinished the Job is deleted when it is done, and agents create it again: remove the field
            template.yaml: document 1 (AddOnTemplate hello): spec.agentSpec.workload.manifests[3]: warning: Widget hello/unknown: its health is not asked for, because the plural of its kind is unknown: add its CustomResourceDefinition, or an entry of manifestConfigs that names the object
            template.yaml: document 1 (AddOnTemplate hello): spec.agentSpec.workload.manifests[5]: warning: StatefulSet hello/kept: with OnDelete a cluster counts as updated while its pods may still run the earlier version: somebody has to delete them
            alone.yaml: document 1 (AddOnTemplate alone): spec.agentSpec.manifestConfigs[0]: warning: once the condition Complete is True, agents never apply the work again: a later revision does not reach the cluster
            2 documents: 5 warnings.
        "#]]);
}
