//! Placements on a hub where nobody else decides them: which clusters each one selects, as Open
//! Cluster Management would have it.
//!
//! Read in the order of the data flow: `rules` reads what a Placement asks for, `scope` which
//! clusters it may have, `taints` what keeps clusters away; `choose` puts them together.
//! `decisions` says which objects hold the choice, `pages` how they are laid out, `sequence` in
//! which order they are written. Prioritizers are not here: what is chosen stays chosen.

mod choose;
mod decisions;
mod key;
pub mod pages;
mod rules;
mod scope;
mod sequence;
mod taints;
#[cfg(test)]
mod tests;

pub use choose::{Chosen, Cluster, Counts, Group, Verdict, choose};
pub use decisions::{Rewrite, Seen, Step, rewrite};
pub use key::Key;
pub use scope::{ClusterSet, Sets};
pub use taints::{Effect, Taint};
