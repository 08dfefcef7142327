//! F_NOTIFY: a signal when something happens to a directory or to what is in it. See fcntl(2), "File and directory change notification".
//!
//! What is watched stands in one table by directory, so that neither inodes nor descriptions pay for it: while nothing is watched, all that an event costs
//! is a look at a counter. A watch belongs to a description and to a process' descriptors. It goes when that process closes any of its descriptors for that description,
//! when the description goes, or with the event that it was for. Nobody waits for it. Who watches for something else costs an event nothing, and making and
//! ending a watch does not depend on how many others there are.
//!
//! Which directory a file is in is known by its name; of a file with several names by the one in its [`Dentry`](super::Dentry). FIFOs and devices that are read and
//! written tell nobody.
//!
//! Locks: the table, alone. Signals are sent with nothing locked.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{SpinLock, TempRc, WeakRc};

use super::fasync::Band;
use super::{FileKind, FileTable, Inode, OpenFile};
use crate::error::{Errno, Result};

bitflags! {
    /// What may happen, in the bits of F_NOTIFY.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Events: u32 {
        /// A file in it was read, or it was listed.
        const ACCESS = abi::DN_ACCESS;
        /// A file in it was written or truncated.
        const MODIFY = abi::DN_MODIFY;
        /// It has a new name.
        const CREATE = abi::DN_CREATE;
        /// It has lost a name.
        const DELETE = abi::DN_DELETE;
        /// A name in it was changed.
        const RENAME = abi::DN_RENAME;
        /// Mode, owner, times or extended attributes of a file in it, or its own, were changed.
        const ATTRIB = abi::DN_ATTRIB;
        /// Not only the first event is told.
        const MULTI_SHOT = abi::DN_MULTISHOT;
        const _ = !0;
    }
}

struct Watch {
    file: WeakRc<OpenFile>,
    files: WeakRc<FileTable>,
    /// The descriptor by which it was asked for, for `si_fd`.
    fd: i32,
    events: Events,
}

impl Watch {
    fn is_dead(&self) -> bool {
        self.file.is_gone() || self.files.is_gone()
    }
}

/// Who watches one directory.
#[derive(Default)]
struct Watchers {
    /// By the number of the description ([`OpenFile::watch_number`]): for each process that watches by it.
    by_description: BTreeMap<u64, Vec<Watch>>,
    /// All that any of them has asked for.
    interest: Events,
}

impl Watchers {
    /// Takes out watches of a description.
    fn retain(&mut self, description: u64, keep: impl FnMut(&Watch) -> bool) {
        if let Some(watches) = self.by_description.get_mut(&description) {
            watches.retain(keep);
            if watches.is_empty() {
                self.by_description.remove(&description);
            }
        }
    }
}

/// By directory. Each watcher has its directory open, so it lives.
static WATCHES: SpinLock<BTreeMap<WeakRc<Inode>, Watchers>> = SpinLock::new(BTreeMap::new());
/// How many directories are in it.
static WATCHED: AtomicUsize = AtomicUsize::new(0);
/// The last number that a description got.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Changes the watches of a directory.
fn change<R>(directory: WeakRc<Inode>, change: impl FnOnce(&mut Watchers) -> R + Send) -> R {
    WATCHES.with(|watches| {
        let of_directory = watches.entry(directory).or_default();
        let result = change(of_directory);
        if of_directory.by_description.is_empty() {
            watches.remove(&directory);
        }
        WATCHED.store(watches.len(), Ordering::Relaxed);
        result
    })
}

/// Has `open`'s owner told of `events`, beside what it is told already, until `files` closes a descriptor of it. `fd` is told as the descriptor.
///
/// # Errors
/// ENOTDIR; ENOMEM.
pub fn watch(open: &TempRc<'_, OpenFile>, files: WeakRc<FileTable>, fd: i32, events: Events, cx: &Cx) -> Result<()> {
    let directory = open.inode(cx)?;
    if directory.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR);
    }
    crate::memory::admit()?;
    let fresh = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    let set = open.watch_number.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
    let description = set.map_or_else(|number| number, |_| fresh);
    let file = open.downgrade();
    change(directory.downgrade(), |watchers| {
        watchers.interest |= events;
        let watches = watchers.by_description.entry(description).or_default();
        watches.retain(|watch| !watch.is_dead());
        match watches.iter_mut().find(|watch| watch.files == files) {
            Some(watch) => (watch.fd, watch.events) = (fd, watch.events | events),
            None => watches.push(Watch { file, files, fd, events }),
        }
    });
    Ok(())
}

/// Ends what a process asked for by `open`.
#[inline(always)]
pub fn unwatch(open: &OpenFile, files: WeakRc<FileTable>, cx: &Cx) {
    let description = open.watch_number.load(Ordering::Relaxed);
    if description != 0 {
        end_watch(open, description, files, cx);
    }
}

#[cold]
#[inline(never)]
fn end_watch(open: &OpenFile, description: u64, files: WeakRc<FileTable>, cx: &Cx) {
    let directory = open.location.inode.get(cx).downgrade();
    change(directory, |watchers| watchers.retain(description, |watch| watch.files != files));
}

/// The description of the directory with this number has died.
#[cold]
pub(super) fn forget(directory: WeakRc<Inode>, description: u64) {
    change(directory, |watchers| watchers.by_description.remove(&description));
}

/// Something happened to the directory itself or to a name in it.
#[inline(always)]
pub fn directory_changed(directory: &TempRc<'_, Inode>, event: Events, cx: &Cx) {
    if WATCHED.load(Ordering::Relaxed) > 0 {
        tell(directory.downgrade(), event, cx);
    }
}

/// Something happened to a file: told to who watches the directory that it is in, and to who watches it, if it is one.
#[inline(always)]
pub fn file_changed(file: &TempRc<'_, Inode>, event: Events, cx: &Cx) {
    if WATCHED.load(Ordering::Relaxed) > 0 {
        tell_parent(file, event, cx);
    }
}

/// A name was moved; where it stays in its directory that is told too.
pub fn renamed(from: &TempRc<'_, Inode>, to: &TempRc<'_, Inode>, cx: &Cx) {
    directory_changed(from, Events::DELETE, cx);
    directory_changed(to, Events::CREATE, cx);
    if from.downgrade() == to.downgrade() {
        directory_changed(from, Events::RENAME, cx);
    }
}

#[cold]
fn tell_parent(file: &TempRc<'_, Inode>, event: Events, cx: &Cx) {
    if let Some(parent) = file.parent(cx) {
        tell(parent.downgrade(), event, cx);
    }
    if file.kind == FileKind::Directory {
        tell(file.downgrade(), event, cx);
    }
}

/// Whom an event is told: an open file, and the descriptor that is named.
type Told = (WeakRc<OpenFile>, i32);

/// So many descriptions are looked at with the table locked.
const AT_ONCE: usize = 64;

#[cold]
fn tell(directory: WeakRc<Inode>, event: Events, cx: &Cx) {
    let mut from = 0;
    while let Some((next, told)) = change(directory, |watchers| next_watchers(watchers, from, event)) {
        from = next;
        for (file, fd) in told {
            if let Ok(file) = file.upgrade(cx) {
                file.signal_owner(fd, Band::Message, cx);
            }
        }
    }
}

/// Looks at some descriptions, from that number on: from which number on to go on, and by which files and descriptors the event is told. `None` at the end.
fn next_watchers(watchers: &mut Watchers, from: u64, event: Events) -> Option<(u64, Vec<Told>)> {
    if !watchers.interest.intersects(event) {
        return None;
    }
    let (mut told, mut last, mut is_over) = (Vec::new(), None, Vec::new());
    for (&description, watches) in watchers.by_description.range_mut(from..).take(AT_ONCE) {
        last = Some(description);
        watches.retain(|watch| {
            let matches = !watch.is_dead() && watch.events.intersects(event);
            if matches {
                told.push((watch.file, watch.fd));
            }
            !watch.is_dead() && (!matches || watch.events.contains(Events::MULTI_SHOT))
        });
        if watches.is_empty() {
            is_over.push(description);
        }
    }
    for description in is_over {
        watchers.by_description.remove(&description);
    }
    last.map(|last| (last + 1, told))
}
