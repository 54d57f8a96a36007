//! The time, CPU and memory of this process, from the kernel.

use std::time::{Duration, Instant};

/// Time and CPU, from one moment to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) time: Duration,
    pub(crate) cpu: Duration,
    since: Instant,
}

impl Spent {
    pub(crate) fn now() -> Self {
        Self { time: Duration::ZERO, cpu: cpu(), since: Instant::now() }
    }

    pub(crate) fn until_now(self) -> Self {
        Self { time: self.since.elapsed(), cpu: cpu().saturating_sub(self.cpu), since: self.since }
    }
}

/// User and system time. The kernel counts in hundredths of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

pub(crate) fn resident() -> usize {
    status("VmRSS:")
}

pub(crate) fn peak_memory() -> usize {
    status("VmHWM:")
}

fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<usize>().ok()).unwrap_or(0) * 1024
}

pub(crate) fn megabytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}
