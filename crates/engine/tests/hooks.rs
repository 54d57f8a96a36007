//! Pre-delete hooks (rules, 6.5): what runs when an instance is deleted, and never before.

use std::collections::BTreeSet;

use crate::story::rendering::{ready, works};
use crate::story::{Story, cluster};
use aviary_engine::hooks::work_name;
use aviary_engine::invariants::{Deed, check_deed};
use aviary_engine::normalise;
use aviary_engine::observed::Observed;
use expect_test::expect;
use serde_json::{Value, json};

/// A Job that wipes what the agent leaves behind.
fn hook(kind: &str, metadata: &Value) -> Value {
    let version = if kind == "Job" { "batch/v1" } else { "v1" };
    let mut hook = json!({
        "apiVersion": version, "kind": kind, "metadata": { "name": "cleanup", "namespace": "{{INSTALL_NAMESPACE}}" },
        "spec": {},
    });
    for (key, value) in metadata.as_object().into_iter().flatten() {
        hook["metadata"][key] = value.clone();
    }
    hook
}

fn agent() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "agent", "namespace": "{{INSTALL_NAMESPACE}}" },
        "spec": {},
    })
}

fn kinds(works: &[Value]) -> Vec<String> {
    let manifests = works.iter().flat_map(|work| work["spec"]["workload"]["manifests"].as_array());
    let kind = |manifest: &Value| {
        format!(
            "{} {}",
            manifest["kind"].as_str().unwrap_or_default(),
            manifest["metadata"]["name"].as_str().unwrap_or_default()
        )
    };
    manifests.flatten().map(kind).collect()
}

#[test]
fn a_hook_is_never_part_of_what_is_installed() {
    let annotated = json!({ "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } });
    let labelled = json!({ "labels": { "open-cluster-management.io/addon-pre-delete": "" } });
    for (kind, marks) in [("Job", &annotated), ("Pod", &annotated), ("Job", &labelled), ("Pod", &labelled)] {
        for manifests in [json!([agent(), hook(kind, marks)]), json!([hook(kind, marks), agent()])] {
            let mut story = ready(&manifests, &json!({}));
            story.run("pass");
            let written = works(&story.world.observed, &story);
            assert_eq!(kinds(&written), ["Deployment agent"], "{kind} {marks}");
        }
    }
    // What is no Job or Pod is installed, whatever it carries.
    let mut settings = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" } });
    settings["metadata"]["annotations"] = annotated["annotations"].clone();
    let story = ready(&json!([settings]), &json!({}));
    assert_eq!(kinds(&works(&story.world.observed, &story)), ["ConfigMap settings"]);
}

#[test]
fn the_deploy_work_of_a_template_with_a_hook_has_everything_else() {
    let marks = json!({ "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "true" } });
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "setup" }, "spec": {} });
    let mut with = ready(&json!([agent(), hook("Job", &marks), job]), &json!({}));
    with.run("pass");
    assert_eq!(kinds(&works(&with.world.observed, &with)), ["Deployment agent", "Job setup"]);
    let without = ready(&json!([agent(), job]), &json!({}));
    let spec = |story: &Story| works(&story.world.observed, story)[0]["spec"].clone();
    assert_eq!(spec(&with), spec(&without), "the hook leaves no trace in it");
}

#[test]
fn a_template_of_nothing_but_hooks_is_named() {
    let marks = json!({ "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } });
    let mut story = ready(&json!([hook("Job", &marks)]), &json!({}));
    story.run("show a1");
    assert!(
        story.told.contains("it has only pre-delete hooks: add what is to be installed"),
        "{}",
        story.told
    );
}

/// Two clusters that run a template with a Job as hook, and the hook's own metadata.
fn installed(metadata: &Value) -> Story {
    let mut marks = json!({ "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } });
    for (key, value) in metadata.as_object().into_iter().flatten() {
        marks["annotations"][key] = value.clone();
    }
    let mut story = Story::new();
    story.put_template(&json!({
        "metadata": { "name": "tpl" },
        "spec": {
            "addonName": "helloworld", "version": "v1",
            "agentSpec": { "workload": { "manifests": [agent(), hook("Job", &marks)] } },
        },
    }));
    story.run("place prod: a1 a2\n rollout prod\n settle");
    story
}

fn finalizers(story: &Story, name: &str) -> Option<Vec<String>> {
    let instance = story.world.observed.instances.get(&cluster(name))?;
    Some(instance.finalizers.iter().map(ToString::to_string).collect())
}

fn has_works(story: &Story, name: &str) -> Vec<String> {
    let works = story.world.observed.works.get(&cluster(name));
    works.map_or_else(Vec::new, |works| works.iter().map(|work| work.name.to_string()).collect())
}

const DEPLOY: &str = "addon-helloworld-deploy-0";
const HOOKS: &str = "addon-helloworld-pre-delete";
const FINALIZER: &str = "addon.open-cluster-management.io/addon-pre-delete";

#[test]
fn an_instance_gets_the_finalizer_before_anything_is_deployed() {
    let mut story = Story::new();
    story.put_template(&json!({
        "metadata": { "name": "tpl" },
        "spec": { "addonName": "helloworld", "version": "v1", "agentSpec": { "workload": { "manifests": [
            agent(), hook("Job", &json!({ "annotations": { FINALIZER: "" } })),
        ] } } },
    }));
    story.run("place prod: a1\n rollout prod");
    for _ in 0..10 {
        let guarded = finalizers(&story, "a1").is_some_and(|all| all == [FINALIZER]);
        assert!(guarded || has_works(&story, "a1").is_empty(), "deployed without a finalizer");
        story.run("pass");
    }
    assert_eq!(has_works(&story, "a1"), [DEPLOY]);
    story.run("settle\n show all");
    assert!(story.told.contains("settled"), "{}", story.told);
}

#[test]
fn on_deletion_the_hooks_complete_before_anything_is_removed() {
    let mut story = installed(&json!({}));
    story.run("stuck a1\n remove a1\n pass 3");
    assert_eq!(has_works(&story, "a1"), [DEPLOY, HOOKS], "the agent still runs while the hook does");
    assert_eq!(finalizers(&story, "a1").as_deref(), Some(&[FINALIZER.to_owned()][..]));
    story.run("show a1\n ack a1\n pass");
    assert!(story.told.contains("HookManifestCompleted False HookManifestIsNotCompleted"), "{}", story.told);
    assert_eq!(finalizers(&story, "a1"), None, "the hook has completed, so the instance goes");
    assert!(has_works(&story, "a1").is_empty());
    story.run("settle");
    assert_eq!(has_works(&story, "a1"), [DEPLOY], "it is selected, so it is installed again");
    assert_eq!(finalizers(&story, "a2").as_deref(), Some(&[FINALIZER.to_owned()][..]));
}

#[test]
fn a_placement_stays_complete_while_hooks_run_for_an_instance_that_somebody_deleted() {
    let mut story = installed(&json!({}));
    story.run("note before\n show status");
    let before = story.told.split_off(story.told.rfind("prod").expect("its status"));
    story.run(
        "wait 1h\n stuck a1\n remove a1\n pass 3\n note while the hooks run\n show status\n show progress",
    );
    assert!(before.contains("2/2 install completed"), "{before}");
    assert!(story.told.contains("1/2 install completed with no errors."), "{}", story.told);
    story.run("ack a1\n settle");
}

#[test]
fn a_hook_that_failed_or_was_evicted_is_run_again() {
    let mut story = installed(&json!({}));
    story.run("stuck a1\n remove a1\n pass 2");
    let uid = |story: &Story| {
        let works = story.world.observed.works.get(&cluster("a1")).expect("works");
        works.iter().find(|work| *work.name == *HOOKS).map(|work| work.uid.clone())
    };
    let first = uid(&story);
    assert!(first.is_some());
    story.run("broken a1\n pass");
    assert_eq!(has_works(&story, "a1"), [DEPLOY], "the failed attempt is removed");
    story.run("stuck a1\n pass");
    assert!(uid(&story).is_some() && uid(&story) != first, "and made again");
    story.run("ack a1\n pass");
    assert_eq!(finalizers(&story, "a1"), None);
}

#[test]
fn after_the_deadline_the_instance_goes_without_its_hooks() {
    for (metadata, before, after) in [
        (json!({}), "9m50s", "20s"),
        (json!({ "addon.open-cluster-management.io/addon-pre-delete-deadline": "30m" }), "29m50s", "20s"),
    ] {
        let mut story = installed(&metadata);
        // The manager was away when it was deleted: the hooks get their whole time.
        story.run("offline a1\n stuck a1\n remove a1\n wait 2h\n pass 2");
        story.run(&format!("wait {before}\n pass"));
        assert!(finalizers(&story, "a1").is_some(), "not yet");
        story.run(&format!("wait {after}\n pass"));
        assert_eq!(finalizers(&story, "a1"), None);
    }
}

#[test]
fn an_unusable_deadline_is_named() {
    let marks = json!({ "annotations": { FINALIZER: "", "addon.open-cluster-management.io/addon-pre-delete-deadline": "soon" } });
    let mut story = ready(&json!([agent(), hook("Job", &marks)]), &json!({}));
    story.run("show a1");
    let why = "Job.batch {{INSTALL_NAMESPACE}}/cleanup has an unusable deadline: \"soon\" is not a duration";
    assert!(story.told.contains(why), "{}", story.told);
}

#[test]
fn hooks_of_a_cluster_that_is_gone_hold_nothing() {
    let mut story = installed(&json!({}));
    story.run("stuck a1\n remove a1\n pass 2\n gone a1\n pass");
    assert_eq!(finalizers(&story, "a1"), None);
}

#[test]
fn a_cluster_that_is_being_deleted_still_runs_its_hooks() {
    let mut story = installed(&json!({}));
    story.run("stuck a1\n delete a1\n pass 4");
    assert_eq!(has_works(&story, "a1"), [DEPLOY, HOOKS]);
    story.run("ack a1\n pass");
    assert_eq!(finalizers(&story, "a1"), None);
}

#[test]
fn deleting_the_add_on_runs_the_hooks_and_keeps_what_they_are_rendered_from() {
    let mut story = installed(&json!({}));
    let held = story.world.observed.revisions.held.clone();
    assert!(!held.is_empty(), "what hooks need outlives the add-on");
    story.run("stuck a1 a2\n uninstall");
    // Everything but the stored revisions is gone with the add-on.
    story.world.observed.templates.clear();
    story.world.observed.configs.clear();
    story.world.observed.revisions.contents.retain(|hash, _| held.contains(hash));
    story.run("pass 3");
    for name in ["a1", "a2"] {
        assert_eq!(has_works(&story, name), [DEPLOY, HOOKS]);
    }
    story.run("ack a1\n pass 2");
    assert_eq!((finalizers(&story, "a1"), story.world.observed.revisions.held.clone()), (None, held));
    story.run("ack a2\n pass 2");
    assert_eq!(finalizers(&story, "a2"), None);
    assert!(story.world.observed.revisions.held.is_empty(), "nothing is left behind");
    assert!(aviary_engine::plan::plan(&story.world.observed, story.now).is_at_rest());
}

/// The check of every write finds managers that lose a hook: S25.
#[test]
fn a_manager_that_loses_a_hook_is_found() {
    let rules = |before: &Observed, deed: Deed<'_>, after: &Observed| -> BTreeSet<&str> {
        check_deed(before, deed, after).iter().map(|violation| violation.rule).collect()
    };
    let (a1, a2) = (cluster("a1"), cluster("a2"));
    let mut story = installed(&json!({}));
    story.run("stuck a1\n remove a1");
    // The instance goes, and its hooks have never begun.
    let before = story.world.observed.clone();
    let mut after = before.clone();
    after.instances.remove(&a1);
    assert_eq!(rules(&before, Deed::Guard(&a1), &after), BTreeSet::from(["S25"]));
    // An instance in use loses its finalizer.
    let mut unguarded = before.clone();
    unguarded.instances.get_mut(&a2).expect("an instance").finalizers.clear();
    assert_eq!(rules(&before, Deed::Guard(&a2), &unguarded), BTreeSet::from(["S25"]));
    // Something is deployed that hooks have to clean up, and nothing waits for them.
    let told = before.instances.get(&a2).expect("an instance").status.told_revision();
    let deed = Deed::Work { cluster: &a2, name: DEPLOY, told: &told };
    assert_eq!(rules(&unguarded, deed, &unguarded), BTreeSet::from(["S25"]));
    assert_eq!(rules(&before, deed, &before), BTreeSet::new());
}

#[test]
fn an_instance_that_was_assigned_no_hooks_is_not_held() {
    let mut story = installed(&json!({}));
    story.run("template v2\n settle\n remove a1\n pass");
    assert_eq!(finalizers(&story, "a1"), None, "its template has no hooks any more");
}

#[test]
fn hooks_of_an_add_on_with_its_own_manager_are_left_to_it() {
    let mut story = Story::new();
    story.run("config A v1\n place prod: a1\n rollout prod config=A\n settle");
    let held = |story: &mut Story| {
        let mut instance = story.world.observed.instances.get_mut(&cluster("a1")).expect("an instance");
        instance.finalizers = vec![FINALIZER.into()];
    };
    held(&mut story);
    story.run("remove a1\n wait 1h\n pass 3");
    assert_eq!(finalizers(&story, "a1").as_deref(), Some(&[FINALIZER.to_owned()][..]));
    assert_eq!(has_works(&story, "a1").len(), 1);
}

#[test]
fn the_work_of_the_hooks_is_ocms() {
    let mut story = installed(&json!({}));
    story.run("stuck a1\n remove a1\n pass 0");
    let written = works(&story.world.observed, &story);
    let work =
        written.iter().find(|work| work["metadata"]["name"] == *work_name("helloworld")).expect("the hooks");
    let shown = serde_json::to_string_pretty(work).expect("JSON");
    expect![[r#"
        {
          "apiVersion": "work.open-cluster-management.io/v1",
          "kind": "ManifestWork",
          "metadata": {
            "labels": {
              "open-cluster-management.io/addon-name": "helloworld"
            },
            "name": "addon-helloworld-pre-delete",
            "namespace": "a1",
            "ownerReferences": [
              {
                "apiVersion": "addon.open-cluster-management.io/v1alpha1",
                "kind": "ManagedClusterAddOn",
                "name": "helloworld",
                "uid": "uid-3"
              }
            ]
          },
          "spec": {
            "manifestConfigs": [
              {
                "feedbackRules": [
                  {
                    "type": "WellKnownStatus"
                  },
                  {
                    "jsonPaths": [
                      {
                        "name": "aviary-hook-failed",
                        "path": ".status.conditions[?(@.type==\"Failed\")].status"
                      }
                    ],
                    "type": "JSONPaths"
                  }
                ],
                "feedbackScrapeType": "Watch",
                "resourceIdentifier": {
                  "group": "batch",
                  "name": "cleanup",
                  "namespace": "open-cluster-management-agent-addon",
                  "resource": "jobs"
                },
                "updateStrategy": {
                  "type": "CreateOnly"
                }
              }
            ],
            "workload": {
              "manifests": [
                {
                  "apiVersion": "batch/v1",
                  "kind": "Job",
                  "metadata": {
                    "annotations": {
                      "addon.open-cluster-management.io/addon-pre-delete": ""
                    },
                    "name": "cleanup",
                    "namespace": "open-cluster-management-agent-addon"
                  },
                  "spec": {}
                }
              ]
            }
          }
        }"#]]
    .assert_eq(&shown);
}

/// What agents report, and what it says of the hooks.
#[test]
fn hooks_complete_as_ocm_reads_it() {
    let read = |kind: &str, values: Value| {
        let (version, group) = if kind == "Job" { ("batch/v1", "batch") } else { ("v1", "") };
        let values: Vec<Value> = values
            .as_object()
            .expect("values")
            .iter()
            .map(|(name, value)| json!({ "name": name, "fieldValue": { "type": "String", "string": value } }))
            .collect();
        let object = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": { "name": HOOKS, "namespace": "a1", "generation": 1, "labels": { "open-cluster-management.io/addon-name": "helloworld" } },
            "spec": { "workload": { "manifests": [{ "apiVersion": version, "kind": kind, "metadata": { "name": "cleanup" } }] } },
            "status": { "resourceStatus": { "manifests": [{
                "resourceMeta": { "ordinal": 0, "group": group, "kind": kind, "name": "cleanup" },
                "statusFeedback": { "values": values }, "conditions": [],
            }] } },
        });
        let (_, work) = normalise::work(&serde_json::from_value(object).expect("a work")).expect("ours");
        format!("{:?}", work.health).split_whitespace().next().unwrap_or_default().to_owned()
    };
    assert_eq!(read("Job", json!({ "JobComplete": "True" })), "Healthy");
    assert_eq!(read("Job", json!({ "JobComplete": "False" })), "Progressing");
    assert_eq!(read("Job", json!({})), "Progressing");
    assert_eq!(read("Job", json!({ "aviary-hook-failed": "True" })), "Failed");
    assert_eq!(read("Pod", json!({ "PodPhase": "Succeeded" })), "Healthy");
    assert_eq!(read("Pod", json!({ "PodPhase": "Running", "PodReady": "True" })), "Progressing");
    assert_eq!(read("Pod", json!({ "PodPhase": "Failed" })), "Failed");
}
