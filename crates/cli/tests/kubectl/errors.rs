//! The messages of kubectl when the hub rejects a request.

use expect_test::expect;

use crate::harness::hub;

const INVALID: &str = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: bad}
spec:
  installStrategy:
    type: Sometimes
    placements:
    - {name: aws, namespace: default, rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxConcurrentlyUpdating: many}}}
";

const UNKNOWN_FIELD: &str = "\
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: bad}
spec: {instalStrategy: {type: Manual}}
";

#[test]
fn an_invalid_object_is_refused_with_every_cause() {
    let hub = hub("invalid").file("invalid.yaml", INVALID);
    hub.check(
        "
        apply -f invalid.yaml
        create -f invalid.yaml --validate=false
        get cma bad
        ",
        &expect![[r#"
            $ kubectl apply -f invalid.yaml
            ! The ClusterManagementAddOn "bad" is invalid:
            ! * spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating: Invalid value: "many": spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating in body should match '^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})$'
            ! * spec.installStrategy.type: Unsupported value: "Sometimes": supported values: "Manual", "ClusterLabelSelector", "Placements"
            ! * <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
            exit 1

            $ kubectl create -f invalid.yaml --validate=false
            ! The ClusterManagementAddOn "bad" is invalid:
            ! * spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating: Invalid value: "many": spec.installStrategy.placements[0].rolloutStrategy.rollingUpdate.maxConcurrentlyUpdating in body should match '^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})$'
            ! * spec.installStrategy.type: Unsupported value: "Sometimes": supported values: "Manual", "ClusterLabelSelector", "Placements"
            ! * <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
            exit 1

            $ kubectl get cma bad
            ! Error from server (NotFound): clustermanagementaddons.addon.open-cluster-management.io "bad" not found
            exit 1
        "#]],
    );
    hub.stop();
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    let hub = hub("unknown-field")
        .file("unknown.yaml", UNKNOWN_FIELD)
        .file("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndatum: {a: b}\n");
    // Up to 1.24 the client checks the schemas, later the server.
    hub.refuses("apply -f unknown.yaml", &["unknown field", "instalStrategy"]);
    hub.refuses("apply -f config.yaml", &["unknown field", "datum"]);
    // Old clients do not tell the server to skip validation, and get a warning.
    hub.given("apply -f unknown.yaml --validate=false");
    hub.check(
        "get cma bad -o 'jsonpath={.spec}'",
        &expect![[r#"
        $ kubectl get cma bad -o 'jsonpath={.spec}'
        {}
    "#]],
    );
    hub.stop();
}

#[test]
fn names_kinds_and_conflicts_are_told_apart() {
    let hub = hub("errors")
        .file("name.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n")
        .file("taken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken}\n")
        .file("kind.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: none}\n")
        .file("type.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: 1}\n")
        .file("place.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: nowhere}\n");
    hub.given("create -f taken.yaml");
    hub.check(
        r#"
        create -f name.yaml
        create -f taken.yaml
        create -f type.yaml --validate=false
        create -f place.yaml
        patch configmap taken --type merge -p '{"metadata":{"resourceVersion":"1"}}'
        get cma nothing
        get pods
        get --raw /nothing
        get configmaps -l 'a b'
        "#,
        &expect![[r#"
            $ kubectl create -f name.yaml
            ! The ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            exit 1

            $ kubectl create -f taken.yaml
            ! Error from server (AlreadyExists): error when creating "taken.yaml": configmaps "taken" already exists
            exit 1

            $ kubectl create -f type.yaml --validate=false
            ! Error from server (BadRequest): error when creating "type.yaml": ConfigMap in version "v1" cannot be handled as a ConfigMap: ConfigMap.data.a: Invalid value: "integer": data.a in body must be of type string: "integer"
            exit 1

            $ kubectl create -f place.yaml
            ! Error from server (NotFound): error when creating "place.yaml": namespaces "nowhere" not found
            exit 1

            $ kubectl patch configmap taken --type merge -p '{"metadata":{"resourceVersion":"RV"}}'
            ! Error from server (Conflict): Operation cannot be fulfilled on configmaps "taken": the object has been modified; please apply your changes to the latest version and try again
            exit 1

            $ kubectl get cma nothing
            ! Error from server (NotFound): clustermanagementaddons.addon.open-cluster-management.io "nothing" not found
            exit 1

            $ kubectl get pods
            ! error: the server doesn't have a resource type "pods"
            exit 1

            $ kubectl get --raw /nothing
            ! Error from server (NotFound): the server could not find the requested resource
            exit 1

            $ kubectl get configmaps -l 'a b'
            ! Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "a b", field selector "": unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt
            exit 1
        "#]],
    );
    hub.refuses(
        "create service clusterip none --tcp=80",
        &["the server does not allow this method on the requested resource"],
    );
    hub.refuses("create -f kind.yaml", &["no matches for kind \"Deployment\" in version \"apps/v1\""]);
    hub.stop();
}

#[test]
fn who_has_no_good_token_gets_nothing() {
    let hub = hub("token");
    // A client without cached discovery repeats the message several times.
    hub.given("get namespaces");
    hub.check(
        "
        --token=wrong get namespaces
        --token=wrong create namespace c1
        --token=wrong get --raw /livez
        ",
        &expect![[r#"
            $ kubectl --token=wrong get namespaces
            ! error: You must be logged in to the server (Unauthorized)
            exit 1

            $ kubectl --token=wrong create namespace c1
            ! error: You must be logged in to the server (Unauthorized)
            exit 1

            $ kubectl --token=wrong get --raw /livez
            ! error: You must be logged in to the server (Unauthorized)
            exit 1
        "#]],
    );
    hub.stop();
}
