//! Creating and applying.

use expect_test::expect;

use crate::harness::hub;

fn configmap(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{team: blue}}}}\ndata: {{key: {value}}}\n"
    )
}

#[test]
fn apply_says_created_then_unchanged_then_configured() {
    let hub = hub("apply").with_canary();
    hub.given("create namespace open-cluster-management");
    hub.check(
        "apply -f canary\n apply -f canary",
        &expect![[r#"
        $ kubectl apply -f canary
        clustermanagementaddon.addon.open-cluster-management.io/helloworld created
        addonhubconfig.addon.open-cluster-management.io/hub-config-xxx created
        addonhubconfig.addon.open-cluster-management.io/hub-config-yyy created
        addondeploymentconfig.addon.open-cluster-management.io/helloworld created
        placement.cluster.open-cluster-management.io/aws-placement created
        placement.cluster.open-cluster-management.io/canary-placement created
        addontemplate.addon.open-cluster-management.io/helloworld-v0.10.0 created
        addontemplate.addon.open-cluster-management.io/helloworld-v0.11.0 created

        $ kubectl apply -f canary
        clustermanagementaddon.addon.open-cluster-management.io/helloworld unchanged
        addonhubconfig.addon.open-cluster-management.io/hub-config-xxx unchanged
        addonhubconfig.addon.open-cluster-management.io/hub-config-yyy unchanged
        addondeploymentconfig.addon.open-cluster-management.io/helloworld unchanged
        placement.cluster.open-cluster-management.io/aws-placement unchanged
        placement.cluster.open-cluster-management.io/canary-placement unchanged
        addontemplate.addon.open-cluster-management.io/helloworld-v0.10.0 unchanged
        addontemplate.addon.open-cluster-management.io/helloworld-v0.11.0 unchanged
    "#]],
    );
    let hub = hub.file("configs/plain.yaml", &configmap("plain", "one"));
    hub.check(
        "apply -f configs\n apply -f configs",
        &expect![[r#"
        $ kubectl apply -f configs
        configmap/plain created

        $ kubectl apply -f configs
        configmap/plain unchanged
    "#]],
    );
    let addon = std::fs::read_to_string(hub.desk.path("canary/addon.yaml")).unwrap();
    let hub = hub
        .file("canary/addon.yaml", &addon.replace("25%", "50%"))
        .file("configs/plain.yaml", &configmap("plain", "two"));
    // The text around a difference depends on the version of kubectl.
    hub.refuses("diff -f configs", &["v1.ConfigMap.default.plain", "-  key: one\n+  key: two\n"]);
    hub.check(
        "
        apply -f canary -f configs --dry-run=server
        get cma helloworld -o 'jsonpath={.metadata.generation}'
        apply -f canary -f configs
        get cma helloworld -o 'jsonpath={.metadata.generation} {.spec.installStrategy.placements[*].rolloutStrategy..maxConcurrentlyUpdating}'
        get configmap plain -o 'jsonpath={.data}'
        diff -f canary -f configs
        apply view-last-applied configmap plain
        ",
        &expect![[r#"
            $ kubectl apply -f canary -f configs --dry-run=server
            clustermanagementaddon.addon.open-cluster-management.io/helloworld configured (server dry run)
            addonhubconfig.addon.open-cluster-management.io/hub-config-xxx unchanged (server dry run)
            addonhubconfig.addon.open-cluster-management.io/hub-config-yyy unchanged (server dry run)
            addondeploymentconfig.addon.open-cluster-management.io/helloworld unchanged (server dry run)
            placement.cluster.open-cluster-management.io/aws-placement unchanged (server dry run)
            placement.cluster.open-cluster-management.io/canary-placement unchanged (server dry run)
            addontemplate.addon.open-cluster-management.io/helloworld-v0.10.0 unchanged (server dry run)
            addontemplate.addon.open-cluster-management.io/helloworld-v0.11.0 unchanged (server dry run)
            configmap/plain configured (server dry run)

            $ kubectl get cma helloworld -o 'jsonpath={.metadata.generation}'
            1

            $ kubectl apply -f canary -f configs
            clustermanagementaddon.addon.open-cluster-management.io/helloworld configured
            addonhubconfig.addon.open-cluster-management.io/hub-config-xxx unchanged
            addonhubconfig.addon.open-cluster-management.io/hub-config-yyy unchanged
            addondeploymentconfig.addon.open-cluster-management.io/helloworld unchanged
            placement.cluster.open-cluster-management.io/aws-placement unchanged
            placement.cluster.open-cluster-management.io/canary-placement unchanged
            addontemplate.addon.open-cluster-management.io/helloworld-v0.10.0 unchanged
            addontemplate.addon.open-cluster-management.io/helloworld-v0.11.0 unchanged
            configmap/plain configured

            $ kubectl get cma helloworld -o 'jsonpath={.metadata.generation} {.spec.installStrategy.placements[*].rolloutStrategy..maxConcurrentlyUpdating}'
            2 50% 50%

            $ kubectl get configmap plain -o 'jsonpath={.data}'
            {"key":"two"}

            $ kubectl diff -f canary -f configs

            $ kubectl apply view-last-applied configmap plain
            apiVersion: v1
            data:
              key: two
            kind: ConfigMap
            metadata:
              annotations: {}
              labels:
                team: blue
              name: plain
              namespace: default
        "#]],
    );
    hub.stop();
}

#[test]
fn fields_that_are_no_longer_applied_go_and_others_stay() {
    let hub = hub("apply-merge")
        .file(
            "one.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {mine: a, gone: b}\n",
        )
        .file("two.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {mine: c}\n");
    hub.given(
        "
        apply -f one.yaml
        patch configmap one --type merge -p '{\"data\":{\"theirs\":\"d\"}}'
        ",
    );
    hub.check(
        "apply -f two.yaml\n get configmap one -o 'jsonpath={.data}'",
        &expect![[r#"
        $ kubectl apply -f two.yaml
        configmap/one configured

        $ kubectl get configmap one -o 'jsonpath={.data}'
        {"mine":"c","theirs":"d"}
    "#]],
    );
    hub.stop();
}

#[test]
fn server_side_apply_tells_who_owns_a_field() {
    let hub = hub("server-side")
        .file("mine.yaml", &configmap("shared", "one"))
        .file("theirs.yaml", &configmap("shared", "two"));
    hub.check(
        "
        apply --server-side -f mine.yaml
        apply --server-side -f mine.yaml
        ",
        &expect![[r#"
            $ kubectl apply --server-side -f mine.yaml
            configmap/shared serverside-applied

            $ kubectl apply --server-side -f mine.yaml
            configmap/shared serverside-applied
        "#]],
    );
    hub.refuses(
        "apply --server-side --field-manager=other -f theirs.yaml",
        &["Apply failed with 1 conflict: conflict with \"kubectl\": .data.key"],
    );
    hub.check(
        "
        get configmap shared -o 'jsonpath={.data}'
        apply --server-side --field-manager=other --force-conflicts -f theirs.yaml
        get configmap shared -o 'jsonpath={.data}'
        ",
        &expect![[r#"
            $ kubectl get configmap shared -o 'jsonpath={.data}'
            {"key":"one"}

            $ kubectl apply --server-side --field-manager=other --force-conflicts -f theirs.yaml
            configmap/shared serverside-applied

            $ kubectl get configmap shared -o 'jsonpath={.data}'
            {"key":"two"}
        "#]],
    );
    hub.stop();
}

#[test]
fn a_kustomization_is_applied() {
    let hub = hub("kustomize").file("base/config.yaml", &configmap("plain", "one")).file(
        "base/kustomization.yaml",
        "namePrefix: blue-\nnamespace: default\nresources: [config.yaml]\nconfigMapGenerator:\n- {name: made, literals: [a=b]}\ngeneratorOptions: {disableNameSuffixHash: true}\n",
    );
    hub.check(
        "
        kustomize base | apply -f -
        apply -k base
        get -k base -o name
        delete -k base
        ",
        &expect![[r#"
            $ kubectl kustomize base | kubectl apply -f -
            configmap/blue-made created
            configmap/blue-plain created

            $ kubectl apply -k base
            configmap/blue-made unchanged
            configmap/blue-plain unchanged

            $ kubectl get -k base -o name
            configmap/blue-made
            configmap/blue-plain

            $ kubectl delete -k base
            configmap "blue-made" deleted
            configmap "blue-plain" deleted
        "#]],
    );
    hub.stop();
}

#[test]
fn what_is_no_longer_applied_is_pruned() {
    let hub = hub("prune").file("all/a.yaml", &configmap("a", "x")).file("all/b.yaml", &configmap("b", "x"));
    hub.given("apply -f all");
    std::fs::remove_file(hub.desk.path("all/b.yaml")).unwrap();
    // Without a list, kubectl looks for pods and other kinds that are not served.
    let list = if hub.kubectl_is_at_least(26) { "--prune-allowlist" } else { "--prune-whitelist" };
    let told = hub.run(&format!("-n default apply -f all --prune -l team=blue {list}=core/v1/ConfigMap"));
    assert!(told.contains("\nconfigmap/a unchanged\nconfigmap/b pruned\n"), "{told}");
    hub.check(
        "get configmaps -o name",
        &expect![[r#"
        $ kubectl get configmaps -o name
        configmap/a
    "#]],
    );
    hub.stop();
}

#[test]
fn built_in_kinds_are_created_by_their_commands() {
    let hub = hub("create").file("note.txt", "a note\n");
    hub.check(
        "
        create namespace c1
        -n c1 create configmap settings --from-literal=a=b --from-file=note.txt
        -n c1 create secret generic password --from-literal=password=secret
        -n c1 create secret docker-registry pull --docker-server=example.com --docker-username=u --docker-password=p
        -n c1 create serviceaccount agent
        -n c1 create role reader --verb=get --resource=configmaps
        -n c1 create configmap settings --dry-run=client -o name
        -n c1 create configmap other --dry-run=server -o name
        -n c1 get configmaps,secrets,serviceaccounts
        -n c1 get configmap settings -o 'jsonpath={.data}'
        -n c1 get secret password -o 'jsonpath={.type} {.data.password}'
        get namespace c1 -o 'jsonpath={.metadata.labels} {.status.phase}'
        ",
        &expect![[r#"
            $ kubectl create namespace c1
            namespace/c1 created

            $ kubectl -n c1 create configmap settings --from-literal=a=b --from-file=note.txt
            configmap/settings created

            $ kubectl -n c1 create secret generic password --from-literal=password=secret
            secret/password created

            $ kubectl -n c1 create secret docker-registry pull --docker-server=example.com --docker-username=u --docker-password=p
            secret/pull created

            $ kubectl -n c1 create serviceaccount agent
            serviceaccount/agent created

            $ kubectl -n c1 create role reader --verb=get --resource=configmaps
            role.rbac.authorization.k8s.io/reader created
            ! Warning: this hub stores RBAC objects and does not enforce them

            $ kubectl -n c1 create configmap settings --dry-run=client -o name
            configmap/settings

            $ kubectl -n c1 create configmap other --dry-run=server -o name
            configmap/other

            $ kubectl -n c1 get configmaps,secrets,serviceaccounts
            NAME                 DATA   AGE
            configmap/settings   2      AGE

            NAME              TYPE                             DATA   AGE
            secret/password   Opaque                           1      AGE
            secret/pull       kubernetes.io/dockerconfigjson   1      AGE

            NAME                   AGE
            serviceaccount/agent   AGE

            $ kubectl -n c1 get configmap settings -o 'jsonpath={.data}'
            {"a":"b","note.txt":"a note\n"}

            $ kubectl -n c1 get secret password -o 'jsonpath={.type} {.data.password}'
            Opaque c2VjcmV0

            $ kubectl get namespace c1 -o 'jsonpath={.metadata.labels} {.status.phase}'
            {"kubernetes.io/metadata.name":"c1"} Active
        "#]],
    );
    hub.refuses("-n c1 create configmap settings", &["configmaps \"settings\" already exists"]);
    hub.refuses("-n c9 create configmap settings", &["namespaces \"c9\" not found"]);
    hub.stop();
}

#[test]
fn a_new_kind_is_served_at_once() {
    let hub = hub("new-kind")
        .file(
            "crd.yaml",
            "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: birds.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: birds, singular: bird, kind: Bird, listKind: BirdList, shortNames: [bd]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Wings, type: integer, jsonPath: .spec.wings}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              wings: {type: integer, minimum: 0, default: 2}
",
        )
        .file("bird.yaml", "apiVersion: example.com/v1\nkind: Bird\nmetadata: {name: tit}\nspec: {}\n");
    hub.check(
        "
        apply -f crd.yaml
        wait --for=condition=Established crd/birds.example.com --timeout=30s
        apply -f bird.yaml
        get birds
        get bd tit -o 'jsonpath={.spec}'
        delete crd birds.example.com
        ",
        &expect![[r#"
            $ kubectl apply -f crd.yaml
            customresourcedefinition.apiextensions.k8s.io/birds.example.com created

            $ kubectl wait --for=condition=Established crd/birds.example.com --timeout=30s
            customresourcedefinition.apiextensions.k8s.io/birds.example.com condition met

            $ kubectl apply -f bird.yaml
            bird.example.com/tit created

            $ kubectl get birds
            NAME   WINGS
            tit    2

            $ kubectl get bd tit -o 'jsonpath={.spec}'
            {"wings":2}

            $ kubectl delete crd birds.example.com
            customresourcedefinition.apiextensions.k8s.io "birds.example.com" deleted
        "#]],
    );
    hub.refuses("get birds", &["the server "]);
    hub.stop();
}
