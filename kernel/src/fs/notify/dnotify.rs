//! F_NOTIFY: a signal when something happens to a directory or to what is in it. See fcntl(2), "File and directory change notification".
//!
//! A watch belongs to a description and to a process' descriptors. It goes when that process closes any of its descriptors for that description, when the description goes, or with the event that it was for.
//! Nobody waits for it.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{TempRc, WeakRc};

use super::watchers::{Told, Watcher};
use super::{Event, FileEvents};
use crate::error::{Errno, Result};
use crate::fs::{FileKind, FileTable, OpenFile};

/// What one process wants to hear of.
struct Watch {
    file: WeakRc<OpenFile>,
    files: WeakRc<FileTable>,
    /// The descriptor by which it was asked for, for `si_fd`.
    fd: i32,
    events: FileEvents,
    /// Not only the first event is told.
    is_lasting: bool,
}

impl Watch {
    fn is_dead(&self) -> bool {
        self.file.is_gone() || self.files.is_gone()
    }
}

/// What is wanted by one description: by each process that watches by it.
pub(super) struct Signals(Vec<Watch>);

impl Signals {
    /// Enters who of them is told of the event; false if nobody is left.
    pub(super) fn look(&mut self, event: &Event<'_>, told: &mut Vec<Told>) -> bool {
        self.0.retain(|watch| {
            let matches = !watch.is_dead() && watch.events.intersects(event.what);
            if matches {
                told.push(Told::Signal(watch.file, watch.fd));
            }
            !watch.is_dead() && (!matches || watch.is_lasting)
        });
        !self.0.is_empty()
    }
}

/// By which number inodes know a description: its address, which no other has as long as it lives. (No [`Inotify`](super::Inotify) has such a large one.)
fn number_of(open: &OpenFile) -> u64 {
    core::ptr::from_ref(open).addr() as u64
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
pub fn watch(open: &TempRc<'_, OpenFile>, files: WeakRc<FileTable>, fd: i32, bits: u32, cx: &Cx) -> Result<()> {
    let directory = open.inode(cx)?;
    if directory.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR);
    }
    crate::memory::admit()?;
    open.has_watched.store(true, Ordering::Relaxed);
    let file = open.downgrade();
    let (events, is_lasting) = (events_of(bits), bits & abi::DN_MULTISHOT != 0);
    directory.watchers.change(number_of(open), events, |watcher| {
        let mut watches = match watcher.take() {
            Some(Watcher::Signals(Signals(watches))) => watches,
            _ => Vec::new(),
        };
        watches.retain(|watch| !watch.is_dead());
        match watches.iter_mut().find(|watch| watch.files == files) {
            Some(watch) => {
                (watch.fd, watch.events) = (fd, watch.events | events);
                watch.is_lasting |= is_lasting;
            }
            None => watches.push(Watch { file, files, fd, events, is_lasting }),
        }
        *watcher = Some(Watcher::Signals(Signals(watches)));
    });
    Ok(())
}

/// Ends what a process asked for by `open`.
#[inline(always)]
pub fn unwatch(open: &OpenFile, files: impl FnOnce() -> WeakRc<FileTable>) {
    if open.has_watched.load(Ordering::Relaxed) {
        end_watch(open, files());
    }
}

#[cold]
#[inline(never)]
fn end_watch(open: &OpenFile, files: WeakRc<FileTable>) {
    let number = number_of(open);
    open.location.inode.with(|directory| {
        directory.watchers.change(number, FileEvents::empty(), |watcher| {
            if let Some(Watcher::Signals(Signals(watches))) = watcher {
                watches.retain(|watch| watch.files != files);
                if watches.is_empty() {
                    *watcher = None;
                }
            }
        });
    });
}

/// The description is about to die.
#[cold]
pub(super) fn forget(open: &OpenFile) {
    let number = number_of(open);
    open.location.inode.with(|directory| {
        directory.watchers.change(number, FileEvents::empty(), |watcher| *watcher = None);
    });
}
