//! The requests of ioctl(2) that loop devices have: see loop(4).

use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::loop_device as abi;
use refs::StrongRc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::device::{AUTOCLEAR, Bound, Change, DIRECT_IO, LoopDevice, PARTSCAN, READ_ONLY};
use super::of_volume;
use crate::block::{SECTOR, Volume};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::fs::types::{self, Origin};
use crate::fs::{FileKind, OpenFile, VfsCaller};
use crate::step::Step;
use crate::user_memory::Argument;

/// `struct loop_info64`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    raw_device: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_info` of x86-64.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct OldInfo {
    number: i32,
    padding: u32,
    device: u64,
    inode: u64,
    raw_device: u64,
    offset: i32,
    encrypt_type: u32,
    key_size: u32,
    flags: u32,
    name: [u8; 64],
    key: [u8; 32],
    init: [u64; 2],
    reserved: [u8; 4],
    end: u32,
}

/// `struct loop_config`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Configuration {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

/// ioctl(2) of an open volume. `can_write`: it was opened for writing.
///
/// # Errors
/// ENOTTY: it is no loop device. ENXIO: it has no file. EBUSY: it has one. EBADF: what is to be its file is no open one. EINVAL: it does not know the request, or not so. EPERM.
pub fn ioctl(
    volume: &Volume,
    can_write: bool,
    request: u32,
    argument: Argument,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> Step<usize> {
    let Some(known) = of_volume(volume, cx) else { return Err(Errno::ENOTTY.into()) };
    let device = known.device;
    match request {
        abi::LOOP_SET_FD => {
            let info = Info::new_zeroed();
            set_file(device, argument.value() as i32, &info, SECTOR as u32, can_write, me, cx)?;
        }
        abi::LOOP_CONFIGURE => {
            let config = me.memory(cx)?.read(argument.input::<Configuration>())?;
            let known_flags = READ_ONLY | AUTOCLEAR | PARTSCAN | DIRECT_IO;
            if config.info.flags & !known_flags != 0 {
                return Err(Errno::EINVAL.into());
            }
            let block = if config.block_size == 0 { SECTOR as u32 } else { config.block_size };
            check_block(block)?;
            set_file(device, config.fd as i32, &config.info, block, can_write, me, cx)?;
        }
        abi::LOOP_CLR_FD => device.give_up(known.disk.users() == 1, cx)?,
        abi::LOOP_GET_STATUS64 => {
            let info = status(device, cx)?;
            me.memory(cx)?.write(argument.output::<Info>(), &info)?;
        }
        abi::LOOP_GET_STATUS => {
            let info = old_info(&status(device, cx)?)?;
            me.memory(cx)?.write(argument.output::<OldInfo>(), &info)?;
        }
        abi::LOOP_SET_DIRECT_IO => {
            check_may_change(can_write, me, cx)?;
            device.with_bound(cx, |_| Ok(()))?;
            // No file can be had so.
            if argument.value() != 0 {
                return Err(Errno::EINVAL.into());
            }
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

/// # Errors
/// EPERM.
fn check_may_change(can_write: bool, me: &dyn VfsCaller, cx: &Cx) -> Result<()> {
    let may = can_write || me.credentials(cx)?.lock(cx).has(Capability::SysAdmin);
    if may { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether a request is one of [`change`]'s.
pub fn is_change(request: u32) -> bool {
    use abi::{LOOP_CHANGE_FD, LOOP_SET_BLOCK_SIZE, LOOP_SET_CAPACITY, LOOP_SET_STATUS, LOOP_SET_STATUS64};
    matches!(request, LOOP_SET_STATUS64 | LOOP_SET_STATUS | LOOP_SET_CAPACITY | LOOP_SET_BLOCK_SIZE | LOOP_CHANGE_FD)
}

/// The device of an open volume, and what the program wants it to be.
///
/// # Errors
/// As for [`ioctl`], and EOVERFLOW: an offset that no file has.
pub fn change(
    volume: &Volume,
    can_write: bool,
    request: u32,
    argument: Argument,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> Step<(&'static LoopDevice, Change)> {
    let device = of_volume(volume, cx).ok_or(Errno::ENOTTY)?.device;
    if request != abi::LOOP_CHANGE_FD {
        check_may_change(can_write, me, cx)?;
    }
    let memory = me.memory(cx)?;
    let change = match request {
        abi::LOOP_SET_STATUS64 => new_status(&memory.read(argument.input::<Info>())?)?,
        abi::LOOP_SET_STATUS => new_status(&new_info(&memory.read(argument.input::<OldInfo>())?))?,
        abi::LOOP_SET_CAPACITY => Change::Capacity,
        abi::LOOP_CHANGE_FD => {
            device.with_bound(cx, |_| Ok(()))?;
            let new = other_file(argument.value() as i32, me, cx)?;
            let path = path_of(&new, me, cx)?;
            Change::File(new, path)
        }
        _ => {
            device.with_bound(cx, |_| Ok(()))?;
            let bytes = u32::try_from(argument.value()).map_err(|_| Errno::EINVAL)?;
            check_block(bytes)?;
            Change::Block(bytes)
        }
    };
    Ok((device, change))
}

fn check_block(bytes: u32) -> Result<()> {
    if bytes.is_power_of_two() && (512..=4096).contains(&bytes) { Ok(()) } else { Err(Errno::EINVAL) }
}

/// The open file of a descriptor, if it can be a device's.
///
/// # Errors
/// EBADF. EINVAL: it is no regular file that keeps its content.
fn file_of(fd: i32, me: &dyn VfsCaller, cx: &Cx) -> Result<StrongRc<OpenFile>> {
    let open = me.files(cx)?.get(fd, cx)?;
    let inode = open.location.inode.get(cx);
    if inode.kind != FileKind::Regular || !inode.ops.keeps_content() || !open.flags().can_read() {
        return Err(Errno::EINVAL);
    }
    open.share().ok_or(Errno::EBADF)
}

/// The file's absolute name, as the caller sees it.
fn path_of(file: &StrongRc<OpenFile>, me: &dyn VfsCaller, cx: &Cx) -> Result<Vec<u8>> {
    let places = me.fs(cx)?;
    file.get(cx).location.path(cx)?.name(&places.root(cx)?, cx)
}

fn set_file(
    device: &LoopDevice,
    fd: i32,
    info: &Info,
    block: u32,
    can_write: bool,
    me: &dyn VfsCaller,
    cx: &Cx,
) -> Step<()> {
    let file = file_of(fd, me, cx)?;
    check_info(info)?;
    let is_read_only = info.flags & READ_ONLY != 0 || !can_write || !file.get(cx).flags().can_write();
    // Nothing is read in another way than through the page cache.
    let flags = info.flags & (AUTOCLEAR | PARTSCAN) | if is_read_only { READ_ONLY } else { 0 };
    let path = path_of(&file, me, cx)?;
    let bound = Bound { file, path, offset: info.offset, size_limit: info.size_limit, flags, name: info.file_name };
    device.bind(bound, is_read_only, block, cx)
}

/// # Errors
/// EINVAL: it is to be encrypted. EOVERFLOW: an offset that no file has.
fn check_info(info: &Info) -> Result<()> {
    if info.encrypt_type != abi::LO_CRYPT_NONE || info.key_size > abi::LO_KEY_SIZE {
        return Err(Errno::EINVAL);
    }
    let is_offset = |value: u64| i64::try_from(value).is_ok();
    if is_offset(info.offset) && is_offset(info.size_limit) { Ok(()) } else { Err(Errno::EOVERFLOW) }
}

/// The file for LOOP_CHANGE_FD.
///
/// # Errors
/// As for [`file_of`], and EINVAL: it is on a disk, and that might be this one.
fn other_file(fd: i32, me: &dyn VfsCaller, cx: &Cx) -> Result<StrongRc<OpenFile>> {
    let new = file_of(fd, me, cx)?;
    let kind = types::find(new.get(cx).location.inode.get(cx).file_system.get(cx).name.as_bytes(), cx);
    let is_on_disk = kind.is_ok_and(|kind| matches!(kind.origin, Origin::Device(_) | Origin::Directories(_)));
    if is_on_disk { Err(Errno::EINVAL) } else { Ok(new) }
}

/// # Errors
/// As for [`check_info`].
fn new_status(info: &Info) -> Result<Change> {
    check_info(info)?;
    let flags = info.flags & (AUTOCLEAR | PARTSCAN);
    Ok(Change::Status { offset: info.offset, size_limit: info.size_limit, flags, name: info.file_name })
}

fn status(device: &LoopDevice, cx: &Cx) -> Step<Info> {
    device.with_bound(cx, |bound| {
        let inode = bound.file.get(cx).location.inode.get(cx);
        let minor = u64::from(inode.file_system.get(cx).device);
        let mut info = Info::new_zeroed();
        // As programs find it in st_dev: of a device without a name.
        info.device = minor & 0xff | (minor & !0xff) << 12;
        info.inode = inode.number;
        (info.offset, info.size_limit) = (bound.offset, bound.size_limit);
        (info.number, info.flags, info.file_name) = (device.number, bound.flags, bound.name);
        Ok(info)
    })
}

/// # Errors
/// EOVERFLOW: an offset that it has no room for. A limit of the size it does not have at all.
fn old_info(info: &Info) -> Result<OldInfo> {
    let mut old = OldInfo::new_zeroed();
    old.number = info.number as i32;
    old.device = info.device;
    old.inode = info.inode;
    old.offset = i32::try_from(info.offset).map_err(|_| Errno::EOVERFLOW)?;
    old.flags = info.flags;
    old.name = info.file_name;
    Ok(old)
}

fn new_info(old: &OldInfo) -> Info {
    let mut info = Info::new_zeroed();
    info.offset = old.offset as u64;
    info.encrypt_type = old.encrypt_type;
    info.key_size = old.key_size;
    info.flags = old.flags;
    info.file_name = old.name;
    info
}
