//! An embedded, persistent, Kubernetes-compatible API server for trials, tests and rehearsals.
//!
//! Kinds are added as CRDs; the hub has no special knowledge of Aviary's kinds.
//! `docs/hub-conformance.md` lists what it supports and what it does not.

mod api;
mod collector;
mod endpoint;
mod formats;
mod hub;
mod kinds;
pub mod security;
mod store;

pub use endpoint::{Endpoint, EndpointError, ServeError};
pub use hub::{Chance, Clock, Hub, HubOptions, OpenError};
pub use kinds::resource::Converter;
pub use store::DiskError;
