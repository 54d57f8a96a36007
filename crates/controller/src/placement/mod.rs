//! Decides placements on a hub without a placement controller. The rules are in
//! `aviary_engine::placement`.
//!
//! `store` holds the observed state, `write` writes decisions, `controller` owns timing.

mod controller;
mod store;
mod write;

pub(crate) use controller::run;
