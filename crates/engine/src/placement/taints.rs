//! Compares the taints of clusters with the tolerations of placements.
//!
//! Owns how long a taint is tolerated. Time is an argument.

use aviary_api::cluster::{ClusterToleration, Taint as ApiTaint};
use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    NoSelect,
    PreferNoSelect,
    NoSelectIfNew,
}

impl Effect {
    fn parse(given: &str) -> Option<Self> {
        match given {
            "NoSelect" => Some(Self::NoSelect),
            "PreferNoSelect" => Some(Self::PreferNoSelect),
            "NoSelectIfNew" => Some(Self::NoSelectIfNew),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTaint {
    pub key: String,
    value: String,
    effect: Effect,
    added: Option<Timestamp>,
}

impl ClusterTaint {
    pub fn read(taint: &ApiTaint) -> Self {
        Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            // An unknown effect is treated like the strictest.
            effect: Effect::parse(&taint.effect).unwrap_or(Effect::NoSelect),
            added: taint.time_added.as_deref().and_then(|time| time.parse().ok()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toleration {
    /// `None` matches every key.
    key: Option<String>,
    /// `None` matches every value.
    value: Option<String>,
    /// `None` matches every effect.
    effect: Option<Effect>,
    /// `None` means forever.
    seconds: Option<i64>,
}

/// Until when a taint is tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Patience {
    None,
    Until(Timestamp),
    Forever,
}

impl Toleration {
    pub(crate) fn parse(given: &ClusterToleration) -> Result<Self, String> {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (key, value) = (said(&given.key), said(&given.value));
        let value = match given.operator.as_deref().unwrap_or_default() {
            "Exists" if value.is_some() => {
                return Err("if the operator is Exists, the value should be empty".into());
            }
            "Exists" => None,
            "" | "Equal" if key.is_none() => {
                return Err("if the key is empty, the operator must be Exists".into());
            }
            "" | "Equal" => Some(value.unwrap_or_default()),
            other => return Err(format!("operator {other:?} is not known: use Equal or Exists")),
        };
        let effect = match said(&given.effect) {
            None => None,
            Some(effect) => {
                Some(Effect::parse(&effect).ok_or_else(|| format!("effect {effect:?} is not known"))?)
            }
        };
        Ok(Self { key, value, effect, seconds: given.toleration_seconds })
    }

    fn patience(&self, taint: &ClusterTaint) -> Patience {
        let applies = self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value);
        match (applies, self.seconds, taint.added) {
            (false, ..) => Patience::None,
            (true, None, _) => Patience::Forever,
            // Without `timeAdded`, it is unknown whether the time has passed.
            (true, Some(_), None) => Patience::None,
            (true, Some(seconds), Some(added)) => added
                .saturating_add(SignedDuration::from_secs(seconds))
                .map_or(Patience::None, Patience::Until),
        }
    }
}

/// The effect of a cluster's taints on a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Regard {
    Welcome {
        /// When a toleration expires.
        until: Option<Timestamp>,
        /// Selected only after all others.
        last: bool,
    },
    KeptAway,
}

/// `chosen`: whether the cluster is already selected.
pub(crate) fn regard(
    taints: &[ClusterTaint],
    tolerations: &[Toleration],
    chosen: bool,
    now: Timestamp,
) -> Regard {
    let (mut until, mut last) = (None::<Timestamp>, false);
    for taint in taints {
        let patience = tolerations.iter().map(|toleration| toleration.patience(taint)).max();
        let tolerated = match patience.unwrap_or(Patience::None) {
            Patience::None => None,
            Patience::Until(end) => (now < end).then_some(Some(end)),
            Patience::Forever => Some(None),
        };
        match (taint.effect, tolerated) {
            (Effect::NoSelectIfNew, _) if chosen => {}
            (Effect::PreferNoSelect, None) => last = true,
            (Effect::NoSelect | Effect::NoSelectIfNew, None) => return Regard::KeptAway,
            // When these expire, nothing changes for a cluster that is already selected.
            (Effect::PreferNoSelect | Effect::NoSelectIfNew, Some(_)) => {}
            (Effect::NoSelect, Some(end)) => until = until.into_iter().chain(end).min(),
        }
    }
    Regard::Welcome { until, last }
}
