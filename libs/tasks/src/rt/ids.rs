//! The id table: small numbers for suspended tasks, to be sent in messages. 16 bits say which entry, 16 bits say how often the entry was
//! given out, so an id that was taken back, guessed or made up finds nothing.

use alloc::boxed::Box;
use core::cell::Cell;
use core::fmt;

use refs::Cx;

use super::awe::{AweRef, NotSuspended};
use super::layout::{Awe, IdEntry, NEXT_LIFE, Runtime};
use super::runtime::runtime;
use crate::atomic::Ordering;

/// A number under which a task can be saved, valid on the thread that created it until it is removed.
///
/// Limit: the generation of an entry repeats after 32,768 removals of that entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

impl Id {
    /// The number, to be sent to somebody who will send it back.
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// What somebody sent. It need not be an id: each use is checked.
    pub fn from_bits(bits: u32) -> Self {
        Id(bits)
    }

    fn slot(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    fn generation(self) -> u32 {
        self.0 >> 16
    }
}

/// There is no such id: it was removed, or never created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadId;

/// All 65,536 ids are in use, or there is no memory for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdsExhausted;

/// Why a task cannot be saved under an id, or resumed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSaved {
    /// There is no such id.
    BadId,
    /// No task is saved under it.
    Empty,
    /// A task is saved under it already.
    Taken,
    /// A task was entered by [`Id::set`] that is not suspended now.
    NotSuspended,
}

impl From<BadId> for NotSaved {
    fn from(_: BadId) -> Self {
        NotSaved::BadId
    }
}

impl From<NotSuspended> for NotSaved {
    fn from(_: NotSuspended) -> Self {
        NotSaved::NotSuspended
    }
}

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such id")
    }
}

impl fmt::Display for IdsExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all ids are in use")
    }
}

impl fmt::Display for NotSaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotSaved::BadId => "no such id",
            NotSaved::Empty => "no task is saved under this id",
            NotSaved::Taken => "another task is saved under this id",
            NotSaved::NotSuspended => "the task under this id is not suspended",
        })
    }
}

impl core::error::Error for BadId {}
impl core::error::Error for IdsExhausted {}
impl core::error::Error for NotSaved {}

/// How many entries the table has at first.
const FIRST_ENTRIES: usize = 64;
const MOST_ENTRIES: usize = 1 << 16;

impl Id {
    /// A new id, under which no task is saved yet.
    ///
    /// # Errors
    /// [`IdsExhausted`] with 65,536 ids in use.
    pub fn create(cx: &Cx) -> Result<Id, IdsExhausted> {
        runtime(cx).create_id()
    }

    /// Takes the id back; says which task was saved under it.
    ///
    /// # Errors
    /// [`BadId`] if it was removed already or never created.
    pub fn remove(self, cx: &Cx) -> Result<Option<AweRef>, BadId> {
        runtime(cx).remove_id(self)
    }

    /// Enters a task of this thread under the id, in the place of whichever was there; `None` takes it out.
    ///
    /// # Errors
    /// [`NotSaved::BadId`], or [`NotSaved::NotSuspended`] if the task has ended or belongs to another thread.
    pub fn set(self, cx: &Cx, task: Option<AweRef>) -> Result<(), NotSaved> {
        let runtime = runtime(cx);
        let entry = runtime.id_entry(self)?;
        if task.is_some_and(|task| !task.is_alive() || !core::ptr::eq(task.awe.runtime, runtime)) {
            return Err(NotSaved::NotSuspended);
        }
        entry.saved.set(task.map(|task| task.awe));
        entry.life.set(task.map_or(0, |task| task.life));
        Ok(())
    }

    /// The task under the id.
    ///
    /// # Errors
    /// [`NotSaved::BadId`], or [`NotSaved::Empty`].
    pub fn get(self, cx: &Cx) -> Result<AweRef, NotSaved> {
        let (_, task) = runtime(cx).occupied(self)?;
        // Somebody has its name now: it must not outlive the task unnoticed.
        Ok(task.awe.reference_if(task))
    }
}

impl Runtime {
    #[inline(always)]
    fn id_entry(&self, id: Id) -> Result<&IdEntry, BadId> {
        if id.slot() >= self.ids_len.get() as usize {
            return Err(BadId);
        }
        // SAFETY: the table has `ids_len` entries.
        let entry = unsafe { &*self.ids.get().add(id.slot()) };
        // Generations in use are odd, so a free entry's matches no id.
        if entry.generation.get() == id.generation() && id.generation() & 1 == 1 { Ok(entry) } else { Err(BadId) }
    }

    fn create_id(&self) -> Result<Id, IdsExhausted> {
        if self.ids_free.get() == 0 {
            self.grow_ids()?;
        }
        let slot = self.ids_free.get() - 1;
        // SAFETY: free entries are entries.
        let entry = unsafe { &*self.ids.get().add(slot as usize) };
        self.ids_free.set(entry.next_free.get());
        let generation = (entry.generation.get() + 1) & 0xffff;
        entry.generation.set(generation);
        Ok(Id(generation << 16 | slot))
    }

    fn remove_id(&self, id: Id) -> Result<Option<AweRef>, BadId> {
        let entry = self.id_entry(id)?;
        entry.generation.set((id.generation() + 1) & 0xffff);
        entry.next_free.set(self.ids_free.replace(id.slot() as u32 + 1));
        Ok(entry.saved.take().map(|awe| awe.reference_if(AweRef { awe, life: entry.life.get() })))
    }

    /// The entry of an id, if nobody is saved there.
    #[inline(always)]
    pub(crate) fn vacant(&self, id: Id) -> Result<&IdEntry, NotSaved> {
        let entry = self.id_entry(id)?;
        match entry.saved.get() {
            // A task that was aborted meanwhile does not count.
            Some(awe) if (AweRef { awe, life: entry.life.get() }).is_alive() => Err(NotSaved::Taken),
            _ => Ok(entry),
        }
    }

    /// The entry of an id at which a task is saved, and that task.
    #[inline(always)]
    pub(crate) fn occupied(&self, id: Id) -> Result<(&IdEntry, AweRef), NotSaved> {
        let entry = self.id_entry(id)?;
        let awe = entry.saved.get().ok_or(NotSaved::Empty)?;
        Ok((entry, AweRef { awe, life: entry.life.get() }))
    }

    /// A task goes on whose entry, if it still is one, names it: now it names nobody.
    #[cold]
    #[inline(never)]
    pub(crate) fn unsave(&self, me: &'static Awe) {
        let id = Id(me.saved_under.replace(0));
        if let Ok(entry) = self.id_entry(id)
            && entry.saved.get().is_some_and(|there| core::ptr::eq(there, me))
        {
            entry.saved.set(None);
        }
    }

    #[cold]
    fn grow_ids(&self) -> Result<(), IdsExhausted> {
        let before = self.ids_len.get() as usize;
        let after = (before * 2).max(FIRST_ENTRIES);
        if after > MOST_ENTRIES {
            return Err(IdsExhausted);
        }
        let table: Box<[IdEntry]> = (0..after)
            .map(|slot| {
                if slot < before {
                    // SAFETY: an entry of the old table, which is given up below.
                    return unsafe { self.ids.get().add(slot).read() };
                }
                let next = if slot + 1 < after { slot as u32 + 2 } else { 0 };
                IdEntry {
                    saved: Cell::new(None),
                    generation: Cell::new(0),
                    next_free: Cell::new(next),
                    life: Cell::new(0),
                }
            })
            .collect();
        self.drop_table();
        self.ids.set(Box::leak(table).as_ptr());
        self.ids_len.set(after as u32);
        self.ids_free.set(before as u32 + 1);
        Ok(())
    }

    /// Gives up all ids.
    pub(crate) fn drop_ids(&self) {
        self.drop_table();
        self.ids.set(core::ptr::null());
        self.ids_len.set(0);
        self.ids_free.set(0);
    }

    fn drop_table(&self) {
        if !self.ids.get().is_null() {
            let table = core::ptr::slice_from_raw_parts_mut(self.ids.get().cast_mut(), self.ids_len.get() as usize);
            // SAFETY: made by `grow_ids` with this length.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

impl IdEntry {
    /// Enters the running task, which is about to suspend, under the id of this entry.
    #[inline(always)]
    pub(crate) fn save(&self, id: Id, me: &'static Awe) {
        self.saved.set(Some(me));
        self.life.set(me.life.load(Ordering::Relaxed) & !(NEXT_LIFE - 1));
        me.saved_under.set(id.0);
    }

    /// The task that was found under the id of this entry is about to go on. If it had saved itself there, it is there no more.
    #[inline(always)]
    pub(crate) fn resumed(&self, id: Id, task: &Awe) {
        if task.saved_under.get() == id.0 {
            task.saved_under.set(0);
            self.saved.set(None);
        }
    }
}
