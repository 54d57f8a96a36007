//! The kinds that the hub serves: one table, with rows for built-in kinds and for CRDs.

pub(crate) mod builtin;
pub(crate) mod crd;
pub(crate) mod resource;
