//! Simulated fleets, on the embedded hub.

mod on_a_hub;
mod races;
mod rehearsed;
