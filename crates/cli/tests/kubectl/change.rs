//! Changing existing objects: patches, edits, labels, replacements.

use expect_test::expect;

use crate::harness::{Hub, hub};

const INSTANCE: &str = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {name: helloworld, namespace: default}
spec: {installNamespace: agents}
";

fn with_objects(name: &str) -> Hub {
    let hub = hub(name).file("instance.yaml", INSTANCE);
    hub.given("create -f instance.yaml\n create configmap one --from-literal=a=b");
    hub
}

#[test]
fn objects_are_patched_in_three_ways() {
    let hub = with_objects("patch");
    hub.check(
        r#"
        patch mca helloworld --type merge -p '{"spec":{"installNamespace":"merged"}}'
        patch mca helloworld --type merge -p '{"spec":{"installNamespace":"merged"}}'
        patch mca helloworld --type json -p '[{"op":"test","path":"/spec/installNamespace","value":"merged"},{"op":"replace","path":"/spec/installNamespace","value":"replaced"}]'
        get mca helloworld -o 'jsonpath={.metadata.generation} {.spec}'
        patch configmap one -p '{"data":{"c":"d","a":null}}'
        patch configmap one --type strategic -p '{"metadata":{"finalizers":["example.com/one"]}}'
        patch configmap one --type strategic -p '{"metadata":{"finalizers":["example.com/two"]}}'
        patch configmap one --type strategic -p '{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/one","example.com/two"]}}'
        get configmap one -o 'jsonpath={.data} {.metadata.finalizers}'
        patch configmap one --dry-run=client -p '{"data":{"never":"stored"}}' -o 'jsonpath={.data}'
        "#,
        &expect![[r#"
            $ kubectl patch mca helloworld --type merge -p '{"spec":{"installNamespace":"merged"}}'
            managedclusteraddon.addon.open-cluster-management.io/helloworld patched

            $ kubectl patch mca helloworld --type merge -p '{"spec":{"installNamespace":"merged"}}'
            managedclusteraddon.addon.open-cluster-management.io/helloworld patched (no change)

            $ kubectl patch mca helloworld --type json -p '[{"op":"test","path":"/spec/installNamespace","value":"merged"},{"op":"replace","path":"/spec/installNamespace","value":"replaced"}]'
            managedclusteraddon.addon.open-cluster-management.io/helloworld patched

            $ kubectl get mca helloworld -o 'jsonpath={.metadata.generation} {.spec}'
            3 {"installNamespace":"replaced"}

            $ kubectl patch configmap one -p '{"data":{"c":"d","a":null}}'
            configmap/one patched

            $ kubectl patch configmap one --type strategic -p '{"metadata":{"finalizers":["example.com/one"]}}'
            configmap/one patched

            $ kubectl patch configmap one --type strategic -p '{"metadata":{"finalizers":["example.com/two"]}}'
            configmap/one patched

            $ kubectl patch configmap one --type strategic -p '{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/one","example.com/two"]}}'
            configmap/one patched

            $ kubectl get configmap one -o 'jsonpath={.data} {.metadata.finalizers}'
            {"c":"d"}

            $ kubectl patch configmap one --dry-run=client -p '{"data":{"never":"stored"}}' -o 'jsonpath={.data}'
            {"c":"d","never":"stored"}
        "#]],
    );
    hub.refuses(
        r#"patch mca helloworld --type json -p '[{"op":"test","path":"/spec/installNamespace","value":"other"}]'"#,
        &["The request is invalid"],
    );
    // As on any API server, only built-in kinds support strategic patches.
    hub.refuses(
        r#"patch mca helloworld --type strategic -p '{"spec":{}}'"#,
        &["accepted media types include: application/json-patch+json, application/merge-patch+json"],
    );
    if hub.kubectl_is_at_least(24) {
        hub.check(
            r#"
            patch mca helloworld --subresource=status --type merge -p '{"spec":{"installNamespace":"ignored"},"status":{"namespace":"agents"}}'
            get mca helloworld --subresource=status -o 'jsonpath={.spec} {.status}'
            "#,
            &expect![[r#"
                $ kubectl patch mca helloworld --subresource=status --type merge -p '{"spec":{"installNamespace":"ignored"},"status":{"namespace":"agents"}}'
                managedclusteraddon.addon.open-cluster-management.io/helloworld patched

                $ kubectl get mca helloworld --subresource=status -o 'jsonpath={.spec} {.status}'
                {"installNamespace":"replaced"} {"namespace":"agents"}
            "#]],
        );
    }
    hub.stop();
}

#[test]
fn objects_are_edited() {
    let hub = with_objects("edit");
    let edit = |editor: &str, what: &str| {
        let output = hub.command(&format!("edit {what}")).env("EDITOR", editor).output().unwrap();
        let told = crate::transcript::told(&format!("EDITOR='{editor}' kubectl edit {what}"), &output);
        hub.masked(&told)
    };
    let told = [
        edit("sed -i s/agents/edited/", "mca helloworld"),
        edit("sed -i s/a:.b$/a:\\ c/", "configmap one"),
        edit("true", "configmap one"),
        hub.run("get mca,configmap -o 'jsonpath={.items[*].spec} {.items[*].data}'"),
    ];
    expect![[r#"
        $ EDITOR='sed -i s/agents/edited/' kubectl edit mca helloworld
        managedclusteraddon.addon.open-cluster-management.io/helloworld edited

        $ EDITOR='sed -i s/a:.b$/a:\ c/' kubectl edit configmap one
        configmap/one edited

        $ EDITOR='true' kubectl edit configmap one
        ! Edit cancelled, no changes made.

        $ kubectl get mca,configmap -o 'jsonpath={.items[*].spec} {.items[*].data}'
        {"installNamespace":"edited"} {"a":"c"}
    "#]]
    .assert_eq(&told.join("\n"));
    hub.stop();
}

#[test]
fn objects_are_labelled_and_annotated() {
    let hub = with_objects("label");
    hub.check(
        "
        label mca helloworld stage=canary
        label mca helloworld stage=prod
        label mca helloworld stage=prod --overwrite
        annotate mca helloworld 'example.com/note=a longer note'
        get mca helloworld -o 'jsonpath={.metadata.labels} {.metadata.annotations} {.metadata.generation}'
        label configmaps --all team=blue
        get configmaps -l team=blue -o name
        annotate mca helloworld example.com/note-
        ",
        &expect![[r#"
            $ kubectl label mca helloworld stage=canary
            managedclusteraddon.addon.open-cluster-management.io/helloworld labeled

            $ kubectl label mca helloworld stage=prod
            ! error: 'stage' already has a value (canary), and --overwrite is false
            exit 1

            $ kubectl label mca helloworld stage=prod --overwrite
            managedclusteraddon.addon.open-cluster-management.io/helloworld labeled

            $ kubectl annotate mca helloworld 'example.com/note=a longer note'
            managedclusteraddon.addon.open-cluster-management.io/helloworld annotated

            $ kubectl get mca helloworld -o 'jsonpath={.metadata.labels} {.metadata.annotations} {.metadata.generation}'
            {"stage":"prod"} {"example.com/note":"a longer note"} 1

            $ kubectl label configmaps --all team=blue
            configmap/one labeled

            $ kubectl get configmaps -l team=blue -o name
            configmap/one

            $ kubectl annotate mca helloworld example.com/note-
            managedclusteraddon.addon.open-cluster-management.io/helloworld annotated
        "#]],
    );
    hub.given("label mca helloworld stage-");
    hub.check(
        "get mca helloworld -o 'jsonpath={.metadata.labels}{.metadata.annotations}'",
        &expect![[r#"
        $ kubectl get mca helloworld -o 'jsonpath={.metadata.labels}{.metadata.annotations}'
    "#]],
    );
    hub.stop();
}

#[test]
fn a_replacement_must_be_of_the_latest_version() {
    let hub = with_objects("replace");
    let seen = hub.output("get configmap one -o yaml", b"").stdout;
    let seen = String::from_utf8(seen).unwrap();
    let fresh: Vec<&str> = seen.lines().filter(|line| !line.contains("resourceVersion:")).collect();
    let hub = hub
        .file("stale.yaml", &seen)
        .file("fresh.yaml", &fresh.join("\n").replace("a: b", "a: new"))
        .file("instance.yaml", &INSTANCE.replace("agents", "replaced"));
    hub.check(
        "
        annotate configmap one example.com/came=between
        replace -f stale.yaml
        replace -f fresh.yaml
        get configmap one -o 'jsonpath={.data} {.metadata.annotations}'
        replace -f instance.yaml
        get mca helloworld -o 'jsonpath={.metadata.generation} {.spec}'
        replace --force -f instance.yaml
        get mca helloworld -o 'jsonpath={.metadata.generation}'
        ",
        &expect![[r#"
            $ kubectl annotate configmap one example.com/came=between
            configmap/one annotated

            $ kubectl replace -f stale.yaml
            ! Error from server (Conflict): error when replacing "stale.yaml": Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes to the latest version and try again
            exit 1

            $ kubectl replace -f fresh.yaml
            configmap/one replaced

            $ kubectl get configmap one -o 'jsonpath={.data} {.metadata.annotations}'
            {"a":"new"}

            $ kubectl replace -f instance.yaml
            managedclusteraddon.addon.open-cluster-management.io/helloworld replaced

            $ kubectl get mca helloworld -o 'jsonpath={.metadata.generation} {.spec}'
            2 {"installNamespace":"replaced"}

            $ kubectl replace --force -f instance.yaml
            managedclusteraddon.addon.open-cluster-management.io "helloworld" deleted
            managedclusteraddon.addon.open-cluster-management.io/helloworld replaced

            $ kubectl get mca helloworld -o 'jsonpath={.metadata.generation}'
            1
        "#]],
    );
    hub.stop();
}
