//! OCM's cluster kinds, `cluster.open-cluster-management.io`: the parts that Aviary reads.

pub mod managed_cluster;
pub mod managed_cluster_set;
pub mod placement;
pub mod placement_decision;

pub use managed_cluster::*;
pub use managed_cluster_set::*;
pub use placement::*;
pub use placement_decision::*;
