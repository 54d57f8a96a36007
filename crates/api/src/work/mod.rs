//! OCM's work kind, `work.open-cluster-management.io`.

pub mod manifest_config;
pub mod manifest_work;

pub use manifest_config::*;
pub use manifest_work::*;
