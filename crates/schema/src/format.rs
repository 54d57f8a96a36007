//! `format`: which formats are checked, and how. An unknown format is ignored, as in Kubernetes.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Number;

/// The formats that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    DateTime,
    Date,
    Duration,
    Byte,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid { version: Option<u8> },
    Int32,
    Int64,
    Float,
    Double,
}

impl Format {
    /// Dashes are ignored: `date-time` and `datetime` are the same format.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "datetime" => Self::DateTime,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "byte" => Self::Byte,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid { version: None },
            "uuid3" => Self::Uuid { version: Some(3) },
            "uuid4" => Self::Uuid { version: Some(4) },
            "uuid5" => Self::Uuid { version: Some(5) },
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float" => Self::Float,
            "double" => Self::Double,
            _ => return None,
        })
    }

    /// The name messages use.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Duration => "duration",
            Self::Byte => "byte",
            Self::Uri => "uri",
            Self::Email => "email",
            Self::Hostname => "hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Cidr => "cidr",
            Self::Mac => "mac",
            Self::Uuid { version: None } => "uuid",
            Self::Uuid { version: Some(3) } => "uuid3",
            Self::Uuid { version: Some(4) } => "uuid4",
            Self::Uuid { version: Some(_) } => "uuid5",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    pub(crate) fn accepts_text(self, text: &str) -> bool {
        match self {
            Self::DateTime => date_time(text).is_some(),
            Self::Date => chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok() && text.len() == 10,
            Self::Duration => duration(text).is_some(),
            Self::Byte => is_base64(text),
            Self::Uri => is_uri(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uuid { version } => is_uuid(text, version),
            // Formats of numbers say nothing about text.
            Self::Int32 | Self::Int64 | Self::Float | Self::Double => true,
        }
    }

    pub(crate) fn accepts_number(self, number: &Number) -> bool {
        match self {
            Self::Int32 => integer(number).is_some_and(|value| i32::try_from(value).is_ok()),
            Self::Int64 => integer(number).is_some_and(|value| i64::try_from(value).is_ok()),
            Self::Float => number.as_f64().is_some_and(|value| value.abs() <= f64::from(f32::MAX)),
            _ => true,
        }
    }
}

/// The integer value of a JSON number: `3.0` is 3.
pub(crate) fn integer(number: &Number) -> Option<i128> {
    if let Some(value) = number.as_i64() {
        return Some(i128::from(value));
    }
    if let Some(value) = number.as_u64() {
        return Some(i128::from(value));
    }
    // 2^96 is far outside every integer format and well inside i128, so the cast is exact.
    number
        .as_f64()
        .filter(|value| value.fract() == 0.0 && value.abs() < 2f64.powi(96))
        .map(|value| value as i128)
}

pub(crate) fn date_time(text: &str) -> Option<chrono::DateTime<chrono::FixedOffset>> {
    let separated = text.as_bytes().get(10).is_some_and(|byte| byte.eq_ignore_ascii_case(&b't'));
    chrono::DateTime::parse_from_rfc3339(text).ok().filter(|_| separated)
}

/// Durations as Go writes them (`1h30m`, `1.5s`, `-2m`), in nanosecond resolution.
pub(crate) fn duration(text: &str) -> Option<chrono::Duration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(chrono::Duration::zero());
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanoseconds = 0f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        rest = &rest[end..];
        nanoseconds += amount * unit;
    }
    let in_range = nanoseconds < i64::MAX as f64;
    let signed = if negative { -nanoseconds } else { nanoseconds };
    in_range.then(|| chrono::Duration::nanoseconds(signed as i64))
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

/// A request URI: absolute, or an absolute path.
fn is_uri(text: &str) -> bool {
    let printable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let has_scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !rest.is_empty()
    });
    printable && (text.starts_with('/') || has_scheme)
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !local.contains(['@', ' ', '<', '>', ',']) && is_hostname(domain)
    })
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    text.len() <= 255 && text.split('.').all(is_label)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let Some(bits) = bits.parse::<u8>().ok().filter(|_| digits) else { return false };
    (address.parse::<Ipv4Addr>().is_ok() && bits <= 32)
        || (address.parse::<Ipv6Addr>().is_ok() && bits <= 128)
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let groups: Vec<&str> = text.split(separator).collect();
        counts.contains(&groups.len())
            && groups
                .iter()
                .all(|group| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let grouped = text.len() == 32
        || (text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-')));
    let versioned = version.is_none_or(|version| {
        let variant = digits.as_bytes().get(16).is_some_and(|byte| b"89abAB".contains(byte));
        digits.as_bytes().get(12) == Some(&(b'0' + version)) && (version == 3 || variant)
    });
    grouped && digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && versioned
}
