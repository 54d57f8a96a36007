//! The conformance suite: what a Kubernetes client may expect of an API server, one check per
//! guarantee.
//!
//! It runs unchanged against the server of any kubeconfig (see README.md), and every check has
//! passed against a real kube-apiserver. Nothing here may know which server responds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed check"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are literals, given away where they are written")]
#![allow(unreachable_pub, reason = "modules of one test program")]

mod answer;
mod check;
mod objects;
mod stream;
mod target;
mod world;

mod apply;
mod builtins;
mod crd_rules;
mod crd_schemas;
mod crd_versions;
mod crds;
mod create;
mod create_validation;
mod delete;
mod deletion_options;
mod discovery;
mod dry_run;
mod errors;
mod events_and_reviews;
mod field_validation;
mod garbage;
mod lists;
mod metadata_only;
mod namespaces;
mod openapi;
mod pages;
mod patch_types;
mod patches;
mod protobuf;
mod selectors;
mod status_subresource;
mod tables;
mod update;
mod update_rules;
mod watch_starts;
mod watches;

use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let arguments = libtest_mimic::Arguments::from_args();
    let suite = Arc::new(check::Suite::new());
    let checks = [
        apply::checks(),
        builtins::checks(),
        crd_rules::checks(),
        crd_schemas::checks(),
        crd_versions::checks(),
        crds::checks(),
        create::checks(),
        create_validation::checks(),
        delete::checks(),
        deletion_options::checks(),
        discovery::checks(),
        dry_run::checks(),
        errors::checks(),
        events_and_reviews::checks(),
        field_validation::checks(),
        garbage::checks(),
        lists::checks(),
        metadata_only::checks(),
        namespaces::checks(),
        openapi::checks(),
        pages::checks(),
        patches::checks(),
        patch_types::checks(),
        protobuf::checks(),
        selectors::checks(),
        status_subresource::checks(),
        tables::checks(),
        update::checks(),
        update_rules::checks(),
        watches::checks(),
        watch_starts::checks(),
    ];
    let trials = checks.into_iter().flatten().map(|check| check.into_trial(suite.clone())).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    suite.tear_down();
    conclusion.exit_code()
}
