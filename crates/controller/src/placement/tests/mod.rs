//! Placements in small worlds: text in, story out.

mod choosing;
mod grouping;
mod hub;
mod properties;
mod remembering;
mod rewriting;
mod sets;
mod story;
mod tainting;
mod takeover;
