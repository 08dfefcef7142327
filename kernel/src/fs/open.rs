//! open(2): from a path to a description.

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general;
use refs::{StrongRc, TempRc, WeakRc};

use super::access::{Subject, Want};
use super::acl::{self, Inherited};
use super::inode_file::{DirectoryFile, PlaceFile, remove_privileges};
use super::notify::{self, FileEvents};
use super::walk::{self, WalkFlags};
use super::{
    Creation, DeviceNumber, File, FileKind, Inode, InodeFlags, LockKind, MayWrite, Mount, MountFlags, OpenFile,
    OpenFlags, Path, VfsCaller, open_device,
};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

/// What is asked for besides a path.
#[derive(Clone, Copy)]
pub struct OpenHow {
    /// The flags of open(2).
    pub flags: OpenFlags,
    /// The permissions of a file that is made, umask not yet applied.
    pub permissions: u32,
    /// How the path is walked; following at the end is decided by `flags`.
    pub walk: WalkFlags,
}

/// How far opening came in one step.
pub enum Opened {
    /// All the way.
    File(StrongRc<OpenFile>),
    /// To a FIFO, whose other end has to be waited for.
    Fifo(WeakRc<Mount>, WeakRc<Inode>),
    /// To a file of which somebody has a lease, which has to be given up first: [`leases::wait_until_broken_async`](super::leases::wait_until_broken_async).
    Leased(WeakRc<Inode>, LockKind),
}

impl OpenHow {
    /// What open(2) makes of its two arguments.
    pub fn new(flags: OpenFlags, permissions: u32) -> Self {
        let mut flags = flags;
        if flags.contains(OpenFlags::PATH) {
            // All others are ignored.
            flags &= OpenFlags::PATH | OpenFlags::DIRECTORY | OpenFlags::NO_FOLLOW | OpenFlags::CLOSE_ON_EXEC;
        }
        OpenHow { flags, permissions: permissions & 0o7777, walk: WalkFlags::empty() }
    }
}

/// The owner and the permissions of what the caller makes in `directory`.
///
/// # Errors
/// The thread is gone.
pub fn creation<'a>(
    kind: FileKind,
    permissions: u32,
    inherited: &'a Inherited,
    directory: &Inode,
    subject: &Subject<'_>,
    me: &(impl VfsCaller + ?Sized),
    cx: &Cx,
) -> Result<Creation<'a>> {
    const SET_GROUP_PROGRAM: u32 = general::S_ISGID | general::S_IXGRP;
    let umask = me.fs(cx)?.umask.load(core::sync::atomic::Ordering::Relaxed);
    let mut gid = subject.gid.number();
    let (mode, _, group) = directory.access_bits(cx);
    let mut lost = if inherited.permissions.is_some() { 0 } else { umask & 0o777 };
    let permissions = inherited.permissions.unwrap_or(permissions);
    let mut gained = 0;
    if mode & general::S_ISGID != 0 {
        gid = group;
        if kind == FileKind::Directory {
            gained = general::S_ISGID;
        } else if permissions & SET_GROUP_PROGRAM == SET_GROUP_PROGRAM
            && !subject.has(Capability::Fsetid)
            && !subject.is_in(group, cx)
        {
            // Who is not in the group makes no program that gives its rights away.
            lost |= general::S_ISGID;
        }
    }
    let permissions = permissions & !lost | gained;
    Ok(Creation {
        kind,
        permissions,
        uid: subject.uid.number(),
        gid,
        device: DeviceNumber::default(),
        target: &[],
        attributes: &inherited.attributes,
    })
}

/// Opens a path, short of waiting for the other end of a FIFO.
///
/// # Errors
/// Those of open(2).
pub fn open_step(directory: i32, path: &[u8], how: &OpenHow, me: &impl VfsCaller, cx: &Cx) -> Step<Opened> {
    let flags = how.flags;
    if flags.contains(OpenFlags::TEMPORARY) {
        return open_temporary(directory, path, how, me, cx);
    }
    let creates = flags.contains(OpenFlags::CREATE);
    let exclusive = creates && flags.contains(OpenFlags::EXCLUSIVE);
    if creates && flags.contains(OpenFlags::DIRECTORY) {
        return Err(Errno::EINVAL.into());
    }
    let mut walking = how.walk;
    walking.set(WalkFlags::FOLLOW, !flags.contains(OpenFlags::NO_FOLLOW) && !exclusive);
    walking.set(WalkFlags::MAY_BE_MISSING | WalkFlags::NO_SLASH, creates);
    // Where the start is to be the root, it is also where absolute paths start.
    let is_confined = walking.intersects(WalkFlags::IN_ROOT | WalkFlags::BENEATH);
    let start = walk::start(directory, if is_confined { b"" } else { path }, me, cx)?;
    let found = walk::walk(start, path, walking, me, cx)?;
    let subject = Subject::of(me, cx)?;
    match found.target {
        Some(_) if exclusive => Err(Errno::EEXIST.into()),
        Some(path) => {
            let inode = &path.inode;
            if inode.kind == FileKind::Directory && (creates || flags.can_write()) {
                return Err(Errno::EISDIR.into());
            }
            if flags.contains(OpenFlags::DIRECTORY) && inode.kind != FileKind::Directory {
                return Err(Errno::ENOTDIR.into());
            }
            let may_write = may_write(&path, flags, cx)?;
            check(&path, flags, &subject, cx)?;
            crate::memory::admit()?;
            if flags.contains(OpenFlags::TRUNCATE) {
                return open_truncated(&path, flags, may_write, me, cx);
            }
            open_inode(&path, flags, may_write, me, cx)
        }
        None => {
            let parent = found.parent;
            if parent.inode.is_removed(cx) {
                return Err(Errno::ENOENT.into());
            }
            subject.check(&parent.inode, Want::WRITE | Want::EXECUTE, cx)?;
            let may_write = parent.mount.check_writable(cx)?;
            crate::memory::admit()?;
            let inherited = acl::inherited(&parent.inode, FileKind::Regular, how.permissions, cx)?;
            let what = creation(FileKind::Regular, how.permissions, &inherited, &parent.inode, &subject, me, cx)?;
            let inode = match parent.inode.ops.create(&parent.inode, &found.name, &what, cx) {
                // Another core was first.
                Err(Stop::Error(Errno::EEXIST)) if !exclusive => return Err(Stop::Again),
                made => made?,
            };
            notify::created(&parent.inode, &found.name, &inode, cx);
            // The permissions of a new file do not count for whoever makes it.
            open_inode(&Path { mount: parent.mount, inode }, flags - OpenFlags::TRUNCATE, Some(may_write), me, cx)
        }
    }
}

/// Checks that a file that was there may be written through its mount, if it is to be.
#[inline(always)]
fn may_write<'cx>(path: &Path<'_>, flags: OpenFlags, cx: &'cx Cx) -> Step<Option<MayWrite<'cx>>> {
    let changes = flags.can_write() || flags.contains(OpenFlags::TRUNCATE);
    let is_kept = matches!(path.inode.kind, FileKind::Regular | FileKind::Directory);
    if changes && is_kept { path.mount.check_writable(cx).map(Some) } else { Ok(None) }
}

/// Checks that a file that was there may be opened so.
fn check(path: &Path<'_>, flags: OpenFlags, subject: &Subject<'_>, cx: &Cx) -> Result<()> {
    if flags.contains(OpenFlags::PATH) {
        return Ok(());
    }
    let (mount, inode) = (&path.mount, &path.inode);
    let truncates = flags.contains(OpenFlags::TRUNCATE);
    let mut want = Want::empty();
    want.set(Want::READ, flags.can_read());
    want.set(Want::WRITE, flags.can_write() || truncates);
    match inode.kind {
        FileKind::Symlink => return Err(Errno::ELOOP),
        FileKind::CharacterDevice | FileKind::BlockDevice if mount.flags().contains(MountFlags::NO_DEVICES) => {
            return Err(Errno::EACCES);
        }
        _ => {}
    }
    subject.check(inode, want, cx)?;
    if truncates || (flags.can_write() && !flags.contains(OpenFlags::APPEND)) {
        inode.check_not(InodeFlags::APPEND)?;
    }
    if flags.contains(OpenFlags::NO_ATIME) && !subject.owns(inode, cx) {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// Opens what is at `path`, and truncates it.
#[inline(never)]
fn open_truncated(
    path: &Path<'_>,
    flags: OpenFlags,
    may_write: Option<MayWrite<'_>>,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> Step<Opened> {
    let is_regular = path.inode.kind == FileKind::Regular;
    // Where it is to be read only, it counts as written until it counts as read: so nobody gets a lease in between.
    let _access = if is_regular && !flags.can_write() { Some(path.inode.write_access()?) } else { None };
    let opened = open_inode(path, flags, may_write, me, cx)?;
    if is_regular && matches!(opened, Opened::File(_)) {
        notify::file_changed(&path.inode, FileEvents::MODIFY, cx);
    }
    Ok(opened)
}

/// Opens what is at `path`; permissions are checked.
pub(super) fn open_inode(
    path: &Path<'_>,
    flags: OpenFlags,
    may_write: Option<MayWrite<'_>>,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> Step<Opened> {
    let inode = &path.inode;
    // Flags that only say how to open are not kept.
    let kept = flags
        - (OpenFlags::CREATE
            | OpenFlags::EXCLUSIVE
            | OpenFlags::NO_CONTROLLING_TTY
            | OpenFlags::TRUNCATE
            | OpenFlags::CLOSE_ON_EXEC);
    if flags.contains(OpenFlags::PATH) {
        return Ok(Opened::File(StrongRc::new(OpenFile::at(Box::new(PlaceFile), kept, path.keep_in_step()?))));
    }
    let file: Box<dyn File> = match inode.kind {
        FileKind::Regular => {
            let location = path.keep_in_step()?;
            if flags.can_write() {
                location.begin_writing(may_write.ok_or(Errno::EROFS)?, cx)?;
            }
            let prepared = match look_for_leases(inode, flags, cx) {
                Ok(None) => prepare_regular(path, flags, me, cx).map(Ok),
                Ok(Some(leased)) => Ok(Err(leased)),
                Err(stop) => Err(stop),
            };
            if !matches!(prepared, Ok(Ok(_))) && flags.can_write() {
                location.end_writing();
            }
            let open = match prepared? {
                Ok(Some(file)) => StrongRc::new(OpenFile::of_path(file, kept, location)),
                Ok(None) => StrongRc::new(OpenFile::stored(kept, location)),
                Err(leased) => return Ok(leased),
            };
            // Who only reads counts from here on.
            if !flags.can_write()
                && let Some(leased) = look_for_leases(inode, flags, cx)?
            {
                open.get(cx).was_not_opened();
                return Ok(leased);
            }
            open.get(cx).was_opened(cx);
            return Ok(Opened::File(open));
        }
        FileKind::Directory => inode.ops.open(inode, flags, me, cx)?.unwrap_or_else(|| Box::new(DirectoryFile)),
        FileKind::CharacterDevice | FileKind::BlockDevice => open_device(inode.kind, inode.device, flags, me, cx)?,
        FileKind::Fifo => return Ok(Opened::Fifo(path.mount.downgrade(), inode.downgrade())),
        FileKind::Socket => return Err(Errno::ENXIO.into()),
        FileKind::Symlink => return Err(Errno::ELOOP.into()),
    };
    let open = StrongRc::new(OpenFile::of_path(file, kept, path.keep_in_step()?));
    open.get(cx).was_opened(cx);
    Ok(Opened::File(open))
}

/// What comes of leases that rule the opening out, if there are any.
#[inline(always)]
fn look_for_leases(inode: &TempRc<'_, Inode>, flags: OpenFlags, cx: &Cx) -> Step<Option<Opened>> {
    if inode.leases.has_any() { break_leases(inode, flags, cx) } else { Ok(None) }
}

/// Asks those who have leases that rule the opening out to give them up; what comes of it, if there are any.
#[cold]
fn break_leases(inode: &TempRc<'_, Inode>, flags: OpenFlags, cx: &Cx) -> Step<Option<Opened>> {
    let changes = flags.can_write() || flags.contains(OpenFlags::TRUNCATE);
    let kind = if changes { LockKind::Exclusive } else { LockKind::Shared };
    match inode.leases.break_for(kind, None, cx)? {
        None => Ok(None),
        Some(_) if flags.contains(OpenFlags::NONBLOCK) => Err(Errno::EAGAIN.into()),
        Some(_) => Ok(Some(Opened::Leased(inode.downgrade(), kind))),
    }
}

/// Truncates a regular file that is opened, if asked, and lets its file system open it.
#[inline(always)]
fn prepare_regular(path: &Path<'_>, flags: OpenFlags, me: &dyn VfsCaller, cx: &Cx) -> Step<Option<Box<dyn File>>> {
    if flags.contains(OpenFlags::TRUNCATE) {
        truncate(&path.inode, me, cx)?;
    }
    path.inode.ops.open(&path.inode, flags, me, cx)
}

#[inline(never)]
fn truncate(inode: &TempRc<'_, Inode>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
    if inode.ops.keeps_content() {
        inode.ops.set_size(inode, 0, cx)?;
    }
    remove_privileges(&Inode::kept(inode, cx), me, cx)
}

/// O_TMPFILE: a new file without a name.
fn open_temporary(directory: i32, path: &[u8], how: &OpenHow, me: &impl VfsCaller, cx: &Cx) -> Step<Opened> {
    if !how.flags.can_write() {
        return Err(Errno::EINVAL.into());
    }
    let at = walk::resolve(directory, path, how.walk | WalkFlags::FOLLOW, me, cx)?;
    if at.inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    let subject = Subject::of(me, cx)?;
    subject.check(&at.inode, Want::WRITE | Want::EXECUTE, cx)?;
    let may_write = at.mount.check_writable(cx)?;
    crate::memory::admit()?;
    let inherited = acl::inherited(&at.inode, FileKind::Regular, how.permissions, cx)?;
    let what = creation(FileKind::Regular, how.permissions, &inherited, &at.inode, &subject, me, cx)?;
    let inode = at.inode.ops.create_nameless(&at.inode, &what, cx)?;
    // Owned here until the description owns it.
    let path = Path { mount: at.mount.clone(), inode: inode.get(cx) };
    open_inode(&path, how.flags - OpenFlags::TRUNCATE, Some(may_write), me, cx)
}

/// Opens a program to be executed: no descriptor, and it may be unreadable.
///
/// # Errors
/// Those of execve(2) about the path: EACCES where it is no regular file, not executable, or on a `noexec` mount.
pub fn open_program(
    directory: i32,
    path: &[u8],
    walking: WalkFlags,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<StrongRc<OpenFile>> {
    /// How often another file may take the place of what was found just now, on another core.
    const TRIES: usize = 16;
    for _ in 0..TRIES {
        let path = walk::resolve(directory, path, walking, me, cx)?;
        if path.inode.kind == FileKind::Symlink {
            return Err(Errno::ELOOP.into());
        }
        if path.inode.kind != FileKind::Regular || path.mount.flags().contains(MountFlags::NO_EXEC) {
            return Err(Errno::EACCES.into());
        }
        Subject::of(me, cx)?.check(&path.inode, Want::EXECUTE, cx)?;
        if let Ok(location) = path.keep() {
            let flags = OpenFlags::empty();
            let open = StrongRc::new(match path.inode.ops.open(&path.inode, flags, me, cx)? {
                Some(file) => OpenFile::of_path(file, flags, location),
                None => OpenFile::stored(flags, location),
            });
            open.get(cx).was_opened(cx);
            return Ok(open);
        }
    }
    Err(Errno::ENOENT.into())
}
