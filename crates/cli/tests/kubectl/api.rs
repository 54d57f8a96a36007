//! What kubectl discovers about the API: kinds, schemas, rights.

use expect_test::expect;

use crate::harness::hub;

#[test]
fn the_api_is_discovered() {
    let hub = hub("discovery");
    hub.check(
        "
        api-versions
        api-resources --sort-by=name
        api-resources --api-group=addon.open-cluster-management.io -o name
        api-resources --verbs=create --namespaced=false -o name
        cluster-info
        get --raw /livez
        get --raw /readyz
        ",
        &expect![[r#"
            $ kubectl api-versions
            addon.open-cluster-management.io/v1alpha1
            apiextensions.k8s.io/v1
            apps/v1
            authentication.k8s.io/v1
            authorization.k8s.io/v1
            cluster.open-cluster-management.io/v1
            cluster.open-cluster-management.io/v1beta1
            cluster.open-cluster-management.io/v1beta2
            coordination.k8s.io/v1
            events.k8s.io/v1
            rbac.authorization.k8s.io/v1
            v1
            work.open-cluster-management.io/v1

            $ kubectl api-resources --sort-by=name
            NAME                        SHORTNAMES                     APIVERSION                                   NAMESPACED   KIND
            addondeploymentconfigs      adc,adcs                       addon.open-cluster-management.io/v1alpha1    true         AddOnDeploymentConfig
            addonhubconfigs             ahc,ahcs                       addon.open-cluster-management.io/v1alpha1    false        AddOnHubConfig
            addonrolloutpolicies        arp                            addon.open-cluster-management.io/v1alpha1    false        AddOnRolloutPolicy
            addonrolloutrecords         arr                            addon.open-cluster-management.io/v1alpha1    false        AddOnRolloutRecord
            addontemplates              atpl,atpls                     addon.open-cluster-management.io/v1alpha1    false        AddOnTemplate
            clustermanagementaddons     cma,cmas                       addon.open-cluster-management.io/v1alpha1    false        ClusterManagementAddOn
            clusterrolebindings                                        rbac.authorization.k8s.io/v1                 false        ClusterRoleBinding
            clusterroles                                               rbac.authorization.k8s.io/v1                 false        ClusterRole
            configmaps                  cm                             v1                                           true         ConfigMap
            controllerrevisions                                        apps/v1                                      true         ControllerRevision
            customresourcedefinitions   crd,crds                       apiextensions.k8s.io/v1                      false        CustomResourceDefinition
            events                      ev                             v1                                           true         Event
            events                      ev                             events.k8s.io/v1                             true         Event
            leases                                                     coordination.k8s.io/v1                       true         Lease
            managedclusteraddons        mca,mcas                       addon.open-cluster-management.io/v1alpha1    true         ManagedClusterAddOn
            managedclusters             mcl,mcls                       cluster.open-cluster-management.io/v1        false        ManagedCluster
            managedclustersetbindings   mclsetbinding,mclsetbindings   cluster.open-cluster-management.io/v1beta2   true         ManagedClusterSetBinding
            managedclustersets          mclset,mclsets                 cluster.open-cluster-management.io/v1beta2   false        ManagedClusterSet
            manifestworks               mw,mws                         work.open-cluster-management.io/v1           true         ManifestWork
            namespaces                  ns                             v1                                           false        Namespace
            placementdecisions          plcd                           cluster.open-cluster-management.io/v1beta1   true         PlacementDecision
            placements                  plc                            cluster.open-cluster-management.io/v1beta1   true         Placement
            rolebindings                                               rbac.authorization.k8s.io/v1                 true         RoleBinding
            roles                                                      rbac.authorization.k8s.io/v1                 true         Role
            secrets                                                    v1                                           true         Secret
            selfsubjectaccessreviews                                   authorization.k8s.io/v1                      false        SelfSubjectAccessReview
            selfsubjectreviews                                         authentication.k8s.io/v1                     false        SelfSubjectReview
            selfsubjectrulesreviews                                    authorization.k8s.io/v1                      false        SelfSubjectRulesReview
            serviceaccounts             sa                             v1                                           true         ServiceAccount
            services                    svc                            v1                                           true         Service
            subjectaccessreviews                                       authorization.k8s.io/v1                      false        SubjectAccessReview
            tokenreviews                                               authentication.k8s.io/v1                     false        TokenReview

            $ kubectl api-resources --api-group=addon.open-cluster-management.io -o name
            addondeploymentconfigs.addon.open-cluster-management.io
            addonhubconfigs.addon.open-cluster-management.io
            addonrolloutpolicies.addon.open-cluster-management.io
            addonrolloutrecords.addon.open-cluster-management.io
            addontemplates.addon.open-cluster-management.io
            clustermanagementaddons.addon.open-cluster-management.io
            managedclusteraddons.addon.open-cluster-management.io

            $ kubectl api-resources --verbs=create --namespaced=false -o name
            namespaces
            addonhubconfigs.addon.open-cluster-management.io
            addonrolloutpolicies.addon.open-cluster-management.io
            addonrolloutrecords.addon.open-cluster-management.io
            addontemplates.addon.open-cluster-management.io
            clustermanagementaddons.addon.open-cluster-management.io
            customresourcedefinitions.apiextensions.k8s.io
            selfsubjectreviews.authentication.k8s.io
            tokenreviews.authentication.k8s.io
            selfsubjectaccessreviews.authorization.k8s.io
            selfsubjectrulesreviews.authorization.k8s.io
            subjectaccessreviews.authorization.k8s.io
            managedclusters.cluster.open-cluster-management.io
            managedclustersets.cluster.open-cluster-management.io
            clusterrolebindings.rbac.authorization.k8s.io
            clusterroles.rbac.authorization.k8s.io

            $ kubectl cluster-info
            Kubernetes control plane is running at https://127.0.0.1:PORT

            To further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.

            $ kubectl get --raw /livez
            ok

            $ kubectl get --raw /readyz
            ok
        "#]],
    );
    let version = hub.json("version -o json");
    assert_eq!(version["serverVersion"]["major"], "1");
    hub.stop();
}

#[test]
fn every_kubectl_can_explain() {
    let hub = hub("explain");
    // The texts come from the schemas; the layout differs between versions of kubectl.
    for (field, parts) in [
        ("clustermanagementaddons", ["An add-on for a fleet of clusters", "spec\t<Object>"]),
        ("cma.spec.installStrategy.placements", ["placements <[]Object>", "name\t<string> -required-"]),
        ("mca.metadata.labels", ["labels <map[string]string>", "by which objects are selected"]),
        ("configmap.data", ["KIND:", "data <map[string]string>"]),
    ] {
        let told = hub.run(&format!("explain {field}"));
        for part in parts {
            assert!(told.contains(part), "no {part:?} in {told}");
        }
    }
    hub.refuses("explain cma.spec.nonsense", &["field \"nonsense\" does not exist"]);
    hub.stop();
}

#[test]
fn rights_can_be_asked_for() {
    let hub = hub("rights");
    hub.check(
        "
        auth can-i create managedclusteraddons
        auth can-i get /livez
        auth can-i --list
        ",
        &expect![[r#"
            $ kubectl auth can-i create managedclusteraddons
            yes

            $ kubectl auth can-i get /livez
            yes

            $ kubectl auth can-i --list
            Resources   Non-Resource URLs   Resource Names   Verbs
            *.*         []                  []               [*]
                        [*]                 []               [*]
        "#]],
    );
    if hub.kubectl_is_at_least(28) {
        hub.check(
            "auth whoami",
            &expect![[r#"
            $ kubectl auth whoami
            ATTRIBUTE   VALUE
            Username    admin
            Groups      [system:masters system:authenticated]
        "#]],
        );
    }
    hub.stop();
}
