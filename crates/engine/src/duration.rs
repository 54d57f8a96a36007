//! Durations as Kubernetes users write them: `90s`, `1h30m`, `500ms`.

use std::time::Duration;

/// Why a duration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0:?} is not a duration: give one such as 90s, 10m or 1h30m")]
pub struct DurationError(String);

/// Parses a duration. OCM's `None` and the empty text mean that none is set.
pub fn parse(text: &str) -> Result<Option<Duration>, DurationError> {
    if text.is_empty() || text == "None" {
        return Ok(None);
    }
    positive(text).map(Some).ok_or_else(|| DurationError(text.to_owned()))
}

fn positive(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let amount: u64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let part = match rest.get(..letters)? {
            "h" => Duration::from_secs(amount.checked_mul(3600)?),
            "m" => Duration::from_secs(amount.checked_mul(60)?),
            "s" => Duration::from_secs(amount),
            "ms" => Duration::from_millis(amount),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = rest.get(letters..)?;
    }
    // A century is past any rollout, and keeps every later sum of times in range.
    (total <= Duration::from_secs(100 * 366 * 86_400)).then_some(total)
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
        for bad in ["-5m", "5mfoo", "5", "m", "1.5h", "5 m", "99999999999999999999h", "9999999999h"] {
            assert!(parse(bad).is_err(), "{bad} must be refused");
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
