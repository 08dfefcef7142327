//! [`Volume`]: a server's directory that is mounted.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::PAGE_SIZE;
use ninep::Attributes;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::calls::{Answer, Before, Calls, NO_CALL, Payload, Progress, Question};
use super::node::Node;
use super::perform::Job;
use super::removals::Removals;
use super::session::{Fid, Session};
use crate::error::{Errno, Result};
use crate::fs::types::OnServer;
use crate::fs::{Dentry, DeviceNumber, FileKind, FileSystem, Inode, InodeCache, Instance, Kept, Metadata, Timestamp};
use crate::sched::{self, Parameters};
use crate::step::{Absent, Source, Step, Stop, at_once};
use refs::Waker;

/// What statfs(2) tells, as Linux does.
const MAGIC: u32 = 0x0102_1997;
/// Who owns what belongs to nobody who is known here.
const NOBODY: u32 = 65534;

/// A server's directory that is mounted.
///
/// Owner: its [`FileSystem`]. Its end frees its inodes; whoever waits for answers is told EIO.
pub struct Volume {
    name: WeakRc<Volume>,
    /// The server.
    pub session: &'static Session,
    file_system: WeakRc<FileSystem>,
    inodes: InodeCache,
    /// What is asked.
    pub calls: Calls,
    /// Which of its files are losing names.
    pub removals: Removals,
    entries: AtomicU64,
    /// Held by who moves a directory in the tree, from the look that it is not in itself on.
    pub moving: SpinLock<()>,
    /// How many names its directories remember.
    pub names: StrongRc<AtomicUsize>,
    /// Whose files of the server's are root's here, user and group; `None`: everybody has the same number there and here.
    root_owner: Option<(u32, u32)>,
}

/// How a file was seen that is entered.
#[derive(Clone, Copy)]
pub enum Seen {
    /// It was found, with that many [changes](Node::changes) before it was asked about, if it was here.
    Found(Option<u64>),
    /// It was made just now: an inode of its number is that of a file that is gone, unless it was entered since there were so many [entries](Volume::entries).
    Made(u64),
}

impl Kept for Volume {}

impl Source for Volume {
    fn watch(&self, what: u64, waker: Waker, cx: &Cx) {
        self.calls.waiting(what).register(waker, cx);
    }
}

/// The options of mount(2): those of Linux's 9p are accepted, which say what is so anyway. `hostuid` and `hostgid`: whose files are root's.
///
/// # Errors
/// EINVAL.
fn root_owner(options: &[u8]) -> Result<Option<(u32, u32)>> {
    let (mut uid, mut gid) = (None, None);
    for option in options.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
        let text = core::str::from_utf8(option).map_err(|_| Errno::EINVAL)?;
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let number = || value.parse::<u32>().map_err(|_| Errno::EINVAL);
        match key {
            "hostuid" => uid = Some(number()?),
            "hostgid" => gid = Some(number()?),
            "defaults" | "ro" | "rw" | "trans" | "version" | "msize" | "cache" | "access" | "aname" | "uname"
            | "nodevmap" => {}
            _ => return Err(Errno::EINVAL),
        }
    }
    Ok(uid.map(|uid| (uid, gid.unwrap_or(uid))))
}

/// Makes an instance of a server's directory.
///
/// # Errors
/// ENXIO: there is no such server. EINVAL: options that are not understood.
pub fn mount(request: &OnServer<'_>, cx: &Cx) -> Step<Instance> {
    let root_owner = root_owner(request.options)?;
    let session = super::session(request.name, cx).ok_or(Errno::ENXIO)?;
    let mut shown = b",trans=virtio".to_vec();
    if !request.options.is_empty() {
        shown.push(b',');
        shown.extend_from_slice(request.options);
    }
    let file_system = FileSystem::new("9p", MAGIC, shown);
    let volume = StrongRc::new_cyclic(|name| Volume {
        name,
        session,
        file_system: file_system.downgrade(),
        inodes: InodeCache::of_owners(),
        calls: Calls::default(),
        removals: Removals::default(),
        entries: AtomicU64::new(0),
        moving: SpinLock::new(()),
        names: StrongRc::new(AtomicUsize::new(0)),
        root_owner,
    });
    let root = {
        let space = &session.space;
        let pages = |blocks: u64| (blocks.saturating_mul(space.block_bytes.into()) / PAGE_SIZE as u64).max(1);
        let file_system = file_system.get(cx);
        for (figure, value) in [
            (&file_system.capacity.pages, pages(space.blocks)),
            (&file_system.capacity.used_pages, pages(space.blocks.saturating_sub(space.available_blocks))),
            (&file_system.capacity.inodes, space.files),
            (&file_system.capacity.used_inodes, space.files.saturating_sub(space.free_files)),
        ] {
            figure.store(value, Ordering::Relaxed);
        }
        let volume = volume.get(cx);
        if volume.metadata(&session.root)?.mode & linux_raw_sys::general::S_IFMT != FileKind::Directory.mode_bits() {
            return Err(Errno::ENOTDIR.into());
        }
        volume.enter(None, session.root_fid(), &session.root, Vec::new(), Seen::Found(None), cx)?
    };
    file_system.with(|file_system| file_system.keep(volume.unsize(|volume| volume)));
    Ok((file_system, root))
}

/// What came of a question, where it was about what its names lead to now.
///
/// # Errors
/// `Again` where it was not; the server's.
pub fn current(outcome: Result<Answer>) -> Step<Answer> {
    match outcome? {
        Answer::Stale => Err(Stop::Again),
        answer => Ok(answer),
    }
}

impl Volume {
    /// Asks the server, or says how it went if it was asked. `payload` is what belongs to the question, `before` what names lead to that it changes.
    ///
    /// # Errors
    /// `Absent` until it is over; `Again` if names are to be looked up anew; the server's.
    pub fn ask_with(
        &self,
        question: Question,
        payload: impl FnOnce() -> Step<Payload>,
        before: impl FnOnce() -> Vec<Before>,
        cx: &Cx,
    ) -> Step<Answer> {
        // What the question needs may have to be made accessible first.
        let payload = match self.calls.take(&question, cx) {
            Some(outcome) => return current(outcome),
            None if self.calls.is_under_way(&question, cx) => None,
            None => {
                crate::memory::admit()?;
                Some(payload()?)
            }
        };
        let number = match (self.calls.enter(&question, before, cx), payload) {
            (Progress::Answered(outcome), _) => return current(outcome),
            (Progress::New(number), Some(payload)) => {
                self.start(question, payload, number, cx);
                number
            }
            (Progress::New(_), None) => {
                // It was forgotten just now, and is asked anew with what belongs to it.
                self.calls.forget(&question, cx);
                return Err(Stop::Again);
            }
            (Progress::UnderWay(number), _) => number,
        };
        let this = self.name.upgrade(cx).map_err(|_| Errno::EIO)?;
        Err(Stop::Absent(Absent::note(this.unsize::<dyn Source>(|volume| volume, cx).downgrade(), number, cx)))
    }

    /// Has a question answered whose answer nobody waits for: what comes of it is entered.
    pub fn begin(&self, question: Question, cx: &Cx) {
        self.start(question, Vec::new(), NO_CALL, cx);
    }

    fn start(&self, question: Question, payload: Payload, number: u64, cx: &Cx) {
        let asker = tasks::current(cx);
        let job = Job { volume: self.name, session: self.session, question, payload, asker, number };
        tasks::spawn(&sched::SCHEDULER, Box::new(job), |words, _| {
            sched::initialise(words, Parameters::default(), None);
        });
    }

    /// As [`ask_with`](Self::ask_with), for a question that changes no names and needs nothing else.
    ///
    /// # Errors
    /// As for `ask_with`.
    pub fn ask(&self, question: Question, cx: &Cx) -> Step<Answer> {
        self.ask_with(question, || Ok(Vec::new()), Vec::new, cx)
    }

    /// How often a file was entered.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    fn next_entry(&self) -> u64 {
        self.entries.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The inode that is the answer; it is there until the next suspension.
    ///
    /// # Errors
    /// EIO: another answer.
    pub fn found<'cx>(&self, answer: Answer, cx: &'cx Cx) -> Step<TempRc<'cx, Inode>> {
        let Answer::Found(inode) = answer else { return Err(Errno::EIO.into()) };
        let found = inode.get(cx);
        // While it is owned here it is not thrown out, and afterwards it counts as found.
        self.inodes.get(found.number, cx);
        Ok(found)
    }

    /// The inode of that number, if it is here.
    pub fn inode<'cx>(&self, number: u64, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        self.inodes.get(number, cx)
    }

    /// The same, for who is to own it.
    pub fn own_inode(&self, number: u64, cx: &Cx) -> Option<StrongRc<Inode>> {
        self.inodes.own(number, cx)
    }

    /// An inode has no name any more: it is found neither by the one that it had nor by its number, which may be another file's.
    pub fn forget(&self, inode: &TempRc<'_, Inode>, cx: &Cx) {
        let place = {
            let mut dentry = inode.dentry.lock(cx);
            let was_removed = core::mem::replace(&mut dentry.is_removed, true);
            dentry.parent.filter(|_| !was_removed).map(|parent| (parent, dentry.name.clone()))
        };
        if let Ok(node) = Node::of(inode) {
            node.note_gone();
        }
        if let Some((parent, name)) = place
            && let Ok(parent) = parent.upgrade(cx)
            && let Ok(node) = Node::of(&parent)
        {
            node.forget_name(&name, cx);
        }
        self.inodes.remove_this(inode, cx);
    }

    /// What is known of the changes of a file so far, before it is asked about: see [`Node::update`].
    pub fn changes(&self, number: u64, cx: &Cx) -> Option<u64> {
        Node::of(&*self.inode(number, cx)?).ok().map(Node::changes)
    }

    /// What stat(2) is to tell.
    ///
    /// # Errors
    /// EIO: a file of no kind.
    pub fn metadata(&self, attributes: &Attributes) -> Result<Metadata> {
        let kind = FileKind::of_mode(attributes.mode).ok_or(Errno::EIO)?;
        let (uid, gid) = match self.root_owner {
            None => (attributes.uid, attributes.gid),
            Some((uid, gid)) => {
                (if attributes.uid == uid { 0 } else { NOBODY }, if attributes.gid == gid { 0 } else { NOBODY })
            }
        };
        let time = |time: ninep::Time| Timestamp { seconds: time.seconds, nanoseconds: time.nanoseconds };
        let mut metadata = Metadata::new(kind, attributes.mode & 0o7777).owned_by(uid, gid);
        metadata.links = u32::try_from(attributes.links).unwrap_or(u32::MAX).max(1);
        (metadata.size, metadata.blocks) = (attributes.size, attributes.blocks);
        metadata.device = DeviceNumber::from_encoded(attributes.device);
        metadata.accessed = time(attributes.accessed);
        metadata.modified = time(attributes.modified);
        metadata.changed = time(attributes.changed);
        metadata.born = metadata.changed;
        Ok(metadata)
    }

    /// The numbers by which the server knows an owner.
    pub fn owner_there(&self, uid: u32, gid: u32) -> (u32, u32) {
        match self.root_owner {
            None => (uid, gid),
            Some((root, group)) => (if uid == 0 { root } else { uid }, if gid == 0 { group } else { gid }),
        }
    }

    /// Enters what a name leads to, which `fid` stands for; `place` is the directory and the name, `None` for the root.
    ///
    /// # Errors
    /// EIO: a directory that is in itself. ENOMEM.
    pub fn enter(
        &self,
        place: Option<(&StrongRc<Inode>, &[u8])>,
        fid: StrongRc<Fid>,
        attributes: &Attributes,
        target: Vec<u8>,
        seen: Seen,
        cx: &Cx,
    ) -> Result<StrongRc<Inode>> {
        let number = attributes.qid.path;
        let metadata = self.metadata(attributes)?;
        let kind = FileKind::of_mode(metadata.mode).ok_or(Errno::EIO)?;
        if let Some(own) = self.inodes.own(number, cx) {
            let inode = own.get(cx);
            let node = Node::of(&inode)?;
            let (changes, is_it) = match seen {
                Seen::Found(changes) => (changes, true),
                Seen::Made(since) => (None, node.entered.load(Ordering::Relaxed) > since),
            };
            if is_it && inode.kind == kind && !node.is_gone() {
                node.entered.store(self.next_entry(), Ordering::Relaxed);
                if let Some((directory, name)) = place {
                    at_once(node.is_at(&inode, &directory.get(cx), name, cx))?;
                }
                node.replace_fid(fid, cx);
                node.update(&inode, attributes, metadata, changes, cx);
                return Ok(own);
            }
            self.forget(&inode, cx);
        }
        crate::memory::admit()?;
        let inode = self.inodes.own_or_insert(number, cx, || {
            let file_system = self.file_system.upgrade(cx)?.share().ok_or(Errno::EIO)?;
            let dentry = place.map_or_else(Dentry::default, |(directory, name)| Dentry::new(&directory.get(cx), name));
            let parent = place.map(|(directory, _)| directory.share());
            let node = Node::new(self.name, self.names.share(), fid, parent, attributes, target);
            Ok(Inode::new(file_system, number, metadata, dentry, Box::new(node)))
        })?;
        let made = inode.get(cx);
        let node = Node::of(&made)?;
        node.is_of(inode.downgrade(), cx);
        node.entered.store(self.next_entry(), Ordering::Relaxed);
        Ok(inode)
    }
}
