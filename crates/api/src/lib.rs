//! Every kind that Aviary serves, reads or writes, as Rust types, and the CRDs that describe them to a Kubernetes API server.
//!
//! The types accept every spelling a user may write and read stored objects leniently: what a closed enum or a strict
//! number would reject is kept as it stands, because one odd object must never hide the others. Turning that into a
//! closed model is the engine's task; nothing here decides anything.

// Each printer column says its own `type_` and `priority`, which the lint takes for repetitions.
#![allow(clippy::duplicated_attributes)]

pub mod addon;
pub mod cluster;
pub mod condition;
pub mod crds;
mod guarded;
pub mod int_or_percent;
mod lenient;
pub mod names;
mod schema;
pub mod work;

pub use addon::{
    AddOnDeploymentConfig, AddOnHubConfig, AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn,
};
pub use cluster::{
    ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision,
};
pub use condition::Condition;
pub use guarded::Guarded;
pub use int_or_percent::IntOrString;
pub use work::ManifestWork;
