//! Simulated managed clusters over any Kubernetes API server.
//!
//! Registers clusters, and is the work agent of all of them: it watches the works of the whole fleet in one stream, and reports on each as an
//! agent would, in its own time and with its own faults. How a cluster behaves is drawn by `aviary-engine`'s [`Agents`], so a fleet on
//! a hub does what was rehearsed with the same seed. Nothing here decides a rollout.
//!
//! [`Agents`]: aviary_engine::simulate::agents::Agents

mod behaviour;
mod crew;
mod desk;
mod feedback;
mod fleet;
mod member;
mod outline;
mod register;
mod report;
mod seen;

pub use behaviour::{Behaviour, Failure, Lie, Scope};
pub use fleet::{Clock, Fleet, Tally};
pub use member::{LabelShare, Member, MemberError, members};
pub use register::{RegisterError, Registered, Removed, SIMULATED_BY, SIMULATOR, remove};
