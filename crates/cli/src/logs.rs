//! What long-running commands say while they run: to standard error, as lines for people or as JSON for machines.

use std::io::{self, IsTerminal};

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// How much is told, and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// What to log: error, warn, info, debug, trace, or a filter such as info,aviary_controller=debug
    #[arg(long, value_name = "FILTER", default_value = "info", env = "AVIARY_LOG")]
    log: String,

    /// How log lines look
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// From now on everything is told to standard error.
pub(crate) fn start(args: &LogArgs) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&args.log).with_context(|| format!("--log {} is no filter", args.log))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    let started = match args.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow!("failed to start logging: {error}"))
}
