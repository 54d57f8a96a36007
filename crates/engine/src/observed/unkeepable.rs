//! Content that is too large, too deep or too dense to be stored.

use serde_json::Value;

/// Why content cannot be stored as a revision. Such content is never assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unkeepable {
    #[error("it has {kib} KiB of content, more than {}", Self::MOST_KIB)]
    TooLarge { kib: usize },
    #[error("its content nests deeper than {} levels", Self::MOST_LEVELS)]
    TooDeep,
    #[error("its content has more than {} values", Self::MOST_VALUES)]
    TooDense,
}

impl Unkeepable {
    /// The largest content, in KiB. An API server accepts objects of 1.5 MiB, and a revision is
    /// slightly larger than its content.
    pub(crate) const MOST_KIB: usize = 1280;
    /// The most levels of nesting. A revision adds a few, and many JSON parsers stop at about a
    /// hundred.
    pub const MOST_LEVELS: usize = 90;

    /// The most values, counting every list, map, text and number. A value takes up to a hundred
    /// bytes in memory, even where it has two in the text.
    pub const MOST_VALUES: usize = 100_000;

    /// Checks content that has this many bytes.
    pub fn of(content: &Value, bytes: usize) -> Option<Self> {
        if bytes > Self::MOST_KIB * 1024 {
            return Some(Self::TooLarge { kib: bytes.div_ceil(1024) });
        }
        let mut pending = vec![(content, 1)];
        let mut values = 0;
        while let Some((value, level)) = pending.pop() {
            values += 1;
            if values + pending.len() > Self::MOST_VALUES {
                return Some(Self::TooDense);
            }
            match value {
                Value::Array(_) | Value::Object(_) if level > Self::MOST_LEVELS => {
                    return Some(Self::TooDeep);
                }
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, level + 1))),
                Value::Object(fields) => pending.extend(fields.values().map(|field| (field, level + 1))),
                _ => {}
            }
        }
        None
    }
}
