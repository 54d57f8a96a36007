//! Server-side apply: field ownership, and its effect on writes.
//!
//! Owns sets of fields, their merge and their managers, as pure functions over JSON and schemas.
//! Must not read the clock, the store or a request: `write` does that. Recursion follows the
//! objects, whose depth is checked before.

mod builtin;
mod check;
mod compare;
mod element;
mod fields;
mod last_applied;
mod managers;
mod merge;
mod remove;
mod set;
#[cfg(test)]
mod tests;
mod types;
mod updater;

pub(crate) use builtin::ownership;
pub(crate) use check::check;
pub(crate) use last_applied::{allowed_by_last_applied, renew_last_applied};
pub(crate) use managers::{Claimed, FieldManager, Managers, Operation};
pub(crate) use types::ValueType;
pub(crate) use updater::{ApplyOutcome, Conflicts, Versions, apply, before_first_apply, update};
