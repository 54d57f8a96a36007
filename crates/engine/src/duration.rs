//! Durations as Go parses them, which is how Kubernetes users write them: `90s`, `1h30m`, `1.5h`,
//! `0`.

use std::time::Duration;

/// Why a duration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0:?} is not a duration: give one such as 90s, 10m or 1h30m")]
pub struct DurationError(String);

/// Parses a duration. OCM's `None` and the empty text mean that none is set. A negative duration is
/// refused: nothing here can wait for one.
pub fn parse(text: &str) -> Result<Option<Duration>, DurationError> {
    if text.is_empty() || text == "None" {
        return Ok(None);
    }
    positive(text).map(Some).ok_or_else(|| DurationError(text.to_owned()))
}

/// A century is past any rollout, and keeps every later sum of times in range.
const LONGEST_NANOS: u128 = 100 * 366 * 86_400 * NANOS;
const NANOS: u128 = 1_000_000_000;
/// More digits than any duration within a century has, in any unit.
const MOST_DIGITS: usize = 20;

fn positive(text: &str) -> Option<Duration> {
    if matches!(text, "0" | "+0" | "-0") {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut total: u128 = 0;
    while {
        let (part, after) = number_and_unit(rest)?;
        total = total.checked_add(part).filter(|total| *total <= LONGEST_NANOS)?;
        rest = after;
        !rest.is_empty()
    } {}
    let (seconds, nanos) = (u64::try_from(total / NANOS).ok()?, u32::try_from(total % NANOS).ok()?);
    Some(Duration::new(seconds, nanos))
}

/// One part such as `1.5h` in nanoseconds, and the text after it.
fn number_and_unit(text: &str) -> Option<(u128, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at_checked(digits(text))?;
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at_checked(digits(rest))?,
        None => ("", rest),
    };
    if whole.len() + fraction.len() == 0 || whole.len() > MOST_DIGITS {
        return None;
    }
    let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, after) = rest.split_at_checked(letters)?;
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS,
        "m" => 60 * NANOS,
        "h" => 3600 * NANOS,
        _ => return None,
    };
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // What is finer than a nanosecond is dropped, as in Go.
    let fraction = fraction.get(..fraction.len().min(MOST_DIGITS - 2))?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    Some((whole.checked_mul(unit)?.checked_add(fraction * unit / scale)?, after))
}

/// A duration for people: the two largest units.
pub fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, 0) => format!("{m}m"),
        (0, 0, m, s) => format!("{m}m{s}s"),
        (0, h, 0, _) => format!("{h}h"),
        (0, h, m, _) => format!("{h}h{m}m"),
        (d, 0, _, _) => format!("{d}d"),
        (d, h, _, _) => format!("{d}d{h}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_whole_or_not_at_all() {
        assert_eq!(parse("1h30m"), Ok(Some(Duration::from_secs(5400))));
        assert_eq!(parse("500ms"), Ok(Some(Duration::from_millis(500))));
        assert_eq!(parse("None"), Ok(None));
        assert_eq!(parse(""), Ok(None));
        let bad = [
            "-5m",
            "5mfoo",
            "5",
            "m",
            "5 m",
            "99999999999999999999h",
            "9999999999h",
            ".",
            ".h",
            "1.h.",
            "+",
            "-",
            "++1s",
            "+-0",
            "1h+1m",
            "00",
            "0x0s",
            "1d",
            "1H",
            "١s",
            "999999999999999999999ns",
        ];
        for bad in bad {
            assert!(parse(bad).is_err(), "{bad} must be refused");
        }
    }

    /// The values that Go's own `time.ParseDuration` gives.
    #[test]
    fn durations_are_read_as_go_reads_them() {
        let nanos = |text: &str| parse(text).ok().flatten().map(|duration| duration.as_nanos());
        let table: [(&str, u128); 19] = [
            ("0", 0),
            ("+0", 0),
            ("-0", 0),
            ("0s", 0),
            ("5s", 5 * NANOS),
            ("+5s", 5 * NANOS),
            ("1478s", 1478 * NANOS),
            ("5.0s", 5 * NANOS),
            ("5.6s", 5_600_000_000),
            ("5.s", 5 * NANOS),
            (".5s", 500_000_000),
            ("1.0040s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12µs", 12_000),
            ("12μs", 12_000),
            ("3h30m", 12_600 * NANOS),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
        ];
        for (text, expected) in table {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_by_their_two_largest_units() {
        assert_eq!(shown(Duration::from_secs(59)), "59s");
        assert_eq!(shown(Duration::from_secs(90)), "1m30s");
        assert_eq!(shown(Duration::from_secs(5400)), "1h30m");
        assert_eq!(shown(Duration::from_secs(2 * 86_400 + 3 * 3600)), "2d3h");
    }
}
