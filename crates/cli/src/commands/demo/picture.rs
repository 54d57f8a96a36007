//! Shows the progress of a step: moving bars on a terminal, a line now and then otherwise.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::objects::{CANARY, FLEET};
use crate::output::Output;

/// If the output is not a terminal, at most one line is printed in this time.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// How many clusters of a placement are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlacementProgress {
    pub(super) total: usize,
    /// Healthy at the version of the step.
    pub(super) settled: usize,
    pub(super) in_flight: usize,
    pub(super) failed: usize,
}

impl PlacementProgress {
    fn aside(self) -> String {
        let mut parts = Vec::new();
        if self.in_flight > self.failed {
            parts.push(format!("{} in flight", self.in_flight - self.failed));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        parts.join(", ")
    }

    fn line(self, name: &str) -> String {
        let aside = self.aside();
        let aside = if aside.is_empty() { aside } else { format!(" ({aside})") };
        format!("{name} {}/{}{aside}", self.settled, self.total)
    }
}

#[derive(Debug)]
pub(super) struct Picture {
    bars: Option<(MultiProgress, [ProgressBar; 2])>,
    last: Duration,
    shown: [PlacementProgress; 2],
}

impl Picture {
    pub(super) fn new(output: &Output) -> Self {
        let bars = (output.is_terminal() && output.format().is_none()).then(|| {
            // Draws only when something changes, never from another thread: the streams belong to
            // this one.
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
            let bars = [FLEET, CANARY].map(|name| {
                let bar = all.add(ProgressBar::new(0)).with_prefix(name);
                let style = ProgressStyle::with_template("   {prefix:<17} [{bar:20}] {pos}/{len}  {msg}");
                if let Ok(style) = style {
                    bar.set_style(style.progress_chars("#>."));
                }
                bar
            });
            (all, bars)
        });
        Self { bars, last: Duration::ZERO, shown: [PlacementProgress::default(); 2] }
    }

    /// Shows the progress of the fleet and the canary.
    pub(super) fn show(
        &mut self,
        output: &mut Output,
        now: [PlacementProgress; 2],
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        if now == self.shown {
            return Ok(());
        }
        if let Some((_, bars)) = &self.bars {
            for (bar, one) in bars.iter().zip(now) {
                bar.set_length(one.total as u64);
                bar.set_message(one.aside());
                bar.set_position(one.settled as u64);
            }
            self.shown = now;
        } else if elapsed.saturating_sub(self.last) >= BETWEEN_LINES {
            self.last = elapsed;
            self.shown = now;
            print(output, now, elapsed)?;
        }
        Ok(())
    }

    /// Prints one line with the result.
    pub(super) fn end(
        self,
        output: &mut Output,
        now: [PlacementProgress; 2],
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        if let Some((all, bars)) = self.bars {
            bars.iter().for_each(ProgressBar::finish_and_clear);
            drop(all);
        }
        print(output, now, elapsed)
    }
}

fn print(
    output: &mut Output,
    [fleet, canary]: [PlacementProgress; 2],
    elapsed: Duration,
) -> anyhow::Result<()> {
    if output.format().is_some() {
        return Ok(());
    }
    output.line(format_args!(
        "   {:>5}  {}  {}",
        seconds(elapsed),
        fleet.line(FLEET),
        canary.line(CANARY)
    ))?;
    output.finish()
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}
