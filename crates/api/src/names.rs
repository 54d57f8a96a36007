//! Well-known names: groups, resources, labels, annotations, finalizers, condition types.

/// Group of the add-on kinds.
pub const ADDON_GROUP: &str = "addon.open-cluster-management.io";
/// Group of ManagedCluster, Placement and related kinds.
pub const CLUSTER_GROUP: &str = "cluster.open-cluster-management.io";
/// Group of ManifestWork.
pub const WORK_GROUP: &str = "work.open-cluster-management.io";

/// Resource of ClusterManagementAddOn.
pub const CLUSTER_MANAGEMENT_ADDONS: &str = "clustermanagementaddons";
/// Resource of ManagedClusterAddOn.
pub const MANAGED_CLUSTER_ADDONS: &str = "managedclusteraddons";
/// Resource of AddOnHubConfig.
pub const ADDON_HUB_CONFIGS: &str = "addonhubconfigs";
/// Resource of AddOnDeploymentConfig.
pub const ADDON_DEPLOYMENT_CONFIGS: &str = "addondeploymentconfigs";
/// Resource of AddOnTemplate.
pub const ADDON_TEMPLATES: &str = "addontemplates";
/// Resource name of AddOnRolloutPolicy.
pub const ADDON_ROLLOUT_POLICIES: &str = "addonrolloutpolicies";
/// Resource name of AddOnRolloutRecord.
pub const ADDON_ROLLOUT_RECORDS: &str = "addonrolloutrecords";
/// Resource of ManagedCluster.
pub const MANAGED_CLUSTERS: &str = "managedclusters";
/// Resource of Placement.
pub const PLACEMENTS: &str = "placements";
/// Resource of PlacementDecision.
pub const PLACEMENT_DECISIONS: &str = "placementdecisions";
/// Resource of ManifestWork.
pub const MANIFEST_WORKS: &str = "manifestworks";

/// The default namespace of an agent on the managed cluster.
pub const DEFAULT_INSTALL_NAMESPACE: &str = "open-cluster-management-agent-addon";
/// The namespace on the hub whose configs every instance may use.
pub const DEFAULT_CONFIG_NAMESPACE: &str = "open-cluster-management";

/// The longest name of a namespace or cluster.
pub const MAX_NAME: usize = 63;

/// The value of a version that is not known.
pub const UNKNOWN_VERSION: &str = "unknown";

/// Label keys.
pub mod labels {
    /// On works, revisions and instances: the add-on they belong to.
    pub const ADDON_NAME: &str = "open-cluster-management.io/addon-name";
    /// On works in another cluster's namespace: the namespace of the instance they belong to.
    pub const ADDON_NAMESPACE: &str = "open-cluster-management.io/addon-namespace";
    /// On works: the version that was rendered.
    pub const ADDON_VERSION: &str = "open-cluster-management.io/addon-version";
    /// The same, as the earlier design documents spell it.
    pub const DRAFT_ADDON_VERSION: &str = "addon-version";
    /// On Jobs and Pods of a template: the same as the annotation
    /// [`annotations::PRE_DELETE_HOOK`](super::annotations::PRE_DELETE_HOOK), in OCM's older
    /// spelling.
    pub const PRE_DELETE_HOOK: &str = "open-cluster-management.io/addon-pre-delete";
    /// On completed revisions: the placement has been rolled back to an earlier one.
    pub const WITHDRAWN: &str = "addon.open-cluster-management.io/withdrawn";
    /// On instances that an install strategy created; the value is the strategy's type.
    pub const INSTALLED_BY_STRATEGY: &str = "addon.open-cluster-management.io/installed-by-strategy";
    /// On PlacementDecisions: the placement they belong to.
    pub const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
    /// On PlacementDecisions: the number of their decision group.
    pub const DECISION_GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
    /// On PlacementDecisions: the name of their decision group.
    pub const DECISION_GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
    /// On ManagedClusters: the set they belong to.
    pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
}

/// Annotation keys.
pub mod annotations {
    /// On a manifest of an AddOnTemplate: the version of the template, on a hub whose schema has no
    /// `spec.version`. It is part of the content, so it is hashed with it.
    pub const TEMPLATE_VERSION: &str = "addon.open-cluster-management.io/template-version";
    /// On works: the hash of each config that was rendered, as a JSON map.
    pub const CONFIGS_SPEC_HASH: &str = "configsSpecHash";
    /// The same, as some writers spell it.
    pub const CONFIG_SPEC_HASH: &str = "configSpecHash";
    /// The same, as OCM spells it.
    pub const OCM_CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";
    /// All three, in the order in which they are read.
    pub const ALL_CONFIG_SPEC_HASHES: [&str; 3] = [CONFIGS_SPEC_HASH, OCM_CONFIG_SPEC_HASH, CONFIG_SPEC_HASH];

    /// On works: the inputs of rendering that no config hash covers.
    pub const RENDERED_FROM: &str = "addon.open-cluster-management.io/rendered-from";
    /// On works: the digest of the rendered manifests, to detect edits by others.
    pub const RENDERED_DIGEST: &str = "addon.open-cluster-management.io/rendered-digest";
    /// On works: the digest of what the agent is asked to report, to detect edits by others. A work
    /// without it was not rendered with probes.
    pub const PROBES_DIGEST: &str = "addon.open-cluster-management.io/probes-digest";
    /// On objects of a work, followed by a hash of the add-on's name: the digest of the object's
    /// manifest, which the agent reports together with the object's status.
    pub const OBJECT_DIGEST_PREFIX: &str = "addon.open-cluster-management.io/digest-";
    /// On manifests of a template: `ignore` settles a cluster without asking for the health of the
    /// object.
    pub const HEALTH: &str = "addon.open-cluster-management.io/health";
    /// The value of [`HEALTH`] that leaves an object out.
    pub const HEALTH_IGNORE: &str = "ignore";

    /// On manifests of a template: the object stays on the cluster when the add-on is deleted.
    pub const DELETION_ORPHAN: &str = "addon.open-cluster-management.io/deletion-orphan";
    /// On Jobs and Pods of a template: they run when an instance is deleted, before anything is
    /// removed, and never at install.
    pub const PRE_DELETE_HOOK: &str = "addon.open-cluster-management.io/addon-pre-delete";

    /// On such Jobs and Pods: how long the hooks may take before the instance is deleted without
    /// them.
    pub const PRE_DELETE_DEADLINE: &str = "addon.open-cluster-management.io/addon-pre-delete-deadline";

    /// On ManagedClusters of an OCM hub: annotations with this prefix are copied to new instances
    /// of the cluster.
    pub const ADDON_PREFIX: &str = "addon.open-cluster-management.io/";
    /// On instances: the cluster on which the agent runs, if not on its own. OCM's name.
    pub const HOSTING_CLUSTER_NAME: &str = "addon.open-cluster-management.io/hosting-cluster-name";
    /// On ManagedClusters: `"true"` excludes the cluster from install strategies.
    pub const DISABLE_AUTOMATIC_INSTALLATION: &str =
        "addon.open-cluster-management.io/disable-automatic-installation";
    /// On add-ons: the approved number of deletions.
    pub const ALLOW_DELETIONS: &str = "addon.open-cluster-management.io/allow-deletions";
    /// On add-ons: with any value, works of an earlier version of Aviary are rendered anew, with
    /// probes.
    pub const REPROBE: &str = "addon.open-cluster-management.io/reprobe";
    /// On add-ons: the term of the manager that started the last wave. A manager with an older term
    /// starts nothing. On instances: the term of a manager that invalidated the writes of an
    /// earlier one.
    pub const MANAGER_TERM: &str = "addon.open-cluster-management.io/manager-term";
    /// Next to the term: the identity of the manager that wrote it. If the Lease was lost, two
    /// managers may have had the same term.
    pub const MANAGER_IDENTITY: &str = "addon.open-cluster-management.io/manager-identity";
    /// On the Lease: the manager that finished its writes and released the Lease.
    pub const HANDED_OVER_BY: &str = "addon.open-cluster-management.io/handed-over-by";
    /// On the Lease: the add-ons for which the leader does nothing, and why, as JSON.
    pub const SKIPPED_ADDONS: &str = "addon.open-cluster-management.io/skipped-add-ons";
    /// On Placements: `"true"` excludes the placement from our placement controller.
    pub const SCHEDULING_DISABLED: &str =
        "cluster.open-cluster-management.io/experimental-scheduling-disable";
    /// On add-ons: `self` leaves the add-on to its own manager.
    pub const LIFECYCLE: &str = "addon.open-cluster-management.io/lifecycle";
    /// The value of [`LIFECYCLE`] that excludes an add-on.
    pub const LIFECYCLE_SELF: &str = "self";
}

/// Finalizers.
pub mod finalizers {
    /// On instances: pre-delete hooks have to run before the instance goes. OCM's name.
    pub const PRE_DELETE_HOOK: &str = "addon.open-cluster-management.io/addon-pre-delete";
    /// On stored revisions: hooks of instances may still have to be rendered from them.
    pub const HOOK_CONTENT: &str = "addon.open-cluster-management.io/hook-content";
    /// On works: the agent still has to remove what it applied.
    pub const MANIFEST_WORK_CLEANUP: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
    /// On ManagedClusters: the hub still has to remove what belongs to the cluster.
    pub const CLUSTER_RESOURCE_CLEANUP: &str = "cluster.open-cluster-management.io/api-resource-cleanup";
}

/// Condition types.
pub mod conditions {
    /// Instance, and placement of an add-on: a revision is being applied.
    pub const PROGRESSING: &str = "Progressing";
    /// Instance: its configs are found and supported.
    pub const CONFIGURED: &str = "Configured";
    /// Instance and work: everything that was applied is available.
    pub const AVAILABLE: &str = "Available";
    /// Instance, on an OCM hub: all its works are applied. OCM's name. If the add-on has its own
    /// manager, that manager writes the condition.
    pub const MANIFEST_APPLIED: &str = "ManifestApplied";
    /// Instance: its agent can register, and has its rights. OCM's name.
    pub const REGISTRATION_APPLIED: &str = "RegistrationApplied";
    /// What OCM says in that condition when it is True, whatever the reason.
    pub const REGISTRATION_CONFIGURED: &str = "Registration of the addon agent is configured";
    /// Instance: whether it may run on the hosting cluster that it names. OCM's name. If the add-on
    /// has its own manager, that manager writes the condition.
    pub const HOSTING_CLUSTER_VALIDITY: &str = "HostingClusterValidity";
    /// Work: everything has been applied.
    pub const APPLIED: &str = "Applied";
    /// Instance and work: something is degraded.
    pub const DEGRADED: &str = "Degraded";
    /// Instance: the assigned revision is applied and healthy; the message holds the start time of
    /// that revision.
    pub const REVISION_HEALTHY: &str = "RevisionHealthy";
    /// Instance that is being deleted: its pre-delete hooks have completed. OCM's name.
    pub const HOOK_COMPLETED: &str = "HookManifestCompleted";
    /// Add-on: all its placements could be read.
    pub const PLACEMENTS_RESOLVED: &str = "PlacementsResolved";
    /// Add-on, on a hub of OCM: every instance belongs to the install strategy.
    pub const INSTANCES_ADOPTED: &str = "InstancesAdopted";
    /// Add-on: the brake holds deletions until they are approved.
    pub const DELETIONS_HELD: &str = "DeletionsHeld";
    /// Placement of an add-on: none of its clusters is unhealthy.
    pub const HEALTHY: &str = "Healthy";
    /// Add-on: every placement has settled on the desired revision.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Add-on, for kstatus: a change is in progress.
    pub const RECONCILING: &str = "Reconciling";
    /// Add-on, for kstatus: nothing continues until somebody acts.
    pub const STALLED: &str = "Stalled";
    /// Add-on: some clusters that should get it have no namespace on the hub.
    pub const NAMESPACES_MISSING: &str = "NamespacesMissing";
    /// Add-on: the hub refuses what is to be written for some clusters.
    pub const WRITES_REFUSED: &str = "WritesRefused";
    /// Add-on: its whole spec is usable.
    pub const VALID: &str = "Valid";
    /// ManagedCluster: the hub can reach it.
    pub const CLUSTER_AVAILABLE: &str = "ManagedClusterConditionAvailable";
    /// ManagedCluster: it has joined the hub.
    pub const CLUSTER_JOINED: &str = "ManagedClusterJoined";
    /// ManagedCluster: the hub has accepted it.
    pub const CLUSTER_HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
    /// Placement: as many clusters were selected as requested.
    pub const PLACEMENT_SATISFIED: &str = "PlacementSatisfied";
    /// Placement: its spec is invalid.
    pub const PLACEMENT_MISCONFIGURED: &str = "PlacementMisconfigured";
    /// ManagedClusterSet: no cluster belongs to it.
    pub const CLUSTER_SET_EMPTY: &str = "ClusterSetEmpty";
    /// ManagedClusterSetBinding: the set that it names exists.
    pub const CLUSTER_SET_BOUND: &str = "Bound";
}
