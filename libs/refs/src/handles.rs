//! [`HandleTable`]: small numbers for objects, the lowest free one first, as file descriptors are.

use alloc::vec::Vec;

use crate::mode::{Mode, Shared};
use crate::{Dying, NoSuspend, StrongRc, TempRc, WeakRc};

/// One entry: a share in an object, and what belongs to the entry rather than to the object (such as `FD_CLOEXEC`).
pub struct Handle<T: ?Sized + 'static, A, M: Mode = Shared> {
    object: StrongRc<T, M>,
    /// What belongs to this entry alone.
    pub attribute: A,
}

/// Objects by small numbers. An object may stand in several entries and in several tables; it dies with the last.
pub struct HandleTable<T: ?Sized + 'static, A, M: Mode = Shared> {
    entries: Vec<Option<Handle<T, A, M>>>,
    /// No entry below this one is free.
    lowest_free: usize,
}

impl<T: ?Sized, A, M: Mode> Default for HandleTable<T, A, M> {
    fn default() -> Self {
        HandleTable { entries: Vec::new(), lowest_free: 0 }
    }
}

impl<T: ?Sized, A: Copy, M: Mode> HandleTable<T, A, M> {
    /// The object of a number.
    #[inline(always)]
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, index: usize, cx: &'cx impl NoSuspend<M>) -> Option<TempRc<'cx, T, M>> {
        Some(self.entries.get(index)?.as_ref()?.object.get(cx))
    }

    /// The name of the object of a number.
    #[inline(always)]
    pub fn weak(&self, index: usize) -> Option<WeakRc<T, M>> {
        Some(self.entries.get(index)?.as_ref()?.object.downgrade())
    }

    /// What belongs to the entry.
    pub fn attribute(&mut self, index: usize) -> Option<&mut A> {
        Some(&mut self.entries.get_mut(index)?.as_mut()?.attribute)
    }

    /// Enters an object under the lowest free number that is at least `from` and below `limit`.
    ///
    /// # Errors
    /// Gives the object back where no number is free, or no memory for a longer table.
    pub fn insert(
        &mut self,
        object: StrongRc<T, M>,
        attribute: A,
        from: usize,
        limit: usize,
    ) -> Result<usize, Dying<T, M>> {
        let start = from.max(self.lowest_free);
        let free = (start..self.entries.len()).find(|&index| self.entries[index].is_none());
        let index = free.unwrap_or(start.max(self.entries.len()));
        if index >= limit || !self.reserve(index) {
            return Err(Dying::new(object));
        }
        self.put(index, Handle { object, attribute });
        if start == self.lowest_free {
            self.lowest_free = index + 1;
        }
        Ok(index)
    }

    /// Makes room for an entry under `index`; false if there is no memory for it.
    #[inline]
    pub fn reserve(&mut self, index: usize) -> bool {
        index < self.entries.len() || self.entries.try_reserve(index + 1 - self.entries.len()).is_ok()
    }

    /// Enters an object under `index`, for which there is room (see [`reserve`](Self::reserve)); gives back the one that was there.
    pub fn replace(&mut self, index: usize, object: StrongRc<T, M>, attribute: A) -> Option<Dying<T, M>> {
        self.put(index, Handle { object, attribute })
    }

    fn put(&mut self, index: usize, handle: Handle<T, A, M>) -> Option<Dying<T, M>> {
        if index >= self.entries.len() {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index].replace(handle).map(|old| Dying::new(old.object))
    }

    /// One more share in the object of `index`, for another entry.
    pub fn share(&self, index: usize) -> Option<StrongRc<T, M>> {
        Some(self.entries.get(index)?.as_ref()?.object.share())
    }

    /// One more than the highest number that was in use since there was room for it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no number was ever in use.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes an entry out. The object dies if this was the last.
    pub fn remove(&mut self, index: usize) -> Option<Dying<T, M>> {
        let old = self.entries.get_mut(index)?.take()?;
        self.lowest_free = self.lowest_free.min(index);
        Some(Dying::new(old.object))
    }

    /// A table with the same entries under the same numbers; `None` if there is no memory for it.
    pub fn share_all(&self) -> Option<Self> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(self.entries.len()).ok()?;
        entries.extend(self.entries.iter().map(|entry| {
            entry.as_ref().map(|entry| Handle { object: entry.object.share(), attribute: entry.attribute })
        }));
        Some(HandleTable { entries, lowest_free: self.lowest_free })
    }

    /// Takes out all entries whose attribute `choose` accepts.
    pub fn remove_where(&mut self, mut choose: impl FnMut(&A) -> bool) -> Vec<Dying<T, M>> {
        (0..self.entries.len())
            .filter_map(|index| {
                let chosen = self.entries[index].as_ref().is_some_and(|entry| choose(&entry.attribute));
                if chosen { self.remove(index) } else { None }
            })
            .collect()
    }

    /// The first number in use from `index` on.
    pub fn next(&self, index: usize) -> Option<usize> {
        let rest = self.entries.get(index..)?;
        rest.iter().position(Option::is_some).map(|offset| index + offset)
    }

    /// The numbers in use, ascending.
    pub fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().enumerate().filter_map(|(index, entry)| entry.as_ref().map(|_| index))
    }
}
