//! [`List`]: objects in an order.

use alloc::vec::Vec;
use core::fmt;

use crate::mode::{Mode, Shared};
use crate::{Dying, NoSuspend, StrongRc, TempRc, WeakRc};

/// Objects in an order that is made by those who enter them. It owns them and gives out [`TempRc`] and [`WeakRc`]. Entering,
/// taking out anywhere, and the neighbours of an entry take constant time.
///
/// It locks nothing: where several tasks use it, put it into a [`SpinLock`](crate::SpinLock).
pub struct List<T: ?Sized + 'static, M: Mode = Shared> {
    entries: Vec<Entry<T, M>>,
    first: u32,
    last: u32,
    /// The first of the entries that are free, which are chained by `next`.
    free: u32,
    len: usize,
}

struct Entry<T: ?Sized + 'static, M: Mode> {
    object: Option<StrongRc<T, M>>,
    previous: u32,
    next: u32,
    /// How often the entry was used: a [`Position`] is good for one use.
    generation: u64,
}

/// No entry.
const NONE: u32 = u32::MAX;

/// Where an object stands in a [`List`]. Once the object was taken out it stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    index: u32,
    generation: u64,
}

impl<T: ?Sized, M: Mode> Default for List<T, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized, M: Mode> List<T, M> {
    /// An empty list.
    pub const fn new() -> Self {
        List { entries: Vec::new(), first: NONE, last: NONE, free: NONE, len: 0 }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Enters an object before all others.
    pub fn push_front(&mut self, object: StrongRc<T, M>) -> Position {
        self.enter(object, NONE, self.first)
    }

    /// Enters an object after all others.
    pub fn push_back(&mut self, object: StrongRc<T, M>) -> Position {
        self.enter(object, self.last, NONE)
    }

    /// Enters an object after the one at `position`; gives it back if there is none.
    pub fn insert_after(&mut self, position: Position, object: StrongRc<T, M>) -> Result<Position, Dying<T, M>> {
        match self.entry(position) {
            Some(entry) => {
                let next = entry.next;
                Ok(self.enter(object, position.index, next))
            }
            None => Err(Dying::new(object)),
        }
    }

    /// Takes out the object at `position`.
    pub fn remove(&mut self, position: Position) -> Option<Dying<T, M>> {
        self.entry(position)?;
        self.take(position.index)
    }

    /// Takes out the first object.
    pub fn pop_front(&mut self) -> Option<Dying<T, M>> {
        self.take(self.first)
    }

    /// Takes out the last object.
    pub fn pop_back(&mut self) -> Option<Dying<T, M>> {
        self.take(self.last)
    }

    /// Where the first object stands.
    pub fn first(&self) -> Option<Position> {
        self.position(self.first)
    }

    /// Where the last object stands.
    pub fn last(&self) -> Option<Position> {
        self.position(self.last)
    }

    /// Where the object after the one at `position` stands.
    pub fn next(&self, position: Position) -> Option<Position> {
        self.position(self.entry(position)?.next)
    }

    /// Where the object before the one at `position` stands.
    pub fn previous(&self, position: Position) -> Option<Position> {
        self.position(self.entry(position)?.previous)
    }

    /// The object at `position`.
    #[cfg_attr(feature = "check-temps", track_caller)]
    pub fn get<'cx>(&self, position: Position, cx: &'cx impl NoSuspend<M>) -> Option<TempRc<'cx, T, M>> {
        Some(self.entry(position)?.object.as_ref()?.get(cx))
    }

    /// The name of the object at `position`.
    pub fn weak(&self, position: Position) -> Option<WeakRc<T, M>> {
        Some(self.entry(position)?.object.as_ref()?.downgrade())
    }

    /// The names of all objects, in their order.
    pub fn iter(&self) -> impl Iterator<Item = WeakRc<T, M>> + '_ {
        let mut index = self.first;
        core::iter::from_fn(move || {
            let entry = self.entries.get(index as usize)?;
            index = entry.next;
            entry.object.as_ref().map(StrongRc::downgrade)
        })
    }

    /// Keeps the objects that `keep` accepts; the others die, and are freed at the next suspension.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut next = self.first();
        while let Some(position) = next {
            next = self.next(position);
            let object = self.entry(position).and_then(|entry| entry.object.as_ref());
            if object.is_some_and(|object| !object.with(&mut keep)) {
                drop(self.remove(position));
            }
        }
    }

    fn entry(&self, position: Position) -> Option<&Entry<T, M>> {
        let entry = self.entries.get(position.index as usize)?;
        (entry.generation == position.generation && entry.object.is_some()).then_some(entry)
    }

    fn position(&self, index: u32) -> Option<Position> {
        Some(Position { index, generation: self.entries.get(index as usize)?.generation })
    }

    fn enter(&mut self, object: StrongRc<T, M>, previous: u32, next: u32) -> Position {
        let index = self.free;
        let index = match self.entries.get_mut(index as usize) {
            Some(entry) => {
                self.free = entry.next;
                *entry = Entry { object: Some(object), previous, next, generation: entry.generation + 1 };
                index
            }
            None => {
                self.entries.push(Entry { object: Some(object), previous, next, generation: 0 });
                u32::try_from(self.entries.len() - 1)
                    .ok()
                    .filter(|&index| index != NONE)
                    .expect("fewer than 2^32 objects")
            }
        };
        self.join(previous, index);
        self.join(index, next);
        self.len += 1;
        Position { index, generation: self.entries[index as usize].generation }
    }

    fn take(&mut self, index: u32) -> Option<Dying<T, M>> {
        let free = self.free;
        let entry = self.entries.get_mut(index as usize)?;
        let object = entry.object.take()?;
        let (previous, next) = (entry.previous, entry.next);
        entry.next = free;
        self.free = index;
        self.join(previous, next);
        self.len -= 1;
        Some(Dying::new(object))
    }

    /// Makes `next` follow `previous`; where one of them is none the other is an end.
    fn join(&mut self, previous: u32, next: u32) {
        match self.entries.get_mut(previous as usize) {
            Some(entry) => entry.next = next,
            None => self.first = next,
        }
        match self.entries.get_mut(next as usize) {
            Some(entry) => entry.previous = previous,
            None => self.last = previous,
        }
    }
}

impl<T: ?Sized + fmt::Debug, M: Mode> fmt::Debug for List<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let mut index = self.first;
        while let Some(entry) = self.entries.get(index as usize) {
            list.entries(&entry.object);
            index = entry.next;
        }
        list.finish()
    }
}

impl<T: ?Sized, M: Mode> FromIterator<StrongRc<T, M>> for List<T, M> {
    fn from_iter<I: IntoIterator<Item = StrongRc<T, M>>>(objects: I) -> Self {
        let mut list = List::new();
        list.extend(objects);
        list
    }
}

impl<T: ?Sized, M: Mode> Extend<StrongRc<T, M>> for List<T, M> {
    /// After all others.
    fn extend<I: IntoIterator<Item = StrongRc<T, M>>>(&mut self, objects: I) {
        objects.into_iter().for_each(|object| _ = self.push_back(object));
    }
}
