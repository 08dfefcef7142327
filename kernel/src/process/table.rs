//! [`PidTable`]: processes or threads by id.

use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{Dying, NoSuspend, SpinLock, StrongRc, TempRc, WeakRc};

use crate::radix::RadixTree;

/// Objects by process or thread id, behind a lock. It owns them. A lookup takes a few steps, however many there are. On a line of its own: all cores lock it.
#[repr(align(64))]
pub struct PidTable<T: Send + Sync + 'static> {
    objects: SpinLock<RadixTree<StrongRc<T>>>,
    /// How many there are; written with the lock held.
    count: AtomicUsize,
}

impl<T: Send + Sync> PidTable<T> {
    /// An empty table.
    pub const fn new() -> Self {
        PidTable { objects: SpinLock::new(RadixTree::new()), count: AtomicUsize::new(0) }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Enters an object; gives back the one that had the id before.
    pub fn insert(&self, id: u32, object: StrongRc<T>, cx: &impl NoSuspend) -> Option<Dying<T>> {
        let mut objects = self.objects.lock(cx);
        let before = objects.insert(id, object).map(Dying::from);
        self.count.store(objects.len(), Ordering::Relaxed);
        before
    }

    /// The object of that id.
    pub fn get<'cx>(&self, id: u32, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, T>> {
        Some(self.objects.lock(cx).get(id)?.get(cx))
    }

    /// The name of the object of that id.
    pub fn weak(&self, id: u32, cx: &impl NoSuspend) -> Option<WeakRc<T>> {
        self.objects.lock(cx).get(id).map(StrongRc::downgrade)
    }

    /// Takes the object out.
    pub fn remove(&self, id: u32, cx: &impl NoSuspend) -> Option<Dying<T>> {
        let mut objects = self.objects.lock(cx);
        let removed = objects.remove(id).map(Dying::from);
        self.count.store(objects.len(), Ordering::Relaxed);
        removed
    }

    /// The object with the lowest id from `id` on, and that id. For going through all without a list of them.
    pub fn next(&self, id: u32, cx: &impl NoSuspend) -> Option<(u32, WeakRc<T>)> {
        let objects = self.objects.lock(cx);
        let (id, object) = objects.next(id)?;
        Some((id, object.downgrade()))
    }

    /// The names of all objects by ascending id. Each is looked up when it is asked for.
    pub fn all<'a>(&'a self, cx: &'a Cx) -> impl Iterator<Item = WeakRc<T>> + 'a {
        let mut from = Some(0);
        core::iter::from_fn(move || {
            let (id, name) = self.next(from?, cx)?;
            from = id.checked_add(1);
            Some(name)
        })
    }
}
