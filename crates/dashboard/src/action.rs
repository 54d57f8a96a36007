//! The actions of the page. The caller executes them, with the code of the commands.

use futures_util::future::BoxFuture;
use kube::Client;
use serde::{Deserialize, Serialize};

use crate::refusal::ErrorResponse;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionVerb {
    /// Start no new clusters.
    Pause,
    Resume,
    /// Roll back to a revision that was completed before.
    Undo,
    /// Approve the deletions that the brake holds.
    Acknowledge,
    /// Let failed clusters try the same revision again.
    Retry,
}

/// A requested action.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Action {
    #[serde(rename = "action")]
    pub verb: ActionVerb,
    /// One placement, as namespace/name; all if it is absent.
    #[serde(default)]
    pub placement: Option<String>,
    #[serde(default)]
    pub to_revision: Option<i64>,
    /// The number of deletions that the user has seen and approves.
    #[serde(default)]
    pub acknowledge: Option<String>,
    /// One cluster to retry; all failed ones if it is absent.
    #[serde(default)]
    pub cluster: Option<String>,
    /// Show what would happen, and write nothing.
    pub dry_run: bool,
}

impl Action {
    /// Rejects contradictory fields.
    pub(crate) fn check(&self) -> Result<(), ErrorResponse> {
        let wrong = |message: &str| Err(ErrorResponse::wrong(message));
        match self.verb {
            ActionVerb::Acknowledge if self.acknowledge.is_none() && !self.dry_run => {
                wrong("give the number of deletions to approve: it may have changed since it was shown")
            }
            ActionVerb::Pause | ActionVerb::Resume | ActionVerb::Undo | ActionVerb::Acknowledge
                if self.cluster.is_some() =>
            {
                wrong("a cluster can only be given with retry")
            }
            ActionVerb::Pause | ActionVerb::Resume | ActionVerb::Undo | ActionVerb::Retry
                if self.acknowledge.is_some() =>
            {
                wrong("only deletions can be approved")
            }
            ActionVerb::Pause | ActionVerb::Resume | ActionVerb::Acknowledge | ActionVerb::Retry
                if self.to_revision.is_some() =>
            {
                wrong("a revision can only be given with undo")
            }
            ActionVerb::Acknowledge if self.placement.is_some() => {
                wrong("deletions are approved for the whole add-on")
            }
            _ => Ok(()),
        }
    }
}

/// The result of an action, or of its dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionResult {
    /// What happens to how many clusters, by placement.
    pub blast: String,
    pub lines: Vec<String>,
    /// Whether it was written.
    pub done: bool,
}

/// Executes actions, with the rights of the given client.
pub trait Operate: Send + Sync {
    fn operate(
        &self,
        client: Client,
        addon: String,
        action: Action,
    ) -> BoxFuture<'_, Result<ActionResult, ErrorResponse>>;
}
