//! Simulated managed clusters on any Kubernetes API server.
//!
//! Registers clusters and acts as the work agent of all of them: it watches the works of the whole
//! fleet in one stream, and reports on each as an agent would, with simulated delays and faults.
//! The behaviour of a cluster comes from [`Agents`] in `aviary-engine`, so a fleet on a hub behaves
//! as a rehearsal with the same seed. Makes no rollout decisions.
//!
//! [`Agents`]: aviary_engine::simulate::agents::Agents

mod behaviour;
mod feedback;
mod fleet;
mod member;
mod outline;
mod register;
mod report;
mod requests;
mod schedule;
mod seen;

pub use behaviour::{Behaviour, FailureScope, Lie, Races, SimulatedFailure};
pub use fleet::{Clock, FleetTally, SimulatedFleet};
pub use member::{LabelShare, Member, MemberError, members};
pub use register::{RegisterError, Registered, Removed, SIMULATED_BY, SIMULATOR, remove};
