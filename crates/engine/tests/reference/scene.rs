//! A fleet that the real plan drives: events happen to it, passes are made, and it can be read as
//! the reference's plain world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aviary_engine::clock::{self, ClockStart};
use aviary_engine::configs::{ConfigRef, GroupResource, Revision};
use aviary_engine::hash::Hash;
use aviary_engine::invariants;
use aviary_engine::limit::Limit;
use aviary_engine::name::{ClusterName, PlacementName};
use aviary_engine::normalise;
use aviary_engine::observed::{
    Cluster, ClusterGroup, InstallPlacement, InstallRule, Instance, InstanceStatus, Lookup, Observed, Pace,
    Rollout, Seen, Selection, Template, Unreachable,
};
use aviary_engine::plan::{Plan, Step, Write, plan};
use aviary_engine::reason::Reason;
use aviary_engine::simulate::world::World as Hub;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::generate::{Event, KindSetup, PlacementSetup, Setup};
use super::{Answer, Doubt, Kind, Outcome, Placement, Rev, Share, World};

pub const REVISIONS: [Rev; 3] = ['A', 'B', 'C'];

#[derive(Clone, Debug)]
pub struct Scene {
    pub hub: Hub,
    pub now: Timestamp,
    letters: BTreeMap<Hash, Rev>,
    /// The revisions by their short names.
    ids: BTreeMap<String, Rev>,
    /// Clusters that a pass has seen arrived at what they are told now.
    arrived: BTreeSet<ClusterName>,
    /// Revisions that a pass has seen pass a placement's canary.
    pub passed: BTreeSet<(String, Rev)>,
}

impl Scene {
    pub fn new(setup: &Setup) -> Self {
        let mut observed = Observed::default();
        observed.addon.name = "helloworld".into();
        observed.addon.uid = "addon-uid".into();
        observed.addon.generation = 1;
        observed.addon.supported = Some(vec![GroupResource::hub_configs().clone()]);
        observed.addon.defaults = vec![config(0)];
        for number in 0..setup.clusters {
            let name = cluster(number);
            let one = Cluster {
                name: name.clone(),
                labels: BTreeMap::new(),
                deleting: false,
                opted_out: false,
                unreachable: None,
                reachable_since: None,
                addon_annotations: BTreeMap::new(),
            };
            observed.clusters.insert(name, Arc::new(one));
        }
        let count = setup.placements.len();
        let of = |numbers: &[usize]| numbers.iter().map(|number| cluster(number % setup.clusters)).collect();
        for (number, one) in setup.placements.iter().enumerate() {
            observed.placements.insert(placement(number), selection(of(&one.selects)));
        }
        observed.placements.insert(placement(count), selection(of(&setup.outside)));
        let specs =
            setup.placements.iter().enumerate().map(|(number, one)| spec(number, one, count)).collect();
        observed.addon.strategy = InstallRule::Placements(specs);
        if setup.templated {
            REVISIONS.iter().for_each(|revision| put_template(&mut observed, *revision));
        }
        let letters: BTreeMap<Hash, Rev> = REVISIONS
            .iter()
            .map(|revision| (normalise::config(&content(*revision)).hash, *revision))
            .collect();
        let templates = observed.templates.clone();
        let mut scene = Self {
            hub: Hub::new(observed),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            ids: ids(&letters, &templates),
            letters,
            arrived: BTreeSet::new(),
            passed: BTreeSet::new(),
        };
        for (number, revision) in setup.configs.iter().enumerate() {
            scene.edit(number, *revision);
        }
        scene
    }

    // --- events
    // -----------------------------------------------------------------------------------------------------

    pub fn happen(&mut self, event: &Event) {
        let clusters = self.hub.observed.clusters.len();
        let listed = self.specs().len();
        let at = |number: usize| cluster(number % clusters);
        match *event {
            Event::Join(p, c) => self.select(&placement(p % (listed + 1)), at(c), true),
            Event::Leave(p, c) => self.select(&placement(p % (listed + 1)), at(c), false),
            Event::Render(c) => self.render(&at(c)),
            Event::Ack(c) => self.answer(&at(c), Answer::Healthy),
            Event::Fail(c) => self.answer(&at(c), Answer::Refused),
            Event::Unavailable(c) => self.answer(&at(c), Answer::Unavailable),
            Event::AckAll => (0..clusters).for_each(|c| self.answer(&cluster(c), Answer::Healthy)),
            Event::Offline(c) => self.reach(&at(c), Some(Unreachable { since: Some(self.now) })),
            Event::Online(c) => self.reach(&at(c), None),
            Event::Edit(number, revision) => self.edit(number, revision),
            Event::Switch(p, number) => self.specs_mut()[p % listed].configs = named(number),
            Event::SwitchAll(number) => {
                self.specs_mut().iter_mut().for_each(|spec| spec.configs = named(number));
            }
            Event::Budget(p, budget) => {
                let rollout = &mut self.specs_mut()[p % listed].rollout;
                if rollout.pace != Pace::AllAtOnce {
                    rollout.pace = Pace::Rolling(limit(budget));
                }
            }
            Event::MaxFailures(p, share) => {
                self.specs_mut()[p % listed].rollout.max_failures = share.map(limit);
            }
            Event::Pause(p) => {
                let rollout = &mut self.specs_mut()[p % listed].rollout;
                rollout.paused = !rollout.paused;
            }
            Event::Kind(p, kind) => {
                let rollout = &mut self.specs_mut()[p % listed].rollout;
                let budget = match rollout.pace {
                    Pace::Rolling(limit) => limit,
                    _ => Limit::Count(1),
                };
                (rollout.pace, rollout.canary) = pace(kind, budget, listed);
            }
            Event::Override(c, number) => self.user_edits(&at(c), vec![config(number)]),
            Event::NoOverride(c) => self.user_edits(&at(c), Vec::new()),
            Event::User(c) => self.user_makes(at(c)),
            Event::Nothing => {}
        }
        if matches!(
            event,
            Event::Switch(..)
                | Event::SwitchAll(_)
                | Event::Budget(..)
                | Event::MaxFailures(..)
                | Event::Pause(_)
                | Event::Kind(..)
        ) {
            self.hub.observed.addon.generation += 1;
        }
    }

    /// Whether an event of one cluster would change nothing.
    pub fn is_vain(&self, event: &Event) -> bool {
        let offline =
            |number: usize| self.hub.observed.clusters.get(&cluster(number)).unwrap().unreachable.is_some();
        match *event {
            Event::Online(number) => !offline(number),
            Event::Offline(number) => offline(number),
            Event::Ack(number) | Event::Fail(number) | Event::Unavailable(number) => {
                let name = cluster(number);
                let works = self.hub.observed.works.get(&name).is_some_and(|works| !works.is_empty());
                let told = self
                    .hub
                    .observed
                    .instances
                    .get(&name)
                    .is_some_and(|one| !one.status.references.is_empty());
                !works && !told
            }
            _ => false,
        }
    }

    pub fn specs(&self) -> &[InstallPlacement] {
        self.hub.observed.addon.strategy.placements()
    }

    pub fn specs_mut(&mut self) -> &mut Vec<InstallPlacement> {
        match &mut self.hub.observed.addon.strategy {
            InstallRule::Placements(specs) => specs,
            _ => unreachable!("the add-on lists placements"),
        }
    }

    fn select(&mut self, placement: &PlacementName, cluster: ClusterName, selected: bool) {
        let selection = self.hub.observed.placements.get_mut(placement).unwrap();
        let clusters = &mut selection.groups[0].clusters;
        clusters.retain(|known| *known != cluster);
        if selected {
            clusters.push(cluster);
            clusters.sort();
        }
        selection.published = Some(clusters.len());
    }

    fn edit(&mut self, number: usize, revision: Rev) {
        let mut live = normalise::config(&content(revision));
        if let Some(Lookup::Found(known)) = self.hub.observed.configs.get(&config(number)) {
            live.generation = known.generation + i64::from(known.hash != live.hash);
        }
        self.hub.observed.configs.insert(config(number), Lookup::Found(live));
    }

    fn reach(&mut self, name: &ClusterName, unreachable: Option<Unreachable>) {
        let mut cluster = self.hub.observed.clusters.get_mut(name).unwrap();
        if cluster.unreachable.is_some() != unreachable.is_some() {
            cluster.unreachable = unreachable;
        }
    }

    fn render(&mut self, name: &ClusterName) {
        let told =
            self.hub.observed.instances.get(name).is_some_and(|one| one.status.told().next().is_some());
        if told && !self.hub.observed.renders_templates() {
            self.hub.render_elsewhere(name);
        }
    }

    /// The agent of a cluster that the hub can reach answers on all works as they are now.
    pub fn answer(&mut self, name: &ClusterName, answer: Answer) {
        self.render(name);
        let no = |message: &str| Seen::No { message: message.into() };
        let (applied, available) = match answer {
            Answer::None => (Seen::NotYet, Seen::NotYet),
            Answer::Healthy => (Seen::Yes, Seen::Yes),
            Answer::Unavailable => (Seen::Yes, no("crash loop")),
            Answer::Refused => (no("boom"), Seen::NotYet),
        };
        if self.hub.observed.clusters.get(name).unwrap().unreachable.is_none() {
            self.hub.acknowledge(name, &applied, &available);
        }
    }

    fn user_edits(&mut self, name: &ClusterName, overrides: Vec<ConfigRef>) {
        if let Some(mut instance) = self.hub.observed.instances.get_mut(name) {
            instance.generation += i64::from(instance.overrides != overrides);
            instance.overrides = overrides;
        }
    }

    fn user_makes(&mut self, name: ClusterName) {
        let instance = Instance {
            cluster: name.clone(),
            uid: format!("user-{name}").into(),
            resource_version: "0".into(),
            generation: 1,
            deleting: false,
            finalizers: Vec::new(),
            marker: None,
            owner: None,
            has_other_owners: false,
            made_by_ocm: false,
            install_namespace: "agents".into(),
            hosting: None,
            addon_annotations: BTreeMap::new(),
            overrides: Vec::new(),
            version: None,
            status: InstanceStatus::default(),
        };
        self.hub.observed.instances.get_or_insert_with(name, || instance);
    }

    // --- passes
    // -----------------------------------------------------------------------------------------------------

    /// Looks at the fleet and decides, remembering what was seen.
    pub fn look(&mut self) -> Plan {
        let world = self.read();
        for (name, instance) in &world.instances {
            if instance.arrived() {
                self.arrived.insert(ClusterName::parse(name).unwrap());
            }
        }
        for placement in &world.placements {
            for revision in REVISIONS.into_iter().filter(|revision| world.canary_passed(placement, *revision))
            {
                self.passed.insert((placement.name.clone(), revision));
            }
        }
        plan(&self.hub.observed, self.now)
    }

    /// Makes one write, and says which promises it breaks.
    pub fn commit(&mut self, write: &Write) -> Result<(), String> {
        let before = self.hub.observed.clone();
        if !self.hub.commit(write) {
            return Err(format!("the hub refuses {write:?}"));
        }
        if let Write::Instance(write) = write {
            let told = |observed: &Observed| {
                observed.instances.get(&write.cluster).map(|one| one.status.told_revision())
            };
            if told(&before) != told(&self.hub.observed) {
                self.arrived.remove(&write.cluster);
            }
        }
        if let Write::Delete(delete) = write {
            self.arrived.remove(&delete.cluster);
        }
        let violations = invariants::check(&before, write, &self.hub.observed);
        if violations.is_empty() {
            return Ok(());
        }
        let broken: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Err(format!("{} by {write:?}", broken.join("; ")))
    }

    /// One whole pass. Says whether anything was written.
    pub fn pass(&mut self) -> Result<bool, String> {
        let plan = self.look();
        let at_rest = plan.is_at_rest();
        for write in plan.writes() {
            self.commit(&write)?;
        }
        Ok(!at_rest)
    }

    pub fn everybody_answers(&mut self) {
        let all: Vec<ClusterName> = self.hub.observed.clusters.keys().cloned().collect();
        for name in &all {
            self.reach(name, None);
            self.answer(name, Answer::Healthy);
        }
    }

    /// What a scene knows beside what the hub has.
    pub fn memory(&self) -> (&BTreeSet<ClusterName>, &BTreeSet<(String, Rev)>) {
        (&self.arrived, &self.passed)
    }

    /// Every cluster is back, every agent answers, until nothing is left to do.
    pub fn settle(&mut self) -> Result<(), String> {
        for _ in 0..200 {
            self.everybody_answers();
            if !self.pass()? {
                return Ok(());
            }
        }
        Err("the fleet does not come to rest".to_owned())
    }

    /// What a plan decides, in the reference's terms.
    pub fn outcome(&self, plan: &Plan) -> Outcome {
        let mut outcome = Outcome::default();
        for write in plan.step(Step::Settle).iter().chain(plan.step(Step::Start)) {
            let Write::Instance(write) = write else { continue };
            let before = self.hub.observed.instances.get(&write.cluster).unwrap().status.told_revision();
            let after = write.status.told_revision();
            if before != after {
                outcome.starts.insert(write.cluster.to_string(), self.letter(&after).unwrap_or('-'));
            }
        }
        let status = plan.addon().unwrap_or(&self.hub.observed.addon.status);
        for spec in self.specs() {
            let recorded = status.placements.get(&spec.name).cloned().unwrap_or_default();
            let letter = |revision: Option<Revision>| revision.and_then(|revision| self.letter(&revision));
            let progress = (letter(recorded.known_good), letter(recorded.applied));
            outcome.progress.insert(spec.name.name.to_string(), progress);
        }
        outcome
    }

    fn letter(&self, revision: &Revision) -> Option<Rev> {
        revision.pin(GroupResource::hub_configs()).map(|pin| self.letters[&pin.hash])
    }

    fn says(&self, config: &ConfigRef) -> Rev {
        match &self.hub.observed.configs[config] {
            Lookup::Found(live) => self.letters[&live.hash],
            other => unreachable!("{config} is {other:?}"),
        }
    }

    // --- reading
    // ----------------------------------------------------------------------------------------------------

    /// The fleet as the reference sees it.
    pub fn read(&self) -> World {
        let observed = &self.hub.observed;
        World {
            clusters: observed
                .clusters
                .iter()
                .map(|(name, one)| (name.to_string(), one.unreachable.is_none()))
                .collect(),
            instances: observed
                .instances
                .iter()
                .map(|(name, one)| (name.to_string(), self.read_instance(one)))
                .collect(),
            selections: observed
                .placements
                .iter()
                .map(|(name, selection)| {
                    (name.name.to_string(), selection.clusters().map(ToString::to_string).collect())
                })
                .collect(),
            placements: self.specs().iter().map(|spec| self.read_placement(spec)).collect(),
            defaults: self.says(&config(0)),
        }
    }

    fn read_instance(&self, one: &Instance) -> super::Instance {
        let works = self.hub.observed.works.get(&one.cluster).map_or(&[][..], |works| works.as_slice());
        assert!(works.len() <= 1, "one work is all of the add-on");
        let work = works.first();
        let carried = work.and_then(|work| work.hashes.as_ref()).into_iter().flatten();
        let mut carries = carried
            .filter(|(kind, _)| kind == GroupResource::hub_configs())
            .map(|(_, hash)| self.letters[hash]);
        let clock = one.status.condition("RevisionHealthy");
        let start = clock.and_then(|clock| ClockStart::read(&clock.message));
        super::Instance {
            never_well: clock.is_some_and(|clock| clock.reason == Reason::NeverHealthy),
            doubt: start.as_ref().and_then(|start| start.doubt).map(|doubt| match doubt {
                clock::Doubt::Before => Doubt::Before,
                clock::Doubt::ByUser => Doubt::ByUser,
            }),
            clock: start.as_ref().and_then(|start| self.ids.get(&*start.revision).copied()),
            moved_by: start.and_then(|start| start.placement).map(|placement| placement.name.to_string()),
            made_by_strategy: one.marker.is_some(),
            told: self.letter(&one.status.told_revision()),
            installed: one.status.references.iter().any(|reference| reference.applied.is_some()),
            arrived_once: self.arrived.contains(&one.cluster),
            own: one.overrides.first().map(|config| self.says(config)),
            carries: carries.next_back(),
            was_applied: work.is_some_and(|work| work.was_applied),
            answer: match work.map(|work| (&work.applied, &work.available)) {
                Some((Seen::Yes, Seen::Yes)) => Answer::Healthy,
                Some((Seen::No { .. }, _)) => Answer::Refused,
                Some((_, Seen::No { .. })) => Answer::Unavailable,
                _ => Answer::None,
            },
        }
    }

    fn read_placement(&self, spec: &InstallPlacement) -> Placement {
        let observed = &self.hub.observed;
        let recorded = observed.addon.status.placements.get(&spec.name).cloned().unwrap_or_default();
        let share = |limit: Limit| match limit {
            Limit::Count(count) => Share::Count(count as usize),
            Limit::Percent(percent) => Share::Percent(usize::from(percent)),
        };
        let (kind, budget) = match (&spec.rollout.pace, &spec.rollout.canary) {
            (Pace::Rolling(limit), None) => (Kind::RollingUpdate, share(*limit)),
            (Pace::Rolling(limit), Some(canary)) => {
                (Kind::WithCanary(canary.name.to_string()), share(*limit))
            }
            _ => (Kind::UpdateAll, Share::Count(0)),
        };
        let completed = observed.revisions.completed.get(&spec.name).into_iter().flatten();
        let withdrawn = observed.revisions.withdrawn.get(&spec.name).into_iter().flatten();
        Placement {
            name: spec.name.name.to_string(),
            desired: self.says(spec.configs.first().unwrap_or(&config(0))),
            recorded: recorded.desired.and_then(|revision| self.letter(&revision)),
            kind,
            budget,
            max_failures: spec.rollout.max_failures.map(share),
            paused: spec.rollout.paused,
            known_good: recorded.known_good.and_then(|revision| self.letter(&revision)),
            applied: recorded.applied.and_then(|revision| self.letter(&revision)),
            history: completed.filter_map(|revision| self.letter(revision)).collect(),
            withdrawn: withdrawn.filter_map(|revision| self.letter(revision)).collect(),
        }
    }
}

fn ids(letters: &BTreeMap<Hash, Rev>, templates: &[Template]) -> BTreeMap<String, Rev> {
    let id = |(hash, letter): (&Hash, &Rev)| {
        let template = templates.iter().find(|one| one.version.as_deref() == Some(&letter.to_string()));
        let template = template.map(|template| (GroupResource::templates(), &template.hash));
        let pins = [(GroupResource::hub_configs(), hash)].into_iter().chain(template);
        (Revision::id_of(pins).to_string(), *letter)
    };
    letters.iter().map(id).collect()
}

fn content(revision: Rev) -> Value {
    json!({ "spec": { "desiredVersion": revision.to_string() } })
}

fn put_template(observed: &mut Observed, revision: Rev) {
    let manifest = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "agent", "namespace": "{{INSTALL_NAMESPACE}}" }, "spec": { "version": "{{VERSION}}" },
    });
    let spec = json!({ "addonName": "helloworld", "version": revision.to_string(), "agentSpec": { "workload": { "manifests": [manifest] } } });
    let (_, template) = normalise::template(
        &json!({ "metadata": { "name": format!("helloworld-{revision}"), "generation": 1 }, "spec": spec }),
    );
    observed.templates.push(template);
}

fn selection(clusters: BTreeSet<ClusterName>) -> Selection {
    let group = ClusterGroup { name: "".into(), clusters: clusters.into_iter().collect() };
    let published = Some(group.clusters.len());
    Selection { published, counted: true, groups: vec![group], ..Selection::default() }
}

fn spec(number: usize, setup: &PlacementSetup, listed: usize) -> InstallPlacement {
    let (pace, canary) = pace(setup.kind, limit(setup.budget), listed);
    let max_failures = setup.max_failures.map(limit);
    let rollout = Rollout { pace, canary, max_failures, ..Rollout::default() };
    let configs = named(setup.config);
    InstallPlacement {
        stated: None,
        name: placement(number),
        configs,
        version: None,
        install_namespace: None,
        rollout,
        fault: None,
    }
}

fn pace(kind: KindSetup, budget: Limit, listed: usize) -> (Pace, Option<PlacementName>) {
    match kind {
        KindSetup::All => (Pace::AllAtOnce, None),
        KindSetup::Rolling => (Pace::Rolling(budget), None),
        KindSetup::Canary(number) => (Pace::Rolling(budget), Some(placement(number % (listed + 2)))),
    }
}

fn limit(share: Share) -> Limit {
    match share {
        Share::Count(count) => Limit::Count(u32::try_from(count).unwrap()),
        Share::Percent(percent) => Limit::Percent(u8::try_from(percent).unwrap()),
    }
}

/// The first config is the add-on's default: a placement that wants it names none.
fn named(number: usize) -> Vec<ConfigRef> {
    if number == 0 { Vec::new() } else { vec![config(number)] }
}

fn config(number: usize) -> ConfigRef {
    ConfigRef {
        kind: GroupResource::hub_configs().clone(),
        namespace: None,
        name: format!("config-{number}").into(),
    }
}

pub fn cluster(number: usize) -> ClusterName {
    ClusterName::parse(&format!("c{}", number + 1)).unwrap()
}

pub fn placement(number: usize) -> PlacementName {
    PlacementName::new("default", &format!("p{number}"))
}
