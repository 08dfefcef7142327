//! [`Descriptors`]: the entries of a table of descriptors, each of which is charged.
//!
//! Whoever looks has a [`HandleTable`]; what changes it goes through here, so that no entry comes or goes uncounted. An entry is charged for the kind of its file, also where others have the
//! file as well: whoever closes it last ends it.
//!
//! An entry is *unseen* ([`HandleEnd`]) as long as nobody who does not use this table can tell when its file comes to its end: it was made for this table, is of a kind of which that can
//! be said ([`FileEnd`]), and was never given to anybody else ([`Descriptors::export`], [`Descriptors::copy`]); of a pair that holds for both ends. Whatever does not say so is
//! seen. Once the table ends its unseen entries are left as they are ([`Descriptors::take_unseen`]), and come to their end some time later: [`super::table_remains`].

use core::ops::Deref;

use frame::Cx;
use refs::{Dying, HandleEnd, HandleTable, NoSuspend, StrongRc, TempRc};

use super::file_end::OtherEnd;
use super::{FdFlags, OpenFile, UnseenContents};
use crate::error::{Errno, Result};
use crate::reclaim::{Held, OfDescriptors, Payer};

/// So many numbers of a table are charged for together.
const PIECE: usize = 64;

/// The entries of a table of descriptors.
#[derive(Default)]
pub struct Descriptors {
    table: HandleTable<OpenFile, FdFlags>,
    held: OfDescriptors,
    unseen: UnseenEntries,
    /// What is in the unseen files, if there are any that are counted.
    contents: Option<StrongRc<UnseenContents>>,
}

/// The unseen entries of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnseenEntries {
    /// How many.
    pub count: usize,
    /// How many files they are of.
    pub files: usize,
    /// How many bytes of the kernel's come back with these files at least, and once the table has ended also with what is in them.
    pub bytes: usize,
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
        let (class, bytes) = file.with(|file| (file.class, file.end.bytes()));
        self.held.exchange(Held::Reserved, class);
        let end = if bytes == 0 { HandleEnd::Seen } else { HandleEnd::Unseen };
        if end == HandleEnd::Unseen {
            self.unseen.count += 1;
            self.unseen.files += 1;
            self.unseen.bytes += bytes;
        }
        self.table.fill(fd, file, flags, end);
    }

    /// Enters both ends of a new pair under numbers that were reserved for them.
    ///
    /// # Panics
    /// As [`fill`](Self::fill).
    pub fn fill_pair(&mut self, fds: [usize; 2], ends: [StrongRc<OpenFile>; 2], flags: FdFlags) {
        for (fd, end) in fds.into_iter().zip(ends) {
            self.fill_counted(fd, end, flags);
        }
    }

    /// As [`fill`](Self::fill), of a file that counts what is in it with the rest if it is unseen.
    ///
    /// # Panics
    /// As `fill`.
    pub fn fill_counted(&mut self, fd: usize, file: StrongRc<OpenFile>, flags: FdFlags) {
        file.with(|file| {
            if file.end.bytes() > 0 {
                let contents =
                    self.contents.get_or_insert_with(|| StrongRc::new(UnseenContents::new(self.held.payer())));
                if !file.file.join_contents(contents) {
                    file.end.export();
                }
            }
        });
        self.fill(fd, file, flags);
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
        let (share, end) = self.table.share_with_end(fd).ok_or(Errno::EBADF)?;
        let class = class(&share);
        self.held.add(class, 1)?;
        let entered =
            self.table.insert(share, flags, end, from, limit).map_err(|_refused: Dying<OpenFile>| Errno::EMFILE);
        let entered = entered.and_then(|fd| {
            if self.has_grown() && self.pay_for_table().is_err() {
                // The file has another entry.
                drop(self.table.remove(fd));
                return Err(Errno::ENOMEM);
            }
            self.unseen.count += usize::from(end == HandleEnd::Unseen);
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
        let (share, end) = self.table.share_with_end(fd).ok_or(Errno::EBADF)?;
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
        self.forget_unseen(to, cx);
        self.unseen.count += usize::from(end == HandleEnd::Unseen);
        let replaced = self.table.replace(to, share, flags, end);
        if let Some(replaced) = &replaced {
            self.held.remove(replaced.get(cx).class, 1);
        }
        Ok(replaced)
    }

    /// Takes an entry out. `None`, and it is still there, also where there is no memory.
    #[inline]
    pub fn remove(&mut self, fd: usize, cx: &impl NoSuspend) -> Option<Dying<OpenFile>> {
        let (removed, end) = self.table.remove_with_end(fd)?;
        if end == HandleEnd::Unseen {
            self.forget(&removed.get(cx));
        }
        self.held.remove(removed.get(cx).class, 1);
        Some(removed)
    }

    /// An entry is about to go.
    fn forget_unseen(&mut self, fd: usize, cx: &impl NoSuspend) {
        if self.table.is_unseen(fd)
            && let Some(file) = self.table.get(fd, cx)
        {
            self.forget(&file);
        }
    }

    /// An unseen entry of a file goes, and counts among the file's owners.
    #[inline]
    fn forget(&mut self, file: &TempRc<'_, OpenFile>) {
        self.unseen.count -= 1;
        if file.owners() == 1 {
            self.unseen.files -= 1;
            self.unseen.bytes -= file.end.bytes();
        }
    }

    /// Somebody who does not use this table is to have the file of `fd`, or to hear of it: its end is seen from now on, and that of what it is connected with. Called before.
    pub fn export(&mut self, fd: usize, cx: &Cx) {
        let Some(file) = self.table.get(fd, cx) else { return };
        if file.end.bytes() == 0 {
            return;
        }
        if self.table.is_unseen(fd) {
            match self.other_end(fd, &file, cx) {
                Some(other) if file.owners() == 1 => {
                    self.see(fd, cx);
                    other.into_iter().for_each(|other| self.see(other, cx));
                }
                // Other entries have it too, or its other end: which ones nobody knows.
                _ => self.see_all(),
            }
        }
        file.end.export();
    }

    /// The entry of the other end of the pair that the file of `fd` is of, if it is of one; `None` if it is not where it was made, or not only there.
    fn other_end(&self, fd: usize, file: &OpenFile, cx: &Cx) -> Option<Option<usize>> {
        let other = match file.end.other() {
            OtherEnd::None => return Some(None),
            OtherEnd::Next => fd + 1,
            OtherEnd::Before => fd.checked_sub(1)?,
            OtherEnd::Elsewhere => return None,
        };
        let found = self.table.get(other, cx)?;
        let is_it = self.table.is_unseen(other) && found.owners() == 1 && file.file.is_other_end_of(&*found.file, cx);
        is_it.then_some(Some(other))
    }

    /// The file of `fd`, which has no other entries, is to be closed at once when the table ends.
    fn see(&mut self, fd: usize, cx: &Cx) {
        self.forget_unseen(fd, cx);
        if let Some(file) = self.table.get(fd, cx) {
            file.file.leave_contents();
        }
        self.table.see(fd);
    }

    /// The end of all that there is may be seen.
    pub fn see_all(&mut self) {
        self.table.see_all();
        self.forget_all();
    }

    /// Nothing is unseen any more.
    #[inline(always)]
    fn forget_all(&mut self) {
        self.unseen = UnseenEntries::default();
        self.contents = None;
    }

    /// Takes out the unseen entries of a table that ends; all others have been [drained](Self::drain).
    pub fn take_unseen(&mut self) -> Option<(HandleTable<OpenFile, FdFlags>, UnseenEntries)> {
        if self.unseen.count == 0 {
            return None;
        }
        let mut unseen = core::mem::take(&mut self.unseen);
        unseen.bytes += self.contents.take().map_or(0, |contents| contents.with(UnseenContents::end));
        Some((core::mem::take(&mut self.table), unseen))
    }

    /// The files of its unseen entries.
    pub fn unseen(&self) -> UnseenEntries {
        self.unseen
    }

    /// Changes what belongs to an entry: see [`HandleTable::set_attribute`].
    pub fn set_flags(&mut self, fd: usize, flags: FdFlags) -> Option<()> {
        self.table.set_attribute(fd, flags)
    }

    /// Takes out entries that are not unseen of a table that ends: see [`HandleTable::drain`]. They are charged until [`end`](Self::end).
    pub fn drain<const N: usize>(
        &mut self,
        fd: usize,
        most: usize,
        choose: impl FnMut(&OpenFile) -> bool,
    ) -> ([Option<Dying<OpenFile>>; N], usize) {
        self.table.drain(fd, most, choose)
    }

    /// All have been drained, or taken out.
    pub fn end(&mut self) {
        self.held.end_for_next();
    }

    /// The same entries, charged to nobody yet; `None` if there is no memory. Each is seen from now on, here and there.
    #[inline(always)]
    pub fn copy(&mut self) -> Option<Descriptors> {
        self.forget_all();
        let (table, mut held) = (self.table.share_all()?, self.held.copy(Held::Reserved));
        // A copy ends with the last entry.
        held.remove(Held::Table, held.count(Held::Table).saturating_sub((table.len() / PIECE) as u32));
        Some(Descriptors { table, held, unseen: UnseenEntries::default(), contents: None })
    }

    /// Charges all entries of a copy to somebody.
    ///
    /// # Errors
    /// ENOMEM: the budget has no room for them.
    pub fn begin_charge(&mut self, payer: &Payer) -> Result<()> {
        self.held.begin_as_before(payer)
    }

    /// Has somebody else charged, whatever the bound.
    pub fn charge_to(&mut self, payer: &Payer) {
        if let Some(contents) = &self.contents {
            contents.with(|contents| contents.charge_to(payer));
        }
        self.held.move_to(payer);
    }
}
