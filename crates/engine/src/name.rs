//! Validated names of clusters and placements.
//!
//! A cluster's name becomes a namespace and part of object names, so this module rejects names that
//! Kubernetes would not accept, and names of the hub's own namespaces.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Shared text: thousands of objects contain the same few names and hashes.
pub type Text = Arc<str>;

/// Whether two texts are equal. Fast if they are shared.
pub fn same(one: &Text, other: &Text) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// Identifies a text: 64 bits of its SHA-256, so equal texts have the same id everywhere, and
/// collisions cannot be constructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextId(NonZeroU64);

impl TextId {
    pub(crate) fn of(text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let first = digest.first_chunk().copied().unwrap_or_default();
        Self(NonZeroU64::new(u64::from_be_bytes(first)).unwrap_or(NonZeroU64::MAX))
    }
}

/// A text in a condition. Our own texts are static, so that thousands of conditions share them.
pub type Word = Cow<'static, str>;

/// Why a cluster name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NameError {
    #[error("is empty")]
    Empty,
    #[error("is longer than 63 characters")]
    TooLong,
    #[error(
        "may only have lower-case letters, digits and '-', and must start and end with a letter or digit"
    )]
    NotALabel,
    #[error("is a namespace of the hub itself")]
    Reserved,
}

/// The name of a managed cluster, which is also the name of its namespace on the hub.
///
/// Every pass compares and copies names. Names of usual length are stored inline, to avoid a memory
/// access per comparison and a reference count per copy.
#[derive(Clone)]
pub struct ClusterName(NameBytes);

#[derive(Clone)]
enum NameBytes {
    Short { len: u8, text: [u8; SHORT] },
    Long(Text),
}

/// As many bytes as fit into three machine words.
const SHORT: usize = 22;

impl PartialEq for ClusterName {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // Names contain no zero bytes, so the padding does not affect comparisons.
            (NameBytes::Short { text, .. }, NameBytes::Short { text: other, .. }) => text == other,
            (NameBytes::Long(text), NameBytes::Long(other)) => same(text, other),
            _ => false,
        }
    }
}

impl Eq for ClusterName {}

impl Hash for ClusterName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl Ord for ClusterName {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (NameBytes::Short { text, .. }, NameBytes::Short { text: other, .. }) => text.cmp(other),
            _ => self.bytes().cmp(other.bytes()),
        }
    }
}

impl PartialOrd for ClusterName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ClusterName {
    /// Accepts a DNS label that is not a namespace of the hub.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > 63 {
            return Err(NameError::TooLong);
        }
        let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = name.as_bytes();
        let inner = bytes.iter().all(|&b| alphanumeric(b) || b == b'-');
        let ends = bytes.first().copied().is_some_and(alphanumeric)
            && bytes.last().copied().is_some_and(alphanumeric);
        if !inner || !ends {
            return Err(NameError::NotALabel);
        }
        if is_hub_namespace(name) {
            return Err(NameError::Reserved);
        }
        let mut text = [0; SHORT];
        Ok(Self(match (text.get_mut(..name.len()), u8::try_from(name.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(bytes);
                NameBytes::Short { len, text }
            }
            _ => NameBytes::Long(name.into()),
        }))
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Valid UTF-8 since it was parsed.
            NameBytes::Short { .. } => std::str::from_utf8(self.bytes()).unwrap_or_default(),
            NameBytes::Long(text) => text,
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            NameBytes::Short { len, text } => text.get(..usize::from(*len)).unwrap_or_default(),
            NameBytes::Long(text) => text.as_bytes(),
        }
    }
}

/// The agent of a cluster with such a name could read and write the hub's own objects.
fn is_hub_namespace(name: &str) -> bool {
    name == "default" || name.starts_with("kube-") || name.starts_with("open-cluster-management")
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The namespace and name of a placement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacementName {
    pub namespace: Text,
    pub name: Text,
}

impl PlacementName {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for PlacementName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for PlacementName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_name_is_a_label_outside_the_hub() {
        assert!(ClusterName::parse("cluster1").is_ok());
        assert_eq!(ClusterName::parse(""), Err(NameError::Empty));
        assert_eq!(ClusterName::parse("../x"), Err(NameError::NotALabel));
        assert_eq!(ClusterName::parse("Prod"), Err(NameError::NotALabel));
        assert_eq!(ClusterName::parse("-a"), Err(NameError::NotALabel));
        assert_eq!(ClusterName::parse(&"a".repeat(64)), Err(NameError::TooLong));
        assert_eq!(ClusterName::parse("default"), Err(NameError::Reserved));
        assert_eq!(ClusterName::parse("kube-system"), Err(NameError::Reserved));
    }

    #[test]
    fn names_short_and_long_are_in_the_order_of_their_texts() {
        let lengths = [1, 2, SHORT - 1, SHORT, SHORT + 1, 63];
        let texts: Vec<String> = ["a", "b", "a-b", "0"]
            .iter()
            .flat_map(|text| {
                lengths.map(|length| text.repeat(length).chars().take(length).collect::<String>())
            })
            .map(|text| text.trim_end_matches('-').to_owned())
            .collect();
        for one in &texts {
            for other in &texts {
                let (a, b) = (ClusterName::parse(one).unwrap(), ClusterName::parse(other).unwrap());
                assert_eq!(a.as_str(), one);
                assert_eq!(a.cmp(&b), one.cmp(other), "{one} {other}");
                assert_eq!(a == b, one == other, "{one} {other}");
            }
        }
    }
}
