//! Policies: what people require of rollouts, beside what the add-ons say.
//!
//! A policy's value replaces the add-on's own. Between several policies the strictest counts: the
//! smallest number of failures, the shortest deadline, the longest soak, any pause, every canary.
//! A policy that cannot be used holds what it covers: it must not become "no policy".

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::limit::Limit;
use crate::name::{PlacementName, Text};
use crate::observed::{AddOn, InstallPlacement, InstallRule, ObservedCondition, Rollout};
use crate::problem::Problem;
use crate::selector::Selector;

/// An AddOnRolloutPolicy.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub name: Text,
    pub uid: Text,
    pub resource_version: Text,
    pub generation: i64,
    pub addons: PolicyTargets,
    /// `None`: all.
    pub placements: Option<BTreeSet<PlacementName>>,
    pub canary: Option<PlacementName>,
    pub paused: bool,
    pub max_failures: Option<Limit>,
    pub min_success_time: Option<Duration>,
    pub progress_deadline: Option<Duration>,
    /// Why it cannot be used.
    pub fault: Option<String>,
    /// The summary in its status.
    pub summary: Option<PolicySummary>,
    /// The condition of that summary.
    pub verdict: Option<ObservedCondition>,
    /// It is too large to be read, so its status is not known either.
    pub is_unreadable: bool,
}

/// The add-ons that a policy is about.
#[derive(Clone, Debug, Default)]
pub enum PolicyTargets {
    #[default]
    All,
    Named(BTreeSet<Text>),
    Labelled(Selector),
}

/// What a policy applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySummary {
    pub generation: i64,
    pub addons: usize,
    pub placements: usize,
    pub fault: Option<String>,
}

/// The policies that a rollout strategy is made of, to name them in reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyNames {
    pub paused: Option<Text>,
    /// With the policy that requires it.
    pub canaries: Vec<(PlacementName, Text)>,
    pub max_failures: Option<Text>,
    pub min_success_time: Option<Text>,
    pub progress_deadline: Option<Text>,
}

impl PolicyNames {
    /// The policy that requires this canary.
    pub fn of_canary(&self, canary: &PlacementName) -> Option<&Text> {
        self.canaries.iter().find(|(name, _)| name == canary).map(|(_, policy)| policy)
    }

    /// Every policy that has a say.
    pub fn all(&self) -> BTreeSet<&Text> {
        let Self { paused, canaries, max_failures, min_success_time, progress_deadline } = self;
        let scalars = [paused, max_failures, min_success_time, progress_deadline];
        scalars.into_iter().flatten().chain(canaries.iter().map(|(_, policy)| policy)).collect()
    }
}

impl Policy {
    pub fn covers(&self, addon: &AddOn) -> bool {
        match &self.addons {
            PolicyTargets::All => true,
            PolicyTargets::Named(names) => names.contains(&addon.name),
            PolicyTargets::Labelled(selector) => selector.matches(&addon.labels),
        }
    }

    pub fn covers_placement(&self, placement: &PlacementName) -> bool {
        self.placements.as_ref().is_none_or(|placements| placements.contains(placement))
    }

    fn problem(&self) -> Option<Problem> {
        let why = self.fault.clone()?;
        Some(Problem::PolicyInvalid { policy: self.name.clone(), why })
    }
}

/// Applies policies to the placements of an add-on. What earlier policies required is undone first.
/// Returns the problems of those policies.
pub fn apply<'p>(addon: &mut AddOn, policies: impl Iterator<Item = &'p Arc<Policy>>) -> Vec<Problem> {
    let covering: Vec<&Policy> =
        policies.map(|policy| &**policy).filter(|policy| policy.covers(addon)).collect();
    let InstallRule::Placements(placements) = &mut addon.strategy else { return Vec::new() };
    let mut problems: Vec<Problem> = Vec::new();
    for spec in placements {
        let InstallPlacement { name, rollout, fault, stated, .. } = spec;
        let own = stated.get_or_insert_with(|| Box::new((rollout.clone(), fault.clone())));
        (*rollout, *fault) = (own.0.clone(), own.1.clone());
        for policy in covering.iter().filter(|policy| policy.covers_placement(name)) {
            if let Some(problem) = policy.problem() {
                if !problems.contains(&problem) {
                    problems.push(problem.clone());
                }
                fault.get_or_insert(problem);
            }
            require(rollout, name, policy);
        }
    }
    problems
}

/// Holds every placement, because the policies cannot be read.
pub fn hold_all(addon: &mut AddOn) -> Option<Problem> {
    let InstallRule::Placements(placements) = &mut addon.strategy else { return None };
    for spec in placements.iter_mut() {
        if let Some(own) = &spec.stated {
            (spec.rollout, spec.fault) = (own.0.clone(), own.1.clone());
        } else {
            spec.stated = Some(Box::new((spec.rollout.clone(), spec.fault.clone())));
        }
        spec.fault.get_or_insert(Problem::PoliciesUnreadable);
    }
    (!placements.is_empty()).then_some(Problem::PoliciesUnreadable)
}

/// Adds what one policy requires of a placement.
fn require(rollout: &mut Rollout, placement: &PlacementName, policy: &Policy) {
    let name = || policy.name.clone();
    // A canary never waits for itself.
    if let Some(canary) = policy.canary.as_ref().filter(|canary| *canary != placement) {
        if !rollout.canaries().any(|known| known == canary) {
            match &rollout.canary {
                None => rollout.canary = Some(canary.clone()),
                Some(_) => rollout.more_canaries.push(canary.clone()),
            }
        }
        if rollout.by.of_canary(canary).is_none() {
            rollout.by.canaries.push((canary.clone(), name()));
        }
    }
    if policy.paused {
        rollout.paused = true;
        rollout.by.paused.get_or_insert_with(name);
    }
    if let Some(limit) = policy.max_failures {
        match &rollout.by.max_failures {
            None => (rollout.max_failures, rollout.by.max_failures) = (Some(limit), Some(name())),
            // Which one is smaller depends on the number of clusters.
            Some(_) => rollout.more_max_failures.push(limit),
        }
    }
    if let Some(soak) = policy.min_success_time
        && (rollout.by.min_success_time.is_none() || soak > rollout.min_success_time)
    {
        (rollout.min_success_time, rollout.by.min_success_time) = (soak, Some(name()));
    }
    if let Some(deadline) = policy.progress_deadline
        && (rollout.by.progress_deadline.is_none()
            || rollout.progress_deadline.is_none_or(|known| deadline < known))
    {
        (rollout.progress_deadline, rollout.by.progress_deadline) = (Some(deadline), Some(name()));
    }
}

/// What a policy applies to, among these add-ons.
pub fn summary<'a>(policy: &Policy, addons: impl Iterator<Item = &'a AddOn>) -> PolicySummary {
    let mut summary = PolicySummary {
        generation: policy.generation,
        addons: 0,
        placements: 0,
        fault: policy.fault.clone(),
    };
    for addon in addons.filter(|addon| policy.covers(addon)) {
        summary.addons += 1;
        let placements = addon.strategy.placements().iter();
        summary.placements += placements.filter(|spec| policy.covers_placement(&spec.name)).count();
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Pace;

    fn placement(name: &str) -> PlacementName {
        PlacementName::new("default", name)
    }

    fn addon() -> AddOn {
        let spec = |name: &str| {
            let stated =
                Rollout { max_failures: Some(Limit::Count(0)), pace: Pace::AllAtOnce, ..Rollout::default() };
            InstallPlacement {
                name: placement(name),
                configs: Vec::new(),
                version: None,
                install_namespace: None,
                rollout: stated,
                fault: None,
                stated: None,
            }
        };
        let strategy = InstallRule::Placements(vec![spec("canary"), spec("prod")]);
        AddOn { name: "greeter".into(), strategy, ..AddOn::default() }
    }

    fn policy(name: &str) -> Policy {
        Policy { name: name.into(), ..Policy::default() }
    }

    fn applied(policies: Vec<Policy>) -> (AddOn, Vec<Problem>) {
        let mut addon = addon();
        let policies: Vec<Arc<Policy>> = policies.into_iter().map(Arc::new).collect();
        let problems = apply(&mut addon, policies.iter());
        (addon, problems)
    }

    fn rollout(addon: &AddOn, at: usize) -> Rollout {
        addon.strategy.placements().get(at).map(|spec| spec.rollout.clone()).unwrap_or_default()
    }

    #[test]
    fn a_policys_values_replace_the_add_ons_own_and_the_strictest_policy_counts() {
        let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
        let lax = Policy {
            max_failures: Some(Limit::Count(5)),
            min_success_time: minutes(1),
            progress_deadline: minutes(30),
            ..policy("lax")
        };
        let (addon, _) = applied(vec![lax.clone()]);
        let one = rollout(&addon, 1);
        assert_eq!(one.tolerated(100), Some(5));
        assert_eq!((Some(one.min_success_time), one.progress_deadline), (minutes(1), minutes(30)));
        let strict = Policy {
            max_failures: Some(Limit::Percent(2)),
            min_success_time: minutes(10),
            progress_deadline: minutes(20),
            paused: true,
            ..policy("strict")
        };
        for policies in [vec![lax.clone(), strict.clone()], vec![strict, lax]] {
            let (addon, _) = applied(policies);
            let one = rollout(&addon, 1);
            assert_eq!((one.tolerated(100), one.tolerated(1000)), (Some(2), Some(5)));
            assert_eq!((Some(one.min_success_time), one.progress_deadline), (minutes(10), minutes(20)));
            assert_eq!(one.by.paused.as_deref(), Some("strict"));
        }
    }

    #[test]
    fn all_canaries_apply_but_never_to_themselves() {
        let canary = |name: &str, of: &str| Policy { canary: Some(placement(of)), ..policy(name) };
        let (addon, _) = applied(vec![canary("one", "canary"), canary("two", "early")]);
        let of =
            |at: usize| rollout(&addon, at).canaries().map(|name| name.name.to_string()).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec!["early".to_owned()], vec!["canary".to_owned(), "early".to_owned()]));
        assert_eq!(rollout(&addon, 1).by.of_canary(&placement("early")).map(|name| &**name), Some("two"));
    }

    #[test]
    fn a_policy_is_undone_when_it_is_gone_and_covers_only_what_it_names() {
        let mut addon = addon();
        let pause = Policy {
            paused: true,
            placements: Some([placement("prod")].into()),
            addons: PolicyTargets::Named(["greeter".into()].into()),
            ..policy("pause")
        };
        let other =
            Policy { addons: PolicyTargets::Named(["other".into()].into()), paused: true, ..policy("other") };
        apply(&mut addon, [Arc::new(pause.clone()), Arc::new(other)].iter());
        assert_eq!((rollout(&addon, 0).paused, rollout(&addon, 1).paused), (false, true));
        assert_eq!(summary(&pause, [&addon].into_iter()).placements, 1);
        apply(&mut addon, [].iter());
        assert_eq!(
            rollout(&addon, 1),
            tests::addon().strategy.placements().get(1).map(|spec| spec.rollout.clone()).unwrap_or_default()
        );
    }

    #[test]
    fn a_policy_that_cannot_be_used_holds_what_it_covers() {
        let broken = Policy { fault: Some("spec.maxFailures: no".to_owned()), ..policy("broken") };
        let (addon, problems) = applied(vec![broken]);
        assert_eq!(problems.len(), 1);
        assert!(addon.strategy.placements().iter().all(|spec| spec.fault.is_some()));
    }
}
