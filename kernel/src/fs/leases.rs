//! Leases: fcntl(2), F_SETLEASE. Who has one is told by a signal before somebody opens or truncates the file in a way that it rules out, and has some
//! time to give it up, while the other waits; then it is taken away.
//!
//! A file's leases belong to its inode and name their descriptions weakly, so one ends with its description by itself; who waits watches it. An exclusive
//! lease is the only one, and its description the only one that is open on the file.
//!
//! Who opens or truncates the file counts as a reader or writer first and then looks for leases; who takes a lease enters it first and then looks who else has the file open. So of the two, on
//! whatever cores they are, one sees the other.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, btree_map};
use core::mem::take;
use core::ops::Bound;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};

use super::access::Subject;
use super::fasync::{Band, SignalTarget};
use super::{FileKind, Inode, LockKind, OpenFile, VfsCaller};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::pieces::{Pieces, free_in_pieces};
use crate::step::{Caller, Interruption, Patience, Step, Stop, TimeSlice, complete_async};
use crate::sysctl::Tunable;
use crate::time::SECOND;

/// For how many seconds those who have leases may keep them while somebody waits (`/proc/sys/fs/lease-break-time`); 0: for ever.
pub static BREAK_TIME: Tunable = Tunable::new(45, 0..=i32::MAX as u64);
/// Whether there are leases at all (`/proc/sys/fs/leases-enable`).
pub static ENABLED: Tunable = Tunable::new(1, 0..=1);

/// So many are looked at between two looks at the clock, and freed in one go.
const AT_ONCE: usize = 64;

/// The leases on one file. It belongs to the inode.
#[derive(Default)]
pub struct FileLeases {
    has_any: AtomicBool,
    state: SpinLock<Option<Box<Leases>>>,
    changed: WaitList,
}

#[derive(Default)]
struct Leases {
    is_exclusive: bool,
    /// By which descriptor each description has its lease. Some of them may be gone.
    holders: BTreeMap<WeakRc<OpenFile>, i32>,
    breaking: Option<Breaking>,
}

/// Those who have leases are to give them up.
struct Breaking {
    /// What they may keep.
    keeps: Option<LockKind>,
    /// Until when, in nanoseconds since boot; `None`: there is no hurry.
    deadline: Option<u64>,
    /// The last one that was told.
    told: Option<WeakRc<OpenFile>>,
}

/// It takes long, and others have their turn first.
const PAUSE: Stop = Stop::Pause(Interruption::KillOnly);

impl Leases {
    /// Takes away what was not given up in time, and throws out what is gone at the front.
    fn settle(&mut self, time_slice: &mut TimeSlice) -> Step<()> {
        if let Some(breaking) = &self.breaking
            && breaking.deadline.is_some_and(|deadline| deadline <= frame::time::now())
        {
            if breaking.keeps.is_none() {
                free_in_pieces(Holders(take(&mut self.holders).into_iter()));
            }
            self.is_exclusive = false;
            self.breaking = None;
        }
        let mut thrown_out = 0;
        while let Some(first) = self.holders.first_entry().filter(|first| first.key().is_gone()) {
            first.remove();
            thrown_out += 1;
            if thrown_out % AT_ONCE == 0 && time_slice.is_over() {
                return Err(PAUSE);
            }
        }
        if self.holders.is_empty() {
            *self = Leases::default();
        }
        Ok(())
    }

    /// What a description may do with the file by its lease, now or once it has given up what it is to give up.
    fn kind_of(&self, file: &WeakRc<OpenFile>) -> Option<LockKind> {
        let own = if self.is_exclusive { LockKind::Exclusive } else { LockKind::Shared };
        self.holders.get(file)?;
        self.breaking.as_ref().map_or(Some(own), |breaking| breaking.keeps)
    }

    /// Somebody is about to do what only `kind` allows: whether a lease rules that out, which is to be given up from now on.
    fn begin_break(&mut self, kind: LockKind) -> bool {
        if self.holders.is_empty() || (kind == LockKind::Shared && !self.is_exclusive) {
            return false;
        }
        let keeps = if kind == LockKind::Shared { Some(LockKind::Shared) } else { None };
        let is_asked =
            self.breaking.as_ref().is_some_and(|breaking| breaking.keeps.is_none() || breaking.keeps == keeps);
        if !is_asked {
            let time = BREAK_TIME.get();
            let deadline = (time > 0).then(|| frame::time::now().saturating_add(time.saturating_mul(SECOND)));
            self.breaking = Some(Breaking { keeps, deadline, told: None });
        }
        true
    }

    /// The next one that was not told yet that it is to give its lease up.
    fn next_to_tell(&mut self) -> Option<(WeakRc<OpenFile>, i32)> {
        let breaking = self.breaking.as_mut()?;
        let from = breaking.told.map_or(Bound::Unbounded, Bound::Excluded);
        let (file, fd) = self.holders.range((from, Bound::Unbounded)).next()?;
        breaking.told = Some(*file);
        Some((*file, *fd))
    }
}

impl FileLeases {
    /// Whether there may be any.
    #[inline(always)]
    pub fn has_any(&self) -> bool {
        self.has_any.load(Ordering::SeqCst)
    }

    /// Asks those who have leases that rule out what `kind` allows to give them up. `None` if there are none; else until when they may keep them (`None`:
    /// for ever), and the waker is woken when it makes sense to look again.
    ///
    /// # Errors
    /// It takes long: [`Stop::Pause`].
    pub fn break_for(&self, kind: LockKind, waker: Option<Waker>, cx: &Cx) -> Step<Option<Option<u64>>> {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        let mut time_slice = TimeSlice::default();
        loop {
            let mut state = self.state.lock(cx);
            let Some(leases) = state.as_mut() else { return Ok(None) };
            leases.settle(&mut time_slice)?;
            if !leases.begin_break(kind) {
                self.forget_if_empty(&mut state);
                return Ok(None);
            }
            let Some((file, fd)) = leases.next_to_tell() else {
                let deadline = leases.breaking.as_ref().and_then(|breaking| breaking.deadline);
                let first = leases.holders.first_key_value().map(|(file, _)| *file);
                drop(state);
                if let (Some(first), Some(waker)) = (first, waker) {
                    first.watch(waker, cx);
                }
                return Ok(Some(deadline));
            };
            drop(state);
            if let Ok(file) = file.upgrade(cx) {
                file.signal_owner(fd, Band::Message, cx);
            }
            if time_slice.is_over() {
                return Err(PAUSE);
            }
        }
    }

    fn forget_if_empty(&self, state: &mut Option<Box<Leases>>) {
        if state.as_ref().is_none_or(|leases| leases.holders.is_empty()) {
            *state = None;
            self.has_any.store(false, Ordering::Relaxed);
        }
    }

    /// The description's lease (F_GETLEASE).
    ///
    /// # Errors
    /// It takes long: [`Stop::Pause`].
    pub fn of(&self, file: WeakRc<OpenFile>, cx: &Cx) -> Step<Option<LockKind>> {
        let mut state = self.state.lock(cx);
        let Some(leases) = state.as_mut() else { return Ok(None) };
        leases.settle(&mut TimeSlice::default())?;
        Ok(leases.kind_of(&file))
    }

    /// Gives the description a lease, or changes the one that it has; which it had.
    fn set(&self, file: WeakRc<OpenFile>, fd: i32, kind: LockKind, cx: &Cx) -> Step<Option<LockKind>> {
        let mut time_slice = TimeSlice::default();
        let mut state = self.state.lock(cx);
        let leases = state.get_or_insert_default();
        leases.settle(&mut time_slice)?;
        let had = leases.holders.contains_key(&file).then_some(match leases.is_exclusive {
            true => LockKind::Exclusive,
            false => LockKind::Shared,
        });
        let has_one = had.is_some();
        let is_refused = leases.breaking.as_ref().is_some_and(|breaking| breaking.keeps.is_none() || !has_one)
            || (leases.is_exclusive && !has_one);
        if is_refused || (!has_one && ENABLED.get() == 0) {
            self.forget_if_empty(&mut state);
            return Err(if is_refused { Errno::EAGAIN } else { Errno::EINVAL }.into());
        }
        let fd = leases.holders.get(&file).copied().unwrap_or(fd);
        if kind == LockKind::Exclusive {
            // Nobody else has the file open, so the others are gone.
            free_in_pieces(Holders(take(&mut leases.holders).into_iter()));
        }
        leases.holders.insert(file, fd);
        leases.is_exclusive = kind == LockKind::Exclusive;
        if kind == LockKind::Shared {
            // That is all that it could have been asked for.
            leases.breaking = None;
        }
        self.has_any.store(true, Ordering::SeqCst);
        drop(state);
        self.changed.wake_all();
        Ok(had)
    }

    /// The description's lease is again what it had before.
    fn set_back(&self, file: WeakRc<OpenFile>, had: Option<LockKind>, cx: &Cx) -> Step<()> {
        let Some(kind) = had else {
            // It may have been taken away already.
            return match self.remove(file, cx) {
                Err(Stop::Error(_)) => Ok(()),
                removed => removed,
            };
        };
        if let Some(leases) = self.state.lock(cx).as_mut().filter(|leases| leases.holders.contains_key(&file)) {
            leases.is_exclusive = kind == LockKind::Exclusive;
        }
        self.changed.wake_all();
        Ok(())
    }

    /// Takes the description's lease away.
    fn remove(&self, file: WeakRc<OpenFile>, cx: &Cx) -> Step<()> {
        let mut state = self.state.lock(cx);
        let removed = state.as_mut().and_then(|leases| leases.holders.remove(&file));
        if let Some(leases) = state.as_mut() {
            // What is left to throw out may wait.
            let _ = leases.settle(&mut TimeSlice::default());
        }
        self.forget_if_empty(&mut state);
        drop(state);
        self.changed.wake_all();
        if removed.is_some() { Ok(()) } else { Err(Errno::EAGAIN.into()) }
    }
}

/// Sets the description's lease, changes it, or with `None` takes it away (F_SETLEASE). `owner` is whom its signals go to if nobody has said.
///
/// # Errors
/// EACCES: the file is another user's. EINVAL: it is no regular file, or there are no leases. EAGAIN: others have it open in a way that the lease
/// rules out, or it has none. A pause.
pub fn set(
    open: &TempRc<'_, OpenFile>,
    fd: i32,
    kind: Option<LockKind>,
    owner: impl FnOnce() -> Result<StrongRc<dyn SignalTarget>>,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<()> {
    let inode = open.inode(cx)?;
    let Some(kind) = kind else {
        inode.leases.remove(open.downgrade(), cx)?;
        open.set_owner(None, cx);
        return Ok(open.set_io_signal(0)?);
    };
    let subject = Subject::of(me, cx)?;
    if inode.access_bits(cx).1 != subject.uid.number() && !subject.has(Capability::Lease) {
        return Err(Errno::EACCES.into());
    }
    if inode.kind != FileKind::Regular {
        return Err(Errno::EINVAL.into());
    }
    let is_ruled_out = || match kind {
        LockKind::Shared => inode.has_writers(),
        LockKind::Exclusive => !inode.is_open_once(),
    };
    if is_ruled_out() {
        return Err(Errno::EAGAIN.into());
    }
    crate::memory::admit()?;
    let had = inode.leases.set(open.downgrade(), fd, kind, cx)?;
    if is_ruled_out() {
        inode.leases.set_back(open.downgrade(), had, cx)?;
        return Err(Errno::EAGAIN.into());
    }
    if had.is_none() && open.owner(cx).is_none() {
        open.set_owner(Some(owner()?), cx);
    }
    Ok(())
}

/// Waits until no lease rules out any more what `kind` allows.
///
/// # Errors
/// A signal.
pub fn wait_until_broken_async(cx: &mut Cx, me: &mut impl Caller, inode: WeakRc<Inode>, kind: LockKind) -> Result<()> {
    loop {
        // A file that is gone has no leases.
        let look = |waker, cx: &Cx| inode.upgrade(cx).map_or(Ok(None), |inode| inode.leases.break_for(kind, waker, cx));
        let Some(deadline) = complete_async(cx, me, Patience::Forever, |cx, _, _| look(None, cx))? else {
            return Ok(());
        };
        let patience = deadline.map_or(Patience::Forever, Patience::Until);
        let outcome = complete_async(cx, me, patience, |cx, _, waker| match look(waker, cx)? {
            None => Ok(()),
            Some(_) => Err(Stop::Block),
        });
        if outcome != Err(Errno::ETIMEDOUT) {
            return outcome;
        }
    }
}

/// Leases that were taken away.
struct Holders(btree_map::IntoIter<WeakRc<OpenFile>, i32>);

impl Pieces for Holders {
    fn free_piece(&mut self) -> bool {
        (0..AT_ONCE).all(|_| self.0.next().is_some())
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        if self.holders.len() > AT_ONCE {
            free_in_pieces(Holders(take(&mut self.holders).into_iter()));
        }
    }
}
