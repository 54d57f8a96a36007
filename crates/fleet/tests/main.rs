//! Simulated fleets, on the embedded hub.

mod bad_versions;
mod on_a_hub;
mod races;
mod rehearsed;
