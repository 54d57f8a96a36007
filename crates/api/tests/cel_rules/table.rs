//! Objects that the rules must accept, and objects that they must reject. Checked against the
//! schemas here, and against a real API server by the tests of the command line.

const ADD_ON: &str = "ClusterManagementAddOn";
const INSTANCE: &str = "ManagedClusterAddOn";
const DEPLOYMENT: &str = "AddOnDeploymentConfig";
const BINDING: &str = "ManagedClusterSetBinding";
const PLACEMENT: &str = "Placement";
const POLICY: &str = "AddOnRolloutPolicy";
const TEMPLATE: &str = "AddOnTemplate";
const WORK: &str = "ManifestWork";

const WELL_KNOWN: &str = "manifestConfigs: [{resourceIdentifier: {resource: jobs, name: a}, conditionRules: [{type: WellKnownConditions, condition: ''}, {type: CEL, condition: Complete, celExpressions: [object.status.done]}]}]";

const CONCURRENCY: &str = "must be a whole number of at least 1, or a whole percentage from 1% to 100%";
const FAILURES: &str = "must be a whole number of at least 0, or a whole percentage from 0% to 100%";
const RESERVED: &str = "__reserved_no_default__ is not the name of a config: to support a kind without a default, leave the default out";
const VERSIONS: &str =
    "desiredVersion and installVersion mean the same: set one of them, or both to the same value";

fn placements(list: &str) -> String {
    format!(
        "{{metadata: {{name: a}}, spec: {{installStrategy: {{type: Placements, placements: [{list}]}}}}}}"
    )
}

fn rollout(strategy: &str) -> String {
    placements(&format!("{{name: aws, namespace: default, rolloutStrategy: {{{strategy}}}}}"))
}

fn install(strategy: &str) -> String {
    format!("{{metadata: {{name: a}}, spec: {{installStrategy: {{{strategy}}}}}}}")
}

fn spec(spec: &str) -> String {
    format!("{{metadata: {{name: a}}, spec: {{{spec}}}}}")
}

fn canary(name: &str, max: &str) -> String {
    rollout(&format!(
        "type: RollingUpdateWithCanary, rollingUpdateWithCanary: {{placement: {{name: {name}, namespace: default}}{max}}}"
    ))
}

/// Valid objects.
pub(crate) fn accepted() -> Vec<(&'static str, String)> {
    let mut accepted = vec![
        (WORK, spec(WELL_KNOWN)),
        (WORK, "{metadata: {name: a}}".to_owned()),
        (TEMPLATE, spec(&format!("addonName: a, agentSpec: {{{WELL_KNOWN}}}"))),
        (ADD_ON, "{metadata: {name: a}, spec: {}}".to_owned()),
        (ADD_ON, "{metadata: {name: a}}".to_owned()),
        (ADD_ON, install("")),
        (ADD_ON, install("type: Manual")),
        (ADD_ON, install("type: Manual, placements: [{name: aws, namespace: default}]")),
        (ADD_ON, install("type: Manual, labelSelector: {matchLabels: {a: b}}")),
        (ADD_ON, install("type: ClusterLabelSelector, labelSelector: {}")),
        (ADD_ON, placements("{name: aws, namespace: default}, {name: aws, namespace: other}")),
        (ADD_ON, rollout("")),
        (
            ADD_ON,
            rollout(
                "type: UpdateAll, maxFailures: 0, progressDeadline: 30m, minSuccessTime: 10s, paused: true",
            ),
        ),
        (ADD_ON, rollout("type: RollingUpdate")),
        (ADD_ON, rollout("type: All, all: {maxFailures: 0, progressDeadline: None}")),
        (ADD_ON, rollout("type: Progressive, progressive: {maxConcurrency: 3, maxFailures: 5%}")),
        (ADD_ON, rollout("type: Progressive")),
        (ADD_ON, rollout("type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 2}")),
        (ADD_ON, canary("canary", "")),
        (ADD_ON, canary("canary", ", maxConcurrentlyUpdating: 1")),
        (
            ADD_ON,
            placements("{name: a, namespace: b, addonTemplate: {desiredVersion: v1, installVersion: v1}}"),
        ),
        (ADD_ON, placements("{name: a, namespace: b, addonTemplate: {installVersion: v1}}")),
        (INSTANCE, spec("desiredVersion: v1")),
        (INSTANCE, spec("desiredVersion: v1, installVersion: v1")),
        (
            DEPLOYMENT,
            spec("nodePlacement: {nodeSelector: {a: b}}, customizedVariables: [{name: _A1, value: x}]"),
        ),
        (DEPLOYMENT, spec("nodeSelector: {a: b}, tolerations: []")),
        (BINDING, spec("clusterSet: a")),
        (PLACEMENT, spec("decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 10%}}")),
        (POLICY, spec("")),
        (POLICY, spec("addOns: {names: [a]}, maxFailures: 5%")),
        (POLICY, spec("addOns: {labelSelector: {matchLabels: {a: b}}}, maxFailures: 0")),
    ];
    for limit in ["1", "25", "2147483647", "'5'", "'1'", "1%", "9%", "10%", "99%", "100%"] {
        let update = format!("type: RollingUpdate, rollingUpdate: {{maxConcurrentlyUpdating: {limit}}}");
        accepted.push((ADD_ON, rollout(&update)));
    }
    for limit in ["0", "7", "'0'", "0%", "50%", "100%"] {
        accepted.push((ADD_ON, rollout(&format!("maxFailures: {limit}"))));
    }
    accepted
}

/// Objects with exactly one violation: the object, the path, and the message.
pub(crate) fn rejected() -> Vec<(&'static str, String, &'static str, &'static str)> {
    const INSTALL: &str = "spec.installStrategy";
    const PLACEMENTS: &str = "spec.installStrategy.placements";
    const PLACE: &str = "spec.installStrategy.placements[]";
    const ROLLOUT: &str = "spec.installStrategy.placements[].rolloutStrategy";
    const ROLLING: &str =
        "spec.installStrategy.placements[].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating";
    const CANARY: &str =
        "spec.installStrategy.placements[].rolloutStrategy.rollingUpdateWithCanary.maxConcurrentlyUpdating";
    const NEEDS_CANARY: &str = "rollingUpdateWithCanary is required with type RollingUpdateWithCanary, and cannot be used with any other type";
    const NAME: &str =
        "a variable's name must consist of letters, digits and underscores, and must not start with a digit";
    const ADD_ONS: &str = "give either names or labelSelector";
    const NODES: &str = "set nodeSelector and tolerations either in nodePlacement or next to it, not both";

    let mut rejected = vec![
        (ADD_ON, install("type: Placements"), INSTALL, "type Placements needs at least one placement"),
        (
            ADD_ON,
            install("type: Placements, placements: []"),
            INSTALL,
            "type Placements needs at least one placement",
        ),
        (
            ADD_ON,
            install("type: ClusterLabelSelector"),
            INSTALL,
            "type ClusterLabelSelector needs a labelSelector",
        ),
        (
            ADD_ON,
            install("type: Placements, placements: [{name: a, namespace: b}], labelSelector: {}"),
            INSTALL,
            "labelSelector cannot be used with type Placements",
        ),
        (
            ADD_ON,
            install("type: ClusterLabelSelector, placements: [{name: a, namespace: b}], labelSelector: {}"),
            INSTALL,
            "placements cannot be used with type ClusterLabelSelector",
        ),
        (
            ADD_ON,
            placements("{name: a, namespace: b}, {name: c, namespace: b}, {name: a, namespace: b}"),
            PLACEMENTS,
            "a placement may be listed only once",
        ),
        (ADD_ON, canary("aws", ""), PLACE, "a placement cannot be its own canary"),
        (ADD_ON, rollout("type: RollingUpdateWithCanary"), ROLLOUT, NEEDS_CANARY),
        (
            ADD_ON,
            rollout("rollingUpdateWithCanary: {placement: {name: canary, namespace: default}}"),
            ROLLOUT,
            NEEDS_CANARY,
        ),
        (
            ADD_ON,
            rollout("rollingUpdate: {}"),
            ROLLOUT,
            "rollingUpdate can only be used with type RollingUpdate",
        ),
        (ADD_ON, rollout("type: Progressive, all: {}"), ROLLOUT, "all can only be used with type All"),
        (
            ADD_ON,
            rollout("type: All, progressive: {}"),
            ROLLOUT,
            "progressive can only be used with type Progressive",
        ),
        (
            ADD_ON,
            rollout("type: Progressive, progressivePerGroup: {}"),
            ROLLOUT,
            "progressivePerGroup can only be used with type ProgressivePerGroup",
        ),
        (ADD_ON, canary("canary", ", maxConcurrentlyUpdating: 0"), CANARY, CONCURRENCY),
        (
            ADD_ON,
            rollout("type: Progressive, progressive: {maxConcurrency: 0%}"),
            "spec.installStrategy.placements[].rolloutStrategy.progressive.maxConcurrency",
            CONCURRENCY,
        ),
        (
            ADD_ON,
            rollout("type: Progressive, progressive: {maxFailures: -1}"),
            "spec.installStrategy.placements[].rolloutStrategy.progressive.maxFailures",
            FAILURES,
        ),
        (
            ADD_ON,
            rollout("type: All, all: {maxFailures: 101%}"),
            "spec.installStrategy.placements[].rolloutStrategy.all.maxFailures",
            FAILURES,
        ),
        (
            ADD_ON,
            rollout("type: ProgressivePerGroup, progressivePerGroup: {maxFailures: -5%}"),
            "spec.installStrategy.placements[].rolloutStrategy.progressivePerGroup.maxFailures",
            FAILURES,
        ),
        (
            ADD_ON,
            placements("{name: a, namespace: b, addonTemplate: {desiredVersion: v1, installVersion: v2}}"),
            "spec.installStrategy.placements[].addonTemplate",
            VERSIONS,
        ),
        (INSTANCE, spec("desiredVersion: v1, installVersion: v2"), "spec", VERSIONS),
        (DEPLOYMENT, spec("nodePlacement: {}, tolerations: []"), "spec", NODES),
        (DEPLOYMENT, spec("nodePlacement: {}, nodeSelector: {a: b}"), "spec", NODES),
        (
            DEPLOYMENT,
            spec("customizedVariables: [{name: 1a, value: x}]"),
            "spec.customizedVariables[].name",
            NAME,
        ),
        (BINDING, spec("clusterSet: b"), "", "a binding must have the same name as its clusterSet"),
        (
            PLACEMENT,
            spec("decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 0}}"),
            "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup",
            CONCURRENCY,
        ),
        (POLICY, spec("addOns: {}"), "spec.addOns", ADD_ONS),
        (POLICY, spec("addOns: {names: [a], labelSelector: {}}"), "spec.addOns", ADD_ONS),
        (POLICY, spec("maxFailures: 101%"), "spec.maxFailures", FAILURES),
    ];
    let reserved = "{resource: configs, name: __reserved_no_default__}";
    for (kind, object, at) in [
        (ADD_ON, spec(&format!("defaultConfigs: [{reserved}]")), "spec.defaultConfigs[]"),
        (
            ADD_ON,
            spec("supportedConfigs: [{resource: configs, defaultConfig: {name: __reserved_no_default__}}]"),
            "spec.supportedConfigs[].defaultConfig",
        ),
        (
            ADD_ON,
            placements(&format!("{{name: a, namespace: b, configs: [{reserved}]}}")),
            "spec.installStrategy.placements[].configs[]",
        ),
        (
            ADD_ON,
            placements(&format!("{{name: a, namespace: b, addonTemplate: {{configs: [{reserved}]}}}}")),
            "spec.installStrategy.placements[].addonTemplate.configs[]",
        ),
        (INSTANCE, spec(&format!("configs: [{reserved}]")), "spec.configs[]"),
    ] {
        rejected.push((kind, object, at, RESERVED));
    }
    let nameless = "manifestConfigs: [{resourceIdentifier: {resource: jobs, name: a}, conditionRules: [{type: CEL, condition: ''}]}]";
    for (kind, object, at) in [
        (WORK, spec(nameless), "spec.manifestConfigs[].conditionRules[]"),
        (
            TEMPLATE,
            spec(&format!("addonName: a, agentSpec: {{{nameless}}}")),
            "spec.agentSpec.manifestConfigs[].conditionRules[]",
        ),
    ] {
        rejected.push((kind, object, at, "a rule of type CEL must name its condition"));
    }
    let bad = [
        "0",
        "-1",
        "2147483648",
        "'0'",
        "'-5'",
        "0%",
        "-5%",
        "101%",
        "200%",
        "NaN%",
        "33.3%",
        "05%",
        "'%'",
        "five",
        "''",
    ];
    for limit in bad {
        let update = format!("type: RollingUpdate, rollingUpdate: {{maxConcurrentlyUpdating: {limit}}}");
        rejected.push((ADD_ON, rollout(&update), ROLLING, CONCURRENCY));
    }
    for limit in ["-1", "'-1'", "-1%", "101%", "NaN%", "1.5%", "2147483648"] {
        let at = "spec.installStrategy.placements[].rolloutStrategy.maxFailures";
        rejected.push((ADD_ON, rollout(&format!("maxFailures: {limit}")), at, FAILURES));
    }
    rejected
}
