//! Changing what stat(2) tells: chmod, chown, utimes, truncate; and extended attributes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;

use super::access::{Subject, Want};
use super::acl::{self, Acl, AclKind};
use super::inode_file::{lost_group_bit, remove_file_capabilities, remove_privileges};
use super::notify::{self, FileEvents};
use super::{FileKind, Inode, InodeFlags, Mount, Timestamp, VfsCaller};
use crate::credentials::{Capability, FileCapabilities};
use crate::error::{Errno, Result};
use crate::heap::copied;
use crate::signal::Signal;
use crate::step::Step;

/// chmod(2).
///
/// # Errors
/// EPERM for who does not own it; EROFS.
pub fn change_mode(
    mount: &Mount,
    inode: &TempRc<'_, Inode>,
    permissions: u32,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<()> {
    mount.check_writable(cx)?;
    inode.ops.may_change_metadata()?;
    inode.check_not(InodeFlags::FIXED)?;
    if inode.kind == FileKind::Symlink {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let subject = Subject::of(me, cx)?;
    if !subject.owns(inode, cx) {
        return Err(Errno::EPERM.into());
    }
    let (mode, _, group) = inode.access_bits(cx);
    let mut permissions = inode.ops.permissions(inode, mode & 0o7777, permissions & 0o7777, cx)?;
    if !subject.has(Capability::Fsetid) && !subject.is_in(group, cx) {
        permissions &= !abi::S_ISGID;
    }
    let real = inode.ops.real_to_change(inode, Some(me), cx)?;
    acl::mode_changed(real.as_ref().unwrap_or(inode), permissions, cx)?;
    Inode::change_where_kept(inode, me, cx, |metadata| {
        metadata.mode = inode.kind.mode_bits() | permissions;
        metadata.changed = Timestamp::now();
    })?;
    notify::file_changed(inode, FileEvents::ATTRIB, cx);
    Ok(())
}

/// chown(2); `None` leaves an id as it is.
///
/// # Errors
/// EPERM; EROFS.
pub fn change_owner(
    mount: &Mount,
    inode: &TempRc<'_, Inode>,
    uid: Option<u32>,
    gid: Option<u32>,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<()> {
    mount.check_writable(cx)?;
    inode.ops.may_change_metadata()?;
    inode.check_not(InodeFlags::FIXED)?;
    let subject = Subject::of(me, cx)?;
    let (mode, owner, group) = inode.access_bits(cx);
    let lost = abi::S_ISUID | lost_group_bit(mode, group, &subject, cx);
    if !subject.has(Capability::Chown) {
        let gives_away = uid.is_some_and(|uid| uid != owner);
        let joins = gid.is_some_and(|gid| gid != group && !subject.is_in(gid, cx));
        if gives_away || joins || ((uid.is_some() || gid.is_some()) && !subject.is_user(owner)) {
            return Err(Errno::EPERM.into());
        }
    }
    if !inode.ops.can_be_owned_by(uid.unwrap_or(owner), gid.unwrap_or(group), cx)? {
        return Err(Errno::EPERM.into());
    }
    let real = inode.ops.real_to_change(inode, Some(me), cx)?;
    remove_file_capabilities(real.as_ref().unwrap_or(inode), cx)?;
    Inode::change_where_kept(inode, me, cx, |metadata| {
        metadata.uid = uid.unwrap_or(metadata.uid);
        metadata.gid = gid.unwrap_or(metadata.gid);
        if inode.kind != FileKind::Directory {
            metadata.mode &= !lost;
        }
        metadata.changed = Timestamp::now();
    })?;
    if uid.is_some() || gid.is_some() {
        notify::file_changed(inode, FileEvents::ATTRIB, cx);
    }
    Ok(())
}

/// What utimensat(2) does to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTime {
    /// Nothing.
    Keep,
    /// The present.
    Now,
    /// That.
    To(Timestamp),
}

/// utimensat(2).
///
/// # Errors
/// EACCES (both times to the present), EPERM (otherwise); EROFS.
pub fn change_times(
    mount: &Mount,
    inode: &TempRc<'_, Inode>,
    accessed: NewTime,
    modified: NewTime,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<()> {
    if (accessed, modified) == (NewTime::Keep, NewTime::Keep) {
        return Ok(());
    }
    mount.check_writable(cx)?;
    let is_touched = (accessed, modified) == (NewTime::Now, NewTime::Now);
    inode.check_not(if is_touched { InodeFlags::IMMUTABLE } else { InodeFlags::FIXED })?;
    let subject = Subject::of(me, cx)?;
    if !subject.owns(inode, cx) {
        if !is_touched {
            return Err(Errno::EPERM.into());
        }
        subject.check(inode, Want::WRITE, cx)?;
    }
    let now = Timestamp::now();
    let apply = |time: &mut Timestamp, new| match new {
        NewTime::Keep => {}
        NewTime::Now => *time = now,
        NewTime::To(to) => *time = to,
    };
    Inode::change_where_kept(inode, me, cx, |metadata| {
        apply(&mut metadata.accessed, accessed);
        apply(&mut metadata.modified, modified);
        metadata.changed = now;
    })?;
    let event = match (accessed, modified) {
        (_, NewTime::Keep) => FileEvents::ACCESS,
        (NewTime::Keep, _) => FileEvents::MODIFY,
        _ => FileEvents::ATTRIB,
    };
    notify::file_changed(inode, event, cx);
    Ok(())
}

/// Changes the length of a regular file; permissions are checked.
///
/// # Errors
/// EPERM: it is written at the end only. EFBIG with SIGXFSZ beyond RLIMIT_FSIZE; the file system's own; `Pause`.
pub fn truncate(inode: &TempRc<'_, Inode>, size: u64, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    inode.check_not(InodeFlags::APPEND)?;
    if size > inode.metadata(cx).size && size > me.limit(abi::RLIMIT_FSIZE, cx)? {
        me.raise(Signal::XFSZ, cx);
        return Err(Errno::EFBIG.into());
    }
    inode.ops.set_size(inode, size, cx)?;
    notify::file_changed(inode, FileEvents::MODIFY, cx);
    remove_privileges(&Inode::kept(inode, cx), me, cx)?;
    inode.bring_up_to_date(cx);
    Ok(())
}

/// The longest name and the longest value of an extended attribute.
const LONGEST_NAME: usize = 255;
const LONGEST_VALUE: usize = 65536;
/// How many bytes of names and values one file may have.
const MOST_BYTES: usize = 65536;

/// What setxattr(2) does about an attribute that is there, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAttribute {
    /// Either is fine.
    Any,
    /// EEXIST if it is there.
    Create,
    /// ENODATA if it is not.
    Replace,
    /// Both at once, so one of the two errors.
    Never,
}

/// Checks the name of an extended attribute, and that the caller may use it.
fn check_attribute(inode: &Inode, name: &[u8], want: Want, me: &impl VfsCaller, cx: &Cx) -> Result<()> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(Errno::ERANGE);
    }
    if matches!(name, b"user." | b"trusted." | b"security.") {
        return Err(Errno::EINVAL);
    }
    let subject = Subject::of(me, cx)?;
    let writes = want.contains(Want::WRITE);
    if writes {
        inode.check_not(InodeFlags::FIXED)?;
    }
    if name.starts_with(b"user.") {
        if !matches!(inode.kind, FileKind::Regular | FileKind::Directory) {
            return Err(if writes { Errno::EPERM } else { Errno::ENODATA });
        }
        subject.check(inode, want, cx)
    } else if name.starts_with(b"trusted.") {
        match subject.has(Capability::SysAdmin) {
            true => Ok(()),
            false => Err(if writes { Errno::EPERM } else { Errno::ENODATA }),
        }
    } else if name.starts_with(b"security.") {
        let needed = if name == FileCapabilities::ATTRIBUTE { Capability::Setfcap } else { Capability::SysAdmin };
        if writes && !subject.has(needed) { Err(Errno::EPERM) } else { Ok(()) }
    } else {
        Err(Errno::EOPNOTSUPP)
    }
}

/// setxattr(2).
///
/// # Errors
/// Those of setxattr(2).
pub fn set_attribute(
    mount: &Mount,
    inode: &TempRc<'_, Inode>,
    name: &[u8],
    value: &[u8],
    how: SetAttribute,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<()> {
    if let Some(kind) = AclKind::of_attribute(name) {
        return acl::set(mount, inode, kind, Acl::decode(value)?, me, cx);
    }
    mount.check_writable(cx)?;
    inode.ops.may_change_metadata()?;
    if name == FileCapabilities::ATTRIBUTE {
        FileCapabilities::decode(value)?;
    }
    check_attribute(inode, name, Want::WRITE, me, cx)?;
    if value.len() > LONGEST_VALUE {
        return Err(Errno::E2BIG.into());
    }
    crate::memory::admit()?;
    let real = inode.ops.real_to_change(inode, Some(me), cx)?;
    put(real.as_ref().unwrap_or(inode), &inode.ops.attribute_below(name), Some(value), how, cx)?;
    Inode::change_where_kept(inode, me, cx, |metadata| metadata.changed = Timestamp::now())?;
    notify::file_changed(inode, FileEvents::ATTRIB, cx);
    Ok(())
}

/// Gives a file an attribute, or takes it away, whoever may.
///
/// # Errors
/// EEXIST, ENODATA; ENOSPC; ENOMEM; the file system's, which keeps it.
pub fn put(inode: &Inode, name: &[u8], value: Option<&[u8]>, how: SetAttribute, cx: &Cx) -> Step<()> {
    let mut attributes = inode.attributes(cx)?;
    let there = attributes.get_or_insert_default();
    match how {
        SetAttribute::Create | SetAttribute::Never if there.contains_key(name) => return Err(Errno::EEXIST.into()),
        SetAttribute::Replace | SetAttribute::Never if !there.contains_key(name) => return Err(Errno::ENODATA.into()),
        _ => {}
    }
    let Some(value) = value else {
        inode.ops.keep_attribute(inode, name, None, cx)?;
        there.remove(name);
        inode.note_attributes(there);
        return Ok(());
    };
    let others: usize =
        there.iter().filter(|(other, _)| *other != name).map(|(name, value)| name.len() + value.len()).sum();
    if others + name.len() + value.len() > MOST_BYTES {
        return Err(Errno::ENOSPC.into());
    }
    let copy = copied(value)?;
    inode.ops.keep_attribute(inode, name, Some(value), cx)?;
    there.insert(name.to_vec(), copy);
    inode.note_attributes(there);
    Ok(())
}

/// getxattr(2).
///
/// # Errors
/// ENODATA, EOPNOTSUPP, EACCES.
pub fn attribute(inode: &TempRc<'_, Inode>, name: &[u8], me: &impl VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
    if let Some(kind) = AclKind::of_attribute(name) {
        return acl::get(inode, kind, cx);
    }
    check_attribute(inode, name, Want::READ, me, cx)?;
    let kept = Inode::kept(inode, cx);
    let attributes = kept.attributes(cx)?;
    let there = attributes.as_ref().and_then(|there| there.get(&*inode.ops.attribute_below(name)));
    Ok(copied(there.ok_or(Errno::ENODATA)?)?)
}

/// removexattr(2).
///
/// # Errors
/// ENODATA, EOPNOTSUPP, EACCES, EPERM, EROFS.
pub fn remove_attribute(
    mount: &Mount,
    inode: &TempRc<'_, Inode>,
    name: &[u8],
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<()> {
    if let Some(kind) = AclKind::of_attribute(name) {
        return acl::set(mount, inode, kind, None, me, cx);
    }
    mount.check_writable(cx)?;
    check_attribute(inode, name, Want::WRITE, me, cx)?;
    let kept = Inode::kept(inode, cx);
    let name = inode.ops.attribute_below(name);
    kept.load_attributes(cx)?;
    if !kept.attributes(cx)?.as_ref().is_some_and(|there| there.contains_key(&*name)) {
        return Err(Errno::ENODATA.into());
    }
    let kept = inode.ops.real_to_change(inode, Some(me), cx)?.unwrap_or(kept);
    put(&kept, &name, None, SetAttribute::Replace, cx)?;
    Inode::change_where_kept(inode, me, cx, |metadata| metadata.changed = Timestamp::now())?;
    notify::file_changed(inode, FileEvents::ATTRIB, cx);
    Ok(())
}

/// listxattr(2): the names, each with a zero behind it.
///
/// # Errors
/// The thread is gone.
pub fn attribute_names(inode: &TempRc<'_, Inode>, me: &impl VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
    let privileged = Subject::of(me, cx)?.has(Capability::SysAdmin);
    let kept = Inode::kept(inode, cx);
    let attributes = kept.attributes(cx)?;
    let mut names = Vec::new();
    for name in attributes.iter().flat_map(|there| BTreeMap::keys(there)) {
        let Some(name) = inode.ops.attribute_above(name) else { continue };
        if privileged || !name.starts_with(b"trusted.") {
            names.try_reserve(name.len() + 1).map_err(|_| Errno::ENOMEM)?;
            names.extend_from_slice(&name);
            names.push(0);
        }
    }
    Ok(names)
}
