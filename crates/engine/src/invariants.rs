//! The invariants, as one function: `check(before, write, after)` returns those that a write
//! violates. `docs/reliability.md` lists them by number (S1 and so on).
//!
//! Independent of the rollout code: it reads the snapshot itself, and shares no decision code with
//! what it checks. If only a clock could decide, it reports no violation; the property tests are
//! stricter.

mod arrival;
mod hooks;
mod staying;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use aviary_api::names::conditions::REVISION_HEALTHY;

use self::arrival::{has_arrived, has_arrived_except, is_applied, is_healthy};
use self::staying::has_joined;
use crate::clock::{Doubt, RevisionClock};
use crate::configs::{ConfigRef, GroupResource, Pin, Revision, version_in};
use crate::hash::Hash;
use crate::name::{ClusterName, PlacementName, Text};
use crate::observed::{
    AddOnStatus, InstallPlacement, InstallRule, Instance, Lookup, Observed, Pace, Recorded, Reference,
    RefusedWrite, Seen, Selection, Work,
};
use crate::plan::{RecordWrite, Write};
use crate::reason::Reason;
use crate::served::Served;
use crate::status::publish;

/// An invariant that a write violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.detail)
    }
}

/// The maximum size of an add-on's status.
const STATUS_LIMIT: usize = 64 * 1024;

/// The relevant effect of a write.
#[derive(Clone, Copy, Debug)]
pub enum Deed<'a> {
    Create(&'a ClusterName),
    Delete {
        cluster: &'a ClusterName,
        uid: &'a str,
    },
    Instance(&'a ClusterName),
    /// The finalizers of an instance.
    Guard(&'a ClusterName),
    Work {
        cluster: &'a ClusterName,
        name: &'a str,
        told: &'a Revision,
    },
    DeleteWork {
        cluster: &'a ClusterName,
        name: &'a str,
    },
    AddOn(&'a AddOnStatus),
    Complete(&'a PlacementName, &'a Revision),
}

/// Checks one write of a plan.
pub fn check(before: &Observed, write: &Write, after: &Observed) -> Vec<Violation> {
    Series::default().check(before, write, after)
}

/// Checks one write by any writer; `before` and `after` are the states around it.
pub fn check_deed(before: &Observed, deed: Deed<'_>, after: &Observed) -> Vec<Violation> {
    check_counted(before, deed, after, &mut CountCache::default())
}

/// Checks consecutive writes. Counts over the whole fleet are computed once and updated with each
/// write, so the cost of a large plan stays linear.
#[derive(Debug, Default)]
pub struct Series {
    counts: CountCache,
}

impl Series {
    /// Like `check`. `before` must be the `after` of the previous write.
    pub fn check(&mut self, before: &Observed, write: &Write, after: &Observed) -> Vec<Violation> {
        let deed = match write {
            Write::Create(create) => Deed::Create(&create.cluster),
            Write::Delete(delete) => Deed::Delete { cluster: &delete.cluster, uid: &delete.uid },
            Write::Instance(write) => Deed::Instance(&write.cluster),
            Write::Work(write) => {
                Deed::Work { cluster: &write.cluster, name: &write.name, told: write.told() }
            }
            Write::AddOn(status) => Deed::AddOn(status),
            Write::Complete(completed) => Deed::Complete(&completed.placement, &completed.revision),
            Write::DeleteWork(delete) => Deed::DeleteWork { cluster: &delete.cluster, name: &delete.name },
            Write::Guard(write) => Deed::Guard(&write.cluster),
            Write::Record(record) => return too_large(record),
            Write::Keep(_) | Write::Hold(_) | Write::Forget(_) | Write::Withdraw(..) | Write::Offer(_) => {
                return Vec::new();
            }
        };
        let found = check_counted(before, deed, after, &mut self.counts);
        match deed {
            Deed::Create(cluster)
            | Deed::Delete { cluster, .. }
            | Deed::Instance(cluster)
            | Deed::Guard(cluster)
            | Deed::Work { cluster, .. }
            | Deed::DeleteWork { cluster, .. } => self.counts.follow(before, cluster, after),
            Deed::AddOn(_) | Deed::Complete(..) => {}
        }
        found
    }
}

/// S16: a record stays bounded, like a status.
fn too_large(record: &RecordWrite) -> Vec<Violation> {
    let size = publish::record(record, 0).to_string().len();
    let detail = format!("the add-on's record has {size} bytes");
    (size > STATUS_LIMIT).then_some(Violation { rule: "S16", detail }).into_iter().collect()
}

/// Counts over the whole fleet, computed on demand.
#[derive(Debug, Default)]
struct CountCache {
    /// By placement: how many it governs, and how many of those count as in flight.
    flights: BTreeMap<PlacementName, (usize, usize)>,
    /// How many of our instances are deselected.
    leaving: Option<usize>,
}

impl CountCache {
    fn flights(&mut self, observed: &Observed, spec: &InstallPlacement) -> (usize, usize) {
        *self.flights.entry(spec.name.clone()).or_insert_with(|| {
            let governed = governed(observed, spec);
            let in_flight = governed.iter().filter(|name| counts_in_flight(observed, spec, name)).count();
            (governed.len(), in_flight)
        })
    }

    fn leaving(&mut self, observed: &Observed) -> usize {
        *self.leaving.get_or_insert_with(|| {
            observed.instances.keys().filter(|name| is_leaving(observed, name)).count()
        })
    }

    /// Updates the counts after a write that changed one cluster.
    fn follow(&mut self, before: &Observed, cluster: &ClusterName, after: &Observed) {
        if let Some(leaving) = &mut self.leaving {
            *leaving =
                *leaving + usize::from(is_leaving(after, cluster)) - usize::from(is_leaving(before, cluster));
        }
        let Some(spec) = governor(before, cluster) else { return };
        let Some((governed, in_flight)) = self.flights.get_mut(&spec.name) else { return };
        let counted = |observed: &Observed| {
            let governed = may_be_governed(observed, cluster);
            (usize::from(governed), usize::from(governed && counts_in_flight(observed, spec, cluster)))
        };
        let (was, is) = (counted(before), counted(after));
        *governed = *governed + is.0 - was.0;
        *in_flight = *in_flight + is.1 - was.1;
    }
}

fn check_counted(
    before: &Observed,
    deed: Deed<'_>,
    after: &Observed,
    counts: &mut CountCache,
) -> Vec<Violation> {
    let mut found = Checker { before, counts, violations: Vec::new() };
    match deed {
        Deed::Create(cluster) => found.create(cluster),
        Deed::Delete { cluster, uid } => found.delete(cluster, uid),
        Deed::Instance(cluster) => found.instance(cluster, after),
        Deed::Guard(cluster) => found.guard(cluster, after),
        Deed::Work { cluster, name, told } => {
            found.work(cluster, told);
            found.accepted(cluster, name);
        }
        Deed::DeleteWork { cluster, name } => found.accepted(cluster, name),
        Deed::AddOn(status) => found.addon(status),
        Deed::Complete(placement, revision) => found.completed(placement, revision),
    }
    found.violations
}

struct Checker<'a> {
    before: &'a Observed,
    counts: &'a mut CountCache,
    violations: Vec<Violation>,
}

impl<'a> Checker<'a> {
    fn broken(&mut self, rule: &'static str, detail: String) {
        self.violations.push(Violation { rule, detail });
    }

    /// S5: created only for selected, existing, not deleting clusters.
    fn create(&mut self, cluster: &ClusterName) {
        let there =
            self.before.clusters.get(cluster).is_some_and(|cluster| !cluster.deleting && !cluster.opted_out);
        if !there {
            self.broken(
                "S5",
                format!("an instance is created for {cluster}, which is absent, going, or opted out"),
            );
        }
        if !selects(self.before, cluster) {
            self.broken("S5", format!("an instance is created for {cluster}, which nothing selects"));
        }
    }

    /// S6 and S7: deleted only if ours, deselected in a complete snapshot, with the right UID, and
    /// within the brake.
    fn delete(&mut self, cluster: &ClusterName, uid: &str) {
        let Some(instance) = self.before.instances.get(cluster) else { return };
        if *instance.uid != *uid {
            self.broken("S6", format!("the instance on {cluster} was replaced"));
        }
        if self.before.clusters.get(cluster).is_some_and(|cluster| cluster.deleting) {
            return;
        }
        if instance.marker.is_none() {
            self.broken("S6", format!("a user made the instance on {cluster}"));
        }
        if selects(self.before, cluster) {
            self.broken("S6", format!("{cluster} is selected"));
        }
        let unsure = self
            .before
            .addon
            .strategy
            .placements()
            .iter()
            .any(|spec| self.before.placements.get(&spec.name).is_none_or(Selection::is_unsure));
        if unsure {
            self.broken(
                "S6",
                format!("{cluster} is deselected by placements that are unknown or still changing"),
            );
        }
        self.brake();
    }

    fn brake(&mut self) {
        let brake = self.before.options.brake;
        let total = self.before.instances.len();
        let leaving = self.counts.leaving(self.before);
        let acknowledged = self.before.addon.allow_deletions.is_some_and(|allowed| leaving <= allowed);
        if leaving > brake.more_than && leaving * 100 > total * brake.more_than_percent && !acknowledged {
            self.broken("S7", format!("{leaving} of {total} instances are being deleted without approval"));
        }
    }

    fn instance(&mut self, cluster: &ClusterName, after: &Observed) {
        let (Some(old), Some(new)) = (self.before.instances.get(cluster), after.instances.get(cluster))
        else {
            return;
        };
        if old.overrides != new.overrides
            || old.version != new.version
            || old.install_namespace != new.install_namespace
        {
            self.broken("S4", format!("the spec of the instance on {cluster} is written"));
        }
        self.applied_on_evidence(old, new);
        self.configs_within_reach(new);
        self.keeps_missing_override(old, new);
        if moves(old, new) {
            self.within_budget(cluster, old);
            self.behind_canary(cluster, old, new);
            self.joined_behind_gate(cluster, old);
        }
    }

    /// S9 and S20: applied only on evidence at the current generation, and on evidence of health.
    fn applied_on_evidence(&mut self, old: &Instance, new: &Instance) {
        let (applied, healthy) = (is_applied(self.before, old), is_healthy(self.before, old));
        let kinds: BTreeSet<&GroupResource> = new.status.references.iter().map(|one| &one.kind).collect();
        for kind in kinds {
            let hashes = |of: &Instance, pin: fn(&Reference) -> &Option<Pin>| -> Vec<Hash> {
                let references = of.status.references.iter().filter(|one| one.kind == *kind);
                references.filter_map(|one| Some(pin(one).as_ref()?.hash.clone())).collect()
            };
            let now_applied = hashes(new, |one| &one.applied);
            if now_applied.is_empty() || now_applied == hashes(old, |one| &one.applied) {
                continue;
            }
            if applied && !healthy {
                self.broken("S20", format!("{kind} on {} counts as applied and is not healthy", old.cluster));
            }
            if !applied || now_applied != hashes(old, |one| &one.desired) {
                self.broken("S9", format!("{kind} on {} counts as applied without evidence", old.cluster));
            }
        }
    }

    /// S14: configs are read only from namespaces that the rules allow.
    fn configs_within_reach(&mut self, new: &Instance) {
        for config in &new.overrides {
            let told = new.status.told().any(|pin| *pin.config == *config);
            if told && !staying::is_within_reach(self.before, new, config) {
                self.broken("S14", format!("the override on {} reads {config}", new.cluster));
            }
        }
    }

    /// S1: a settled instance moves into flight only while fewer than the limit are in flight.
    fn within_budget(&mut self, cluster: &ClusterName, old: &Instance) {
        let Some(spec) = governor(self.before, cluster) else { return };
        let limit = match spec.rollout.pace {
            Pace::Rolling(limit) => limit,
            Pace::AllAtOnce | Pace::RollingByGroupSize | Pace::PerGroup => return,
        };
        if !is_installed(self.before, old) || !has_arrived_except(self.before, old, &own_kinds(old)) {
            return;
        }
        let (governed, in_flight) = self.counts.flights(self.before, spec);
        let limit = limit.of(governed);
        if in_flight >= limit {
            self.broken("S1", format!("{cluster} starts while {in_flight} of {limit} are in flight"));
        }
    }

    /// S2: no instance outside the canary gets a revision that the canary has not passed.
    fn behind_canary(&mut self, cluster: &ClusterName, old: &Instance, new: &Instance) {
        let Some(spec) = governor(self.before, cluster) else { return };
        if spec.rollout.canary.is_none() {
            return;
        }
        let mut canaries = spec.rollout.canaries();
        let inside = canaries.any(|canary| includes(self.before.placements.get(canary), cluster));
        let first = !is_installed(self.before, old);
        if inside || first || !old.overrides.is_empty() || old.version.is_some() {
            return;
        }
        let known_good = self.recorded(&spec.name).and_then(|recorded| recorded.known_good.as_ref());
        let told = new.status.told_revision();
        if known_good != Some(&told) {
            self.broken("S2", format!("{cluster} gets {told:?}, known good is {known_good:?}"));
        }
    }

    /// S3: works are rendered from the assigned revision.
    fn work(&mut self, cluster: &ClusterName, rendered: &Revision) {
        let told = self.before.instances.get(cluster).map(|instance| instance.status.told_revision());
        if told.as_ref() != Some(rendered) {
            self.broken("S3", format!("{cluster} is assigned {told:?} and gets {rendered:?}"));
        }
        for pin in rendered.pins() {
            let live = self.before.content(pin).is_some();
            let kept = self.before.revisions.contents.contains_key(&pin.hash);
            if live && !kept {
                self.broken("S3", format!("the content of {} is rendered and not kept", pin.config));
            }
        }
        self.guarded_before_deployed(cluster);
    }

    fn addon(&mut self, status: &AddOnStatus) {
        for (name, new) in &status.placements {
            let Some(spec) = self.before.addon.strategy.placements().iter().find(|spec| spec.name == *name)
            else {
                continue;
            };
            let old = self.recorded(name);
            if new.applied != old.and_then(|old| old.applied.clone())
                && let Some(applied) = &new.applied
                && !all_settled(self.before, spec, applied)
            {
                self.broken("S8", format!("{name}: not all have settled on what counts as applied"));
            }
            if new.known_good != old.and_then(|old| old.known_good.clone()) {
                self.promotion(spec, old, new);
            }
        }
        let order: Vec<PlacementName> = status.placements.keys().cloned().collect();
        let size = publish::addon(status, &order, &Served::default()).to_string().len();
        if size > STATUS_LIMIT {
            self.broken("S16", format!("the add-on's status has {size} bytes"));
        }
    }

    /// S8, S2 and S2b: the known good revision takes only passed values, and while a placement
    /// rolls to it only a rollback replaces it.
    fn promotion(&mut self, spec: &InstallPlacement, old: Option<&Recorded>, new: &Recorded) {
        let Some(revision) = &new.known_good else { return };
        let completed =
            self.before.revisions.completed.get(&spec.name).is_some_and(|history| history.contains(revision));
        if spec.rollout.canary.is_none() {
            let was_applied = old.is_some_and(|old| old.applied.as_ref() == Some(revision));
            if !(completed || was_applied || all_settled(self.before, spec, revision)) {
                self.broken(
                    "S8",
                    format!("{}: the known good revision is not applied everywhere", spec.name),
                );
            }
            return;
        }
        let is_first = old.is_none_or(|old| old.known_good.is_none());
        if completed || (is_first && all_installed(self.before, spec, revision)) {
            return;
        }
        let previous = old.and_then(|old| old.known_good.as_ref());
        for canary in spec.rollout.canaries() {
            self.passed(spec, canary, previous, revision);
        }
        if let Some(previous) = previous {
            let was_completed = old.is_some_and(|old| old.applied.as_ref() == Some(previous));
            self.rolled_out(spec, previous, was_completed);
        }
    }

    /// S2: every canary cluster has every part of the revision that it can prove.
    fn passed(
        &mut self,
        spec: &InstallPlacement,
        canary: &PlacementName,
        previous: Option<&Revision>,
        revision: &Revision,
    ) {
        let clusters = self.canary_clusters(canary);
        let torn = self.before.placements.get(canary).is_some_and(Selection::is_unsure);
        let instances: Option<Vec<&Arc<Instance>>> =
            clusters.iter().map(|name| self.before.instances.get(name)).collect();
        let passed = instances.as_ref().is_some_and(|instances| {
            let proved =
                |instance: &&Arc<Instance>| proves(instance, revision) && has_arrived(self.before, instance);
            instances.iter().all(proved)
                || previous.is_some_and(|previous| uncovered(instances, previous, revision))
        });
        if torn || clusters.is_empty() || !passed {
            self.broken("S2", format!("{}: the canary has not passed", spec.name));
        }
    }

    /// S2b: no gated cluster is still in flight to the previous known good revision.
    fn rolled_out(&mut self, spec: &InstallPlacement, previous: &Revision, was_completed: bool) {
        let clusters: BTreeSet<&ClusterName> =
            spec.rollout.canaries().flat_map(|canary| self.canary_clusters(canary)).collect();
        let under_way = governed(self.before, spec)
            .into_iter()
            .filter(|name| !clusters.contains(name))
            .filter(|name| self.before.instances.get(name).is_some_and(|instance| was_well(instance)))
            .filter(|name| !settled_on(self.before, name, previous) && !has_failed(self.before, name))
            .filter(|name| {
                self.before.instances.get(name).is_none_or(|instance| {
                    let told = instance.status.told_revision();
                    let assigned = was_completed && told_same_except(instance, &told, previous);
                    !assigned && !is_left_out(self.before, spec, instance) && doubt(instance).is_none()
                })
            })
            .filter(|_| spec.rollout.progress_deadline.is_none())
            .count();
        if under_way > 0 {
            self.broken(
                "S2b",
                format!(
                    "{}: {under_way} clusters are still on their way to the known good revision",
                    spec.name
                ),
            );
        }
    }

    fn canary_clusters(&self, canary: &PlacementName) -> BTreeSet<&'a ClusterName> {
        let selection = self.before.placements.get(canary).into_iter();
        selection.flat_map(Selection::clusters).collect()
    }

    fn completed(&mut self, placement: &PlacementName, revision: &Revision) {
        let specs = self.before.addon.strategy.placements();
        let Some(spec) = specs.iter().find(|spec| spec.name == *placement) else { return };
        if !all_settled(self.before, spec, revision) {
            self.broken("S8", format!("{placement}: a revision is completed that not all have settled on"));
        }
        if spec.rollout.canary.is_none() {
            return;
        }
        let known_good = self.recorded(placement).and_then(|recorded| recorded.known_good.as_ref());
        let is_good = match known_good {
            Some(known_good) => known_good == revision,
            None => all_installed(self.before, spec, revision),
        };
        let was_completed =
            self.before.revisions.completed.get(placement).is_some_and(|history| history.contains(revision));
        let mut canaries = spec.rollout.canaries();
        if !is_good && !was_completed && !canaries.all(|canary| self.canary_has(canary, revision)) {
            self.broken("S2", format!("{placement}: a revision is completed that the canary has not passed"));
        }
    }

    /// Whether there is a canary cluster, and every one has all parts of the revision that it can
    /// prove.
    fn canary_has(&self, canary: &PlacementName, revision: &Revision) -> bool {
        let clusters = self.canary_clusters(canary);
        let has = |name: &&ClusterName| {
            let instance = self.before.instances.get(name);
            instance.is_some_and(|instance| proves(instance, revision) && has_arrived(self.before, instance))
        };
        !clusters.is_empty() && clusters.iter().all(has)
    }

    fn recorded(&self, placement: &PlacementName) -> Option<&'a Recorded> {
        self.before.addon.status.placements.get(placement)
    }
}

/// Whether this kind selects the version. Then a canary cluster must have the same content.
fn decides_version(revision: &Revision, kind: &GroupResource) -> bool {
    let template = revision.pin(GroupResource::templates()).is_some();
    *kind == *GroupResource::templates() || (!template && *kind == *GroupResource::hub_configs())
}

/// Whether a canary cluster references another object of this kind, so that it proves nothing about
/// the one that is rolled out.
fn references_another(instance: &Instance, revision: &Revision, pin: &Pin) -> bool {
    let references_it = instance.status.told().any(|own| own.config == pin.config);
    !decides_version(revision, &pin.config.kind) && !references_it
}

/// Whether a canary cluster has at least one part of the revision, and every part for which it does
/// not reference another object.
fn proves(instance: &Instance, revision: &Revision) -> bool {
    let has = |pin: &Pin| {
        instance.status.told().any(|own| own.hash == pin.hash && own.config.kind == pin.config.kind)
    };
    let pins = revision.pins();
    pins.iter().all(|pin| has(pin) || references_another(instance, revision, pin))
        && (pins.is_empty() || pins.iter().any(has))
}

/// Whether the canary clusters reference other objects for every changed kind.
fn uncovered(instances: &[&Arc<Instance>], previous: &Revision, revision: &Revision) -> bool {
    let changed = |pin: &&Pin| !previous.same_of(revision, &pin.config.kind);
    let removed = previous.pins().iter().filter(|pin| revision.pin(&pin.config.kind).is_none());
    let all = |pin: &Pin| instances.iter().all(|instance| references_another(instance, revision, pin));
    revision.pins().iter().filter(changed).all(all) && removed.into_iter().all(all)
}

/// Whether it is assigned this revision, ignoring overridden kinds.
fn told_same_except(instance: &Instance, told: &Revision, revision: &Revision) -> bool {
    let own = own_kinds(instance);
    let hashes = |revision: &Revision| -> Vec<Hash> {
        let pins = revision.pins().iter().filter(|pin| !own.contains(&pin.config.kind));
        pins.map(|pin| pin.hash.clone()).collect()
    };
    hashes(told) == hashes(revision)
}

/// Why an unhealthy instance with overrides does not count.
fn doubt(instance: &Instance) -> Option<Doubt> {
    RevisionClock::carried_by(&instance.status)?.doubt.filter(|_| !own_kinds(instance).is_empty())
}

/// Whether it has an override that is not assigned yet.
fn has_new_override(observed: &Observed, instance: &Instance) -> bool {
    instance.overrides.iter().any(|config| match observed.configs.get(config) {
        Some(Lookup::Found(live)) => instance.status.told().all(|pin| pin.hash != live.hash),
        _ => false,
    })
}

fn selects(observed: &Observed, cluster: &ClusterName) -> bool {
    match &observed.addon.strategy {
        InstallRule::Labels(selector) => {
            observed.clusters.get(cluster).is_some_and(|cluster| selector.matches(&cluster.labels))
        }
        strategy => {
            strategy.placements().iter().any(|spec| includes(observed.placements.get(&spec.name), cluster))
        }
    }
}

fn includes(selection: Option<&Selection>, cluster: &ClusterName) -> bool {
    // Decisions are sorted within a group.
    selection.is_some_and(|selection| {
        selection.groups.iter().any(|group| group.clusters.binary_search(cluster).is_ok())
    })
}

/// The last placement in the list that selects the cluster.
fn governor<'a>(observed: &'a Observed, cluster: &ClusterName) -> Option<&'a InstallPlacement> {
    observed
        .addon
        .strategy
        .placements()
        .iter()
        .rev()
        .find(|spec| includes(observed.placements.get(&spec.name), cluster))
}

/// The clusters that a placement selects, that exist, and that no later placement takes.
fn governed<'a>(observed: &'a Observed, spec: &InstallPlacement) -> Vec<&'a ClusterName> {
    let Some(selection) = observed.placements.get(&spec.name) else { return Vec::new() };
    selection
        .clusters()
        .filter(|name| governor(observed, name).is_some_and(|governor| governor.name == spec.name))
        .filter(|name| may_be_governed(observed, name))
        .collect()
}

fn may_be_governed(observed: &Observed, name: &ClusterName) -> bool {
    observed.clusters.get(name).is_some_and(|cluster| {
        !cluster.deleting && (!cluster.opted_out || observed.instances.contains_key(name))
    })
}

/// Whether it is our instance and is no longer selected.
fn is_leaving(observed: &Observed, cluster: &ClusterName) -> bool {
    let ours = observed.instances.get(cluster).is_some_and(|instance| instance.marker.is_some());
    ours && !selects(observed, cluster)
}

/// Whether anything was ever applied, healthy or not.
fn is_installed(observed: &Observed, instance: &Instance) -> bool {
    let works = observed.works.get(&instance.cluster).into_iter().flat_map(|works| works.iter());
    let is_here = |work: &&Work| work.hosted_on.is_none() || work.hosted_on == instance.hosting;
    let is_own = |work: &&Work| work.owner.as_ref().is_none_or(|owner| *owner == instance.uid);
    let mut own = works.filter(|work| is_here(work) && is_own(work));
    let clock = instance.status.condition(REVISION_HEALTHY);
    was_well(instance)
        || clock.is_some_and(|clock| clock.reason == Reason::NeverHealthy)
        || own.any(|work| work.was_applied && (clock.is_some() || work.rendered_from.is_some()))
}

/// Whether anything was ever applied and healthy.
fn was_well(instance: &Instance) -> bool {
    instance.status.references.iter().any(|reference| reference.applied.is_some())
}

/// Whether it keeps its revision whatever its placement does: its override cannot be resolved, or
/// it joined from elsewhere and the gate may be closed.
fn is_left_out(observed: &Observed, spec: &InstallPlacement, instance: &Instance) -> bool {
    let not_offered = |version: &Text| {
        !observed.templates.iter().any(|template| template.version.as_ref() == Some(version))
    };
    let cannot_be_had = |config: &ConfigRef| match observed.configs.get(config) {
        Some(Lookup::Found(live)) if config.kind == *GroupResource::hub_configs() => {
            version_in(&live.content).is_some_and(|version| not_offered(&version))
        }
        Some(Lookup::Found(_)) => false,
        _ => true,
    };
    instance.overrides.iter().any(cannot_be_had)
        || is_refused_at_rest(observed, instance)
        || (instance.hosting.is_some() && observed.renders_templates())
        || instance.version.as_ref().is_some_and(not_offered)
        || has_joined(observed, spec, instance)
}

/// The hub refuses to write its status, so nobody can move it, and nobody has.
fn is_refused_at_rest(observed: &Observed, instance: &Instance) -> bool {
    let refused = observed.refused.get(&instance.cluster);
    let hash = |pin: &Option<Pin>| pin.as_ref().map(|pin| pin.hash.clone());
    let mut references = instance.status.references.iter();
    refused.is_some_and(|refusal| refusal.what == RefusedWrite::Status)
        && (!was_well(instance)
            || RevisionClock::carried_by(&instance.status).is_none_or(|clock| clock.has_arrived)
                && references.all(|reference| hash(&reference.desired) == hash(&reference.applied)))
}

/// Whether the rollout to the known good revision is not complete yet: then every governed cluster
/// goes there.
fn is_rolling(observed: &Observed, spec: &InstallPlacement) -> bool {
    let recorded = observed.addon.status.placements.get(&spec.name);
    let completed = observed.revisions.completed.get(&spec.name);
    recorded.is_some_and(|recorded| {
        recorded.known_good.is_some()
            && recorded.applied != recorded.known_good
            && !completed.into_iter().flatten().any(|one| Some(one) == recorded.known_good.as_ref())
    })
}

/// Whether every governed cluster has the revision, the gate holds none back, and at least one
/// gated cluster got it from its placement.
fn all_installed(observed: &Observed, spec: &InstallPlacement, revision: &Revision) -> bool {
    let governed = governed(observed, spec);
    let has = |name: &ClusterName| {
        let instance = observed.instances.get(name);
        settled_on(observed, name, revision)
            || instance.is_some_and(|instance| !instance.overrides.is_empty() || instance.version.is_some())
    };
    let gated = |name: &ClusterName| {
        let instance = observed.instances.get(name);
        let own = instance.is_some_and(|one| !one.overrides.is_empty() || one.version.is_some());
        let mut canaries = spec.rollout.canaries();
        !own && !canaries.any(|canary| includes(observed.placements.get(canary), name))
    };
    governed.iter().all(|name| has(name)) && governed.iter().any(|name| gated(name))
}

/// The overridden kinds. An own version also overrides the template.
fn own_kinds(instance: &Instance) -> BTreeSet<GroupResource> {
    let mut own: BTreeSet<GroupResource> =
        instance.overrides.iter().map(|config| config.kind.clone()).collect();
    if instance.version.is_some() {
        own.insert(GroupResource::hub_configs().clone());
    }
    if own.contains(GroupResource::hub_configs()) {
        own.insert(GroupResource::templates().clone());
    }
    own
}

/// The assigned hashes of all other kinds, by kind; of one kind in order.
fn told_except(instance: &Instance, own: &BTreeSet<GroupResource>) -> Vec<(GroupResource, Hash)> {
    let told = instance.status.told().filter(|pin| !own.contains(&pin.config.kind));
    told.map(|pin| (pin.config.kind.clone(), pin.hash.clone())).collect()
}

/// Whether the assignment changes for a kind that is not overridden.
fn moves(old: &Instance, new: &Instance) -> bool {
    let own = own_kinds(new);
    told_except(old, &own) != told_except(new, &own)
}

/// A cluster's works. If Aviary renders them, a work without an owner that Aviary did not render is
/// ignored, whatever its label.
fn works_of<'a>(observed: &'a Observed, cluster: &ClusterName) -> impl Iterator<Item = &'a Work> {
    let rendered = observed.renders_templates();
    let hosting = observed.instances.get(cluster).and_then(|instance| instance.hosting.as_ref());
    let works = observed.works.get(cluster).into_iter().flat_map(|works| works.iter());
    works.filter(move |work| match &work.hosted_on {
        Some(on) => !rendered && hosting == Some(on),
        None => !rendered || work.owner.is_some() || work.rendered_from.is_some(),
    })
}

fn has_failed(observed: &Observed, cluster: &ClusterName) -> bool {
    observed.refused.contains_key(cluster)
        || works_of(observed, cluster).any(|work| matches!(work.applied, Seen::No { .. }))
}

fn settled_on(observed: &Observed, cluster: &ClusterName, revision: &Revision) -> bool {
    observed.instances.get(cluster).is_some_and(|instance| {
        let own = own_kinds(instance);
        let wanted = revision.pins().iter().filter(|pin| !own.contains(&pin.config.kind));
        wanted.map(|pin| &pin.hash).eq(told_except(instance, &own).iter().map(|(_, hash)| hash))
            && has_arrived_except(observed, instance, &own)
    })
}

fn all_settled(observed: &Observed, spec: &InstallPlacement, revision: &Revision) -> bool {
    let governed = governed(observed, spec);
    let done = |name: &ClusterName| {
        settled_on(observed, name, revision)
            || observed.instances.get(name).is_some_and(|instance| is_left_out(observed, spec, instance))
    };
    !governed.is_empty() && governed.iter().all(|name| done(name))
}

/// Whether it is installed and not settled on its assigned revision. Returns false if a clock or
/// the tolerance of failures might exclude it.
fn counts_in_flight(observed: &Observed, spec: &InstallPlacement, cluster: &ClusterName) -> bool {
    let Some(instance) = observed.instances.get(cluster) else { return false };
    let own = own_kinds(instance);
    if !is_installed(observed, instance)
        || instance.deleting
        || has_arrived_except(observed, instance, &own)
        || is_left_out(observed, spec, instance)
    {
        return false;
    }
    // Its own override may be the cause.
    let had_arrived = RevisionClock::carried_by(&instance.status).is_none_or(|clock| clock.has_arrived);
    if doubt(instance).is_some() || (!own.is_empty() && had_arrived) || has_new_override(observed, instance) {
        return false;
    }
    let unreachable = observed.clusters.get(cluster).is_some_and(|cluster| cluster.unreachable.is_some());
    let at_rest = !was_well(instance)
        || RevisionClock::carried_by(&instance.status).is_none_or(|clock| clock.has_arrived)
            && instance.status.references.iter().filter(|reference| !own.contains(&reference.kind)).all(
                |reference| {
                    let hash = |pin: &Option<Pin>| pin.as_ref().map(|pin| pin.hash.clone());
                    hash(&reference.desired) == hash(&reference.applied)
                },
            );
    let forgiven = spec.rollout.max_failures.is_some()
        && (has_failed(observed, cluster) || spec.rollout.progress_deadline.is_some());
    let excused = unreachable && (at_rest || spec.rollout.progress_deadline.is_some());
    !forgiven && !excused
}
