//! POSIX access control lists of files: acl(5). [`Acl`] is one; [`set`], [`get`] and [`inherited`] are what programs do with them.
//!
//! A file's list is the value of an extended attribute, `system.posix_acl_access`; that of a directory for what is made in it is `system.posix_acl_default`. Both are kept
//! with the file's other attributes, in the form that programs see (version 2), and decoded when they are needed. An [`Inode`] notes which of the two it has, so that a file
//! without one costs a permission check no more than a test.
//!
//! The mode bits and the list say the same of the owner, of others, and of the mask (of the group, where there is no mask): who changes the one changes the other.

use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general::{S_IRWXG, S_ISGID};
use refs::TempRc;

use super::access::{Subject, Want};
use super::attributes::{self, SetAttribute};
use super::inode::NotedAttributes;
use super::notify::{self, FileEvents};
use super::{FileKind, Inode, InodeFlags, Metadata, Mount, Timestamp, VfsCaller};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};

/// The version in front of a list.
const VERSION: u32 = 2;
/// The bytes of the version, and of an entry.
const HEAD_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;
/// The id in an entry that has none.
const NO_ID: u32 = u32::MAX;
/// Read, write and execute.
const ALL: u32 = 0o7;

/// Which of a file's two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclKind {
    /// Who may do what to the file.
    Access,
    /// What files get that are made in the directory.
    Default,
}

impl AclKind {
    /// The kind that an extended attribute of that name keeps.
    pub fn of_attribute(name: &[u8]) -> Option<Self> {
        [AclKind::Access, AclKind::Default].into_iter().find(|kind| kind.attribute() == name)
    }

    /// The name of its extended attribute.
    pub const fn attribute(self) -> &'static [u8] {
        match self {
            AclKind::Access => b"system.posix_acl_access",
            AclKind::Default => b"system.posix_acl_default",
        }
    }

    fn noted(self) -> NotedAttributes {
        match self {
            AclKind::Access => NotedAttributes::ACCESS_ACL,
            AclKind::Default => NotedAttributes::DEFAULT_ACL,
        }
    }
}

/// Whom an entry is about, in the order in which they stand in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tag {
    Owner = 0x01,
    User = 0x02,
    OwningGroup = 0x04,
    Group = 0x08,
    /// Bounds named users and all groups.
    Mask = 0x10,
    Other = 0x20,
}

impl Tag {
    fn of(number: u16) -> Option<Self> {
        let all = [Tag::Owner, Tag::User, Tag::OwningGroup, Tag::Group, Tag::Mask, Tag::Other];
        all.into_iter().find(|tag| *tag as u16 == number)
    }

    fn has_id(self) -> bool {
        matches!(self, Tag::User | Tag::Group)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: Tag,
    permissions: u32,
    /// Of a named user or group.
    id: u32,
}

/// An access control list. It may be [invalid](Self::check).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl(Vec<Entry>);

impl Acl {
    /// The list that the value of an extended attribute is; `None`: the value stands for no list.
    ///
    /// # Errors
    /// EOPNOTSUPP: another version. EINVAL: it is no list. ENOMEM.
    pub fn decode(value: &[u8]) -> Result<Option<Self>> {
        if value.is_empty() {
            return Ok(None);
        }
        let (version, rest) = value.split_first_chunk::<HEAD_BYTES>().ok_or(Errno::EINVAL)?;
        if u32::from_le_bytes(*version) != VERSION {
            return Err(Errno::EOPNOTSUPP);
        }
        let (entries, []) = rest.as_chunks::<ENTRY_BYTES>() else { return Err(Errno::EINVAL) };
        let decode = |&[t0, t1, p0, p1, i0, i1, i2, i3]: &[u8; ENTRY_BYTES]| {
            let tag = Tag::of(u16::from_le_bytes([t0, t1])).ok_or(Errno::EINVAL)?;
            let id = if tag.has_id() { u32::from_le_bytes([i0, i1, i2, i3]) } else { NO_ID };
            if tag.has_id() && id == NO_ID {
                return Err(Errno::EINVAL);
            }
            Ok(Entry { tag, permissions: u16::from_le_bytes([p0, p1]).into(), id })
        };
        let mut all = Vec::new();
        all.try_reserve_exact(entries.len()).map_err(|_| Errno::ENOMEM)?;
        for entry in entries {
            all.push(decode(entry)?);
        }
        Ok((!all.is_empty()).then_some(Acl(all)))
    }

    /// The value of the extended attribute that keeps it.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        value.try_reserve_exact(HEAD_BYTES + self.0.len() * ENTRY_BYTES).map_err(|_| Errno::ENOMEM)?;
        value.extend_from_slice(&VERSION.to_le_bytes());
        for entry in &self.0 {
            value.extend_from_slice(&(entry.tag as u16).to_le_bytes());
            value.extend_from_slice(&(entry.permissions as u16).to_le_bytes());
            value.extend_from_slice(&entry.id.to_le_bytes());
        }
        Ok(value)
    }

    /// Checks that it has what acl(5) wants, in order: the owner, users, the owning group, groups, a mask (which must be there where users or groups are named), others.
    ///
    /// # Errors
    /// EINVAL.
    pub fn check(&self) -> Result<()> {
        let count = |tag| self.0.iter().filter(|entry| entry.tag == tag).count();
        let is_named = count(Tag::User) + count(Tag::Group) > 0;
        let is_whole = [Tag::Owner, Tag::OwningGroup, Tag::Other].into_iter().all(|tag| count(tag) == 1);
        let has_mask = count(Tag::Mask) == 1 || (count(Tag::Mask) == 0 && !is_named);
        let is_plain = self.0.iter().all(|entry| entry.permissions & !ALL == 0);
        if is_whole && has_mask && is_plain && self.0.is_sorted_by_key(|entry| entry.tag) {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// How far the mode bits are shifted that stand for an entry; `None`: none do. Those of the group stand for the mask, or for the owning group where there is no mask.
    fn shifts(&self) -> impl Fn(Tag) -> Option<u32> + use<> {
        let has_mask = self.0.iter().any(|entry| entry.tag == Tag::Mask);
        move |tag| match tag {
            Tag::Owner => Some(6),
            Tag::Mask => Some(3),
            Tag::OwningGroup if !has_mask => Some(3),
            Tag::Other => Some(0),
            Tag::OwningGroup | Tag::User | Tag::Group => None,
        }
    }

    /// The mode bits that go with it.
    fn mode_bits(&self) -> u32 {
        let shift = self.shifts();
        let bits = self.0.iter().filter_map(|entry| Some((entry.permissions & ALL) << shift(entry.tag)?));
        bits.fold(0, |all, bits| all | bits)
    }

    /// Changes the permissions of the entries that mode bits stand for, by what they are and what a mode grants.
    fn change(mut self, mode: u32, change: impl Fn(u32, u32) -> u32) -> Self {
        let shift = self.shifts();
        for entry in &mut self.0 {
            if let Some(shift) = shift(entry.tag) {
                entry.permissions = change(entry.permissions, mode >> shift & ALL);
            }
        }
        self
    }

    /// Whether its mode bits say all that it does.
    fn is_mode(&self) -> bool {
        self.0.iter().all(|entry| matches!(entry.tag, Tag::Owner | Tag::OwningGroup | Tag::Other))
    }

    /// The list of a file whose mode has been changed to `mode`.
    #[must_use]
    pub fn with_mode(self, mode: u32) -> Self {
        self.change(mode, |_, granted| granted)
    }

    /// The list of a new file, where this is its directory's default: nothing is granted that `mode`, as the call asked for it, does not have.
    fn for_new_file(self, mode: u32) -> Self {
        self.change(mode, |now, granted| now & granted)
    }

    /// Whether somebody who is not the file's owner may do that: acl(5), "ACCESS CHECK ALGORITHM".
    pub fn permits(&self, subject: &Subject<'_>, file: &Metadata, want: Want, cx: &Cx) -> bool {
        let grants = |entry: &Entry| want.bits() & !entry.permissions == 0;
        let mask = || self.0.iter().find(|entry| entry.tag == Tag::Mask);
        let is_unmasked = || mask().is_none_or(grants);
        let mut is_in_group = false;
        for entry in &self.0 {
            match entry.tag {
                Tag::User if subject.is_user(entry.id) => return grants(entry) && is_unmasked(),
                Tag::OwningGroup | Tag::Group => {
                    let group = if entry.tag == Tag::Group { entry.id } else { file.gid };
                    if subject.is_in(group, cx) {
                        is_in_group = true;
                        if grants(entry) {
                            return is_unmasked();
                        }
                    }
                }
                Tag::Other => return !is_in_group && grants(entry),
                Tag::Owner | Tag::User | Tag::Mask => {}
            }
        }
        false
    }
}

/// A list of an inode that has one. The inode is the one that keeps its attributes.
///
/// # Errors
/// Those of the file system that keeps it; EINVAL where it keeps none that is one.
fn of(kept: &Inode, kind: AclKind, cx: &Cx) -> Step<Option<Acl>> {
    if !kept.noted_attributes().contains(kind.noted()) {
        return Ok(None);
    }
    let attributes = kept.attributes(cx)?;
    let value = attributes.as_ref().and_then(|there| there.get(kind.attribute()));
    Ok(value.map_or(Ok(None), |value| Acl::decode(value))?)
}

/// As [`of`], where nothing can be waited for: whoever brings an inode into memory has its lists loaded.
fn of_loaded(inode: &Inode, kind: AclKind, cx: &Cx) -> Result<Option<Acl>> {
    let real = inode.ops.real(cx);
    of(real.as_deref().unwrap_or(inode), kind, cx).map_err(|stop| match stop {
        Stop::Error(error) => error,
        _ => Errno::EIO,
    })
}

/// Whether an access control list decides about a user who does not own the file, and how; `None`: the mode bits do.
///
/// # Errors
/// EIO and others: it cannot be read.
pub fn permits(inode: &Inode, subject: &Subject<'_>, file: &Metadata, want: Want, cx: &Cx) -> Result<Option<bool>> {
    // As on Linux, a list whose mask grants nothing is not looked at.
    if file.mode & S_IRWXG == 0 {
        return Ok(None);
    }
    Ok(of_loaded(inode, AclKind::Access, cx)?.map(|acl| acl.permits(subject, file, want, cx)))
}

/// What a new file has from the default list of its directory.
#[derive(Default)]
pub struct Inherited {
    /// Its permissions, instead of what the umask leaves; `None`: the directory has no such list.
    pub permissions: Option<u32>,
    /// Its extended attributes.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a file of that kind has from the directory in which it is made with those permissions.
///
/// # Errors
/// EIO and others: the list cannot be read.
pub fn inherited(directory: &Inode, kind: FileKind, permissions: u32, cx: &Cx) -> Result<Inherited> {
    if kind == FileKind::Symlink {
        return Ok(Inherited::default());
    }
    let Some(default) = of_loaded(directory, AclKind::Default, cx)? else { return Ok(Inherited::default()) };
    let mut attributes = Vec::new();
    if kind == FileKind::Directory {
        attributes.push((AclKind::Default.attribute().to_vec(), default.encode()?));
    }
    let own = default.for_new_file(permissions);
    if !own.is_mode() {
        attributes.push((AclKind::Access.attribute().to_vec(), own.encode()?));
    }
    Ok(Inherited { permissions: Some(permissions & !0o777 | own.mode_bits()), attributes })
}

/// Has the list of a file, if it has one, say what its mode says from now on.
///
/// # Errors
/// Those of the file system that keeps it.
pub fn mode_changed(kept: &Inode, mode: u32, cx: &Cx) -> Step<()> {
    match of(kept, AclKind::Access, cx)? {
        Some(acl) => put(kept, AclKind::Access, Some(&acl.with_mode(mode)), cx),
        None => Ok(()),
    }
}

fn put(kept: &Inode, kind: AclKind, acl: Option<&Acl>, cx: &Cx) -> Step<()> {
    let value = acl.map(Acl::encode).transpose()?;
    if value.is_none() && !kept.noted_attributes().contains(kind.noted()) {
        return Ok(());
    }
    attributes::put(kept, kind.attribute(), value.as_deref(), SetAttribute::Any, cx)
}

/// Checks that the file system keeps lists of that inode.
fn check_kept(inode: &Inode, kept: &Inode) -> Result<()> {
    if kept.ops.keeps_acls() && inode.kind != FileKind::Symlink { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

/// The value of the attribute that keeps a list.
///
/// # Errors
/// EOPNOTSUPP: the file system keeps none. ENODATA: there is none.
pub fn get(inode: &TempRc<'_, Inode>, kind: AclKind, cx: &Cx) -> Step<Vec<u8>> {
    let kept = Inode::kept(inode, cx);
    check_kept(inode, &kept)?;
    Ok(of(&kept, kind, cx)?.ok_or(Errno::ENODATA)?.encode()?)
}

/// Gives a file a list, or takes it away (`None`). With an access list the mode changes; one that says no more than the mode is not kept.
///
/// # Errors
/// EROFS; EPERM: the caller does not own it, or it is immutable. EOPNOTSUPP: the file system keeps none. EACCES: a default list for what is no directory. EINVAL: it is no list.
pub fn set(
    mount: &Mount,
    inode: &TempRc<'_, Inode>,
    kind: AclKind,
    acl: Option<Acl>,
    me: &impl VfsCaller,
    cx: &Cx,
) -> Step<()> {
    mount.check_writable(cx)?;
    inode.check_not(InodeFlags::FIXED)?;
    check_kept(inode, &Inode::kept(inode, cx))?;
    inode.ops.may_change_metadata()?;
    if kind == AclKind::Default && inode.kind != FileKind::Directory {
        return if acl.is_some() { Err(Errno::EACCES.into()) } else { Ok(()) };
    }
    let subject = Subject::of(me, cx)?;
    if !subject.owns(inode, cx) {
        return Err(Errno::EPERM.into());
    }
    acl.as_ref().map_or(Ok(()), Acl::check)?;
    crate::memory::admit()?;
    let real = inode.ops.real_to_change(inode, Some(me), cx)?;
    let kept: &Inode = real.as_ref().unwrap_or(inode);
    let (mode, _, group) = inode.access_bits(cx);
    let new_mode = match &acl {
        Some(acl) if kind == AclKind::Access => {
            let lost = if subject.has(Capability::Fsetid) || subject.is_in(group, cx) { 0 } else { S_ISGID };
            mode & !(0o777 | lost) | acl.mode_bits()
        }
        _ => mode,
    };
    let acl = acl.filter(|acl| kind == AclKind::Default || !acl.is_mode());
    put(kept, kind, acl.as_ref(), cx)?;
    Inode::change_where_kept(inode, me, cx, |metadata| {
        metadata.mode = new_mode;
        metadata.changed = Timestamp::now();
    })?;
    notify::file_changed(inode, FileEvents::ATTRIB, cx);
    Ok(())
}
