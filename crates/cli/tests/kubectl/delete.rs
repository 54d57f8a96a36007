//! Deleting: by name, label and file, with finalizers, and namespaces with their contents.

use expect_test::expect;

use crate::harness::hub;

#[test]
fn objects_are_deleted_by_name_label_and_file() {
    let hub = hub("delete").with_canary();
    hub.given(
        "
        create namespace open-cluster-management
        apply -f canary
        create configmap a
        create configmap b
        create configmap c
        create configmap d
        label configmap b c team=blue
        ",
    );
    hub.check(
        "
        delete configmap a
        delete configmap a
        delete configmap a --ignore-not-found
        delete configmaps -l team=blue
        delete configmap d --dry-run=server
        get configmaps -o name
        delete configmaps --all --wait=false
        delete -f canary --wait
        get cma,placements,addontemplates -A
        ",
        &expect![[r#"
            $ kubectl delete configmap a
            configmap "a" deleted

            $ kubectl delete configmap a
            ! Error from server (NotFound): configmaps "a" not found
            exit 1

            $ kubectl delete configmap a --ignore-not-found

            $ kubectl delete configmaps -l team=blue
            configmap "b" deleted
            configmap "c" deleted

            $ kubectl delete configmap d --dry-run=server
            configmap "d" deleted (server dry run)

            $ kubectl get configmaps -o name
            configmap/d

            $ kubectl delete configmaps --all --wait=false
            configmap "d" deleted

            $ kubectl delete -f canary --wait
            clustermanagementaddon.addon.open-cluster-management.io "helloworld" deleted
            addonhubconfig.addon.open-cluster-management.io "hub-config-xxx" deleted
            addonhubconfig.addon.open-cluster-management.io "hub-config-yyy" deleted
            addondeploymentconfig.addon.open-cluster-management.io "helloworld" deleted
            placement.cluster.open-cluster-management.io "aws-placement" deleted
            placement.cluster.open-cluster-management.io "canary-placement" deleted
            addontemplate.addon.open-cluster-management.io "helloworld-v0.10.0" deleted
            addontemplate.addon.open-cluster-management.io "helloworld-v0.11.0" deleted

            $ kubectl get cma,placements,addontemplates -A
            ! No resources found
        "#]],
    );
    hub.stop();
}

#[test]
fn a_finalizer_holds_an_object_until_it_is_taken_away() {
    let hub = hub("finalizer").file(
        "held.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/held]}\n",
    );
    hub.given("create -f held.yaml");
    let delete = hub.beside("delete configmap held --timeout=60s");
    let said = delete.line();
    assert!(said.starts_with("configmap \"held\" deleted"), "{said}");
    hub.check(
        r#"
        get configmap held -o 'jsonpath={.metadata.deletionTimestamp} {.metadata.finalizers}'
        patch configmap held --type merge -p '{"metadata":{"finalizers":["example.com/held","example.com/late"]}}'
        patch configmap held --type merge -p '{"metadata":{"finalizers":null}}'
        get configmap held
        "#,
        &expect![[r#"
            $ kubectl get configmap held -o 'jsonpath={.metadata.deletionTimestamp} {.metadata.finalizers}'
            TIME ["example.com/held"]

            $ kubectl patch configmap held --type merge -p '{"metadata":{"finalizers":["example.com/held","example.com/late"]}}'
            ! The ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ["example.com/late"]
            exit 1

            $ kubectl patch configmap held --type merge -p '{"metadata":{"finalizers":null}}'
            configmap/held patched

            $ kubectl get configmap held
            ! Error from server (NotFound): configmaps "held" not found
            exit 1
        "#]],
    );
    assert_eq!(delete.rest(), (String::new(), Some(0)));
    hub.stop();
}

#[test]
fn dependents_go_with_their_owner() {
    let hub = hub("owners");
    hub.given("create configmap owner");
    let uid = hub.json("get configmap owner -o json")["metadata"]["uid"].as_str().unwrap().to_owned();
    let hub = hub.file(
        "owned.yaml",
        &format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: owned\n  ownerReferences:\n  - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}\n"
        ),
    );
    hub.given("create -f owned.yaml");
    // The owner is deleted last, and kubectl waits for it.
    hub.check(
        "delete configmap owner --cascade=foreground\n get configmaps",
        &expect![[r#"
        $ kubectl delete configmap owner --cascade=foreground
        configmap "owner" deleted

        $ kubectl get configmaps
        ! No resources found in default namespace.
    "#]],
    );
    hub.stop();
}

#[test]
fn a_namespace_goes_with_all_that_is_in_it() {
    let hub = hub("namespace").file(
        "all.yaml",
        "\
apiVersion: v1
kind: Namespace
metadata: {name: c1}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {name: helloworld, namespace: c1}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden, namespace: c1}
stringData: {a: b}
",
    );
    hub.given("apply -f all.yaml");
    hub.check(
        "
        delete namespace c1
        get namespace c1
        -n c1 get mca,secrets
        delete namespace default
        ",
        &expect![[r#"
            $ kubectl delete namespace c1
            namespace "c1" deleted

            $ kubectl get namespace c1
            ! Error from server (NotFound): namespaces "c1" not found
            exit 1

            $ kubectl -n c1 get mca,secrets
            ! No resources found in c1 namespace.

            $ kubectl delete namespace default
            ! Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted
            exit 1
        "#]],
    );
    hub.stop();
}
