//! One row of the table: what is put, and what is said to it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::site::Site;

type Objects = Box<dyn Fn(&Site) -> Vec<Value> + Send + Sync>;
type One = Box<dyn Fn(&Site) -> Value + Send + Sync>;
type Act = Box<dyn Fn(Arc<Site>) -> BoxFuture<'static, ()> + Send + Sync>;

/// What the hub makes of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Admission {
    Taken,
    /// With this in the message. It is stored all the same, as from a time before the rule.
    Refused(&'static str),
    /// Whatever the schema: cannot be stored. Shown by what the row does.
    Never(&'static str),
}

/// What comes of it once it is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// A condition of the object at fault has this reason and message. `<placement>` and the like stand for names of the row's own.
    Says(&'static str),
    /// Nothing is wrong with it. Shown by what the row does.
    Does(&'static str),
}

pub(super) struct Row {
    pub(super) input: &'static str,
    pub(super) admission: Admission,
    pub(super) outcome: Outcome,
    /// What people are told beside the message.
    pub(super) note: &'static str,
    /// On so many clusters.
    pub(super) clusters: usize,
    /// The add-on is there before, in good health on all of its clusters.
    pub(super) installed: bool,
    /// Put before anything is bad.
    pub(super) before: Objects,
    /// Put then; the last one is what is judged on admission.
    pub(super) bad: Objects,
    /// Where it is said. The add-on, unless another is named.
    pub(super) at: One,
    /// What is done, and seen, with the bad object there and a manager at work.
    pub(super) acts: Option<Act>,
    /// What is done to mend it, and seen then.
    pub(super) mends: Option<Act>,
}

/// A row that puts what its add-on is, and no more: all else is said by what follows.
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

    /// Nothing is installed before.
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

    /// A line of the table for people.
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
