//! Placements in small worlds: text in, story out.

#![allow(clippy::needless_pass_by_value, reason = "a world reads better without borrows")]

mod choosing;
mod grouping;
mod hub;
mod properties;
mod rewriting;
mod sets;
mod story;
mod tainting;
mod takeover;
