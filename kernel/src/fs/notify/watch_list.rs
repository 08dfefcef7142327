//! [`WatchList`]: watchers by key.
//!
//! Nearly all that is watched has one watcher, which stands in the list itself: it comes and goes with one piece of memory. As soon as there are more they stand in a tree.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::{Bound, RangeInclusive};

use super::watchers::{Key, Watcher};

/// Watchers by key.
#[derive(Default)]
pub(super) enum WatchList<W = Watcher> {
    /// None.
    #[default]
    Empty,
    /// One.
    One(Key, W),
    /// So many, which were two or more once.
    Tree(BTreeMap<Key, W>),
}

impl<W> WatchList<W> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            WatchList::Empty => 0,
            WatchList::One(..) => 1,
            WatchList::Tree(tree) => tree.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// That of a key.
    pub fn get(&self, key: Key) -> Option<&W> {
        match self {
            WatchList::One(own, watcher) if *own == key => Some(watcher),
            WatchList::Empty | WatchList::One(..) => None,
            WatchList::Tree(tree) => tree.get(&key),
        }
    }

    /// Enters that of a key, which is not there.
    pub fn insert(&mut self, key: Key, watcher: W) {
        *self = match core::mem::take(self) {
            WatchList::Empty => WatchList::One(key, watcher),
            WatchList::One(other, first) => WatchList::Tree(BTreeMap::from([(other, first), (key, watcher)])),
            WatchList::Tree(mut tree) => {
                tree.insert(key, watcher);
                WatchList::Tree(tree)
            }
        };
    }

    /// Takes out that of a key.
    pub fn remove(&mut self, key: Key) -> Option<W> {
        match self {
            WatchList::One(own, _) if *own == key => match core::mem::take(self) {
                WatchList::One(_, watcher) => Some(watcher),
                WatchList::Empty | WatchList::Tree(_) => None,
            },
            WatchList::Empty | WatchList::One(..) => None,
            WatchList::Tree(tree) => tree.remove(&key),
        }
    }

    /// Those behind a key, or all, in the order of their keys.
    pub fn behind(&mut self, key: Option<Key>) -> impl Iterator<Item = (Key, &mut W)> {
        let (one, tree) = match self {
            WatchList::Empty => (None, None),
            WatchList::One(own, watcher) => (Some((*own, watcher)).filter(|(own, _)| Some(*own) > key), None),
            WatchList::Tree(tree) => {
                let from = key.map_or(Bound::Unbounded, Bound::Excluded);
                (None, Some(tree.range_mut((from, Bound::Unbounded)).map(|(&key, watcher)| (key, watcher))))
            }
        };
        one.into_iter().chain(tree.into_iter().flatten())
    }

    /// The keys of a range, in order.
    pub fn within(&self, keys: RangeInclusive<Key>) -> impl Iterator<Item = Key> {
        let (one, tree) = match self {
            WatchList::Empty => (None, None),
            WatchList::One(own, _) => (Some(*own).filter(|own| keys.contains(own)), None),
            WatchList::Tree(tree) => (None, Some(tree.range(keys).map(|(&key, _)| key))),
        };
        one.into_iter().chain(tree.into_iter().flatten())
    }

    /// All, in the order of their keys.
    pub fn into_values(self) -> impl Iterator<Item = W> {
        let (one, tree) = match self {
            WatchList::Empty => (None, None),
            WatchList::One(_, watcher) => (Some(watcher), None),
            WatchList::Tree(tree) => (None, Some(tree.into_values())),
        };
        one.into_iter().chain(tree.into_iter().flatten())
    }

    /// Takes out the first `most`.
    pub fn take_some(&mut self, most: usize) -> Self {
        match self {
            WatchList::Tree(tree) => WatchList::Tree(take_some(tree, most)),
            WatchList::Empty | WatchList::One(..) => core::mem::take(self),
        }
    }
}

/// Takes the first `most` out of a tree.
pub(super) fn take_some<K: Ord, V>(all: &mut BTreeMap<K, V>, most: usize) -> BTreeMap<K, V> {
    let some: Vec<_> = (0..most).map_while(|_| all.pop_first()).collect();
    some.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(numbers: &[u64]) -> WatchList<u64> {
        let mut list = WatchList::default();
        numbers.iter().for_each(|&number| list.insert(Key::Queue(number), number));
        list
    }

    fn numbers(keys: impl Iterator<Item = Key>) -> Vec<u64> {
        keys.map(|key| if let Key::Queue(number) = key { number } else { u64::MAX }).collect()
    }

    #[test]
    fn one_watcher_is_found_and_listed_as_several_are() {
        for all in [&[5][..], &[5, 3, 9]] {
            let mut list = list(all);
            assert!(list.get(Key::Queue(5)).is_some() && list.get(Key::Queue(4)).is_none());
            assert!(numbers(list.behind(None).map(|(key, _)| key)).contains(&5));
            assert!(numbers(list.behind(Some(Key::Queue(4))).map(|(key, _)| key)).contains(&5));
            assert!(!numbers(list.behind(Some(Key::Queue(5))).map(|(key, _)| key)).contains(&5));
            assert_eq!(numbers(list.within(Key::Queue(4)..=Key::Queue(5))), [5]);
            assert!(list.remove(Key::Queue(4)).is_none() && list.remove(Key::Queue(5)).is_some());
            assert_eq!(list.len(), all.len() - 1);
        }
    }

    #[test]
    fn a_list_is_taken_out_in_pieces_the_first_ones_first() {
        let mut many = list(&[5, 3, 9]);
        let some = many.take_some(2).into_values().count();
        assert_eq!((some, numbers(many.behind(None).map(|(key, _)| key))), (2, alloc::vec![9]));
        let mut one = list(&[5]);
        assert!(one.take_some(2).len() == 1 && one.is_empty());
    }
}
