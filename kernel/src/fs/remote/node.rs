//! [`Node`]: a file of a server's.
//!
//! Locks: `state`, `names` and `fid` of a node are taken alone; a page cache's behind `state`. What the VFS asks of a node is in `operations`.

mod operations;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame};
use ninep::{Attributes, Time};
use refs::{SpinLock, StrongRc, TempRc, WaitList, Waker, WeakRc};
use tasks::TaskRef;

use super::calls::{Answer, Before, Question};
use super::device::Content;
use super::listing::Listing;
use super::session::Fid;
use super::volume::Volume;
use crate::block::{Cache, ReadAhead};
use crate::error::{Errno, Result};
use crate::fs::known_names::KnownNames;
use crate::fs::{Dentry, FileKind, Inode, Metadata, Named};
use crate::memory::Mapped;
use crate::step::{Step, Stop};

const PAGE: u64 = PAGE_SIZE as u64;
/// Old metadata are asked for again after so many nanoseconds, where nobody waits for them.
const RENEWED: u64 = 500_000_000;

/// How long a file is, as far as is known.
#[derive(Default)]
pub struct Size(AtomicU64);

impl Size {
    /// In bytes.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// It is so long now.
    pub fn set(&self, size: u64) {
        self.0.store(size, Ordering::Relaxed);
    }

    /// It is at least so long.
    pub fn grow(&self, size: u64) {
        self.0.fetch_max(size, Ordering::Relaxed);
    }
}

/// What is known of a name of a directory.
#[derive(Clone, Copy)]
struct Known {
    /// What it leads to; `None`: there is no such name.
    number: Option<u64>,
    since: u64,
}

/// The content of a regular file that is open at the server.
struct OpenPages {
    fid: StrongRc<Fid>,
    cache: StrongRc<Cache>,
}

impl Drop for OpenPages {
    fn drop(&mut self) {
        self.cache.with(Cache::close);
    }
}

#[derive(Default)]
struct State {
    /// When its metadata were asked for; 0: they are to be asked for.
    since: u64,
    /// When they were last asked for by [`Node::renew`].
    renewed: u64,
    /// When it was changed last, and its length: as the server said. (Not when it was modified: programs set that as they like.)
    seen: (Time, u64),
    pages: Option<OpenPages>,
    /// Open for writing.
    writer: Option<StrongRc<Fid>>,
    /// Who made it just now, and need not ask in order to open it; and when.
    made_by: Option<(TaskRef, u64)>,
    /// Who set which length, and when.
    set_by: Option<(TaskRef, u64, u64)>,
}

/// A file of a server's.
pub struct Node {
    volume: WeakRc<Volume>,
    own_name: SpinLock<Option<WeakRc<Inode>>>,
    /// Stands for it, by the name that was looked up last.
    fid: SpinLock<StrongRc<Fid>>,
    /// The directory that it is in, which is there as long as it is.
    parent: SpinLock<Option<StrongRc<Inode>>>,
    state: SpinLock<State>,
    size: StrongRc<Size>,
    /// Whether a change of its content is under way at the server: they come one after the other, so that what is here is what was written last there.
    is_changing: SpinLock<bool>,
    changed: WaitList,
    /// How often it was changed from here.
    changes: AtomicU64,
    /// How many descriptions can write it.
    writers: AtomicUsize,
    /// Which entry of the volume's was its last.
    pub entered: AtomicU64,
    /// It has lost its last name, or maybe: its number may be another file's.
    is_gone: AtomicBool,
    ahead: ReadAhead,
    mapped: Mapped,
    is_regular: bool,
    /// Where a symbolic link leads.
    target: Vec<u8>,
    names: KnownNames<Known>,
    listing: SpinLock<Option<StrongRc<Listing>>>,
}

impl Node {
    /// A file that `fid` stands for.
    pub fn new(
        volume: WeakRc<Volume>,
        all_names: StrongRc<AtomicUsize>,
        fid: StrongRc<Fid>,
        parent: Option<StrongRc<Inode>>,
        attributes: &Attributes,
        target: Vec<u8>,
    ) -> Self {
        let size = Size::default();
        size.set(attributes.size);
        let state =
            State { since: frame::time::now(), seen: (attributes.changed, attributes.size), ..State::default() };
        Node {
            volume,
            own_name: SpinLock::new(None),
            fid: SpinLock::new(fid),
            parent: SpinLock::new(parent),
            state: SpinLock::new(state),
            size: StrongRc::new(size),
            is_changing: SpinLock::new(false),
            changed: WaitList::new(),
            changes: AtomicU64::new(0),
            writers: AtomicUsize::new(0),
            entered: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            ahead: ReadAhead::default(),
            mapped: Mapped::default(),
            is_regular: FileKind::of_mode(attributes.mode) == Some(FileKind::Regular),
            target,
            names: KnownNames::new(all_names),
            listing: SpinLock::new(None),
        }
    }

    /// The node of an inode.
    ///
    /// # Errors
    /// EXDEV: it is another file system's.
    pub fn of(inode: &Inode) -> Result<&Node> {
        inode.ops_as::<Node>().ok_or(super::file::OTHER_SYSTEM)
    }

    /// The volume.
    ///
    /// # Errors
    /// EIO: it is gone.
    pub fn volume<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Volume>> {
        self.volume.upgrade(cx).map_err(|_| Errno::EIO)
    }

    /// What stands for it.
    pub fn fid(&self, cx: &Cx) -> StrongRc<Fid> {
        self.fid.lock(cx).share()
    }

    /// Another fid stands for it from now on.
    pub fn replace_fid(&self, fid: StrongRc<Fid>, cx: &Cx) {
        let old = core::mem::replace(&mut *self.fid.lock(cx), fid);
        drop(old);
    }

    /// How often it was changed from here.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Begins a change of its content, until [`end_change`](Self::end_change). While another one is under way, the waker is called at its end.
    pub fn begin_change(&self, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        if let Some(waker) = waker {
            self.changed.register(waker, cx);
        }
        let was_changing = core::mem::replace(&mut *self.is_changing.lock(cx), true);
        if was_changing { Err(Stop::BlockOnDevice) } else { Ok(()) }
    }

    /// The next one may begin.
    pub fn end_change(&self, cx: &Cx) {
        *self.is_changing.lock(cx) = false;
        self.changed.wake_all();
    }

    /// It is being changed, or was: what was asked before is not as it is now.
    pub fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// One more description can write it.
    pub fn begin_writing(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// One less: with the last the server closes it, so that it can be run there.
    pub fn end_writing(&self) {
        if self.writers.fetch_sub(1, Ordering::Relaxed) == 1 {
            drop(self.state.with(|state| state.writer.take()));
        }
    }

    /// What is open for writing.
    pub fn writer(&self, cx: &Cx) -> Option<StrongRc<Fid>> {
        self.state.lock(cx).writer.as_ref().map(StrongRc::share)
    }

    /// It is open for writing by that, unless it is already.
    pub fn set_writer(&self, fid: StrongRc<Fid>, cx: &Cx) {
        let mut fid = Some(fid);
        let mut state = self.state.lock(cx);
        if state.writer.is_none() {
            state.writer = fid.take();
        }
        drop(state);
    }

    /// Whether it is open for reading.
    pub fn has_reader(&self, cx: &Cx) -> bool {
        self.state.lock(cx).pages.is_some()
    }

    /// It is open for reading by that, unless it is already.
    pub fn set_reader(&self, fid: StrongRc<Fid>, cx: &Cx) -> Result<()> {
        let pages = self.new_pages(fid, cx)?;
        let mut pages = Some(pages);
        let mut state = self.state.lock(cx);
        if state.pages.is_none() {
            state.pages = pages.take();
        }
        drop(state);
        Ok(())
    }

    fn new_pages(&self, fid: StrongRc<Fid>, cx: &Cx) -> Result<OpenPages> {
        let session = self.volume(cx)?.session;
        let content = Content { session, fid: fid.share(), size: self.size.share() };
        Ok(OpenPages { fid, cache: Cache::new(Box::new(content), cx) })
    }

    /// The pages that were read are not what is there now. Those that are being read at this time are, neither.
    fn forget_pages(&self, cx: &Cx) -> Result<()> {
        let fid = self.state.lock(cx).pages.as_ref().map(|pages| pages.fid.share());
        let Some(fid) = fid else { return Ok(()) };
        let new = self.new_pages(fid, cx)?;
        let old = self.state.lock(cx).pages.replace(new);
        drop(old);
        Ok(())
    }

    /// Who made it need not ask to open it.
    pub fn made_by(&self, maker: TaskRef, cx: &Cx) {
        self.state.lock(cx).made_by = Some((maker, frame::time::now()));
    }

    /// It may have lost its last name.
    pub fn note_gone(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Whether that is so.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Its metadata are to be asked for again.
    pub fn expire(&self, cx: &Cx) {
        self.state.lock(cx).since = 0;
    }

    /// What the server says of it. `changes` is what [`changes`](Self::changes) was before it was asked: what was changed meanwhile counts more.
    pub fn update(&self, this: &Inode, attributes: &Attributes, mut metadata: Metadata, changes: Option<u64>, cx: &Cx) {
        if changes.is_some_and(|changes| changes != self.changes()) {
            return;
        }
        let seen = (attributes.changed, attributes.size);
        let mut state = self.state.lock(cx);
        let is_other = core::mem::replace(&mut state.seen, seen) != seen;
        state.since = frame::time::now();
        // What was open may be another file that had this number. It is opened anew when it is needed.
        let old = if is_other && self.is_regular && self.writers.load(Ordering::Relaxed) == 0 {
            state.pages.take()
        } else {
            None
        };
        drop(state);
        drop(old);
        if is_other {
            if self.is_regular {
                // Without pages there is nothing that could fail.
                let _ = self.forget_pages(cx);
            } else {
                self.forget_listing(cx);
            }
        }
        self.size.get(cx).set(attributes.size);
        this.change_kept(cx, |now| {
            metadata.born = now.born;
            *now = metadata;
        });
    }

    /// It was found under `name` in `directory`, maybe for the first time.
    ///
    /// # Errors
    /// EIO: a directory would be in itself. `Again`: nobody owns the directory any more.
    pub fn is_at(&self, this: &TempRc<'_, Inode>, directory: &TempRc<'_, Inode>, name: &[u8], cx: &Cx) -> Step<()> {
        {
            let dentry = this.dentry.lock(cx);
            if dentry.is(directory, name) && !dentry.is_removed {
                return Ok(());
            }
        }
        let owner = directory.share().ok_or(Stop::Again)?;
        let volume = self.volume(cx)?;
        let moving = (this.kind == FileKind::Directory).then(|| volume.moving.lock(cx));
        if moving.is_some() && Inode::is_within(directory, this, cx) {
            return Err(Errno::EIO.into());
        }
        *this.dentry.lock(cx) = Dentry::new(directory, name);
        drop(moving);
        let old = self.parent.lock(cx).replace(owner);
        drop(old);
        Ok(())
    }

    /// How often names of it were [changed](Self::name_changed) or forgotten so far.
    pub fn name_changes(&self, name: &[u8], cx: &Cx) -> u64 {
        self.names.get(name, cx).1
    }

    /// Remembers what a name leads to, if no name was changed since there had been so many [changes](Self::name_changes): what the server said may be from before.
    pub fn remember(&self, name: &[u8], number: Option<u64>, changes: u64, cx: &Cx) {
        self.names.remember(name, Known { number, since: frame::time::now() }, Some(changes), cx);
    }

    /// Forgets a name.
    pub fn forget_name(&self, name: &[u8], cx: &Cx) {
        self.names.forget(name, cx);
    }

    /// A name of it was made, removed or moved: what it leads to now.
    pub fn name_changed(&self, name: &[u8], number: Option<u64>, cx: &Cx) {
        self.names.forget(name, cx);
        self.names.remember(name, Known { number, since: frame::time::now() }, None, cx);
        self.forget_listing(cx);
        self.expire(cx);
    }

    fn forget_listing(&self, cx: &Cx) {
        // It ends with nothing locked.
        let old = self.listing.lock(cx).take();
        drop(old);
    }

    /// The names are these.
    pub fn set_listing(&self, listing: StrongRc<Listing>, cx: &Cx) {
        let old = self.listing.lock(cx).replace(listing);
        drop(old);
    }

    /// Bytes were written from `offset` on, which are at the start of `frames`: pages that are here show them.
    pub fn was_written(&self, offset: u64, bytes: usize, frames: &[UFrame], cx: &Cx) -> Result<()> {
        let (old, end) = (self.size.get(cx).get(), offset + bytes as u64);
        self.size.get(cx).grow(end);
        let cache = self.state.lock(cx).pages.as_ref().map(|pages| pages.cache.get(cx));
        let Some(cache) = cache else { return Ok(()) };
        let mut here = 0;
        let first = offset / PAGE;
        let all = first..end.div_ceil(PAGE);
        cache.each_present(
            all.clone(),
            &mut |index, page| {
                here += u64::from(index < old.div_ceil(PAGE));
                copy_into(index * PAGE, &page, offset, bytes, frames);
            },
            cx,
        );
        // One that is not here may be read just now, as it was before.
        let were = all.end.min(old.div_ceil(PAGE)).saturating_sub(first);
        if here < were { self.forget_pages(cx) } else { Ok(()) }
    }

    /// Its length was set to this.
    pub fn was_resized(&self, size: u64, cx: &Cx) -> Result<()> {
        let old = self.size.get(cx).get();
        self.size.get(cx).set(size);
        if size < old { self.forget_pages(cx) } else { Ok(()) }
    }

    /// The pages, which the server must have open.
    fn cache<'cx>(&self, cx: &'cx Cx) -> Step<TempRc<'cx, Cache>> {
        if let Some(cache) = self.cache_here(cx) {
            return Ok(cache);
        }
        self.volume(cx)?.ask(Question::Open { inode: self.name(cx)?, writes: false }, cx)?;
        self.cache_here(cx).ok_or(Stop::Again)
    }

    fn cache_here<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, Cache>> {
        self.state.lock(cx).pages.as_ref().map(|pages| pages.cache.get(cx))
    }

    /// Its inode's name.
    fn name(&self, cx: &Cx) -> Result<WeakRc<Inode>> {
        self.own_name.lock(cx).ok_or(Errno::EIO)
    }

    /// It is the node of that inode.
    pub fn is_of(&self, inode: WeakRc<Inode>, cx: &Cx) {
        *self.own_name.lock(cx) = Some(inode);
    }

    /// Somebody looks at its metadata, and cannot wait: if they are old they are asked for, so that who looks at an open file again and again sees it grow.
    fn renew(&self, cx: &Cx) {
        let (Ok(volume), Ok(inode)) = (self.volume(cx), self.name(cx)) else { return };
        let now = frame::time::now();
        let mut state = self.state.lock(cx);
        if volume.session.is_valid(state.since) || now.saturating_sub(state.renewed) < RENEWED {
            return;
        }
        state.renewed = now;
        drop(state);
        volume.begin(Question::Attributes { inode }, cx);
    }

    /// Asks for a name to be taken out.
    fn remove(&self, at: &Named<'_, '_>, is_directory: bool, cx: &Cx) -> Step<()> {
        at.check(at.inode)?;
        let question = Question::Unlink { directory: at.directory.downgrade(), name: at.name.into(), is_directory };
        let before = || alloc::vec![Before::of(at.directory, at.name, at.inode)];
        self.change(question, before, cx).map(|_| ())
    }

    /// The fresh inode of a name, as far as it is known. `None`: it must be asked for.
    fn known<'cx>(&self, name: &[u8], volume: &Volume, cx: &'cx Cx) -> Option<Step<TempRc<'cx, Inode>>> {
        let known = self.names.get(name, cx).0?;
        let Some(number) = known.number else {
            return volume.session.is_still_absent(known.since).then_some(Err(Errno::ENOENT.into()));
        };
        if !volume.session.is_valid(known.since) {
            return None;
        }
        let inode = volume.inode(number, cx)?;
        let is_fresh = Node::of(&inode).is_ok_and(|node| volume.session.is_valid(node.state.lock(cx).since));
        is_fresh.then_some(Ok(inode))
    }

    /// Asks for a change of names.
    fn change(&self, question: Question, before: impl FnOnce() -> Vec<Before>, cx: &Cx) -> Step<Answer> {
        self.volume(cx)?.ask_with(question, || Ok(Vec::new()), before, cx)
    }
}

/// Copies what was written into a page of the cache, whose first byte is at `page_at` in the file.
fn copy_into(page_at: u64, page: &UFrame, offset: u64, bytes: usize, frames: &[UFrame]) {
    let (start, end) = (offset.max(page_at), (offset + bytes as u64).min(page_at + PAGE));
    let mut at = start;
    while at < end {
        let from = (at - offset) as usize;
        let len = (PAGE_SIZE - from % PAGE_SIZE).min((end - at) as usize);
        let to = (at - page_at) as usize;
        if let Some(frame) = frames.get(from / PAGE_SIZE) {
            let within = from % PAGE_SIZE;
            // Both are memory of the kernel's, which does not fault.
            let _ = frame.reader(within..within + len).copy_to(&mut page.writer(to..to + len));
        }
        at += len as u64;
    }
}
