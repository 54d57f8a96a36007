//! An embedded, persistent, Kubernetes-compatible API server: for trying out, for tests, for rehearsals.
//!
//! Kinds arrive as CRDs; the hub knows none of ours. What it answers, and what it does not, is in `docs/hub-conformance.md`.

mod apply;
mod builtin;
mod collector;
mod crd;
mod discovery;
mod endpoint;
mod form;
mod http_api;
mod hub;
mod json;
mod jsonpath;
mod metadata;
mod negotiate;
mod object;
mod openapi;
mod protobuf;
mod read;
mod resource;
mod review;
mod route;
pub mod security;
mod selector;
pub mod serve;
mod status;
mod store;
mod strategic;
mod table;
mod write;

pub use endpoint::{Endpoint, EndpointError, ServeError};
pub use hub::{Chance, Clock, Hub, OpenError, Options};
pub use store::DiskError;
