//! The file system of control groups, version 2: see cgroups(7). All mounts show the same tree.
//!
//! A directory is a group; [`FILES`] is what there is in each. A file is there if its controller is enabled for the group. Inodes are made when they are first looked up and stay until the group is removed, with what
//! chown(2) and chmod(2) made of them; who has one open then reads ENODEV.
//!
//! Inode numbers: `64 * group + 1` for the directory, and the next ones for its files.

mod core_files;
mod cpu;
mod directory;
mod file;
mod limits;
mod memory;
mod number;
mod pids;
mod procs;
mod reclaim;

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general::CGROUP2_SUPER_MAGIC;
use refs::{SpinLock, StrongRc, TempRc, Waker, WeakRc};

use super::access::{Subject, Want};
use super::{Dentry, FileKind, FileSystem, Inode, Instance, Metadata, VfsCaller};
use crate::cgroup::{self, Cgroup, Controllers, Event};
use crate::error::{Errno, Result};
use crate::step::Step;
use directory::Directory;
use file::{Showing, Writing};

/// A file of a group.
struct Entry {
    name: &'static str,
    /// The controller that it belongs to; none: it is always there.
    of: Controllers,
    is_in_root: bool,
    is_below: bool,
    show: Option<Show>,
    change: Option<Change>,
    /// What who polls it waits for.
    event: Option<fn(&Cgroup) -> &Event>,
    /// And what else, however often it was: see [`Entry::also_tells`].
    other_event: Option<fn(Option<Waker>, &Cx) -> u64>,
}

type Show = fn(&mut Showing, &TempRc<'_, Cgroup>, &Cx) -> Step<()>;
type Change = fn(&mut Writing<'_>, &TempRc<'_, Cgroup>, &Cx) -> Step<()>;

impl Entry {
    const fn new(name: &'static str, of: Controllers) -> Self {
        Entry { name, of, is_in_root: false, is_below: true, show: None, change: None, event: None, other_event: None }
    }

    const fn shows(self, show: Show) -> Self {
        Entry { show: Some(show), ..self }
    }

    const fn changes(self, change: Change) -> Self {
        Entry { change: Some(change), ..self }
    }

    const fn in_root(self) -> Self {
        Entry { is_in_root: true, ..self }
    }

    /// Something that has no event of the group's own: how often it was, and a waker for the next time.
    const fn also_tells(self, event: fn(Option<Waker>, &Cx) -> u64) -> Self {
        Entry { other_event: Some(event), ..self }
    }

    const fn only_in_root(self) -> Self {
        Entry { is_in_root: true, is_below: false, ..self }
    }

    const fn tells(self, event: fn(&Cgroup) -> &Event) -> Self {
        Entry { event: Some(event), ..self }
    }

    fn permissions(&self) -> u32 {
        (if self.show.is_some() { 0o444 } else { 0 }) | if self.change.is_some() { 0o200 } else { 0 }
    }

    fn is_in(&self, group: &Cgroup, cx: &Cx) -> bool {
        let is_here = if group.is_root() { self.is_in_root } else { self.is_below };
        is_here && group.controllers(cx).contains(self.of)
    }
}

/// All files: those of every group, and a row for each controller.
const FILES: &[&[Entry]] = &[core_files::FILES, cpu::FILES, memory::FILES, pids::FILES, reclaim::FILES];

/// All files in their order.
fn files() -> impl Iterator<Item = (usize, &'static Entry)> {
    FILES.iter().flat_map(|files| files.iter()).enumerate()
}

/// The most files that a group may have.
const MOST_FILES: u64 = 62;

/// The number of a group's directory.
fn number(group: &Cgroup) -> u64 {
    group.id * (MOST_FILES + 2) + 1
}

static INSTANCE: SpinLock<Option<Instance>> = SpinLock::new(None);

/// Options of mount(2) that are accepted and have no effect: without namespaces there is nobody to delegate to, and nothing here is faster where changes are slower.
pub const OPTIONS: &[&str] = &["nsdelegate", "favordynmods"];

/// The one instance.
///
/// # Errors
/// EINVAL for options that are not known.
pub fn instance(options: &[u8], cx: &Cx) -> Result<Instance> {
    let is_known = |option: &[u8]| OPTIONS.iter().any(|known| known.as_bytes() == option);
    if !options.split(|&byte| byte == b',').all(|option| option.is_empty() || is_known(option)) {
        return Err(Errno::EINVAL);
    }
    let group = cgroup::root(cx)?;
    let shared = {
        let mut instance = INSTANCE.lock(cx);
        let (file_system, root) = instance.get_or_insert_with(|| {
            let file_system = FileSystem::new("cgroup2", CGROUP2_SUPER_MAGIC, alloc::vec::Vec::new());
            let ops = Box::new(Directory::new(group.downgrade(), (0, 0)));
            let metadata = Metadata::new(FileKind::Directory, 0o555);
            let root = StrongRc::new(Inode::new(file_system.share(), number(&group), metadata, Dentry::default(), ops));
            (file_system, root)
        });
        (file_system.share(), root.share())
    };
    group.directory.lock(cx).get_or_insert_with(|| Box::new(shared.1.share()));
    Ok(shared)
}

/// The directory of a group that was not removed.
fn directory_of<'cx>(group: &Cgroup, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
    let directory = group.directory.lock(cx);
    Some(directory.as_ref()?.downcast_ref::<StrongRc<Inode>>()?.get(cx))
}

/// Checks that somebody may put processes into a group: may write its `cgroup.procs`.
///
/// # Errors
/// EACCES; ENODEV: it was removed.
fn check_may_move(group: &Cgroup, subject: &Subject<'_>, cx: &Cx) -> Result<()> {
    let directory = directory_of(group, cx).ok_or(Errno::ENODEV)?;
    let ops = directory.ops_as::<Directory>().ok_or(Errno::ENODEV)?;
    subject.check(&*ops.file(&directory, b"cgroup.procs", cx)?, Want::WRITE, cx)
}

/// Checks that somebody may move a process from one group to another: may write the `cgroup.procs` of the lowest group that both are in.
fn check_may_migrate(from: Option<&Cgroup>, to: &Cgroup, subject: &Subject<'_>, cx: &Cx) -> Result<()> {
    match from.and_then(|from| cgroup::common_ancestor(from, to, cx)) {
        Some(common) => check_may_move(common, subject, cx),
        None => check_may_move(&*cgroup::root(cx)?, subject, cx),
    }
}

/// The group that a process is to be made in whose maker has its directory open: CLONE_INTO_CGROUP.
///
/// # Errors
/// EBADF: no descriptor, or of something else. ENOENT: the group was removed. EACCES. EOPNOTSUPP: a thread is to be made in another group than its process.
pub fn group_for_child(fd: u64, is_thread: bool, me: &crate::current::Current, cx: &Cx) -> Result<WeakRc<Cgroup>> {
    let fd = i32::try_from(fd).map_err(|_| Errno::EINVAL)?;
    let open = me.files(cx)?.get_even_path(fd, cx)?;
    let inode = open.inode(cx)?;
    let directory = inode.ops_as::<Directory>().ok_or(Errno::EBADF)?;
    let group = directory.group(cx).map_err(|_| Errno::ENOENT)?;
    let subject = Subject::of(me as &dyn VfsCaller, cx)?;
    let process = me.process(cx)?;
    let own = process.control_group(cx);
    check_may_move(&group, &subject, cx)?;
    check_may_migrate(own.as_deref(), &group, &subject, cx)?;
    if is_thread && own.as_ref().map_or(0, |own| own.id) != group.id {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(group.downgrade())
}
