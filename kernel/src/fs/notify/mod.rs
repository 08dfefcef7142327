//! Who watches files is told what happens to them: inotify(7), and F_NOTIFY of fcntl(2).
//!
//! ```text
//!   what changes a file --> hooks (here) --> Watchers of its directory, then its own --> Inotify: a queue that is read
//!                                                                                    `-> dnotify: a signal
//! ```
//!
//! An inode has a list of its [`Watchers`], by key; a watcher is a queue or a description that wants signals, and is known by name only. Nobody is kept alive by being watched: what watches a file that
//! has lost its last name and its last user hears of its end. While nothing at all is watched, an event costs a look at a counter; while something is, also a look at the file's directory.
//!
//! What ends without a context (a description that a mapping had, an inode) is [told later](late), by a task of the kernel or by whoever comes first: who tells something else, or reads. With several cores
//! such an end may be told behind what happened after it.
//!
//! Which directory a file is in, and its name there, is known by its [`Dentry`](super::Dentry): of a file with several names it is one of them, whichever was used.
//!
//! Locks: an [`Inotify`]'s state, then an inode's list, which is a leaf. Events are told with nothing locked, to some watchers at a time.

pub mod dnotify;
pub mod inotify;
mod late;
mod queue;
mod users;
mod watch_list;
mod watchers;

use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{Dying, TempRc, WeakRc};

use super::{FileKind, FileSystem, Inode, OpenFile};

pub use inotify::Inotify;
pub use late::start;
pub use users::{MAX_USER_INSTANCES, MAX_USER_WATCHES, UserInstances, max_user_watches};
pub use watchers::{Watchers, is_anything_watched};

bitflags! {
    /// What may happen to a file, and what may be said of who watches for it: in the bits of inotify(7).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FileEvents: u32 {
        /// It was read, or listed.
        const ACCESS = abi::IN_ACCESS;
        /// It was written or truncated.
        const MODIFY = abi::IN_MODIFY;
        /// What is known of it changed.
        const ATTRIB = abi::IN_ATTRIB;
        /// A description that could write it has ended.
        const CLOSE_WRITE = abi::IN_CLOSE_WRITE;
        /// Another description has ended.
        const CLOSE_NOWRITE = abi::IN_CLOSE_NOWRITE;
        /// It was opened.
        const OPEN = abi::IN_OPEN;
        /// A name in it was moved away.
        const MOVED_FROM = abi::IN_MOVED_FROM;
        /// A name was moved into it.
        const MOVED_TO = abi::IN_MOVED_TO;
        /// It has a new name in it.
        const CREATE = abi::IN_CREATE;
        /// It has lost a name.
        const DELETE = abi::IN_DELETE;
        /// It is gone itself.
        const DELETE_SELF = abi::IN_DELETE_SELF;
        /// It was moved itself.
        const MOVE_SELF = abi::IN_MOVE_SELF;
        /// Its file system is no longer mounted.
        const UNMOUNT = abi::IN_UNMOUNT;
        /// A watcher does not want to hear of files in a directory that have no name there any more.
        const EXCL_UNLINK = abi::IN_EXCL_UNLINK;
        /// A watcher is told once.
        const ONE_SHOT = abi::IN_ONESHOT;
        /// A name in it was changed, for F_NOTIFY. (inotify(7) has no such bit.)
        const RENAME = 1 << 27;
    }
}

/// One thing that has happened.
#[derive(Clone, Copy)]
struct Event<'a> {
    what: FileEvents,
    /// To a directory, or to a name of one.
    is_directory: bool,
    /// To what has this name in the directory; empty: to the file itself.
    name: &'a [u8],
    /// What the two halves of a renaming have in common; else 0.
    cookie: u32,
    /// By a description of what has lost its name.
    is_unlinked: bool,
}

impl<'a> Event<'a> {
    fn itself(file: &Inode, what: FileEvents) -> Self {
        Event { what, is_directory: file.kind == FileKind::Directory, name: &[], cookie: 0, is_unlinked: false }
    }

    fn named(file: &Inode, what: FileEvents, name: &'a [u8]) -> Self {
        Event { name, ..Event::itself(file, what) }
    }
}

/// Something happened to a file: who watches its directory is told, then who watches it.
#[inline(always)]
pub fn file_changed(file: &TempRc<'_, Inode>, what: FileEvents, cx: &Cx) {
    if is_anything_watched() {
        late::catch_up(cx);
        tell_of(file, what, By::Name, cx);
    }
}

/// A directory has a new name.
#[inline(always)]
pub fn created(directory: &TempRc<'_, Inode>, name: &[u8], made: &Inode, cx: &Cx) {
    if is_anything_watched() {
        tell_created(directory, name, made, cx);
    }
}

#[cold]
fn tell_created(directory: &TempRc<'_, Inode>, name: &[u8], made: &Inode, cx: &Cx) {
    late::catch_up(cx);
    tell(directory, &Event::named(made, FileEvents::CREATE, name), cx);
}

/// A file has one more name.
pub fn linked(directory: &TempRc<'_, Inode>, name: &[u8], file: &TempRc<'_, Inode>, cx: &Cx) {
    if is_anything_watched() {
        late::catch_up(cx);
        tell(file, &Event::itself(file, FileEvents::ATTRIB), cx);
        tell(directory, &Event::named(file, FileEvents::CREATE, name), cx);
    }
}

/// A directory has lost a name; what it led to may be gone with it.
#[inline(always)]
pub fn unlinked(directory: &TempRc<'_, Inode>, name: &[u8], victim: &TempRc<'_, Inode>, cx: &Cx) {
    if is_anything_watched() {
        tell_unlinked(directory, name, victim, cx);
    }
}

#[cold]
fn tell_unlinked(directory: &TempRc<'_, Inode>, name: &[u8], victim: &TempRc<'_, Inode>, cx: &Cx) {
    late::catch_up(cx);
    if victim.kind != FileKind::Directory {
        tell(victim, &Event::itself(victim, FileEvents::ATTRIB), cx);
    }
    tell_end_if_gone(victim, cx);
    tell(directory, &Event::named(victim, FileEvents::DELETE, name), cx);
}

/// A name was moved, maybe to where another one was, which led to `replaced`.
#[inline(always)]
pub fn renamed(
    from: (&TempRc<'_, Inode>, &[u8]),
    to: (&TempRc<'_, Inode>, &[u8]),
    moved: &TempRc<'_, Inode>,
    replaced: Option<&TempRc<'_, Inode>>,
    cx: &Cx,
) {
    if is_anything_watched() {
        tell_renamed(from, to, moved, replaced, cx);
    }
}

#[cold]
fn tell_renamed(
    (from, old_name): (&TempRc<'_, Inode>, &[u8]),
    (to, new_name): (&TempRc<'_, Inode>, &[u8]),
    moved: &TempRc<'_, Inode>,
    replaced: Option<&TempRc<'_, Inode>>,
    cx: &Cx,
) {
    static LAST_COOKIE: AtomicU32 = AtomicU32::new(0);
    late::catch_up(cx);
    let cookie = LAST_COOKIE.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    tell(from, &Event { cookie, ..Event::named(moved, FileEvents::MOVED_FROM, old_name) }, cx);
    tell(to, &Event { cookie, ..Event::named(moved, FileEvents::MOVED_TO, new_name) }, cx);
    if from.downgrade() == to.downgrade() {
        tell(from, &Event::named(moved, FileEvents::RENAME, new_name), cx);
    }
    if let Some(replaced) = replaced {
        tell(replaced, &Event::itself(replaced, FileEvents::ATTRIB), cx);
    }
    tell(moved, &Event::itself(moved, FileEvents::MOVE_SELF), cx);
    if let Some(replaced) = replaced {
        tell_end_if_gone(replaced, cx);
    }
}

/// Who watches a file that was gone with a name hears of that now, not when its memory comes back.
fn tell_end_if_gone(file: &TempRc<'_, Inode>, cx: &Cx) {
    if file.downgrade().is_gone()
        && let Some(list) = file.watchers.take()
    {
        late::tell_end(list, FileEvents::DELETE_SELF, file.kind == FileKind::Directory, cx);
    }
}

/// How something was done to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// By its name, or whatever way.
    Name,
    /// By a description of it.
    Description,
}

/// Tells who watches its directory, then who watches the file. That a device or a FIFO was read or written its directory does not hear, as on Linux: many may see the directory who may not see what others do with
/// the device.
#[cold]
fn tell_of(file: &TempRc<'_, Inode>, what: FileEvents, by: By, cx: &Cx) {
    let (parent, is_removed) = {
        let dentry = file.dentry.lock(cx);
        (dentry.parent, dentry.is_removed)
    };
    let is_unlinked = by == By::Description && is_removed;
    let is_stored = matches!(file.kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink);
    let is_transfer = (FileEvents::ACCESS | FileEvents::MODIFY).contains(what);
    if (is_stored || !is_transfer)
        && let Some(parent) = parent.and_then(|parent| parent.upgrade(cx).ok())
        && parent.watchers.want(what)
    {
        let name = file.dentry.lock(cx).name.clone();
        tell(&parent, &Event { is_unlinked, ..Event::named(file, what, &name) }, cx);
    }
    tell(file, &Event { is_unlinked, ..Event::itself(file, what) }, cx);
}

/// Tells who watches just that inode.
fn tell(inode: &Inode, event: &Event<'_>, cx: &Cx) {
    let mut behind = None;
    while inode.watchers.want(event.what)
        && let Some((last, told)) = inode.watchers.next(behind, event)
    {
        behind = Some(last);
        told.iter().for_each(|told| told.tell(event, cx));
    }
}

impl OpenFile {
    /// Tells who watches it, or its directory, what was done by it.
    #[inline(always)]
    pub fn notify(&self, what: FileEvents, cx: &Cx) {
        if is_anything_watched() {
            self.notify_watchers(what, cx);
        }
    }

    /// The same of what has no offset, if it was done. Nobody watches what has no path, as most that is read and written so.
    #[inline(always)]
    pub fn notify_of_stream(&self, is_done: bool, what: FileEvents, cx: &Cx) {
        if self.is_of_path && is_done {
            self.notify(what, cx);
        }
    }

    #[cold]
    #[inline(never)]
    fn notify_watchers(&self, what: FileEvents, cx: &Cx) {
        late::catch_up(cx);
        tell_of(&self.location.inode.get(cx), what, By::Description, cx);
    }

    /// It was opened by a path.
    #[inline(always)]
    pub fn was_opened(&self, cx: &Cx) {
        self.notify(FileEvents::OPEN, cx);
    }

    /// It was not opened after all, and ends without a word.
    pub(super) fn was_not_opened(&self) {
        self.end_is_told.store(true, Ordering::Relaxed);
    }

    fn end_event(&self) -> FileEvents {
        if self.flags().can_write() { FileEvents::CLOSE_WRITE } else { FileEvents::CLOSE_NOWRITE }
    }

    /// Tells of its end, unless that was done.
    pub(super) fn tell_end(&self, cx: &Cx) {
        if self.is_of_path && !self.end_is_told.swap(true, Ordering::Relaxed) {
            self.notify(self.end_event(), cx);
        }
    }

    /// It ends, in its destructor, while something is watched: leaves it to others to tell of its end if nobody has.
    #[cold]
    pub(super) fn end_with_watchers(&self) {
        if self.is_of_path && !self.end_is_told.load(Ordering::Relaxed) {
            late::leave_closed(self.location.inode.share(), self.end_event());
        }
    }
}

/// A call has read or written so many bytes by a description.
#[inline(always)]
pub fn transferred(name: WeakRc<OpenFile>, count: usize, what: FileEvents, cx: &Cx) {
    if is_anything_watched()
        && count > 0
        && let Ok(open) = name.upgrade(cx)
    {
        open.notify_watchers(what, cx);
    }
}

/// Ends what a descriptor was for, while something is watched, and tells of it; of the end of its file too, if it was the last one.
#[cold]
pub(super) fn end_told_async(cx: &mut Cx, closed: Dying<OpenFile>, end_async: impl FnOnce(&mut Cx, Dying<OpenFile>)) {
    let ends_file =
        closed.with(|open| open.location.inode.with(|inode| inode.watchers.are_any() && !inode.has_names()));
    end_async(cx, closed);
    if ends_file {
        tasks::free_everything_async(cx);
        late::catch_up(cx);
    }
}

/// An inode with watchers is about to end.
#[cold]
pub(super) fn inode_ends(inode: &Inode) {
    let why = match (inode.has_names(), inode.file_system.with(FileSystem::is_mounted)) {
        (false, _) => FileEvents::DELETE_SELF,
        (true, false) => FileEvents::UNMOUNT,
        // Whoever made it up makes it anew.
        (true, true) => FileEvents::empty(),
    };
    if let Some(list) = inode.watchers.take() {
        late::leave_ended(list, why, inode.kind == FileKind::Directory);
    }
}
