//! mqueue: the message queues of POSIX as files, usually in `/dev/mqueue`. See mq_overview(7).
//!
//! There is one instance, mounted or not. mq_open(2) and mq_unlink(2) look names up in its root through a mount that is attached nowhere; whoever has it mounted sees, opens and removes
//! the same files. The queue itself is in [`ipc::mq`](crate::ipc::mq): the inode owns it, and each description of it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::general as abi;
use refs::{SpinLock, StrongRc, TempRc, Waker, WeakRc};

use super::access::{Subject, Want};
use super::acl::Inherited;
use super::inode_file::seek_in;
use super::open::{Opened, creation, open_inode};
use super::tmpfs::Directory;
use super::{
    Creation, Dentry, DirectoryEntry, Events, File, FileEnd, FileKind, FileSystem, FileTable, Inode, InodeOps,
    Instance, Location, Lseek, Metadata, Mount, MountFlags, Named, OpenFile, OpenFlags, Path, VfsCaller, dentry,
    notify,
};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::ipc::mq::Queue;
use crate::ipc::mq::limits::{Maker, Share};
use crate::reclaim::Held;
use crate::step::{Step, Stop};

const MQUEUE_MAGIC: u32 = 0x1980_0202;
const NAME_MAX: usize = 255;
/// What stat(2) says of how long the text of a queue is (Linux's FILENT_SIZE).
const TEXT_BYTES: u64 = 80;
/// What counts for who makes a queue by open(2), which does not know the caller's limit: the default of RLIMIT_MSGQUEUE.
const USUAL_LIMIT: u64 = 819_200;

/// The root, through the mount that is attached nowhere.
static ROOT: SpinLock<Option<Location>> = SpinLock::new(None);

/// The root directory: there are no others.
struct Root(Directory);

/// The file of a queue.
struct QueueInode(StrongRc<Queue>);

/// A description of a queue.
pub struct QueueFile(StrongRc<Queue>);

fn root(cx: &Cx) -> Result<Location> {
    let mut place = ROOT.lock(cx);
    if let Some(root) = &*place {
        return Ok(root.share());
    }
    let file_system = FileSystem::new("mqueue", MQUEUE_MAGIC, Vec::new());
    let number = file_system.get(cx).next_inode();
    let metadata = Metadata::new(FileKind::Directory, 0o1777);
    let ops = Box::new(Root(Directory::new(&file_system)?));
    let inode = StrongRc::new(Inode::new(file_system.share(), number, metadata, Dentry::default(), ops));
    let mount = StrongRc::new(Mount::new(file_system, inode.share(), Vec::new(), MountFlags::of_mount(0)));
    Ok(place.insert(Location { mount: mount.into(), inode }).share())
}

/// The one instance.
///
/// # Errors
/// None at present.
pub fn instance(cx: &Cx) -> Result<Instance> {
    let root = root(cx)?;
    Ok((root.inode.get(cx).file_system.share(), root.inode))
}

impl Root {
    fn make<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        asked: Option<(i64, i64)>,
        maker: &Maker,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let (share, size) = Share::take(asked, maker)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let mut metadata = Metadata::new(FileKind::Regular, what.permissions).owned_by(what.uid, what.gid);
        metadata.size = TEXT_BYTES;
        let number = file_system.next_inode();
        let queue = QueueInode(StrongRc::new(Queue::new(size, share)));
        let new = Inode::new(this.file_system.share(), number, metadata, Dentry::new(this, name), Box::new(queue));
        let inode = StrongRc::new(new);
        let made = inode.downgrade();
        self.0.enter(this, name, inode, cx)?;
        Ok(made.upgrade(cx)?)
    }
}

impl InodeOps for Root {
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        self.0.refresh(metadata, cx);
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        self.0.lookup(this, name, me, cx)
    }

    fn list(
        &self,
        this: &Inode,
        from: u64,
        me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        self.0.list(this, from, me, cx, each)
    }

    fn create<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        if what.kind != FileKind::Regular {
            return Err(Errno::EPERM.into());
        }
        let maker = Maker { user: what.uid, limit: USUAL_LIMIT, is_privileged: false };
        self.make(this, name, what, None, &maker, cx)
    }

    fn unlink(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        self.0.unlink(at, cx)
    }
}

impl InodeOps for QueueInode {
    fn open(
        &self,
        _this: &TempRc<'_, Inode>,
        _flags: OpenFlags,
        _me: &dyn VfsCaller,
        _cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        Ok(Some(Box::new(QueueFile(self.0.share()))))
    }
}

impl QueueFile {
    /// The queue.
    pub fn queue<'cx>(&self, cx: &'cx Cx) -> TempRc<'cx, Queue> {
        self.0.get(cx)
    }
}

impl File for QueueFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let (bytes, (how, signal, process)) = self.queue(cx).shown(cx);
        let text = alloc::format!("QSIZE:{bytes:<10} NOTIFY:{how:<5} SIGNO:{signal:<5} NOTIFY_PID:{process:<6}\n");
        let rest = usize::try_from(offset).ok().and_then(|offset| text.as_bytes().get(offset..)).unwrap_or_default();
        Ok(to.write(&rest[..rest.len().min(to.remaining())])?)
    }

    fn write(&self, _offset: u64, _from: &mut Reader<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Err(Errno::EINVAL.into())
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.queue(cx).poll(interest, waker, cx)
    }

    fn flush(&self, table: &WeakRc<FileTable>, cx: &Cx) {
        self.queue(cx).forget(table, cx);
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn is_pollable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, _cx: &Cx) -> Step<u64> {
        Ok(seek_in(|| TEXT_BYTES, to, now)?)
    }
}

/// Looks a name up that mq_open(2) or mq_unlink(2) was given; `None` where there is no such queue.
fn look_up<'cx>(
    root: &TempRc<'cx, Inode>,
    name: &[u8],
    me: &dyn VfsCaller,
    cx: &'cx Cx,
) -> Step<Option<TempRc<'cx, Inode>>> {
    match name {
        b"" => return Err(Errno::ENOENT.into()),
        b"." | b".." => return Err(Errno::EACCES.into()),
        _ if name.contains(&b'/') => return Err(Errno::EACCES.into()),
        _ if name.len() > NAME_MAX => return Err(Errno::ENAMETOOLONG.into()),
        _ => {}
    }
    match root.ops.lookup(root, name, me, cx) {
        Ok(inode) => Ok(Some(inode)),
        Err(Stop::Error(Errno::ENOENT)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// Opens a queue, or makes one, for as many messages of so many bytes as are asked for: mq_open(2).
///
/// # Errors
/// Those of mq_open(2).
pub fn open_step(
    name: &[u8],
    flags: OpenFlags,
    permissions: u32,
    asked: Option<(i64, i64)>,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<StrongRc<OpenFile>> {
    let root = root(cx)?.path(cx)?;
    let subject = Subject::of(me, cx)?;
    let creates = flags.contains(OpenFlags::CREATE);
    let inode = match look_up(&root.inode, name, me.as_dyn(), cx)? {
        Some(_) if creates && flags.contains(OpenFlags::EXCLUSIVE) => return Err(Errno::EEXIST.into()),
        Some(_) if flags.contains(OpenFlags::WRITE_ONLY | OpenFlags::READ_WRITE) => return Err(Errno::EINVAL.into()),
        Some(inode) => {
            let mut want = Want::empty();
            want.set(Want::READ, !flags.contains(OpenFlags::WRITE_ONLY));
            want.set(Want::WRITE, flags.can_write());
            subject.check(&inode, want, cx)?;
            inode
        }
        None if !creates => return Err(Errno::ENOENT.into()),
        None => {
            subject.check(&root.inode, Want::WRITE | Want::EXECUTE, cx)?;
            crate::memory::admit()?;
            let own = Inherited::default();
            let what = creation(FileKind::Regular, permissions & 0o7777, &own, &root.inode, &subject, me, cx)?;
            let maker = Maker {
                user: what.uid,
                limit: me.limit(abi::RLIMIT_MSGQUEUE, cx)?,
                is_privileged: subject.has(Capability::SysResource),
            };
            let directory = root.inode.ops_as::<Root>().ok_or(Errno::ENOENT)?;
            match directory.make(&root.inode, name, &what, asked, &maker, cx) {
                // Another core was first.
                Err(Stop::Error(Errno::EEXIST)) => return Err(Stop::Again),
                made => {
                    let inode = made?;
                    notify::created(&root.inode, name, &inode, cx);
                    inode
                }
            }
        }
    };
    let kept = OpenFlags::WRITE_ONLY | OpenFlags::READ_WRITE | OpenFlags::NONBLOCK;
    let may_write = if flags.can_write() { Some(root.mount.check_writable(cx)?) } else { None };
    match open_inode(&Path { mount: root.mount, inode }, flags & kept, may_write, me.as_dyn(), cx)? {
        Opened::File(file) => Ok(file),
        // Neither has a queue.
        Opened::Fifo(..) | Opened::Leased(..) => Err(Errno::EINVAL.into()),
    }
}

/// Takes the name of a queue away: mq_unlink(2).
///
/// # Errors
/// Those of mq_unlink(2).
pub fn unlink(name: &[u8], me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    let root = root(cx)?.path(cx)?;
    dentry::judge_and_change(|| {
        let victim = look_up(&root.inode, name, me.as_dyn(), cx)?.ok_or(Errno::ENOENT)?;
        Subject::of(me, cx)?.check_removal(&root.inode, &victim, cx)?;
        let named = Named { me: Some(me.as_dyn()), directory: &root.inode, name, inode: Some(&victim) };
        root.inode.ops.unlink(&named, cx)?;
        notify::unlinked(&root.inode, name, &victim, cx);
        Ok(())
    })
}
