//! A rehearsal as one HTML page: no script, no font, no picture from elsewhere. Whatever a name or message holds, it stays text.

use std::fmt::Write as _;

use super::report::{AddOnReport, Moment, PlacementEnd, RehearsalReport, shown};
use crate::output::counted;

/// The size of a chart, in its own units.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 150.0;
/// Around the drawing: for the numbers at its left and below.
const LEFT: f64 = 56.0;
const BELOW: f64 = 24.0;
/// More points than this are more than a screen can show.
const MOST_POINTS: usize = 1000;
/// How many clusters of a group are named.
const MOST_NAMED: usize = 50;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2733;--paper:#fff;--soft:#5b6b7b;--line:#d5dde5;--done:#2f7d4f;--moving:#2a6fb0;--failed:#b3372f;--card:#f6f8fa}\
@media(prefers-color-scheme:dark){:root{--ink:#e4eaf0;--paper:#12181f;--soft:#9badbd;--line:#334150;--done:#5cb884;--moving:#6aa9e6;--failed:#ea7a70;--card:#1a222b}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:960px;margin:2rem auto;padding:0 1rem}\
h1,h2,h3{line-height:1.2}h2{margin-top:2.5rem;border-top:1px solid var(--line);padding-top:1.5rem}\
p.sub,figcaption,.axis{color:var(--soft)}table{border-collapse:collapse;width:100%;margin:1rem 0}\
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
figure{margin:1.5rem 0;padding:1rem;background:var(--card);border-radius:8px;overflow-x:auto}svg{width:100%;height:auto;min-width:480px}\
.verdict{font-size:1.15rem;font-weight:600}.well{color:var(--done)}.ill{color:var(--failed)}\
.done{fill:var(--done)}.moving{fill:var(--moving)}.failed{fill:var(--failed)}.grid{stroke:var(--line);stroke-width:1}.budget{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:6 4;fill:none}\
text{font:12px system-ui,sans-serif;fill:var(--soft)}.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 1em}\
.key.done{background:var(--done)}.key.moving{background:var(--moving)}.key.failed{background:var(--failed)}details{margin:.3rem 0}";

pub(super) fn render(report: &RehearsalReport, program: &str) -> String {
    let names: Vec<&str> = report.add_ons.iter().map(|addon| addon.name.as_str()).collect();
    let title = format!("Rehearsal of {}", names.join(", "));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{0}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escaped(&title)
    );
    let profile = &report.profile;
    let [from, to] = profile.latency_seconds;
    let percent = |share: f64| (share * 1000.0).round() / 10.0;
    let _ = writeln!(
        out,
        "<p class=\"sub\">A simulated fleet in virtual time: each cluster takes {from} s to {to} s, {}% fail, {}% cannot be reached, {}% flap; {}, seed {}. \
         Made by <code>{} rehearse</code>; nothing was written to any hub.</p>",
        percent(profile.fail),
        percent(profile.offline),
        percent(profile.flap),
        counted(profile.runs as usize, "run"),
        profile.seed,
        escaped(program),
    );
    for addon in &report.add_ons {
        render_addon(&mut out, addon);
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn render_addon(out: &mut String, addon: &AddOnReport) {
    let first = &addon.first;
    let _ = writeln!(out, "<h2>{} on {}</h2>", escaped(&addon.name), counted(addon.clusters, "cluster"));
    let (class, verdict) = match (first.settled, first.ran_out) {
        (true, _) => ("well", format!("Every cluster has settled after {}.", shown(first.seconds))),
        (false, true) => ("ill", "Something still moved after a week: given up.".to_owned()),
        (false, false) => {
            let left: usize = first.unsettled.iter().map(|group| group.count).sum();
            (
                "ill",
                format!(
                    "It stops after {}: {} without what is wanted.",
                    shown(first.seconds),
                    counted(left, "cluster")
                ),
            )
        }
    };
    let _ = writeln!(out, "<p class=\"verdict {class}\">{}</p>", escaped(&verdict));
    let runs = &addon.runs;
    if runs.count > 1 {
        let _ = writeln!(
            out,
            "<p>Of {} fleets {} settled; half were at rest after {}, nine in ten after {}, all after {}. The charts show the first.</p>",
            runs.count,
            runs.settled,
            shown(runs.p50_seconds),
            shown(runs.p90_seconds),
            shown(runs.worst_seconds),
        );
    }
    out.push_str("<p class=\"sub\">In the charts, from below:<span class=\"key done\"></span>has it<span class=\"key moving\"></span>in flight<span class=\"key failed\"></span>failed</p>\n");
    for (index, end) in first.placements.iter().enumerate() {
        timeline(out, &first.timeline, index, end, first.seconds);
        exposure(out, &first.timeline, index, end, first.seconds);
    }
    placements(out, &first.placements);
    unsettled(out, addon);
}

/// How high a layer is at a reading.
type Height = fn(&Point) -> usize;

/// One reading of a placement: when, and three counts.
struct Point {
    seconds: u64,
    done: usize,
    moving: usize,
    failed: usize,
}

/// The readings of one placement, no more than can be seen; the last is always among them.
fn points(timeline: &[Moment], placement: usize) -> Vec<Point> {
    let step = timeline.len().div_ceil(MOST_POINTS).max(1);
    let last = timeline.len().saturating_sub(1);
    timeline
        .iter()
        .enumerate()
        .filter(|(index, _)| index % step == 0 || *index == last)
        .filter_map(|(_, moment)| {
            let at = moment.placements.get(placement)?;
            let moving = at.in_flight.saturating_sub(at.failed);
            Some(Point { seconds: moment.seconds, done: at.done, moving, failed: at.failed })
        })
        .collect()
}

/// How far it is, over time: what has settled, what is in flight and what failed, one upon the other.
fn timeline(out: &mut String, moments: &[Moment], placement: usize, end: &PlacementEnd, seconds: u64) {
    let points = points(moments, placement);
    let chart = Chart { most: end.governed.max(1), seconds: seconds.max(1) };
    let name = escaped(&end.placement);
    let _ = writeln!(out, "<figure>\n<h3>{name}: timeline</h3>");
    chart.open(out, &format!("Clusters of {} over time", end.placement));
    let layers: [(&str, Height, Height); 3] = [
        ("done", |_| 0, |at| at.done),
        ("moving", |at| at.done, |at| at.done + at.moving),
        ("failed", |at| at.done + at.moving, |at| at.done + at.moving + at.failed),
    ];
    for (class, low, high) in layers {
        chart.area(out, class, &points, low, high);
    }
    out.push_str("</svg>\n");
    let _ = writeln!(
        out,
        "<figcaption>{}: {} of {} have it in the end.</figcaption>\n</figure>",
        escaped(&end.message),
        points.last().map_or(0, |at| at.done),
        end.governed
    );
}

/// How many clusters are at stake at one time, against the budget.
fn exposure(out: &mut String, moments: &[Moment], placement: usize, end: &PlacementEnd, seconds: u64) {
    let points = points(moments, placement);
    let chart = Chart { most: end.peak_exposed.max(end.budget).max(1), seconds: seconds.max(1) };
    let _ = writeln!(out, "<figure>\n<h3>{}: exposure</h3>", escaped(&end.placement));
    chart.open(out, &format!("Clusters of {} in flight or failed over time", end.placement));
    chart.area(out, "moving", &points, |_| 0, |at| at.moving);
    chart.area(out, "failed", &points, |at| at.moving, |at| at.moving + at.failed);
    let y = chart.y(end.budget);
    let _ = writeln!(out, "<path class=\"budget\" d=\"M{LEFT:.1} {y:.1}H{:.1}\"/>", LEFT + WIDTH);
    out.push_str("</svg>\n");
    let _ = writeln!(
        out,
        "<figcaption>At most {} at one time; the dashed line is the budget of {}.</figcaption>\n</figure>",
        counted(end.peak_exposed, "cluster"),
        end.budget
    );
}

/// Where numbers go in a drawing.
struct Chart {
    most: usize,
    seconds: u64,
}

impl Chart {
    fn x(&self, seconds: u64) -> f64 {
        LEFT + WIDTH * seconds as f64 / self.seconds as f64
    }

    fn y(&self, count: usize) -> f64 {
        HEIGHT - HEIGHT * count.min(self.most) as f64 / self.most as f64
    }

    fn open(&self, out: &mut String, label: &str) {
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 -10 {:.0} {:.0}\" role=\"img\" aria-label=\"{}\">",
            LEFT + WIDTH + 10.0,
            HEIGHT + BELOW + 12.0,
            escaped(label)
        );
        for part in 0..=4_u64 {
            let count = self.most * part as usize / 4;
            let y = self.y(count);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT:.1} {y:.1}h{WIDTH:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{count}</text>",
                LEFT - 6.0,
                y + 4.0
            );
            let at = self.seconds * part / 4;
            let anchor = match part {
                0 => "start",
                4 => "end",
                _ => "middle",
            };
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                self.x(at),
                HEIGHT + 18.0,
                shown(at)
            );
        }
    }

    /// The area between two counts, in steps: a count holds until the next reading.
    fn area(
        &self,
        out: &mut String,
        class: &str,
        points: &[Point],
        low: impl Fn(&Point) -> usize,
        high: impl Fn(&Point) -> usize,
    ) {
        let (Some(first), true) = (points.first(), points.iter().any(|at| high(at) > low(at))) else {
            return;
        };
        let mut path = format!("M{:.1} {:.1}", self.x(first.seconds), self.y(low(first)));
        for at in points {
            let _ = write!(path, "H{:.1}V{:.1}", self.x(at.seconds), self.y(high(at)));
        }
        let _ = write!(path, "H{:.1}", LEFT + WIDTH);
        for at in points.iter().rev() {
            let _ = write!(path, "V{:.1}H{:.1}", self.y(low(at)), self.x(at.seconds));
        }
        let title = match class {
            "done" => "has it",
            "moving" => "in flight",
            _ => "failed",
        };
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}Z\"><title>{title}</title></path>");
    }
}

fn placements(out: &mut String, ends: &[PlacementEnd]) {
    out.push_str(
        "<table>\n<tr><th>placement</th><th class=\"n\">clusters</th><th class=\"n\">budget</th><th class=\"n\">most at once</th>\
         <th class=\"n\">settled</th><th class=\"n\">failed</th><th class=\"n\">waiting</th><th>in the end</th></tr>\n",
    );
    for end in ends {
        let class = if end.well { "well" } else { "ill" };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"{class}\">{}</td></tr>",
            escaped(&end.placement),
            end.governed,
            end.budget,
            end.peak_exposed,
            end.settled,
            end.failed,
            end.waiting,
            escaped(&end.message)
        );
    }
    out.push_str("</table>\n");
}

fn unsettled(out: &mut String, addon: &AddOnReport) {
    for group in &addon.first.unsettled {
        let named: Vec<String> =
            group.clusters.iter().take(MOST_NAMED).map(|cluster| escaped(cluster)).collect();
        let more = group.clusters.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(
            out,
            "<details><summary>{}: {}</summary>{}{more}</details>",
            counted(group.count, "cluster"),
            escaped(&group.message),
            named.join(", ")
        );
    }
}

/// Text that stays text, in an element or in an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // No control character may be in a page, and none says anything here.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_name_holds_it_stays_text() {
        assert_eq!(
            escaped("</title><script>alert('\"&\u{0}')</script>"),
            "&lt;/title&gt;&lt;script&gt;alert(&#39;&quot;&amp;\u{fffd}&#39;)&lt;/script&gt;"
        );
    }
}
