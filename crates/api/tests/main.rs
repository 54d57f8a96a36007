//! All tests of the types and of the definitions that are made from them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod api_reference_is_current;
mod cel_rules;
mod conversion;
mod crds_are_current;
mod crds_are_structural;
mod design_examples;
mod manifest_work;
mod support;
mod tolerant_reading;
mod work_check;
