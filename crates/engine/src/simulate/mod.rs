//! Rehearsal.
pub mod world;
