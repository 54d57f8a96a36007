//! Finds what the manager would report, with the manager's own code.

use std::sync::Arc;

use std::collections::{BTreeMap, BTreeSet};

use aviary_api::work::{Fault, check_template};
use aviary_engine::configs::{ConfigRef, GroupResource, Pin};
use aviary_engine::fleet::{ClusterFacts, Fleet};
use aviary_engine::health::advice::{Advice, AdvicePlace};
use aviary_engine::normalise;
use aviary_engine::observed::{InstallRule, Lookup, Observed, Template};
use aviary_engine::problem::Problem;
use aviary_engine::reason::Reason;
use aviary_engine::render::Templates;

use super::field;
use crate::documents::Document;
use crate::findings::Finding;
use crate::snapshot::{AddOnSnapshot, FileSnapshot};

/// All findings: add-on by add-on, then the templates.
pub(super) fn findings(snapshot: &FileSnapshot<'_>, documents: &[Document]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut checked = BTreeSet::new();
    for addon in &snapshot.addons {
        of_addon(addon, documents, &mut findings);
        checked.insert(addon.observed.addon.name.to_string());
    }
    for document in documents.iter().filter(|document| is(document, "AddOnTemplate")) {
        let (addon, template) = normalise::template(&document.value);
        let known = snapshot.addons.iter().find(|known| known.observed.addon.name == addon);
        let mut alone = Observed::default();
        alone.addon.name.clone_from(&addon);
        alone.templates.push(template.clone());
        let observed = known.map_or(&alone, |known| &known.observed);
        let faults = of_agent_spec(document);
        // Rendering would report the first of them once more.
        let rendered = faults.is_empty().then(|| of_template(document, observed, &template)).flatten();
        let advice = if faults.is_empty() { of_health(document, observed, &template) } else { Vec::new() };
        findings.extend(faults.into_iter().chain(rendered).chain(advice));
    }
    findings
}

fn is(document: &Document, kind: &str) -> bool {
    document.group() == aviary_api::names::ADDON_GROUP && document.kind() == kind
}

fn of_addon(snapshot: &AddOnSnapshot<'_>, documents: &[Document], findings: &mut Vec<Finding>) {
    let AddOnSnapshot { document, observed, instance_problems, .. } = snapshot;
    let fleet = Fleet::line_up(observed);
    for problem in &fleet.problems {
        // Invalid cluster names are reported at the decisions that contain them. Decisions are a
        // controller's, and rarely in files.
        if !matches!(problem, Problem::ClusterNameInvalid { .. } | Problem::PlacementUndecided { .. }) {
            findings.push(finding(document, &field::of_addon(document, problem), problem));
        }
    }
    for (index, governor) in fleet.governors.iter().enumerate() {
        if let Err(problem) = &governor.desired {
            findings.push(of_revision(
                document,
                &field::of_configs(document, &observed.addon, Some(index)),
                problem,
                documents,
            ));
        }
    }
    let follows_defaults =
        !matches!(observed.addon.strategy, InstallRule::Placements(_)) || !fleet.free.cohorts.is_empty();
    if let (true, Err(problem)) = (follows_defaults, &fleet.free.desired) {
        findings.push(of_revision(
            document,
            &field::of_configs(document, &observed.addon, None),
            problem,
            documents,
        ));
    }
    let instances: BTreeMap<&str, &Document> = documents
        .iter()
        .filter(|known| is(known, "ManagedClusterAddOn") && *known.name() == *observed.addon.name)
        .map(|known| (known.namespace(), known))
        .collect();
    for (document, problem) in instance_problems {
        let field = if matches!(problem, Problem::VersionsDiffer { .. }) {
            "spec.desiredVersion"
        } else {
            "spec.configs"
        };
        findings.push(finding(document, field, problem));
    }
    for (position, line) in fleet.lines.iter().enumerate() {
        let Some(overrides) = fleet.facts(position).and_then(ClusterFacts::overrides) else { continue };
        let Some(document) = instances.get(line.name.as_str()) else { continue };
        for problem in &overrides.problems {
            findings.push(finding(document, "spec.configs", problem));
        }
    }
}

/// What keeps a placement's configs from being a revision. A problem with a template is reported at
/// the template.
fn of_revision(addon: &Document, field: &str, problem: &Problem, documents: &[Document]) -> Finding {
    let template = match problem {
        Problem::TemplateEmpty { template }
        | Problem::TemplateMalformed { template, .. }
        | Problem::ManifestDuplicate { template, .. }
        | Problem::ManifestTooLarge { template, .. }
        | Problem::CreatedOnce { template, .. }
        | Problem::VariableUnknown { template, .. } => Some(template),
        _ => None,
    };
    let wrong = template.and_then(|name| {
        documents.iter().find(|known| is(known, "AddOnTemplate") && *known.name() == **name)
    });
    match (wrong, problem) {
        (Some(template), _) => finding(template, MANIFESTS, problem),
        (
            None,
            Problem::VariableReserved { config, .. } | Problem::DeploymentConfigInvalid { config, .. },
        ) => {
            let at = match problem {
                Problem::VariableReserved { .. } => "spec.customizedVariables",
                _ => "spec",
            };
            let named = |known: &&Document| {
                is(known, "AddOnDeploymentConfig")
                    && *known.name() == *config.name
                    && Some(known.namespace()) == config.namespace.as_deref()
            };
            match documents.iter().find(named) {
                Some(config) => finding(config, at, problem),
                None => finding(addon, field, problem),
            }
        }
        (None, _) => finding(addon, field, problem),
    }
}

const MANIFESTS: &str = "spec.agentSpec.workload.manifests";

/// Checks that OCM would accept the works of a template: an agent that cannot decode one stops
/// altogether.
fn of_agent_spec(document: &Document) -> Vec<Finding> {
    let spec = document.value.pointer("/spec/agentSpec");
    let faults = spec.and_then(|spec| check_template(spec).err()).unwrap_or_default();
    let as_finding = |fault: Fault| {
        let dot = if fault.field.is_empty() { "" } else { "." };
        let field = format!("spec.agentSpec{dot}{}", fault.field);
        Finding::of(document, field, Reason::TemplateMalformed.as_str(), fault.message)
    };
    faults.into_iter().map(as_finding).collect()
}

/// What its author should know about the health of its objects.
fn of_health(document: &Document, observed: &Observed, template: &Template) -> Vec<Finding> {
    let own = template.pin();
    let Some(Ok(prepared)) = Templates::new(observed).prepare([&own].into_iter()) else { return Vec::new() };
    let as_finding = |advice: Advice| {
        let field = match advice.place {
            AdvicePlace::Manifest(at) => format!("{MANIFESTS}[{at}]"),
            AdvicePlace::Config(at) => format!("spec.agentSpec.manifestConfigs[{at}]"),
        };
        Finding::of(document, field, advice.code, advice.message).warning()
    };
    prepared.advice().into_iter().map(as_finding).collect()
}

/// Checks a template alone, with the variables of each deployment config that its add-on may use.
fn of_template(document: &Document, observed: &Observed, template: &Template) -> Option<Finding> {
    let mut templates = Templates::new(observed);
    let own = template.pin();
    let alone = match templates.prepare([&own].into_iter())? {
        Ok(_) => return None,
        Err(problem) => problem,
    };
    let Problem::VariableUnknown { .. } = &*alone else { return Some(finding(document, MANIFESTS, &alone)) };
    let overrides = observed.instances.values().flat_map(|instance| &instance.overrides);
    let mut named: Vec<&ConfigRef> = observed.addon.referenced_configs().chain(overrides).collect();
    named.retain(|config| config.kind == *GroupResource::deployment_configs());
    let pins: Vec<Pin> = named
        .iter()
        .filter_map(|config| match observed.configs.get(config) {
            Some(Lookup::Found(live)) => {
                Some(Pin { config: Arc::new((*config).clone()), hash: live.hash.clone() })
            }
            _ => None,
        })
        .collect();
    if pins.len() < named.len() {
        // The config that defines the variable may not be in the files.
        return Some(finding(document, MANIFESTS, &alone).warning());
    }
    let fits = pins.iter().any(|pin| matches!(templates.prepare([&own, pin].into_iter()), Some(Ok(_))));
    // The placements report whether it is used without the variables. Here the template may not be
    // in use yet.
    (!fits).then(|| finding(document, MANIFESTS, &alone).warning())
}

/// A problem as a finding. An object that is missing in the files may exist on the hub, so that is
/// only a warning.
fn finding(document: &Document, field: &str, problem: &Problem) -> Finding {
    match problem {
        Problem::ConfigMissing { config } => {
            let message = format!("{config} is not in the files: it was not checked");
            Finding::of(document, field, problem.code().as_str(), message).warning()
        }
        Problem::PlacementUnknown { placement } => {
            let message = format!("placement {placement} is not in the files: its clusters were not checked");
            Finding::of(document, field, problem.code().as_str(), message).warning()
        }
        Problem::VersionUnsupported { version, supported } => {
            let offered: Vec<&str> = supported.iter().map(|version| &**version).collect();
            let message = format!("no template has version {version}: available are {}", offered.join(", "));
            Finding::of(document, field, problem.code().as_str(), message)
        }
        // The finding already names the field.
        Problem::LimitInvalid { error, .. } => {
            Finding::of(document, field, problem.code().as_str(), error.to_string())
        }
        Problem::DurationInvalid { error, .. } => {
            Finding::of(document, field, problem.code().as_str(), error.to_string())
        }
        problem if problem.is_warning() => {
            Finding::of(document, field, problem.code().as_str(), problem.to_string()).warning()
        }
        problem => Finding::of(document, field, problem.code().as_str(), problem.to_string()),
    }
}
