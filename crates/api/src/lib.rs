//! Every kind that Aviary serves, reads or writes, as Rust types, and the CRDs that describe them.
//!
//! The types accept every spelling that a user may write, and read stored objects leniently: values
//! that a closed enum or a strict number would reject are kept, because one malformed object must
//! never hide the others. The engine turns them into a closed model; nothing here makes decisions.

// Every printer column has its own `type_` and `priority`, which the lint mistakes for duplicates.
#![allow(clippy::duplicated_attributes)]

pub mod addon;
pub mod cluster;
pub mod condition;
pub mod convert;
pub mod crds;
mod guarded;
pub mod int_or_percent;
mod lenient;
pub mod managers;
pub mod names;
mod object_text;
mod schema;
pub mod visible;
pub mod work;

pub use addon::{
    AddOnDeploymentConfig, AddOnHubConfig, AddOnRolloutPolicy, AddOnRolloutRecord, AddOnTemplate,
    ClusterManagementAddOn, ManagedClusterAddOn,
};
pub use cluster::{
    ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision,
};
pub use condition::Condition;
pub use guarded::Guarded;
pub use int_or_percent::IntOrString;
pub use object_text::ObjectText;
pub use work::ManifestWork;
