//! A manager under measurement: a separate process, ours or another, that gets only a kubeconfig.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use aviary_serve::write_private;

use super::objects::NAMESPACE;

/// The manager to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MeasuredManager {
    /// The aviary program.
    Ours(PathBuf),
    /// A shell command line; `{kubeconfig}` in it is replaced by the file.
    Peer(String),
}

impl MeasuredManager {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Ours(_) => "aviary",
            Self::Peer(_) => "peer",
        }
    }

    fn command(&self, kubeconfig: &Path) -> Command {
        match self {
            Self::Ours(program) => {
                let mut command = Command::new(program);
                command.args(["manager", "--namespace", NAMESPACE, "--log", "error", "--kubeconfig"]);
                command.arg(kubeconfig);
                command
            }
            Self::Peer(line) => {
                let line = line.replace("{kubeconfig}", &kubeconfig.to_string_lossy());
                let mut command = Command::new("sh");
                // `exec`, so that the measured process is the manager and not the shell.
                command.args(["-c", &format!("exec {line}")]).env("KUBECONFIG", kubeconfig);
                command
            }
        }
    }

    /// Starts it. Its output goes to a file next to the kubeconfig.
    pub(super) fn start(&self, directory: &Path, kubeconfig: &str) -> anyhow::Result<RunningManager> {
        let file = directory.join("measured.kubeconfig");
        write_private(&file, kubeconfig.as_bytes())
            .with_context(|| format!("failed to write {}", file.display()))?;
        let log = directory.join(format!("{}.log", self.name()));
        let said = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("failed to write {}", log.display()))?;
        let also = said.try_clone().context("failed to write a log")?;
        let child = self
            .command(&file)
            .stdin(Stdio::null())
            .stdout(said)
            .stderr(also)
            .spawn()
            .with_context(|| format!("failed to start {}", self.name()))?;
        Ok(RunningManager { child, log, peak_anonymous: AtomicU64::new(0) })
    }
}

/// A running manager. It ends on drop.
pub(super) struct RunningManager {
    child: Child,
    log: PathBuf,
    peak_anonymous: AtomicU64,
}

/// In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PeakMemory {
    /// The kernel keeps this peak.
    pub(super) resident: u64,
    /// The largest sample: the kernel keeps no peak of it.
    pub(super) anonymous: u64,
}

impl PeakMemory {
    pub(super) fn max(self, other: Self) -> Self {
        Self { resident: self.resident.max(other.resident), anonymous: self.anonymous.max(other.anonymous) }
    }
}

impl Drop for RunningManager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RunningManager {
    /// Its CPU time so far. The kernel counts in hundredths of a second.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = self.proc("stat")?;
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        // A process that has exited stays until it is waited for.
        ensure!(!after_name.trim_start().starts_with('Z'), "the manager has exited: {}", self.last_words());
        let fields = after_name.split_whitespace().skip(11).take(2);
        let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Its peak memory so far. Takes a sample: call this often.
    pub(super) fn peak_memory(&self) -> anyhow::Result<PeakMemory> {
        let status = self.proc("status")?;
        let sample = bytes_of(&status, "RssAnon:");
        let before = self.peak_anonymous.fetch_max(sample, Ordering::Relaxed);
        Ok(PeakMemory { resident: bytes_of(&status, "VmHWM:"), anonymous: before.max(sample) })
    }

    fn proc(&self, file: &str) -> anyhow::Result<String> {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))
            .with_context(|| format!("failed to read what the manager spends: {}", self.last_words()))
    }

    /// The end of its output, because its log is deleted with the run.
    pub(super) fn last_words(&self) -> String {
        const LINES: usize = 3;
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().rev().take(LINES).collect();
        match lines.is_empty() {
            true => "no output".to_owned(),
            false => format!("output: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" / ")),
        }
    }

    /// Asks it to stop, and waits; kills it if it does not.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        const GRACE: Duration = Duration::from_secs(20);
        let pid = self.child.id().to_string();
        let asked = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status();
        asked.context("failed to ask the manager to end")?;
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < GRACE {
            if self.child.try_wait().context("failed to wait for the manager")?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// A line of `/proc/PID/status` that is in kilobytes.
fn bytes_of(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let kilobytes = line.split_whitespace().next().and_then(|text| text.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_name_and_a_line_that_is_not_there_is_nothing() {
        let status = "Name:\taviary\nVmHWM:\t   34816 kB\nRssAnon:\t    5120 kB\n";
        assert_eq!(bytes_of(status, "VmHWM:"), 34 << 20);
        assert_eq!(bytes_of(status, "RssAnon:"), 5 << 20);
        assert_eq!(bytes_of("", "RssAnon:"), 0);
    }

    #[test]
    fn the_peak_of_two_processes_is_that_of_each_figure() {
        let peak = |resident, anonymous| PeakMemory { resident, anonymous };
        assert_eq!(peak(3, 1).max(peak(2, 2)), peak(3, 2));
    }
}
