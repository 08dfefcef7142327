//! [`OpenFile`], an open file description, and [`File`], what one can do with it.

use alloc::boxed::Box;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use bitflags::bitflags;
use frame::Cx;
use frame::cpu::{Count, MAX_CORES};
use frame::mm::{Reader, Writer};
use refs::{SpinGuard, SpinLock, StrongRc, TempRc, Waker, WeakRc};

use super::fasync::{Registration, SignalTarget};
use super::file_end::{OtherEnd, UnseenEnd};
use super::inode_file::InodeFile;
use super::nameless_remains;
use super::notify::{self, dnotify};
use super::{FileEnd, FileKind, FileTable, Inode, Location, UnseenContents, VfsCaller, asker_matters};
use crate::block::{Cache, Depth, DirectRead, SyncProgress};
use crate::error::{Errno, Result};
use crate::heap::object_bytes;
use crate::memory::{BackingObject, Mappable, Pages};
use crate::reclaim::Held;
use crate::step::Step;
use crate::sysctl::Tunable;
use crate::user_memory::Argument;

bitflags! {
    /// Readiness, in the bits of poll(2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Events: u32 {
        /// POLLIN.
        const IN = linux_raw_sys::general::POLLIN;
        /// POLLPRI.
        const PRIORITY = linux_raw_sys::general::POLLPRI;
        /// POLLOUT.
        const OUT = linux_raw_sys::general::POLLOUT;
        /// POLLERR.
        const ERROR = linux_raw_sys::general::POLLERR;
        /// POLLHUP.
        const HANG_UP = linux_raw_sys::general::POLLHUP;
        /// POLLNVAL.
        const INVALID = linux_raw_sys::general::POLLNVAL;
        /// POLLRDHUP.
        const READ_HANG_UP = linux_raw_sys::general::POLLRDHUP;
        /// POLLRDNORM.
        const READ_NORMAL = linux_raw_sys::general::POLLRDNORM;
        /// POLLWRNORM.
        const WRITE_NORMAL = linux_raw_sys::general::POLLWRNORM;
    }

    /// The flags of open(2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OpenFlags: u32 {
        /// O_WRONLY.
        const WRITE_ONLY = linux_raw_sys::general::O_WRONLY;
        /// O_RDWR.
        const READ_WRITE = linux_raw_sys::general::O_RDWR;
        /// O_CREAT.
        const CREATE = linux_raw_sys::general::O_CREAT;
        /// O_EXCL.
        const EXCLUSIVE = linux_raw_sys::general::O_EXCL;
        /// O_NOCTTY.
        const NO_CONTROLLING_TTY = linux_raw_sys::general::O_NOCTTY;
        /// O_TRUNC.
        const TRUNCATE = linux_raw_sys::general::O_TRUNC;
        /// O_APPEND.
        const APPEND = linux_raw_sys::general::O_APPEND;
        /// O_NONBLOCK.
        const NONBLOCK = linux_raw_sys::general::O_NONBLOCK;
        /// O_DIRECTORY.
        const DIRECTORY = linux_raw_sys::general::O_DIRECTORY;
        /// O_NOFOLLOW.
        const NO_FOLLOW = linux_raw_sys::general::O_NOFOLLOW;
        /// O_CLOEXEC.
        const CLOSE_ON_EXEC = linux_raw_sys::general::O_CLOEXEC;
        /// O_PATH.
        const PATH = linux_raw_sys::general::O_PATH;
        /// O_NOATIME.
        const NO_ATIME = linux_raw_sys::general::O_NOATIME;
        /// O_DIRECT.
        const DIRECT = linux_raw_sys::general::O_DIRECT;
        /// FASYNC.
        const ASYNC = linux_raw_sys::general::FASYNC;
        /// O_TMPFILE.
        const TEMPORARY = linux_raw_sys::general::O_TMPFILE;
        /// O_DSYNC, which is a part of O_SYNC.
        const DATA_SYNC = linux_raw_sys::general::O_DSYNC;
        /// O_LARGEFILE.
        const LARGE_FILE = linux_raw_sys::general::O_LARGEFILE;
        const _ = !0;
    }
}

/// Where lseek(2) counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lseek {
    /// The start.
    Set(i64),
    /// The current offset.
    Current(i64),
    /// The end.
    End(i64),
    /// The next data at or behind an offset.
    Data(i64),
    /// The next hole at or behind an offset.
    Hole(i64),
}

/// What one can do with an open file. Each method is a step (see [`crate::step`]): it does not suspend.
///
/// The defaults are those of a thing that cannot do it. (`Any`: calls for one kind of file only, such as `epoll_ctl`, look what it is.)
pub trait File: Any + Send + Sync {
    /// Whether anybody may see when it comes to its end who never had a descriptor of it. Asked when its description is made.
    fn end(&self) -> FileEnd;

    /// What the end of a descriptor of it is charged as. Another kind of file gets a class of its own, or one that costs no less.
    fn class(&self) -> Held;

    /// Reads at `offset` (a stream has none and ignores it): how many bytes, 0 at the end. Says `Block` where there is nothing yet. A fault of
    /// `to` behind the first byte is a short read: of a seekable file the caller gets the rest by reading on.
    fn read(&self, _offset: u64, _to: &mut Writer<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Err(Errno::EINVAL.into())
    }

    /// A call of the caller's that read it, and did not end at once, is over: what was kept for it need not be. Of seekable files only.
    fn end_read(&self, _me: &dyn VfsCaller, _cx: &Cx) {}

    /// Writes at `offset`: how many bytes. Says `Block` where there is no room yet. A fault of `from` behind the first byte is a short write.
    fn write(&self, _offset: u64, _from: &mut Reader<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Err(Errno::EINVAL.into())
    }

    /// Writes at the end (O_APPEND): how many bytes, and the offset behind them.
    fn append(&self, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<(usize, u64)> {
        Ok((self.write(0, from, me, cx)?, 0))
    }

    /// What is ready just now, of what is asked for and of what is always told (ERROR, HANG_UP). With a waker: enters it first wherever one of those may
    /// become ready. Used for poll(2) and by every blocking read and write.
    fn poll(&self, interest: Events, _waker: Option<Waker>, _cx: &Cx) -> Events {
        interest & (Events::IN | Events::OUT | Events::READ_NORMAL | Events::WRITE_NORMAL)
    }

    /// As [`poll`](Self::poll), for a caller: of files that show something of whoever asks, and have an [`AskerMatters`](super::AskerMatters).
    fn poll_for(&self, _me: &dyn VfsCaller, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.poll(interest, waker, cx)
    }

    /// What [`poll`](Self::poll) has just said did not get to a program: what it says only once it says again.
    fn poll_was_lost(&self, _events: Events) {}

    /// Writes what was written to a range of it to the device that keeps it, and waits for that: fsync(2). `progress` is the caller's, and begins as nothing. What could not be written since it was
    /// opened, or since this was last asked, is an error.
    fn sync(
        &self,
        _range: Range<u64>,
        _depth: Depth,
        _progress: &mut SyncProgress,
        _waker: Option<Waker>,
        _cx: &Cx,
    ) -> Step<()> {
        Ok(())
    }

    /// Whether each write ends with a [`sync`](Self::sync) of what it wrote, and how deep: O_DSYNC and O_DIRECT, of files that a device keeps.
    fn syncs_writes(&self) -> Option<Depth> {
        None
    }

    /// Enters a description of it where signals are sent when it becomes ready, or takes it out: O_ASYNC. False if it sends none.
    fn fasync(&self, _registration: &Registration<'_>, _cx: &Cx) -> bool {
        false
    }

    /// A process with this table closes a descriptor of it, and may have others. Asked only while there is a [`FlushWanted`](super::FlushWanted).
    fn flush(&self, _table: &WeakRc<FileTable>, _cx: &Cx) {}

    /// The flags of its description are these from now on.
    fn flags_changed(&self, _flags: OpenFlags) {}

    /// ioctl(2). Reads and writes the caller's memory by `me.memory(cx)`, at what `argument` is the address of.
    fn ioctl(&self, _request: u32, _argument: Argument, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Err(Errno::ENOTTY.into())
    }

    /// Whether what one write gives it stays together as a message.
    fn keeps_messages(&self, _cx: &Cx) -> bool {
        false
    }

    /// Whether it has [`pass_on`](Self::pass_on).
    fn passes_on(&self, _cx: &Cx) -> bool {
        false
    }

    /// Has `take` look at what would be read next, as much as fits into `buffer`, and takes out as much as it says: the rest is still there to be read. Others who read wait
    /// meanwhile. How much was taken; 0 at the end, too.
    ///
    /// # Errors
    /// Those of `take`, and what [`read`](Self::read) says where there is nothing to read; then `take` is not called.
    fn pass_on(
        &self,
        _buffer: &mut [u8],
        _take: &mut dyn FnMut(&mut Reader<'_>) -> Step<usize>,
        _cx: &Cx,
    ) -> Step<usize> {
        Err(Errno::EINVAL.into())
    }

    /// Whether [`read_past`](Self::read_past) is to be tried before [`read`](Self::read).
    fn reads_past(&self) -> bool {
        false
    }

    /// Has a device read into the caller's memory, without a copy, and waits for it: how many bytes; 0 where it must be read otherwise. `passing` is the caller's, and begins as nothing.
    ///
    /// # Errors
    /// `Absent`: it is run again with the same `passing`.
    fn read_past(
        &self,
        _offset: u64,
        _to: &mut Writer<'_>,
        _passing: &mut DirectRead,
        _me: &dyn VfsCaller,
        _cx: &Cx,
    ) -> Step<usize> {
        Ok(0)
    }

    /// Past which cache a device may take what [`write`](Self::write) gives it, from the caller's memory: whoever ends a call without a [`sync`](Self::sync) waits until that is over.
    fn passed(&self, _cx: &Cx) -> Option<WeakRc<Cache>> {
        None
    }

    /// Whether what one write(2) gives it comes in one, however many steps that takes, and others' writes wait meanwhile.
    fn writes_in_turn(&self) -> bool {
        false
    }

    /// The caller begins to write to what [`writes_in_turn`](Self::writes_in_turn), or to read at the description's offset from what [`reads_past`](Self::reads_past); or goes on.
    ///
    /// # Errors
    /// `Block` while it is another's turn.
    fn begin_turn(&self, _me: &dyn VfsCaller, _cx: &Cx) -> Step<()> {
        Ok(())
    }

    /// The caller does that no longer.
    fn end_turn(&self, _me: &dyn VfsCaller, _cx: &Cx) {}

    /// Whether reads and writes happen at an offset (and lseek, pread and pwrite work).
    fn is_seekable(&self) -> bool {
        false
    }

    /// Whether a byte that is read takes so long that large reads are cut sooner than those of files.
    fn reads_slowly(&self) -> bool {
        false
    }

    /// Whether it can be waited for: what cannot is always ready, and epoll(7) refuses it.
    fn is_pollable(&self) -> bool {
        !self.is_seekable()
    }

    /// What mmap(2) shows of it.
    fn mappable<'a>(&'a self, _cx: &'a Cx) -> Mappable<'a> {
        Mappable::No
    }

    /// About how many bytes of the kernel's memory come back when its last descriptor is closed, for the choice of who is ended when memory runs
    /// out.
    fn kernel_bytes(&self, _cx: &Cx) -> usize {
        512
    }

    /// Whether it may hold so much that it is let go of in parts, by [`release`](Self::release), before it is destroyed.
    fn has_parts(&self) -> bool {
        false
    }

    /// Lets go of a part of what it holds, small enough for one step; false if nothing is left. Its last owner is about to destroy it.
    fn release(&self, _cx: &Cx) -> bool {
        false
    }

    /// Its last owner was killed with all of its group: what would go on when the file is gone (a connection that is still to be closed in order) ends with it. [`release`](Self::release) comes next.
    fn note_kill(&self, _cx: &Cx) {}

    /// Whether `other` is the other end of the pair that it is of, and neither has become anything else since.
    fn is_other_end_of(&self, _other: &(dyn File + 'static), _cx: &Cx) -> bool {
        false
    }

    /// It is entered in a table as unseen, and counts what is in it with the rest from now on. False: it cannot, and its end is seen.
    fn join_contents(&self, _contents: &StrongRc<UnseenContents>) -> bool {
        true
    }

    /// It becomes seen, and counts what is in it by itself from now on.
    fn leave_contents(&self) {}

    /// The table has ended in which it counted what is in it with the rest, and it is about to go: how many bytes come back with what is counted. It is not told again.
    fn take_counted(&self) -> usize {
        0
    }

    /// It is open once, and its inode has no names: whether nobody sees its end, but for what the inode counts for. Then how many owners of the inode it has itself, and how many bytes come back with it at least.
    fn end_without_names(&self) -> Option<(u32, usize)> {
        None
    }

    /// Sockets: how long a call waits for one of `interest`, in nanoseconds (SO_RCVTIMEO, SO_SNDTIMEO); `None`: for ever.
    fn time_limit(&self, _interest: Events) -> Option<u64> {
        None
    }

    /// Sockets: what a write fails with that waited until nobody was left to read, instead of EPIPE with its signal.
    fn lost_reader(&self, _cx: &Cx) -> Option<Errno> {
        None
    }

    /// Whether SIGPIPE comes with EPIPE of a write.
    fn signals_broken_pipe(&self, _cx: &Cx) -> bool {
        true
    }

    /// The new offset for `lseek`; `now` is the current one.
    fn seek(&self, _to: Lseek, _now: u64, _cx: &Cx) -> Step<u64> {
        Err(Errno::ESPIPE.into())
    }
}

/// An open file description: what open(2) makes and what dup(2) and fork(2) share.
pub struct OpenFile {
    /// What it does.
    pub file: Box<dyn File>,
    /// What its descriptors are charged as.
    pub class: Held,
    /// What was opened, and through which mount.
    pub location: Location,
    /// Whether reads and writes happen at an offset.
    pub is_seekable: bool,
    /// Whether it was opened by a path, so that others may watch what is done by it.
    pub is_of_path: bool,
    /// Whether it is let go of in parts: see [`File::release`].
    pub has_parts: bool,
    /// Whether large reads are cut soon: see [`File::reads_slowly`].
    pub reads_slowly: bool,
    /// Whether large reads need no copy: see [`File::reads_past`].
    pub reads_past: bool,
    /// Whether writes do not mix ([`File::writes_in_turn`]), or each ends with a sync ([`File::syncs_writes`]).
    pub writes_in_turn: bool,
    flags: AtomicU32,
    /// Where the next read or write happens.
    pub offset: AtomicU64,
    /// Held by who moves the offset, from its look at it on: see [`hold_offset`](Self::hold_offset).
    moving: SpinLock<()>,
    /// Whom its signals go to (F_SETOWN).
    pub(super) owner: SpinLock<Option<StrongRc<dyn SignalTarget>>>,
    /// Whether it ever asked for notifications (F_NOTIFY).
    pub(super) has_watched: AtomicBool,
    /// Who watches the file was told of the description's end, or is not to be told.
    pub(super) end_is_told: AtomicBool,
    /// Which signal that is (F_SETSIG).
    pub(super) io_signal: AtomicU8,
    /// Whether it is among those that share a lock on the whole file: see [`FileLocks::lock_whole`](super::FileLocks::lock_whole).
    pub shares_lock: AtomicBool,
    /// How many of its owners are messages: see [`super::in_flight`].
    pub(super) in_flight: AtomicU32,
    /// Who sees its end.
    pub(super) end: UnseenEnd,
}

/// So many bytes of the heap a description takes at least.
const DESCRIPTION_BYTES: usize = object_bytes::<OpenFile>();

/// How many of them are left of tables that have ended.
static LEFT_FILES: AtomicUsize = AtomicUsize::new(0);
/// How many there are.
static OPEN_FILES: Count<APART> = Count::new();
/// So many a core counts for itself.
const APART: isize = 16;
/// How many open files there may be (`/proc/sys/fs/file-max`): as many as suit the memory, unless somebody says.
pub static FILE_MAX: Tunable = Tunable::new(AUTOMATIC, 1..=i64::MAX as u64);
const AUTOMATIC: u64 = 0;
/// So many there may be however little memory there is, unless somebody says.
const FEWEST: usize = 8192;
const _: () = assert!(MAX_CORES as isize * APART <= FEWEST as isize / 2, "half as many are seen in time");

impl OpenFile {
    /// Lets each core count for itself. At boot.
    pub fn start_counting() {
        OPEN_FILES.make_parts();
    }

    /// How many open files there are in the system, with those that are closed and not destroyed yet, but without what [nobody sees](super::table_remains).
    pub fn count() -> usize {
        usize::try_from(OPEN_FILES.sum()).unwrap_or(0).saturating_sub(LEFT_FILES.load(Ordering::Relaxed))
    }

    /// Whether its end may be unseen in some table.
    #[inline(always)]
    pub fn is_unseen_anywhere(&self) -> bool {
        self.end.bytes() != 0
    }

    /// So many are only left to be destroyed some time.
    pub(super) fn leave(count: usize) {
        LEFT_FILES.fetch_add(count, Ordering::Relaxed);
    }

    /// The two ends of a pair, which are about to be entered in one table under `fds`.
    pub(super) fn pair(mut ends: [OpenFile; 2], fds: [usize; 2]) -> [OpenFile; 2] {
        if let [FileEnd::UnseenBy { bytes: first }, FileEnd::UnseenBy { bytes: second }] =
            [ends[0].file.end(), ends[1].file.end()]
        {
            let is_next = fds[1] == fds[0] + 1;
            let others = if is_next { [OtherEnd::Next, OtherEnd::Before] } else { [OtherEnd::Elsewhere; 2] };
            ends[0].end = UnseenEnd::of_pair(DESCRIPTION_BYTES + first, others[0]);
            ends[1].end = UnseenEnd::of_pair(DESCRIPTION_BYTES + second, others[1]);
        }
        ends
    }

    /// Keeps others from moving the offset, for a step that begins there and moves it: read(2) and write(2) of processes that share the description do not
    /// overlap (POSIX, 2.9.7). `None` where the step is alone anyway.
    #[inline(always)]
    pub fn hold_offset<'a>(&'a self, cx: &'a Cx) -> Option<SpinGuard<'a, ()>> {
        (frame::cpu::count() > 1 && self.is_seekable).then(|| self.moving.lock(cx))
    }

    /// How many there may be: so many that they take about a tenth of memory (`/proc/sys/fs/file-max`), or root's as well.
    pub fn most() -> usize {
        let chosen = FILE_MAX.get() as usize;
        if chosen != AUTOMATIC as usize {
            return chosen;
        }
        (frame::mm::frame_count() * 4 / 10).max(FEWEST)
    }

    /// Whether there are as many as there may be.
    #[inline]
    pub fn are_too_many() -> bool {
        // The usual case needs no look at the memory, nor at what the other cores count for themselves.
        let may_be = OPEN_FILES.about() >= FEWEST as isize / 2 || FILE_MAX.get() != AUTOMATIC;
        may_be && Self::count() >= Self::most()
    }

    /// What is ready for a caller: [`File::poll_for`].
    #[inline(always)]
    pub fn poll_for(&self, me: &dyn VfsCaller, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if asker_matters() { self.file.poll_for(me, interest, waker, cx) } else { self.file.poll(interest, waker, cx) }
    }

    /// The file, if it is of that kind.
    pub fn kind<T: File>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.file;
        any.downcast_ref()
    }

    /// A description of a `file` that needs no inode of its own, at offset 0.
    pub fn new(file: Box<dyn File>, flags: OpenFlags) -> Self {
        Self::at(file, flags, super::anonymous::shared_location())
    }

    /// A description of `file`, which is what was opened at `location`, at offset 0. Where the inode is a regular file and the flags
    /// say that it will be written, the caller has called [`Location::begin_writing`]; this takes it back in the end.
    pub fn at(file: Box<dyn File>, flags: OpenFlags, location: Location) -> Self {
        Self::with_file(file, flags, location, false)
    }

    /// As [`at`](Self::at), of what is opened by a path.
    pub fn of_path(file: Box<dyn File>, flags: OpenFlags, location: Location) -> Self {
        Self::with_file(file, flags, location, true)
    }

    #[inline(always)]
    fn with_file(file: Box<dyn File>, flags: OpenFlags, location: Location, is_of_path: bool) -> Self {
        let (reads_slowly, reads_past) = (file.reads_slowly(), file.reads_past());
        let writes_in_turn = file.writes_in_turn() || file.syncs_writes().is_some();
        let (is_seekable, has_parts) = (file.is_seekable(), file.has_parts());
        let unseen_bytes = match file.end() {
            FileEnd::Unseen { bytes } => DESCRIPTION_BYTES + bytes,
            // Without the other end.
            FileEnd::Seen | FileEnd::UnseenBy { .. } => 0,
        };
        let mut open = Self::of(file, is_seekable, has_parts, flags, location, is_of_path);
        open.end = UnseenEnd::new(unseen_bytes);
        (open.reads_slowly, open.reads_past, open.writes_in_turn) = (reads_slowly, reads_past, writes_in_turn);
        open
    }

    /// A description of the content that the inode at `location` keeps, which is opened by a path: as [`of_path`](Self::of_path) with a [`InodeFile`].
    #[inline]
    pub fn stored(flags: OpenFlags, location: Location) -> Self {
        let file = InodeFile::new(location.inode.share());
        let (is_seekable, has_parts) = (file.is_seekable(), file.has_parts());
        Self::of(Box::new(file), is_seekable, has_parts, flags, location, true)
    }

    #[inline(always)]
    fn of(
        file: Box<dyn File>,
        is_seekable: bool,
        has_parts: bool,
        flags: OpenFlags,
        location: Location,
        is_of_path: bool,
    ) -> Self {
        OPEN_FILES.add(1);
        if flags.only_reads() {
            location.inode.with(Inode::begin_reading);
        }
        OpenFile {
            end: UnseenEnd::new(0),
            class: file.class(),
            is_seekable,
            has_parts,
            reads_slowly: false,
            reads_past: false,
            writes_in_turn: false,
            file,
            location,
            flags: AtomicU32::new(flags.bits()),
            offset: AtomicU64::new(0),
            moving: SpinLock::new(()),
            owner: SpinLock::new(None),
            io_signal: AtomicU8::new(0),
            has_watched: AtomicBool::new(false),
            end_is_told: AtomicBool::new(false),
            shares_lock: AtomicBool::new(false),
            is_of_path,
            in_flight: AtomicU32::new(0),
        }
    }

    /// Its flags.
    #[inline(always)]
    pub fn flags(&self) -> OpenFlags {
        OpenFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Its flags as programs are told: what was opened by a path always has O_LARGEFILE on a processor of 64 bits.
    pub fn reported_flags(&self, cx: &Cx) -> OpenFlags {
        let inode = self.location.inode.get(cx);
        let mut flags = self.flags();
        flags.set(OpenFlags::LARGE_FILE, inode.ops.anonymous_name(&inode).is_none());
        flags
    }

    /// Whether nobody sees when exactly it comes to its end, once no descriptor leads to it. Who counts who reads a file (`is_open_once`) or who uses a mount sees to it
    /// first that all has come to its end that was closed.
    #[inline]
    pub fn end_is_unseen(&self) -> bool {
        let only_reads = self.flags().only_reads() || self.flags().contains(OpenFlags::PATH);
        let is_watched = self.has_watched.load(Ordering::Relaxed) || notify::is_anything_watched();
        only_reads && !is_watched && self.location.stays()
    }

    /// Changes its flags (F_SETFL).
    pub fn set_flags(&self, flags: OpenFlags) {
        self.flags.store(flags.bits(), Ordering::Relaxed);
        self.file.flags_changed(flags);
    }

    /// Notes that it was read just now, unless it is a device or its flags or its mount say that nobody wants to know.
    #[inline(always)]
    pub fn touch_accessed(&self, cx: &Cx) {
        let inode = self.location.inode.get(cx);
        if !matches!(inode.kind, FileKind::CharacterDevice | FileKind::BlockDevice)
            && !self.flags().contains(OpenFlags::NO_ATIME)
        {
            self.location.mount.get(cx).touch_accessed(&inode, cx);
        }
    }

    /// What was opened.
    #[inline(always)]
    pub fn inode<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Inode>> {
        Ok(self.location.inode.get(cx))
    }
}

impl BackingObject for OpenFile {
    fn end_is_unseen(&self) -> bool {
        OpenFile::end_is_unseen(self)
    }

    fn pages<'a>(&'a self, cx: &'a Cx) -> Option<&'a dyn Pages> {
        match self.file.mappable(cx) {
            Mappable::Pages(pages) | Mappable::ReadOnly(pages) => Some(pages),
            Mappable::No | Mappable::Zeros => None,
        }
    }

    fn synchronise(&self, range: Range<u64>, progress: &mut SyncProgress, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        self.file.sync(range, Depth::Kept, progress, waker, cx)
    }
}

/// Has each core look at the descriptions that were closed there and are [kept at hand](OpenFile::end_is_unseen): what they have open may have lost its last name, and ends
/// with the last of them.
pub fn look_for_closed() {
    for core in 0..frame::cpu::count() {
        if refs::reclaim::look(core) {
            // In user mode or idle it comes by only if it is called; this one does anyway.
            frame::cpu::interrupt(core);
        }
    }
}

impl OpenFile {
    /// It ends, was left before, or leaves what it has open.
    #[inline(always)]
    fn end_specially(&mut self) {
        if self.end.is_left() {
            LEFT_FILES.fetch_sub(1, Ordering::Relaxed);
        }
        if self.end.leaves_nameless() {
            nameless_remains::leave(&mut self.file, &self.location.inode);
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        OPEN_FILES.add(-1);
        if self.end.is_special() {
            self.end_specially();
        }
        if notify::is_anything_watched() {
            self.end_with_watchers();
        }
        if self.has_watched.load(Ordering::Relaxed) {
            dnotify::forget(self);
        }
        if self.shares_lock.load(Ordering::Relaxed) {
            self.location.inode.with(|inode| inode.locks.description_ends(&self.shares_lock));
        }
        let flags = self.flags();
        if flags.only_reads() {
            self.location.inode.with(Inode::end_reading);
        } else if !flags.contains(OpenFlags::PATH) {
            self.location.end_writing();
        }
    }
}

impl OpenFlags {
    /// Whether it is opened for reading.
    #[inline(always)]
    pub fn can_read(self) -> bool {
        !self.contains(OpenFlags::WRITE_ONLY)
    }

    /// Whether it is opened for reading and not for writing.
    #[inline(always)]
    pub fn only_reads(self) -> bool {
        !self.intersects(OpenFlags::WRITE_ONLY.union(OpenFlags::READ_WRITE).union(OpenFlags::PATH))
    }

    /// Whether it is opened for writing.
    #[inline(always)]
    pub fn can_write(self) -> bool {
        self.intersects(OpenFlags::WRITE_ONLY.union(OpenFlags::READ_WRITE))
    }
}
