//! [`FileTable`]: the descriptors of a process.

use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bitflags::bitflags;
use frame::Cx;
use refs::{Dying, SpinLock, StrongRc, TempRc, WeakRc};

use super::flush;
use super::locks;
use super::nameless_remains;
use super::notify::{self, dnotify};
use super::table_remains::TableRemains;
use super::{Descriptors, LockOwner, OpenFile, OpenFlags, VfsCaller};
use super::{fasync, in_flight};
use crate::error::{Errno, Result};
use crate::reclaim::Payer;
use crate::sched;
use crate::step::{Interruption, TimeSlice};

/// The most descriptors that a process can have, whatever RLIMIT_NOFILE says.
static NR_OPEN: AtomicUsize = AtomicUsize::new(1 << 20);

/// What `/proc/sys/fs/nr_open` may be set to.
pub const NR_OPEN_RANGE: RangeInclusive<usize> = 64..=1 << 20;

/// So many descriptors are closed before the time is looked at.
const CLOSED_AT_A_TIME: usize = 8;

/// Up to so many entries that nobody sees the end of go with the table: that takes about as long as to leave them.
const ENDED_AT_ONCE: usize = 8;

/// How many numbers are looked at before others may have their turn.
const SCANNED_AT_ONCE: usize = 4096;

/// The most descriptors that a process can have, whatever RLIMIT_NOFILE says (`/proc/sys/fs/nr_open`).
#[inline]
pub fn most_descriptors() -> usize {
    NR_OPEN.load(Ordering::Relaxed)
}

/// Changes the most descriptors that a process can have; those that there are stay.
///
/// # Errors
/// EINVAL outside [`NR_OPEN_RANGE`].
pub fn set_most_descriptors(count: usize) -> Result<()> {
    if !NR_OPEN_RANGE.contains(&count) {
        return Err(Errno::EINVAL);
    }
    NR_OPEN.store(count, Ordering::Relaxed);
    Ok(())
}

/// How long descriptions have been destroyed in one go.
struct Pace {
    ended: usize,
    why: Leaving,
    time_slice: TimeSlice,
}

/// Why descriptors are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// A program has closed them, or ends.
    InOrder,
    /// All of the group is killed to which who has them belongs.
    InKill,
}

impl Pace {
    fn new(why: Leaving) -> Self {
        Pace { ended: 0, why, time_slice: TimeSlice::of_end() }
    }

    /// Others have their turn if it is time.
    fn pause_async(&mut self, cx: &mut Cx) {
        if self.time_slice.is_over() {
            sched::pause_in_end_async(cx);
            self.time_slice = TimeSlice::of_end();
        }
    }

    /// Ends what a descriptor was for: in parts where it is much.
    #[inline(always)]
    fn end_async(&mut self, cx: &mut Cx, closed: Dying<OpenFile>) {
        // It ends here, and a directory owns what has a name as well.
        if self.why == Leaving::InKill && closed.owners() == 1 {
            closed.with(|open| {
                if open.location.inode.owners() <= nameless_remains::OWNERS {
                    open.end.leave_nameless();
                }
            });
        }
        // Of what has no parts nothing is found by who looks for what nobody can reach.
        let is_in_flight = closed.get(cx).in_flight() > 0;
        if closed.get(cx).has_parts {
            let name = closed.get(cx).downgrade();
            closed.destroy_async(cx, |open, cx| {
                fasync::end(open, name, cx);
                open.tell_end(cx);
                if self.why == Leaving::InKill {
                    open.file.note_kill(cx);
                }
                while open.file.release(cx) {
                    self.pause_async(cx);
                }
            });
        } else if notify::is_anything_watched() {
            closed.destroy_async(cx, |open, cx| open.tell_end(cx));
        } else {
            closed.destroy(cx);
        }
        if is_in_flight {
            // It may have been the last owner that is no message.
            in_flight::report_unreachable();
        }
        self.ended += 1;
        if self.ended.is_multiple_of(CLOSED_AT_A_TIME) {
            self.pause_async(cx);
        }
    }
}

/// Why a descriptor could not be taken out of a table.
#[cold]
fn not_removed(handles: &Descriptors, fd: usize) -> Errno {
    // It shares its entries with the table that it is a copy of, and there is no memory for entries of its own.
    if handles.attribute(fd).is_some() { Errno::ENOMEM } else { Errno::EBADF }
}

bitflags! {
    /// What belongs to a descriptor rather than to its description.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FdFlags: u8 {
        /// FD_CLOEXEC.
        const CLOSE_ON_EXEC = 1;
    }
}

/// The descriptors of a process (shared by the threads and by CLONE_FILES).
#[derive(Default)]
pub struct FileTable {
    /// The descriptions by descriptor.
    pub handles: SpinLock<Descriptors>,
    /// Whether the process ever set a record lock (F_SETLK): only then closing a descriptor may end any.
    pub has_record_locks: AtomicBool,
    /// Whose record locks the process' threads wait for (F_SETLKW), by which a deadlock is found.
    pub waits_for: SpinLock<Vec<LockOwner>>,
}

impl FileTable {
    /// The description of a descriptor, to do something with it.
    ///
    /// # Errors
    /// EBADF: there is none, or it is only a place in the tree (O_PATH).
    #[inline(always)]
    pub fn get<'cx>(&self, fd: i32, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
        let open = self.get_even_path(fd, cx)?;
        if open.flags().contains(OpenFlags::PATH) { Err(Errno::EBADF) } else { Ok(open) }
    }

    /// The description of a descriptor, also of one that is only a place in the tree (O_PATH): for the few calls that open(2) names.
    ///
    /// # Errors
    /// EBADF.
    #[inline(always)]
    pub fn get_even_path<'cx>(&self, fd: i32, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
        usize::try_from(fd).ok().and_then(|fd| self.handles.lock(cx).get(fd, cx)).ok_or(Errno::EBADF)
    }

    /// The name of the description of a descriptor, for calls that wait.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    #[inline(always)]
    pub fn weak(&self, fd: i32, cx: &Cx) -> Result<WeakRc<OpenFile>> {
        Ok(self.get(fd, cx)?.downgrade())
    }

    /// Takes a descriptor out. The description is to be destroyed if this was the last: see [`end_async`](Self::end_async).
    ///
    /// # Errors
    /// EBADF; ENOMEM.
    pub fn close(this: &TempRc<'_, Self>, fd: i32, cx: &Cx) -> Result<Dying<OpenFile>> {
        let fd = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        let mut handles = this.handles.lock(cx);
        let Some(closed) = handles.remove(fd, cx) else { return Err(not_removed(&handles, fd)) };
        drop(handles);
        Self::closing(this, &closed.get(cx), cx);
        Ok(closed)
    }

    /// Ends what a descriptor was for that was taken out of its table, in parts where it is much. Only then is it known to have been the last: while a descriptor is in
    /// the table, another thread may make one more of it.
    #[inline]
    pub fn end_async(cx: &mut Cx, closed: Dying<OpenFile>) {
        if notify::is_anything_watched() {
            notify::end_told_async(cx, closed, |cx, closed| Pace::new(Leaving::InOrder).end_async(cx, closed));
        } else if closed.get(cx).has_parts {
            Pace::new(Leaving::InOrder).end_async(cx, closed);
        } else {
            closed.destroy_unseen(cx, OpenFile::end_is_unseen);
        }
    }

    /// The same descriptors, for a process that does not share them; its record locks are its own, and so there are none. Entries are copied when
    /// one of the two changes them, so this takes a few instructions for each 64 descriptors. They are charged to `payer`.
    ///
    /// # Errors
    /// EMFILE: a number is beyond what [`most_descriptors`] says by now. ENOMEM.
    pub fn duplicate(&self, payer: &Payer, cx: &Cx) -> Result<StrongRc<FileTable>> {
        let mut handles = self.handles.lock(cx);
        let most = most_descriptors();
        if handles.len() > most && handles.next(most).is_some() {
            return Err(Errno::EMFILE);
        }
        let mut copy = handles.copy().ok_or(Errno::ENOMEM)?;
        copy.begin_charge(payer)?;
        Ok(StrongRc::new(FileTable {
            handles: SpinLock::new(copy),
            has_record_locks: AtomicBool::new(false),
            waits_for: SpinLock::new(Vec::new()),
        }))
    }

    /// As [`get`](Self::get), for what somebody else may hear of: see [`Descriptors::export`].
    ///
    /// # Errors
    /// EBADF.
    #[inline]
    pub fn get_exported<'cx>(&self, fd: i32, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
        let open = self.get_exported_even_path(fd, cx)?;
        if open.flags().contains(OpenFlags::PATH) { Err(Errno::EBADF) } else { Ok(open) }
    }

    /// As [`get_even_path`](Self::get_even_path), for what somebody else is to have or may hear of. It is the one that is exported, whoever changes the table meanwhile.
    ///
    /// # Errors
    /// EBADF.
    #[inline]
    pub fn get_exported_even_path<'cx>(&self, fd: i32, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
        let fd = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        let mut handles = self.handles.lock(cx);
        let open = handles.get(fd, cx).ok_or(Errno::EBADF)?;
        if open.is_unseen_anywhere() {
            handles.export(fd, cx);
        }
        Ok(open)
    }

    /// The names of an epoll set and of a file that it is to watch. The end of both is seen from now on: what the set holds is to come back as soon as it is closed, and what it watches is not to be
    /// ready any more once that is closed.
    ///
    /// # Errors
    /// EBADF.
    pub fn watch(&self, set: i32, fd: i32, cx: &Cx) -> Result<(WeakRc<OpenFile>, WeakRc<OpenFile>)> {
        let number = |fd: i32| usize::try_from(fd).map_err(|_| Errno::EBADF);
        let (at, watched) = (number(set)?, number(fd)?);
        let mut handles = self.handles.lock(cx);
        let open = handles.get(at, cx).ok_or(Errno::EBADF)?;
        let file = handles.get(watched, cx).ok_or(Errno::EBADF)?;
        if open.flags().contains(OpenFlags::PATH) || file.flags().contains(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        for (fd, open) in [(at, &open), (watched, &file)] {
            if open.is_unseen_anywhere() {
                handles.export(fd, cx);
            }
        }
        Ok((open.downgrade(), file.downgrade()))
    }

    /// Gives up a share in a table. If it was the last, all its descriptors are closed that somebody else may see closed, one after the other, and others have their turn in
    /// between. The rest, if it is much, is [left](super::table_remains).
    #[inline(always)]
    pub fn leave_async(cx: &mut Cx, share: StrongRc<FileTable>, why: impl FnOnce(&Cx) -> Leaving) {
        let name = share.downgrade();
        share.destroy_unseen_async(cx, |table, cx| {
            let why = why(cx);
            let mut pace = Pace::new(why);
            let mut at = 0;
            // Nobody sets any more.
            let has_record_locks = table.has_record_locks.load(Ordering::Relaxed);
            loop {
                let mut handles = table.handles.lock(cx);
                if (1..=ENDED_AT_ONCE).contains(&handles.unseen().count) {
                    handles.see_all();
                }
                if at >= handles.len() {
                    let rest = handles.take_unseen();
                    // Not where nobody can see it, some time later: what is charged no longer may be somebody else's.
                    handles.end();
                    drop(handles);
                    if let Some((rest, unseen)) = rest {
                        TableRemains::leave(rest, unseen);
                    }
                    if why == Leaving::InKill {
                        nameless_remains::announce();
                        locks::announce_left();
                    }
                    break;
                }
                let (closed, next) =
                    handles.drain::<CLOSED_AT_A_TIME>(at, SCANNED_AT_ONCE, |open| open.in_flight() > 0);
                drop(handles);
                if closed[0].is_none() && next - at >= SCANNED_AT_ONCE {
                    pace.pause_async(cx);
                }
                at = next;
                for closed in closed.into_iter().flatten() {
                    dnotify::unwatch(&closed.get(cx), table);
                    if has_record_locks {
                        closed.with(|open| open.location.inode.with(|inode| inode.locks.process_ends(&name)));
                    }
                    pace.end_async(cx, closed);
                }
            }
        });
    }

    /// Closes the caller's descriptors of a range whose flags include `flags`. Others have their turn in between.
    ///
    /// # Errors
    /// A signal that ends the process; ENOMEM.
    pub fn close_range_async(
        cx: &mut Cx,
        me: &mut impl VfsCaller,
        range: RangeInclusive<u32>,
        flags: FdFlags,
    ) -> Result<()> {
        let mut at = *range.start() as usize;
        let mut pace = Pace::new(Leaving::InOrder);
        let mut time_slice = TimeSlice::default();
        loop {
            let files = me.files(cx)?;
            let mut handles = files.handles.lock(cx);
            let end = at.saturating_add(SCANNED_AT_ONCE).min(*range.end() as usize + 1).min(handles.len());
            if at >= end {
                return Ok(());
            }
            let closed = match handles.next_where(at, end, |attribute| attribute.contains(flags)) {
                Some(fd) => {
                    at = fd + 1;
                    Some(handles.remove(fd, cx).ok_or(Errno::ENOMEM)?)
                }
                None => {
                    at = end;
                    None
                }
            };
            drop(handles);
            if let Some(closed) = closed {
                Self::closing(&files, &closed.get(cx), cx);
                drop(files);
                pace.end_async(cx, closed);
            } else {
                drop(files);
            }
            if time_slice.is_over() {
                me.pause_async(cx, Interruption::KillOnly)?;
                time_slice = TimeSlice::default();
            }
        }
    }

    /// Sets flags of all descriptors of a range.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn set_flags_in(&self, range: RangeInclusive<u32>, flags: FdFlags, cx: &Cx) -> Result<()> {
        let mut at = *range.start() as usize;
        while let Some(fd) = self.next_in(at, &range, cx) {
            let mut handles = self.handles.lock(cx);
            if let Some(attribute) = handles.attribute(fd)
                && !attribute.contains(flags)
            {
                handles.set_flags(fd, attribute | flags).ok_or(Errno::ENOMEM)?;
            }
            at = fd + 1;
        }
        Ok(())
    }

    /// The first descriptor from `at` on, if it is in the range. (There may be too many for a list of them.)
    fn next_in(&self, at: usize, range: &RangeInclusive<u32>, cx: &Cx) -> Option<usize> {
        self.handles.lock(cx).next(at).filter(|&fd| fd <= *range.end() as usize)
    }

    /// A descriptor's own flags.
    ///
    /// # Errors
    /// EBADF.
    pub fn flags(&self, fd: i32, cx: &Cx) -> Result<FdFlags> {
        let handles = self.handles.lock(cx);
        usize::try_from(fd).ok().and_then(|fd| handles.attribute(fd)).ok_or(Errno::EBADF)
    }

    /// Changes a descriptor's own flags.
    ///
    /// # Errors
    /// EBADF; ENOMEM.
    pub fn set_flags(&self, fd: i32, flags: FdFlags, cx: &Cx) -> Result<()> {
        let fd = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        let mut handles = self.handles.lock(cx);
        if handles.attribute(fd).ok_or(Errno::EBADF)? != flags {
            handles.set_flags(fd, flags).ok_or(Errno::ENOMEM)?;
        }
        Ok(())
    }

    /// One more descriptor for the same description: the lowest free one from `from` on, below `limit`.
    ///
    /// # Errors
    /// EBADF; EMFILE. ENOMEM: the budget of the group has no room for it.
    pub fn duplicate_to_lowest(&self, fd: i32, from: usize, limit: usize, flags: FdFlags, cx: &Cx) -> Result<usize> {
        let fd = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        self.handles.lock(cx).duplicate(fd, from, limit, flags)
    }

    /// Makes `to` a descriptor for the same description, in place of what it was; which is to be [ended](Self::end_async).
    ///
    /// # Errors
    /// EBADF; EBUSY where `to` is reserved for another call; ENOMEM.
    pub fn duplicate_to(
        this: &TempRc<'_, Self>,
        fd: i32,
        to: usize,
        flags: FdFlags,
        cx: &Cx,
    ) -> Result<Option<Dying<OpenFile>>> {
        let fd = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        let closed = this.handles.lock(cx).duplicate_to(fd, to, flags, cx)?;
        if let Some(closed) = &closed {
            Self::closing(this, &closed.get(cx), cx);
        }
        Ok(closed)
    }

    /// What closing a descriptor does apart from giving up the description: ends the record locks that the process has on the file, and the notifications that
    /// it asked for by the description.
    #[inline]
    fn closing(this: &TempRc<'_, Self>, closed: &TempRc<'_, OpenFile>, cx: &Cx) {
        dnotify::unwatch(closed, this);
        if flush::is_wanted() {
            closed.file.flush(&this.downgrade(), cx);
        }
        if this.has_record_locks.load(Ordering::Relaxed)
            && let Ok(inode) = closed.inode(cx)
        {
            inode.locks.closed_by(&this.downgrade(), cx);
        }
    }
}
