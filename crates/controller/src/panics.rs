//! Contains panics: a defect that affects one add-on or placement must not stop the others.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many characters of the message are kept.
const LONGEST: usize = 200;

/// The message of a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panic(String);

impl Panic {
    pub(crate) fn of(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        Self(text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(LONGEST).collect())
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs `what` and returns its panic, if any. Whatever it changes must stay consistent then.
pub(crate) fn contain<T>(what: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(what)).map_err(|payload| Panic::of(&*payload))
}
