//! Decides placements on a hub without a placement controller: which clusters each Placement
//! selects, as in Open Cluster Management.
//!
//! Read in the order of the data flow: `rules` parses a Placement, `scope` finds the candidates,
//! `taints` excludes clusters, `choose` combines them. `decisions` computes the PlacementDecisions,
//! `pages` their layout, `sequence` the order of the writes. Prioritizers are not supported: a
//! selected cluster stays selected.

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

pub use choose::{CandidateCluster, Chosen, SelectedGroup, SelectionCondition, SelectionCounts, choose};
pub use decisions::{DecisionWrite, ExistingDecision, Rewrite, rewrite};
pub use key::Key;
pub use scope::{ClusterSet, Sets};
pub use taints::{ClusterTaint, Effect};
