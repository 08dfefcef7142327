//! What is known of files: stat, access, chmod, chown, utimes, truncate, extended attributes.

use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::WeakRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::block;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::access::{Subject, Want};
use crate::fs::attributes::{self, NewTime, SetAttribute};
use crate::fs::walk::{self, PathName, WalkFlags};
use crate::fs::{DeviceNumber, FileKind, Inode, InodeFlags, LockKind, Metadata, Path, Timestamp, leases};
use crate::step::{Patience, Step, complete_async};
use crate::user_memory::{Out, UserIn, UserOut, UserSlice};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_stat, "stat", Call::Step(|cx, me, args| stat(cx, me, args, WalkFlags::FOLLOW))),
    Entry::new(abi::__NR_lstat, "lstat", Call::Step(|cx, me, args| stat(cx, me, args, WalkFlags::empty()))),
    Entry::new(abi::__NR_fstat, "fstat", Call::Step(fstat)),
    Entry::new(abi::__NR_newfstatat, "newfstatat", Call::Step(newfstatat)),
    Entry::partial(abi::__NR_statx, "statx", Call::Step(statx), "attributes of inodes (immutable, append-only, ...)"),
    Entry::new(
        abi::__NR_access,
        "access",
        Call::Step(|cx, me, args| access(cx, me, abi::AT_FDCWD, args.string(0), args.int(1), 0)),
    ),
    Entry::new(
        abi::__NR_faccessat,
        "faccessat",
        Call::Step(|cx, me, args| access(cx, me, args.int(0), args.string(1), args.int(2), 0)),
    ),
    Entry::new(
        abi::__NR_faccessat2,
        "faccessat2",
        Call::Step(|cx, me, args| access(cx, me, args.int(0), args.string(1), args.int(2), args.int(3) as u32)),
    ),
    Entry::new(
        abi::__NR_chmod,
        "chmod",
        Call::Step(|cx, me, args| chmod(cx, me, abi::AT_FDCWD, args.string(0), args.int(1), 0)),
    ),
    Entry::new(
        abi::__NR_fchmodat,
        "fchmodat",
        Call::Step(|cx, me, args| chmod(cx, me, args.int(0), args.string(1), args.int(2), 0)),
    ),
    Entry::new(
        abi::__NR_fchmodat2,
        "fchmodat2",
        Call::Step(|cx, me, args| chmod(cx, me, args.int(0), args.string(1), args.int(2), args.int(3) as u32)),
    ),
    Entry::new(abi::__NR_fchmod, "fchmod", Call::Step(fchmod)),
    Entry::new(
        abi::__NR_chown,
        "chown",
        Call::Step(|cx, me, args| chown(cx, me, abi::AT_FDCWD, args.string(0), (args.int(1), args.int(2)), 0)),
    ),
    Entry::new(
        abi::__NR_lchown,
        "lchown",
        Call::Step(|cx, me, args| {
            chown(cx, me, abi::AT_FDCWD, args.string(0), (args.int(1), args.int(2)), abi::AT_SYMLINK_NOFOLLOW)
        }),
    ),
    Entry::new(
        abi::__NR_fchownat,
        "fchownat",
        Call::Step(|cx, me, args| {
            chown(cx, me, args.int(0), args.string(1), (args.int(2), args.int(3)), args.int(4) as u32)
        }),
    ),
    Entry::new(abi::__NR_fchown, "fchown", Call::Step(fchown)),
    Entry::new(abi::__NR_utime, "utime", Call::Step(utime)),
    Entry::new(
        abi::__NR_utimes,
        "utimes",
        Call::Step(|cx, me, args| utimes(cx, me, abi::AT_FDCWD, args.string(0), args.input::<[[i64; 2]; 2]>(1))),
    ),
    Entry::new(
        abi::__NR_futimesat,
        "futimesat",
        Call::Step(|cx, me, args| utimes(cx, me, args.int(0), args.string(1), args.input::<[[i64; 2]; 2]>(2))),
    ),
    Entry::new(abi::__NR_utimensat, "utimensat", Call::Step(utimensat)),
    Entry::new(abi::__NR_truncate, "truncate", Call::Async(truncate_async)),
    Entry::new(abi::__NR_ftruncate, "ftruncate", Call::Step(ftruncate)),
    Entry::new(
        abi::__NR_setxattr,
        "setxattr",
        Call::Step(|cx, me, args| setxattr(cx, me, Target::Path(args.string(0), WalkFlags::FOLLOW), args)),
    ),
    Entry::new(
        abi::__NR_lsetxattr,
        "lsetxattr",
        Call::Step(|cx, me, args| setxattr(cx, me, Target::Path(args.string(0), WalkFlags::empty()), args)),
    ),
    Entry::new(
        abi::__NR_fsetxattr,
        "fsetxattr",
        Call::Step(|cx, me, args| setxattr(cx, me, Target::Descriptor(args.int(0)), args)),
    ),
    Entry::new(
        abi::__NR_getxattr,
        "getxattr",
        Call::Step(|cx, me, args| getxattr(cx, me, Target::Path(args.string(0), WalkFlags::FOLLOW), args)),
    ),
    Entry::new(
        abi::__NR_lgetxattr,
        "lgetxattr",
        Call::Step(|cx, me, args| getxattr(cx, me, Target::Path(args.string(0), WalkFlags::empty()), args)),
    ),
    Entry::new(
        abi::__NR_fgetxattr,
        "fgetxattr",
        Call::Step(|cx, me, args| getxattr(cx, me, Target::Descriptor(args.int(0)), args)),
    ),
    Entry::new(
        abi::__NR_listxattr,
        "listxattr",
        Call::Step(|cx, me, args| listxattr(cx, me, Target::Path(args.string(0), WalkFlags::FOLLOW), args)),
    ),
    Entry::new(
        abi::__NR_llistxattr,
        "llistxattr",
        Call::Step(|cx, me, args| listxattr(cx, me, Target::Path(args.string(0), WalkFlags::empty()), args)),
    ),
    Entry::new(
        abi::__NR_flistxattr,
        "flistxattr",
        Call::Step(|cx, me, args| listxattr(cx, me, Target::Descriptor(args.int(0)), args)),
    ),
    Entry::new(
        abi::__NR_removexattr,
        "removexattr",
        Call::Step(|cx, me, args| removexattr(cx, me, Target::Path(args.string(0), WalkFlags::FOLLOW), args)),
    ),
    Entry::new(
        abi::__NR_lremovexattr,
        "lremovexattr",
        Call::Step(|cx, me, args| removexattr(cx, me, Target::Path(args.string(0), WalkFlags::empty()), args)),
    ),
    Entry::new(
        abi::__NR_fremovexattr,
        "fremovexattr",
        Call::Step(|cx, me, args| removexattr(cx, me, Target::Descriptor(args.int(0)), args)),
    ),
];

/// `struct stat` of x86-64.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Stat {
    device: u64,
    inode: u64,
    links: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    padding: u32,
    special_device: u64,
    size: u64,
    block_size: u64,
    blocks: u64,
    accessed: i64,
    accessed_nanoseconds: u64,
    modified: i64,
    modified_nanoseconds: u64,
    changed: i64,
    changed_nanoseconds: u64,
    unused: [u64; 3],
}

/// The number of the device that an inode is on, its own, and the bytes of a block there.
#[inline(always)]
fn identity(inode: &Inode, cx: &Cx) -> (DeviceNumber, u64, u32) {
    let file_system = inode.file_system.get(cx);
    let (minor, number) = match file_system.depth {
        0 => (file_system.device, inode.number),
        _ => inode.ops.identity(inode, cx),
    };
    (DeviceNumber { major: 0, minor }, number, file_system.capacity.block_bytes.load(Ordering::Relaxed))
}

#[inline]
fn write_stat(cx: &Cx, me: &Current, inode: &Inode, to: UserOut<Stat>) -> Step<usize> {
    let (device, number, block_size) = identity(inode, cx);
    let memory = me.memory(cx)?;
    inode.with_metadata(cx, |metadata| {
        let stat = Stat {
            device: device.encoded(),
            inode: number,
            links: metadata.links.into(),
            mode: metadata.mode,
            uid: metadata.uid,
            gid: metadata.gid,
            padding: 0,
            special_device: inode.device.encoded(),
            size: metadata.size,
            block_size: block_size.into(),
            blocks: metadata.blocks,
            accessed: metadata.accessed.seconds,
            accessed_nanoseconds: metadata.accessed.nanoseconds.into(),
            modified: metadata.modified.seconds,
            modified_nanoseconds: metadata.modified.nanoseconds.into(),
            changed: metadata.changed.seconds,
            changed_nanoseconds: metadata.changed.nanoseconds.into(),
            unused: [0; 3],
        };
        memory.write(to, &stat)
    })?;
    Ok(0)
}

fn stat(cx: &Cx, me: &Current, args: &Args, walking: WalkFlags) -> Step<usize> {
    let mut path = PathName::empty();
    path.fill(args.string(0), me, cx)?;
    let found = walk::resolve(abi::AT_FDCWD, path.bytes(), walking, me, cx)?;
    write_stat(cx, me, &found.inode, args.output::<Stat>(1))
}

fn fstat(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let open = me.files(cx)?.get_even_path(args.int(0), cx)?;
    write_stat(cx, me, &*open.inode(cx)?, args.output::<Stat>(1))
}

/// What `directory`, `path` and the AT_* flags mean together.
#[inline]
fn resolve_at<'cx>(cx: &'cx Cx, me: &Current, directory: i32, path: UserIn<u8>, flags: u32) -> Step<Path<'cx>> {
    resolve_as(cx, me, directory, path, flags, WalkFlags::empty())
}

fn resolve_as<'cx>(
    cx: &'cx Cx,
    me: &Current,
    directory: i32,
    path: UserIn<u8>,
    flags: u32,
    mut walking: WalkFlags,
) -> Step<Path<'cx>> {
    walking.set(WalkFlags::FOLLOW, flags & abi::AT_SYMLINK_NOFOLLOW == 0);
    if flags & abi::AT_EMPTY_PATH != 0 {
        walking |= WalkFlags::MAY_BE_EMPTY;
        if path.is_null() {
            return Ok(walk::start(directory, b"", me, cx)?);
        }
    }
    let mut name = PathName::empty();
    name.fill(path, me, cx)?;
    walk::resolve(directory, name.bytes(), walking, me, cx)
}

fn newfstatat(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(3) as u32;
    if flags & !(abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH | abi::AT_NO_AUTOMOUNT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let found = resolve_at(cx, me, args.int(0), args.string(1), flags)?;
    write_stat(cx, me, &found.inode, args.output::<Stat>(2))
}

/// `struct statx_timestamp`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct StatxTime {
    seconds: i64,
    nanoseconds: u32,
    reserved: i32,
}

impl From<Timestamp> for StatxTime {
    fn from(time: Timestamp) -> Self {
        StatxTime { seconds: time.seconds, nanoseconds: time.nanoseconds, reserved: 0 }
    }
}

/// `struct statx`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Statx {
    mask: u32,
    block_size: u32,
    attributes: u64,
    links: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    padding: u16,
    inode: u64,
    size: u64,
    blocks: u64,
    attributes_mask: u64,
    accessed: StatxTime,
    born: StatxTime,
    changed: StatxTime,
    modified: StatxTime,
    special_major: u32,
    special_minor: u32,
    device_major: u32,
    device_minor: u32,
    mount: u64,
    direct_memory_alignment: u32,
    direct_alignment: u32,
    unused: [u64; 12],
}

fn statx(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (flags, mask) = (args.int(2) as u32, args.int(3) as u32);
    let known = abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH | abi::AT_NO_AUTOMOUNT | abi::AT_STATX_SYNC_TYPE;
    if flags & !known != 0
        || flags & abi::AT_STATX_SYNC_TYPE == abi::AT_STATX_SYNC_TYPE
        || mask & abi::STATX__RESERVED != 0
    {
        return Err(Errno::EINVAL.into());
    }
    let found = resolve_at(cx, me, args.int(0), args.string(1), flags)?;
    let metadata: Metadata = found.inode.metadata(cx);
    let (device, number, block_size) = identity(&found.inode, cx);
    let is_mount_root = found.inode.downgrade() == found.mount.root.downgrade();
    let root_attribute = u64::from(abi::STATX_ATTR_MOUNT_ROOT);
    let has_flags = if found.inode.ops.has_flags() { InodeFlags::IN_STATX } else { InodeFlags::empty() };
    let flags = u64::from((found.inode.flags() & has_flags).bits());
    let compression = if found.inode.ops.tells_compression() { u64::from(abi::STATX_ATTR_COMPRESSED) } else { 0 };
    let direct_alignment = match mask & abi::STATX_DIOALIGN {
        0 => None,
        _ if found.inode.kind == FileKind::BlockDevice => {
            let DeviceNumber { major, minor } = found.inode.device;
            block::volume(major, minor, cx).map(|volume| volume.disk.device.geometry().logical_block)
        }
        _ => found.inode.ops.direct_alignment(cx),
    };
    let direct = if direct_alignment.is_some() { abi::STATX_DIOALIGN } else { 0 };
    let (mount, mount_kind) = match mask & abi::STATX_MNT_ID_UNIQUE {
        0 => (found.mount.id.into(), abi::STATX_MNT_ID),
        _ => (found.mount.unique_id(), abi::STATX_MNT_ID_UNIQUE),
    };
    let raw = Statx {
        mask: abi::STATX_BASIC_STATS | abi::STATX_BTIME | mount_kind | direct,
        block_size,
        attributes: flags | if is_mount_root { root_attribute } else { 0 },
        links: metadata.links,
        uid: metadata.uid,
        gid: metadata.gid,
        mode: metadata.mode as u16,
        padding: 0,
        inode: number,
        size: metadata.size,
        blocks: metadata.blocks,
        attributes_mask: root_attribute | u64::from(has_flags.bits()) | compression,
        accessed: metadata.accessed.into(),
        born: metadata.born.into(),
        changed: metadata.changed.into(),
        modified: metadata.modified.into(),
        special_major: found.inode.device.major,
        special_minor: found.inode.device.minor,
        device_major: device.major,
        device_minor: device.minor,
        mount,
        // It is copied, from wherever it is.
        direct_memory_alignment: direct_alignment.map_or(0, |_| 1),
        direct_alignment: direct_alignment.unwrap_or(0),
        unused: [0; 12],
    };
    me.memory(cx)?.write(args.output::<Statx>(4), &raw)?;
    Ok(0)
}

fn access(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, mode: i32, flags: u32) -> Step<usize> {
    let known = abi::AT_EACCESS | abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH;
    let want = Want::from_bits(mode as u32).ok_or(Errno::EINVAL)?;
    if flags & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (ids, subject) = if flags & abi::AT_EACCESS != 0 {
        (WalkFlags::empty(), Subject::of(me, cx)?)
    } else {
        (WalkFlags::REAL_IDS, Subject::real(me, cx)?)
    };
    let found = resolve_as(cx, me, directory, path, flags & !abi::AT_EACCESS, ids)?;
    if want.contains(Want::WRITE) && matches!(found.inode.kind, FileKind::Regular | FileKind::Directory) {
        found.mount.check_writable(cx)?;
    }
    let no_exec = crate::fs::MountFlags::NO_EXEC;
    if want.contains(Want::EXECUTE) && found.inode.kind == FileKind::Regular && found.mount.flags().contains(no_exec) {
        return Err(Errno::EACCES.into());
    }
    subject.check(&found.inode, want, cx)?;
    Ok(0)
}

fn chmod(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, mode: i32, flags: u32) -> Step<usize> {
    if flags & !(abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let found = resolve_at(cx, me, directory, path, flags)?;
    attributes::change_mode(&found.mount, &found.inode, mode as u32, me, cx)?;
    Ok(0)
}

/// What a descriptor is open on; EBADF for one that is only a place.
fn opened<'cx>(cx: &'cx Cx, me: &Current, fd: i32) -> Result<Path<'cx>> {
    me.files(cx)?.get(fd, cx)?.location.path(cx)
}

fn fchmod(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let path = opened(cx, me, args.int(0))?;
    attributes::change_mode(&path.mount, &path.inode, args.int(1) as u32, me, cx)?;
    Ok(0)
}

/// An id of chown(2): -1 leaves it.
fn new_id(id: i32) -> Option<u32> {
    (id != -1).then_some(id as u32)
}

fn chown(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, ids: (i32, i32), flags: u32) -> Step<usize> {
    if flags & !(abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let found = resolve_at(cx, me, directory, path, flags)?;
    attributes::change_owner(&found.mount, &found.inode, new_id(ids.0), new_id(ids.1), me, cx)?;
    Ok(0)
}

fn fchown(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let path = opened(cx, me, args.int(0))?;
    attributes::change_owner(&path.mount, &path.inode, new_id(args.int(1)), new_id(args.int(2)), me, cx)?;
    Ok(0)
}

fn utime(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (accessed, modified) = match args.input::<[i64; 2]>(1).non_null() {
        None => (NewTime::Now, NewTime::Now),
        Some(times) => {
            let times = me.memory(cx)?.read(times)?;
            let [accessed, modified] = times.map(|seconds| NewTime::To(Timestamp { seconds, nanoseconds: 0 }));
            (accessed, modified)
        }
    };
    let found = resolve_at(cx, me, abi::AT_FDCWD, args.string(0), 0)?;
    attributes::change_times(&found.mount, &found.inode, accessed, modified, me, cx)?;
    Ok(0)
}

fn utimes(cx: &Cx, me: &Current, directory: i32, path: UserIn<u8>, times: UserIn<[[i64; 2]; 2]>) -> Step<usize> {
    let (accessed, modified) = match times.non_null() {
        None => (NewTime::Now, NewTime::Now),
        Some(times) => {
            let times = me.memory(cx)?.read(times)?;
            if times.iter().any(|&[_, microseconds]| !(0..1_000_000).contains(&microseconds)) {
                return Err(Errno::EINVAL.into());
            }
            let [accessed, modified] = times.map(|[seconds, microseconds]| {
                NewTime::To(Timestamp { seconds, nanoseconds: microseconds as u32 * 1000 })
            });
            (accessed, modified)
        }
    };
    let found = if path.is_null() && directory != abi::AT_FDCWD {
        opened(cx, me, directory)?
    } else {
        resolve_at(cx, me, directory, path, 0)?
    };
    attributes::change_times(&found.mount, &found.inode, accessed, modified, me, cx)?;
    Ok(0)
}

fn utimensat(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (directory, path, flags) = (args.int(0), args.string(1), args.int(3) as u32);
    if flags & !(abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut times = [NewTime::Now; 2];
    let mut is_valid = true;
    if let Some(raw) = args.input::<[[i64; 2]; 2]>(2).non_null() {
        let raw = me.memory(cx)?.read(raw)?;
        for (time, [seconds, nanoseconds]) in times.iter_mut().zip(raw) {
            *time = match nanoseconds {
                nanoseconds if nanoseconds == i64::from(abi::UTIME_NOW) => NewTime::Now,
                nanoseconds if nanoseconds == i64::from(abi::UTIME_OMIT) => NewTime::Keep,
                // Judged once the file is found.
                nanoseconds => {
                    is_valid &= (0..1_000_000_000).contains(&nanoseconds);
                    NewTime::To(Timestamp { seconds, nanoseconds: nanoseconds as u32 })
                }
            };
        }
    }
    if times == [NewTime::Keep; 2] {
        return Ok(0);
    }
    let found = if path.is_null() && directory != abi::AT_FDCWD {
        if flags != 0 {
            return Err(Errno::EINVAL.into());
        }
        opened(cx, me, directory)?
    } else {
        resolve_at(cx, me, directory, path, flags)?
    };
    if !is_valid {
        return Err(Errno::EINVAL.into());
    }
    attributes::change_times(&found.mount, &found.inode, times[0], times[1], me, cx)?;
    Ok(0)
}

fn truncate_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let mut has_waited = false;
    // After a wait the path may lead elsewhere.
    loop {
        match complete_async(cx, me, Patience::Forever, |cx, me, _| truncate(cx, me, args)) {
            // The program that runs from it may have ended already.
            Err(Errno::ETXTBSY) if !has_waited => {
                has_waited = true;
                tasks::free_everything_async(cx);
            }
            Ok(Some(leased)) => leases::wait_until_broken_async(cx, me, leased, LockKind::Exclusive)?,
            done => return done.map(|_| 0),
        }
    }
}

/// Truncates a file, unless leases rule it out: then that is what is to be waited for.
fn truncate(cx: &Cx, me: &Current, args: &Args) -> Step<Option<WeakRc<Inode>>> {
    let size = u64::try_from(args.long(1) as i64).map_err(|_| Errno::EINVAL)?;
    let found = resolve_at(cx, me, abi::AT_FDCWD, args.string(0), 0)?;
    match found.inode.kind {
        FileKind::Regular => {}
        FileKind::Directory => return Err(Errno::EISDIR.into()),
        _ => return Err(Errno::EINVAL.into()),
    }
    found.mount.check_writable(cx)?;
    Subject::of(me, cx)?.check(&found.inode, Want::WRITE, cx)?;
    // A program that is being run cannot be changed. Nor does anybody get a lease from here on; those that there are, are seen.
    let _access = found.inode.write_access()?;
    if found.inode.leases.has_any() && found.inode.leases.break_for(LockKind::Exclusive, None, cx)?.is_some() {
        return Ok(Some(found.inode.downgrade()));
    }
    attributes::truncate(&found.inode, size, me, cx)?;
    Ok(None)
}

fn ftruncate(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let size = u64::try_from(args.long(1) as i64).map_err(|_| Errno::EINVAL)?;
    let open = me.files(cx)?.get(args.int(0), cx)?;
    let inode = open.inode(cx)?;
    if inode.kind != FileKind::Regular || !open.flags().can_write() {
        return Err(Errno::EINVAL.into());
    }
    attributes::truncate(&inode, size, me, cx)?;
    Ok(0)
}

/// What an extended attribute is of.
enum Target {
    Path(UserIn<u8>, WalkFlags),
    Descriptor(i32),
}

impl Target {
    fn find<'cx>(&self, cx: &'cx Cx, me: &Current) -> Step<Path<'cx>> {
        match *self {
            Target::Path(address, walking) => {
                let path = PathName::read(address, me, cx)?;
                Ok(walk::resolve(abi::AT_FDCWD, path.bytes(), walking, me, cx)?)
            }
            Target::Descriptor(fd) => Ok(opened(cx, me, fd)?),
        }
    }
}

/// The name of an extended attribute.
fn attribute_name(cx: &Cx, me: &Current, address: UserIn<u8>) -> Step<alloc::vec::Vec<u8>> {
    let name = me.memory(cx)?.read_c_string(address, 257, Errno::ERANGE)?;
    if name.is_empty() || name.len() > 255 { Err(Errno::ERANGE.into()) } else { Ok(name) }
}

fn setxattr(cx: &Cx, me: &Current, target: Target, args: &Args) -> Step<usize> {
    let how = match args.int(4) as u32 {
        0 => SetAttribute::Any,
        abi::XATTR_CREATE => SetAttribute::Create,
        abi::XATTR_REPLACE => SetAttribute::Replace,
        // Either it is there already, or it is not there to be replaced.
        both if both == abi::XATTR_CREATE | abi::XATTR_REPLACE => SetAttribute::Never,
        _ => return Err(Errno::EINVAL.into()),
    };
    let name = attribute_name(cx, me, args.string(1))?;
    let len = args.long(3);
    if len > 65536 {
        return Err(Errno::E2BIG.into());
    }
    let value = me.memory(cx)?.read_slice(args.input::<u8>(2).slice(len))?;
    let found = target.find(cx, me)?;
    attributes::set_attribute(&found.mount, &found.inode, &name, &value, how, me, cx)?;
    Ok(0)
}

/// Gives bytes to a caller that may only ask for their length (with room for 0).
fn tell(cx: &Cx, me: &Current, bytes: &[u8], to: UserSlice<u8, Out>) -> Step<usize> {
    if !to.is_empty() {
        if bytes.len() > to.len() {
            return Err(Errno::ERANGE.into());
        }
        me.memory(cx)?.write_slice(to, bytes)?;
    }
    Ok(bytes.len())
}

fn getxattr(cx: &Cx, me: &Current, target: Target, args: &Args) -> Step<usize> {
    let name = attribute_name(cx, me, args.string(1))?;
    let found = target.find(cx, me)?;
    let value = attributes::attribute(&found.inode, &name, me, cx)?;
    tell(cx, me, &value, args.output::<u8>(2).slice(args.long(3)))
}

fn listxattr(cx: &Cx, me: &Current, target: Target, args: &Args) -> Step<usize> {
    let found = target.find(cx, me)?;
    let names = attributes::attribute_names(&found.inode, me, cx)?;
    tell(cx, me, &names, args.output::<u8>(1).slice(args.long(2)))
}

fn removexattr(cx: &Cx, me: &Current, target: Target, args: &Args) -> Step<usize> {
    let name = attribute_name(cx, me, args.string(1))?;
    let found = target.find(cx, me)?;
    attributes::remove_attribute(&found.mount, &found.inode, &name, me, cx)?;
    Ok(0)
}
