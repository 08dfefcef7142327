//! [`Volume`]: a file system that is mounted, and [`View`]: its blocks, as they are now.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{SpinLock, StrongRc, TempRc, Waker, WeakRc};

use super::format::{Attributes, Change, Done, Said};
use super::journal::Journal;
use super::node::Node;
use super::state::{Desk, State, Stopped};
use super::{Format, Problem};
use crate::block::{self, Keep, ReadAhead, VolumeSync};
use crate::error::{Errno, Result};
use crate::fs::{Dentry, FileKind, FileSystem, Inode, InodeCache, Kept, Timestamp, WrittenFirst};
use crate::step::{Absent, Source, Step, Stop};

/// Where a file system is: a disk, or a part of one. It can be opened once more for each of these.
pub(super) struct Place {
    pub volume: block::Used,
    ahead: ReadAhead,
}

impl Place {
    /// # Errors
    /// `Pause` while the disk lets go of what it has.
    pub fn of(volume: block::Volume) -> Step<Self> {
        Ok(Place { volume: volume.begin_use()?, ahead: ReadAhead::default() })
    }
}

/// A file system that is mounted.
///
/// Owner: its [`FileSystem`]. One that is written ends when its task has written everything; the task is woken by the end of the last mount. Its end frees its inodes; whoever waits for pages of them is told EIO.
pub struct Volume<F: Format> {
    name: WeakRc<Volume<F>>,
    pub(super) place: Place,
    pub(super) format: F,
    pub(super) inodes: InodeCache,
    pub(super) file_system: WeakRc<FileSystem>,
    /// What it is called in the kernel's log.
    pub(super) kind: &'static str,
    /// Something wrong was found, and told.
    is_bad: AtomicBool,
    /// What was changed and is not on the disk.
    pub(super) state: SpinLock<State>,
    /// How many names its directories know.
    pub(super) names: StrongRc<AtomicUsize>,
    /// What its task is to do, and who waits for that.
    pub(super) desk: StrongRc<Desk>,
}

/// The blocks of a volume, for one call of a format's function.
pub struct View<'a> {
    place: &'a Place,
    cx: &'a Cx,
    /// What is newer than on the disk.
    state: Option<&'a State>,
    /// So many free blocks are promised to others.
    promised: u64,
    /// Why a block was not at hand.
    stop: Cell<Option<Stop>>,
    /// Where bytes are shown that must be copied for that. Some of it is kept from one time to the next.
    scratch: Cell<Vec<u8>>,
}

impl<'a> View<'a> {
    pub(super) fn new(place: &'a Place, state: Option<&'a State>, cx: &'a Cx) -> Self {
        View { place, cx, state, promised: 0, stop: Cell::new(None), scratch: Cell::default() }
    }

    /// The same for a change that leaves so many free blocks to others.
    fn leaving(self, promised: u64) -> Self {
        View { promised, ..self }
    }

    /// How many free blocks a change has to leave to others.
    pub fn promised(&self) -> u64 {
        self.promised
    }

    /// Copies bytes of the volume.
    ///
    /// # Errors
    /// `Absent`: they must come first, or cannot.
    pub fn copy(&self, offset: u64, to: &mut [u8]) -> Said<()> {
        let bytes = self.place.volume.bytes();
        let end = offset.checked_add(to.len() as u64).and_then(|end| end.checked_add(bytes.start));
        if end.is_none_or(|end| end > bytes.end) {
            return Err(Problem::Corrupt("an address beyond the end of the disk"));
        }
        let cache = self.place.volume.disk.cache(self.cx);
        let mut done = 0;
        while done < to.len() {
            let at = bytes.start + offset + done as u64;
            let mut rest = Writer::from(&mut to[done..]);
            match cache.read(at, bytes.end, &mut rest, Keep::Pages(&self.place.ahead), self.cx) {
                Ok(0) => return Err(Problem::Errno(Errno::EIO)),
                Ok(read) => done += read,
                Err(stop) => {
                    self.stop.set(Some(stop));
                    return Err(Problem::Absent);
                }
            }
        }
        Ok(())
    }

    /// Runs `with` on bytes of the volume: up to `len`, fewer at its end.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy).
    pub fn with<R>(&self, offset: u64, len: usize, with: impl FnOnce(&[u8]) -> R) -> Said<R> {
        if let Some(bytes) = self.state.and_then(|state| state.changed(offset, len)) {
            return Ok(with(bytes));
        }
        let left = self.place.volume.size().saturating_sub(offset);
        let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        // Who looks at bytes while it looks at others takes other memory.
        let mut scratch = self.scratch.take();
        if scratch.len() < len {
            scratch.resize(len, 0);
        }
        let outcome = self.copy(offset, &mut scratch[..len]).map(|()| with(&scratch[..len]));
        self.scratch.set(scratch);
        outcome
    }

    /// Whether bytes of a block have a right checksum, as far as is known: they were changed here, or [were checked](Self::note_sound) since they came from the disk.
    pub fn is_sound(&self, offset: u64, len: usize) -> bool {
        let volume = &self.place.volume;
        self.state.is_some_and(|state| state.changed(offset, len).is_some())
            || volume.disk.cache(self.cx).is_sound(volume.bytes().start + offset, len, self.cx)
    }

    /// Notes that bytes of a block, which are on the disk as they are, have a right checksum.
    pub fn note_sound(&self, offset: u64, len: usize) {
        let volume = &self.place.volume;
        if self.state.is_none_or(|state| state.changed(offset, len).is_none()) {
            volume.disk.cache(self.cx).note_sound(volume.bytes().start + offset, len, self.cx);
        }
    }

    /// Notes that `what` of a source must come first.
    pub(super) fn wait_for(&self, source: WeakRc<dyn Source>, what: u64) {
        self.stop.set(Some(Stop::Absent(Absent::note(source, what, self.cx))));
    }

    /// In what it is used.
    pub(super) fn cx(&self) -> &'a Cx {
        self.cx
    }

    /// As [`copy`](Self::copy), with what was changed and is not on the disk.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy).
    pub fn copy_changed(&self, offset: u64, to: &mut [u8]) -> Said<()> {
        self.copy(offset, to)?;
        if let Some(state) = self.state {
            state.put_over(offset, to);
        }
        Ok(())
    }

    /// Whether nobody else can be in a function of the format's.
    pub(super) fn is_alone(&self) -> bool {
        self.state.is_some()
    }

    /// What was changed of an exFAT file system and is not on the disk.
    pub fn pending(&self) -> Option<&exfat::Pending> {
        self.state.and_then(|state| state.journal.as_ref()).and_then(Journal::ordered)
    }

    /// The first of these blocks that must not be used before the journal is committed.
    pub fn pinned_in(&self, run: ext::Run) -> Option<ext::Run> {
        self.state.and_then(|state| state.journal.as_ref()).and_then(|journal| journal.pinned_in(run))
    }
}

/// What came of a try to change something.
enum Tried<N> {
    Done(Done<N>, Timestamp),
    /// A commit must come first.
    CommitFirst,
    /// Files must get the blocks that are promised to them first.
    AllocationFirst,
}

/// What a call is told of a format's problem; what is wrong with the file system goes to the kernel's log, once.
fn stop_of(problem: Problem, view: &View<'_>, is_bad: &AtomicBool, kind: &str) -> Stop {
    let (error, what) = match problem {
        Problem::Absent => return view.stop.take().unwrap_or(Errno::EIO.into()),
        Problem::Errno(error) => return error.into(),
        // Who changes nothing needs no room.
        Problem::CommitFirst => return Errno::ENOSPC.into(),
        Problem::Corrupt(what) => (Errno::EUCLEAN, what),
        Problem::Unsupported(what) => (Errno::EOPNOTSUPP, what),
    };
    if !is_bad.swap(true, Ordering::Relaxed) {
        crate::log!("{kind} on {}: {what}", view.place.volume.name());
    }
    error.into()
}

/// Runs a function of a format's on the blocks of a disk.
pub(super) fn ask<T>(
    place: &Place,
    state: Option<&State>,
    is_bad: &AtomicBool,
    kind: &str,
    cx: &Cx,
    ask: impl FnOnce(&View<'_>) -> Said<T>,
) -> Step<T> {
    let view = View::new(place, state, cx);
    ask(&view).map_err(|problem| stop_of(problem, &view, is_bad, kind))
}

impl<F: Format> Volume<F> {
    pub(super) fn new(
        name: WeakRc<Self>,
        (place, format, state): (Place, F, State),
        file_system: WeakRc<FileSystem>,
        kind: &'static str,
    ) -> Self {
        Volume {
            name,
            place,
            format,
            inodes: InodeCache::of_stored(),
            file_system,
            kind,
            is_bad: AtomicBool::new(false),
            state: SpinLock::new(state),
            names: StrongRc::new(AtomicUsize::new(0)),
            desk: StrongRc::new(Desk::default()),
        }
    }

    /// Whether it is changed now: it is opened to be written, and mounted so.
    pub(super) fn is_changed(&self, cx: &Cx) -> bool {
        self.format.is_written() && self.state.lock(cx).stopped.is_none()
    }

    /// Its name.
    pub(super) fn name(&self) -> WeakRc<Self> {
        self.name
    }

    /// Runs a function of the format's.
    ///
    /// # Errors
    /// What the format says; `Absent`.
    pub(super) fn ask<T>(&self, cx: &Cx, question: impl FnOnce(&F, &View<'_>) -> Said<T>) -> Step<T> {
        let guard = self.format.is_written().then(|| self.state.lock(cx));
        if guard.as_ref().is_some_and(|state| state.stopped == Some(Stopped::ShutDown)) {
            return Err(Errno::EIO.into());
        }
        ask(&self.place, guard.as_deref(), &self.is_bad, self.kind, cx, |view| question(&self.format, view))
    }

    /// Changes the file system: all of it or nothing. `before` is called when it is known what comes of it, just before it is true; if that fails nothing has happened. The time that was given to what was changed.
    ///
    /// # Errors
    /// EROFS; what the format says; `Absent`, also for a commit that has to come first.
    pub(super) fn change(
        &self,
        cx: &Cx,
        what: &Change<'_>,
        before: impl FnOnce(&Done<F::Node>, &mut State) -> Step<()>,
    ) -> Step<(Done<F::Node>, Timestamp)> {
        self.change_promised(cx, what, 0, before)
    }

    /// The same for a change to which so many of the promised blocks were promised.
    pub(super) fn change_promised(
        &self,
        cx: &Cx,
        what: &Change<'_>,
        own: u64,
        before: impl FnOnce(&Done<F::Node>, &mut State) -> Step<()>,
    ) -> Step<(Done<F::Node>, Timestamp)> {
        match self.try_change(cx, what, own, before) {
            Ok(Tried::Done(done, now)) => Ok((done, now)),
            Ok(Tried::CommitFirst) => Err(self.commit_first(cx)),
            Ok(Tried::AllocationFirst) => Err(self.allocation_first(cx)),
            Err(stop) => Err(stop),
        }
    }

    /// Promises a file so many free blocks; whether there are as many.
    ///
    /// # Errors
    /// Why nothing is changed any more; `Absent`.
    pub(super) fn promise(&self, blocks: u64, cx: &Cx) -> Step<bool> {
        let mut state = self.state.lock(cx);
        if let Some(stopped) = state.stopped {
            return Err(stopped.error().into());
        }
        let free = match state.free {
            Some(free) => free,
            None => {
                let view = View::new(&self.place, Some(&state), cx);
                let space = self.format.space(&view).map_err(|problem| self.stop_of(problem, &view))?;
                *state.free.insert(space.free_pages())
            }
        };
        let desk = self.desk.get(cx);
        let is_there = free.saturating_sub(desk.promised.load(Ordering::Relaxed)) >= blocks;
        if is_there {
            desk.promised.fetch_add(blocks, Ordering::Relaxed);
            if let Ok(file_system) = self.file_system.upgrade(cx) {
                file_system.capacity.used_pages.fetch_add(blocks, Ordering::Relaxed);
            }
        }
        Ok(is_there)
    }

    /// A commit must come first.
    #[cold]
    fn commit_first(&self, cx: &Cx) -> Stop {
        let running = self.state.lock(cx).running;
        self.desk.get(cx).want_commit(running);
        match self.name.upgrade(cx) {
            Ok(this) => {
                Stop::Absent(Absent::note(this.unsize::<dyn Source>(|volume| volume, cx).downgrade(), running, cx))
            }
            Err(_) => Errno::EIO.into(),
        }
    }

    /// As [`change`](Self::change), once.
    fn try_change(
        &self,
        cx: &Cx,
        what: &Change<'_>,
        own: u64,
        before: impl FnOnce(&Done<F::Node>, &mut State) -> Step<()>,
    ) -> Step<Tried<F::Node>> {
        let mut state = self.state.lock(cx);
        if let Some(stopped) = state.stopped {
            return Err(stopped.error().into());
        }
        let journal = state.journal.as_ref().ok_or(Errno::EROFS)?;
        if state.is_closed || !journal.has_room() {
            return Ok(Tried::CommitFirst);
        }
        let now = Timestamp::now();
        let promised = self.desk.get(cx).promised.load(Ordering::Relaxed).saturating_sub(own);
        let view = View::new(&self.place, Some(&state), cx).leaving(promised);
        let (done, changes) = match self.format.change(what, now, &view) {
            Ok(change) => change,
            Err(Problem::CommitFirst) => return Ok(Tried::CommitFirst),
            // What is about to be deleted makes room.
            Err(Problem::Errno(Errno::ENOSPC)) if self.has_doomed(cx) => return Ok(Tried::CommitFirst),
            // More is promised than is needed: what is left is free again when all files have their blocks.
            Err(Problem::Errno(Errno::ENOSPC)) if promised > 0 && own == 0 && what.is_of_a_call() => {
                return Ok(Tried::AllocationFirst);
            }
            Err(problem) => return Err(stop_of(problem, &view, &self.is_bad, self.kind)),
        };
        before(&done, &mut state)?;
        self.format.is_true(&changes);
        let is_first = state.apply(changes);
        let view = View::new(&self.place, Some(&state), cx);
        if let Ok(mut space) = self.format.space(&view) {
            state.free = Some(space.free_pages());
            space.used_pages += self.desk.get(cx).promised.load(Ordering::Relaxed);
            if let Ok(file_system) = self.file_system.upgrade(cx) {
                space.tell(&file_system.capacity);
            }
        }
        drop(state);
        if is_first {
            self.desk.get(cx).work.wake_all();
        }
        Ok(Tried::Done(done, now))
    }

    /// Others must have their turn first.
    pub(super) fn others_first(&self, cx: &Cx) -> Stop {
        let view = View::new(&self.place, None, cx);
        let problem = self.format.others_first(&view);
        self.stop_of(problem, &view)
    }

    /// Files must get the blocks that are promised to them first.
    pub(super) fn allocation_first(&self, cx: &Cx) -> Stop {
        self.desk.get(cx).want_allocation();
        self.commit_first(cx)
    }

    fn has_doomed(&self, cx: &Cx) -> bool {
        !self.desk.get(cx).notes.lock(cx).doomed.is_empty()
    }

    /// Where its files are.
    pub(super) fn on(&self) -> block::Volume {
        *self.place.volume
    }

    /// The inode of that number, which is in the directory `parent` under `name`.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub(super) fn inode<'cx>(
        &self,
        number: u64,
        parent: &TempRc<'cx, Inode>,
        name: &[u8],
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        if let Some(inode) = self.inodes.get(number, cx) {
            // A directory has one name: with another the tree would be a circle.
            let is_elsewhere = inode.kind == FileKind::Directory && {
                let is_same = |own: &[u8]| self.format.is_same_name(own, name);
                !inode.dentry.lock(cx).is_called(parent, is_same)
            };
            return if is_elsewhere { Err(Errno::EUCLEAN.into()) } else { Ok(inode) };
        }
        let (node, metadata) = self.ask(cx, |format, view| format.node(number, view))?;
        if metadata.links == 0 {
            // It was deleted just now.
            return Err(Errno::ENOENT.into());
        }
        let attributes = self.attributes_with_acls(&node, cx)?;
        Ok(self.enter(number, Some((parent, name)), node, metadata, attributes, cx)?)
    }

    /// The attributes of a file where access control lists can be among them, which must be known with it.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask), but for what is wrong with them: that is told who asks for them (`None`).
    pub(super) fn attributes_with_acls(&self, node: &F::Node, cx: &Cx) -> Step<Option<Attributes>> {
        if !F::HAS_ACLS {
            return Ok(None);
        }
        match self.ask(cx, |format, view| format.attributes(node, view)) {
            Ok(attributes) => Ok(Some(attributes)),
            Err(Stop::Error(_)) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn enter<'cx>(
        &self,
        number: u64,
        place: Option<(&TempRc<'cx, Inode>, &[u8])>,
        node: F::Node,
        metadata: crate::fs::Metadata,
        attributes: Option<Attributes>,
        cx: &'cx Cx,
    ) -> Result<TempRc<'cx, Inode>> {
        crate::memory::admit()?;
        self.inodes.get_or_insert(number, cx, || self.make(number, place, node, metadata, attributes, cx))
    }

    /// Makes an inode, which nobody knows yet. Of `attributes`, see [`attributes_with_acls`](Self::attributes_with_acls).
    pub(super) fn make<'cx>(
        &self,
        number: u64,
        place: Option<(&TempRc<'cx, Inode>, &[u8])>,
        node: F::Node,
        metadata: crate::fs::Metadata,
        attributes: Option<Attributes>,
        cx: &'cx Cx,
    ) -> Result<Inode> {
        let file_system = self.file_system.upgrade(cx)?.share().ok_or(Errno::EIO)?;
        let dentry = place.map_or_else(Dentry::default, |(parent, name)| Dentry::new(parent, name));
        let parent = place.map(|(parent, _)| parent.share().ok_or(Errno::ENOENT)).transpose()?;
        let is_written = self.format.is_written();
        let flags = self.format.flags(&node);
        let ops = Box::new(Node::new(self, (number, node), parent, &metadata, cx));
        let mut inode = Inode::new(file_system, number, metadata, dentry, ops);
        inode.set_flags(flags);
        match attributes {
            Some(attributes) => inode.begin_with_attributes(attributes),
            None if F::HAS_ACLS => inode.note_unreadable_attributes(),
            None => {}
        }
        if is_written {
            inode.begin_keeping();
        }
        Ok(inode)
    }
}

impl<F: Format> Volume<F> {
    /// What a call is told of a format's problem.
    pub(super) fn stop_of(&self, problem: Problem, view: &View<'_>) -> Stop {
        stop_of(problem, view, &self.is_bad, self.kind)
    }

    /// Puts a block of metadata into the disk's page cache, from its byte `done` on.
    ///
    /// # Errors
    /// `Absent`: it is run again with the same `done`.
    pub(super) fn write_block(&self, block: u64, bytes: &[u8], done: &mut usize, cx: &Cx) -> Step<()> {
        let range = self.on().bytes();
        let at = range.start + block * u64::from(self.format.block_bytes());
        while *done < bytes.len() {
            let mut reader = Reader::from(&bytes[*done..]);
            match self.on().disk.cache(cx).write_at_once(at + *done as u64, range.end, &mut reader, cx)? {
                0 => return Err(Errno::EIO.into()),
                more => *done += more,
            }
        }
        Ok(())
    }
}

impl<F: Format> Kept for Volume<F> {
    fn last_mount_ended(&self) -> bool {
        if self.format.is_written() {
            self.desk.with(|desk| {
                desk.notes.with(|notes| notes.is_ending = true);
                desk.work.wake_all();
            });
        }
        self.format.is_written()
    }

    fn set_read_only(&self, read_only: bool, has_asked: &mut bool, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if !self.format.is_written() {
            return if read_only { Ok(()) } else { Err(Errno::EROFS.into()) };
        }
        let desk = self.desk.get(cx);
        if let Some(waker) = waker {
            desk.progress.register(waker, cx);
        }
        if !core::mem::replace(has_asked, true) {
            // What nobody uses is deleted first.
            if read_only && desk.notes.lock(cx).nameless.values().any(|inode| inode.upgrade(cx).is_ok()) {
                return Err(Errno::EBUSY.into());
            }
            desk.want_read_only(read_only);
        }
        if desk.notes.lock(cx).read_only.is_some() {
            return Err(Stop::BlockOnDevice);
        }
        match (self.state.lock(cx).stopped, read_only) {
            (None, false) | (Some(_), true) => Ok(()),
            (None, true) => Err(Errno::EBUSY.into()),
            (Some(stopped), _) => Err(stopped.error().into()),
        }
    }

    fn sync(&self, number: &mut Option<u64>, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if !self.format.is_written() {
            return Ok(());
        }
        let number = *number.get_or_insert_with(|| self.desk.get(cx).want_sync());
        self.is_synced(number, waker, cx)
    }

    fn can_be_shut_down(&self) -> bool {
        self.format.is_written()
    }

    fn shut_down(&self, first: WrittenFirst, number: &mut Option<u64>, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if self.state.lock(cx).stopped == Some(Stopped::ShutDown) {
            return Ok(());
        }
        match first {
            WrittenFirst::All => self.sync(number, waker, cx)?,
            WrittenFirst::Changes => {
                let commit = *number.get_or_insert_with(|| match self.begin_commit(cx) {
                    VolumeSync::Commit(commit, _) => commit,
                    // Nothing was changed.
                    _ => 0,
                });
                self.is_committed(commit, waker, cx)?;
            }
            WrittenFirst::Nothing => {}
        }
        self.state.lock(cx).stopped = Some(Stopped::ShutDown);
        crate::log!("{} on {}: it was shut down", self.kind, self.on().name());
        let desk = self.desk.get(cx);
        desk.work.wake_all();
        desk.progress.wake_all();
        Ok(())
    }
}

impl<F: Format> Source for Volume<F> {
    fn watch(&self, _what: u64, waker: Waker, cx: &Cx) {
        self.desk.get(cx).progress.register(waker, cx);
    }
}

impl<F: Format> Volume<F> {
    /// Has everything that was changed so far committed: what there is to wait for.
    pub(super) fn begin_commit(&self, cx: &Cx) -> VolumeSync {
        let state = self.state.lock(cx);
        let Some(number) = state.last_commit() else { return VolumeSync::Device };
        let is_running = number == state.running;
        drop(state);
        self.desk.get(cx).want_commit(number);
        // Of one that has begun nobody knows when it has told the disk for the last time.
        VolumeSync::Commit(number, is_running)
    }

    /// Waits until a commit is on the disk.
    ///
    /// # Errors
    /// `BlockOnDevice`, with the waker entered; EIO if the disk cannot be written.
    pub(super) fn is_committed(&self, number: u64, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if let Some(waker) = waker {
            self.desk.get(cx).progress.register(waker, cx);
        }
        let state = self.state.lock(cx);
        state.check_kept()?;
        // A commit that has no blocks to write is none, and does not count.
        let is_done = state.committed >= number || state.last_commit().is_none();
        if is_done { Ok(()) } else { Err(Stop::BlockOnDevice) }
    }

    /// Waits until all was written that had been changed when that number was given.
    ///
    /// # Errors
    /// As for [`is_committed`](Self::is_committed).
    pub(super) fn is_synced(&self, number: u64, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if let Some(waker) = waker {
            self.desk.get(cx).progress.register(waker, cx);
        }
        self.state.lock(cx).check_kept()?;
        let synced = self.desk.get(cx).notes.lock(cx).synced;
        if synced >= number { Ok(()) } else { Err(Stop::BlockOnDevice) }
    }
}
