//! [`Descriptors`]: the entries of a table of descriptors, each of which is charged.
//!
//! Whoever looks has a [`HandleTable`]; what changes it goes through here, so that no entry comes or goes uncounted. An entry is charged for the kind of its file, also where others have the
//! file as well: whoever closes it last ends it.

use core::ops::Deref;

use refs::{Dying, HandleTable, NoSuspend, StrongRc};

use super::{FdFlags, OpenFile};
use crate::error::{Errno, Result};
use crate::reclaim::{Held, OfDescriptors, Payer};

/// So many numbers of a table are charged for together.
const PIECE: usize = 64;

/// The entries of a table of descriptors.
#[derive(Default)]
pub struct Descriptors {
    table: HandleTable<OpenFile, FdFlags>,
    held: OfDescriptors,
}

impl Deref for Descriptors {
    type Target = HandleTable<OpenFile, FdFlags>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

fn class(file: &StrongRc<OpenFile>) -> Held {
    file.with(|file| file.class)
}

impl Descriptors {
    /// Takes the lowest free number from `from` on and below `limit`, for a file that is to come.
    ///
    /// # Errors
    /// EMFILE: there is none, or no memory. ENOMEM: the budget of the group has no room for it.
    #[inline]
    pub fn reserve_lowest(&mut self, from: usize, limit: usize) -> Result<usize> {
        self.held.add(Held::Reserved, 1)?;
        let Some(fd) = self.table.reserve_lowest(from, limit) else {
            self.held.remove(Held::Reserved, 1);
            return Err(Errno::EMFILE);
        };
        if self.has_grown() && self.pay_for_table().is_err() {
            self.release(fd);
            return Err(Errno::ENOMEM);
        }
        Ok(fd)
    }

    /// Whether the table is longer than what is charged for.
    #[inline(always)]
    fn has_grown(&self) -> bool {
        self.table.len() / PIECE > self.held.count(Held::Table) as usize
    }

    /// Charges for the length of the table, which its end goes through.
    #[cold]
    fn pay_for_table(&mut self) -> Result<()> {
        let pieces = (self.table.len() / PIECE) as u32;
        self.held.add(Held::Table, pieces - self.held.count(Held::Table))
    }

    /// Enters a file under a number that was reserved for it.
    ///
    /// # Panics
    /// If the number is not reserved.
    #[inline]
    pub fn fill(&mut self, fd: usize, file: StrongRc<OpenFile>, flags: FdFlags) {
        self.held.exchange(Held::Reserved, class(&file));
        self.table.fill(fd, file, flags);
    }

    /// Gives back a number that was reserved.
    ///
    /// # Panics
    /// If the number is not reserved.
    pub fn release(&mut self, fd: usize) {
        self.held.remove(Held::Reserved, 1);
        self.table.release(fd);
    }

    /// One more entry for the file of `fd`: the lowest free number from `from` on, below `limit`.
    ///
    /// # Errors
    /// EBADF; EMFILE. ENOMEM: the budget of the group has no room for it.
    pub fn duplicate(&mut self, fd: usize, from: usize, limit: usize, flags: FdFlags) -> Result<usize> {
        let share = self.table.share(fd).ok_or(Errno::EBADF)?;
        let class = class(&share);
        self.held.add(class, 1)?;
        let entered = self.table.insert(share, flags, from, limit).map_err(|_refused: Dying<OpenFile>| Errno::EMFILE);
        let entered = entered.and_then(|fd| {
            if self.has_grown() && self.pay_for_table().is_err() {
                // The file has another entry.
                drop(self.table.remove(fd));
                return Err(Errno::ENOMEM);
            }
            Ok(fd)
        });
        entered.inspect_err(|_| self.held.remove(class, 1))
    }

    /// Makes `to` an entry for the file of `fd`; what it was before.
    ///
    /// # Errors
    /// EBADF; EBUSY where `to` is reserved; ENOMEM.
    pub fn duplicate_to(
        &mut self,
        fd: usize,
        to: usize,
        flags: FdFlags,
        cx: &impl NoSuspend,
    ) -> Result<Option<Dying<OpenFile>>> {
        let share = self.table.share(fd).ok_or(Errno::EBADF)?;
        if self.table.is_reserved(to) {
            return Err(Errno::EBUSY);
        }
        if !self.table.make_room(to) {
            return Err(Errno::ENOMEM);
        }
        if self.has_grown() {
            self.pay_for_table()?;
        }
        self.held.add(class(&share), 1)?;
        let replaced = self.table.replace(to, share, flags);
        if let Some(replaced) = &replaced {
            self.held.remove(replaced.get(cx).class, 1);
        }
        Ok(replaced)
    }

    /// Takes an entry out. `None`, and it is still there, also where there is no memory.
    #[inline]
    pub fn remove(&mut self, fd: usize, cx: &impl NoSuspend) -> Option<Dying<OpenFile>> {
        let removed = self.table.remove(fd)?;
        self.held.remove(removed.get(cx).class, 1);
        Some(removed)
    }

    /// Changes what belongs to an entry: see [`HandleTable::set_attribute`].
    pub fn set_flags(&mut self, fd: usize, flags: FdFlags) -> Option<()> {
        self.table.set_attribute(fd, flags)
    }

    /// Takes out entries of a table that ends: see [`HandleTable::drain`]. They are charged until [`end`](Self::end).
    pub fn drain(
        &mut self,
        fd: usize,
        most: usize,
        choose: impl FnMut(&OpenFile) -> bool,
    ) -> (Option<Dying<OpenFile>>, usize) {
        self.table.drain(fd, most, choose)
    }

    /// All have been drained.
    pub fn end(&mut self) {
        self.held.end();
    }

    /// The same entries, charged to nobody yet; `None` if there is no memory.
    pub fn copy(&self) -> Option<Descriptors> {
        let (table, mut held) = (self.table.share_all()?, self.held.copy(Held::Reserved));
        // A copy ends with the last entry.
        held.remove(Held::Table, held.count(Held::Table).saturating_sub((table.len() / PIECE) as u32));
        Some(Descriptors { table, held })
    }

    /// Charges all entries of a copy to somebody.
    ///
    /// # Errors
    /// ENOMEM: the budget has no room for them.
    pub fn begin_charge(&mut self, payer: &Payer) -> Result<()> {
        self.held.begin(payer)
    }

    /// Has somebody else charged, whatever the bound.
    pub fn charge_to(&mut self, payer: &Payer) {
        self.held.move_to(payer);
    }
}
