//! Mounting file systems, and how full they are.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{StrongRc, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::drivers::loops;
use crate::error::{Errno, Result};
use crate::fs::file_system::wait_for_end;
use crate::fs::types::{self, Made, Opening, Request};
use crate::fs::walk::{self, PathName, WalkFlags};
use crate::fs::{
    DeviceNumber, FileKind, FileSystem, Inode, Location, MOUNTS, Mount, MountFlags, Path, PropagationType, change_flags,
};
use crate::process;
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async};
use crate::user_memory::{UserIn, UserOut};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(abi::__NR_mount, "mount", Call::Async(mount_async), "one mount namespace"),
    Entry::new(abi::__NR_pivot_root, "pivot_root", Call::Async(pivot_root_async)),
    Entry::new(abi::__NR_umount2, "umount2", Call::Async(umount_async)),
    Entry::new(abi::__NR_statfs, "statfs", Call::Step(statfs)),
    Entry::new(abi::__NR_fstatfs, "fstatfs", Call::Step(fstatfs)),
    Entry::new(abi::__NR_ustat, "ustat", Call::Step(ustat)),
    Entry::new(abi::__NR_sysfs, "sysfs", Call::Step(sysfs)),
];

/// Checks that the caller may change mounts.
pub(super) fn check_privileged(cx: &Cx, me: &Current) -> Result<()> {
    me.require(Capability::SysAdmin, cx)
}

/// A string of mount(2) that may be absent.
fn optional_string(cx: &Cx, me: &Current, string: UserIn<u8>) -> Step<Vec<u8>> {
    match string.non_null() {
        None => Ok(Vec::new()),
        Some(string) => me.memory(cx)?.read_c_string(string, 4096, Errno::EINVAL),
    }
}

fn mount_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    match complete_async(cx, me, Patience::Forever, |cx, me, _| mount(cx, me, args))? {
        Begun::Done => {}
        Begun::Remount(mount) => {
            let flags = flags(args);
            let of_file_system = flags & abi::MS_BIND == 0;
            let read_only = of_file_system.then_some(flags & abi::MS_RDONLY != 0);
            remount_async(cx, me, mount, read_only, &|now| now.remounted(flags))?;
        }
        Begun::Opening(opening, source) => {
            let mut mount = Some(open_async(cx, me, opening, source, MountFlags::of_mount(flags(args)))?);
            complete_async(cx, me, Patience::Forever, |cx, me, _| {
                let target = PathName::read(args.string(1), me, cx)?;
                let on = walk::resolve(abi::AT_FDCWD, target.bytes(), WalkFlags::FOLLOW, me, cx)?;
                let mount = mount.take().ok_or(Errno::EINVAL)?;
                Ok(attach(mount, &on, cx)?)
            })?;
        }
    }
    Ok(0)
}

/// Changes what a mount allows, and whether its file system is written, if that is said. One that is not written any more, and is mounted nowhere else, is as after umount(2).
///
/// # Errors
/// EBUSY: nothing is to be written any more, and files are open for it. EROFS: it is to be written, and its file system cannot be. EIO.
pub(super) fn remount_async(
    cx: &mut Cx,
    me: &mut Current,
    mount: WeakRc<Mount>,
    read_only: Option<bool>,
    change: &dyn Fn(MountFlags) -> MountFlags,
) -> Result<()> {
    let set_read_only_async = |cx: &mut Cx, me: &mut Current, read_only: bool| {
        let mut has_asked = false;
        complete_async(cx, me, Patience::Forever, |cx, _, waker| {
            let mount = mount.upgrade(cx).map_err(|_| Errno::EINVAL)?;
            let file_system = mount.file_system.get(cx);
            if read_only && file_system.has_other_mounts() {
                return Ok(());
            }
            file_system.set_read_only(read_only, &mut has_asked, waker, cx)
        })
    };
    if read_only == Some(false) {
        set_read_only_async(cx, me, false)?;
    } else {
        let mount = mount.upgrade(cx).map_err(|_| Errno::EINVAL)?;
        let new = change(mount.flags());
        if !new.contains(MountFlags::READ_ONLY) && mount.file_system.get(cx).is_read_only() {
            return Err(Errno::EROFS);
        }
    }
    change_flags(cx, &[mount], change)?;
    if read_only == Some(true) {
        set_read_only_async(cx, me, true)?;
    }
    Ok(())
}

/// How far mount(2) is after its first step.
enum Begun {
    Done,
    /// A mount is to have other flags.
    Remount(WeakRc<Mount>),
    /// What is on a device is opened; and what was given as the source.
    Opening(Box<dyn Opening>, Vec<u8>),
}

/// Opens what is on a device; a mount of it that is nowhere yet.
pub(super) fn open_async(
    cx: &mut Cx,
    me: &mut Current,
    mut opening: Box<dyn Opening>,
    source: Vec<u8>,
    flags: MountFlags,
) -> Result<StrongRc<Mount>> {
    let (file_system, root) = complete_async(cx, me, Patience::Forever, |cx, _, waker| opening.step(waker, cx))?;
    Ok(StrongRc::new(Mount::new(file_system, root, source, flags)))
}

/// The flags of mount(2).
fn flags(args: &Args) -> u32 {
    let flags = args.long(3) as u32;
    // The upper half may have the magic number that old programs put there.
    if flags & 0xffff_0000 == 0xc0ed_0000 { flags & 0xffff } else { flags }
}

/// Mounts something, or says which mount is to have other flags.
fn mount(cx: &Cx, me: &Current, args: &Args) -> Step<Begun> {
    let flags = flags(args);
    let target = PathName::read(args.string(1), me, cx)?;
    let on = walk::resolve(abi::AT_FDCWD, target.bytes(), WalkFlags::FOLLOW, me, cx)?;
    check_privileged(cx, me)?;
    if flags & abi::MS_REMOUNT != 0 {
        if !on.is_root_of_mount() {
            return Err(Errno::EINVAL.into());
        }
        if flags & abi::MS_BIND == 0 {
            let options = optional_string(cx, me, args.string(4))?;
            types::change_options(&on.mount.file_system.get(cx), &options, cx)?;
        }
        return Ok(Begun::Remount(on.mount.downgrade()));
    }
    let propagates = abi::MS_SHARED | abi::MS_PRIVATE | abi::MS_SLAVE | abi::MS_UNBINDABLE;
    let is_recursive = flags & abi::MS_REC != 0;
    if flags & propagates != 0 && flags & abi::MS_BIND == 0 {
        let kind = propagation_type(flags)?;
        if !on.is_root_of_mount() {
            return Err(Errno::EINVAL.into());
        }
        MOUNTS.set_propagation(&on.mount, kind, is_recursive, cx)?;
        return Ok(Begun::Done);
    }
    let has_source = args.string(0).non_null().is_some();
    let source = optional_string(cx, me, args.string(0))?;
    crate::memory::admit()?;
    if flags & (abi::MS_BIND | abi::MS_MOVE) != 0 {
        if source.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        let from = walk::resolve(abi::AT_FDCWD, &source, WalkFlags::FOLLOW, me, cx)?;
        if flags & abi::MS_BIND != 0 {
            bind(cx, &from, &on, is_recursive)?;
        } else if from.is_root_of_mount() {
            MOUNTS.relocate(&from.mount, &on, cx)?;
        } else {
            return Err(Errno::EINVAL.into());
        }
        return Ok(Begun::Done);
    }
    let kind = me.memory(cx)?.read_c_string(args.string(2).non_null().ok_or(Errno::EINVAL)?, 4096, Errno::EINVAL)?;
    let options = optional_string(cx, me, args.string(4))?;
    if on.inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    let is_read_only = flags & abi::MS_RDONLY != 0;
    let kind = types::find(&kind, cx)?;
    if kind.needs_source() && !has_source {
        return Err(Errno::EINVAL.into());
    }
    let request = Request { kind, source: &source, options: &options, is_read_only };
    let ((file_system, root), access) = match request.begin(me, cx)? {
        Made::Instance(instance, access) => (instance, access),
        Made::Opening(opening) => return Ok(Begun::Opening(opening, source)),
    };
    let flags = MountFlags::of_mount(flags) | access;
    attach(StrongRc::new(Mount::new(file_system, root, source, flags)), &on, cx)?;
    Ok(Begun::Done)
}

/// Types of file systems of which each mount is one of its own on Linux, while here they share one.
const ONE_FOR_EACH_MOUNT: [&str; 2] = ["proc", "devpts"];

/// Enters a new mount at a place.
///
/// # Errors
/// EBUSY: the same file system is what is mounted there. Those of [`MountTable::attach`](crate::fs::MountTable::attach).
fn attach(mount: StrongRc<Mount>, on: &Path<'_>, cx: &Cx) -> Result<()> {
    let file_system = on.mount.file_system.get(cx);
    let is_same = mount.with(|mount| mount.file_system.downgrade() == file_system.downgrade());
    if is_same && on.is_root_of_mount() && !ONE_FOR_EACH_MOUNT.contains(&file_system.name) {
        return Err(Errno::EBUSY);
    }
    MOUNTS.attach(mount, Some(on), cx)
}

/// The one propagation type that mount(2) was given.
///
/// # Errors
/// EINVAL: there are several, or flags that do not go with them.
pub(super) fn propagation_type(flags: u32) -> Result<PropagationType> {
    match flags & !(abi::MS_REC | abi::MS_SILENT) {
        abi::MS_SHARED => Ok(PropagationType::Shared),
        abi::MS_PRIVATE => Ok(PropagationType::Private),
        abi::MS_SLAVE => Ok(PropagationType::Slave),
        abi::MS_UNBINDABLE => Ok(PropagationType::Unbindable),
        _ => Err(Errno::EINVAL),
    }
}

fn bind<'cx>(cx: &'cx Cx, from: &Path<'cx>, on: &Path<'_>, is_recursive: bool) -> Result<()> {
    let is_directory = |path: &Path<'_>| path.inode.kind == FileKind::Directory;
    if is_directory(from) != is_directory(on) {
        return Err(Errno::ENOTDIR);
    }
    MOUNTS.bind(from, on, is_recursive, cx)
}

/// pivot_root(2). Who has the old root as root or working directory gets the new one.
fn pivot_root_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (old, new) = complete_async(cx, me, Patience::Forever, |cx, me, _| pivot_root(cx, me, args))?;
    let mut from = Some(0);
    complete_async(cx, me, Patience::Forever, |cx, _, _| {
        let (mut time_slice, mut looked_at) = (TimeSlice::default(), 0_u32);
        let (old, new) = (old.path(cx)?, new.path(cx)?);
        while let Some((tid, name)) = from.and_then(|from| process::THREADS.next(from, cx)) {
            from = tid.checked_add(1);
            let places = name.upgrade(cx).ok().and_then(|thread| thread.fs.lock(cx).as_ref().map(|fs| fs.get(cx)));
            if let Some(places) = places {
                places.replace(&old, &new, cx)?;
            }
            looked_at += 1;
            if looked_at.is_multiple_of(AT_ONCE) && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(0)
    })
}

/// So many threads are looked at before it is asked whether others should have their turn.
const AT_ONCE: u32 = 16;

/// Moves the mounts; which place was the root, and which is from now on.
fn pivot_root(cx: &Cx, me: &Current, args: &Args) -> Step<(Location, Location)> {
    check_privileged(cx, me)?;
    let [new, put_old] = [0, 1].map(|at| PathName::read(args.string(at), me, cx));
    let (new_name, put_old_name) = (new?, put_old?);
    let new = walk::resolve(abi::AT_FDCWD, new_name.bytes(), WalkFlags::FOLLOW, me, cx)?;
    if new.inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    let put_old = walk::resolve(abi::AT_FDCWD, put_old_name.bytes(), WalkFlags::FOLLOW, me, cx)?;
    if put_old.inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    let root = me.fs(cx)?.root(cx)?;
    let (old_place, new_place) = (root.keep_in_step()?, new.keep_in_step()?);
    MOUNTS.pivot(&root, &new, &put_old, cx)?;
    Ok((old_place, new_place))
}

fn umount_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    // What was closed uses the mount no more.
    tasks::free_everything_async(cx);
    let (file_system, waits) = complete_async(cx, me, Patience::Forever, |cx, me, _| umount(cx, me, args))?;
    tasks::free_everything_async(cx);
    complete_async(cx, me, Patience::Forever, |cx, _, waker| {
        wait_for_end(waker, cx);
        let is_ending = waits && file_system.upgrade(cx).is_ok_and(|file_system| file_system.is_ending());
        if is_ending { Err(Stop::BlockOnDevice) } else { Ok(0) }
    })?;
    // The device, which it used until then, may be let go of with its last user.
    tasks::free_everything_async(cx);
    Ok(0)
}

/// Takes a mount out; of which file system, and whether its end is to be waited for.
fn umount(cx: &Cx, me: &Current, args: &Args) -> Step<(WeakRc<FileSystem>, bool)> {
    let flags = args.int(1) as u32;
    let expires = flags & abi::MNT_EXPIRE != 0;
    let known = abi::MNT_FORCE | abi::MNT_DETACH | abi::MNT_EXPIRE | abi::UMOUNT_NOFOLLOW;
    if flags & !known != 0 || (expires && flags & (abi::MNT_FORCE | abi::MNT_DETACH) != 0) {
        return Err(Errno::EINVAL.into());
    }
    let path = PathName::read(args.string(0), me, cx)?;
    let mut walking = WalkFlags::NO_USE;
    walking.set(WalkFlags::FOLLOW, flags & abi::UMOUNT_NOFOLLOW == 0);
    let found = walk::resolve(abi::AT_FDCWD, path.bytes(), walking, me, cx)?;
    check_privileged(cx, me)?;
    if !found.is_root_of_mount() {
        return Err(Errno::EINVAL.into());
    }
    if expires {
        MOUNTS.check_idle(&found.mount, cx)?;
        if !found.mount.has_expired() {
            return Err(Errno::EAGAIN.into());
        }
    }
    let file_system = found.mount.file_system.downgrade();
    // The file of a loop device that was unmounted just now may be what is in the way. (Asked before: it may be gone right after it was.)
    let may_soon_be_idle = loops::lets_go(cx);
    match MOUNTS.detach(&found.mount, flags & abi::MNT_DETACH != 0, cx) {
        Err(Errno::EBUSY) if may_soon_be_idle => return Err(Stop::Pause(Interruption::KillOnly)),
        outcome => outcome?,
    }
    Ok((file_system, flags & abi::MNT_DETACH == 0))
}

/// `struct statfs` of x86-64.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct StatFs {
    kind: u64,
    block_size: u64,
    blocks: u64,
    blocks_free: u64,
    blocks_available: u64,
    files: u64,
    files_free: u64,
    id: [u32; 2],
    name_len: u64,
    fragment_size: u64,
    flags: u64,
    spare: [u64; 4],
}

fn write_statfs(cx: &Cx, me: &Current, path: &Path<'_>, to: UserOut<StatFs>) -> Step<usize> {
    let file_system = path.inode.file_system.get(cx);
    // How full a stacked file system is, what its files are kept in says.
    let store = Inode::kept(&path.mount.root.get(cx), cx).file_system.get(cx);
    let capacity = &store.capacity;
    let blocks = capacity.pages.load(Ordering::Relaxed);
    let free = blocks.saturating_sub(capacity.used_pages.load(Ordering::Relaxed));
    let files = capacity.inodes.load(Ordering::Relaxed);
    // ST_VALID, and the flags of the mount in their ST_* places, which are those of MS_* but for two.
    const MOVED: [(MountFlags, u32); 2] =
        [(MountFlags::RELATIVE_ATIME, 0x1000), (MountFlags::NO_SYMLINK_FOLLOW, 0x2000)];
    let own = path.mount.flags();
    let flags =
        MOVED.iter().fold(
            own.bits() | 0x20,
            |flags, &(flag, place)| {
                if own.contains(flag) { flags & !flag.bits() | place } else { flags }
            },
        );
    let raw = StatFs {
        kind: file_system.magic.into(),
        block_size: 4096,
        blocks,
        blocks_free: free,
        blocks_available: free.saturating_sub(capacity.kept_pages.load(Ordering::Relaxed)),
        files,
        files_free: files.saturating_sub(capacity.used_inodes.load(Ordering::Relaxed)),
        id: [file_system.device, 0],
        name_len: capacity.longest_name.load(Ordering::Relaxed).into(),
        fragment_size: 4096,
        flags: u64::from(flags),
        spare: [0; 4],
    };
    me.memory(cx)?.write(to, &raw)?;
    Ok(0)
}

fn statfs(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let path = PathName::read(args.string(0), me, cx)?;
    let found = walk::resolve(abi::AT_FDCWD, path.bytes(), WalkFlags::FOLLOW, me, cx)?;
    write_statfs(cx, me, &found, args.output::<StatFs>(1))
}

fn fstatfs(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let path = me.files(cx)?.get_even_path(args.int(0), cx)?.location.path(cx)?;
    write_statfs(cx, me, &path, args.output::<StatFs>(1))
}

/// `struct ustat` of x86-64.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct UStat {
    blocks_free: i32,
    padding: u32,
    inodes_free: u64,
    name: [u8; 6],
    pack_name: [u8; 6],
    padding_too: u32,
}

/// How full the mounted file system is that has a device number.
fn ustat(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let device = DeviceNumber::from_encoded((args.int(0) as u32).into());
    let all = MOUNTS.file_systems(cx).into_iter().filter_map(|system| system.upgrade(cx).ok());
    let system = all.into_iter().find(|system| device == DeviceNumber { major: 0, minor: system.device });
    let capacity = &system.as_ref().ok_or(Errno::EINVAL)?.capacity;
    let free =
        |all: &AtomicU64, used: &AtomicU64| all.load(Ordering::Relaxed).saturating_sub(used.load(Ordering::Relaxed));
    let raw = UStat {
        blocks_free: free(&capacity.pages, &capacity.used_pages) as i32,
        padding: 0,
        inodes_free: free(&capacity.inodes, &capacity.used_inodes),
        name: [0; 6],
        pack_name: [0; 6],
        padding_too: 0,
    };
    me.memory(cx)?.write(args.output::<UStat>(1), &raw)?;
    Ok(0)
}

/// Which types of file systems there are.
fn sysfs(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let types = types::types(cx);
    match args.int(0) {
        1 => {
            let name = me.memory(cx)?.read_c_string(args.string(1), 4096, Errno::EINVAL)?;
            Ok(types.iter().position(|kind| kind.name.as_bytes() == name).ok_or(Errno::EINVAL)?)
        }
        2 => {
            let kind = types.get(args.int(1) as u32 as usize).ok_or(Errno::EINVAL)?;
            let name = [kind.name.as_bytes(), &[0]].concat();
            me.memory(cx)?.write_slice(args.output::<u8>(2).slice(name.len()), &name)?;
            Ok(0)
        }
        3 => Ok(types.len()),
        _ => Err(Errno::EINVAL.into()),
    }
}
