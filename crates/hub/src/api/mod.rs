//! The API: requests in, responses out.
//!
//! Owns paths, parameters, the semantics of reading and writing, and the `Status` of every error.
//! `formats` owns encodings, `kinds` the properties of kinds, and `security` authorization.

pub(crate) mod discovery;
pub(crate) mod http_api;
pub(crate) mod negotiate;
pub(crate) mod openapi;
pub(crate) mod read;
pub(crate) mod review;
pub(crate) mod route;
pub(crate) mod status;
pub(crate) mod write;
