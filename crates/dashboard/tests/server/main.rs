//! The dashboard over a real hub in this process: every route, every refusal, and that what is pushed adds up.

mod clusters;
mod door;
mod scale;
mod streams;
mod tokens;
mod world;
