//! [`IdTable`]: objects by number or another key that all tasks share, as processes are by their pid.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;

use crate::{Dying, Map, NoSuspend, SpinLock, StrongRc, TempRc, WeakRc};

/// Objects by key, behind a lock. It owns them and gives out [`TempRc`] and [`WeakRc`].
///
/// Keys are compared and cloned while the lock is held: their `Ord` and their `Clone` must not use the table, which would spin for ever. Their
/// destructors may.
pub struct IdTable<T: ?Sized + Send + Sync + 'static, K = u32> {
    objects: SpinLock<Map<K, T>>,
}

impl<T: ?Sized + Send + Sync, K> Default for IdTable<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized + Send + Sync, K> IdTable<T, K> {
    crate::sync::const_fn! {
        /// An empty table.
        pub fn new() -> Self {
            IdTable { objects: SpinLock::new(Map::new()) }
        }
    }

    /// How many objects there are.
    pub fn len(&self, cx: &impl NoSuspend) -> usize {
        self.objects.lock(cx).len()
    }

    /// Whether there is none.
    pub fn is_empty(&self, cx: &impl NoSuspend) -> bool {
        self.len(cx) == 0
    }
}

impl<T: ?Sized + Send + Sync, K: Ord> IdTable<T, K> {
    /// Enters an object; gives back the one that had the key before.
    pub fn insert(&self, id: K, object: StrongRc<T>, cx: &impl NoSuspend) -> Option<Dying<T>> {
        // A key that is there already would end while the lock is held. So it leaves with its object, and ends when the lock is free again.
        let before;
        let mut objects = self.objects.lock(cx);
        if core::mem::needs_drop::<K>() {
            before = objects.remove_entry(&id);
            objects.insert(id, object);
            drop(objects);
            before.map(|(_key, object)| object)
        } else {
            objects.insert(id, object)
        }
    }

    /// The object of that key.
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, id: impl Borrow<K>, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, T>> {
        let id = id.borrow();
        self.objects.lock(cx).get(id, cx)
    }

    /// The name of the object of that key.
    pub fn weak(&self, id: impl Borrow<K>, cx: &impl NoSuspend) -> Option<WeakRc<T>> {
        let id = id.borrow();
        self.objects.lock(cx).weak(id)
    }

    /// Takes the object out.
    pub fn remove(&self, id: impl Borrow<K>, cx: &impl NoSuspend) -> Option<Dying<T>> {
        let id = id.borrow();
        // The table's copy of the key ends when the lock is free again.
        let (_key, object) = self.objects.lock(cx).remove_entry(id)?;
        Some(object)
    }

    /// Keeps the objects that `keep` accepts; the others die, and are freed at the next suspension. The lock is held while `keep` runs, which
    /// must not use the table; it is free again when the others die.
    pub fn retain(&self, mut keep: impl FnMut(&K, &T) -> bool + Send, cx: &impl NoSuspend) {
        // Declared first, so that it ends after the lock, also if `keep` panics.
        let mut refused = Vec::new();
        self.objects.lock(cx).take_out(&mut refused, |key, object| !keep(key, object));
    }
}

impl<T: ?Sized + Send + Sync, K: Ord + Clone> IdTable<T, K> {
    /// The keys in use, ascending.
    pub fn ids(&self, cx: &impl NoSuspend) -> Vec<K> {
        self.objects.lock(cx).keys().cloned().collect()
    }

    /// The names of all objects, by ascending key. They are looked up one by one, so this takes no memory and sees what is entered
    /// and taken out meanwhile.
    pub fn all<'a>(&'a self, cx: &'a impl NoSuspend) -> impl Iterator<Item = WeakRc<T>> + 'a {
        let mut last: Option<K> = None;
        core::iter::from_fn(move || {
            let (id, name) = match &last {
                Some(last) => self.next_above(last, cx)?,
                None => self.first(cx)?,
            };
            last = Some(id);
            Some(name)
        })
    }

    /// The object with the lowest key, and that key.
    pub fn first(&self, cx: &impl NoSuspend) -> Option<(K, WeakRc<T>)> {
        let objects = self.objects.lock(cx);
        let (id, name) = objects.first_in(..)?;
        Some((id.clone(), name))
    }

    /// The first object with a key above `id`, and its key. For going through all without a list of them.
    pub fn next_above(&self, id: impl Borrow<K>, cx: &impl NoSuspend) -> Option<(K, WeakRc<T>)> {
        let id = id.borrow();
        let objects = self.objects.lock(cx);
        let (id, name) = objects.next_above(id)?;
        Some((id.clone(), name))
    }
}

impl<T: ?Sized + Send + Sync, K> fmt::Debug for IdTable<T, K> {
    /// Without its objects: whoever has the lock may be the one who asks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdTable").finish_non_exhaustive()
    }
}

impl<T: ?Sized + Send + Sync, K: Ord> FromIterator<(K, StrongRc<T>)> for IdTable<T, K> {
    fn from_iter<I: IntoIterator<Item = (K, StrongRc<T>)>>(objects: I) -> Self {
        IdTable { objects: SpinLock::new(objects.into_iter().collect()) }
    }
}

impl<T: ?Sized + Send + Sync, K: Ord> Extend<(K, StrongRc<T>)> for IdTable<T, K> {
    fn extend<I: IntoIterator<Item = (K, StrongRc<T>)>>(&mut self, objects: I) {
        self.objects.get_mut().extend(objects);
    }
}
