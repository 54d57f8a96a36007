//! The output and exit code of every command, and checks of documents and dependencies. Suites in
//! folders are separate programs.

mod commands;
mod conversion;
mod demo;
mod dependency_edges;
mod docs_are_true;
mod files;
mod fleet;
mod lint;
mod manifests;
mod plan;
mod rehearse;
mod release;
mod transcript;
