//! F_NOTIFY: a signal when something happens to a directory or to what is in it. See fcntl(2), "File and directory change notification".
//!
//! A watch belongs to a description and to a process' descriptors. It goes when that process closes any of its descriptors for that description, or ends, or with the event that it was for. What a process left that ended while others had the description goes with the description.
//! Nobody waits for it. What two processes want by the same description is two watches: so each piece of work on an inode's list is bounded by how many watches it looks at.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{TempRc, WeakRc};

use super::watchers::{Key, Told, Watcher};
use super::{Event, FileEvents};
use crate::error::{Errno, Result};
use crate::fs::{FileKind, FileTable, OpenFile};

/// What one process wants to hear of by one description.
pub(super) struct Signal {
    file: WeakRc<OpenFile>,
    files: WeakRc<FileTable>,
    /// The descriptor by which it was asked for, for `si_fd`.
    fd: i32,
    events: FileEvents,
    /// Not only the first event is told.
    is_lasting: bool,
}

impl Signal {
    fn is_dead(&self) -> bool {
        self.file.is_gone() || self.files.is_gone()
    }

    /// Enters it among those who are told, if it is for that; false if it is over.
    pub(super) fn look(&self, event: &Event<'_>, told: &mut Vec<Told>) -> bool {
        let is_dead = self.is_dead();
        let matches = !is_dead && self.events.intersects(event.what);
        if matches {
            told.push(Told::Signal(self.file, self.fd));
        }
        !is_dead && (!matches || self.is_lasting)
    }
}

/// By which key inodes know a description and a table: their addresses, which no others have as long as they live.
fn key_of(open: &OpenFile, files: &FileTable) -> Key {
    Key::Signal(core::ptr::from_ref(open).addr(), core::ptr::from_ref(files).addr())
}

/// What the bits of F_NOTIFY stand for.
fn events_of(bits: u32) -> FileEvents {
    let meaning = [
        (abi::DN_ACCESS, FileEvents::ACCESS),
        (abi::DN_MODIFY, FileEvents::MODIFY),
        (abi::DN_CREATE, FileEvents::CREATE | FileEvents::MOVED_TO),
        (abi::DN_DELETE, FileEvents::DELETE | FileEvents::MOVED_FROM),
        (abi::DN_RENAME, FileEvents::RENAME),
        (abi::DN_ATTRIB, FileEvents::ATTRIB),
    ];
    meaning.into_iter().filter(|(bit, _)| bits & bit != 0).fold(FileEvents::empty(), |all, (_, events)| all | events)
}

/// Has `open`'s owner told of what `bits` says, beside what it is told already, until `files` closes a descriptor of it. `fd` is told as the descriptor.
///
/// # Errors
/// ENOTDIR; ENOMEM.
pub fn watch(open: &TempRc<'_, OpenFile>, files: &TempRc<'_, FileTable>, fd: i32, bits: u32, cx: &Cx) -> Result<()> {
    let directory = open.inode(cx)?;
    if directory.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR);
    }
    crate::memory::admit()?;
    open.has_watched.store(true, Ordering::SeqCst);
    let (events, is_lasting) = (events_of(bits), bits & abi::DN_MULTISHOT != 0);
    let new = Signal { file: open.downgrade(), files: files.downgrade(), fd, events, is_lasting };
    directory.watchers.change(key_of(open, files), events, |watcher| match watcher {
        Some(Watcher::Signal(known)) if !known.is_dead() => {
            (known.fd, known.events) = (fd, known.events | events);
            known.is_lasting |= is_lasting;
        }
        _ => *watcher = Some(Watcher::Signal(new)),
    });
    // Who closes it takes it out of the table first, and then looks whether it was watched.
    if files.weak(fd, cx) != Ok(open.downgrade()) {
        end_watch(open, files);
    }
    Ok(())
}

/// Ends what a process asked for by `open`.
#[inline(always)]
pub fn unwatch(open: &OpenFile, files: &FileTable) {
    if open.has_watched.load(Ordering::SeqCst) {
        end_watch(open, files);
    }
}

#[cold]
#[inline(never)]
fn end_watch(open: &OpenFile, files: &FileTable) {
    let key = key_of(open, files);
    open.location.inode.with(|directory| {
        directory.watchers.remove_if(key, |_| true);
    });
}

/// The description is about to die. A process that ended while others had it, too, may have left its watches.
#[cold]
pub fn forget(open: &OpenFile) {
    let description = core::ptr::from_ref(open).addr();
    open.location.inode.with(|directory| {
        let all = Key::Signal(description, 0)..=Key::Signal(description, usize::MAX);
        while directory.watchers.forget_some(all.clone()) {}
    });
}
