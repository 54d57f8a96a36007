//! Rendering: from a template and the configs that pin its variables to works (rules, chapter 6).
//!
//! Done in two steps. [`prepare`](Prepared::prepare) does all that is the same for every cluster
//! and finds all that can be wrong, once per pair of hashes. [`Prepared::work`] puts one cluster's
//! names in; that cannot fail. Content comes from the revisions by hash; there is no way from here
//! to "the latest by name".

mod accepted;
mod check;
mod decorate;
pub(crate) mod hooks;
mod node_placement;
mod orphans;
mod variables;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use aviary_api::names::{self, annotations, labels};
use aviary_api::work::ManifestConfigOption;
use serde_json::{Map, Value, json};

use crate::configs::{GroupResource, Pin, version_in};
use crate::hash::{self, Hash};
use crate::health::advice::{self, Advice};
use crate::health::instruct::{self, Instructions, NoEffect, ObjectMark, ProbedManifest};
use crate::name::{ClusterName, Text};
use crate::observed::Observed;
use crate::problem::Problem;
use crate::versions;
use decorate::{Decorations, Wishes};
use variables::{Builtin, Unfilled};

/// A work is split before its manifests pass this many bytes.
pub(crate) const WORK_LIMIT: usize = 400 * 1024;

/// The most objects of a work. With their digests, probes and reports a full work still fits into
/// what an API server stores, and its manifests with their digests into what OCM admits (500 KiB).
pub(crate) const MOST_OBJECTS: usize = 200;

/// The most bytes of a work with its manifests, digests, probes and the reports that they cause. An
/// API server stores up to 1.5 MiB; what others add to a work is left room for.
pub(crate) const STORED_LIMIT: usize = 1024 * 1024;

/// The most that a template may have beside its manifests: every work carries it.
pub(crate) const OPTIONS_LIMIT: usize = 64 * 1024;

/// The most bytes that all manifests of a template may have once they are rendered. Variables
/// multiply: a template that fits into an API server could otherwise render to gigabytes.
pub(crate) const TEMPLATE_LIMIT: usize = 32 * WORK_LIMIT;

/// Of works with more bytes of manifests, only a few are written at once.
const HEAVY: usize = 32 * 1024;

/// The renderer, in the mark of a work. Works of every renderer are accepted as they are, so that
/// an upgrade of the manager rewrites nothing. It stays 1 as long as the first version must
/// recognise our works as its own, should it come back.
const RENDERER: u32 = 1;

/// A template and its variables, checked: it renders, and to how many works is known. The manifests
/// themselves are filled in only when a work is written, one work at a time, so that what is kept
/// does not grow with what variables expand to.
#[derive(Debug, PartialEq)]
pub struct Prepared {
    addon: Text,
    pub template: Text,
    pub version: Option<Text>,
    content: Arc<Value>,
    deployment: Option<Arc<Value>>,
    defined: BTreeMap<String, String>,
    /// What is added to its manifests.
    decorations: Decorations,
    /// The places of the manifests that are deployed: all but the hooks.
    deployed: Vec<usize>,
    /// The places of the pre-delete hooks.
    hooks: Vec<usize>,
    hook_deadline: Duration,
    /// Which of the deployed manifests go into which work: the same for every cluster.
    split: Vec<Range<usize>>,
    /// How many works the first version made of it, which split by size alone.
    first_works: usize,
    /// The bytes of the manifests of the largest work.
    largest: usize,
    /// Each deployed manifest that is probed.
    probed: Vec<Option<ProbedManifest>>,
    /// Names the inputs that no hash pins; with the cluster's own they mark what a work was
    /// rendered from.
    inputs: String,
}

/// The templates used in one snapshot, each prepared once.
#[derive(Debug)]
pub struct Templates<'a> {
    observed: &'a Observed,
    prepared: HashMap<Inputs, Rendering>,
    /// Most clusters of a fleet have the same: the last answer is usually the next one too.
    last: Option<(Inputs, Rendering)>,
}

/// A prepared template, or why there is none. Small to hold and cheap to copy: every cluster has
/// one.
pub type Rendering = Result<Arc<Prepared>, Arc<Problem>>;

/// The hashes of what a work is rendered from: template, deployment config, hub config.
type Inputs = [Option<Hash>; 3];

impl<'a> Templates<'a> {
    pub fn new(observed: &'a Observed) -> Self {
        Self { observed, prepared: HashMap::new(), last: None }
    }

    pub fn observed(&self) -> &'a Observed {
        self.observed
    }

    /// What these configs render to; `None` when they name no template and somebody else writes the
    /// works.
    pub fn prepare<'p>(&mut self, pins: impl Iterator<Item = &'p Pin>) -> Option<Rendering> {
        let mut found: [Option<&Pin>; 3] = [None; 3];
        let [template, deployment, hub_config] = &mut found;
        // Of several, OCM's template agent uses the first.
        for pin in pins {
            let kind = &pin.config.kind;
            if kind == GroupResource::templates() {
                template.get_or_insert(pin);
            } else if kind == GroupResource::deployment_configs() {
                deployment.get_or_insert(pin);
            } else if kind == GroupResource::hub_configs() {
                hub_config.get_or_insert(pin);
            }
        }
        let [template, deployment, hub_config] = found;
        let template = template?;
        if let Some((inputs, prepared)) = &self.last
            && inputs.iter().zip(found).all(|(known, pin)| known.as_ref() == pin.map(|pin| &pin.hash))
        {
            return Some(prepared.clone());
        }
        let inputs: Inputs = found.map(|pin| pin.map(|pin| pin.hash.clone()));
        let observed = self.observed;
        let prepared = self
            .prepared
            .entry(inputs.clone())
            .or_insert_with(|| {
                Prepared::prepare(observed, template, deployment, hub_config).map(Arc::new).map_err(Arc::new)
            })
            .clone();
        self.last = Some((inputs, prepared.clone()));
        Some(prepared)
    }
}

impl Prepared {
    fn prepare(
        observed: &Observed,
        template: &Pin,
        deployment: Option<&Pin>,
        hub_config: Option<&Pin>,
    ) -> Result<Self, Problem> {
        let content = kept(observed, template)?;
        let name = &template.config.name;
        let stated = versions::of_template(content).map(Text::from);
        let version = stated.or_else(|| hub_config.and_then(|pin| version_in(observed.content(pin)?)));
        let configured = match deployment {
            Some(pin) => Some((&*pin.config, kept(observed, pin)?)),
            None => None,
        };
        let mut defined = match configured {
            Some((config, content)) => variables::defined(config, content)?,
            None => BTreeMap::new(),
        };
        if decorate::registers(content) {
            let path = || decorate::HUB_KUBECONFIG_PATH.to_owned();
            defined.entry(decorate::HUB_KUBECONFIG.to_owned()).or_insert_with(path);
        }
        let decorations = Decorations::of(&Wishes {
            addon: &observed.addon.name,
            template: content,
            deployment: configured.map(|(config, content)| (config, &**content)),
            always_environment: observed.served.is_ocm(),
            hub_kubeconfig: defined.get(decorate::HUB_KUBECONFIG).map(String::as_str),
        })?;
        let deployment = configured.map(|(_, content)| Arc::clone(content));
        let inputs = format!("{RENDERER}/{}", version.as_deref().unwrap_or("-"));
        let mut prepared = Self {
            addon: observed.addon.name.clone(),
            template: name.clone(),
            version,
            content: Arc::clone(content),
            deployment,
            defined,
            decorations,
            deployed: Vec::new(),
            hooks: Vec::new(),
            hook_deadline: Duration::ZERO,
            split: Vec::new(),
            first_works: 0,
            largest: 0,
            probed: Vec::new(),
            inputs,
        };
        prepared.check()?;
        prepared.check_works()?;
        Ok(prepared)
    }

    /// The author's `manifestConfigs`: all but the cluster's names is filled in.
    fn author_configs(&self) -> Result<Vec<Value>, Unfilled> {
        let listed = self.agent().and_then(|agent| agent.get("manifestConfigs"));
        let Some(Value::Array(listed)) = listed else { return Ok(Vec::new()) };
        let builtins = Builtin { addon: &self.addon, version: self.version.as_deref() };
        let mut filled = Value::Array(listed.clone());
        variables::fill(&mut filled, &self.defined, &builtins, WORK_LIMIT)?;
        match filled {
            Value::Array(filled) => Ok(filled),
            _ => Ok(Vec::new()),
        }
    }

    /// A manifest for every cluster: all but the cluster's names is filled in.
    fn fill(&self, manifest: &Value) -> Result<Value, Unfilled> {
        let mut filled = manifest.clone();
        if let Some(deployment) = &self.deployment {
            node_placement::apply(&mut filled, deployment);
        }
        let builtins = Builtin { addon: &self.addon, version: self.version.as_deref() };
        variables::fill(&mut filled, &self.defined, &builtins, WORK_LIMIT)?;
        self.decorations.add_to(&mut filled)?;
        Ok(filled)
    }

    /// The manifests of the template, and those that are added to them.
    fn manifest_sources(&self) -> impl Iterator<Item = &Value> {
        self.raw_manifests().iter().chain(&self.decorations.objects)
    }

    fn manifest_source(&self, at: usize) -> Option<&Value> {
        let raw = self.raw_manifests();
        raw.get(at).or_else(|| self.decorations.objects.get(at.checked_sub(raw.len())?))
    }

    /// The namespace of the agent on a cluster whose instance names this one.
    pub(crate) fn install_namespace<'a>(&'a self, of_instance: &'a str) -> &'a str {
        self.decorations.namespace().unwrap_or(of_instance)
    }

    /// The kinds that the template defines, without their schemas. They are worked out before the
    /// manifests are checked: those beyond what all of these may have are left out.
    fn definitions(&self) -> Vec<Value> {
        let builtins = Builtin { addon: &self.addon, version: self.version.as_deref() };
        let mut left = TEMPLATE_LIMIT;
        let definitions = self.raw_manifests().iter().filter(|one| is_definition(one));
        let names = definitions.map(|one| {
            let field = |path| one.pointer(path).cloned().unwrap_or_default();
            json!({"spec": {"group": field("/spec/group"), "names": field("/spec/names")}})
        });
        let filled = names.map_while(|mut names| {
            let most = left.min(WORK_LIMIT);
            match variables::fill(&mut names, &self.defined, &builtins, most) {
                Ok(unused) => left -= most - unused,
                Err(Unfilled::Unknown(_)) => return Some(None),
                Err(Unfilled::TooLarge | Unfilled::TooDense) => return None,
            }
            Some(Some(names))
        });
        filled.flatten().collect()
    }

    fn agent(&self) -> Option<&Map<String, Value>> {
        self.content.pointer("/spec/agentSpec")?.as_object()
    }

    fn raw_manifests(&self) -> &[Value] {
        let listed = self.agent().and_then(|agent| agent.get("workload")?.get("manifests")?.as_array());
        listed.map_or(&[], Vec::as_slice)
    }

    /// The deployed manifests of a work. Beyond the works that every cluster gets there is a copy
    /// of each, for objects that cannot move directly.
    fn range(&self, index: usize) -> Range<usize> {
        let copied = || self.split.get(index.checked_sub(self.works())?);
        self.split.get(index).or_else(copied).cloned().unwrap_or_default()
    }

    /// How many works every cluster gets.
    pub fn works(&self) -> usize {
        self.split.len()
    }

    /// Whether a work of it takes much memory while it is written.
    pub fn is_heavy(&self) -> bool {
        self.largest > HEAVY
    }

    /// The name of the `index`-th work.
    pub fn work_name(&self, index: usize) -> String {
        work_name(&self.addon, index)
    }

    /// The mark of what a cluster's works are rendered from, beside the configs whose hashes they
    /// carry.
    pub fn inputs(&self, install_namespace: &str) -> String {
        format!("{}/{install_namespace}", self.inputs)
    }

    /// Whether a work carries that mark.
    pub fn marks(&self, mark: &str, install_namespace: &str) -> bool {
        let without_renderer = |mark| str::split_once(mark, '/').map(|(_, rest)| rest);
        without_renderer(mark)
            .zip(without_renderer(&self.inputs))
            .and_then(|(mark, inputs)| mark.strip_prefix(inputs)?.strip_prefix('/'))
            == Some(install_namespace)
    }

    /// Which of our works has this name.
    pub fn work_index(&self, name: &str) -> Option<usize> {
        let number = name.strip_prefix("addon-")?.strip_prefix(&*self.addon)?.strip_prefix("-deploy-")?;
        let plain = number.bytes().all(|b| b.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
        number.parse().ok().filter(|_| plain)
    }

    /// Whether one of the works has this name.
    pub fn makes(&self, name: &str) -> bool {
        self.work_index(name).is_some_and(|index| index < self.works())
    }

    /// The version as it stands in a label, where it can.
    pub(crate) fn version_label(&self) -> Option<Text> {
        self.version.clone().filter(|version| is_label_value(version))
    }

    /// The manifests of one work for one cluster.
    pub fn manifests(&self, index: usize, cluster: &ClusterName, install_namespace: &str) -> Vec<Value> {
        let places = self.deployed.get(self.range(index)).unwrap_or_default();
        let raw = places.iter().filter_map(|&at| self.manifest_source(at));
        let install_namespace = self.install_namespace(install_namespace);
        // Whatever cannot be filled in was found when the template was prepared.
        let filled = raw.filter_map(|manifest| self.fill(manifest).ok());
        filled
            .map(|mut manifest| {
                variables::name_cluster(&mut manifest, cluster, install_namespace);
                manifest
            })
            .collect()
    }

    /// The spec of one work for one cluster, and the digest of what the agent is asked to report.
    fn spec(
        &self,
        index: usize,
        cluster: &ClusterName,
        install_namespace: &str,
    ) -> (Map<String, Value>, String) {
        let install_namespace = self.install_namespace(install_namespace);
        let mut manifests = self.manifests(index, cluster, install_namespace);
        let mut author = Value::Array(self.author_configs().unwrap_or_default());
        variables::name_cluster(&mut author, cluster, install_namespace);
        let instructions = Instructions {
            addon: &self.addon,
            install_namespace,
            author: author.as_array().map_or(&[], Vec::as_slice),
            definitions: self.definitions(),
        };
        let probed = self.probed.get(self.range(index)).unwrap_or_default();
        let configs = instructions.give(&mut manifests, probed);
        let read: Vec<ManifestConfigOption> =
            configs.iter().filter_map(|entry| serde_json::from_value(entry.clone()).ok()).collect();
        let options = self.agent().into_iter().flatten();
        let options = options.filter(|(key, _)| !matches!(key.as_str(), "workload" | "manifestConfigs"));
        let mut spec: Map<String, Value> = options.map(|(key, value)| (key.clone(), value.clone())).collect();
        orphans::keep(&mut spec, &manifests, &instructions.definitions);
        // Moved: `json!` would copy them.
        let workload = Map::from_iter([("manifests".to_owned(), Value::Array(manifests))]);
        spec.insert("workload".to_owned(), Value::Object(workload));
        if !configs.is_empty() {
            spec.insert("manifestConfigs".to_owned(), Value::Array(configs));
        }
        (spec, instruct::configs_digest(&read))
    }

    /// An object whose content changes under its old name without any effect, such as a Job, which
    /// agents create once: what is wanted would never run.
    pub(crate) fn ignored_change(&self, before: &Self) -> Option<(&str, NoEffect)> {
        self.probed.iter().flatten().find_map(|probed| {
            let why = before.probed.iter().flatten().find_map(|before| probed.no_effect_after(before))?;
            Some((probed.label.as_str(), why))
        })
    }

    /// What its author should know about the health of its objects.
    pub fn advice(&self) -> Vec<Advice> {
        let author = self.author_configs().unwrap_or_default();
        let instructions = Instructions {
            addon: &self.addon,
            install_namespace: names::DEFAULT_INSTALL_NAMESPACE,
            author: &author,
            definitions: self.definitions(),
        };
        let deployed = self.deployed.iter().filter_map(|&at| Some((at, self.raw_manifests().get(at)?)));
        let filled = deployed.filter_map(|(at, manifest)| Some((at, self.fill(manifest).ok()?)));
        advice::of(filled, &instructions)
    }

    /// The objects of one work for one cluster.
    pub(crate) fn objects(&self, index: usize, site: &WorkSite<'_>) -> Vec<ObjectMark> {
        let manifests = self.manifests(index, site.cluster, site.install_namespace);
        manifests.iter().filter_map(|manifest| ObjectMark::of(manifest, site.cluster.as_str())).collect()
    }

    /// Whether the agent is asked for the health of anything.
    pub(crate) fn is_probed(&self) -> bool {
        self.probed.iter().any(Option::is_some)
    }

    /// The first object of a work whose health is asked for, with its variables as they are.
    pub(crate) fn probed_object(&self, index: usize) -> Option<&str> {
        let probed = self.probed.get(self.range(index))?;
        probed.iter().flatten().next().map(|probed| probed.label.as_str())
    }

    /// One whole work, as it is written.
    pub fn work(&self, index: usize, site: &WorkSite<'_>, told: &[&Pin]) -> Value {
        let (spec, probes_digest) = self.spec(index, site.cluster, site.install_namespace);
        let hashes = hash_annotation(told);
        let manifests = spec.get("workload").and_then(|workload| workload.get("manifests"));
        let digest = hash::digest(manifests.unwrap_or(&Value::Null));
        let mut named = BTreeMap::from([(labels::ADDON_NAME, self.addon.to_string())]);
        if let Some(version) = self.version_label() {
            named.insert(labels::ADDON_VERSION, version.to_string());
        }
        let mut work = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {
                "name": self.work_name(index),
                "namespace": site.cluster.as_str(),
                "labels": named,
                "annotations": {
                    annotations::CONFIGS_SPEC_HASH: hashes,
                    annotations::OCM_CONFIG_SPEC_HASH: hashes,
                    annotations::RENDERED_FROM: self.inputs(site.install_namespace),
                    annotations::RENDERED_DIGEST: digest.as_str(),
                    annotations::PROBES_DIGEST: probes_digest,
                },
                "ownerReferences": [{
                    "apiVersion": "addon.open-cluster-management.io/v1alpha1",
                    "kind": "ManagedClusterAddOn",
                    "name": self.addon,
                    "uid": site.instance_uid,
                }],
            },
        });
        if let Value::Object(fields) = &mut work {
            // Moved: `json!` would copy it.
            fields.insert("spec".to_owned(), Value::Object(spec));
        }
        work
    }
}

/// The cluster that a work is for.
#[derive(Clone, Copy, Debug)]
pub struct WorkSite<'a> {
    pub cluster: &'a ClusterName,
    pub install_namespace: &'a str,
    pub instance_uid: &'a str,
}

/// The name of an add-on's `index`-th work.
pub fn work_name(addon: &str, index: usize) -> String {
    format!("{}{index}", work_prefix(addon))
}

/// What the names of the works that we render begin with.
pub(crate) fn work_prefix(addon: &str) -> String {
    format!("addon-{addon}-deploy-")
}

fn kept<'a>(observed: &'a Observed, pin: &Pin) -> Result<&'a Arc<Value>, Problem> {
    observed
        .content(pin)
        .ok_or_else(|| Problem::RevisionLost { config: (*pin.config).clone(), hash: pin.hash.clone() })
}

/// `"<resource>.<group>/<namespace>/<name>": "<hash>"` for each config.
pub(crate) fn hash_annotation(pins: &[&Pin]) -> String {
    let entries: BTreeMap<String, &str> = pins
        .iter()
        .map(|pin| {
            let namespace = pin.config.namespace.as_deref().unwrap_or_default();
            (format!("{}/{}/{}", pin.config.kind, namespace, pin.config.name), pin.hash.as_str())
        })
        .collect();
    hash::canonical(&json!(entries))
}

fn is_definition(manifest: &Value) -> bool {
    manifest.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition")
}

fn is_label_value(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}
