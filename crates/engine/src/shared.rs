//! Interned values: stored once for the many objects of a fleet that have them.
//!
//! The cost of a pass over a large fleet is what it fetches from memory. Thousands of instances
//! have the same status and their works are in the same state, so equal values are stored once and
//! compared by id.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::name::Text;

/// A shared value. Copied on write.
pub struct Shared<T>(Arc<WithId<T>>);

#[derive(Clone)]
struct WithId<T> {
    id: SharedId,
    value: T,
}

/// Identifies a shared value. An id is never used for a second value. Equal values may have
/// different ids: a [`Pool`] gives them the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedId(NonZeroU64);

impl SharedId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap_or(NonZeroU64::MAX))
    }
}

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(WithId { id: SharedId::next(), value }))
    }

    pub(crate) fn id(&self) -> SharedId {
        self.0.id
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        let changed = Arc::make_mut(&mut self.0);
        changed.id = SharedId::next();
        &mut changed.value
    }
}

impl<T> Borrow<T> for Shared<T> {
    fn borrow(&self) -> &T {
        &self.0.value
    }
}

impl<A, T: FromIterator<A>> FromIterator<A> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = A>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a Shared<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.0.value.into_iter()
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id() || **self == **other
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.value.hash(state);
    }
}

/// Builds hashers for maps that are keyed by ids.
pub(crate) type ById = BuildHasherDefault<IdHasher>;

/// A cheap mix without protection against collisions: ids are assigned by us or are hashes, so
/// input cannot choose them.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u8(*byte));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    /// The multiplication mixes the top bits best; hash maps use the lowest.
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

/// Stores equal values once. Used while objects are read one by one.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    known: HashSet<Shared<T>>,
    /// When to look for unused values.
    sweep_at: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: 1024 }
    }
}

impl<T: Eq + Hash> Pool<T> {
    pub fn share(&mut self, value: Shared<T>) -> Shared<T> {
        if let Some(known) = self.known.get(&*value) {
            return known.clone();
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(&known.0) > 1);
            self.sweep_at = (self.known.len() * 2).max(1024);
        }
        self.known.insert(value.clone());
        value
    }
}

/// A pool of texts that occur in several objects, such as names and uids.
#[derive(Clone, Debug)]
pub struct Texts {
    known: HashSet<Text>,
    /// When to look for unused texts.
    sweep_at: usize,
}

impl Default for Texts {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: 1024 }
    }
}

impl Texts {
    pub fn share(&mut self, text: &mut Text) {
        if let Some(known) = self.known.get(text) {
            *text = Arc::clone(known);
            return;
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = (self.known.len() * 2).max(1024);
        }
        self.known.insert(Arc::clone(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_and_a_change_is_nobody_elses() {
        let mut pool = Pool::default();
        let one = pool.share(Shared::new(vec![1]));
        let mut other = pool.share(Shared::new(vec![1]));
        assert_eq!(one.id(), other.id());
        other.push(2);
        assert_ne!(one.id(), other.id());
        assert_eq!((&*one, &*other), (&vec![1], &vec![1, 2]));
    }

    #[test]
    fn equal_texts_are_one_and_those_that_nobody_has_are_forgotten() {
        let mut texts = Texts::default();
        let (mut one, mut other): (Text, Text) = ("uid".into(), "uid".into());
        texts.share(&mut one);
        texts.share(&mut other);
        assert!(Arc::ptr_eq(&one, &other));
        for number in 0..100_000 {
            texts.share(&mut number.to_string().into());
        }
        assert!(texts.known.len() <= 1024 && texts.known.contains("uid"));
    }

    #[test]
    fn a_pool_does_not_grow_with_what_nobody_has_any_more() {
        let mut pool = Pool::default();
        for value in 0..100_000 {
            pool.share(Shared::new(value));
        }
        assert!(pool.known.len() <= 1024);
    }
}
