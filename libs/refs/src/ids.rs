//! [`IdTable`]: objects by number, as processes are by their pid.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use crate::{Dying, NoSuspend, SpinLock, StrongRc, TempRc, WeakRc};

/// Objects by number. It owns them and gives out [`TempRc`] and [`WeakRc`].
pub struct IdTable<T: Send + Sync + 'static> {
    objects: SpinLock<BTreeMap<u32, StrongRc<T>>>,
}

impl<T: Send + Sync> Default for IdTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> IdTable<T> {
    /// An empty table.
    pub const fn new() -> Self {
        IdTable { objects: SpinLock::new(BTreeMap::new()) }
    }

    /// Enters an object; gives back the one that had the number before.
    pub fn insert(&self, id: u32, object: StrongRc<T>, cx: &impl NoSuspend) -> Option<Dying<T>> {
        self.objects.lock(cx).insert(id, object).map(Dying::new)
    }

    /// The object of that number.
    pub fn get<'cx>(&self, id: u32, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, T>> {
        Some(self.objects.lock(cx).get(&id)?.get(cx))
    }

    /// The name of the object of that number.
    pub fn weak(&self, id: u32, cx: &impl NoSuspend) -> Option<WeakRc<T>> {
        self.objects.lock(cx).get(&id).map(StrongRc::downgrade)
    }

    /// Takes the object out.
    pub fn remove(&self, id: u32, cx: &impl NoSuspend) -> Option<Dying<T>> {
        self.objects.lock(cx).remove(&id).map(Dying::new)
    }

    /// The numbers in use, ascending.
    pub fn ids(&self, cx: &impl NoSuspend) -> Vec<u32> {
        self.objects.lock(cx).keys().copied().collect()
    }

    /// The names of all objects, by ascending number. They are looked up one by one, so this takes no memory and sees what
    /// is entered and taken out meanwhile.
    pub fn all<'a>(&'a self, cx: &'a impl NoSuspend) -> impl Iterator<Item = WeakRc<T>> + 'a {
        let mut next = Some(0);
        core::iter::from_fn(move || {
            let (id, name) = {
                let objects = self.objects.lock(cx);
                let (id, object) = objects.range(next?..).next()?;
                (*id, object.downgrade())
            };
            next = id.checked_add(1);
            Some(name)
        })
    }

    /// The first object with a number above `id`, and its number. For going through all without a list of them.
    pub fn next_above(&self, id: u32, cx: &impl NoSuspend) -> Option<(u32, WeakRc<T>)> {
        let objects = self.objects.lock(cx);
        let (id, object) = objects.range((Bound::Excluded(id), Bound::Unbounded)).next()?;
        Some((*id, object.downgrade()))
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
