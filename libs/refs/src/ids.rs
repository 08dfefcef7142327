//! [`IdTable`]: objects by number that all tasks share, as processes are by their pid.

use alloc::vec::Vec;

use crate::{Dying, Map, NoSuspend, SpinLock, StrongRc, TempRc, WeakRc};

/// Objects by number, behind a lock. It owns them and gives out [`TempRc`] and [`WeakRc`].
pub struct IdTable<T: ?Sized + Send + Sync + 'static> {
    objects: SpinLock<Map<u32, T>>,
}

impl<T: ?Sized + Send + Sync> Default for IdTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized + Send + Sync> IdTable<T> {
    crate::sync::const_fn! {
        /// An empty table.
        pub fn new() -> Self {
            IdTable { objects: SpinLock::new(Map::new()) }
        }
    }

    /// Enters an object; gives back the one that had the number before.
    pub fn insert(&self, id: u32, object: StrongRc<T>, cx: &impl NoSuspend) -> Option<Dying<T>> {
        self.objects.lock(cx).insert(id, object)
    }

    /// The object of that number.
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, id: u32, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, T>> {
        self.objects.lock(cx).get(&id, cx)
    }

    /// The name of the object of that number.
    pub fn weak(&self, id: u32, cx: &impl NoSuspend) -> Option<WeakRc<T>> {
        self.objects.lock(cx).weak(&id)
    }

    /// Takes the object out.
    pub fn remove(&self, id: u32, cx: &impl NoSuspend) -> Option<Dying<T>> {
        self.objects.lock(cx).remove(&id)
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
                let (id, name) = objects.first_in(next?..)?;
                (*id, name)
            };
            next = id.checked_add(1);
            Some(name)
        })
    }

    /// The first object with a number above `id`, and its number. For going through all without a list of them.
    pub fn next_above(&self, id: u32, cx: &impl NoSuspend) -> Option<(u32, WeakRc<T>)> {
        let objects = self.objects.lock(cx);
        let (id, name) = objects.next_above(id)?;
        Some((*id, name))
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
