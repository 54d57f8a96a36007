//! Parses a rollout strategy in every spelling: the design document's, ours, and OCM's later one.

use std::time::Duration;

use aviary_api::IntOrString;
use aviary_api::addon::{MandatoryDecisionGroup, RolloutStrategy};

use crate::duration;
use crate::limit::Limit;
use crate::name::PlacementName;
use crate::observed::{GroupKey, Pace, Rollout};
use crate::problem::Problem;

/// Reads a rollout strategy. If any part is invalid, the placement does not move: an invalid limit
/// is not "no limit".
pub(super) fn rollout_strategy(
    placement: &PlacementName,
    given: Option<&RolloutStrategy>,
) -> (Rollout, Vec<Problem>) {
    let mut reader = StrategyReader { placement, faults: Vec::new() };
    let rollout = given.map(|given| reader.read(given)).unwrap_or_default();
    (rollout, reader.faults)
}

struct StrategyReader<'a> {
    placement: &'a PlacementName,
    faults: Vec<Problem>,
}

/// Settings that are next to the strategy in our spelling, and inside its block in OCM's.
#[derive(Default)]
struct BlockSettings<'a> {
    max_failures: Option<&'a IntOrString>,
    progress_deadline: Option<&'a String>,
    min_success_time: Option<&'a String>,
    mandatory: &'a [MandatoryDecisionGroup],
}

/// The blocks of OCM's spelling have the same fields in different types.
macro_rules! settings {
    ($block:expr, $mandatory:expr) => {
        BlockSettings {
            max_failures: $block.max_failures.as_ref(),
            progress_deadline: $block.progress_deadline.as_ref().or($block.timeout.as_ref()),
            min_success_time: $block.min_success_time.as_ref(),
            mandatory: $mandatory,
        }
    };
}

impl<'a> BlockSettings<'a> {
    fn of(given: &'a RolloutStrategy) -> Self {
        let RolloutStrategy { all, progressive, progressive_per_group, .. } = given;
        let found = match given.type_.as_deref() {
            Some("All") => all.as_ref().map(|block| settings!(block, &[])),
            Some("Progressive") => {
                progressive.as_ref().map(|block| settings!(block, &block.mandatory_decision_groups))
            }
            Some("ProgressivePerGroup") => {
                progressive_per_group.as_ref().map(|block| settings!(block, &block.mandatory_decision_groups))
            }
            _ => None,
        };
        found.unwrap_or_default()
    }
}

impl StrategyReader<'_> {
    fn read(&mut self, given: &RolloutStrategy) -> Rollout {
        let inner = BlockSettings::of(given);
        let deadline = given.progress_deadline.as_ref().or(inner.progress_deadline);
        let soak = given.min_success_time.as_ref().or(inner.min_success_time);
        Rollout {
            pace: self.pace(given),
            canary: self.canary(given),
            more_canaries: Vec::new(),
            mandatory: inner.mandatory.iter().filter_map(group_key).collect(),
            max_failures: self.tolerance(given.max_failures.as_ref().or(inner.max_failures)),
            progress_deadline: self.duration("progressDeadline", deadline),
            min_success_time: self.duration("minSuccessTime", soak).unwrap_or_default(),
            paused: given.paused.unwrap_or(false),
            more_max_failures: Vec::new(),
            by: Default::default(),
        }
    }

    fn pace(&mut self, given: &RolloutStrategy) -> Pace {
        let (field, limit) = match given.type_.as_deref().unwrap_or("UpdateAll") {
            "UpdateAll" | "" | "All" => return Pace::AllAtOnce,
            "ProgressivePerGroup" => return Pace::PerGroup,
            "RollingUpdate" => {
                let block = given.rolling_update.as_ref();
                let limit = block.and_then(|block| block.max_concurrently_updating.as_ref());
                ("rollingUpdate.maxConcurrentlyUpdating", limit)
            }
            "RollingUpdateWithCanary" => {
                let block = given.rolling_update_with_canary.as_ref();
                let limit = block.and_then(|block| block.max_concurrently_updating.as_ref());
                ("rollingUpdateWithCanary.maxConcurrentlyUpdating", limit)
            }
            "Progressive" => {
                match given.progressive.as_ref().and_then(|block| block.max_concurrency.as_ref()) {
                    None => return Pace::RollingByGroupSize,
                    limit => ("progressive.maxConcurrency", limit),
                }
            }
            other => {
                let (placement, given) = (self.placement.clone(), other.into());
                self.faults.push(Problem::RolloutTypeUnknown { placement, given });
                return Pace::AllAtOnce;
            }
        };
        Pace::Rolling(self.budget(field, limit))
    }

    fn canary(&mut self, given: &RolloutStrategy) -> Option<PlacementName> {
        if given.type_.as_deref() != Some("RollingUpdateWithCanary") {
            return None;
        }
        let named = given.rolling_update_with_canary.as_ref().and_then(|block| block.placement.as_ref());
        let canary = named.map(|canary| PlacementName::new(&canary.namespace, &canary.name));
        if canary.as_ref().is_none_or(|canary| canary.name.is_empty() || canary.namespace.is_empty()) {
            self.faults.push(Problem::CanaryNotNamed { placement: self.placement.clone() });
        }
        canary
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
