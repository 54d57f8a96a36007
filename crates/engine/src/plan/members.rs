//! Cluster by cluster: what is written for it, and why.

use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;

use super::{ClusterReport, Plan, StatusWrite, SurplusWork, WorkWrite};
use crate::configs::Revision;
use crate::evidence::{is_as_written_for, is_rendered_as_told};
use crate::explain::{Decision, Wait};
use crate::fleet::{Fleet, Member};
use crate::install::Install;
use crate::name::Text;
use crate::observed::{InstallStrategy, Instance, InstanceStatus, StatusFields};
use crate::rollout::{Move, Outcome};
use crate::status;

pub(super) fn decide(
    fleet: &Fleet<'_>,
    install: &Install,
    outcomes: &[Outcome],
    free: &Outcome,
    now: Timestamp,
    plan: &mut Plan,
) {
    let uncertain = fleet.uncertain();
    let mut labels = Labels::default();
    let mut nexts = Nexts::new(fleet, now);
    plan.report.clusters.reserve_exact(fleet.members.len());
    // Decisions are in order of position, as the members are.
    let mut decisions: Vec<_> = outcomes.iter().map(|outcome| outcome.decisions.iter().peekable()).collect();
    let mut free = free.decisions.iter().peekable();
    for (position, member) in fleet.members.iter().enumerate() {
        let rolled = match member.governor {
            Some(index) => decisions.get_mut(index),
            None => Some(&mut free),
        };
        let rolled = rolled
            .and_then(|decisions| decisions.next_if(|(at, _)| *at == position))
            .map(|(_, decided)| decided);
        let decided = match (install.decisions.get(&position), rolled) {
            // What the install strategy says about being there comes before what it should have.
            (Some(decision), _) => Rc::new(Move::stay(decision.clone())),
            (None, Some(decided)) => match keeps_still(fleet, member, decided, uncertain) {
                Some(wait) => Rc::new(Move::stay(Decision::Hold(wait))),
                None => Rc::clone(decided),
            },
            (None, None) => Rc::new(Move::stay(Decision::Hold(Wait::ClusterAbsent))),
        };
        let next = member.instance.and_then(|instance| {
            let next = nexts.of(member, instance, &decided)?;
            write_instance(member, instance, decided.starts, next, plan);
            next.status.as_deref()
        });
        let told = match &decided.told {
            Some(told) if member.overrides.is_none() => {
                Some(told.version.clone().unwrap_or_else(|| told.id.clone()))
            }
            _ => next.or(member.status()).and_then(|status| labels.told(status)),
        };
        plan.report.clusters.push(ClusterReport {
            cluster: member.name.clone(),
            placement: member.governor,
            decision: decided.decision.clone(),
            told,
        });
    }
}

/// What instances are told after this pass, where that is not simply their placement's revision.
#[derive(Default)]
struct Labels {
    /// Neighbours mostly have the same: its id is worked out once.
    last: Option<(Revision, Text)>,
}

impl Labels {
    fn told(&mut self, status: &StatusFields) -> Option<Text> {
        if status.desired_version.is_some() {
            return status.desired_version.clone();
        }
        status.told().next()?;
        if let Some((revision, id)) = &self.last
            && revision.pins().iter().map(|pin| &pin.hash).eq(status.told().map(|pin| &pin.hash))
        {
            return Some(id.clone());
        }
        let revision = status.told_revision();
        let id = revision.id();
        self.last = Some((revision, id.clone()));
        Some(id)
    }
}

/// While it is not certain which clusters the placements select, an instance that none of them governs may be one of theirs: it is not
/// to fall back to the add-on's defaults because of that.
fn keeps_still(fleet: &Fleet<'_>, member: &Member<'_>, decided: &Move, uncertain: bool) -> Option<Wait> {
    let unsure = match &fleet.observed.addon.strategy {
        InstallStrategy::Placements(_) => uncertain,
        InstallStrategy::Unusable(_) => true,
        InstallStrategy::Manual | InstallStrategy::Labels(_) => false,
    };
    (member.governor.is_none() && unsure && decided.starts).then_some(Wait::PlacementUncertain)
}

/// The statuses that instances should have, worked out once for those that are alike and are decided alike. So they share one.
struct Nexts<'f> {
    fleet: &'f Fleet<'f>,
    now: Timestamp,
    /// By [`crate::fleet::Known::index`]: the last answer, and to what.
    last: Vec<Option<(Asked, Next)>>,
}

/// All that the next status follows from, beside what is known of the member.
struct Asked {
    generation: i64,
    governor: Option<usize>,
    decided: Rc<Move>,
}

struct Next {
    /// Where it is another than the instance has.
    status: Option<InstanceStatus>,
    /// It tells the instance other hashes than the one that it has.
    retold: bool,
}

impl<'f> Nexts<'f> {
    fn new(fleet: &'f Fleet<'f>, now: Timestamp) -> Self {
        Self { fleet, now, last: (0..fleet.known).map(|_| None).collect() }
    }

    /// `None`: what is going, or is not ours, is not written to.
    fn of(&mut self, member: &Member<'_>, instance: &Instance, decided: &Rc<Move>) -> Option<&Next> {
        if matches!(
            decided.decision,
            Decision::Delete(_) | Decision::Hold(Wait::Terminating | Wait::OtherOwner)
        ) {
            return None;
        }
        let last = self.last.get_mut(member.known().index)?;
        let asked_before = last
            .as_ref()
            .is_some_and(|(asked, _)| asked.again(member, decided) && member.overrides.is_none());
        if !asked_before {
            let status = status::instance::next(self.fleet, member, instance, decided, self.now);
            let hashes =
                |status: &StatusFields| status.told().map(|pin| pin.hash.clone()).collect::<Vec<_>>();
            let retold = status.as_ref().is_some_and(|next| hashes(next) != hashes(&instance.status));
            let asked = Asked {
                generation: member.generation,
                governor: member.governor,
                decided: Rc::clone(decided),
            };
            *last = Some((asked, Next { status, retold }));
        }
        last.as_ref().map(|(_, next)| next)
    }
}

impl Asked {
    fn again(&self, member: &Member<'_>, decided: &Move) -> bool {
        self.generation == member.generation && self.governor == member.governor && self.decided.is(decided)
    }
}

fn write_instance(member: &Member<'_>, instance: &Instance, starts: bool, next: &Next, plan: &mut Plan) {
    let starts = starts || next.retold;
    if let Some(status) = &next.status {
        let write = StatusWrite {
            cluster: member.name.clone(),
            uid: instance.uid.clone(),
            resource_version: instance.resource_version.clone(),
            status: status.clone(),
        };
        if starts { plan.starts.push(write) } else { plan.statuses.push(write) }
    }
    // Works follow what the instance's status says, never what it is about to say.
    if !starts && !member.works_stand {
        write_works(member, instance, plan);
    }
}

fn write_works(member: &Member<'_>, instance: &Instance, plan: &mut Plan) {
    let Some(Ok(prepared)) = &member.known().prepared else { return };
    for index in 0..prepared.works() {
        let there = member.own_works().find(|work| prepared.work_index(&work.name) == Some(index));
        let stands = there.is_some_and(|work| {
            work.deleting
                || (is_rendered_as_told(work, prepared, &instance.status, &instance.install_namespace)
                    && is_as_written_for(work, instance))
        });
        if stands {
            continue;
        }
        plan.works.push(WorkWrite {
            cluster: member.name.clone(),
            name: prepared.work_name(index),
            replaces: there.map(|work| (work.uid.clone(), work.resource_version.clone())),
            prepared: Arc::clone(prepared),
            index,
            install_namespace: instance.install_namespace.clone(),
            instance_uid: instance.uid.clone(),
            told: instance.status.told_revision(),
        });
    }
    let is_surplus = |name: &str| prepared.work_index(name).is_some_and(|index| index >= prepared.works());
    let surplus = member.own_works().filter(|work| !work.deleting && is_surplus(&work.name));
    plan.surplus_works.extend(surplus.map(|work| SurplusWork {
        cluster: member.name.clone(),
        name: work.name.clone(),
        uid: work.uid.clone(),
    }));
}
