//! The dashboard in a real browser: Debian's Chromium, headless, driven by WebDriver.
//!
//! Most tests open the real page with a simulated server (`stand`), whose responses are fixed. The
//! others run the product as users do: `aviary demo`, and `aviary dashboard` for a hub.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod driver;
#[path = "../processes/run.rs"]
#[allow(dead_code, reason = "every suite uses its own part of the harness")]
mod run;
mod stand;
#[path = "../transcript/mod.rs"]
mod transcript;

mod access;
mod demo;
mod facts;
mod find;
mod hostile;
mod keyboard;
mod list;
mod outage;
mod restart;
mod scale;
mod shapes;
