//! What every command prints and with which code it ends, and what documents and dependencies must keep to. Suites in folders are programs of their own.

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
