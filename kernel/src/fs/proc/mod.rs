//! procfs: see proc(5).
//!
//! Everything is a table of [`Entry`]s: [`system::ENTRIES`] for the machine, [`process::ENTRIES`] for each process. A text is made when it is read
//! from its start, and the rest of that reading sees the same text; `maps` and `smaps`, which may be long, are made as they are read. Inodes are made up when they are looked up; an inode of a process that
//! has ended is stale, whoever has its number next.
//!
//! Inode numbers: the root is 1; an entry of the machine's is `64 * parent + index + 1`; what belongs to a thread has its id above bit 32.

mod fd;
#[cfg(feature = "check-locks")]
mod locks;
mod maps;
mod memory;
mod net;
mod net_settings;
mod net_sockets;
mod node;
mod process;
mod root;
mod status;
#[cfg(feature = "stretch")]
mod stretch;
mod sys;
mod system;
mod sysvipc;
mod text;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::{Dentry, FileKind, FileSystem, Inode, InodeCache, InodeOps, Instance, Jump, Metadata, OpenFile, OpenFlags};
use crate::credentials::TraceAs;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::{Process, THREADS, Thread};
use crate::step::Step;

pub use system::set_command_line;
pub(in crate::fs) use text::Text;

const PROC_SUPER_MAGIC: u32 = 0x9fa0;
const ROOT: u64 = 1;

/// A file of procfs.
struct Entry {
    name: &'static str,
    permissions: u32,
    what: What,
}

/// What a file of procfs is.
#[derive(Clone, Copy)]
enum What {
    /// A text.
    Text(Show),
    /// A text that can be changed.
    Setting(Show, Change),
    /// A text about mounts, which can be waited for.
    Mounts(Show),
    /// A text with a part for each VMA of an address space.
    VmaMap(maps::ShowVma),
    /// The memory of a process.
    Memory,
    /// What is behind each page of it.
    PageMap,
    /// A link to a path.
    Link(fn(&Target, &Current, &Cx) -> Result<Vec<u8>>),
    /// A link to a file, and its name.
    Jump(fn(&Target, &Current, &Cx) -> Result<Jump>, fn(&Target, &Current, &Cx) -> Result<Vec<u8>>),
    /// A directory.
    Directory(&'static [Entry]),
    /// A directory that is made up by code.
    Special(fn(Target) -> Box<dyn InodeOps>),
}

type Show = fn(&mut Text, &Target, &Current, &Cx) -> Result<()>;
type ChangeAtOnce = fn(&[u8], &Target, &Current, &Cx) -> Result<()>;

/// What is done with what is written.
#[derive(Clone, Copy)]
enum Change {
    /// A change that is soon made.
    AtOnce(ChangeAtOnce),
    /// Something that takes several turns.
    InTurns(fn(&[u8], &Target, &Current, &Cx) -> Step<()>),
}

const fn text(name: &'static str, show: Show) -> Entry {
    Entry { name, permissions: 0o444, what: What::Text(show) }
}

const fn vma_text(name: &'static str, show: maps::ShowVma) -> Entry {
    Entry { name, permissions: 0o444, what: What::VmaMap(show) }
}

const fn private_text(name: &'static str, show: Show) -> Entry {
    Entry { name, permissions: 0o400, what: What::Text(show) }
}

const fn setting(name: &'static str, show: Show, change: ChangeAtOnce) -> Entry {
    Entry { name, permissions: 0o644, what: What::Setting(show, Change::AtOnce(change)) }
}

const fn directory(name: &'static str, entries: &'static [Entry]) -> Entry {
    Entry { name, permissions: 0o555, what: What::Directory(entries) }
}

impl What {
    fn kind(&self) -> FileKind {
        match self {
            What::Text(_) | What::Setting(..) | What::Mounts(_) | What::VmaMap(_) | What::Memory | What::PageMap => {
                FileKind::Regular
            }
            What::Link(_) | What::Jump(..) => FileKind::Symlink,
            What::Directory(_) | What::Special(_) => FileKind::Directory,
        }
    }
}

/// What an entry tells about.
#[derive(Clone, Copy)]
enum Target {
    /// The machine.
    System,
    /// A process, or one thread of it.
    Process(Who),
}

/// A process as a directory of procfs sees it.
#[derive(Clone, Copy)]
struct Who {
    /// The id in the directory's name.
    id: u32,
    process: WeakRc<Process>,
    /// The thread, where the directory stands for one.
    thread: Option<WeakRc<Thread>>,
}

impl Target {
    fn who(&self) -> Result<&Who> {
        match self {
            Target::Process(who) => Ok(who),
            Target::System => Err(Errno::ENOENT),
        }
    }

    fn process<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Process>> {
        Ok(self.who()?.process.upgrade(cx)?)
    }

    /// The thread, or the first one of the process. ESRCH for a zombie.
    fn thread<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Thread>> {
        let who = self.who()?;
        match who.thread {
            Some(thread) => Ok(thread.upgrade(cx)?),
            None => self.process(cx)?.first_thread(cx).ok_or(Errno::ESRCH),
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            Target::System => false,
            Target::Process(who) => who.process.is_gone() || who.thread.is_some_and(|thread| thread.is_gone()),
        }
    }

    /// The user and group who own its files.
    fn owner(&self, cx: &Cx) -> (u32, u32) {
        match self {
            Target::System => (0, 0),
            Target::Process(_) => self.thread(cx).map_or((0, 0), |thread| {
                // What must not be looked into belongs to nobody who could.
                if thread.process(cx).is_ok_and(|process| process.dumpable.load(Ordering::Relaxed) != 1) {
                    return (0, 0);
                }
                let credentials = thread.credentials.lock(cx);
                (credentials.users().effective.number(), credentials.groups().effective.number())
            }),
        }
    }

    /// Checks that the caller may look inside the process: see ptrace(2), "Ptrace access mode checking". What is to be looked at is got hold of first: execve(2), which may give the
    /// process more rights than the caller has, changes them before it changes the address space.
    fn check_access(&self, me: &Current, cx: &Cx) -> Result<()> {
        let who = self.who()?;
        if who.process == me.process {
            return Ok(());
        }
        if me.may_trace(&*self.thread(cx)?, TraceAs::FileSystem, cx)? { Ok(()) } else { Err(Errno::EACCES) }
    }
}

/// The inodes of the one instance.
static CACHE: InodeCache = InodeCache::new();
static INSTANCE: SpinLock<Option<Instance>> = SpinLock::new(None);

/// The one instance of procfs.
///
/// # Errors
/// None at present.
pub fn instance(cx: &Cx) -> Result<Instance> {
    let mut instance = INSTANCE.lock(cx);
    let (file_system, root) = instance.get_or_insert_with(|| {
        let file_system = FileSystem::new("proc", PROC_SUPER_MAGIC, Vec::new());
        let metadata = Metadata::new(FileKind::Directory, 0o555);
        let root = Inode::new(file_system.share(), ROOT, metadata, Dentry::default(), Box::new(root::Root));
        (file_system, StrongRc::new(root))
    });
    Ok((file_system.share(), root.share()))
}

/// The inode of a number, which has a name in a directory, and is made by `ops` if need be.
fn inode<'cx>(
    (directory, name): (&TempRc<'cx, Inode>, &[u8]),
    number: u64,
    kind: FileKind,
    permissions: u32,
    target: &Target,
    cx: &'cx Cx,
    ops: impl FnOnce() -> Box<dyn InodeOps>,
) -> Result<TempRc<'cx, Inode>> {
    CACHE.get_or_insert(number, cx, || {
        let (uid, gid) = target.owner(cx);
        let mut metadata = Metadata::new(kind, permissions).owned_by(uid, gid);
        metadata.links = 1;
        Ok(Inode::new(directory.file_system.share(), number, metadata, Dentry::new(directory, name), ops()))
    })
}

/// The process whose directory is open: `/proc/PID`, which can be used in the place of a pidfd. `None` for any other file; ESRCH for a process that
/// was waited for.
pub fn process_of_directory<'cx>(file: &OpenFile, cx: &'cx Cx) -> Option<Result<TempRc<'cx, Process>>> {
    if file.flags().contains(OpenFlags::PATH) {
        return None;
    }
    let who = process::who_of(&file.location.inode.get(cx))?;
    Some(who.process.upgrade(cx).map_err(Errno::from))
}

/// The number in a directory's name.
fn parse_id(name: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(name).ok()?;
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_canonical { text.parse().ok() } else { None }
}

/// The thread of an id, whose directory shows its process.
fn process_of_thread(id: u32, cx: &Cx) -> Option<WeakRc<Process>> {
    THREADS.get(id, cx).map(|thread| thread.process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_numbers_name_processes() {
        assert_eq!(parse_id(b"42"), Some(42));
        assert_eq!(parse_id(b"042"), None);
        assert_eq!(parse_id(b"+1"), None);
        assert_eq!(parse_id(b""), None);
        assert_eq!(parse_id(b"99999999999"), None);
    }
}
