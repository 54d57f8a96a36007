//! What a rendered work asks of the agent, and what counts as a change of it by somebody else.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Template, applied, object, read, report, told};

fn deployment() -> Value {
    object("apps/v1", "Deployment")
}

fn named(resource: &str, name: &str) -> Value {
    json!({"group": "apps", "resource": resource, "name": name, "namespace": "greeter"})
}

/// Each entry in one line: what it names, its strategy, and the names of its rules.
fn entries(work: &Value) -> String {
    let lines = work["spec"]["manifestConfigs"].as_array().into_iter().flatten().map(|entry| {
        let text = |field: &str| entry["resourceIdentifier"][field].as_str().unwrap_or("-").to_owned();
        let rules = entry["feedbackRules"].as_array().into_iter().flatten().map(|rule| {
            let paths = rule["jsonPaths"].as_array().into_iter().flatten();
            let names: Vec<&str> = paths.filter_map(|path| path["name"].as_str()).collect();
            format!(" {}({})", rule["type"].as_str().unwrap(), names.join(" "))
        });
        format!(
            "{} {}/{} {} {}{}\n",
            text("resource"),
            text("namespace"),
            text("name"),
            entry["updateStrategy"]["type"].as_str().unwrap_or("-"),
            entry["feedbackScrapeType"].as_str().unwrap_or("-"),
            rules.collect::<String>()
        )
    });
    lines.collect()
}

/// The fields of an entry apart from its rules, and every rule's name and path.
fn entry(entry: &Value) -> String {
    let mut entry = entry.clone();
    let paths = entry["feedbackRules"][0]["jsonPaths"].take();
    let paths = paths.as_array().into_iter().flatten();
    let paths = paths.map(|path| format!("{} {}\n", path["name"], path["path"]));
    format!("{}\n{}", serde_json::to_string_pretty(&entry).unwrap(), paths.collect::<String>())
}

#[test]
fn a_probed_object_has_one_entry_of_its_own_and_a_digest() {
    let work = Template::of(&[deployment()]).work();
    expect![[r#"
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {
            "annotations": {
              "addon.open-cluster-management.io/digest-7b91cf1e": "56173ad024428a8f1c78.agents"
            },
            "name": "greeter",
            "namespace": "greeter"
          },
          "spec": {}
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&work["spec"]["workload"]["manifests"][0]).unwrap());
    let configs = work["spec"]["manifestConfigs"].as_array().unwrap();
    assert_eq!(configs.len(), 1);
    expect![[r#"
        {
          "feedbackRules": [
            {
              "jsonPaths": null,
              "type": "JSONPaths"
            }
          ],
          "feedbackScrapeType": "Watch",
          "resourceIdentifier": {
            "group": "apps",
            "name": "greeter",
            "namespace": "greeter",
            "resource": "deployments"
          }
        }
        "aviary-digest" ".metadata.annotations.addon\\.open-cluster-management\\.io/digest-7b91cf1e"
        "aviary-generation" ".metadata.generation"
        "aviary-observed" ".status.observedGeneration"
        "aviary-replicas" ".spec.replicas"
        "aviary-total" ".status.replicas"
        "aviary-updated" ".status.updatedReplicas"
        "aviary-available" ".status.availableReplicas"
        "aviary-paused" ".spec.paused"
        "aviary-progress" ".status.conditions[?(@.type==\"Progressing\")].reason"
        "aviary-replica-failure" ".status.conditions[?(@.type==\"ReplicaFailure\")].status"
        "aviary-since" ".status.conditions[?(@.type==\"Available\")].lastTransitionTime"
        "aviary-max-unavailable" ".spec.strategy.rollingUpdate.maxUnavailable"
    "#]]
    .assert_eq(&entry(&configs[0]));
}

/// An agent uses only the first entry that matches, so ours holds the author's rules too.
#[test]
fn rules_of_the_author_are_merged_into_our_entry() {
    let path = |name: &str| json!({"name": name, "path": ".status.replicas"});
    let configs = json!([
        {
            "resourceIdentifier": named("deployments", "greet*"),
            "feedbackRules": [{"type": "WellKnownStatus"}, {"type": "JSONPaths", "jsonPaths": [path("one"), path("two")]}],
        },
        {
            "resourceIdentifier": named("deployments", "greeter"),
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [path("two"), path("three")]}, {"type": "WellKnownStatus"}],
            "updateStrategy": {"type": "ServerSideApply"},
        },
        {
            "resourceIdentifier": named("deployments", "other"),
            "feedbackRules": [{"type": "WellKnownStatus"}],
        },
        {
            "resourceIdentifier": named("daemonsets", "*"),
            "feedbackRules": [{"type": "WellKnownStatus"}],
        },
    ]);
    let work = Template::of(&[deployment()]).configs(configs).work();
    expect![[r#"
        deployments greeter/greeter ServerSideApply Watch JSONPaths(aviary-digest aviary-generation aviary-observed aviary-replicas aviary-total aviary-updated aviary-available aviary-paused aviary-progress aviary-replica-failure aviary-since aviary-max-unavailable) WellKnownStatus() JSONPaths(one two) JSONPaths(three)
        deployments greeter/greet* - Watch WellKnownStatus() JSONPaths(one two)
        deployments greeter/other - - WellKnownStatus()
        daemonsets greeter/* - - WellKnownStatus()
    "#]].assert_eq(&entries(&work));
}

/// An API server refuses a report in which a name occurs twice, and the agent then reports nothing.
#[test]
fn a_name_of_the_well_known_status_is_not_repeated() {
    let path = |name: &str| json!({"name": name, "path": ".metadata.name"});
    let well_known = || json!({"type": "WellKnownStatus"});
    let paths = |names: &[&str]| {
        let paths: Vec<Value> = names.iter().map(|name| path(name)).collect();
        json!({"type": "JSONPaths", "jsonPaths": paths})
    };
    let mut shown = String::new();
    for (version, kind, resource, taken) in [
        ("apps/v1", "Deployment", "deployments", &["ReadyReplicas", "mine"][..]),
        ("apps/v1", "Deployment", "deployments", &["Replicas", "ReadyReplicas", "AvailableReplicas"]),
        ("apps/v1", "DaemonSet", "daemonsets", &["NumberReady", "NumberAvailable"]),
        ("batch/v1", "Job", "jobs", &["JobComplete"]),
        ("v1", "Pod", "pods", &["PodPhase"]),
        // A name of another kind, and a kind without a well-known status.
        ("v1", "Pod", "pods", &["ReadyReplicas"]),
        ("apps/v1", "StatefulSet", "statefulsets", &["ReadyReplicas"]),
    ] {
        for of_author in [[paths(taken), well_known()], [well_known(), paths(taken)]] {
            let group = version.split_once('/').map_or("", |(group, _)| group);
            let entries = of_author.map(|rule| {
                json!({
                    "resourceIdentifier": {"group": group, "resource": resource, "name": "greet*", "namespace": "*"},
                    "feedbackRules": [rule],
                })
            });
            let work = Template::of(&[object(version, kind)]).configs(json!(entries)).work();
            let rules = work["spec"]["manifestConfigs"][0]["feedbackRules"].as_array().unwrap();
            let told = rules[1..].iter().map(|rule| match rule["jsonPaths"].as_array() {
                Some(paths) => paths
                    .iter()
                    .map(|path| format!(" {}={}", text(path, "name"), text(path, "path")))
                    .collect(),
                None => format!(" {}", text(rule, "type")),
            });
            shown.push_str(&format!("{kind}:{}\n", told.collect::<Vec<String>>().join(" +")));
        }
    }
    expect![[r#"
        Deployment: ReadyReplicas=.metadata.name mine=.metadata.name + Replicas=.status.replicas AvailableReplicas=.status.availableReplicas
        Deployment: WellKnownStatus + mine=.metadata.name
        Deployment: Replicas=.metadata.name ReadyReplicas=.metadata.name AvailableReplicas=.metadata.name
        Deployment: WellKnownStatus
        DaemonSet: NumberReady=.metadata.name NumberAvailable=.metadata.name + DesiredNumberScheduled=.status.desiredNumberScheduled
        DaemonSet: WellKnownStatus
        Job: JobComplete=.metadata.name + JobSucceeded=.status.succeeded
        Job: WellKnownStatus
        Pod: PodPhase=.metadata.name + PodReady=.status.conditions[?(@.type=="Ready")].status
        Pod: WellKnownStatus
        Pod: ReadyReplicas=.metadata.name + WellKnownStatus
        Pod: WellKnownStatus + ReadyReplicas=.metadata.name
        StatefulSet: ReadyReplicas=.metadata.name + WellKnownStatus
        StatefulSet: WellKnownStatus + ReadyReplicas=.metadata.name
    "#]].assert_eq(&shown);
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

fn refusal(manifests: &[Value], configs: Value, expected: &Expect) {
    let problem = Template::of(manifests).configs(configs).render().unwrap_err();
    expected.assert_eq(&format!("{}: {problem}", problem.code()));
}

#[test]
fn an_author_cannot_forge_evidence() {
    let forged = |name: &str| {
        json!([{
            "resourceIdentifier": named("deployments", "greeter"),
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": name, "path": ".metadata.name"}]}],
        }])
    };
    refusal(
        &[deployment()],
        forged("aviary-digest"),
        &expect![[
            r#"TemplateMalformed: template tpl: manifestConfigs[0]: the feedback name "aviary-digest" is reserved: use one that does not begin with aviary-"#
        ]],
    );
    let by_variable = Template::of(&[deployment()])
        .configs(forged("{{PREFIX}}-digest"))
        .variables(json!([{"name": "PREFIX", "value": "aviary"}]));
    assert!(by_variable.render().is_err(), "nor with a variable");
    let mut annotated = deployment();
    let key = super::super::instruct::digest_key(super::ADDON);
    annotated["metadata"]["annotations"] = json!({key: "forged"});
    let problem = Template::of(&[annotated]).render().unwrap_err();
    assert!(problem.to_string().contains("is reserved: remove it from Deployment"), "{problem}");
}

/// An agent stops altogether at a work that it cannot decode. This spelling of `celExpressions` was
/// ours once.
#[test]
fn a_template_that_an_agent_cannot_decode_is_not_rendered() {
    let rule = |rule: Value| json!([{"resourceIdentifier": named("deployments", "greeter"), "conditionRules": [rule]}]);
    let expressions = |expressions: Value| {
        rule(json!({"type": "CEL", "condition": "Available", "celExpressions": expressions}))
    };
    refusal(
        &[deployment()],
        expressions(json!([{"expression": "object.status.ready == true"}])),
        &expect![[
            r#"TemplateMalformed: template tpl: manifestConfigs[0].conditionRules[0].celExpressions[0]: must be a string, not an object: OCM's celExpressions is a list of strings, so write "object.status.ready == true""#
        ]],
    );
    refusal(
        &[deployment()],
        rule(json!({"type": "CEL", "condition": "Available", "celExpression": ["true"]})),
        &expect![
            "TemplateMalformed: template tpl: manifestConfigs[0].conditionRules[0].celExpression: OCM has no such field; did you mean celExpressions?"
        ],
    );
    let work = Template::of(&[deployment()]).configs(expressions(json!(["true"]))).work();
    assert_eq!(work["spec"]["manifestConfigs"][0]["conditionRules"][0]["celExpressions"], json!(["true"]));
}

/// OCM's webhook refuses such a work, however little the template says beside its manifests.
#[test]
fn a_template_of_nothing_but_manifests_is_checked_too() {
    let mut generated = deployment();
    generated["metadata"]["generateName"] = json!("greeter-");
    refusal(
        &[generated],
        Value::Null,
        &expect![
            "TemplateMalformed: template tpl: workload.manifests[0].metadata.generateName: must not be set: a work needs the whole name"
        ],
    );
}

#[test]
fn a_complete_rule_needs_a_work_of_its_own() {
    let configs = json!([{
        "resourceIdentifier": {"group": "batch", "resource": "jobs", "name": "greeter", "namespace": "greeter"},
        "conditionRules": [{"type": "WellKnownConditions", "condition": "Complete"}],
    }]);
    let job = object("batch/v1", "Job");
    refusal(
        &[job.clone(), deployment()],
        configs.clone(),
        &expect![
            "TemplateMalformed: template tpl: manifestConfigs[0]: a rule for the condition Complete ends all writes of its work: give that object a template of its own"
        ],
    );
    let work = Template::of(&[job]).configs(configs).work();
    expect![[r#"
        jobs greeter/greeter CreateOnly Watch JSONPaths(aviary-name aviary-digest aviary-complete aviary-failed aviary-suspended)
    "#]].assert_eq(&entries(&work));
    assert_eq!(work["spec"]["manifestConfigs"][0]["conditionRules"][0]["condition"], "Complete");
}

/// Objects that are not written again cannot carry the digest of what is wanted now.
#[test]
fn objects_that_are_not_updated_are_judged_without_a_digest() {
    let entry = |extra: Value| {
        let mut entry = json!({"resourceIdentifier": named("deployments", "greeter")});
        super::merge(&mut entry, &extra);
        json!([entry])
    };
    let live = json!({
        "metadata": {"generation": 1}, "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    });
    for (name, configs) in [
        ("CreateOnly", entry(json!({"updateStrategy": {"type": "CreateOnly"}}))),
        ("ReadOnly", entry(json!({"updateStrategy": {"type": "ReadOnly"}}))),
        (
            "Complete",
            entry(
                json!({"conditionRules": [{"type": "CEL", "condition": "Complete", "celExpressions": ["true"]}]}),
            ),
        ),
    ] {
        let mut work = Template::of(&[deployment()]).configs(configs).work();
        assert_eq!(work["spec"]["workload"]["manifests"][0], deployment(), "{name}: no digest");
        let paths = &work["spec"]["manifestConfigs"][0]["feedbackRules"][0]["jsonPaths"];
        assert_eq!(paths[0], json!({"name": "aviary-name", "path": ".metadata.name"}), "{name}");
        assert!(told(&read(&work).health).starts_with("Unknown"), "{name}: nothing is reported yet");
        let good = applied(&work, 0, &live);
        report(&mut work, &[good]);
        assert_eq!(told(&read(&work).health), "Healthy", "{name}");
        let mut crashed = applied(&work, 0, &live);
        crashed["status"]["availableReplicas"] = json!(0);
        report(&mut work, &[crashed]);
        assert!(told(&read(&work).health).starts_with("Progressing"), "{name}");
    }
}

/// An update of a Job or a Pod fails, so without a strategy of the author's they are created once.
#[test]
fn jobs_and_pods_are_created_once() {
    let configs = json!([{
        "resourceIdentifier": {"group": "batch", "resource": "jobs", "name": "own", "namespace": "greeter"},
        "updateStrategy": {"type": "ServerSideApply"},
    }]);
    let mut own = object("batch/v1", "Job");
    own["metadata"]["name"] = json!("own");
    let work = Template::of(&[object("batch/v1", "Job"), own, object("v1", "Pod")]).configs(configs).work();
    expect![[r#"
        jobs greeter/greeter CreateOnly Watch JSONPaths(aviary-name aviary-digest aviary-complete aviary-failed aviary-suspended)
        jobs greeter/own ServerSideApply Watch JSONPaths(aviary-digest aviary-complete aviary-failed aviary-suspended)
        pods greeter/greeter CreateOnly Watch JSONPaths(aviary-name aviary-digest aviary-phase aviary-ready aviary-since)
    "#]].assert_eq(&entries(&work));
}

#[test]
fn an_object_whose_health_is_ignored_is_not_probed() {
    let mut ignored = deployment();
    ignored["metadata"]["annotations"] = json!({"addon.open-cluster-management.io/health": "ignore"});
    let work = Template::of(std::slice::from_ref(&ignored)).work();
    assert!(work["spec"].get("manifestConfigs").is_none());
    assert_eq!(work["spec"]["workload"]["manifests"][0], ignored);
    assert_eq!(told(&read(&work).health), "Healthy");
    ignored["metadata"]["annotations"]["addon.open-cluster-management.io/health"] = json!("please");
    let work = Template::of(&[ignored]).work();
    assert!(told(&read(&work).health).starts_with("Unknown"), "any other value asks for nothing");
}

#[test]
fn a_job_whose_health_is_ignored_is_still_created_only_once() {
    let mut job = object("batch/v1", "Job");
    job["metadata"]["annotations"] = json!({"addon.open-cluster-management.io/health": "ignore"});
    let work = Template::of(&[job]).work();
    let entry = &work["spec"]["manifestConfigs"][0];
    assert_eq!(entry["updateStrategy"]["type"], "CreateOnly");
    assert!(entry.get("feedbackRules").is_none());
    assert_eq!(told(&read(&work).health), "Healthy");
    assert!(read(&work).intact);
}

#[test]
fn variables_in_the_author_s_entries_are_filled_in() {
    let mut manifest = deployment();
    manifest["metadata"] =
        json!({"name": "{{CLUSTER_NAME}}-{{COLOUR}}", "namespace": "{{INSTALL_NAMESPACE}}"});
    let configs = json!([{
        "resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "{{CLUSTER_NAME}}-{{COLOUR}}", "namespace": "{{INSTALL_NAMESPACE}}"},
        "feedbackRules": [{"type": "WellKnownStatus"}],
    }, {
        "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "{{ADDON_NAME}}", "namespace": "{{INSTALL_NAMESPACE}}"},
        "updateStrategy": {"type": "CreateOnly"},
    }]);
    let template = Template::of(&[manifest]).configs(configs);
    let work = template.variables(json!([{"name": "COLOUR", "value": "blue"}])).work();
    expect![[r#"
        deployments agents/c1-blue - Watch JSONPaths(aviary-digest aviary-generation aviary-observed aviary-replicas aviary-total aviary-updated aviary-available aviary-paused aviary-progress aviary-replica-failure aviary-since aviary-max-unavailable) WellKnownStatus()
        configmaps agents/helloworld CreateOnly -
    "#]].assert_eq(&entries(&work));
}

#[test]
fn an_unknown_variable_in_an_entry_is_a_named_problem() {
    let configs = json!([{"resourceIdentifier": named("deployments", "{{TYPO}}"), "feedbackRules": [{"type": "WellKnownStatus"}]}]);
    refusal(
        &[deployment()],
        configs,
        &expect!["VariableUnknown: template tpl uses the variable TYPO, which is not defined"],
    );
}

/// The agent needs the plural of a kind.
#[test]
fn the_plural_of_a_custom_resource_comes_from_its_definition_or_from_the_author() {
    let widget = || object("example.com/v1", "Policy");
    let nothing = Template::of(&[widget()]).work();
    assert_eq!(entries(&nothing), "", "nobody knows its plural: it is not probed");
    assert_eq!(told(&read(&nothing).health), "Healthy");
    assert_eq!(nothing["spec"]["workload"]["manifests"][0], widget());

    let mut definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    definition["metadata"] = json!({"name": "policies.example.com"});
    definition["spec"] = json!({"group": "example.com", "names": {"kind": "Policy", "plural": "policies"}});
    let defined = Template::of(&[definition.clone(), widget()]).work();
    expect![[r#"
        customresourcedefinitions -/policies.example.com - Watch JSONPaths(aviary-digest aviary-established aviary-names-accepted)
        policies greeter/greeter - Watch JSONPaths(aviary-digest aviary-generation aviary-observed aviary-ready aviary-reconciling aviary-stalled)
    "#]].assert_eq(&entries(&defined));

    definition["spec"]["group"] = json!("example.org");
    let other = Template::of(&[definition, widget()]).work();
    assert_eq!(entries(&other).lines().count(), 1, "the kind of another group");

    let configs = json!([{"resourceIdentifier": {"group": "example.com", "resource": "policies", "name": "greet*", "namespace": "*"}}]);
    let by_author = Template::of(&[widget()]).configs(configs).work();
    expect![[r#"
        policies greeter/greeter - Watch JSONPaths(aviary-digest aviary-generation aviary-observed aviary-ready aviary-reconciling aviary-stalled)
        policies */greet* - Watch
    "#]].assert_eq(&entries(&by_author));
    let configs = json!([{"resourceIdentifier": {"group": "example.com", "resource": "secrets", "name": "greeter", "namespace": "greeter"}}]);
    let foreign = Template::of(&[widget()]).configs(configs).work();
    assert!(
        foreign["spec"]["manifestConfigs"][0].get("feedbackRules").is_none(),
        "another resource of that name"
    );
}

// --- somebody changes the instructions
// --------------------------------------------------------------

#[test]
fn removed_or_changed_instructions_are_noticed() {
    let work = || Template::of(&[deployment(), object("v1", "Pod")]).work();
    assert!(read(&work()).intact);
    let changes: [(&str, fn(&mut Value)); 6] = [
        ("an entry is removed", |spec| {
            spec["manifestConfigs"].as_array_mut().unwrap().remove(0);
        }),
        ("all are removed", |spec| {
            spec.as_object_mut().unwrap().remove("manifestConfigs");
        }),
        ("a path is changed", |spec| {
            spec["manifestConfigs"][0]["feedbackRules"][0]["jsonPaths"][1]["path"] = json!(".metadata.name");
        }),
        ("rules are removed", |spec| {
            spec["manifestConfigs"][1]["feedbackRules"] = json!([]);
        }),
        ("a strategy is changed", |spec| {
            spec["manifestConfigs"][1]["updateStrategy"]["type"] = json!("Update");
        }),
        ("an entry is put before ours", |spec| {
            let entry = json!({"resourceIdentifier": {"resource": "*", "name": "*"}});
            spec["manifestConfigs"].as_array_mut().unwrap().insert(0, entry);
        }),
    ];
    for (name, change) in changes {
        let mut work = work();
        change(&mut work["spec"]);
        assert!(!read(&work).intact, "{name}");
    }
}

/// What an API server fills in or drops is no change: it would be written again for ever.
#[test]
fn defaults_and_fields_that_an_older_crd_drops_are_no_change() {
    let configs = json!([{
        "resourceIdentifier": named("deployments", "greeter"),
        "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"ignoreFields": [{"jsonPaths": [".spec.replicas"]}]}},
    }, {
        "resourceIdentifier": {"resource": "configmaps", "name": "settings"},
        "feedbackRules": [{"type": "WellKnownStatus"}],
    }]);
    let mut work = Template::of(&[deployment(), object("v1", "Pod")]).configs(configs).work();
    for entry in work["spec"]["manifestConfigs"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("feedbackScrapeType");
    }
    assert!(read(&work).intact, "an older CRD has no feedbackScrapeType");
    for entry in work["spec"]["manifestConfigs"].as_array_mut().unwrap() {
        entry["feedbackScrapeType"] = json!("Poll");
        let identifier = &mut entry["resourceIdentifier"];
        for field in ["group", "namespace"] {
            if identifier.get(field).is_none() {
                identifier[field] = json!("");
            }
        }
        if entry.get("updateStrategy").is_none() {
            entry["updateStrategy"] = json!({"type": "Update"});
        }
        if entry["updateStrategy"]["type"] == "ServerSideApply" {
            entry["updateStrategy"]["serverSideApply"]["fieldManager"] = json!("work-agent");
            entry["updateStrategy"]["serverSideApply"]["force"] = json!(false);
            entry["updateStrategy"]["serverSideApply"]["ignoreFields"][0]["condition"] =
                json!("OnSpokePresent");
        }
    }
    assert!(read(&work).intact, "defaults are filled in");
}
