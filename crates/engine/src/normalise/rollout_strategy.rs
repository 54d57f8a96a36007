//! A rollout strategy: 000's spelling, ours, and OCM's later one, on one machinery.

use std::time::Duration;

use aviary_api::IntOrString;
use aviary_api::addon::{MandatoryDecisionGroup, RolloutStrategy};

use crate::duration;
use crate::limit::Limit;
use crate::name::PlacementName;
use crate::observed::{GroupKey, Pace, Rollout};
use crate::problem::Problem;

/// Reads a rollout strategy. With any fault the placement stands still: a limit that cannot be read is not "no limit".
pub(super) fn rollout_strategy(
    placement: &PlacementName,
    given: Option<&RolloutStrategy>,
) -> (Rollout, Vec<Problem>) {
    let mut reader = Reader { placement, faults: Vec::new() };
    let rollout = given.map(|given| reader.read(given)).unwrap_or_default();
    (rollout, reader.faults)
}

struct Reader<'a> {
    placement: &'a PlacementName,
    faults: Vec<Problem>,
}

/// The settings that stand beside the strategy in our spelling, and inside its block in OCM's.
#[derive(Default)]
struct Shared<'a> {
    max_failures: Option<&'a IntOrString>,
    progress_deadline: Option<&'a String>,
    min_success_time: Option<&'a String>,
    mandatory: &'a [MandatoryDecisionGroup],
}

impl Reader<'_> {
    fn read(&mut self, given: &RolloutStrategy) -> Rollout {
        let mut canary = None;
        let mut inner = Shared::default();
        let pace = match given.type_.as_deref().unwrap_or("UpdateAll") {
            "UpdateAll" | "" => Pace::AllAtOnce,
            "RollingUpdate" => {
                let limit = given
                    .rolling_update
                    .as_ref()
                    .and_then(|rolling| rolling.max_concurrently_updating.as_ref());
                Pace::Rolling(self.budget("rollingUpdate.maxConcurrentlyUpdating", limit))
            }
            "RollingUpdateWithCanary" => {
                let block = given.rolling_update_with_canary.as_ref();
                let named = block.and_then(|block| block.placement.as_ref());
                canary = named.map(|canary| PlacementName::new(&canary.namespace, &canary.name));
                if canary.as_ref().is_none_or(|canary| canary.name.is_empty() || canary.namespace.is_empty())
                {
                    self.faults.push(Problem::CanaryNotNamed { placement: self.placement.clone() });
                }
                let limit = block.and_then(|block| block.max_concurrently_updating.as_ref());
                Pace::Rolling(self.budget("rollingUpdateWithCanary.maxConcurrentlyUpdating", limit))
            }
            "All" => {
                if let Some(all) = &given.all {
                    inner = Shared {
                        max_failures: all.max_failures.as_ref(),
                        progress_deadline: all.progress_deadline.as_ref().or(all.timeout.as_ref()),
                        min_success_time: all.min_success_time.as_ref(),
                        mandatory: &[],
                    };
                }
                Pace::AllAtOnce
            }
            "Progressive" => match &given.progressive {
                None => Pace::RollingByGroupSize,
                Some(block) => {
                    inner = Shared {
                        max_failures: block.max_failures.as_ref(),
                        progress_deadline: block.progress_deadline.as_ref().or(block.timeout.as_ref()),
                        min_success_time: block.min_success_time.as_ref(),
                        mandatory: &block.mandatory_decision_groups,
                    };
                    match &block.max_concurrency {
                        None => Pace::RollingByGroupSize,
                        limit => Pace::Rolling(self.budget("progressive.maxConcurrency", limit.as_ref())),
                    }
                }
            },
            "ProgressivePerGroup" => {
                if let Some(block) = &given.progressive_per_group {
                    inner = Shared {
                        max_failures: block.max_failures.as_ref(),
                        progress_deadline: block.progress_deadline.as_ref().or(block.timeout.as_ref()),
                        min_success_time: block.min_success_time.as_ref(),
                        mandatory: &block.mandatory_decision_groups,
                    };
                }
                Pace::PerGroup
            }
            other => {
                self.faults.push(Problem::RolloutTypeUnknown {
                    placement: self.placement.clone(),
                    given: other.into(),
                });
                Pace::AllAtOnce
            }
        };
        Rollout {
            pace,
            canary,
            mandatory: inner.mandatory.iter().filter_map(group_key).collect(),
            max_failures: self.tolerance(given.max_failures.as_ref().or(inner.max_failures)),
            progress_deadline: self
                .duration("progressDeadline", given.progress_deadline.as_ref().or(inner.progress_deadline)),
            min_success_time: self
                .duration("minSuccessTime", given.min_success_time.as_ref().or(inner.min_success_time))
                .unwrap_or_default(),
            paused: given.paused.unwrap_or(false),
        }
    }

    fn budget(&mut self, field: &'static str, given: Option<&IntOrString>) -> Limit {
        let Some(given) = given else { return Limit::DEFAULT };
        Limit::budget(given).unwrap_or_else(|error| {
            self.faults.push(Problem::LimitInvalid { placement: self.placement.clone(), field, error });
            Limit::DEFAULT
        })
    }

    fn tolerance(&mut self, given: Option<&IntOrString>) -> Option<Limit> {
        match Limit::tolerance(given?) {
            Ok(limit) => Some(limit),
            Err(error) => {
                let field = "maxFailures";
                self.faults.push(Problem::LimitInvalid { placement: self.placement.clone(), field, error });
                None
            }
        }
    }

    fn duration(&mut self, field: &'static str, given: Option<&String>) -> Option<Duration> {
        duration::parse(given?).unwrap_or_else(|error| {
            self.faults.push(Problem::DurationInvalid { placement: self.placement.clone(), field, error });
            None
        })
    }
}

fn group_key(group: &MandatoryDecisionGroup) -> Option<GroupKey> {
    match (&group.group_name, group.group_index) {
        (Some(name), _) if !name.is_empty() => Some(GroupKey::Name(name.as_str().into())),
        (_, Some(index)) => usize::try_from(index).ok().map(GroupKey::Index),
        _ => None,
    }
}
