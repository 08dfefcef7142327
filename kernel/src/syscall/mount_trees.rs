//! Trees of mounts that have no place yet, where they go, and what their mounts allow: open_tree(2), move_mount(2), mount_setattr(2).

use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::WeakRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::mounts::{check_privileged, propagation_type};
use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::open::{OpenHow, Opened, open_step};
use crate::fs::walk::{self, PathName, WalkFlags};
use crate::fs::{
    FdFlags, FlagChange, MOUNTS, Mount, OpenFlags, Path, PropagationType, TreeFile, VfsCaller, change_flags, reserve_fd,
};
use crate::step::{Patience, Step, complete_async};
use crate::user_memory::UserIn;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_open_tree, "open_tree", Call::Step(open_tree)),
    Entry::new(abi::__NR_move_mount, "move_mount", Call::Step(move_mount)),
    Entry::partial(
        abi::__NR_mount_setattr,
        "mount_setattr",
        Call::Async(mount_setattr_async),
        "MOUNT_ATTR_IDMAP: there are no user namespaces",
    ),
];

/// The place at a path, relative to `directory`.
fn place<'cx>(
    cx: &'cx Cx,
    me: &Current,
    directory: i32,
    path: UserIn<u8>,
    follows: bool,
    may_be_empty: bool,
) -> Step<Path<'cx>> {
    let mut walking = WalkFlags::empty();
    walking.set(WalkFlags::FOLLOW, follows);
    walking.set(WalkFlags::MAY_BE_EMPTY, may_be_empty);
    let path = PathName::read(path, me, cx)?;
    walk::resolve(directory, path.bytes(), walking, me, cx)
}

fn open_tree(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(2) as u32;
    let known = abi::AT_EMPTY_PATH
        | abi::AT_NO_AUTOMOUNT
        | abi::AT_RECURSIVE
        | abi::AT_SYMLINK_NOFOLLOW
        | abi::OPEN_TREE_CLONE
        | abi::OPEN_TREE_CLOEXEC;
    let (is_recursive, copies) = (flags & abi::AT_RECURSIVE != 0, flags & abi::OPEN_TREE_CLONE != 0);
    if flags & !known != 0 || (is_recursive && !copies) {
        return Err(Errno::EINVAL.into());
    }
    if copies {
        check_privileged(cx, me)?;
    }
    let (follows, may_be_empty) = (flags & abi::AT_SYMLINK_NOFOLLOW == 0, flags & abi::AT_EMPTY_PATH != 0);
    let fd_flags = if flags & abi::OPEN_TREE_CLOEXEC != 0 { FdFlags::CLOSE_ON_EXEC } else { FdFlags::empty() };
    crate::memory::admit()?;
    let reserved = reserve_fd(me, cx)?;
    if copies {
        let from = place(cx, me, args.int(0), args.string(1), follows, may_be_empty)?;
        let open = TreeFile::of_copy(&from, is_recursive, &me.payer(cx)?, cx)?;
        return Ok(reserved.fill(open, fd_flags, cx));
    }
    // It is as open(2) with O_PATH.
    let path = PathName::read(args.string(1), me, cx)?;
    let mut how = OpenHow::new(OpenFlags::PATH, 0);
    if !follows {
        how.flags |= OpenFlags::NO_FOLLOW;
    }
    how.walk.set(WalkFlags::MAY_BE_EMPTY, may_be_empty);
    match open_step(args.int(0), path.bytes(), &how, me, cx)? {
        Opened::File(file) => Ok(reserved.fill_shared(file, fd_flags, cx)),
        Opened::Fifo(..) | Opened::Leased(..) => Err(Errno::EINVAL.into()),
    }
}

fn move_mount(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(4) as u32;
    let has = |flag: u32| flags & flag != 0;
    check_privileged(cx, me)?;
    if has(!abi::MOVE_MOUNT__MASK) || (has(abi::MOVE_MOUNT_BENEATH) && has(abi::MOVE_MOUNT_SET_GROUP)) {
        return Err(Errno::EINVAL.into());
    }
    let from_empty = has(abi::MOVE_MOUNT_F_EMPTY_PATH);
    let from = place(cx, me, args.int(0), args.string(1), has(abi::MOVE_MOUNT_F_SYMLINKS), from_empty)?;
    let to_empty = has(abi::MOVE_MOUNT_T_EMPTY_PATH);
    let to = place(cx, me, args.int(2), args.string(3), has(abi::MOVE_MOUNT_T_SYMLINKS), to_empty)?;
    if has(abi::MOVE_MOUNT_SET_GROUP) {
        MOUNTS.set_group(&from, &to, cx)?;
        return Ok(0);
    }
    if !from.is_root_of_mount() {
        return Err(Errno::EINVAL.into());
    }
    crate::memory::admit()?;
    if has(abi::MOVE_MOUNT_BENEATH) {
        MOUNTS.relocate_beneath(&from.mount, &to, &me.fs(cx)?.root(cx)?, cx)?;
    } else {
        MOUNTS.relocate(&from.mount, &to, cx)?;
    }
    Ok(0)
}

/// `struct mount_attr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// A change of a mount, or of a tree.
struct Change {
    flags: FlagChange,
    propagation: Option<PropagationType>,
}

fn mount_setattr_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    const KNOWN: usize = size_of::<Attributes>();
    let (flags, size) = (args.int(2) as u32, args.long(4));
    let known = abi::AT_EMPTY_PATH | abi::AT_RECURSIVE | abi::AT_SYMLINK_NOFOLLOW | abi::AT_NO_AUTOMOUNT;
    if flags & !known != 0 {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    if size < KNOWN {
        return Err(Errno::EINVAL);
    }
    check_privileged(cx, me)?;
    let attributes = me.read_async(cx, args.input::<Attributes>(3))?;
    for at in KNOWN..size {
        if me.read_async(cx, args.input::<u8>(3).add(at))? != 0 {
            return Err(Errno::E2BIG);
        }
    }
    if attributes.set == 0 && attributes.clear == 0 && attributes.propagation == 0 {
        return Ok(0);
    }
    let change = decode(&attributes, me, cx)?;
    let is_recursive = flags & abi::AT_RECURSIVE != 0;
    let tree: Vec<WeakRc<Mount>> = complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let (follows, may_be_empty) = (flags & abi::AT_SYMLINK_NOFOLLOW == 0, flags & abi::AT_EMPTY_PATH != 0);
        let found = place(cx, me, args.int(0), args.string(1), follows, may_be_empty)?;
        if !found.is_root_of_mount() {
            return Err(Errno::EINVAL.into());
        }
        Ok(MOUNTS.tree(&found.mount, is_recursive, cx)?)
    })?;
    change_flags(cx, &tree, &|flags| change.flags.apply(flags))?;
    if let (Some(kind), Some(first)) = (change.propagation, tree.first()) {
        MOUNTS.set_propagation(&first.upgrade(cx).map_err(|_| Errno::EINVAL)?, kind, is_recursive, cx)?;
    }
    Ok(0)
}

/// What is to be changed.
///
/// # Errors
/// EINVAL for what is not known or goes not together. EBADF: the user namespace is no descriptor.
fn decode(attributes: &Attributes, me: &Current, cx: &Cx) -> Result<Change> {
    let number = |value: u64| u32::try_from(value).map_err(|_| Errno::EINVAL);
    let (set, clear) = (number(attributes.set)?, number(attributes.clear)?);
    let propagation = match number(attributes.propagation)? {
        0 => None,
        kind => Some(propagation_type(kind).map_err(|_| Errno::EINVAL)?),
    };
    let idmap = abi::MOUNT_ATTR_IDMAP;
    let flags = FlagChange::of_attributes(set & !idmap, clear & !idmap)?;
    if clear & idmap != 0 {
        return Err(Errno::EINVAL);
    }
    if set & idmap != 0 {
        let fd = i32::try_from(attributes.user_namespace).map_err(|_| Errno::EINVAL)?;
        me.files(cx)?.get(fd, cx)?;
        // It is no user namespace.
        return Err(Errno::EINVAL);
    }
    Ok(Change { flags, propagation })
}
