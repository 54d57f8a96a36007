//! `aviary manifests`, and the kustomize overlays, which must have the same objects.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::transcript::{Desk, desk, plain_numbers};
use expect_test::expect;
use serde_json::Value;

/// One line per object: kind, namespace, name.
fn listed(desk: &Desk, arguments: &str) -> String {
    let list = desk.json(&format!("manifests -o json {arguments}"), 0);
    assert_eq!(list["kind"], "List");
    let line = |object: &Value| {
        let (kind, metadata) = (object["kind"].as_str().unwrap_or_default(), &object["metadata"]);
        let namespace =
            metadata["namespace"].as_str().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{kind} {namespace}{}\n", metadata["name"].as_str().unwrap_or_default())
    };
    list["items"].as_array().into_iter().flatten().map(line).collect()
}

#[test]
fn everything_is_printed_in_an_order_in_which_it_can_be_applied() {
    let desk = desk("manifests");
    expect![[r#"
        Namespace open-cluster-management
        CustomResourceDefinition clustermanagementaddons.addon.open-cluster-management.io
        CustomResourceDefinition managedclusteraddons.addon.open-cluster-management.io
        CustomResourceDefinition addonhubconfigs.addon.open-cluster-management.io
        CustomResourceDefinition addondeploymentconfigs.addon.open-cluster-management.io
        CustomResourceDefinition addontemplates.addon.open-cluster-management.io
        CustomResourceDefinition addonrolloutpolicies.addon.open-cluster-management.io
        CustomResourceDefinition addonrolloutrecords.addon.open-cluster-management.io
        CustomResourceDefinition managedclusters.cluster.open-cluster-management.io
        CustomResourceDefinition managedclustersets.cluster.open-cluster-management.io
        CustomResourceDefinition managedclustersetbindings.cluster.open-cluster-management.io
        CustomResourceDefinition placements.cluster.open-cluster-management.io
        CustomResourceDefinition placementdecisions.cluster.open-cluster-management.io
        CustomResourceDefinition manifestworks.work.open-cluster-management.io
        ServiceAccount open-cluster-management/aviary-manager
        ClusterRole aviary-manager
        ClusterRoleBinding aviary-manager
        Role open-cluster-management/aviary-manager
        RoleBinding open-cluster-management/aviary-manager
        Role default/aviary-manager-events
        RoleBinding default/aviary-manager-events
        ClusterRole aviary-config-kinds
        ClusterRole aviary-config-kinds-addons
        ClusterRoleBinding aviary-config-kinds
        ClusterRole aviary-view
        ClusterRole aviary-edit
        ClusterRole aviary-operator
        ClusterRole aviary-fleet-policies
        ClusterRole aviary-metrics-reader
        ValidatingAdmissionPolicy aviary-instance-configs
        ValidatingAdmissionPolicyBinding aviary-instance-configs
        ValidatingAdmissionPolicy aviary-manager-term
        ValidatingAdmissionPolicyBinding aviary-manager-term
        ValidatingAdmissionPolicy aviary-fleet-policies
        ValidatingAdmissionPolicyBinding aviary-fleet-policies
        NetworkPolicy open-cluster-management/aviary-manager
        PodDisruptionBudget open-cluster-management/aviary-manager
        Service open-cluster-management/aviary-manager-metrics
        Deployment open-cluster-management/aviary-manager
        ClusterRole aviary-placement
        ClusterRoleBinding aviary-placement
        ServiceMonitor open-cluster-management/aviary-manager
        PrometheusRule open-cluster-management/aviary-manager
        ConfigMap open-cluster-management/aviary-dashboard
    "#]]
    .assert_eq(&listed(&desk, ""));
    expect![[r#"
        CustomResourceDefinition addonhubconfigs.addon.open-cluster-management.io
        CustomResourceDefinition addonrolloutpolicies.addon.open-cluster-management.io
        CustomResourceDefinition addonrolloutrecords.addon.open-cluster-management.io
        ServiceAccount fleet/aviary-manager
        ClusterRole aviary-manager
        ClusterRoleBinding aviary-manager
        Role fleet/aviary-manager
        RoleBinding fleet/aviary-manager
        Role default/aviary-manager-events
        RoleBinding default/aviary-manager-events
        ClusterRole aviary-config-kinds
        ClusterRole aviary-config-kinds-addons
        ClusterRoleBinding aviary-config-kinds
        ClusterRole aviary-view
        ClusterRole aviary-edit
        ClusterRole aviary-operator
        ClusterRole aviary-fleet-policies
        ClusterRole aviary-metrics-reader
        ValidatingAdmissionPolicy aviary-instance-configs
        ValidatingAdmissionPolicyBinding aviary-instance-configs
        ValidatingAdmissionPolicy aviary-manager-term
        ValidatingAdmissionPolicyBinding aviary-manager-term
        ValidatingAdmissionPolicy aviary-fleet-policies
        ValidatingAdmissionPolicyBinding aviary-fleet-policies
        NetworkPolicy fleet/aviary-manager
        PodDisruptionBudget fleet/aviary-manager
        Service fleet/aviary-manager-metrics
        Deployment fleet/aviary-manager
        Role open-cluster-management-hub/aviary-manager-ocm
        RoleBinding open-cluster-management-hub/aviary-manager-ocm
    "#]]
    .assert_eq(&listed(&desk, "--flavor ocm --without monitoring --namespace fleet"));
}

#[test]
fn both_forms_say_the_same() {
    let desk = desk("manifests-forms");
    for arguments in [
        "",
        "--flavor ocm",
        "--without monitoring --image example.com/aviary:1 --namespace fleet",
        "--dashboard-host birds.example.org",
    ] {
        let yaml = String::from_utf8(desk.output(&format!("manifests {arguments}")).stdout).unwrap();
        let stream: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
        let list = desk.json(&format!("manifests -o json {arguments}"), 0);
        assert_eq!(list["items"].as_array().unwrap(), &stream, "{arguments}");
        assert_eq!(desk.output(&format!("manifests -o yaml {arguments}")).stdout, yaml.into_bytes());
    }
}

#[test]
fn the_manager_as_it_is_deployed() {
    let desk = desk("manifests-manager");
    let list = desk.json("manifests -o json --image example.com/aviary:1 --namespace fleet", 0);
    let deployment =
        list["items"].as_array().unwrap().iter().find(|object| object["kind"] == "Deployment").unwrap();
    let text = serde_saphyr::to_string(&deployment["spec"]["template"]["spec"]["containers"][0]).unwrap();
    expect![[r#"
        args:
        - manager
        - --namespace=$(POD_NAMESPACE)
        - --health=0.0.0.0:8081
        - --metrics=0.0.0.0:8443
        - --log-format=json
        - --placement
        env:
        - name: POD_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        image: example.com/aviary:1
        livenessProbe:
          failureThreshold: 6
          httpGet:
            path: /livez
            port: health
          periodSeconds: 10
        name: manager
        ports:
        - containerPort: 8081
          name: health
          protocol: TCP
        - containerPort: 8443
          name: metrics
          protocol: TCP
        readinessProbe:
          httpGet:
            path: /readyz?exclude=addons
            port: health
          periodSeconds: 5
        resources:
          limits:
            memory: 256Mi
          requests:
            cpu: 50m
            memory: 64Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
          readOnlyRootFilesystem: true
        startupProbe:
          failureThreshold: 30
          httpGet:
            path: /livez
            port: health
          periodSeconds: 2
    "#]]
    .assert_eq(&text);
}

#[test]
fn help_and_wrong_usage() {
    let desk = desk("manifests-help");
    desk.check(
        "manifests --help",
        &expect![[r#"
            $ aviary manifests --help
            Print everything to install on a hub, for kubectl apply -f -: custom resource definitions,
            namespace, service account and roles, the manager with two replicas, policies, metrics, alerts and a
            Grafana dashboard. With --dashboard-host also the web dashboard.

            The repository has the same as kustomize overlays (deploy/kustomize) and as a Helm chart
            (deploy/helm/aviary). With -o json the output is one List.

            Usage: aviary manifests [OPTIONS]

            Options:
                  --flavor <FLAVOR>
                      The kind of hub

                      Possible values:
                      - standalone: A hub without Open Cluster Management: installs every CRD, and the manager
                        decides placements
                      - ocm:        An Open Cluster Management hub: keeps its namespace and its kinds as they
                        are, and adds only the kinds that it lacks

                      [default: standalone]

              -o, --output <FORMAT>
                      Output format: json and yaml have a stable structure; wide is untruncated text

                      [possible values: json, yaml, wide]

                  --image <IMAGE>
                      Image of the manager; the nodes of the hub must be able to pull it

                      [default: aviary:0.1.0]

                  --no-color
                      Disable colours; also disabled by the variable NO_COLOR and when the output is not a
                      terminal

                  --namespace <NAMESPACE>
                      Namespace of the manager

                      [default: open-cluster-management]

                  --dashboard-host <HOST>
                      Also install the web dashboard, read-only, at this host name: a Deployment, a Service and
                      an Ingress. Its certificate must be in the Secret aviary-dashboard-tls

                  --runbook-url <URL>
                      Address of the page operations.md, for the links in alerts

                      [default: docs/operations.md]

                  --v1beta1
                      Also serve v1beta1 of the add-on kinds, for add-ons written for Open Cluster Management
                      1.3 or later: the managers convert it. An OCM hub does so itself

                  --without <PART>
                      Leave out a part: monitoring, on a hub without the Prometheus operator

                      [possible values: monitoring]

                  --with <PART>
                      Add an optional part: registration, for templates with spec.registration

                      [possible values: registration]

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              Install on a hub without Open Cluster Management
                $ aviary manifests --image my.example/aviary:1.0 | kubectl apply --server-side -f -

              Install on an Open Cluster Management hub without the Prometheus operator
                $ aviary manifests --flavor ocm --without monitoring --image my.example/aviary:1.0 |
                    kubectl apply --server-side -f -

              With the web dashboard, for users with their own tokens
                $ aviary manifests --dashboard-host aviary.example.com --image my.example/aviary:1.0 |
                    kubectl apply --server-side -f -

              See the rights of the manager
                $ aviary manifests -o json | jq '.items[] | select(.kind == "ClusterRole")'
        "#]],
    );
    desk.check(
        "manifests --flavor other",
        &expect![[r#"
        $ aviary manifests --flavor other
        ! error: invalid value 'other' for '--flavor <FLAVOR>'
        !   [possible values: standalone, ocm]
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check("manifests --namespace Fleet", &expect![[r#"
        $ aviary manifests --namespace Fleet
        ! error: invalid value 'Fleet' for '--namespace <NAMESPACE>': must be the name of a namespace: at most 63 lower-case letters, digits and dashes
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check("manifests --dashboard-host birds.example.org:8443", &expect![[r#"
        $ aviary manifests --dashboard-host birds.example.org:8443
        ! error: invalid value 'birds.example.org:8443' for '--dashboard-host <HOST>': must be a host name in lower case, without a port
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check("manifests --runbook-url ops.md#x", &expect![[r#"
        $ aviary manifests --runbook-url ops.md#x
        ! error: invalid value 'ops.md#x' for '--runbook-url <URL>': must be an address without white space and without #
        !
        ! For more information, try '--help'.
        exit 2
    "#]]);
    desk.check(
        "manifests --image ''",
        &expect![[r#"
        $ aviary manifests --image ''
        ! error: invalid value '' for '--image <IMAGE>': must be the name of an image, without white space
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check(
        "manifests --without crds",
        &expect![[r#"
        $ aviary manifests --without crds
        ! error: invalid value 'crds' for '--without <PART>'
        !   [possible values: monitoring]
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
}

/// Objects by kind, namespace and name.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
    };
    let plain = |mut object: Value| {
        plain_numbers(&mut object);
        (name(&object), object)
    };
    objects.into_iter().map(plain).collect()
}

/// The dashboard is a component that overlays may add.
#[test]
fn the_component_of_the_dashboard_says_what_the_command_says() {
    let desk = desk("manifests-dashboard");
    let kubectl = std::env::var("AVIARY_KUBECTL").unwrap_or_else(|_| "kubectl".into());
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kustomize").canonicalize().unwrap();
    std::fs::create_dir_all(desk.path("overlay")).unwrap();
    let folder = desk.path("overlay").canonicalize().unwrap();
    let up = "../".repeat(folder.components().count() - 1);
    let way = format!("{up}{}", deploy.strip_prefix("/").unwrap().display());
    let text = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- {way}/overlays/standalone\ncomponents:\n- {way}/dashboard\n"
    );
    std::fs::write(folder.join("kustomization.yaml"), text).unwrap();
    let output = Command::new(&kubectl).arg("kustomize").arg(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let built = by_name(serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap());
    let list = desk.json("manifests -o json --dashboard-host aviary.example.com", 0);
    let printed = by_name(list["items"].as_array().unwrap().clone());
    assert_eq!(built.keys().collect::<Vec<_>>(), printed.keys().collect::<Vec<_>>());
    for (name, object) in &printed {
        assert!(built[name] == *object, "{name} differs");
    }
}

#[test]
fn the_overlays_of_kustomize_say_what_the_command_says() {
    let desk = desk("manifests-kustomize");
    let kubectl = std::env::var("AVIARY_KUBECTL").unwrap_or_else(|_| "kubectl".into());
    for flavor in ["ocm", "standalone"] {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kustomize/overlays").join(flavor);
        let output = Command::new(&kubectl).arg("kustomize").arg(folder).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        let built = by_name(serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap());
        let list = desk.json(&format!("manifests -o json --flavor {flavor}"), 0);
        let printed = by_name(list["items"].as_array().unwrap().clone());
        assert_eq!(built.keys().collect::<Vec<_>>(), printed.keys().collect::<Vec<_>>(), "{flavor}");
        for (name, object) in &printed {
            // Too long to print: compare with kubectl kustomize and diff.
            assert!(built[name] == *object, "{flavor}: {name} differs");
        }
    }
}
