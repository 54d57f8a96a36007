//! Logging of long-running commands to standard error, as text or as JSON.
//!
//! Each event is one line. Control characters in it are escaped, whatever component logs it. So are
//! those in the message of a panic, which may quote what others wrote.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::panic;
use std::thread;

use anyhow::{Context as _, anyhow};
use aviary_api::visible::{visible, visible_json};
use clap::ValueEnum;
use serde_json::json;
use tracing::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt;

/// The longest line, in bytes. A library may log a server's whole response.
const LONGEST: usize = 32 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// The logging options.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Log level or filter: error, warn, info, debug, trace, or for example
    /// info,aviary_controller=debug
    #[arg(long, value_name = "FILTER", default_value = "info", env = "AVIARY_LOG")]
    log: String,

    /// Format of log lines
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// The client logs every request that fails, without saying which. Every command has its own words
/// for what fails, and for a hub that is away.
const WITHOUT_REQUESTS: &str = "kube_client::client=off,kube_runtime=off";

/// Installs the logger. From now on, events go to standard error.
pub(crate) fn start(args: &LogArgs) -> anyhow::Result<()> {
    start_with(args, &without_requests(&args.log))
}

/// From now on, the message of a panic is one line without control characters. A panic of one pass
/// does not end the manager, so its message is a line of the log like any other.
pub(crate) fn escape_panics() {
    panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let line = panic_line(thread.name().unwrap_or("<unnamed>"), &panic.to_string());
        // If the stream is closed, there is nothing left to do.
        let _ = writeln!(io::stderr(), "{line}");
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            let _ = writeln!(io::stderr(), "{backtrace}");
        }
    }));
}

fn panic_line(thread: &str, panic: &str) -> String {
    visible(&format!("thread '{thread}' {panic}")).at_most(LONGEST).to_string()
}

/// Whoever names the client in the filter gets what it logs.
fn without_requests(filter: &str) -> String {
    match filter.contains("kube_") {
        true => filter.to_owned(),
        false => format!("{filter},{WITHOUT_REQUESTS}"),
    }
}

fn start_with(args: &LogArgs, filter: &str) -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_new(filter).with_context(|| format!("--log {} is not a valid filter", args.log))?;
    let started = subscriber(filter, args.log_format, io::stderr).try_init();
    started.map_err(|error| anyhow!("failed to start logging: {error}"))
}

fn subscriber<W: Write>(
    filter: EnvFilter,
    format: LogFormat,
    to: impl Fn() -> W + Send + Sync + 'static,
) -> Dispatch {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(VisibleLines { format, to })
        // Colour codes could not be distinguished from codes in a field.
        .with_ansi(false)
        .with_target(false);
    match format {
        LogFormat::Text => lines.into(),
        LogFormat::Json => lines.json().flatten_event(true).into(),
    }
}

/// Creates writers that escape control characters.
struct VisibleLines<F> {
    format: LogFormat,
    to: F,
}

impl<'a, W: Write, F: Fn() -> W> MakeWriter<'a> for VisibleLines<F> {
    type Writer = VisibleLine<W>;

    fn make_writer(&'a self) -> VisibleLine<W> {
        VisibleLine { format: self.format, to: (self.to)() }
    }
}

/// Receives one event per call, including its trailing line break.
struct VisibleLine<W> {
    format: LogFormat,
    to: W,
}

impl<W: Write> Write for VisibleLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let begin = line.get(..line.floor_char_boundary(LONGEST)).unwrap_or(line);
        let mut shown = match self.format {
            LogFormat::Text => visible(line).at_most(LONGEST).to_string(),
            LogFormat::Json if begin.len() < line.len() => visible_json(&cut(begin, line.len())),
            LogFormat::Json => visible_json(line),
        };
        shown.push('\n');
        self.to.write_all(shown.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// An event that is too long for one line, as valid JSON.
fn cut(begin: &str, length: usize) -> String {
    let message = format!("a log event of {length} bytes was cut");
    json!({"level": "WARN", "message": message, "begin": begin}).to_string()
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::sync::{Arc, Mutex};

    use anyhow::anyhow;
    use aviary_api::visible::is_hidden;
    use serde_json::Value;
    use tracing::dispatcher::with_default;

    use super::*;

    const HOSTILE: &str =
        "boom\u{1b}[2J\r\n2026-01-01T00:00:00Z  INFO all is well\u{9b}1m\u{7f}\u{202e}x\u{200b}\u{2028}";

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The log output for a message, a displayed field, a debug field, and an error with a cause.
    fn logged(format: LogFormat) -> String {
        captured(format, || {
            let error = anyhow!(HOSTILE.to_owned()).context("failed to ask");
            tracing::warn!(cluster = %HOSTILE, debugged = ?HOSTILE, error = error.as_ref() as &dyn Error, "{HOSTILE}");
        })
    }

    fn captured(format: LogFormat, log: impl FnOnce()) -> String {
        let kept = Kept::default();
        let to = kept.clone();
        let subscriber = subscriber(EnvFilter::new("info"), format, move || to.clone());
        with_default(&subscriber, log);
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn failed_requests_of_the_client_are_not_logged_unless_asked_for() {
        let lines = |filter: &str| {
            let kept = Kept::default();
            let to = kept.clone();
            let subscriber =
                subscriber(EnvFilter::new(without_requests(filter)), LogFormat::Text, move || to.clone());
            with_default(&subscriber, || {
                tracing::error!(target: "kube_client::client::builder", "failed with error");
                tracing::warn!("the hub is unreachable");
            });
            let bytes = kept.0.lock().unwrap().clone();
            String::from_utf8(bytes).unwrap().lines().count()
        };
        assert_eq!((lines("info"), lines("debug"), lines("info,kube_client=error")), (1, 1, 2));
    }

    #[test]
    fn a_hostile_message_stays_in_its_line_of_text() {
        let text = logged(LogFormat::Text);
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.chars().any(is_hidden), "{line:?}");
        assert!(line.contains("failed to ask"), "{line}");
    }

    #[test]
    fn a_hostile_message_stays_in_its_line_of_json_and_is_kept() {
        let text = logged(LogFormat::Json);
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.chars().any(is_hidden), "{line:?}");
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["message"], HOSTILE);
        assert_eq!(event["cluster"], HOSTILE);
    }

    #[test]
    fn h4_the_message_of_a_panic_is_one_line_without_control_characters() {
        let line = panic_line("tokio-runtime-worker", &format!("panicked at src/plan.rs:1:1:\n{HOSTILE}"));
        assert!(!line.chars().any(is_hidden), "{line:?}");
        assert!(line.starts_with("thread 'tokio-runtime-worker' panicked at src/plan.rs:1:1:"), "{line}");
        assert!(panic_line("main", &"é".repeat(LONGEST)).len() < LONGEST + 10);
    }

    #[test]
    fn an_event_that_is_too_long_is_cut() {
        let answer = "é".repeat(LONGEST);
        let text = captured(LogFormat::Text, || tracing::warn!("{answer}"));
        assert!(text.len() < LONGEST + 10 && text.ends_with("é…\n"), "{}", text.len());

        let json = captured(LogFormat::Json, || tracing::warn!("{answer}"));
        assert!(json.len() < 2 * LONGEST, "{}", json.len());
        let event: Value = serde_json::from_str(&json).unwrap();
        assert!(event["begin"].as_str().unwrap().contains("éé"), "{json}");
    }
}
