//! Reading: all forms of get, describe, events.

use expect_test::expect;

use crate::harness::hub;

const FLEET: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: c1}
---
apiVersion: v1
kind: Namespace
metadata: {name: c2}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1, labels: {cloud: aws, stage: canary}}
spec: {hubAcceptsClient: true}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c2, labels: {cloud: aws}}
spec: {hubAcceptsClient: true}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {name: helloworld, namespace: c1}
spec: {installNamespace: agents}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata: {name: helloworld, namespace: c2}
---
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: addon-helloworld-deploy-0, namespace: c1}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: agents}, data: {greeting: hello}}
";

#[test]
fn objects_are_shown_as_tables() {
    let hub = hub("tables").with_canary().file("fleet.yaml", FLEET);
    hub.given(
        "
        create namespace open-cluster-management
        apply -f canary -f fleet.yaml
        -n c1 create configmap one --from-literal=a=1 --from-literal=b=2
        -n c1 create secret generic hidden --from-literal=password=x
        ",
    );
    hub.check(
        "
        get namespaces
        get clustermanagementaddons
        get cma helloworld -o wide
        get mca -A
        get managedclusters -L cloud -L stage
        get addontemplates,placements
        -n c1 get manifestworks,configmaps,secrets
        get crd placements.cluster.open-cluster-management.io
        get leases -A
        get cma --no-headers
        get mcl --sort-by=.metadata.name -o custom-columns=NAME:.metadata.name,STAGE:.metadata.labels.stage
        ",
        &expect![[r#"
            $ kubectl get namespaces
            NAME                      STATUS   AGE
            c1                        Active   AGE
            c2                        Active   AGE
            default                   Active   AGE
            kube-system               Active   AGE
            open-cluster-management   Active   AGE

            $ kubectl get clustermanagementaddons
            NAME         STATE   DESIRED   SETTLED   IN FLIGHT   FAILED   AGE
            helloworld                                                    AGE

            $ kubectl get cma helloworld -o wide
            NAME         STATE   DESIRED   SETTLED   IN FLIGHT   FAILED   AGE   STRATEGY     MESSAGE
            helloworld                                                    AGE   Placements

            $ kubectl get mca -A
            NAMESPACE   NAME         AVAILABLE   PROGRESSING   VERSION   AGE
            c1          helloworld                                       AGE
            c2          helloworld                                       AGE

            $ kubectl get managedclusters -L cloud -L stage
            NAME   HUB ACCEPTED   MANAGED CLUSTER URLS   JOINED   AVAILABLE   AGE   CLOUD   STAGE
            c1     true                                                       AGE   aws     canary
            c2     true                                                       AGE   aws

            $ kubectl get addontemplates,placements
            NAME                                                                ADD-ON       VERSION   AGE
            addontemplate.addon.open-cluster-management.io/helloworld-v0.10.0   helloworld   v0.10.0   AGE
            addontemplate.addon.open-cluster-management.io/helloworld-v0.11.0   helloworld   v0.11.0   AGE

            NAME                                                            SUCCEEDED   REASON   SELECTEDCLUSTERS   AGE
            placement.cluster.open-cluster-management.io/aws-placement                                              AGE
            placement.cluster.open-cluster-management.io/canary-placement                                           AGE

            $ kubectl -n c1 get manifestworks,configmaps,secrets
            NAME                                                                     ADD-ON   APPLIED   AVAILABLE   AGE
            manifestwork.work.open-cluster-management.io/addon-helloworld-deploy-0                                  AGE

            NAME            DATA   AGE
            configmap/one   2      AGE

            NAME            TYPE     DATA   AGE
            secret/hidden   Opaque   1      AGE

            $ kubectl get crd placements.cluster.open-cluster-management.io
            NAME                                            CREATED AT
            placements.cluster.open-cluster-management.io   TIME

            $ kubectl get leases -A
            ! No resources found

            $ kubectl get cma --no-headers
            helloworld                                 AGE

            $ kubectl get mcl --sort-by=.metadata.name -o custom-columns=NAME:.metadata.name,STAGE:.metadata.labels.stage
            NAME   STAGE
            c1     canary
            c2     <none>
        "#]],
    );
    hub.check(
        "
        get managedclusters -l cloud=aws -o name
        get managedclusters -l 'stage in (canary),cloud' -o name
        get managedclusters -l '!stage' -o name
        get managedclusters -l cloud=azure
        get mca -A --field-selector metadata.namespace=c2
        -n c1 get secrets --field-selector type=Opaque,metadata.name!=other -o name
        -n c1 get mca --field-selector spec.installNamespace=agents
        ",
        &expect![[r#"
            $ kubectl get managedclusters -l cloud=aws -o name
            managedcluster.cluster.open-cluster-management.io/c1
            managedcluster.cluster.open-cluster-management.io/c2

            $ kubectl get managedclusters -l 'stage in (canary),cloud' -o name
            managedcluster.cluster.open-cluster-management.io/c1

            $ kubectl get managedclusters -l '!stage' -o name
            managedcluster.cluster.open-cluster-management.io/c2

            $ kubectl get managedclusters -l cloud=azure
            ! No resources found

            $ kubectl get mca -A --field-selector metadata.namespace=c2
            NAMESPACE   NAME         AVAILABLE   PROGRESSING   VERSION   AGE
            c2          helloworld                                       AGE

            $ kubectl -n c1 get secrets --field-selector type=Opaque,metadata.name!=other -o name
            secret/hidden

            $ kubectl -n c1 get mca --field-selector spec.installNamespace=agents
            ! Error from server (BadRequest): Unable to find "addon.open-cluster-management.io/v1alpha1, Resource=managedclusteraddons" that match label selector "", field selector "spec.installNamespace=agents": field label not supported: spec.installNamespace
            exit 1
        "#]],
    );
    hub.stop();
}

#[test]
fn objects_are_shown_as_data() {
    let hub = hub("data").file("fleet.yaml", FLEET);
    hub.given("create -f fleet.yaml");
    hub.check(
        "
        -n c1 get mca helloworld -o yaml
        get managedcluster c1 -o json
        get mca -A -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.generation}{\"\\n\"}{end}'
        get managedclusters -o 'go-template={{range .items}}{{.metadata.name}} {{end}}'
        get -f fleet.yaml -o name
        ",
        &expect![[r#"
            $ kubectl -n c1 get mca helloworld -o yaml
            apiVersion: addon.open-cluster-management.io/v1alpha1
            kind: ManagedClusterAddOn
            metadata:
              creationTimestamp: "TIME"
              generation: 1
              name: helloworld
              namespace: c1
              resourceVersion: "RV"
              uid: UID
            spec:
              installNamespace: agents

            $ kubectl get managedcluster c1 -o json
            {
                "apiVersion": "cluster.open-cluster-management.io/v1",
                "kind": "ManagedCluster",
                "metadata": {
                    "creationTimestamp": "TIME",
                    "generation": 1,
                    "labels": {
                        "cloud": "aws",
                        "stage": "canary"
                    },
                    "name": "c1",
                    "resourceVersion": "RV",
                    "uid": "UID"
                },
                "spec": {
                    "hubAcceptsClient": true,
                    "leaseDurationSeconds": 60
                }
            }

            $ kubectl get mca -A -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.generation}{"\n"}{end}'
            c1/helloworld 1
            c2/helloworld 1

            $ kubectl get managedclusters -o 'go-template={{range .items}}{{.metadata.name}} {{end}}'
            c1 c2

            $ kubectl get -f fleet.yaml -o name
            namespace/c1
            namespace/c2
            managedcluster.cluster.open-cluster-management.io/c1
            managedcluster.cluster.open-cluster-management.io/c2
            managedclusteraddon.addon.open-cluster-management.io/helloworld
            managedclusteraddon.addon.open-cluster-management.io/helloworld
            manifestwork.work.open-cluster-management.io/addon-helloworld-deploy-0
        "#]],
    );
    hub.stop();
}

#[test]
fn objects_are_described_with_their_events() {
    let hub = hub("describe").file("fleet.yaml", FLEET);
    hub.given("create -f fleet.yaml");
    let uid = hub.json("-n c1 get mca helloworld -o json")["metadata"]["uid"].as_str().unwrap().to_owned();
    let hub = hub.file(
        "event.yaml",
        &format!(
            "\
apiVersion: v1
kind: Event
metadata: {{name: helloworld.1, namespace: c1}}
involvedObject:
  apiVersion: addon.open-cluster-management.io/v1alpha1
  kind: ManagedClusterAddOn
  namespace: c1
  name: helloworld
  uid: {uid}
type: Normal
reason: UpdateStarted
message: told to run v0.11.0
count: 2
source: {{component: aviary}}
firstTimestamp: \"2024-01-01T00:00:00Z\"
lastTimestamp: \"2024-01-01T00:05:00Z\"
"
        ),
    );
    hub.check(
        "
        create -f event.yaml
        -n c1 get events
        -n c1 get events --field-selector reason=UpdateStarted,involvedObject.kind=ManagedClusterAddOn -o name
        -n c1 get events --field-selector reason=Other
        get events.v1.events.k8s.io -A -o 'jsonpath={.items[*].note}'
        describe managedcluster c1
        -n c1 describe manifestwork addon-helloworld-deploy-0
        ",
        &expect![[r#"
            $ kubectl create -f event.yaml
            event/helloworld.1 created

            $ kubectl -n c1 get events
            LAST SEEN   TYPE     REASON          OBJECT                           MESSAGE
            AGE         Normal   UpdateStarted   managedclusteraddon/helloworld   told to run v0.11.0

            $ kubectl -n c1 get events --field-selector reason=UpdateStarted,involvedObject.kind=ManagedClusterAddOn -o name
            event/helloworld.1

            $ kubectl -n c1 get events --field-selector reason=Other
            ! No resources found in c1 namespace.

            $ kubectl get events.v1.events.k8s.io -A -o 'jsonpath={.items[*].note}'
            told to run v0.11.0

            $ kubectl describe managedcluster c1
            Name:         c1
            Namespace:
            Labels:       cloud=aws
                          stage=canary
            Annotations:  <none>
            API Version:  cluster.open-cluster-management.io/v1
            Kind:         ManagedCluster
            Metadata:
              Creation Timestamp:  TIME
              Generation:          1
              Resource Version:    RV
              UID:                 UID
            Spec:
              Hub Accepts Client:      true
              Lease Duration Seconds:  60
            Events:                    <none>

            $ kubectl -n c1 describe manifestwork addon-helloworld-deploy-0
            Name:         addon-helloworld-deploy-0
            Namespace:    c1
            Labels:       <none>
            Annotations:  <none>
            API Version:  work.open-cluster-management.io/v1
            Kind:         ManifestWork
            Metadata:
              Creation Timestamp:  TIME
              Generation:          1
              Resource Version:    RV
              UID:                 UID
            Spec:
              Workload:
                Manifests:
                  API Version:  v1
                  Data:
                    Greeting:  hello
                  Kind:        ConfigMap
                  Metadata:
                    Name:       hello
                    Namespace:  agents
            Events:             <none>
        "#]],
    );
    let told = hub.run("-n c1 describe mca helloworld");
    for part in ["Install Namespace:  agents", "UpdateStarted", "(x2 over", "told to run v0.11.0"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    if hub.kubectl_is_at_least(26) {
        let told = hub.run("-n c1 events --for managedclusteraddon/helloworld");
        assert!(told.contains("ManagedClusterAddOn/helloworld   told to run v0.11.0"), "{told}");
    }
    let raw = hub.json("get --raw /apis/cluster.open-cluster-management.io/v1/managedclusters/c2");
    assert_eq!((&raw["kind"], &raw["metadata"]["name"]), (&"ManagedCluster".into(), &"c2".into()));
    hub.stop();
}
