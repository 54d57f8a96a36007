//! Placements on a hub where nobody else decides them: which clusters each one selects, as Open Cluster Management would have it.
//!
//! Read in the order of the data flow: `store` keeps what is seen; `rules` reads what a Placement asks for, `scope` which clusters it may have,
//! `taints` what keeps clusters away; `choose` puts them together. `decisions` says which objects hold the choice, `sequence` in which order they
//! are written; `write` writes, `controller` says when. All but the last two are pure. Prioritizers are not here: what is chosen stays chosen.

mod choose;
mod controller;
mod decisions;
mod pages;
mod rules;
mod scope;
mod sequence;
mod store;
mod taints;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use controller::run;
