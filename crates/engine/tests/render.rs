//! Rendering, rule by rule (chapter 6 of the rules), and that no value can ever become structure.

use crate::story::rendering::{ready, shape, works};
use crate::story::{Story, check, cluster};
use aviary_engine::normalise;
use aviary_engine::observed::Seen;
use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

fn rendered(manifests: &Value, deployment: &Value) -> Vec<Value> {
    let story = ready(manifests, deployment);
    works(&story.world.observed, &story)
}

fn config_map(data: &Value) -> Value {
    json!([{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" }, "data": data }])
}

#[test]
fn rule_1_a_work_carries_name_labels_owner_and_both_spellings_of_the_hashes() {
    let mut works = rendered(&config_map(&json!({ "a": "b" })), &json!({}));
    let work = works.remove(0);
    let shown = serde_json::to_string_pretty(&work).expect("JSON");
    expect![[r#"
        {
          "apiVersion": "work.open-cluster-management.io/v1",
          "kind": "ManifestWork",
          "metadata": {
            "annotations": {
              "addon.open-cluster-management.io/probes-digest": "4f53cda18c2baa0c0354",
              "addon.open-cluster-management.io/rendered-digest": "535a5828fa50b14b04ed7deb2ee8b7fdb084e3acceb2e0df2411d1e17e3df803",
              "addon.open-cluster-management.io/rendered-from": "1/v1.0.0/open-cluster-management-agent-addon",
              "configsSpecHash": "{\"addondeploymentconfigs.addon.open-cluster-management.io/default/deploy\":\"53aa778a9b137a0ca7ab79937d069870b14440dae5922f51d940ffa4b178d5cb\",\"addontemplates.addon.open-cluster-management.io//tpl\":\"fc18d5f65d25615e5d5378710a6245e2e31cc8d0d71e4c4973ab52795092f4c6\"}",
              "open-cluster-management.io/config-spec-hash": "{\"addondeploymentconfigs.addon.open-cluster-management.io/default/deploy\":\"53aa778a9b137a0ca7ab79937d069870b14440dae5922f51d940ffa4b178d5cb\",\"addontemplates.addon.open-cluster-management.io//tpl\":\"fc18d5f65d25615e5d5378710a6245e2e31cc8d0d71e4c4973ab52795092f4c6\"}"
            },
            "labels": {
              "open-cluster-management.io/addon-name": "helloworld",
              "open-cluster-management.io/addon-version": "v1.0.0"
            },
            "name": "addon-helloworld-deploy-0",
            "namespace": "a1",
            "ownerReferences": [
              {
                "apiVersion": "addon.open-cluster-management.io/v1alpha1",
                "kind": "ManagedClusterAddOn",
                "name": "helloworld",
                "uid": "uid-4"
              }
            ]
          },
          "spec": {
            "workload": {
              "manifests": [
                {
                  "apiVersion": "v1",
                  "data": {
                    "a": "b"
                  },
                  "kind": "ConfigMap",
                  "metadata": {
                    "name": "settings"
                  }
                }
              ]
            }
          }
        }"#]].assert_eq(&shown);
}

#[test]
fn rule_1_what_is_written_reads_back_as_what_it_should_be() {
    let mut story = ready(&config_map(&json!({ "a": "1.0", "b": "{{CLUSTER_NAME}}" })), &json!({}));
    for object in works(&story.world.observed, &story) {
        let work = serde_json::from_value(object).expect("a ManifestWork");
        let (addon, mut work) = normalise::work(&work).expect("a work of the add-on");
        assert_eq!(&*addon, "helloworld");
        assert_eq!(work.digest, work.rendered_digest);
        work.uid = "work-uid".into();
        story.world.put_work(&cluster("a1"), work);
    }
    assert!(works(&story.world.observed, &story).is_empty(), "nothing is written that is already so");
}

#[test]
fn rule_1_all_three_spellings_of_the_annotation_count_and_contradictions_prove_nothing() {
    let read = |annotations: Value| {
        let object = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": { "name": "w", "namespace": "a1", "labels": { "open-cluster-management.io/addon-name": "x" }, "annotations": annotations },
            "spec": {},
        });
        normalise::work(&serde_json::from_value(object).expect("a work")).expect("ours").1.hashes
    };
    let scoped = r#"{"addonhubconfigs.addon.open-cluster-management.io/hub":"aa"}"#;
    let empty_namespace = r#"{"addonhubconfigs.addon.open-cluster-management.io//hub":"aa"}"#;
    let expected = read(json!({ "configsSpecHash": scoped }));
    assert!(expected.is_some());
    for key in ["configSpecHash", "open-cluster-management.io/config-spec-hash"] {
        assert_eq!(read(json!({ key: empty_namespace })), expected, "{key}");
    }
    assert_eq!(
        read(json!({ "configsSpecHash": scoped, "configSpecHash": scoped.replace("aa", "bb") })),
        None
    );
    assert_eq!(read(json!({ "configsSpecHash": "not JSON" })), None);
}

#[test]
fn rule_1_works_are_split_before_they_pass_400_kib_and_all_of_them_must_arrive() {
    let big = "x".repeat(150 * 1024);
    let manifests: Vec<Value> = (0..5)
        .map(|i| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("m{i}") }, "data": { "big": big } }))
        .collect();
    let mut story = ready(&json!(manifests), &json!({}));
    let sizes: Vec<usize> = works(&story.world.observed, &story)
        .iter()
        .map(|work| work["spec"].to_string().len() / 1024)
        .collect();
    assert_eq!(sizes, [300, 300, 150]);
    story.run("settle\n show works\n show a1");
    story.world.observed.works.get_mut(&cluster("a1")).expect("works").pop();
    story.run("note one of three is gone: it is made again, and nothing counts as there until it is\n show clusters");
    expect![[r#"
        a1  addon-helloworld-deploy-0 generation 1 version v1.0.0
        a1  addon-helloworld-deploy-1 generation 1 version v1.0.0
        a1  addon-helloworld-deploy-2 generation 1 version v1.0.0
        a1  addondeploymentconfigs desired deploy@53aa778a applied deploy@53aa778a
        a1  version desired v1.0.0 current v1.0.0 last -
        a1  Progressing False InstallSucceed: install completed with no errors.
        a1  Configured True ConfigurationsConfigured: all configurations are resolved
        a1  Available True WorksAvailable: all works are available
        -- one of three is gone: it is made again, and nothing counts as there until it is
        a1               in flight v1.0.0   updating
    "#]]
    .assert_eq(&story.told);
}

#[test]
fn rule_2_variables_then_built_ins_are_filled_in_and_other_braces_stay() {
    let manifests = config_map(&json!({
        "image": "{{IMAGE}}:{{VERSION}}",
        "where": "{{CLUSTER_NAME}}/{{ADDON_NAME}}/{{INSTALL_NAMESPACE}}",
        "value names a built-in": "{{URL}}",
        "somebody else's": "{{ $labels.pod }} {{.Values.x}} {{ CLUSTER_NAME }}",
        "{{IMAGE}}": "a key is never touched",
    }));
    let deployment = json!({ "customizedVariables": [
        { "name": "IMAGE", "value": "old" }, { "name": "IMAGE", "value": "agent" }, { "name": "URL", "value": "http://{{CLUSTER_NAME}}.example" },
    ] });
    let works = rendered(&manifests, &deployment);
    let shown =
        serde_json::to_string_pretty(&works[0]["spec"]["workload"]["manifests"][0]["data"]).expect("JSON");
    expect![[r#"
        {
          "image": "agent:v1.0.0",
          "somebody else's": "{{ $labels.pod }} {{.Values.x}} {{ CLUSTER_NAME }}",
          "value names a built-in": "http://a1.example",
          "where": "a1/helloworld/open-cluster-management-agent-addon",
          "{{IMAGE}}": "a key is never touched"
        }"#]]
    .assert_eq(&shown);
}

#[test]
fn rule_2_a_template_that_cannot_be_rendered_is_reported_and_writes_no_work() {
    let cases = [
        (config_map(&json!({ "a": "{{NOBODY_KNOWS}}" })), json!({})),
        (
            config_map(&json!({})),
            json!({ "customizedVariables": [{ "name": "CLUSTER_NAME", "value": "other" }] }),
        ),
        (json!([]), json!({})),
        (json!([{ "apiVersion": "v1", "kind": "ConfigMap" }]), json!({})),
        (json!(["text"]), json!({})),
        (
            json!([{ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } }, { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } }]),
            json!({}),
        ),
        (config_map(&json!({ "big": "x".repeat(401 * 1024) })), json!({})),
    ];
    let mut told = String::new();
    for (manifests, deployment) in cases {
        let mut story = ready(&manifests, &deployment);
        assert!(works(&story.world.observed, &story).is_empty());
        story.run("show a1");
        told += story.told.lines().next().unwrap_or_default();
        told += "\n";
    }
    expect![[r#"
        a1  Progressing False InstallFailed: install failed: template tpl uses the variable NOBODY_KNOWS, which is not defined
        a1  Progressing False InstallFailed: install failed: addondeploymentconfigs.addon.open-cluster-management.io default/deploy defines the variable CLUSTER_NAME, which is built in and cannot be replaced
        a1  Progressing False InstallFailed: install failed: template tpl has no manifests
        a1  Progressing False InstallFailed: install failed: template tpl: manifests[0] has no metadata.name
        a1  Progressing False InstallFailed: install failed: template tpl: manifests[0] has no apiVersion
        a1  Progressing False InstallFailed: install failed: template tpl has Secret s twice
        a1  Progressing False InstallFailed: install failed: template tpl: ConfigMap settings has more than 400 KiB once it is rendered, more than a work can carry
    "#]].assert_eq(&told);
}

#[test]
fn rule_2_node_placement_goes_into_every_pod_spec_in_both_spellings() {
    let workload = |kind: &str, version: &str| json!({ "apiVersion": version, "kind": kind, "metadata": { "name": kind.to_lowercase() }, "spec": {} });
    let manifests = json!([
        workload("Deployment", "apps/v1"),
        workload("DaemonSet", "apps/v1"),
        workload("StatefulSet", "apps/v1"),
        workload("Job", "batch/v1"),
        workload("CronJob", "batch/v1"),
        workload("Deployment", "example.com/v1"),
        workload("ConfigMap", "v1"),
    ]);
    let selector = json!({ "kubernetes.io/arch": "arm64" });
    let tolerations =
        json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule" }]);
    let nested = rendered(
        &manifests,
        &json!({ "nodePlacement": { "nodeSelector": selector, "tolerations": tolerations } }),
    );
    let flat = rendered(&manifests, &json!({ "nodeSelector": selector, "tolerations": tolerations }));
    let specs = |works: &[Value]| -> Vec<String> {
        works[0]["spec"]["workload"]["manifests"]
            .as_array()
            .expect("manifests")
            .iter()
            .map(|manifest| manifest["spec"].to_string())
            .collect()
    };
    assert_eq!(specs(&nested), specs(&flat));
    expect![[r#"
        {"template":{"spec":{"nodeSelector":{"kubernetes.io/arch":"arm64"},"tolerations":[{"effect":"NoSchedule","key":"node.kubernetes.io/unreachable","operator":"Exists"}]}}}
        {"template":{"spec":{"nodeSelector":{"kubernetes.io/arch":"arm64"},"tolerations":[{"effect":"NoSchedule","key":"node.kubernetes.io/unreachable","operator":"Exists"}]}}}
        {"template":{"spec":{"nodeSelector":{"kubernetes.io/arch":"arm64"},"tolerations":[{"effect":"NoSchedule","key":"node.kubernetes.io/unreachable","operator":"Exists"}]}}}
        {"template":{"spec":{"nodeSelector":{"kubernetes.io/arch":"arm64"},"tolerations":[{"effect":"NoSchedule","key":"node.kubernetes.io/unreachable","operator":"Exists"}]}}}
        {"jobTemplate":{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/arch":"arm64"},"tolerations":[{"effect":"NoSchedule","key":"node.kubernetes.io/unreachable","operator":"Exists"}]}}}}}
        {}
        {}"#]].assert_eq(&specs(&nested).join("\n"));
}

#[test]
fn rule_3_works_that_somebody_else_writes_are_rolled_out_and_reported_all_the_same() {
    check(
        "
        config A v1
        config B v2
        place prod: a1 a2
        rollout prod config=A RollingUpdate 1
        settle
        show works
        rollout prod config=B RollingUpdate 1
        pass
        show clusters
        settle
        show status",
        &expect![[r#"
            a1  own-manager generation 1 version -
            a2  own-manager generation 1 version -
            a1               in flight v2       updating
            a2               hold      v1       budget full: 1 of 1 in flight
            prod  False UpgradeSucceed  2/2 upgrade completed with no errors.
                desired B good B applied B
        "#]],
    );
}

#[test]
fn rule_4_a_foreign_edit_of_a_work_is_put_back() {
    check(
        "
        template v1
        place prod: a1
        rollout prod
        settle
        edit a1
        show clusters
        pass
        show works
        settle
        show all",
        &expect![[r#"
            a1               in flight v1       applied but not available: the agent has not reported on it yet
            a1  addon-helloworld-deploy-0 generation 3 version v1
            a1               settled   v1       settled
        "#]],
    );
}

#[test]
fn f6_a_value_with_quotes_and_braces_adds_no_key() {
    let works = rendered(
        &config_map(&json!({ "image": "{{IMAGE}}" })),
        &json!({ "customizedVariables": [{ "name": "IMAGE", "value": "v5\",\"pwned\":\"yes" }] }),
    );
    assert_eq!(
        works[0]["spec"]["workload"]["manifests"][0]["data"],
        json!({ "image": "v5\",\"pwned\":\"yes" })
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// S18: whatever the values are, the keys and types of the template stay.
    #[test]
    fn rendering_keeps_the_structure_for_arbitrary_values(value in ".*", text in "[^{]*", key in "k[a-zA-Z{}\"]{0,12}") {
        let data = json!({ "a": format!("{text}{{{{VALUE}}}}{text}"), "b": ["{{VALUE}}", 1, true, null], key: { "c": "{{VALUE}}" } });
        let manifests = config_map(&data);
        let works = rendered(&manifests, &json!({ "customizedVariables": [{ "name": "VALUE", "value": value }] }));
        let manifest = &works[0]["spec"]["workload"]["manifests"][0];
        prop_assert_eq!(shape(manifest), shape(&manifests[0]));
        let plain = value.replace("{{CLUSTER_NAME}}", "a1");
        if !value.contains("{{") {
            prop_assert_eq!(&manifest["data"]["b"][0], &json!(plain));
        }
    }

    /// A template of arbitrary text either renders or is refused by name; it never panics.
    #[test]
    fn arbitrary_templates_render_or_are_refused(text in "[{}A-Z_ a-z\"\\\\]{0,40}") {
        let story = ready(&config_map(&json!({ "a": text })), &json!({}));
        let written = works(&story.world.observed, &story);
        let refused = story.world.observed.instances.get(&cluster("a1")).unwrap().status.condition("Configured").is_some_and(|condition| condition.status == "False");
        prop_assert!(written.len() == 1 || refused);
    }
}

#[test]
fn rule_3_a_work_that_carries_only_a_version_proves_the_version_kinds() {
    for (label, deploy, shown) in
        [("v2", "", "settled"), ("v1", "", "installing"), ("v2", " deploy=default/d", "not proven")]
    {
        let mut story = Story::new();
        story.run(&format!(
            "config A v2
            deploy default/d X=1
            place prod: a1
            rollout prod config=A{deploy}
            pass 3"
        ));
        let labelled = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": { "name": "theirs", "namespace": "a1", "uid": "w", "generation": 1,
                "labels": { "open-cluster-management.io/addon-name": "helloworld", "addon-version": label } },
            "spec": {},
        });
        let (_, work) = normalise::work(&serde_json::from_value(labelled).unwrap()).unwrap();
        story.world.put_work(&cluster("a1"), work);
        story.world.acknowledge(&cluster("a1"), &Seen::Yes, &Seen::Yes);
        story.pass();
        story.run("show all");
        assert!(story.told.contains(shown), "{label}{deploy}: {}", story.told);
    }
}

#[test]
fn h1_variables_cannot_make_a_template_larger_than_a_work_or_than_an_add_on_may_be() {
    let template = |manifests: Vec<Value>| {
        json!({
            "metadata": { "name": "tpl", "generation": 1 },
            "spec": { "addonName": "helloworld", "version": "v1", "agentSpec": { "workload": { "manifests": manifests } } },
        })
    };
    let config_map = |name: String, text: String| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default" }, "data": { "text": text } });
    let long = "x".repeat(4096);
    let few_large = (0..12).map(|i| config_map(format!("m{i}"), "{{V}}".repeat(20_000))).collect();
    let many_small = (0..400).map(|i| config_map(format!("m{i}"), "{{V}}".repeat(90))).collect();
    for (manifests, why) in [
        (few_large, "ConfigMap default/m0 has more than 400 KiB once it is rendered"),
        (many_small, "its manifests have more than 12800 KiB in total once they are rendered"),
    ] {
        let mut story = Story::new();
        story.put_template(&template(manifests));
        story.run(&format!(
            "deploy default/d V={long}\n place prod: a1\n rollout prod deploy=default/d\n settle\n show a1"
        ));
        assert!(
            story.told.contains(&format!("InstallFailed: install failed: template tpl: {why}")),
            "{}",
            story.told
        );
    }
}

/// What a deployment config adds is added to every container, and a container may be two bytes.
#[test]
fn h1_what_is_added_to_containers_cannot_make_a_manifest_larger_than_a_work() {
    let deployment = |containers: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "agent", "namespace": "default" },
            "spec": { "template": { "spec": { "containers": containers } } },
        })
    };
    let subjects = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "agent", "namespace": "default" },
        "roleRef": {}, "subjects": vec![json!({}); 10_000],
    });
    let long = "x".repeat(500_000);
    let empty = || deployment(json!(vec![json!({}); 59_000]));
    let images = deployment(json!(vec![json!({ "image": "a" }); 10_000]));
    let large = "has more than 400 KiB";
    let dense = "has more than 60000 values or 12000 maps";
    for (manifest, config, why) in [
        (empty(), json!({ "proxyConfig": { "httpProxy": long } }), large),
        (empty(), json!({ "proxyConfig": { "httpProxy": "a", "httpsProxy": "b", "noProxy": "c" } }), dense),
        (empty(), json!({ "resourceRequirements": [{ "containerID": "*:*:*", "resources": {} }] }), dense),
        (
            empty(),
            json!({ "resourceRequirements": [{ "containerID": "*:*:*", "resources": { "a": long } }] }),
            large,
        ),
        (images, json!({ "registries": [{ "source": "a", "mirror": long }] }), large),
        (subjects, json!({ "agentInstallNamespace": "x".repeat(5000) }), large),
    ] {
        let mut story = ready(&json!([manifest]), &config);
        story.run("settle\n show a1");
        assert!(story.told.contains(why), "{why}: {:.300}", story.told);
        assert!(story.world.observed.works.is_empty());
    }
    // What fits is rendered as before.
    let manifest = deployment(json!(vec![json!({ "name": "a" }); 1000]));
    let config = json!({ "proxyConfig": { "httpProxy": "a" } });
    assert_eq!(rendered(&json!([manifest]), &config).len(), 1);
}

/// The kinds that a template defines are worked out before its manifests are counted.
#[test]
fn h1_many_definitions_with_long_groups_are_too_large() {
    let definition = |number: usize| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": format!("c{number}") },
            "spec": { "group": "{{V}}" },
        })
    };
    let manifests: Vec<Value> = (0..3000).map(definition).collect();
    let config = json!({ "customizedVariables": [{ "name": "V", "value": "x".repeat(390_000) }] });
    let mut story = ready(&json!(manifests), &config);
    story.run("settle\n show a1");
    assert!(story.told.contains("its manifests have more than 12800 KiB in total"), "{:.300}", story.told);
}

#[test]
fn h12_a_foreign_work_with_the_label_of_the_add_on_is_neither_deleted_nor_overwritten() {
    let mut story = Story::new();
    story.run("template v1\n place prod: a1 a2\n rollout prod\n settle");
    for (at, name) in [("a1", "addon-helloworld-deploy-7"), ("a2", "addon-helloworld-deploy-0")] {
        let foreign = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": { "name": name, "namespace": at, "uid": "foreign", "generation": 1,
                "labels": { "open-cluster-management.io/addon-name": "helloworld" } },
            "spec": { "workload": { "manifests": [{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "theirs" } }] } },
        });
        let (_, work) = normalise::work(&serde_json::from_value(foreign).unwrap()).unwrap();
        let mut works = story.world.observed.works.get_mut(&cluster(at)).unwrap();
        works.retain(|known| *known.name != *name);
        works.push(work);
    }
    let mut first = Story::new();
    first.run("template v1\n clusters a1");
    let foreign = story.world.observed.works.get(&cluster("a1")).unwrap()[1].clone();
    first.world.put_work(&cluster("a1"), foreign);
    first.run("place prod: a1\n rollout prod\n settle\n show works\n show status");
    assert!(first.told.contains("1/1 install completed"), "{}", first.told);
    story.run("settle\n show works\n show clusters\n show a2");
    expect![[r#"
        a1  addon-helloworld-deploy-0 generation 1 version v1
        a1  addon-helloworld-deploy-7 generation 1 version -
        a2  addon-helloworld-deploy-0 generation 1 version -
        a2               failed    v1       failed: work addon-helloworld-deploy-0 exists and has another owner: delete or rename it
        a2  version desired v1 current unknown last -
        a2  Progressing False UpgradeFailed: upgrade failed: work addon-helloworld-deploy-0 exists and has another owner: delete or rename it
        a2  Configured True ConfigurationsConfigured: all configurations are resolved
        a2  Available True WorksAvailable: all works are available
    "#]].assert_eq(&story.told);
}
