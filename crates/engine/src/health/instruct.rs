//! The instructions in a rendered work: which digest each probed object carries, and what the agent
//! is to report about it.
//!
//! An agent uses the feedback rules of the first entry of `manifestConfigs` that matches an object.
//! So every probed object gets exactly one entry of its own, placed first, with our rules and every
//! rule of the author's that matches it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use aviary_api::names::{self, annotations};
use aviary_api::work::{ManifestConfigOption, ServerSideApplyConfig, UpdateStrategy};
use serde_json::{Map, Value, json};

use super::probes::{self, DIGEST, PREFIX, Probe};
use super::well_known::without_repeated_names;
use crate::hash;

/// Reported of an object that cannot carry the digest of what is wanted now.
pub(crate) const NAME: &str = "aviary-name";

/// The condition that ends all writes of an object and, once every object of a work has it, of the
/// work.
const COMPLETE: &str = "Complete";

/// An object of a template, as far as probing it depends on its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> ObjectId<'a> {
    pub(crate) fn of(manifest: &'a Value) -> Option<Self> {
        let metadata = manifest.get("metadata")?;
        let version = manifest.get("apiVersion")?.as_str()?;
        Some(Self {
            group: version.split_once('/').map_or("", |(group, _)| group),
            kind: manifest.get("kind")?.as_str()?,
            namespace: metadata.get("namespace").and_then(Value::as_str).unwrap_or_default(),
            name: metadata.get("name")?.as_str()?,
        })
    }

    /// For people: `Deployment greeter/greeter`.
    pub(crate) fn label(&self) -> String {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }
}

/// Stands for the names of an object. Equal on every cluster, also where the object is named after
/// the cluster, so that most clusters of a fleet have equal works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectMark(u64);

impl ObjectMark {
    pub(crate) fn of(manifest: &Value, cluster: &str) -> Option<Self> {
        let ObjectId { group, kind, namespace, name } = ObjectId::of(manifest)?;
        let mut hasher = DefaultHasher::new();
        for part in [group, kind, namespace, name] {
            match cluster.is_empty() || !part.contains(cluster) {
                true => part.hash(&mut hasher),
                false => part.replace(cluster, "{{CLUSTER_NAME}}").hash(&mut hasher),
            }
        }
        Some(Self(hasher.finish()))
    }
}

/// How an object is probed. `None`: its existence is all that can be asked of it, or its author
/// asked to ignore its health.
pub(crate) fn probe_of(manifest: &Value) -> Option<&'static Probe> {
    let id = ObjectId::of(manifest)?;
    let ignored = manifest
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(annotations::HEALTH))
        .is_some_and(|value| value == annotations::HEALTH_IGNORE);
    if ignored {
        return None;
    }
    let built_in = probes::built_in(id.group, id.kind);
    built_in.or_else(|| (!probes::has_only_existence(id.group)).then_some(&probes::CUSTOM))
}

/// A manifest that is probed. Its variables are filled in, but for the names of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbedManifest {
    /// For people: `Deployment greeter/greeter`.
    pub(crate) label: String,
    /// An unchanged manifest keeps it from revision to revision.
    digest: String,
    /// What of it takes no effect when it changes under its old name, as a digest, and why not.
    fixed: Option<(NoEffect, String)>,
    /// Its content depends on the namespace of the agent.
    names_namespace: bool,
}

/// Why a change of an object under its old name takes no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoEffect {
    /// Agents create it and never change it.
    CreatedOnce,
    /// Its controller does not replace the pods that run.
    KeepsPods,
}

impl std::fmt::Display for NoEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::CreatedOnce => "agents create it only once: put {{VERSION}} into its name",
            Self::KeepsPods => {
                "Kubernetes does not replace its pods: use a Deployment, or put {{VERSION}} into its name"
            }
        })
    }
}

impl ProbedManifest {
    /// `None`: it is not probed. The author's `manifestConfigs` may say how it is written.
    pub(crate) fn of(manifest: &Value, author: &[Value]) -> Option<Self> {
        let (probe, id) = (probe_of(manifest)?, ObjectId::of(manifest)?);
        let has_strategy = |entry: &Value| {
            let stated = entry.get("updateStrategy").and_then(|strategy| strategy.get("type"));
            stated.is_some_and(|stated| stated != "CreateOnly") && matches(entry, id, probe.resource)
        };
        let digest = digest(manifest);
        let fixed = if probe.create_only && !author.iter().any(has_strategy) {
            Some((NoEffect::CreatedOnce, digest.clone()))
        } else if probe.keeps_pods() {
            let pods = manifest.pointer("/spec/template").unwrap_or(&Value::Null);
            Some((NoEffect::KeepsPods, self::digest(pods)))
        } else {
            None
        };
        let names_namespace = manifest.to_string().contains("INSTALL_NAMESPACE}}");
        Some(Self { label: id.label(), digest, fixed, names_namespace })
    }

    /// What the object carries. One that agents create only once keeps it when the agent moves to
    /// another namespace, unless its own content changes with that.
    fn mark(&self, install_namespace: &str) -> String {
        let is_created_once = matches!(self.fixed, Some((NoEffect::CreatedOnce, _)));
        match is_created_once && !self.names_namespace {
            true => self.digest.clone(),
            false => format!("{}.{install_namespace}", self.digest),
        }
    }

    /// Why it does not become what it should be, where it has another content than the object of
    /// this name before.
    pub(crate) fn no_effect_after(&self, before: &Self) -> Option<NoEffect> {
        let (why, fixed) = self.fixed.as_ref().filter(|_| self.label == before.label)?;
        let was = before.fixed.as_ref().map_or(&before.digest, |(_, was)| was);
        (fixed != was).then_some(*why)
    }
}

fn digest(manifest: &Value) -> String {
    hash::digest(manifest).as_str().chars().take(20).collect()
}

/// An annotation of a manifest that only rendering may add: with it an author could forge evidence.
pub(crate) fn reserved_annotation(manifest: &Value) -> Option<&String> {
    let annotations = manifest.pointer("/metadata/annotations")?.as_object()?;
    annotations.keys().find(|key| key.starts_with(annotations::OBJECT_DIGEST_PREFIX))
}

/// The annotation that carries the digest. Two add-ons may ship the same object, so the key names
/// the add-on.
pub(crate) fn digest_key(addon: &str) -> String {
    let addon: String = hash::digest(&Value::from(addon)).as_str().chars().take(8).collect();
    format!("{}{addon}", annotations::OBJECT_DIGEST_PREFIX)
}

/// What to instruct an agent about.
#[derive(Debug)]
pub(crate) struct Instructions<'a> {
    pub(crate) addon: &'a str,
    pub(crate) install_namespace: &'a str,
    /// `manifestConfigs` of the author, with variables filled in.
    pub(crate) author: &'a [Value],
    /// The CustomResourceDefinitions of the template, from which plurals are taken.
    pub(crate) definitions: Vec<Value>,
}

impl Instructions<'_> {
    /// Adds digests to the manifests that are probed, and returns the `manifestConfigs` of their
    /// work.
    pub(crate) fn give(&self, manifests: &mut [Value], probed: &[Option<ProbedManifest>]) -> Vec<Value> {
        let key = digest_key(self.addon);
        let mut own = Vec::new();
        let mut replaced = BTreeSet::new();
        let mut watched = BTreeSet::new();
        for (manifest, probed) in manifests.iter_mut().zip(probed) {
            let Some((entry, matching)) = self.entry(manifest, probed.as_ref(), &key) else { continue };
            replaced.extend(matching.iter().filter(|(_, entry)| is_exact(entry)).map(|(at, _)| *at));
            watched.extend(matching.iter().map(|(at, _)| *at));
            own.push(entry.value);
            if let Some(probed) = probed.as_ref().filter(|_| entry.marked) {
                annotate(manifest, &key, probed.mark(self.install_namespace));
            }
        }
        let rest = self.author.iter().enumerate().filter(|(at, _)| !replaced.contains(at));
        own.extend(rest.map(|(at, entry)| {
            let mut entry = entry.clone();
            if watched.contains(&at) {
                watch(&mut entry);
            }
            entry
        }));
        own
    }

    /// The entry of one object, and the author's entries that match it. `None`: it needs none.
    fn entry(
        &self,
        manifest: &Value,
        probed: Option<&ProbedManifest>,
        key: &str,
    ) -> Option<(Entry, Vec<(usize, &Value)>)> {
        let id = ObjectId::of(manifest)?;
        let (probe, asks) = match probe_of(manifest).filter(|_| probed.is_some()) {
            Some(probe) => (probe, true),
            // Its health is ignored, and still it cannot be updated in place.
            None => (probes::built_in(id.group, id.kind).filter(|probe| probe.create_only)?, false),
        };
        let resource = self.resource(probe, id)?;
        let matching: Vec<(usize, &Value)> =
            self.author.iter().enumerate().filter(|(_, entry)| matches(entry, id, &resource)).collect();
        Some((Entry::new(probe, asks, id, &resource, &matching, key), matching))
    }

    /// About how many bytes an object causes in its work beside its manifest: its digest, its
    /// entry, and what an agent reports about it.
    pub(crate) fn caused_by(&self, manifest: &Value, probed: Option<&ProbedManifest>) -> usize {
        const REPORT: usize = 1024;
        const VALUE: usize = 128;
        let key = digest_key(self.addon);
        let Some((entry, _)) = self.entry(manifest, probed, &key) else { return REPORT };
        let rules = entry.value.get("feedbackRules").and_then(Value::as_array).into_iter().flatten();
        let paths = rules.filter_map(|rule| rule.get("jsonPaths")?.as_array()).map(Vec::len).sum::<usize>();
        let digest = key.len() + names::MAX_NAME + 32;
        REPORT + paths * VALUE + digest + entry.value.to_string().len()
    }

    /// Whether an object is to be probed and cannot be, because the plural of its kind is unknown.
    pub(crate) fn lacks_plural(&self, manifest: &Value) -> bool {
        let probed = probe_of(manifest).zip(ObjectId::of(manifest));
        probed.is_some_and(|(probe, id)| self.resource(probe, id).is_none())
    }

    /// The plural of an object's kind: of a built-in kind, of a definition in the same template, or
    /// of an entry of the author's that names the object.
    fn resource(&self, probe: &'static Probe, id: ObjectId<'_>) -> Option<String> {
        if !probe.resource.is_empty() {
            return Some(probe.resource.to_owned());
        }
        let defined = self.definitions.iter().find_map(|definition| {
            let spec = definition.get("spec")?;
            let same = spec.get("group")? == id.group && spec.pointer("/names/kind")? == id.kind;
            spec.pointer("/names/plural").filter(|_| same)?.as_str()
        });
        let stem: String = id.kind.to_lowercase().chars().take(id.kind.chars().count().max(2) - 1).collect();
        let named = || {
            let resources = self.author.iter().filter_map(|entry| {
                let resource = entry.pointer("/resourceIdentifier/resource")?.as_str()?;
                (resource.starts_with(&stem) && matches(entry, id, resource)).then_some(resource)
            });
            // The plural of a kind is shorter than that of one whose name begins like it.
            resources.min_by_key(|resource| resource.len())
        };
        defined.or_else(named).map(str::to_owned)
    }
}

/// One entry of `manifestConfigs` for one probed object.
struct Entry {
    value: Value,
    /// The object carries a digest.
    marked: bool,
}

impl Entry {
    fn new(
        probe: &'static Probe,
        asks: bool,
        id: ObjectId<'_>,
        resource: &str,
        author: &[(usize, &Value)],
        key: &str,
    ) -> Self {
        let lists = |field: &str| -> Vec<&Value> {
            author.iter().filter_map(|(_, entry)| entry.get(field)?.as_array()).flatten().collect()
        };
        let strategy = author.iter().find_map(|(_, entry)| entry.get("updateStrategy")).cloned();
        let strategy = strategy.or_else(|| probe.create_only.then(|| json!({"type": "CreateOnly"})));
        let conditions = unique(lists("conditionRules"), "condition");
        let completes =
            conditions.iter().any(|rule| rule.get("condition").is_some_and(|one| one == COMPLETE));
        let kind = strategy.as_ref().and_then(|strategy| strategy.get("type")?.as_str());
        // Such objects are not written again, so they cannot carry the digest of what is wanted
        // now.
        let bound = asks && !matches!(kind, Some("CreateOnly" | "ReadOnly")) && !completes;
        // A Job or a Pod carries the digest of what it was created from: another one has not run.
        let marked = bound || asks && probe.create_only && kind == Some("CreateOnly");
        let mut paths = Vec::new();
        if !bound {
            paths.push(json!({"name": NAME, "path": ".metadata.name"}));
        }
        if marked {
            let path = format!(".metadata.annotations.{}", key.replace('.', r"\."));
            paths.push(json!({"name": DIGEST, "path": path}));
        }
        paths.extend(probe.paths.iter().map(|(name, path)| json!({"name": name, "path": path})));
        let mut rules = Vec::new();
        if asks {
            rules.push(json!({"type": "JSONPaths", "jsonPaths": paths}));
        }
        rules.extend(without_repeated_names(lists("feedbackRules"), id));
        let mut identifier = json!({"group": id.group, "resource": resource, "name": id.name});
        if !id.namespace.is_empty() {
            identifier["namespace"] = id.namespace.into();
        }
        let mut value = json!({"resourceIdentifier": identifier});
        if !rules.is_empty() {
            value["feedbackRules"] = rules.into();
            watch(&mut value);
        }
        if let Some(strategy) = strategy {
            value["updateStrategy"] = strategy;
        }
        if !conditions.is_empty() {
            value["conditionRules"] = conditions.into();
        }
        Self { value, marked }
    }
}

fn watch(entry: &mut Value) {
    entry["feedbackScrapeType"] = "Watch".into();
}

fn annotate(manifest: &mut Value, key: &str, value: String) {
    let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), value.into());
    }
}

/// Whether an entry of the author's matches an object, as an agent matches it: `*` in a name or a
/// namespace matches any number of characters.
fn matches(entry: &Value, id: ObjectId<'_>, resource: &str) -> bool {
    let field = |name: &str| entry.get("resourceIdentifier")?.get(name)?.as_str();
    field("group").unwrap_or_default() == id.group
        && field("resource") == Some(resource)
        && glob(field("name").unwrap_or_default(), id.name)
        && glob(field("namespace").unwrap_or_default(), id.namespace)
}

fn is_exact(entry: &Value) -> bool {
    let field = |name: &str| entry.get("resourceIdentifier")?.get(name)?.as_str();
    ["name", "namespace"].into_iter().all(|name| !field(name).unwrap_or_default().contains('*'))
}

fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

/// The values, of each `key` the first.
fn unique(values: Vec<&Value>, key: &str) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    values.into_iter().filter(|value| seen.insert(value.get(key).map(Value::to_string))).cloned().collect()
}

/// What is wrong with the `manifestConfigs` of a template of so many manifests.
pub(crate) fn fault(author: &[Value], manifests: usize) -> Option<String> {
    author.iter().enumerate().find_map(|(at, entry)| {
        let rules = |field: &str| entry.get(field).and_then(Value::as_array).into_iter().flatten();
        let forged = rules("feedbackRules")
            .filter_map(|rule| rule.get("jsonPaths")?.as_array())
            .flatten()
            .filter_map(|path| path.get("name")?.as_str())
            .find(|name| name.starts_with(PREFIX));
        if let Some(name) = forged {
            return Some(format!(
                "manifestConfigs[{at}]: the feedback name {name:?} is reserved: use one that does not begin with {PREFIX}"
            ));
        }
        (completes(entry) && manifests > 1).then(|| {
            format!(
                "manifestConfigs[{at}]: a rule for the condition Complete ends all writes of its work: give that object a template of its own"
            )
        })
    })
}

/// Whether an entry has a rule for the condition that ends all writes of its work.
pub(crate) fn completes(entry: &Value) -> bool {
    let mut rules = entry.get("conditionRules").and_then(Value::as_array).into_iter().flatten();
    rules.any(|rule| rule.get("condition").is_some_and(|one| one == COMPLETE))
}

/// The digest of the instructions in a work, to notice that somebody has changed them. Values that
/// an API server fills in by default, and fields that an older one drops, do not count.
pub(crate) fn configs_digest(configs: &[ManifestConfigOption]) -> String {
    let plain: Vec<ManifestConfigOption> = configs.iter().map(without_defaults).collect();
    digest(&json!(plain))
}

fn without_defaults(entry: &ManifestConfigOption) -> ManifestConfigOption {
    let mut entry = entry.clone();
    entry.feedback_scrape_type = None;
    let identifier = &mut entry.resource_identifier;
    identifier.group = identifier.group.take().filter(|group| !group.is_empty());
    identifier.namespace = identifier.namespace.take().filter(|namespace| !namespace.is_empty());
    if let Some(strategy) = &mut entry.update_strategy {
        strategy.type_ = strategy.type_.take().filter(|type_| type_ != "Update");
        if let Some(apply) = &mut strategy.server_side_apply {
            apply.field_manager = apply.field_manager.take().filter(|manager| manager != "work-agent");
            apply.force = apply.force.take().filter(|force| *force);
            for field in &mut apply.ignore_fields {
                if field.condition.is_empty() {
                    field.condition = "OnSpokePresent".to_owned();
                }
            }
        }
        strategy.server_side_apply =
            strategy.server_side_apply.take().filter(|apply| *apply != ServerSideApplyConfig::default());
    }
    entry.update_strategy = entry.update_strategy.take().filter(|one| *one != UpdateStrategy::default());
    entry
}
