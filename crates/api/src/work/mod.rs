//! OCM's work kind, `work.open-cluster-management.io`.

pub mod check;
pub mod manifest_config;
pub mod manifest_work;
mod work_text;

pub use check::{Fault, check_spec, check_template};
pub use manifest_config::*;
pub use manifest_work::*;
pub use work_text::WorkText;
