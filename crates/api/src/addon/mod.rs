//! The add-on kinds, `addon.open-cluster-management.io/v1alpha1`.

pub mod addon_deployment_config;
pub mod addon_hub_config;
pub mod addon_template;
pub mod cluster_management_addon;
pub mod config;
pub mod install_strategy;
pub mod managed_cluster_addon;
pub mod rollout_policy;
pub mod rollout_record;
pub mod rollout_strategy;
pub mod v1beta1;

pub use addon_deployment_config::*;
pub use addon_hub_config::*;
pub use addon_template::*;
pub use cluster_management_addon::*;
pub use config::*;
pub use install_strategy::*;
pub use managed_cluster_addon::*;
pub use rollout_policy::*;
pub use rollout_record::*;
pub use rollout_strategy::*;
