//! Approves a deletion that the brake holds: exactly this number of instances may be deleted.

use anyhow::bail;
use aviary_api::names::annotations::ALLOW_DELETIONS;
use aviary_controller::View;
use aviary_engine::explain::{Decision, Wait};
use aviary_engine::plan::plan;
use aviary_engine::problem::Problem;
use jiff::Timestamp;
use serde_json::json;

use super::WriteArgs;
use super::spec::StoredAddOn;
use crate::connect::Connection;

/// The deletion that is approved.
#[derive(Debug)]
pub(in crate::commands) struct Acknowledged {
    /// How many instances are deleted, and of how many.
    pub(in crate::commands) count: usize,
    pub(in crate::commands) of: usize,
    pub(in crate::commands) clusters: Vec<String>,
}

/// Approves the deletions that the brake holds, if their number is still the one that the user has
/// seen.
pub(in crate::commands) async fn apply(
    connection: &Connection,
    view: &mut View,
    addon: &str,
    seen: Option<&str>,
    now: Timestamp,
    writing: WriteArgs,
) -> anyhow::Result<Acknowledged> {
    let stored = StoredAddOn::read(connection, addon).await?;
    let held = view.observe(addon, |observed| {
        let plan = plan(observed, now);
        let (count, of) = plan.report.problems.iter().find_map(|problem| match problem {
            Problem::DeletionHeld { count, of } => Some((*count, *of)),
            _ => None,
        })?;
        let held = plan.report.clusters.iter();
        let held = held.filter(|cluster| cluster.decision == Decision::Hold(Wait::DeletionHeld));
        Some(Acknowledged { count, of, clusters: held.map(|cluster| cluster.cluster.to_string()).collect() })
    });
    let Some(held) = held.flatten() else { bail!("there is no deletion of add-on {addon} to approve") };
    let number = held.count.to_string();
    if let Some(seen) = seen.filter(|seen| *seen != number) {
        bail!("{number} deletions of add-on {addon} need approval now, but you saw {seen}: check again");
    }
    stored.annotate(json!({ALLOW_DELETIONS: number}), writing).await?;
    Ok(held)
}
