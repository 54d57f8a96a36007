//! The access rules as a table: verb, object, place, then who may (A admin, R read-only, C the
//! agent of c1; f if it may change finalizers only).

use super::*;

const ADDON: &str = "addon.open-cluster-management.io";
const CLUSTERS: &str = "cluster.open-cluster-management.io";

/// Reads `resource.group/subresource` with short group names, and `ns/name`, `-` for none.
fn access<'a>(verb: &'a str, object: &'a str, place: &'a str) -> Access<'a> {
    if object.starts_with('/') {
        return Access { verb, non_resource_path: Some(object), ..Access::default() };
    }
    let (object, subresource) = match object.split_once('/') {
        Some((object, subresource)) => (object, Some(subresource)),
        None => (object, None),
    };
    let (resource, group) = object.split_once('.').unwrap_or((object, ""));
    let group = match group {
        "addon" => ADDON,
        "cluster" => CLUSTERS,
        "work" => "work.open-cluster-management.io",
        "rbac" => "rbac.authorization.k8s.io",
        "leases" => "coordination.k8s.io",
        "authz" => "authorization.k8s.io",
        "authn" => "authentication.k8s.io",
        other => other,
    };
    let some = |text: &'a str| (text != "-").then_some(text);
    let (namespace, name) = place.split_once('/').unwrap();
    Access {
        verb,
        group,
        resource,
        subresource,
        namespace: some(namespace),
        name: some(name),
        non_resource_path: None,
    }
}

const TABLE: &str = "
    get     managedclusteraddons.addon         c1/x   ARC
    list    managedclusteraddons.addon         c1/-   ARC
    watch   managedclusteraddons.addon         c1/-   ARC
    update  managedclusteraddons.addon         c1/x   A--
    patch   managedclusteraddons.addon         c1/x   A--
    update  managedclusteraddons.addon/status  c1/x   A-C
    patch   managedclusteraddons.addon/status  c1/x   A-C
    get     managedclusteraddons.addon/status  c1/x   AR-
    create  managedclusteraddons.addon         c1/-   A--
    delete  managedclusteraddons.addon         c1/x   A--
    deletecollection managedclusteraddons.addon c1/-  A--
    get     manifestworks.work                 c1/x   ARC
    list    manifestworks.work                 c1/-   ARC
    watch   manifestworks.work                 c1/-   ARC
    patch   manifestworks.work/status          c1/x   A-C
    update  manifestworks.work/status          c1/x   A-C
    update  manifestworks.work                 c1/x   A-f
    patch   manifestworks.work                 c1/x   A-f
    patch   manifestworks.work                 c2/x   A--
    create  manifestworks.work                 c1/-   A--
    delete  manifestworks.work                 c1/x   A--
    deletecollection manifestworks.work        c1/-   A--
    get     manifestworks.example.com          c1/x   AR-
    update  manifestworks.work/scale           c1/x   A--
    create  serviceaccounts/token              c1/x   A--

    get     managedclusteraddons.addon         c2/x   AR-
    list    managedclusteraddons.addon         c2/-   AR-
    patch   managedclusteraddons.addon/status  c2/x   A--
    list    managedclusteraddons.addon         -/-    AR-
    watch   manifestworks.work                 -/-    AR-
    list    managedclusteraddons.addon         -/c1   AR-

    get     secrets                            c1/x   A--
    list    secrets                            c1/-   A--
    update  secrets                            c1/x   A--
    patch   secrets                            c1/x   A--
    get     configmaps                         c1/x   AR-
    list    configmaps                         c1/-   AR-
    patch   configmaps                         c1/x   A--
    get     addondeploymentconfigs.addon       c1/x   AR-
    get     controllerrevisions.apps           c1/x   AR-
    watch   secrets                            c2/-   A--
    get     secrets                            c2/x   A--
    list    secrets                            -/-    A--
    get     secrets/status                     c2/x   A--
    get     secrets.example.com                c2/x   AR-

    create  events                             c1/-   A-C
    patch   events                             c1/x   A-C
    update  events                             c1/x   A-C
    delete  events                             c1/x   A--
    list    events                             c1/-   AR-
    create  events.events.k8s.io               c1/-   A-C
    list    events.events.k8s.io               c1/-   ARC
    create  events                             c2/-   A--
    create  leases.leases                      c1/-   A-C
    get     leases.leases                      c1/x   ARC
    list    leases.leases                      c1/-   ARC
    update  leases.leases                      c1/x   A-C
    patch   leases.leases                      c1/x   A-C
    update  leases.leases                      c2/x   A--
    delete  leases.leases                      c1/x   A--
    create  leases.example.com                 c1/-   A--
    create  leases.leases                      -/-    A--
    create  configmaps                         c1/-   A--
    create  events/status                      c1/-   A--
    update  rolebindings.rbac                  c1/x   A--
    get     rolebindings.rbac                  c1/x   AR-

    get     managedclusters.cluster            -/c1   ARC
    watch   managedclusters.cluster            -/c1   ARC
    get     managedclusters.cluster            -/c2   AR-
    list    managedclusters.cluster            -/-    AR-
    watch   managedclusters.cluster            -/-    AR-
    update  managedclusters.cluster            -/c1   A--
    patch   managedclusters.cluster            -/c1   A--
    create  managedclusters.cluster            -/-    A--
    delete  managedclusters.cluster            -/c1   A--
    patch   managedclusters.cluster/status     -/c1   A-C
    update  managedclusters.cluster/status     -/c1   A-C
    patch   managedclusters.cluster/status     -/c2   A--
    patch   managedclusters.cluster/status     c1/c2  A--
    update  managedclusters.cluster/accept     -/c1   A--
    get     managedclusters.example.com        -/c1   AR-

    get     namespaces                         -/c1   AR-
    get     namespaces                         c1/c1  AR-
    get     namespaces                         -/c2   AR-
    list    namespaces                         -/-    AR-
    patch   namespaces                         c1/c1  A--
    update  namespaces/finalize                c1/c1  A--
    get     namespaces/status                  c1/c1  AR-

    get     customresourcedefinitions.apiextensions.k8s.io -/x AR-
    create  customresourcedefinitions.apiextensions.k8s.io -/- A--
    impersonate users                          -/x    A--

    create  selfsubjectaccessreviews.authz     -/-    ARC
    create  selfsubjectrulesreviews.authz      -/-    ARC
    create  selfsubjectreviews.authn           -/-    ARC
    create  subjectaccessreviews.authz         -/-    A--
    create  selfsubjectreviews.example.com     -/-    A--

    get     /api                               -/-    ARC
    get     /apis                              -/-    ARC
    get     /apis/apps/v1                      -/-    ARC
    get     /openapi/v2                        -/-    ARC
    get     /openapi/v3/apis/apps/v1           -/-    ARC
    get     /version                           -/-    ARC
    get     /readyz                            -/-    ARC
    get     /metrics                           -/-    A--
    get     /debug/pprof                       -/-    A--
    get     /apis/../metrics                   -/-    A--
    get     /apis/%2e%2e/metrics               -/-    A--
    get     /apisx                             -/-    A--
    get     /                                  -/-    A--
    post    /apis                              -/-    A--
";

#[test]
fn each_role_may_do_what_the_table_says() {
    let agent = Role::Agent { namespace: "c1".into() };
    let roles = [(Role::Admin, 'A'), (Role::ReadOnly, 'R'), (agent, 'C')];
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [verb, object, place, who] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let granted: String = roles
            .iter()
            .map(|(role, letter)| match allowed(role, &access(verb, object, place)) {
                Ok(Extent::Anything) => *letter,
                Ok(Extent::Finalizers) => 'f',
                Err(_) => '-',
            })
            .collect();
        assert_eq!(granted, who, "{line}");
    }
}

#[test]
fn a_refusal_is_worded_as_kubernetes_does() {
    let message = |verb, object, place| {
        let agent = Role::Agent { namespace: "none".into() };
        allowed(&agent, &access(verb, object, place)).unwrap_err().message("x")
    };
    let table = [
        (
            message("list", "managedclusteraddons.addon", "ns/-"),
            r#"managedclusteraddons.addon.open-cluster-management.io is forbidden: User "x" cannot list resource "managedclusteraddons" in API group "addon.open-cluster-management.io" in the namespace "ns""#,
        ),
        (
            message("list", "managedclusteraddons.addon", "-/-"),
            r#"managedclusteraddons.addon.open-cluster-management.io is forbidden: User "x" cannot list resource "managedclusteraddons" in API group "addon.open-cluster-management.io" at the cluster scope"#,
        ),
        (
            message("get", "secrets", "ns/s"),
            r#"secrets "s" is forbidden: User "x" cannot get resource "secrets" in API group "" in the namespace "ns""#,
        ),
        (
            message("patch", "managedclusters.cluster/status", "-/c2"),
            r#"managedclusters.cluster.open-cluster-management.io "c2" is forbidden: User "x" cannot patch resource "managedclusters/status" in API group "cluster.open-cluster-management.io" at the cluster scope"#,
        ),
        (message("get", "/metrics", "-/-"), r#"forbidden: User "x" cannot get path "/metrics""#),
    ];
    for (said, expected) in table {
        assert_eq!(said, expected);
    }
}
