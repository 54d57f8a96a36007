//! Whether Open Cluster Management's own add-on manager runs on the hub.
//!
//! Pure: whoever reads its Lease decides what to do about it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

/// The Lease of OCM's add-on manager, in its namespace.
pub const OCM_LEASE: &str = "manager-lock";
/// The namespace of OCM's controllers, unless the hub is hosted.
pub const OCM_NAMESPACE: &str = "open-cluster-management-hub";
/// OCM's leader keeps its Lease for 137 s after the last renewal.
const KEPT_FOR: Duration = Duration::from_secs(137);

/// A manager that writes the same objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    pub holder: String,
    pub renewed: Timestamp,
}

/// The manager that holds this Lease, if it has renewed it lately. A time in the future is taken
/// for a clock that is ahead: that manager runs.
pub fn rival(lease: &Lease, now: Timestamp) -> Option<Rival> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty())?;
    let renewed = spec.renew_time.as_ref()?.0;
    let is_recent =
        now.duration_since(renewed).as_secs() < i64::try_from(KEPT_FOR.as_secs()).unwrap_or(i64::MAX);
    is_recent.then_some(Rival { holder, renewed })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn lease(holder: Option<&str>, age: i64) -> Lease {
        let renewed = Timestamp::constant(1_800_000_000 - age, 0);
        let spec = LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            renew_time: Some(MicroTime(renewed)),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[test]
    fn a_lease_counts_for_137_seconds_after_its_renewal() {
        for (age, runs) in [(0, true), (136, true), (137, false), (100_000, false), (-60, true)] {
            assert_eq!(rival(&lease(Some("m"), age), NOW).is_some(), runs, "renewed {age} s ago");
        }
    }

    #[test]
    fn a_lease_that_was_released_or_never_held_is_nobody_s() {
        assert_eq!(rival(&lease(Some(""), 1), NOW), None);
        assert_eq!(rival(&lease(None, 1), NOW), None);
        assert_eq!(rival(&Lease::default(), NOW), None);
    }
}
