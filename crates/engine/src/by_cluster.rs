//! Objects by cluster name, stored so that iterating over all of them is cheap.
//!
//! The objects of a large fleet are scattered over more memory than a cache holds, so fetching each
//! of them would dominate the cost of a pass. Therefore a small summary of each object is stored
//! next to its name, contiguously and in order.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::name::ClusterName;

/// An object that has a summary.
pub trait Summarised {
    /// Small, and computed from the object alone.
    type Summary: Copy + fmt::Debug;

    fn summary(&self) -> Self::Summary;
}

/// A sorted map that is iterated much more often than changed: a few long rows of names, summaries
/// and values.
pub struct ByCluster<T: Summarised> {
    /// No row is empty. A row that a plan still refers to is copied on write.
    rows: Vec<Arc<ObjectRow<T>>>,
    len: usize,
}

/// Large enough that iterating rarely changes rows, small enough that inserting is cheap.
const ROW: usize = 256;

/// Three lists of equal length.
struct ObjectRow<T: Summarised> {
    names: Vec<ClusterName>,
    /// Always the summaries of the values.
    summaries: Vec<T::Summary>,
    values: Vec<Arc<T>>,
}

impl<T: Summarised> Clone for ObjectRow<T> {
    fn clone(&self) -> Self {
        Self { names: self.names.clone(), summaries: self.summaries.clone(), values: self.values.clone() }
    }
}

impl<T: Summarised> ObjectRow<T> {
    fn new() -> Self {
        Self {
            names: Vec::with_capacity(ROW),
            summaries: Vec::with_capacity(ROW),
            values: Vec::with_capacity(ROW),
        }
    }

    fn insert(&mut self, at: usize, name: ClusterName, value: Arc<T>) {
        self.names.insert(at, name);
        self.summaries.insert(at, value.summary());
        self.values.insert(at, value);
    }

    fn split_off(&mut self, at: usize) -> Self {
        let mut second = Self::new();
        second.names.extend(self.names.drain(at..));
        second.summaries.extend(self.summaries.drain(at..));
        second.values.extend(self.values.drain(at..));
        second
    }

    fn remove(&mut self, at: usize) -> Arc<T> {
        self.names.remove(at);
        self.summaries.remove(at);
        self.values.remove(at)
    }
}

impl<T: Summarised> ByCluster<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row and the index in it where the name is, or would be inserted.
    fn find(&self, name: &ClusterName) -> Result<(usize, usize), (usize, usize)> {
        let row = self.rows.partition_point(|row| row.names.last().is_some_and(|last| last < name));
        match self.rows.get(row).map(|row| row.names.binary_search(name)) {
            Some(Ok(at)) => Ok((row, at)),
            Some(Err(at)) => Err((row, at)),
            // After all others: at the end of the last row.
            None => Err((row.saturating_sub(1), self.rows.last().map_or(0, |row| row.names.len()))),
        }
    }

    pub fn get(&self, name: &ClusterName) -> Option<&Arc<T>> {
        let (row, at) = self.find(name).ok()?;
        self.rows.get(row)?.values.get(at)
    }

    pub fn contains_key(&self, name: &ClusterName) -> bool {
        self.find(name).is_ok()
    }

    pub fn get_mut(&mut self, name: &ClusterName) -> Option<Changing<'_, T>> {
        let place = self.find(name).ok()?;
        Some(self.change(place))
    }

    /// Takes a place that `find` or `put` returned.
    fn change(&mut self, (row, at): (usize, usize)) -> Changing<'_, T> {
        let row = Arc::make_mut(&mut self.rows[row]);
        Changing { summary: &mut row.summaries[at], value: &mut row.values[at] }
    }

    /// Returns the previous value.
    pub fn insert(&mut self, name: ClusterName, value: impl Into<Arc<T>>) -> Option<Arc<T>> {
        let value = value.into();
        match self.find(&name) {
            Ok(place) => Some(std::mem::replace(&mut *self.change(place).value, value)),
            Err(place) => {
                self.put(place, name, value);
                None
            }
        }
    }

    /// Returns the existing value, or inserts a new one.
    pub fn get_or_insert_with(&mut self, name: ClusterName, make: impl FnOnce() -> T) -> Changing<'_, T> {
        let place = match self.find(&name) {
            Ok(place) => place,
            Err(place) => self.put(place, name, Arc::new(make())),
        };
        self.change(place)
    }

    /// Inserts a value and returns its place.
    fn put(&mut self, (mut row, mut at): (usize, usize), name: ClusterName, value: Arc<T>) -> (usize, usize) {
        self.len += 1;
        let last = row + 1 >= self.rows.len();
        match self.rows.get_mut(row) {
            None => self.rows.push(Arc::new(ObjectRow::new())),
            // Names that come in order fill row after row.
            Some(full) if full.names.len() >= ROW && at == full.names.len() && last => {
                self.rows.push(Arc::new(ObjectRow::new()));
                (row, at) = (row + 1, 0);
            }
            Some(full) if full.names.len() >= ROW => {
                let second = Arc::make_mut(full).split_off(ROW / 2);
                self.rows.insert(row + 1, Arc::new(second));
                if at > ROW / 2 {
                    (row, at) = (row + 1, at - ROW / 2);
                }
            }
            Some(_) => {}
        }
        if let Some(row) = self.rows.get_mut(row) {
            Arc::make_mut(row).insert(at, name, value);
        }
        (row, at)
    }

    pub fn remove(&mut self, name: &ClusterName) -> Option<Arc<T>> {
        let (at_row, at) = self.find(name).ok()?;
        let row = Arc::make_mut(self.rows.get_mut(at_row)?);
        let removed = row.remove(at);
        if row.names.is_empty() {
            self.rows.remove(at_row);
        }
        self.len -= 1;
        Some(removed)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ClusterName, &Arc<T>)> + Clone {
        self.keys().zip(self.values())
    }

    pub fn keys(&self) -> impl Iterator<Item = &ClusterName> + Clone {
        self.rows.iter().flat_map(|row| &row.names)
    }

    pub fn values(&self) -> impl Iterator<Item = &Arc<T>> + Clone {
        self.rows.iter().flat_map(|row| &row.values)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = RowEntry<'_, T>> {
        let all = self.rows.iter().flat_map(|row| row.summaries.iter().zip(&row.values));
        all.map(|(summary, value)| RowEntry { summary: *summary, value })
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = Changing<'_, T>> {
        let rows = self.rows.iter_mut().map(Arc::make_mut);
        let all = rows.flat_map(|row| row.summaries.iter_mut().zip(&mut row.values));
        all.map(|(summary, value)| Changing { summary, value })
    }

    pub(crate) fn cursor(&self) -> Cursor<'_, T> {
        let mut cursor =
            Cursor { all: &self.rows, row: 0, names: &[], summaries: &[], values: &[], here: 0, at: 0 };
        cursor.enter(0);
        cursor
    }
}

/// A guard for changing an object. Copies the object if it is shared. Recomputes the summary on
/// drop.
pub struct Changing<'a, T: Summarised> {
    summary: &'a mut T::Summary,
    value: &'a mut Arc<T>,
}

impl<T: Summarised> Deref for Changing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T: Summarised + Clone> DerefMut for Changing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(self.value)
    }
}

impl<T: Summarised> Drop for Changing<'_, T> {
    fn drop(&mut self) {
        *self.summary = self.value.summary();
    }
}

/// One entry of the map.
pub(crate) struct RowEntry<'a, T: Summarised> {
    pub(crate) summary: T::Summary,
    pub(crate) value: &'a Arc<T>,
}

impl<T: Summarised> Clone for RowEntry<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Summarised> Copy for RowEntry<'_, T> {}

/// A reference to an object that does not change when the map does. It holds the whole row, so
/// thousands of references are cheap.
pub struct RowRef<T: Summarised> {
    row: Arc<ObjectRow<T>>,
    at: usize,
}

impl<T: Summarised> Deref for RowRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // A cursor at this index created it, and a row that is held does not change.
        &self.row.values[self.at]
    }
}

impl<T: Summarised> Clone for RowRef<T> {
    fn clone(&self) -> Self {
        Self { row: Arc::clone(&self.row), at: self.at }
    }
}

/// A position in the order of names. Fast for names in order, correct for any.
pub(crate) struct Cursor<'a, T: Summarised> {
    all: &'a [Arc<ObjectRow<T>>],
    row: usize,
    names: &'a [ClusterName],
    summaries: &'a [T::Summary],
    values: &'a [Arc<T>],
    /// In this row.
    here: usize,
    /// How many entries were passed, in all rows.
    at: usize,
}

impl<'a, T: Summarised> Cursor<'a, T> {
    fn head(&self) -> Option<&'a ClusterName> {
        self.names.get(self.here)
    }

    fn pass_head(&mut self) -> Option<RowEntry<'a, T>> {
        let entry = RowEntry { summary: *self.summaries.get(self.here)?, value: self.values.get(self.here)? };
        self.pass(1);
        Some(entry)
    }

    /// The next entry, unless it comes after this name.
    #[inline]
    pub(crate) fn next_up_to(
        &mut self,
        last: Option<&ClusterName>,
    ) -> Option<(&'a ClusterName, RowEntry<'a, T>)> {
        let name = self.head().filter(|name| last.is_none_or(|last| *name <= last))?;
        Some((name, self.pass_head()?))
    }

    /// The object of this name.
    pub(crate) fn take(&mut self, name: &ClusterName) -> Option<RowEntry<'a, T>> {
        self.find(name)?;
        self.pass_head()
    }

    pub(crate) fn hold(&mut self, name: &ClusterName) -> Option<RowRef<T>> {
        self.find(name)?;
        let held = RowRef { row: Arc::clone(self.all.get(self.row)?), at: self.here };
        self.pass(1);
        Some(held)
    }

    /// How many entries are before this name.
    pub(crate) fn pass_by(&mut self, name: &ClusterName) -> Option<usize> {
        let at = self.find(name)?;
        self.pass(1);
        Some(at)
    }

    #[inline]
    fn find(&mut self, name: &ClusterName) -> Option<usize> {
        if self.head() != Some(name) {
            self.seek(name);
            self.head().filter(|head| *head == name)?;
        }
        Some(self.at)
    }

    fn enter(&mut self, row: usize) {
        self.row = row;
        self.here = 0;
        let row = self.all.get(row);
        self.names = row.map_or(&[], |row| &row.names);
        self.summaries = row.map_or(&[], |row| &row.summaries);
        self.values = row.map_or(&[], |row| &row.values);
    }

    fn pass(&mut self, count: usize) {
        self.at += count;
        self.here += count;
        if self.here >= self.names.len() {
            self.enter(self.row + 1);
        }
    }

    /// Moves to the first entry that does not come before the name.
    fn seek(&mut self, name: &ClusterName) {
        if self.passed().is_some_and(|passed| name <= passed) {
            self.at = 0;
            self.enter(0);
        }
        while self.names.last().is_some_and(|last| last < name) {
            self.pass(self.names.len() - self.here);
        }
        let left = self.names.get(self.here..).unwrap_or_default();
        let before = left.partition_point(|left| left < name);
        if before > 0 {
            self.pass(before);
        }
    }

    /// The name before the head.
    fn passed(&self) -> Option<&'a ClusterName> {
        match self.here.checked_sub(1) {
            Some(before) => self.names.get(before),
            None => self.all.get(self.row.checked_sub(1)?)?.names.last(),
        }
    }
}

impl<T: Summarised> FromIterator<(ClusterName, Arc<T>)> for ByCluster<T> {
    fn from_iter<I: IntoIterator<Item = (ClusterName, Arc<T>)>>(objects: I) -> Self {
        let mut all = Self::default();
        for (name, value) in objects {
            all.insert(name, value);
        }
        all
    }
}

impl<T: Summarised> Default for ByCluster<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), len: 0 }
    }
}

impl<T: Summarised> Clone for ByCluster<T> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), len: self.len }
    }
}

impl<T: Summarised + fmt::Debug> fmt::Debug for ByCluster<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Summarised + fmt::Debug> fmt::Debug for RowRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Summarised + fmt::Debug> fmt::Debug for Changing<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl Summarised for u32 {
        type Summary = u32;

        fn summary(&self) -> u32 {
            *self
        }
    }

    fn name(number: u16) -> ClusterName {
        ClusterName::parse(&format!("c{number}")).unwrap()
    }

    fn is_sound(map: &ByCluster<u32>) {
        for row in &map.rows {
            assert!((1..=ROW).contains(&row.names.len()));
            assert!(row.summaries.iter().eq(row.values.iter().map(|value| &**value)));
        }
        assert!(map.keys().zip(map.keys().skip(1)).all(|(one, next)| one < next));
        assert_eq!((map.keys().count(), map.values().count()), (map.len(), map.len()));
    }

    #[test]
    fn what_is_held_stays_as_it_was() {
        let mut map: ByCluster<u32> =
            (0..1000).map(|number| (name(number), Arc::new(u32::from(number)))).collect();
        let held = map.cursor().hold(&name(500)).unwrap();
        *map.get_mut(&name(500)).unwrap() += 1;
        for number in (0..1000).filter(|number| *number != 500) {
            map.remove(&name(number));
        }
        is_sound(&map);
        assert_eq!((*held, **map.get(&name(500)).unwrap()), (500, 501));
    }

    #[test]
    fn names_in_order_fill_row_after_row() {
        let names = (1000..3000).map(|number| (name(number), Arc::new(0)));
        let map: ByCluster<u32> = names.collect();
        is_sound(&map);
        assert_eq!(map.rows.len(), 2000_usize.div_ceil(ROW));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Behaves like a `BTreeMap`, and its summaries are correct.
        #[test]
        fn does_what_a_map_does(steps in prop::collection::vec((0_u16..2000, 0_u32..5), 1..3000)) {
            let mut map = ByCluster::default();
            let mut model: BTreeMap<ClusterName, u32> = BTreeMap::new();
            for (number, value) in steps {
                let name = name(number);
                match value {
                    0 => prop_assert_eq!(map.remove(&name).map(|old| *old), model.remove(&name)),
                    1 => {
                        if let Some(mut changing) = map.get_mut(&name) {
                            *changing += 1;
                        }
                        model.entry(name).and_modify(|value| *value += 1);
                    }
                    2 => {
                        *map.get_or_insert_with(name.clone(), || 7) += 1;
                        *model.entry(name).or_insert(7) += 1;
                    }
                    _ => prop_assert_eq!(map.insert(name.clone(), value).map(|old| *old), model.insert(name, value)),
                }
            }
            is_sound(&map);
            prop_assert!(map.iter().map(|(name, value)| (name, **value)).eq(model.iter().map(|(name, value)| (name, *value))));
        }

        /// A cursor finds exactly the existing entries, wherever it was before.
        #[test]
        fn a_cursor_finds_names_in_any_order(
            there in prop::collection::btree_set(0_u16..1500, 0..1200),
            asked in prop::collection::vec(0_u16..1500, 1..200),
            (sorted, by_place) in any::<(bool, bool)>(),
        ) {
            let map: ByCluster<u32> = there.iter().map(|number| (name(*number), Arc::new(u32::from(*number)))).collect();
            let mut asked: Vec<ClusterName> = asked.into_iter().map(name).collect();
            if sorted {
                asked.sort();
            }
            let mut cursor = map.cursor();
            for name in asked {
                let place = map.keys().position(|key| *key == name);
                if by_place {
                    prop_assert_eq!(cursor.pass_by(&name), place);
                } else {
                    prop_assert_eq!(cursor.take(&name).map(|entry| entry.value), map.get(&name));
                }
            }
        }
    }
}
