//! The results, as data and as a table with targets.

use std::fmt::Write as _;

use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BenchReport {
    pub(super) version: u32,
    pub(super) server: String,
    pub(super) cores: usize,
    /// All runs.
    pub(super) runs: Vec<Run>,
    pub(super) summaries: Vec<BenchSummary>,
}

/// One run of one manager on one fleet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) manager: &'static str,
    pub(super) clusters: usize,
    pub(super) run: usize,
    /// The time of a client that makes only the necessary writes.
    pub(super) bare_seconds: f64,
    pub(super) install: MeasuredPhase,
    pub(super) upgrade: MeasuredPhase,
    pub(super) staged: MeasuredPhase,
    pub(super) idle: MeasuredPhase,
    pub(super) restart: MeasuredPhase,
    pub(super) peak_memory_bytes: u64,
    /// Of it, pages that are not of files: the rest is shared and can be reclaimed.
    pub(super) peak_anonymous_bytes: u64,
}

/// From a change to the last write that it causes.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MeasuredPhase {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) writes: u64,
    pub(super) cluster_writes: u64,
    pub(super) events: u64,
    pub(super) gets: u64,
    pub(super) config_gets: u64,
    pub(super) lists: u64,
    pub(super) conflicts: u64,
    pub(super) errors: u64,
}

/// A line of the table: the median over the runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BenchSummary {
    pub(super) what: String,
    pub(super) manager: &'static str,
    pub(super) measured: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at_most: Option<f64>,
    pub(super) unit: &'static str,
}

impl BenchSummary {
    pub(super) fn is_met(&self) -> bool {
        self.at_most.is_none_or(|limit| self.measured <= limit)
    }
}

/// The lines for all runs, in the order of `docs/performance.md`.
pub(super) fn summaries(runs: &[Run]) -> Vec<BenchSummary> {
    let mut lines = Vec::new();
    for manager in ["aviary", "peer"] {
        let of = |clusters: usize| -> Vec<&Run> {
            runs.iter().filter(|run| run.manager == manager && run.clusters == clusters).collect()
        };
        let mut sizes: Vec<usize> =
            runs.iter().filter(|run| run.manager == manager).map(|run| run.clusters).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for &clusters in &sizes {
            of_size(manager, clusters, &of(clusters), &mut lines);
        }
        for (what, spent) in [
            ("growth of CPU, install", (|run: &Run| run.install.cpu_seconds) as fn(&Run) -> f64),
            ("growth of CPU, upgrade", |run| run.upgrade.cpu_seconds),
        ] {
            let points: Vec<(f64, f64)> =
                sizes.iter().map(|&size| (size as f64, median(&of(size), spent))).collect();
            if let Some(measured) = exponent(&points) {
                let (what, at_most) = (what.to_owned(), Some(1.02));
                lines.push(BenchSummary { what, manager, measured, at_most, unit: "exponent" });
            }
        }
    }
    lines
}

fn of_size(manager: &'static str, clusters: usize, runs: &[&Run], lines: &mut Vec<BenchSummary>) {
    let each = clusters as f64;
    let mut line = |what: &str, unit: &'static str, at_most: Option<f64>, of: &dyn Fn(&Run) -> f64| {
        let what = format!("{clusters} clusters: {what}");
        lines.push(BenchSummary { what, manager, measured: median(runs, of), at_most, unit });
    };
    line("writes, install", "per cluster", Some(4.0), &|run| run.install.cluster_writes as f64 / each);
    line("writes, upgrade", "per cluster", Some(3.0), &|run| run.upgrade.cluster_writes as f64 / each);
    line("writes to the add-on itself, install and upgrade", "", None, &|run| {
        let of = |phase: &MeasuredPhase| phase.writes - phase.cluster_writes;
        (of(&run.install) + of(&run.upgrade)) as f64
    });
    line("config GETs, install and upgrade", "", Some(0.0), &|run| {
        (run.install.config_gets + run.upgrade.config_gets) as f64
    });
    line("conflicts, install and upgrade", "", Some(0.0), &|run| {
        (run.install.conflicts + run.upgrade.conflicts) as f64
    });
    line("CPU, install", "ms per cluster", Some(2.0), &|run| run.install.cpu_seconds * 1e3 / each);
    line("CPU, upgrade", "ms per cluster", Some(1.5), &|run| run.upgrade.cpu_seconds * 1e3 / each);
    line("install, relative to bare writes", "times", Some(1.3), &|run| {
        run.install.seconds / run.bare_seconds
    });
    let [memory, anonymous, quick] = targets_of_size(clusters);
    let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    line("peak memory", "MB", memory, &|run| megabytes(run.peak_memory_bytes));
    line("peak anonymous memory", "MB", anonymous, &|run| megabytes(run.peak_anonymous_bytes));
    let waves = (clusters <= 100).then_some(2.0);
    line("rollout in three waves", "s", waves, &|run| run.staged.seconds);
    line("restart until quiet", "s", quick, &|run| run.restart.seconds);
    line("writes after a restart", "", Some(0.0), &|run| run.restart.writes as f64);
    line("writes at rest", "", Some(0.0), &|run| run.idle.writes as f64);
    let share = |run: &Run| run.idle.cpu_seconds / run.idle.seconds.max(f64::EPSILON) * 100.0;
    line("CPU at rest", "% of a core", (clusters <= 5_000).then_some(0.5), &share);
}

/// The most megabytes, of it anonymous, and the most seconds of a restart.
fn targets_of_size(clusters: usize) -> [Option<f64>; 3] {
    match clusters {
        ..=500 => [25.0, 8.0, 1.0].map(Some),
        501..=5_000 => [45.0, 25.0, 1.0].map(Some),
        5_001..=20_000 => [75.0, 60.0, 2.0].map(Some),
        _ => [None; 3],
    }
}

fn median(runs: &[&Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut all: Vec<f64> = runs.iter().map(|run| of(run)).collect();
    all.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) =
        (all.get(all.len().saturating_sub(1) / 2).copied(), all.get(all.len() / 2).copied())
    else {
        return 0.0;
    };
    f64::midpoint(low, high)
}

/// The exponent with which a cost grows with the size: the slope of the line through the
/// logarithms. Needs two sizes.
fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 2 || points.iter().any(|(_, cost)| *cost <= 0.0) {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, cost)| (size.ln(), cost.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (size, cost) = (mean(|log| log.0), mean(|log| log.1));
    let together: f64 = logs.iter().map(|log| (log.0 - size) * (log.1 - cost)).sum();
    let alone: f64 = logs.iter().map(|log| (log.0 - size).powi(2)).sum();
    Some(together / alone)
}

pub(super) fn table(report: &BenchReport) -> String {
    let head = ["WHAT", "MANAGER", "MEASURED", "AT MOST", "UNIT", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> = report.summaries.iter().map(row).collect();
    let lines = || std::iter::once(&head).chain(&rows);
    let widths: [usize; 6] =
        std::array::from_fn(|column| lines().map(|line| line[column].len()).max().unwrap_or_default());
    let mut text = String::new();
    for line in lines() {
        let cells = line.iter().zip(widths).fold(String::new(), |mut cells, (cell, width)| {
            let _ = write!(cells, "{cell:width$}  ");
            cells
        });
        text.push_str(cells.trim_end());
        text.push('\n');
    }
    text
}

fn row(line: &BenchSummary) -> [String; 6] {
    let verdict = match (line.manager, line.at_most) {
        ("peer", _) | (_, None) => "",
        _ if line.is_met() => "met",
        _ => "not met",
    };
    [
        line.what.clone(),
        line.manager.to_owned(),
        figure(line.measured),
        line.at_most.map(figure).unwrap_or_default(),
        line.unit.to_owned(),
        verdict.to_owned(),
    ]
}

fn figure(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_is_found() {
        let points = [500.0, 2000.0, 20_000.0].map(|size: f64| (size, 0.003 * size.powf(1.3)));
        assert!((exponent(&points).unwrap() - 1.3).abs() < 1e-9);
        assert_eq!(exponent(&points[..1]), None);
        assert_eq!(exponent(&[(1.0, 0.0), (2.0, 1.0)]), None);
    }

    #[test]
    fn the_median_is_of_the_middle() {
        let run = |writes: u64| Run {
            manager: "aviary",
            clusters: 10,
            run: 1,
            bare_seconds: 1.0,
            install: MeasuredPhase {
                writes,
                cluster_writes: writes,
                seconds: 3.0,
                ..MeasuredPhase::default()
            },
            upgrade: MeasuredPhase::default(),
            staged: MeasuredPhase::default(),
            idle: MeasuredPhase::default(),
            restart: MeasuredPhase::default(),
            peak_memory_bytes: 2 << 20,
            peak_anonymous_bytes: 1 << 20,
        };
        let lines = summaries(&[run(50), run(20), run(30)]);
        assert_eq!(lines[0].measured, 3.0);
        assert!(lines[0].is_met());
        let times = lines.iter().find(|line| line.unit == "times").unwrap();
        assert!(!times.is_met());
        let measured = |what: &str| {
            let what = format!("10 clusters: {what}");
            lines.iter().find(|line| line.what == what).map(|line| (line.measured, line.at_most))
        };
        assert_eq!(measured("peak memory"), Some((2.0, Some(25.0))));
        assert_eq!(measured("peak anonymous memory"), Some((1.0, Some(8.0))));
        let report =
            BenchReport { version: 1, server: String::new(), cores: 1, runs: Vec::new(), summaries: lines };
        let table = table(&report);
        assert!(table.starts_with("WHAT "), "{table}");
        let written = table.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(written, "10 clusters: writes, install aviary 3 4 per cluster met");
    }
}
