//! One row of the table: the input, and the response to it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::site::Site;

type Objects = Box<dyn Fn(&Site) -> Vec<Value> + Send + Sync>;
type One = Box<dyn Fn(&Site) -> Value + Send + Sync>;
type Act = Box<dyn Fn(Arc<Site>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The hub's response when the input is applied.
#[derive(Clone, Copy, Debug)]
pub(super) enum Admission {
    Taken,
    /// Rejected, with this in the message. The test then stores it without the rule.
    Refused(&'static str),
    /// Rejected whatever the schema, so it cannot be stored. The row's `acts` shows it.
    Never(&'static str),
}

/// What the manager does once the input is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// A condition of the object at fault has this reason and message. `<placement>` and the
    /// like stand for the names of the row's objects.
    Says(&'static str),
    /// The input is valid. The row's `acts` shows it.
    Does(&'static str),
}

pub(super) struct Row {
    pub(super) input: &'static str,
    pub(super) admission: Admission,
    pub(super) outcome: Outcome,
    /// What the document says in addition to the message.
    pub(super) note: &'static str,
    /// Number of clusters.
    pub(super) clusters: usize,
    /// The add-on is installed and healthy on all its clusters before the input is applied.
    pub(super) installed: bool,
    /// Objects that are applied before the bad input.
    pub(super) before: Objects,
    /// The bad input. Admission is checked for the last object.
    pub(super) bad: Objects,
    /// The object whose condition is checked: the add-on, unless set.
    pub(super) at: One,
    /// Actions and checks while the bad object exists and a manager runs.
    pub(super) acts: Option<Act>,
    /// Fixes the input, and checks the result.
    pub(super) mends: Option<Act>,
}

/// A row with an add-on and no bad input yet.
pub(super) fn row(input: &'static str, admission: Admission, outcome: Outcome) -> Row {
    Row {
        input,
        admission,
        outcome,
        note: "",
        clusters: 2,
        installed: true,
        before: Box::new(|site| vec![site.addon()]),
        bad: Box::new(|_| Vec::new()),
        at: Box::new(Site::addon),
        acts: None,
        mends: None,
    }
}

impl Row {
    pub(super) fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    pub(super) fn admission(mut self, admission: Admission) -> Self {
        self.admission = admission;
        self
    }

    pub(super) fn clusters(mut self, clusters: usize) -> Self {
        self.clusters = clusters;
        self
    }

    /// Nothing is installed before the input is applied.
    pub(super) fn fresh(mut self) -> Self {
        self.installed = false;
        self.before(|_| Vec::new())
    }

    pub(super) fn before(mut self, before: impl Fn(&Site) -> Vec<Value> + Send + Sync + 'static) -> Self {
        self.before = Box::new(before);
        self
    }

    pub(super) fn bad(mut self, bad: impl Fn(&Site) -> Vec<Value> + Send + Sync + 'static) -> Self {
        self.bad = Box::new(bad);
        self
    }

    pub(super) fn at(mut self, at: impl Fn(&Site) -> Value + Send + Sync + 'static) -> Self {
        self.at = Box::new(at);
        self
    }

    pub(super) fn acts<F: Future<Output = ()> + Send + 'static>(
        mut self,
        act: impl Fn(Arc<Site>) -> F + Send + Sync + 'static,
    ) -> Self {
        self.acts = Some(Box::new(move |site| act(site).boxed()));
        self
    }

    pub(super) fn mends<F: Future<Output = ()> + Send + 'static>(
        mut self,
        mend: impl Fn(Arc<Site>) -> F + Send + Sync + 'static,
    ) -> Self {
        self.mends = Some(Box::new(move |site| mend(site).boxed()));
        self
    }

    /// The row as a line of the document.
    pub(super) fn for_people(&self) -> String {
        let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
        let admission = match self.admission {
            Admission::Taken => "accepted".to_owned(),
            Admission::Refused(why) => format!("rejected: {}", code(why)),
            Admission::Never(why) => format!("rejected: {why}"),
        };
        let outcome = match self.outcome {
            Outcome::Does(what) => what.to_owned(),
            Outcome::Says(what) => code(what),
        };
        let note = if self.note.is_empty() { String::new() } else { format!("; {}", self.note) };
        format!("| {} | {admission} | {outcome}{note} |\n", self.input)
    }
}
