//! Placements on a hub where nobody else decides them. The rules are in `aviary_engine::placement`.
//!
//! `store` keeps what is seen, `write` writes what was decided, `controller` says when.

mod controller;
mod store;
mod write;

pub(crate) use controller::run;
