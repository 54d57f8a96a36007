//! Formats of Kubernetes and their algorithms, as pure functions over JSON.
//!
//! Must not use the store, a request or the clock.

pub(crate) mod apply;
pub(crate) mod embedded;
pub(crate) mod form;
pub(crate) mod json;
pub(crate) mod jsonpath;
pub(crate) mod metadata;
pub(crate) mod protobuf;
pub(crate) mod selector;
pub(crate) mod strategic;
pub(crate) mod table;
