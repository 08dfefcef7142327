//! Segments of shared memory: shmget(2), shmop(2), shmctl(2).
//!
//! A segment is what a VMA shows: how many processes have it attached is how many VMAs own it.

use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::PAGE_SIZE;
use refs::{SpinLock, StrongRc, TempRc};

use super::{Object, Objects, Permissions, now};
use crate::credentials::{Capability, Credentials};
use crate::error::{Errno, Result};
use crate::memory::overcommit::Privilege;
use crate::memory::{BackingObject, Pages, SharedMemory};
use crate::sysctl::Tunable;

/// All segments; `/proc/sys/kernel/shmmni`.
pub static SEGMENTS: Objects<Segment> = Objects::new(4096);
/// A segment has at most so many bytes: `/proc/sys/kernel/shmmax`. (Linux's: all that can be counted, but for what would overflow.)
pub static MOST_BYTES: Tunable = Tunable::new(u64::MAX - (1 << 24), 0..=u64::MAX);
/// All segments together have at most so many pages: `/proc/sys/kernel/shmall`.
pub static MOST_PAGES: Tunable = Tunable::new(u64::MAX - (1 << 24), 0..=u64::MAX);

/// How many pages all segments have.
static PAGES: AtomicUsize = AtomicUsize::new(0);

/// Set in the mode of one that is to go with its last VMA (SHM_DEST).
const DESTROYED: u32 = 0o1000;
/// Set in the mode of one that is never swapped out (SHM_LOCKED).
const LOCKED: u32 = 0o2000;

/// A segment. Its owners are the table, until IPC_RMID, and the VMAs that show it. With the last of them its pages go, in pieces; nobody waits on it.
pub struct Segment {
    /// Its id, which `/proc/PID/maps` shows as an inode's number.
    pub id: i32,
    /// The key for which it was made, which is a part of its name there.
    pub key: i32,
    permissions: SpinLock<Permissions>,
    /// How many bytes were asked for.
    pub bytes: usize,
    memory: SharedMemory,
    pages: usize,
    past: SpinLock<Past>,
}

/// Who did what to a segment last; times in seconds since 1970, 0 if it was never done.
#[derive(Clone, Copy, Debug)]
pub struct Past {
    /// When it was attached.
    pub attached: i64,
    /// When it was detached.
    pub detached: i64,
    /// When it was made, or given to another owner.
    pub changed: i64,
    /// The process that made it.
    pub creator: u32,
    /// The process that attached or detached it.
    pub last: u32,
}

/// What is known of a segment: SHM_STAT, and a line of `/proc/sysvipc/shm`.
pub struct Status {
    /// Whose it is.
    pub permissions: Permissions,
    /// Its length.
    pub bytes: usize,
    /// How many VMAs show it.
    pub attached: u32,
    /// Who did what to it.
    pub past: Past,
}

impl Object for Segment {
    fn permissions(&self) -> &SpinLock<Permissions> {
        &self.permissions
    }

    fn table() -> &'static Objects<Self> {
        &SEGMENTS
    }
}

impl BackingObject for Segment {
    fn pages<'a>(&'a self, _cx: &'a Cx) -> Option<&'a dyn Pages> {
        Some(&self.memory)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        PAGES.fetch_sub(self.pages, Ordering::Relaxed);
    }
}

impl Segment {
    fn new(permissions: Permissions, id: i32, bytes: usize, is_accounted: bool, by: u32) -> Result<Self> {
        let pages = bytes.div_ceil(PAGE_SIZE);
        let all = PAGES.load(Ordering::Relaxed).checked_add(pages);
        if all.is_none_or(|all| all as u64 > MOST_PAGES.get()) {
            return Err(Errno::ENOSPC);
        }
        let memory = SharedMemory::new(pages as u64, is_accounted, Privilege::None)?;
        PAGES.fetch_add(pages, Ordering::Relaxed);
        let past = Past { attached: 0, detached: 0, changed: now(), creator: by, last: 0 };
        let key = permissions.key;
        Ok(Segment {
            id,
            key,
            permissions: SpinLock::new(permissions),
            bytes,
            memory,
            pages,
            past: SpinLock::new(past),
        })
    }

    /// It was attached by a process.
    pub fn note_attached(&self, by: u32, cx: &Cx) {
        let mut past = self.past.lock(cx);
        (past.attached, past.last) = (now(), by);
    }

    /// It was detached by a process.
    pub fn note_detached(&self, by: u32, cx: &Cx) {
        let mut past = self.past.lock(cx);
        (past.detached, past.last) = (now(), by);
    }

    /// Has it, or not, be locked in memory, where nothing is swapped out in any case.
    ///
    /// # Errors
    /// EPERM: it is another's, or the caller, whose limit is `limit` (RLIMIT_MEMLOCK), may lock nothing.
    pub fn set_locked(&self, is_locked: bool, limit: u64, who: &Credentials, cx: &Cx) -> Result<()> {
        let mut permissions = self.permissions.lock(cx);
        if !who.has(Capability::IpcLock) {
            let uid = who.users().effective.number();
            let owns = [permissions.uid, permissions.creator_uid].contains(&uid);
            if !owns || is_locked && limit == 0 {
                return Err(Errno::EPERM);
            }
            if is_locked && self.pages as u64 > limit / PAGE_SIZE as u64 {
                return Err(Errno::ENOMEM);
            }
        }
        permissions.mode = permissions.mode & !LOCKED | if is_locked { LOCKED } else { 0 };
        Ok(())
    }

    /// Gives it to another owner: IPC_SET.
    ///
    /// # Errors
    /// EPERM.
    pub fn set(&self, owner: (u32, u32, u32), who: &Credentials, cx: &Cx) -> Result<()> {
        self.give(owner, who, cx)?;
        self.past.lock(cx).changed = now();
        Ok(())
    }

    /// How many of its pages are in memory.
    pub fn resident_pages(&self, cx: &Cx) -> usize {
        self.memory.resident_pages(cx)
    }
}

/// How many VMAs show a segment.
fn attached(segment: &TempRc<'_, Segment>, mode: u32) -> u32 {
    // Without a table, it is one of theirs only.
    segment.owners().saturating_sub(u32::from(mode & DESTROYED == 0))
}

/// What is known of a segment.
pub fn status(segment: &TempRc<'_, Segment>, cx: &Cx) -> Status {
    let permissions = *segment.permissions.lock(cx);
    let attached = attached(segment, permissions.mode);
    Status { permissions, bytes: segment.bytes, attached, past: *segment.past.lock(cx) }
}

/// The segment of a key, or a new one: shmget(2). `by`: the calling process.
///
/// # Errors
/// Those of [`Objects::get`]; EINVAL: a bad size; ENOMEM.
pub fn get(
    (key, flags): (i32, u32),
    bytes: usize,
    is_accounted: bool,
    who: &Credentials,
    by: u32,
    cx: &Cx,
) -> Result<i32> {
    let check = |segment: &Segment| if bytes > segment.bytes { Err(Errno::EINVAL) } else { Ok(()) };
    SEGMENTS.get((key, flags), who, cx, check, |permissions, id| {
        if bytes == 0 || bytes as u64 > MOST_BYTES.get() {
            return Err(Errno::EINVAL);
        }
        if bytes > frame::mm::USER_END {
            return Err(Errno::ENOMEM);
        }
        Segment::new(permissions, id, bytes, is_accounted, by)
    })
}

/// A share in a segment for a VMA that is to show it, and how the caller may: shmat(2). `wanted`: [`READ`](super::READ) and [`WRITE`](super::WRITE), and 1 to execute it.
///
/// # Errors
/// EINVAL: there is none; EACCES.
pub fn share(id: i32, wanted: u32, who: &Credentials, cx: &Cx) -> Result<StrongRc<Segment>> {
    SEGMENTS.share(id, cx, |segment| segment.permissions.lock(cx).check(wanted, who))
}

/// Has a segment go when nobody has it attached any more: IPC_RMID.
///
/// # Errors
/// EINVAL: there is none; EPERM; EIDRM.
pub fn remove(id: i32, who: &Credentials, cx: &Cx) -> Result<()> {
    let segment = SEGMENTS.find(id, cx)?;
    let permissions = *segment.permissions.lock(cx);
    permissions.check_owner(who)?;
    if permissions.mode & DESTROYED != 0 {
        // It is to go already, which asking for again does not change.
        return Ok(());
    }
    let owned = SEGMENTS.take_out(id, cx, |segment| {
        // Its key is free from here on.
        let mut permissions = segment.permissions.lock(cx);
        let stays = attached(segment, permissions.mode) > 0;
        permissions.key = super::PRIVATE;
        permissions.mode |= DESTROYED;
        stays
    })?;
    drop(owned);
    Ok(())
}

/// How many pages all segments have.
pub fn all_pages() -> usize {
    PAGES.load(Ordering::Relaxed)
}
