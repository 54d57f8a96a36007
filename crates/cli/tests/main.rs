//! What every command prints, whom it ends with, and what the documents and dependencies must keep to; the suites in folders are programs of their own.

mod commands;
mod demo;
mod dependency_edges;
mod docs_name_real_tests;
mod files;
mod fleet;
mod lint;
mod manifests;
mod plan;
mod rehearse;
mod transcript;
