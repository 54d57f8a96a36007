//! Values that many objects of a fleet have in common, kept once.
//!
//! A pass over a large fleet costs what it has to fetch from memory. Thousands of instances have the very same status and their works are in
//! the very same state, so these are kept once and looked at once.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::name::Text;

/// A value that is shared by all that have it. Changing it makes a copy for the one who changes it.
#[derive(Debug, Default, Eq)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Tells shared values apart without a look at them, for as long as they live. Two addresses may have equal values; one never has two.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
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
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> Borrow<T> for Shared<T> {
    fn borrow(&self) -> &T {
        &self.0
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
        self.0.into_iter()
    }
}

/// The same one is equal without a look at it.
impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl<T: Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Finds the one that is there already. Who reads objects one by one keeps a pool, and so keeps equal values once.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    known: HashSet<Shared<T>>,
    /// When to look for values that nobody has any more.
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

/// A pool of texts: names and uids that stand in several objects.
#[derive(Clone, Debug)]
pub struct Texts {
    known: HashSet<Text>,
    /// When to look for texts that nobody has any more.
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
        assert_eq!(one.address(), other.address());
        other.push(2);
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
