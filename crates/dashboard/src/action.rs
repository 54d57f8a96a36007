//! What the page can do to a rollout. How it is done is for whoever serves the page: the very code of the commands.

use futures_util::future::BoxFuture;
use kube::Client;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// No further cluster is started.
    Pause,
    Resume,
    /// Back to a revision that was completed before.
    Undo,
    /// Let the deletions go that the brake holds.
    Acknowledge,
}

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Action {
    #[serde(rename = "action")]
    pub verb: Verb,
    /// One placement, as namespace/name; all of them where none is named.
    #[serde(default)]
    pub placement: Option<String>,
    #[serde(default)]
    pub to_revision: Option<i64>,
    /// The number of deletions that the person has seen and lets go.
    #[serde(default)]
    pub acknowledge: Option<String>,
    /// Say what would happen and write nothing.
    pub dry_run: bool,
}

impl Action {
    /// What cannot be meant.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let wrong = |message: &str| Err(Refusal::wrong(message));
        match self.verb {
            Verb::Acknowledge if self.acknowledge.is_none() && !self.dry_run => wrong(
                "say which number of deletions is acknowledged: between the look and the word it may have changed",
            ),
            Verb::Pause | Verb::Resume | Verb::Undo if self.acknowledge.is_some() => {
                wrong("only deletions are acknowledged")
            }
            Verb::Pause | Verb::Resume | Verb::Acknowledge if self.to_revision.is_some() => {
                wrong("only undo goes to a revision")
            }
            Verb::Acknowledge if self.placement.is_some() => {
                wrong("deletions are acknowledged for the add-on as a whole")
            }
            _ => Ok(()),
        }
    }
}

/// What was done, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What happens to how many clusters, by placement.
    pub blast: String,
    pub lines: Vec<String>,
    /// It is written.
    pub done: bool,
}

/// Carries actions out, with the rights of the client it is given.
pub trait Operate: Send + Sync {
    fn operate(
        &self,
        client: Client,
        addon: String,
        action: Action,
    ) -> BoxFuture<'_, Result<Answer, Refusal>>;
}
