//! What was measured, as data and as a table with the targets beside it.

use serde::Serialize;

use crate::output::{Paint, Style, Table};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) version: u32,
    pub(super) server: String,
    pub(super) cores: usize,
    /// Every run, as it was.
    pub(super) runs: Vec<Run>,
    pub(super) summaries: Vec<Summary>,
}

/// One manager on one fleet, once.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) manager: &'static str,
    pub(super) clusters: usize,
    pub(super) run: usize,
    /// How long a client took that only wrote what must be written.
    pub(super) bare_seconds: f64,
    pub(super) install: Phase,
    pub(super) upgrade: Phase,
    pub(super) staged: Phase,
    pub(super) idle: Phase,
    pub(super) restart: Phase,
    pub(super) peak_memory_bytes: u64,
}

/// From a change until the last write that it caused.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Phase {
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

/// A line of the table: what a manager took, the median over the runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    pub(super) what: String,
    pub(super) manager: &'static str,
    pub(super) measured: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at_most: Option<f64>,
    pub(super) unit: &'static str,
}

impl Summary {
    pub(super) fn is_met(&self) -> bool {
        self.at_most.is_none_or(|limit| self.measured <= limit)
    }
}

/// The lines for all runs, in the order of `docs/performance.md`.
pub(super) fn summaries(runs: &[Run]) -> Vec<Summary> {
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
                let (what, at_most) = (what.to_owned(), Some(1.05));
                lines.push(Summary { what, manager, measured, at_most, unit: "exponent" });
            }
        }
    }
    lines
}

fn of_size(manager: &'static str, clusters: usize, runs: &[&Run], lines: &mut Vec<Summary>) {
    let each = clusters as f64;
    let mut line = |what: &str, unit: &'static str, at_most: Option<f64>, of: &dyn Fn(&Run) -> f64| {
        let what = format!("{clusters} clusters: {what}");
        lines.push(Summary { what, manager, measured: median(runs, of), at_most, unit });
    };
    line("writes, install", "per cluster", Some(4.0), &|run| run.install.cluster_writes as f64 / each);
    line("writes, upgrade", "per cluster", Some(3.0), &|run| run.upgrade.cluster_writes as f64 / each);
    line("writes of the add-on's own, install and upgrade", "", None, &|run| {
        let of = |phase: &Phase| phase.writes - phase.cluster_writes;
        (of(&run.install) + of(&run.upgrade)) as f64
    });
    line("config GETs, install and upgrade", "", Some(0.0), &|run| {
        (run.install.config_gets + run.upgrade.config_gets) as f64
    });
    line("conflicts, install and upgrade", "", Some(0.0), &|run| {
        (run.install.conflicts + run.upgrade.conflicts) as f64
    });
    line("CPU, install", "ms per cluster", Some(3.0), &|run| run.install.cpu_seconds * 1e3 / each);
    line("CPU, upgrade", "ms per cluster", Some(2.0), &|run| run.upgrade.cpu_seconds * 1e3 / each);
    line("install, against bare writes", "times", Some(2.0), &|run| run.install.seconds / run.bare_seconds);
    let memory = match clusters {
        ..=500 => Some(20.0),
        501..=5_000 => Some(50.0),
        5_001..=20_000 => Some(150.0),
        _ => None,
    };
    line("peak memory", "MB", memory, &|run| run.peak_memory_bytes as f64 / f64::from(1 << 20));
    let waves = (clusters <= 100).then_some(2.0);
    line("rollout in three waves", "s", waves, &|run| run.staged.seconds);
    let quick = (clusters <= 5_000).then_some(2.0);
    line("restart until quiet", "s", quick, &|run| run.restart.seconds);
    line("writes after a restart", "", Some(0.0), &|run| run.restart.writes as f64);
    line("writes at rest", "", Some(0.0), &|run| run.idle.writes as f64);
    let share = |run: &Run| run.idle.cpu_seconds / run.idle.seconds.max(f64::EPSILON) * 100.0;
    line("CPU at rest", "% of a core", (clusters <= 5_000).then_some(0.5), &share);
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

/// The power of the size with which a cost grows: the slope of the line through the logarithms. Needs two sizes.
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

pub(super) fn table(report: &Report, paint: Paint) -> String {
    let mut table = Table::default();
    table.head(&["WHAT", "MANAGER", "MEASURED", "AT MOST", "UNIT", ""]);
    for line in &report.summaries {
        let verdict = match (line.manager, line.at_most) {
            ("peer", _) | (_, None) => (Style::Plain, String::new()),
            _ if line.is_met() => (Style::Green, "met".to_owned()),
            _ => (Style::Red, "not met".to_owned()),
        };
        table.row([
            (Style::Plain, line.what.clone()),
            (Style::Plain, line.manager.to_owned()),
            (Style::Plain, figure(line.measured)),
            (Style::Plain, line.at_most.map(figure).unwrap_or_default()),
            (Style::Dim, line.unit.to_owned()),
            verdict,
        ]);
    }
    table.render(paint)
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
            install: Phase { writes, cluster_writes: writes, seconds: 3.0, ..Phase::default() },
            upgrade: Phase::default(),
            staged: Phase::default(),
            idle: Phase::default(),
            restart: Phase::default(),
            peak_memory_bytes: 1 << 20,
        };
        let lines = summaries(&[run(50), run(20), run(30)]);
        assert_eq!(lines[0].measured, 3.0);
        assert!(lines[0].is_met());
        let times = lines.iter().find(|line| line.unit == "times").unwrap();
        assert!(!times.is_met());
    }
}
