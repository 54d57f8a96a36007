//! Sorts the objects of the files by kind and reads each into the engine's model. An unusable
//! object becomes a finding.

use std::collections::BTreeMap;
use std::sync::Arc;

use aviary_api::names::{self, labels};
use aviary_api::{
    ClusterManagementAddOn, ManagedCluster, ManagedClusterAddOn, ManifestWork, Placement, PlacementDecision,
};
use aviary_engine::by_cluster::ByCluster;
use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::hash::Hash;
use aviary_engine::name::{ClusterName, PlacementName, Text};
use aviary_engine::normalise;
use aviary_engine::observed::{Cluster, Instance, LiveConfig, StatusFields, Template, Work, WorkState};
use aviary_engine::policy::Policy;
use aviary_engine::problem::Problem;
use aviary_engine::reason::Reason;
use aviary_engine::shared::Pool;
use serde::de::DeserializeOwned;

use crate::documents::Document;
use crate::findings::Finding;
use crate::kinds::Kinds;

#[derive(Debug)]
pub(super) struct ReadInstance<'d> {
    pub(super) document: &'d Document,
    pub(super) instance: Instance,
    pub(super) problems: Vec<Problem>,
}

#[derive(Debug, Default)]
pub(super) struct HubObjects<'d> {
    pub(super) addons: Vec<(&'d Document, ClusterManagementAddOn)>,
    pub(super) has_clusters: bool,
    pub(super) clusters: ByCluster<Cluster>,
    /// By name of the add-on.
    pub(super) instances: BTreeMap<Text, Vec<ReadInstance<'d>>>,
    pub(super) works: BTreeMap<Text, BTreeMap<ClusterName, Vec<Work>>>,
    pub(super) placements: BTreeMap<PlacementName, Placement>,
    pub(super) decisions: BTreeMap<PlacementName, Vec<PlacementDecision>>,
    pub(super) configs: BTreeMap<ConfigRef, LiveConfig>,
    pub(super) former: Vec<LiveConfig>,
    pub(super) templates: BTreeMap<Text, Vec<Template>>,
    pub(super) policies: Vec<Arc<Policy>>,
    pub(super) findings: Vec<Finding>,
    statuses: Pool<StatusFields>,
    states: Pool<WorkState>,
    hashes: Pool<Vec<(GroupResource, Hash)>>,
}

impl<'d> HubObjects<'d> {
    pub(super) fn read(&mut self, document: &'d Document, kinds: &Kinds) {
        let known = kinds.of(document).map(|kind| kind.kind.as_str()).unwrap_or_default();
        match known {
            "ClusterManagementAddOn" => {
                let addon = self.typed(document);
                self.addons.extend(addon.map(|addon| (document, addon)));
            }
            "ManagedClusterAddOn" => self.instance(document),
            "AddOnRolloutPolicy" => {
                let policy = self.typed(document).map(|policy| Arc::new(normalise::policy(&policy)));
                self.policies.extend(policy);
            }
            "AddOnRolloutRecord" => {}
            "ManagedCluster" => self.cluster(document),
            "ManifestWork" => self.work(document),
            "Placement" => {
                let name = PlacementName::new(document.namespace(), document.name());
                let placement = self.typed(document);
                self.placements.extend(placement.map(|placement| (name, placement)));
            }
            "PlacementDecision" => self.decision(document),
            _ if is_config(document) => self.config(document, kinds),
            _ => {}
        }
    }

    fn typed<T: DeserializeOwned>(&mut self, document: &Document) -> Option<T> {
        match serde_json::from_value(document.value.clone()) {
            Ok(object) => Some(object),
            Err(error) => {
                self.findings.push(Finding::of(
                    document,
                    "",
                    "Unreadable",
                    format!("cannot be read: {error}"),
                ));
                None
            }
        }
    }

    fn cluster(&mut self, document: &'d Document) {
        self.has_clusters = true;
        let Some(object) = self.typed::<ManagedCluster>(document) else { return };
        match normalise::cluster(&object) {
            Ok(cluster) => {
                self.clusters.insert(cluster.name.clone(), Arc::new(cluster));
            }
            Err(error) => {
                let message =
                    format!("{:?} {error}: add-ons cannot be installed on this cluster", document.name());
                self.findings.push(Finding::of(
                    document,
                    "metadata.name",
                    Reason::ClusterNameInvalid.as_str(),
                    message,
                ));
            }
        }
    }

    fn instance(&mut self, document: &'d Document) {
        let Some(object) = self.typed::<ManagedClusterAddOn>(document) else { return };
        match normalise::instance(&object) {
            Ok((mut instance, problems)) => {
                instance.status = self.statuses.share(instance.status);
                self.instances.entry(document.name().into()).or_default().push(ReadInstance {
                    document,
                    instance,
                    problems,
                });
            }
            Err(error) => {
                let message =
                    format!("{:?} {error}: the instance belongs to no cluster", document.namespace());
                self.findings.push(Finding::of(
                    document,
                    "metadata.namespace",
                    Reason::ClusterNameInvalid.as_str(),
                    message,
                ));
            }
        }
    }

    fn work(&mut self, document: &'d Document) {
        let Some(object) = self.typed::<ManifestWork>(document) else { return };
        if let (Some((addon, mut work)), Some(cluster)) =
            (normalise::work(&object), normalise::cluster_of_work(&object))
        {
            work.state = self.states.share(work.state);
            work.hashes = work.hashes.map(|hashes| self.hashes.share(hashes));
            self.works.entry(addon).or_default().entry(cluster).or_default().push(work);
        }
    }

    fn decision(&mut self, document: &'d Document) {
        let Some(object) = self.typed::<PlacementDecision>(document) else { return };
        let label = object.metadata.labels.as_ref().and_then(|all| all.get(labels::PLACEMENT));
        let Some(label) = label else {
            let message =
                format!("the label {} is missing: the decision belongs to no placement", labels::PLACEMENT);
            self.findings.push(Finding::of(document, "metadata.labels", "NoPlacement", message));
            return;
        };
        let placement = PlacementName::new(document.namespace(), label);
        let (_, problems) = normalise::selection(&bare(&placement), [&object]);
        let wrong = |problem: &Problem| {
            Finding::of(document, "status.decisions", problem.code().as_str(), problem.to_string())
        };
        self.findings.extend(problems.iter().map(wrong));
        self.decisions.entry(placement).or_default().push(object);
    }

    fn config(&mut self, document: &'d Document, kinds: &Kinds) {
        let reference = ConfigRef {
            kind: GroupResource::new(document.group(), &kinds.resource_of(document)),
            namespace: Some(document.namespace()).filter(|namespace| !namespace.is_empty()).map(Into::into),
            name: document.name().into(),
        };
        if reference.kind == *GroupResource::templates() {
            let (addon, template) = normalise::template(&document.value);
            self.templates.entry(addon).or_default().push(template);
        }
        self.configs.insert(reference, normalise::config(&document.value));
    }
}

/// Whether a document may be a config: it is not one of the kinds of the add-on lifecycle itself.
pub(crate) fn is_config(document: &Document) -> bool {
    let of_lifecycle = match document.group() {
        names::ADDON_GROUP => matches!(
            document.kind(),
            "ClusterManagementAddOn" | "ManagedClusterAddOn" | "AddOnRolloutPolicy" | "AddOnRolloutRecord"
        ),
        names::CLUSTER_GROUP | names::WORK_GROUP | "apiextensions.k8s.io" => true,
        _ => document.api_version() == "v1" && document.kind() == "Namespace",
    };
    !of_lifecycle
}

/// A placement of which only the name is known.
pub(super) fn bare(name: &PlacementName) -> Placement {
    let mut placement = Placement::default();
    placement.metadata.namespace = Some(name.namespace.to_string());
    placement.metadata.name = Some(name.name.to_string());
    placement
}
