//! How long ago: `k8s.io/apimachinery/pkg/util/duration.HumanDuration`. Must not read the clock.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Where a Go duration saturates, after some 292 years.
const MAX_SECONDS: i64 = i64::MAX / 1_000_000_000;

/// The age of an RFC 3339 time; `<unknown>` for an empty or zero one.
pub(super) fn since(time: &str, now: Timestamp) -> String {
    if time.is_empty() || time == "null" {
        return "<unknown>".to_owned();
    }
    match parse(time) {
        None => "<invalid>".to_owned(),
        Some(time) if is_zero(time) => "<unknown>".to_owned(),
        Some(time) => human_duration(now.duration_since(time)),
    }
}

/// An RFC 3339 time. jiff accepts more of ISO 8601 than Go does, so the format is checked first.
pub(super) fn parse(time: &str) -> Option<Timestamp> {
    let at = |index: usize, byte: u8| time.as_bytes().get(index) == Some(&byte);
    let shaped = at(4, b'-') && at(10, b'T') && at(16, b':') && !time.contains(['[', ',']);
    if shaped { time.parse().ok() } else { None }
}

/// Go's zero time is the beginning of the year 1.
fn is_zero(time: Timestamp) -> bool {
    time.as_second() == -62_135_596_800
}

/// Two or three significant figures. Up to two seconds in the future are now: clocks differ.
fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().clamp(-MAX_SECONDS, MAX_SECONDS);
    let pair = |big: i64, unit: char, small: i64, subunit: char| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit}{small}{subunit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => pair(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => pair(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => pair(seconds / DAY, 'd', seconds % DAY / HOUR, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => pair(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        // The table of apimachinery's TestHumanDuration.
        let cases = [
            (0, "0s"),
            (1, "1s"),
            (70, "70s"),
            (190, "3m10s"),
            (70 * MINUTE, "70m"),
            (47 * HOUR, "47h"),
            (49 * HOUR, "2d1h"),
            (8 * DAY + 2 * HOUR, "8d"),
            (367 * DAY, "367d"),
            (2 * YEAR + 25 * HOUR, "2y1d"),
            (8 * YEAR + 2 * DAY, "8y"),
            (-1, "0s"),
            (-2, "<invalid>"),
            (2 * MINUTE, "2m"),
            (3 * HOUR, "3h"),
            (4 * DAY, "4d"),
            (2 * YEAR, "2y"),
            (i64::MAX, "292y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(SignedDuration::from_secs(seconds)), expected, "{seconds}s");
        }
        assert_eq!(human_duration(SignedDuration::from_millis(-1999)), "0s");
        assert_eq!(human_duration(SignedDuration::from_millis(1999)), "1s");
    }

    #[test]
    fn only_rfc_3339_is_a_time() {
        let now = "2024-01-01T01:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2024-01-01T00:00:00Z", "60m"),
            ("2024-01-01T00:00:00.5Z", "59m"),
            ("2024-01-01T01:00:00+01:00", "60m"),
            ("2024-01-01T02:00:00Z", "<invalid>"),
            ("0001-01-01T00:00:00Z", "<unknown>"),
            ("", "<unknown>"),
            ("2024-01-01", "<invalid>"),
            ("2024-01-01 00:00:00Z", "<invalid>"),
            ("2024-01-01T00:00Z", "<invalid>"),
            ("2024-01-01T00:00:00", "<invalid>"),
            ("yesterday", "<invalid>"),
        ] {
            assert_eq!(since(time, now), expected, "{time}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_age(text in "\\PC*|[0-9T:Z.+-]*", seconds in any::<i64>(), nanos in any::<i32>()) {
            since(&text, Timestamp::UNIX_EPOCH);
            human_duration(SignedDuration::from_secs(seconds).saturating_add(SignedDuration::new(0, nanos)));
        }
    }
}
