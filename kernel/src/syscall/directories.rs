//! Names: making, linking, removing, renaming, listing; root and working directory.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::Errno;
use crate::fs::dentry::{self, At, NewFile};
use crate::fs::notify::FileEvents;
use crate::fs::walk::{self, PathName, WalkFlags};
use crate::fs::{DeviceNumber, FileKind, Rename};
use crate::step::Step;
use crate::user_memory::{UserIn, UserOut};

/// The calls of this file.
pub const CALLS: &[Entry] = &[
    Entry::new(
        abi::__NR_mkdir,
        "mkdir",
        Call::Step(|cx, me, args| mkdir(cx, me, abi::AT_FDCWD, args.string(0), args.int(1))),
    ),
    Entry::new(
        abi::__NR_mkdirat,
        "mkdirat",
        Call::Step(|cx, me, args| mkdir(cx, me, args.int(0), args.string(1), args.int(2))),
    ),
    Entry::new(
        abi::__NR_rmdir,
        "rmdir",
        Call::Step(|cx, me, args| unlink(cx, me, abi::AT_FDCWD, args.string(0), abi::AT_REMOVEDIR)),
    ),
    Entry::new(abi::__NR_unlink, "unlink", Call::Step(|cx, me, args| unlink(cx, me, abi::AT_FDCWD, args.string(0), 0))),
    Entry::new(
        abi::__NR_unlinkat,
        "unlinkat",
        Call::Step(|cx, me, args| unlink(cx, me, args.int(0), args.string(1), args.int(2) as u32)),
    ),
    Entry::new(
        abi::__NR_rename,
        "rename",
        Call::Step(|cx, me, args| rename(cx, me, (abi::AT_FDCWD, args.string(0)), (abi::AT_FDCWD, args.string(1)), 0)),
    ),
    Entry::new(
        abi::__NR_renameat,
        "renameat",
        Call::Step(|cx, me, args| rename(cx, me, (args.int(0), args.string(1)), (args.int(2), args.string(3)), 0)),
    ),
    Entry::partial(
        abi::__NR_renameat2,
        "renameat2",
        Call::Step(|cx, me, args| {
            rename(cx, me, (args.int(0), args.string(1)), (args.int(2), args.string(3)), args.int(4) as u32)
        }),
        "RENAME_WHITEOUT",
    ),
    Entry::new(
        abi::__NR_link,
        "link",
        Call::Step(|cx, me, args| link(cx, me, (abi::AT_FDCWD, args.string(0)), (abi::AT_FDCWD, args.string(1)), 0)),
    ),
    Entry::new(
        abi::__NR_linkat,
        "linkat",
        Call::Step(|cx, me, args| {
            link(cx, me, (args.int(0), args.string(1)), (args.int(2), args.string(3)), args.int(4) as u32)
        }),
    ),
    Entry::new(
        abi::__NR_symlink,
        "symlink",
        Call::Step(|cx, me, args| symlink(cx, me, args.string(0), abi::AT_FDCWD, args.string(1))),
    ),
    Entry::new(
        abi::__NR_symlinkat,
        "symlinkat",
        Call::Step(|cx, me, args| symlink(cx, me, args.string(0), args.int(1), args.string(2))),
    ),
    Entry::new(
        abi::__NR_readlink,
        "readlink",
        Call::Step(|cx, me, args| readlink(cx, me, abi::AT_FDCWD, args.string(0), args.output::<u8>(1), args.int(2))),
    ),
    Entry::new(
        abi::__NR_readlinkat,
        "readlinkat",
        Call::Step(|cx, me, args| readlink(cx, me, args.int(0), args.string(1), args.output::<u8>(2), args.int(3))),
    ),
    Entry::new(
        abi::__NR_mknod,
        "mknod",
        Call::Step(|cx, me, args| mknod(cx, me, abi::AT_FDCWD, args.string(0), args.int(1) as u32, args.int(2) as u32)),
    ),
    Entry::new(
        abi::__NR_mknodat,
        "mknodat",
        Call::Step(|cx, me, args| mknod(cx, me, args.int(0), args.string(1), args.int(2) as u32, args.int(3) as u32)),
    ),
    Entry::new(abi::__NR_getdents, "getdents", Call::Step(|cx, me, args| getdents(cx, me, args, Layout::Old))),
    Entry::new(abi::__NR_getdents64, "getdents64", Call::Step(|cx, me, args| getdents(cx, me, args, Layout::New))),
    Entry::new(abi::__NR_getcwd, "getcwd", Call::Step(getcwd)),
    Entry::new(abi::__NR_chdir, "chdir", Call::Step(chdir)),
    Entry::new(abi::__NR_fchdir, "fchdir", Call::Step(fchdir)),
    Entry::new(abi::__NR_chroot, "chroot", Call::Step(chroot)),
    Entry::new(abi::__NR_umask, "umask", Call::Step(umask)),
];

fn mkdir(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, mode: i32) -> Step<usize> {
    let path = PathName::read(path, me, cx)?;
    let permissions = mode as u32 & 0o1777;
    let new = NewFile { kind: FileKind::Directory, permissions, device: DeviceNumber::default(), target: &[] };
    dentry::make(At { directory, path: path.bytes() }, &new, me, cx)?;
    Ok(0)
}

fn unlink(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, flags: u32) -> Step<usize> {
    let path = PathName::read(path, me, cx)?;
    let at = At { directory, path: path.bytes() };
    match flags {
        0 => dentry::unlink(at, me, cx)?,
        abi::AT_REMOVEDIR => dentry::remove_directory(at, me, cx)?,
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

fn rename(cx: &Cx, me: &Current, from: (i32, UserIn<u8>), to: (i32, UserIn<u8>), flags: u32) -> Step<usize> {
    let how = match flags {
        0 => Rename::Replace,
        abi::RENAME_NOREPLACE => Rename::NoReplace,
        abi::RENAME_EXCHANGE => Rename::Exchange,
        _ => return Err(Errno::EINVAL.into()),
    };
    let old = PathName::read(from.1, me, cx)?;
    let new = PathName::read(to.1, me, cx)?;
    let old = At { directory: from.0, path: old.bytes() };
    dentry::rename(old, At { directory: to.0, path: new.bytes() }, how, me, cx)?;
    Ok(0)
}

fn link(cx: &Cx, me: &Current, from: (i32, UserIn<u8>), to: (i32, UserIn<u8>), flags: u32) -> Step<usize> {
    if flags & !(abi::AT_SYMLINK_FOLLOW | abi::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut walking = WalkFlags::empty();
    walking.set(WalkFlags::FOLLOW, flags & abi::AT_SYMLINK_FOLLOW != 0);
    walking.set(WalkFlags::MAY_BE_EMPTY, flags & abi::AT_EMPTY_PATH != 0);
    let old = PathName::read(from.1, me, cx)?;
    let new = PathName::read(to.1, me, cx)?;
    let old = At { directory: from.0, path: old.bytes() };
    dentry::link(old, walking, At { directory: to.0, path: new.bytes() }, me, cx)?;
    Ok(0)
}

fn symlink(cx: &Cx, me: &Current, target: UserIn<u8>, directory: i32, path: UserIn<u8>) -> Step<usize> {
    let target = PathName::read(target, me, cx)?;
    let path = PathName::read(path, me, cx)?;
    if target.bytes().is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let new = NewFile {
        kind: FileKind::Symlink,
        permissions: 0o777,
        device: DeviceNumber::default(),
        target: target.bytes(),
    };
    dentry::make(At { directory, path: path.bytes() }, &new, me, cx)?;
    Ok(0)
}

fn readlink(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, buffer: UserOut<u8>, len: i32) -> Step<usize> {
    let len = usize::try_from(len).ok().filter(|&len| len > 0).ok_or(Errno::EINVAL)?;
    let path = PathName::read(path, me, cx)?;
    let target = dentry::read_link(At { directory, path: path.bytes() }, me, cx)?;
    let raw = target.get(..len).unwrap_or(&target);
    me.memory(cx)?.write_slice(buffer.slice(len), raw)?;
    Ok(raw.len())
}

fn mknod(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, mode: u32, device: u32) -> Step<usize> {
    let path = PathName::read(path, me, cx)?;
    let kind = match mode & abi::S_IFMT {
        0 => FileKind::Regular,
        abi::S_IFDIR => return Err(Errno::EPERM.into()),
        abi::S_IFLNK => return Err(Errno::EINVAL.into()),
        _ => FileKind::of_mode(mode).ok_or(Errno::EINVAL)?,
    };
    let device = match kind {
        FileKind::CharacterDevice | FileKind::BlockDevice => DeviceNumber::from_encoded(device.into()),
        _ => DeviceNumber::default(),
    };
    let new = NewFile { kind, permissions: mode & 0o7777, device, target: &[] };
    dentry::make(At { directory, path: path.bytes() }, &new, me, cx)?;
    Ok(0)
}

/// How an entry stands in the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// `struct linux_dirent`: the type behind the name.
    Old,
    /// `struct linux_dirent64`: the type before it.
    New,
}

/// Entries that are being put together for the caller.
struct Listing {
    bytes: Vec<u8>,
    limit: usize,
    layout: Layout,
    /// Behind the last entry that fit.
    position: u64,
}

impl Listing {
    /// Adds an entry; false if it does not fit.
    fn add(&mut self, name: &[u8], number: u64, kind: FileKind, next: u64) -> bool {
        let header = if self.layout == Layout::New { 19 } else { 18 };
        let tail = if self.layout == Layout::New { 1 } else { 2 };
        let len = (header + name.len() + tail).next_multiple_of(8);
        if self.bytes.len() + len > self.limit {
            return false;
        }
        let end = self.bytes.len() + len;
        self.bytes.extend_from_slice(&number.to_ne_bytes());
        self.bytes.extend_from_slice(&next.to_ne_bytes());
        self.bytes.extend_from_slice(&(len as u16).to_ne_bytes());
        if self.layout == Layout::New {
            self.bytes.push(kind.entry_type());
        }
        self.bytes.extend_from_slice(name);
        self.bytes.resize(end, 0);
        if self.layout == Layout::Old
            && let Some(last) = self.bytes.last_mut()
        {
            *last = kind.entry_type();
        }
        self.position = next;
        true
    }
}

fn getdents(cx: &Cx, me: &Current, args: &Args, layout: Layout) -> Step<usize> {
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let path = open.location.path(cx)?;
    let inode = &path.inode;
    if inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    if inode.is_removed(cx) {
        return Err(Errno::ENOENT.into());
    }
    // What does not fit into so much is told by the next call.
    let limit = (args.int(2) as u32 as usize).min(1 << 15);
    let _held = open.hold_offset(cx);
    let start = open.offset.load(Ordering::Relaxed);
    let mut listing = Listing { bytes: Vec::with_capacity(limit.min(4096)), limit, layout, position: start };
    let mut fits = true;
    if start == 0 {
        fits = listing.add(b".", inode.number, FileKind::Directory, 1);
    }
    if fits && start <= 1 {
        let above = path.clone().parent(&me.fs(cx)?.root(cx)?, cx);
        let number = above.map_or(inode.number, |above| above.inode.number);
        fits = listing.add(b"..", number, FileKind::Directory, 2);
    }
    if fits {
        inode.ops.list(inode, start.max(2), Some(me), cx, &mut |entry| {
            fits = listing.add(entry.name, entry.number, entry.kind, entry.next);
            fits
        })?;
    }
    if listing.bytes.is_empty() && !fits {
        return Err(Errno::EINVAL.into());
    }
    me.memory(cx)?.write_slice(args.output::<u8>(1).slice(limit), &listing.bytes)?;
    open.offset.store(listing.position, Ordering::Relaxed);
    open.touch_accessed(cx);
    open.notify(FileEvents::ACCESS, cx);
    Ok(listing.bytes.len())
}

fn getcwd(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let fs = me.fs(cx)?;
    let working = fs.working(cx)?;
    if working.inode.is_removed(cx) {
        return Err(Errno::ENOENT.into());
    }
    let mut name = working.name(&fs.root(cx)?, cx)?;
    name.push(0);
    if name.len() > 4096 {
        return Err(Errno::ENAMETOOLONG.into());
    }
    let room = args.long(1);
    if name.len() > room {
        return Err(Errno::ERANGE.into());
    }
    me.memory(cx)?.write_slice(args.output::<u8>(0).slice(room), &name)?;
    Ok(name.len())
}

fn chdir(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let path = PathName::read(args.string(0), me, cx)?;
    let path = walk::resolve(abi::AT_FDCWD, path.bytes(), WalkFlags::FOLLOW, me, cx)?;
    me.fs(cx)?.set_working(dentry::enterable(&path, me, cx)?, cx);
    Ok(0)
}

fn fchdir(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let path = me.files(cx)?.get_even_path(args.int(0), cx)?.location.path(cx)?;
    me.fs(cx)?.set_working(dentry::enterable(&path, me, cx)?, cx);
    Ok(0)
}

fn chroot(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let path = PathName::read(args.string(0), me, cx)?;
    let path = walk::resolve(abi::AT_FDCWD, path.bytes(), WalkFlags::FOLLOW, me, cx)?;
    let location = dentry::enterable(&path, me, cx)?;
    me.require(Capability::SysChroot, cx)?;
    me.fs(cx)?.set_root(location, cx);
    Ok(0)
}

fn umask(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    Ok(me.fs(cx)?.umask.swap(args.int(0) as u32 & 0o777, Ordering::Relaxed) as usize)
}
