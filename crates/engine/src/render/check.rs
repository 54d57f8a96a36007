//! Finds all that can be wrong with a template, before anything is rendered from it, and which
//! manifest goes into which work.

use std::collections::BTreeSet;
use std::ops::Range;

use aviary_api::names;
use aviary_api::work::check_spec;
use serde_json::Value;

use super::variables::{self, Unfilled};
use super::{MOST_OBJECTS, OPTIONS_LIMIT, Prepared, STORED_LIMIT, TEMPLATE_LIMIT, WORK_LIMIT};
use crate::content::Density;
use crate::hash;
use crate::health::instruct::{self, Instructions, ProbedManifest};
use crate::name::{ClusterName, Text};
use crate::observed::Unkeepable;
use crate::problem::Problem;

impl Prepared {
    /// Renders every manifest once, to find all that can be wrong with it and into which work it
    /// goes; keeps none of them.
    pub(super) fn check(&mut self) -> Result<(), Problem> {
        let template = self.template.clone();
        if self.raw_manifests().is_empty() {
            return Err(Problem::TemplateEmpty { template });
        }
        let options = self.agent().into_iter().flatten().filter(|(key, _)| *key != "workload");
        let options: usize = options.map(|(key, value)| key.len() + hash::canonical(value).len()).sum();
        if options > OPTIONS_LIMIT {
            return Err(Problem::OptionsTooLarge { template });
        }
        check_names(&template, self.raw_manifests())?;
        self.check_hooks()?;
        let all = 0..self.manifest_sources().count();
        self.deployed = all.filter(|at| self.hooks.binary_search(at).is_err()).collect();
        if self.deployed.is_empty() {
            let why = "it has only pre-delete hooks: add what is to be installed".to_owned();
            return Err(Problem::TemplateMalformed { template, why });
        }
        let (split, probed) = self.lay_out(options)?;
        self.first_works = split.by_size;
        self.largest = split.largest;
        self.split = split.finish();
        self.probed = probed;
        Ok(())
    }

    /// Puts the manifests into works that have so many bytes of options.
    fn lay_out(&self, options: usize) -> Result<(Split, Vec<Option<ProbedManifest>>), Problem> {
        let template = || self.template.clone();
        let author = self.author_configs().unwrap_or_default();
        let shared = options.max(hash::canonical(&Value::Array(author.clone())).len());
        let instructions = Instructions {
            addon: &self.addon,
            install_namespace: names::DEFAULT_INSTALL_NAMESPACE,
            author: &author,
            definitions: self.definitions(),
        };
        let mut split = Split::default();
        let mut density = Density::default();
        let mut probed = Vec::with_capacity(self.deployed.len());
        let mut seen = BTreeSet::new();
        for (at, manifest) in self.manifest_sources().enumerate() {
            let (filled, size) = self.fill_checked(manifest, &mut density)?;
            // Another namespace may have given two objects the same name.
            if let Ok(manifest) = identity(&filled)
                && !seen.insert(manifest.clone())
            {
                return Err(Problem::ManifestDuplicate { template: template(), manifest });
            }
            split.count(size);
            if self.deployed.binary_search(&at).is_ok() {
                let one = ProbedManifest::of(&filled, &author);
                let caused = instructions.caused_by(&filled, one.as_ref());
                if shared + size + caused > STORED_LIMIT {
                    return Err(Problem::OptionsTooLarge { template: template() });
                }
                split.add(size, caused, shared);
                probed.push(one);
            }
            if split.total > TEMPLATE_LIMIT {
                return Err(Problem::TemplateTooLarge { template: template() });
            }
        }
        Ok((split, probed))
    }

    /// A manifest whose variables are filled in, and its size. Sizes are taken at their largest, so
    /// that the split is the same for every cluster.
    fn fill_checked(&self, manifest: &Value, density: &mut Density) -> Result<(Value, usize), Problem> {
        let template = || self.template.clone();
        let shown = || identity(manifest).unwrap_or_default();
        let too_large = || Problem::ManifestTooLarge { template: template(), manifest: shown() };
        let too_dense = || {
            let why = format!("rendered, {}", Unkeepable::TooDense);
            Problem::TemplateMalformed { template: template(), why }
        };
        let filled = self.fill(manifest).map_err(|unfilled| match unfilled {
            Unfilled::Unknown(variable) => Problem::VariableUnknown { template: template(), variable },
            Unfilled::TooLarge => too_large(),
            Unfilled::TooDense => too_dense(),
        })?;
        let text = hash::canonical(&filled);
        let size = text.len() + variables::cluster_names_in(&text) * names::MAX_NAME;
        if size > WORK_LIMIT {
            return Err(too_large());
        }
        // What is added to pods, such as tolerations, is added to each of them.
        density.add(Density::of_text(text.as_bytes()));
        if density.is_too_much() {
            return Err(too_dense());
        }
        if let Some(key) = instruct::reserved_annotation(&filled) {
            let why = format!("the annotation {key} is reserved: remove it from {}", shown());
            return Err(Problem::TemplateMalformed { template: template(), why });
        }
        Ok((filled, size))
    }

    /// Renders every work once, for a cluster of the longest name, and checks it as OCM would: an
    /// agent that cannot decode a work stops altogether. Done once per template and config, however
    /// many clusters have them.
    pub(super) fn check_works(&self) -> Result<(), Problem> {
        let malformed = |why: String| Problem::TemplateMalformed { template: self.template.clone(), why };
        let author = self.author_configs().map_err(|unfilled| match unfilled {
            Unfilled::Unknown(variable) => {
                Problem::VariableUnknown { template: self.template.clone(), variable }
            }
            Unfilled::TooLarge | Unfilled::TooDense => {
                malformed("manifestConfigs are too large once their variables are filled in".to_owned())
            }
        })?;
        if let Some(fault) = instruct::fault(&author, self.deployed.len()) {
            return Err(malformed(fault));
        }
        let Ok(cluster) = ClusterName::parse(&"c".repeat(names::MAX_NAME)) else { return Ok(()) };
        self.check_hook_work(&cluster, names::DEFAULT_INSTALL_NAMESPACE)?;
        (0..self.works()).try_for_each(|index| {
            let (spec, _) = self.spec(index, &cluster, names::DEFAULT_INSTALL_NAMESPACE);
            let faults = check_spec(&Value::Object(spec)).err().unwrap_or_default();
            match faults.first() {
                None => Ok(()),
                Some(fault) => Err(malformed(format!("{}: {}", fault.field, fault.message))),
            }
        })
    }
}

fn check_names(template: &Text, manifests: &[Value]) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    for (index, manifest) in manifests.iter().enumerate() {
        let identity = identity(manifest).map_err(|why| Problem::TemplateMalformed {
            template: template.clone(),
            why: format!("manifests[{index}] {why}"),
        })?;
        if !seen.insert(identity.clone()) {
            return Err(Problem::ManifestDuplicate { template: template.clone(), manifest: identity });
        }
    }
    Ok(())
}

/// What makes a manifest the one it is.
pub(super) fn identity(manifest: &Value) -> Result<String, String> {
    let text = |value: Option<&Value>, what: &str| {
        value
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .ok_or(format!("has no {what}"))
    };
    let metadata = manifest.get("metadata");
    let version = text(manifest.get("apiVersion"), "apiVersion")?;
    let kind = text(manifest.get("kind"), "kind")?;
    let name = text(metadata.and_then(|metadata| metadata.get("name")), "metadata.name")?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let namespace =
        metadata.and_then(|metadata| metadata.get("namespace")).and_then(Value::as_str).unwrap_or_default();
    let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
    Ok(if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") })
}

/// Fills works with manifests, in order.
#[derive(Default)]
pub(super) struct Split {
    works: Vec<Range<usize>>,
    start: usize,
    next: usize,
    filled: usize,
    /// The bytes of the manifests of the largest work.
    largest: usize,
    /// The bytes of a work once its agent has reported.
    stored: usize,
    /// The bytes of all manifests.
    total: usize,
    /// How many works there are if only the size of manifests counts.
    by_size: usize,
    filled_by_size: usize,
}

impl Split {
    /// Counts a manifest, deployed or not.
    fn count(&mut self, size: usize) {
        if self.by_size == 0 || self.filled_by_size + size > WORK_LIMIT {
            self.by_size += 1;
            self.filled_by_size = 0;
        }
        self.filled_by_size += size + 1;
        self.total += size;
    }

    /// Adds a manifest of this size, which causes so many bytes elsewhere in its work, to a work
    /// that has so many bytes of its own.
    fn add(&mut self, size: usize, caused: usize, shared: usize) {
        let is_full = self.filled + size > WORK_LIMIT
            || self.next - self.start >= MOST_OBJECTS
            || shared + self.stored + size + caused > STORED_LIMIT;
        if is_full && self.next > self.start {
            self.works.push(self.start..self.next);
            (self.start, self.filled, self.stored) = (self.next, 0, 0);
        }
        self.next += 1;
        self.filled += size + 1;
        self.largest = self.largest.max(self.filled);
        self.stored += size + caused;
    }

    fn finish(mut self) -> Vec<Range<usize>> {
        self.works.push(self.start..self.next);
        self.works
    }
}
