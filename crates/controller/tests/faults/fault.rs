//! What can go wrong, where it can, and how it is written down: `canary_change:crash-after@17`.

use std::fmt;
use std::str::FromStr;

/// Something that is counted, and at whose n-th time something can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    /// A write of the manager, the lease apart.
    Write,
    /// A request of the manager for its lease.
    Lease,
    /// A list, or an object that is read.
    Read,
    /// A page of a list after its first.
    Page,
    /// Something that a watch tells the manager.
    Event,
    /// An agent that reports on a work.
    Answer,
    /// A page of decisions that is written.
    Decision,
    /// From the beginning to the end.
    Always,
}

pub(crate) const POINTS: usize = Point::Always as usize + 1;

/// How an agent misbehaves, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misdeed {
    /// It reports on a generation that there is not yet.
    Future,
    /// It reports on the generation before.
    Old,
    /// It is well, then not, then well again.
    Flap,
    Silent,
    /// It cannot apply the work.
    Refuse,
    /// The pods are ready, then not, then ready again.
    FeedbackFlaps,
    /// It reports on the work as it is now with the values of the objects as they were before.
    FeedbackOld,
    /// It reports nothing about the objects.
    FeedbackMissing,
    /// It reports the digest of another revision.
    FeedbackOther,
    /// It reports a value of another type.
    FeedbackOddType,
    /// The digest is right, and the object's controller has not processed the latest change.
    FeedbackBehind,
    /// It reports nothing about the objects for longer than it takes to report on them at other
    /// times.
    FeedbackLate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Crash {
        applied: bool,
        /// The next manager sees the hub as it was at the last rest, until it has led for a while.
        stale: bool,
    },
    Answer(u16),
    AppliedTimeout,
    Reset {
        applied: bool,
    },
    Hang {
        applied: bool,
    },
    Truncated,
    /// The write is carried out, and its answer comes so many milliseconds later: other news
    /// overtake it.
    LateAnswer(u64),
    /// The manager stops in mid-write; another takes over; the first goes on with the write that it
    /// had in hand.
    Pause,
    /// The manager cannot renew its lease, and everything else works.
    LoseLease,
    /// Somebody deletes the Lease.
    RemoveLease {
        /// Another takes part in the election, and has never seen it.
        beside: bool,
    },
    /// Somebody resets the Lease: it says that nobody has led before.
    ResetLease {
        /// By deleting it and creating another.
        again: bool,
        /// Nobody holds it, and another takes part in the election that has never seen the first.
        beside: bool,
    },
    /// Somebody copies a high term to all add-ons.
    CopyTerm {
        /// The manager crashes: another begins with what it finds.
        crash: bool,
    },
    /// A defect of the manager shows.
    Panic,
    /// Hours by which the clock of the manager is wrong from now on.
    Clock(i64),
    /// A day ahead, and half a minute later right again.
    ClockSwing,
    HideKinds,
    RemoveCrd,
    RemoveNamespace,
    Cut {
        delivered: bool,
    },
    StreamReset,
    /// The watch is too old: everything is listed again.
    Gone,
    Duplicate,
    /// One stream falls behind all others.
    Delay,
    Misdeed(Misdeed),
    /// The rest of the pages comes later.
    Torn,
    CutEach,
    ListsOnly,
}

use Effect::{
    Answer, AppliedTimeout, Clock, ClockSwing, CopyTerm, Crash, Cut, CutEach, Delay, Duplicate, Gone, Hang,
    HideKinds, LateAnswer, ListsOnly, LoseLease, Pause, RemoveCrd, RemoveLease, RemoveNamespace, Reset,
    ResetLease, StreamReset, Torn, Truncated,
};

/// Every fault by its name. A name says once and for all what happens: recorded plans must stay
/// true.
pub(crate) const FAULTS: &[(&str, Point, Effect)] = &[
    ("crash-before", Point::Write, Crash { applied: false, stale: false }),
    ("crash-after", Point::Write, Crash { applied: true, stale: false }),
    ("crash-stale", Point::Write, Crash { applied: true, stale: true }),
    ("write-409", Point::Write, Answer(409)),
    ("write-429", Point::Write, Answer(429)),
    ("write-500", Point::Write, Answer(500)),
    ("write-503", Point::Write, Answer(503)),
    ("write-504", Point::Write, Answer(504)),
    ("write-reset", Point::Write, Reset { applied: false }),
    ("write-hang", Point::Write, Hang { applied: false }),
    ("applied-504", Point::Write, AppliedTimeout),
    ("applied-reset", Point::Write, Reset { applied: true }),
    ("applied-hang", Point::Write, Hang { applied: true }),
    ("applied-truncated", Point::Write, Truncated),
    // Time passes only when nobody has anything to do: the watch has told of the write by then.
    ("answer-overtaken", Point::Write, LateAnswer(10)),
    // Whatever users and others do next has been told too.
    ("answer-late", Point::Write, LateAnswer(20_000)),
    ("leader-paused", Point::Write, Pause),
    ("leader-loses-lease", Point::Write, LoseLease),
    ("lease-removed", Point::Write, RemoveLease { beside: false }),
    ("lease-removed-beside", Point::Write, RemoveLease { beside: true }),
    ("lease-zeroed", Point::Write, ResetLease { again: false, beside: false }),
    ("lease-made-again", Point::Write, ResetLease { again: true, beside: false }),
    ("lease-made-again-beside", Point::Write, ResetLease { again: true, beside: true }),
    ("term-copied", Point::Write, CopyTerm { crash: false }),
    ("term-copied-crash", Point::Write, CopyTerm { crash: true }),
    ("write-panics", Point::Write, Effect::Panic),
    ("clock-forward", Point::Write, Clock(24)),
    ("clock-back", Point::Write, Clock(-24)),
    ("clock-swing", Point::Write, ClockSwing),
    ("kinds-hidden", Point::Write, HideKinds),
    ("crd-removed", Point::Write, RemoveCrd),
    ("namespace-removed", Point::Write, RemoveNamespace),
    ("lease-409", Point::Lease, Answer(409)),
    ("lease-500", Point::Lease, Answer(500)),
    ("lease-reset", Point::Lease, Reset { applied: true }),
    ("lease-hang", Point::Lease, Hang { applied: false }),
    // Within the time that a leader has to renew its lease, and after it.
    ("lease-late", Point::Lease, LateAnswer(20_000)),
    ("lease-too-late", Point::Lease, LateAnswer(50_000)),
    ("read-429", Point::Read, Answer(429)),
    ("read-500", Point::Read, Answer(500)),
    ("read-503", Point::Read, Answer(503)),
    ("read-504", Point::Read, Answer(504)),
    ("read-reset", Point::Read, Reset { applied: false }),
    ("read-hang", Point::Read, Hang { applied: false }),
    ("read-truncated", Point::Read, Truncated),
    ("page-410", Point::Page, Answer(410)),
    ("event-missed", Point::Event, Cut { delivered: false }),
    ("event-last", Point::Event, Cut { delivered: true }),
    ("event-reset", Point::Event, StreamReset),
    ("event-410", Point::Event, Gone),
    ("event-twice", Point::Event, Duplicate),
    ("event-late", Point::Event, Delay),
    ("agent-future", Point::Answer, Effect::Misdeed(Misdeed::Future)),
    ("agent-old", Point::Answer, Effect::Misdeed(Misdeed::Old)),
    ("agent-flaps", Point::Answer, Effect::Misdeed(Misdeed::Flap)),
    ("agent-silent", Point::Answer, Effect::Misdeed(Misdeed::Silent)),
    ("agent-refuses", Point::Answer, Effect::Misdeed(Misdeed::Refuse)),
    ("feedback-flaps", Point::Answer, Effect::Misdeed(Misdeed::FeedbackFlaps)),
    ("feedback-old", Point::Answer, Effect::Misdeed(Misdeed::FeedbackOld)),
    ("feedback-missing", Point::Answer, Effect::Misdeed(Misdeed::FeedbackMissing)),
    ("feedback-other", Point::Answer, Effect::Misdeed(Misdeed::FeedbackOther)),
    ("feedback-odd-type", Point::Answer, Effect::Misdeed(Misdeed::FeedbackOddType)),
    ("feedback-behind", Point::Answer, Effect::Misdeed(Misdeed::FeedbackBehind)),
    ("feedback-late", Point::Answer, Effect::Misdeed(Misdeed::FeedbackLate)),
    ("decisions-torn", Point::Decision, Torn),
    ("cut-each", Point::Always, CutEach),
    ("lists-only", Point::Always, ListsOnly),
];

/// Something that goes wrong at the n-th time of its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) point: Point,
    pub(crate) effect: Effect,
    pub(crate) at: usize,
}

impl Fault {
    pub(crate) fn named(name: &str, at: usize) -> Option<Self> {
        let (name, point, effect) = *FAULTS.iter().find(|(known, ..)| *known == name)?;
        Some(Self { name, point, effect, at })
    }
}

/// What goes wrong in one run of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) scenario: String,
    pub(crate) faults: Vec<Fault>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scenario)?;
        for (index, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{}@{}", if index > 0 { "," } else { "" }, fault.name, fault.at)?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scenario, faults) = text.split_once(':').unwrap_or((text, ""));
        let faults = faults.split(',').filter(|fault| !fault.is_empty()).map(|fault| {
            let (name, at) = fault.split_once('@').ok_or_else(|| format!("{fault}: no @"))?;
            let at = at.parse().map_err(|error| format!("{fault}: {error}"))?;
            Fault::named(name, at).ok_or_else(|| format!("there is no fault {name}"))
        });
        Ok(Self { scenario: scenario.to_owned(), faults: faults.collect::<Result<_, _>>()? })
    }
}
