//! Content that is too large, too deep or too dense to be stored.

use serde_json::Value;

use crate::content::Density;

/// Why content cannot be stored as a revision. Such content is never assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unkeepable {
    #[error("it has {kib} KiB of content, more than {}", Self::MOST_KIB)]
    TooLarge { kib: usize },
    #[error("its content nests deeper than {} levels", Self::MOST_LEVELS)]
    TooDeep,
    #[error("its content has more than {} values or {} maps", Self::MOST_VALUES, Self::MOST_MAPS)]
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
    pub const MOST_VALUES: usize = 60_000;

    /// The most maps that are not empty. A map takes 700 bytes in memory, even where it has eight
    /// in the text. A megabyte of CRDs has about 10,000.
    pub const MOST_MAPS: usize = 12_000;

    /// Checks content that has this many bytes.
    pub fn of(content: &Value, bytes: usize) -> Option<Self> {
        if bytes > Self::MOST_KIB * 1024 {
            return Some(Self::TooLarge { kib: bytes.div_ceil(1024) });
        }
        Density::check(content).err()
    }
}
