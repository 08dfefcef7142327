//! [`Map`]: objects by key.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::ops::{Bound, RangeBounds};

use crate::mode::{Mode, Shared};
use crate::{Dying, NoSuspend, StrongRc, TempRc, WeakRc};

/// Objects by key, in the order of the keys. It owns them and gives out [`TempRc`] and [`WeakRc`].
///
/// It locks nothing: where several tasks use it, put it into a [`SpinLock`](crate::SpinLock), or take an
/// [`IdTable`](crate::IdTable). What it gives out borrows the context, not the map.
pub struct Map<K, T: ?Sized + 'static, M: Mode = Shared> {
    objects: BTreeMap<K, StrongRc<T, M>>,
}

impl<K, T: ?Sized, M: Mode> Default for Map<K, T, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, T: ?Sized, M: Mode> Map<K, T, M> {
    /// An empty map.
    pub const fn new() -> Self {
        Map { objects: BTreeMap::new() }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The keys in use, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.objects.keys()
    }

    /// The keys and the names of all objects, by ascending key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, WeakRc<T, M>)> {
        self.objects.iter().map(|(key, object)| (key, object.downgrade()))
    }
}

impl<K: Ord, T: ?Sized, M: Mode> Map<K, T, M> {
    /// Enters an object; gives back the one that had the key before.
    pub fn insert(&mut self, key: K, object: StrongRc<T, M>) -> Option<Dying<T, M>> {
        self.objects.insert(key, object).map(Dying::new)
    }

    /// The object of that key.
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx, Q: Ord + ?Sized>(&self, key: &Q, cx: &'cx impl NoSuspend<M>) -> Option<TempRc<'cx, T, M>>
    where
        K: Borrow<Q>,
    {
        Some(self.objects.get(key)?.get(cx))
    }

    /// The name of the object of that key.
    pub fn weak<Q: Ord + ?Sized>(&self, key: &Q) -> Option<WeakRc<T, M>>
    where
        K: Borrow<Q>,
    {
        self.objects.get(key).map(StrongRc::downgrade)
    }

    /// One more owner of the object of that key, for another collection.
    pub fn share<Q: Ord + ?Sized>(&self, key: &Q) -> Option<StrongRc<T, M>>
    where
        K: Borrow<Q>,
    {
        self.objects.get(key).map(StrongRc::share)
    }

    /// Takes the object out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<Dying<T, M>>
    where
        K: Borrow<Q>,
    {
        self.objects.remove(key).map(Dying::new)
    }

    /// Takes the object out, and its key.
    pub fn remove_entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, Dying<T, M>)>
    where
        K: Borrow<Q>,
    {
        self.objects.remove_entry(key).map(|(key, object)| (key, Dying::new(object)))
    }

    /// Keeps the objects that `keep` accepts; the others die, and are freed at the next suspension.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &T) -> bool) {
        self.objects.retain(|key, object| object.with(|object| keep(key, object)));
    }

    /// Moves the objects that `choose` accepts to `chosen`, where they and their keys end when the caller wants them to. If `choose` panics,
    /// nothing has moved.
    pub(crate) fn take_out(&mut self, chosen: &mut Vec<(K, StrongRc<T, M>)>, mut choose: impl FnMut(&K, &T) -> bool) {
        let verdicts: Vec<bool> =
            self.objects.iter().map(|(key, object)| object.with(|object| choose(key, object))).collect();
        if !verdicts.contains(&true) {
            return;
        }
        for (entry, is_chosen) in core::mem::take(&mut self.objects).into_iter().zip(verdicts) {
            if is_chosen {
                chosen.push(entry);
            } else {
                self.objects.insert(entry.0, entry.1);
            }
        }
    }

    /// Takes the object with the lowest key out. For emptying a map one by one.
    pub fn pop_first(&mut self) -> Option<(K, Dying<T, M>)> {
        self.objects.pop_first().map(|(key, object)| (key, Dying::new(object)))
    }

    /// The first object in a range of keys, and its key.
    pub fn first_in(&self, range: impl RangeBounds<K>) -> Option<(&K, WeakRc<T, M>)> {
        let (key, object) = self.objects.range(range).next()?;
        Some((key, object.downgrade()))
    }

    /// The first object with a key above `key`, and its key. For going through a map that others change meanwhile.
    pub fn next_above(&self, key: impl Borrow<K>) -> Option<(&K, WeakRc<T, M>)> {
        let (key, object) = self.objects.range((Bound::Excluded(key.borrow()), Bound::Unbounded)).next()?;
        Some((key, object.downgrade()))
    }
}

impl<K: fmt::Debug, T: ?Sized + fmt::Debug, M: Mode> fmt::Debug for Map<K, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.objects).finish()
    }
}

impl<K: Ord, T: ?Sized, M: Mode> FromIterator<(K, StrongRc<T, M>)> for Map<K, T, M> {
    fn from_iter<I: IntoIterator<Item = (K, StrongRc<T, M>)>>(objects: I) -> Self {
        Map { objects: objects.into_iter().collect() }
    }
}

impl<K: Ord, T: ?Sized, M: Mode> Extend<(K, StrongRc<T, M>)> for Map<K, T, M> {
    fn extend<I: IntoIterator<Item = (K, StrongRc<T, M>)>>(&mut self, objects: I) {
        self.objects.extend(objects);
    }
}
