//! One add-on: its placements, its reasons, its revisions, and a row for every cluster.

use aviary_engine::duration;
use aviary_engine::explain::{Decision, Wait};
use aviary_engine::fleet::Fleet;
use aviary_engine::observed::{Observed, Pace, Rollout};
use aviary_engine::plan::{self, ClusterReport, PlacementReport, Plan};
use aviary_engine::problem::Problem;
use aviary_engine::rollout::State;
use aviary_engine::verdict::{self, Verdict};

use crate::columns::{Rows, SentColumns};
use crate::events::EventLine;
use crate::messages::{
    AddOnDelta, AddOnMessage, BrakeLine, ClusterKind, GateLine, Heading, PlacementLine, ProblemMessage,
    ReasonLine, RolloutProgress, Sections,
};
use crate::revisions::RevisionLine;
use crate::summary::{AddOnTitle, Summary};
use crate::timeline::{Noted, Timeline, TimelinePoint};
use crate::topic::{ChangeEffect, TopicState, data};

/// How many clusters are named for one reason, and how many reasons are listed.
const EXAMPLES: usize = 3;
const MOST_REASONS: usize = 50;

/// An add-on at present.
pub(crate) struct Looked {
    sections: Sections,
    rows: Rows,
}

/// An add-on as it was sent.
#[derive(Debug)]
pub(crate) struct Detail {
    now: String,
    sections: Sections,
    columns: SentColumns,
    timeline: Vec<TimelinePoint>,
}

impl Looked {
    pub(crate) fn of(
        fleet: &Fleet<'_>,
        plan: &Plan,
        problems: &[Problem],
        title: &AddOnTitle,
        summary: &Summary,
        revisions: Vec<RevisionLine>,
        events: Vec<EventLine>,
    ) -> Self {
        let Summary {
            name,
            display_name,
            state,
            message,
            // The page counts the rows.
            clusters: _,
            settled,
            in_flight,
            failed,
            waiting,
            leaving,
            placements: _,
            version,
            oldest_wait_since,
            paused,
        } = summary.clone();
        let sections = Sections {
            heading: Heading { name, display_name, description: title.description.clone() },
            progress: RolloutProgress {
                state,
                message,
                settled,
                in_flight,
                failed,
                waiting,
                leaving,
                version,
                oldest_wait_since,
                paused,
            },
            placements: placements(fleet.observed, plan),
            problems: problems.iter().map(problem_line).collect(),
            brake: problems.iter().find_map(brake),
            reasons: reasons(plan),
            revisions,
            events,
        };
        Self { sections, rows: Rows::of(fleet, plan) }
    }
}

impl TopicState for Detail {
    const EVENT: &'static str = "addon";

    fn whole(&self) -> String {
        data(&AddOnMessage {
            now: &self.now,
            sections: &self.sections,
            timeline: &self.timeline,
            dictionary: self.columns.dictionary(),
            clusters: self.columns.all(),
        })
    }
}

impl Detail {
    pub(crate) fn new(now: &str, looked: Looked, timeline: &Timeline) -> Self {
        let Looked { sections, rows } = looked;
        Self {
            now: now.to_owned(),
            sections,
            columns: SentColumns::new(&rows),
            timeline: timeline.points().to_vec(),
        }
    }

    /// Updates the state of the add-on.
    pub(crate) fn take(
        &mut self,
        now: &str,
        looked: Looked,
        noted: &Noted,
        timeline: &Timeline,
    ) -> ChangeEffect {
        let Some(clusters) = self.columns.take(&looked.rows) else {
            *self = Self::new(now, looked, timeline);
            return ChangeEffect::Whole;
        };
        let mut delta = AddOnDelta::between(&self.sections, &looked.sections);
        delta.clusters = clusters;
        let step = tell(now, noted, &mut self.timeline, timeline, delta);
        self.sections = looked.sections;
        self.told(now, step)
    }

    /// Only the time has changed since.
    pub(crate) fn note(&mut self, now: &str, noted: &Noted, timeline: &Timeline) -> ChangeEffect {
        let step = tell(now, noted, &mut self.timeline, timeline, AddOnDelta::default());
        self.told(now, step)
    }

    fn told(&mut self, now: &str, step: ChangeEffect) -> ChangeEffect {
        if !matches!(step, ChangeEffect::Nothing) {
            now.clone_into(&mut self.now);
        }
        step
    }
}

/// A change with the difference of the timeline; `known` is the timeline that was sent before.
fn tell<'a>(
    now: &'a str,
    noted: &Noted,
    known: &mut Vec<TimelinePoint>,
    timeline: &'a Timeline,
    mut delta: AddOnDelta<'a>,
) -> ChangeEffect {
    match noted {
        Noted::Nothing => {}
        Noted::Point(point) => {
            known.push(*point);
            delta.timeline_append = Some([*point]);
        }
        Noted::Whole => {
            *known = timeline.points().to_vec();
            delta.timeline = Some(timeline.points());
        }
    }
    if delta.is_empty() {
        return ChangeEffect::Nothing;
    }
    delta.now = now;
    ChangeEffect::Delta { event: "addon-delta", data: data(&delta) }
}

fn problem_line(problem: &Problem) -> ProblemMessage {
    let severity = if problem.is_warning() { "warning" } else { "error" };
    ProblemMessage { severity, message: problem.to_string() }
}

fn brake(problem: &Problem) -> Option<BrakeLine> {
    let Problem::DeletionHeld { count, .. } = problem else { return None };
    Some(BrakeLine { held: *count, message: problem.to_string(), acknowledge: count.to_string() })
}

/// In the order of the add-on's list.
fn placements(observed: &Observed, plan: &Plan) -> Vec<PlacementLine> {
    let specs = observed.addon.strategy.placements();
    let positions = verdict::positions(specs);
    let waits = canary_waits(specs.len(), &plan.report.clusters);
    let lines = plan.report.placements.iter().zip(specs).zip(positions).zip(waits);
    lines
        .map(|(((report, spec), position), wait)| {
            let counts = &report.counts;
            let recorded = observed.addon.status.placements.get(&spec.name);
            let good = recorded.and_then(|recorded| recorded.known_good.as_ref());
            let tally = &report.tally;
            PlacementLine {
                name: report.name.to_string(),
                position,
                state: verdict::of_placement(observed, report),
                message: report.message.clone(),
                strategy: strategy(&spec.rollout),
                budget: verdict::budget(spec, counts),
                slots_used: counts.slots_used,
                in_flight: tally.in_flight,
                governed: counts.governed,
                done: tally.settled,
                failed: tally.failed,
                waiting: tally.waiting,
                leaving: tally.leaving,
                gate: gate(&spec.rollout, shut(report, wait)).filter(|_| !rolls_back(observed, report)),
                paused: spec.rollout.paused,
                wants: report.desired.as_deref().map(str::to_owned),
                target: report.target.as_deref().map(str::to_owned),
                known_good: good.map(|good| plan::label(observed, good).to_string()),
            }
        })
        .collect()
}

/// What keeps the gate of each placement closed, as its clusters report it.
fn canary_waits(placements: usize, clusters: &[ClusterReport]) -> Vec<Option<String>> {
    let mut waits = vec![None; placements];
    for cluster in clusters {
        if let (Decision::Hold(Wait::Canary(wait)), Some(place)) =
            (&cluster.decision, cluster.placement.and_then(|index| waits.get_mut(index)))
            && place.is_none()
        {
            *place = Some(wait.to_string());
        }
    }
    waits
}

/// A rollback in progress: no canary delays it, so nothing can be said about its gate.
fn rolls_back(observed: &Observed, report: &PlacementReport) -> bool {
    let is_over = matches!(report.verdict(), Verdict::Installed | Verdict::Upgraded | Verdict::Empty);
    let recorded = observed.addon.status.placements.get(&report.name);
    let desired = recorded.and_then(|recorded| recorded.desired.as_ref());
    let completed = observed.revisions.completed.get(&report.name);
    !is_over && desired.zip(completed).is_some_and(|(desired, completed)| completed.contains(desired))
}

/// What keeps the gate of a placement closed.
fn shut(report: &PlacementReport, wait: Option<String>) -> Option<String> {
    match &report.state {
        State::WaitingForCanary(wait) => Some(wait.to_string()),
        _ => wait,
    }
}

fn gate(rollout: &Rollout, shut: Option<String>) -> Option<GateLine> {
    let canaries: Vec<String> = rollout.canaries().map(ToString::to_string).collect();
    if canaries.is_empty() {
        return None;
    }
    let open = shut.is_none();
    let passed = || format!("open: the desired revision has passed {}", canaries.join(" and "));
    let message = shut.unwrap_or_else(passed);
    Some(GateLine { canaries, open, message })
}

fn strategy(rollout: &Rollout) -> String {
    let kind = if rollout.canary.is_some() { "RollingUpdateWithCanary" } else { "RollingUpdate" };
    let mut line = match rollout.pace {
        Pace::AllAtOnce => "UpdateAll".to_owned(),
        Pace::Rolling(limit) => format!("{kind} {limit}"),
        Pace::RollingByGroupSize => format!("{kind} by the size of decision groups"),
        Pace::PerGroup => "group by group".to_owned(),
    };
    if !rollout.mandatory.is_empty() {
        line.push_str(", mandatory groups first");
    }
    if let Some(limit) = &rollout.max_failures {
        line.push_str(&format!(", tolerates {limit} failed"));
    }
    if let Some(deadline) = rollout.progress_deadline {
        line.push_str(&format!(", deadline {}", duration::shown(deadline)));
    }
    if !rollout.min_success_time.is_zero() {
        line.push_str(&format!(", soaks {}", duration::shown(rollout.min_success_time)));
    }
    line
}

/// What is not settled, and why: failed, leaving, in flight, waiting; the largest group first.
fn reasons(plan: &Plan) -> Vec<ReasonLine> {
    let unsettled = plan.report.clusters.iter().filter(|cluster| cluster.decision != Decision::Settled);
    let mut groups = verdict::groups(unsettled);
    groups.sort_by_key(|group| (group.why.decision.phase().rank(), std::cmp::Reverse(group.clusters.len())));
    groups
        .into_iter()
        .take(MOST_REASONS)
        .map(|group| ReasonLine {
            code: group.why.decision.code(),
            kind: ClusterKind::of(&group.why.decision),
            message: group.message,
            count: group.clusters.len(),
            examples: group.clusters.iter().take(EXAMPLES).map(ToString::to_string).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use aviary_engine::limit::Limit;
    use aviary_engine::name::PlacementName;
    use aviary_engine::observed::InstallPlacement;

    use super::*;

    fn spec(name: &str, canary: Option<&str>) -> InstallPlacement {
        let of = |name: &str| PlacementName::new("default", name);
        InstallPlacement {
            stated: None,
            name: of(name),
            configs: Vec::new(),
            version: None,
            install_namespace: None,
            rollout: Rollout { canary: canary.map(of), ..Rollout::default() },
            fault: None,
        }
    }

    #[test]
    fn a_canary_goes_before_what_waits_for_it() {
        let specs = [
            spec("fleet", Some("early")),
            spec("early", Some("canary")),
            spec("canary", None),
            spec("other", None),
        ];
        assert_eq!(verdict::positions(&specs), [3, 2, 0, 1]);
        let outside = [spec("fleet", Some("elsewhere")), spec("other", None)];
        assert_eq!(verdict::positions(&outside), [0, 1], "a canary that is not in the list holds no place");
        let mut both = spec("both", Some("other"));
        both.rollout.more_canaries.push(PlacementName::new("default", "early"));
        let specs = [both, spec("early", Some("canary")), spec("canary", None), spec("other", None)];
        assert_eq!(verdict::positions(&specs), [3, 2, 0, 1], "the canary of a policy goes before, too");
        let cycle = [spec("a", Some("b")), spec("b", Some("a"))];
        assert_eq!(verdict::positions(&cycle).len(), 2, "a cycle comes to an end");
    }

    #[test]
    fn a_gate_names_the_canaries_of_policies_too() {
        let mut rollout = spec("fleet", None).rollout;
        assert_eq!(gate(&rollout, None), None);
        // A policy requires the first, where the add-on names none, or a further one.
        rollout.canary = Some(PlacementName::new("default", "canary"));
        rollout.more_canaries.push(PlacementName::new("default", "early"));
        let line = gate(&rollout, None).unwrap();
        assert!(line.open);
        assert_eq!(line.canaries, ["default/canary", "default/early"]);
        assert_eq!(line.message, "open: the desired revision has passed default/canary and default/early");
        assert!(!gate(&rollout, Some("default/early: 1 of 5 not passed".into())).unwrap().open);
    }

    #[test]
    fn a_strategy_is_one_line() {
        let mut rollout = Rollout::default();
        assert_eq!(strategy(&rollout), "UpdateAll");
        rollout.pace = Pace::Rolling(Limit::Percent(25));
        rollout.max_failures = Some(Limit::Count(2));
        rollout.min_success_time = std::time::Duration::from_secs(300);
        assert_eq!(strategy(&rollout), "RollingUpdate 25%, tolerates 2 failed, soaks 5m");
        rollout.canary = Some(PlacementName::new("default", "canary"));
        assert!(strategy(&rollout).starts_with("RollingUpdateWithCanary 25%"));
    }
}
