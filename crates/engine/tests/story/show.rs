//! What a story shows when a script asks for it: clusters, statuses, health and works.

use super::*;

impl Story {
    pub(super) fn show(&mut self, what: &str) {
        let report = plan(&self.world.observed, self.now);
        match what {
            "" | "clusters" | "all" => {
                self.show_clusters(&report, what == "all");
            }
            "status" => self.show_status(),
            "problems" => {
                for problem in &report.report.problems {
                    writeln!(self.told, "problem  {}: {problem}", problem.code()).unwrap();
                }
            }
            "conditions" => {
                for condition in &self.world.observed.addon.status.conditions {
                    writeln!(
                        self.told,
                        "{}  {} {}  {}",
                        condition.kind, condition.status, condition.reason, condition.message
                    )
                    .unwrap();
                }
            }
            "stalled" => {
                for (name, recorded) in &self.world.observed.addon.status.placements {
                    let stalled = recorded.conditions.iter().find(|one| one.kind == "Stalled");
                    let Some(stalled) = stalled else { continue };
                    let (status, reason, message) = (&stalled.status, &stalled.reason, &stalled.message);
                    writeln!(self.told, "{}  Stalled {status} {reason}: {message}", name.name).unwrap();
                }
            }
            "writes" => {
                let count = report.writes().count();
                writeln!(self.told, "{count} writes").unwrap();
            }
            "works" => self.show_works(),
            "progress" => self.show_progress(),
            "health" => self.show_health(),
            "attempts" => {
                for one in &self.world.observed.addon.status.attempts {
                    let took = one.ended.duration_since(one.started).as_secs();
                    let (placement, outcome) = (&one.placement.name, one.outcome.as_str());
                    writeln!(
                        self.told,
                        "{placement} {} {outcome} after {took}s: {}",
                        one.version, one.message
                    )
                    .unwrap();
                }
            }
            name => self.show_instance(name),
        }
    }

    /// Clusters with the same decision on one line; settled ones only with `all`.
    fn show_clusters(&mut self, plan: &Plan, all: bool) {
        let mut lines: Vec<(Vec<String>, String)> = Vec::new();
        for cluster in &plan.report.clusters {
            let told = cluster.told.as_deref().unwrap_or("-");
            let text = format!("{:<9} {told:<8} {}", cluster.decision.phase(), cluster.decision);
            if cluster.decision == Decision::Settled && !all {
                continue;
            }
            match lines.last_mut() {
                Some((names, known)) if *known == text => names.push(cluster.cluster.to_string()),
                _ => lines.push((vec![cluster.cluster.to_string()], text)),
            }
        }
        for (names, text) in lines {
            let who = match names.as_slice() {
                [one] => one.clone(),
                [first, .., last] => format!("{first}..{last} ({})", names.len()),
                [] => String::new(),
            };
            writeln!(self.told, "{who:<16} {text}").unwrap();
        }
    }

    /// What each instance says of its progress.
    fn show_progress(&mut self) {
        for (cluster, instance) in self.world.observed.instances.iter() {
            let Some(progressing) = instance.status.condition("Progressing") else { continue };
            writeln!(self.told, "{cluster}  {}: {}", progressing.reason, progressing.message).unwrap();
        }
    }

    fn show_status(&mut self) {
        let observed = &self.world.observed;
        for spec in observed.addon.strategy.placements() {
            let Some(recorded) = observed.addon.status.placements.get(&spec.name) else { continue };
            let progressing = recorded.conditions.first().expect("Progressing");
            let name = |revision: &Option<aviary_engine::configs::Revision>| {
                let revision = revision.as_ref()?;
                let alone = revision.pins().len() == 1;
                let shown = revision
                    .pins()
                    .iter()
                    .filter(|pin| alone || &*pin.config.kind.resource != "addontemplates");
                Some(shown.map(|pin| pin.config.name.to_string()).collect::<Vec<_>>().join("+"))
            };
            writeln!(
                self.told,
                "{}  {} {}  {}",
                spec.name.name, progressing.status, progressing.reason, progressing.message
            )
            .unwrap();
            writeln!(
                self.told,
                "    desired {} good {} applied {}",
                name(&recorded.desired).unwrap_or("-".into()),
                name(&recorded.known_good).unwrap_or("-".into()),
                name(&recorded.applied).unwrap_or("-".into()),
            )
            .unwrap();
        }
        if !observed.addon.status.supported_versions.is_empty() {
            let versions = observed.addon.status.supported_versions.join(" ");
            writeln!(
                self.told,
                "versions {versions} default {}",
                observed.addon.status.default_version.as_deref().unwrap_or("-")
            )
            .unwrap();
        }
    }

    fn show_instance(&mut self, name: &str) {
        let Some(instance) = self.world.observed.instances.get(&cluster(name)) else {
            writeln!(self.told, "{name}  no instance").unwrap();
            return;
        };
        let status = &instance.status;
        let show = |text: &Option<Arc<str>>| text.as_deref().unwrap_or("-").to_owned();
        for reference in
            status.references.iter().filter(|reference| &*reference.kind.resource != "addontemplates")
        {
            let pin = |pin: &Option<aviary_engine::configs::Pin>| {
                pin.as_ref().map_or("-".to_owned(), |pin| format!("{}@{}", pin.config.name, pin.hash.short()))
            };
            writeln!(
                self.told,
                "{name}  {} desired {} applied {}",
                reference.kind.resource,
                pin(&reference.desired),
                pin(&reference.applied)
            )
            .unwrap();
        }
        if status.desired_version.is_some() {
            writeln!(
                self.told,
                "{name}  version desired {} current {} last {}",
                show(&status.desired_version),
                show(&status.current_version),
                show(&status.last_version)
            )
            .unwrap();
        }
        for condition in status.conditions.iter().filter(|condition| &*condition.kind != "RevisionHealthy") {
            writeln!(
                self.told,
                "{name}  {} {} {}: {}",
                condition.kind, condition.status, condition.reason, condition.message
            )
            .unwrap();
        }
    }

    fn show_health(&mut self) {
        for (name, recorded) in &self.world.observed.addon.status.placements {
            for condition in &recorded.conditions {
                writeln!(
                    self.told,
                    "{}  {} {} {} since {}: {}",
                    name.name,
                    condition.kind,
                    condition.status,
                    condition.reason,
                    condition.since.expect("a time"),
                    condition.message
                )
                .unwrap();
            }
        }
    }

    fn show_works(&mut self) {
        for (name, works) in self.world.observed.works.iter() {
            for work in works.iter() {
                writeln!(
                    self.told,
                    "{name}  {} generation {} version {}",
                    work.name,
                    work.generation,
                    work.version.as_deref().unwrap_or("-")
                )
                .unwrap();
            }
        }
    }
}
