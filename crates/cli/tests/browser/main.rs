//! The dashboard in a real browser: Debian's chromium, headless, driven by WebDriver.
//!
//! Most tests open the page that is part of the binary over a stream that is made by hand (`stand`), where every word is known. The others run
//! the product as people do: `aviary demo`, and `aviary dashboard` over a hub.

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
mod hostile;
mod keyboard;
mod list;
mod restart;
mod scale;
mod shapes;
