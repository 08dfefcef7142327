//! What changes the tree of names: making, linking, removing and renaming files. Permissions, mounts and the shape of paths are judged here; the file
//! system does the rest.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::TempRc;

use super::access::{Subject, Want};
use super::open::creation;
use super::walk::{self, Found, WalkFlags};
use super::{DeviceNumber, FileKind, Inode, InodeFlags, Location, Named, Path, Rename, VfsCaller, acl, notify};
use crate::credentials::Capability;
use crate::error::Errno;
use crate::step::{Step, Stop};

/// A path with the directory that it is relative to.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// A descriptor, or AT_FDCWD.
    pub directory: i32,
    /// The path.
    pub path: &'a [u8],
}

/// The last name itself, which need not be there.
const NAME: WalkFlags = WalkFlags::NAME.union(WalkFlags::MAY_BE_MISSING);

impl<'a> At<'a> {
    fn walk<'cx>(self, flags: WalkFlags, me: &(impl VfsCaller + ?Sized), cx: &'cx Cx) -> Step<Found<'cx, 'a>> {
        walk::walk(walk::start(self.directory, self.path, me, cx)?, self.path, flags, me, cx)
    }
}

/// What mkdir(2), mknod(2) and symlink(2) make.
#[derive(Clone, Copy)]
pub struct NewFile<'a> {
    /// Its kind.
    pub kind: FileKind,
    /// Its permissions, umask not yet applied.
    pub permissions: u32,
    /// Which device, for a device node.
    pub device: DeviceNumber,
    /// Where it leads, for a symbolic link.
    pub target: &'a [u8],
}

/// Checks that a name may be made where `found` is.
fn check_new<'f, 'cx>(found: &'f Found<'cx, '_>, subject: &Subject<'_>, cx: &'cx Cx) -> Step<&'f Path<'cx>> {
    if found.target.is_some() || found.name.is_empty() {
        return Err(Errno::EEXIST.into());
    }
    let parent = &found.parent;
    parent.mount.check_writable(cx)?;
    if parent.inode.is_removed(cx) {
        return Err(Errno::ENOENT.into());
    }
    subject.check(&parent.inode, Want::WRITE | Want::EXECUTE, cx)?;
    Ok(parent)
}

/// Makes a file that is not opened: mkdir(2), mknod(2), symlink(2).
///
/// # Errors
/// Those of the three; EPERM for a device node of an unprivileged caller.
pub fn make<'cx>(
    at: At<'_>,
    new: &NewFile<'_>,
    me: &(impl VfsCaller + ?Sized),
    cx: &'cx Cx,
) -> Step<TempRc<'cx, Inode>> {
    let found = at.walk(NAME, me, cx)?;
    if found.has_trailing_slash && found.target.is_none() && new.kind != FileKind::Directory {
        return Err(Errno::ENOENT.into());
    }
    let subject = Subject::of(me, cx)?;
    let parent = check_new(&found, &subject, cx)?;
    let is_device = matches!(new.kind, FileKind::CharacterDevice | FileKind::BlockDevice);
    // 0, 0 is the white-out of overlay file systems: no device.
    let is_whiteout = new.kind == FileKind::CharacterDevice && new.device == DeviceNumber::default();
    if is_device && !is_whiteout && !subject.has(Capability::Mknod) {
        return Err(Errno::EPERM.into());
    }
    crate::memory::admit()?;
    let inherited = acl::inherited(&parent.inode, new.kind, new.permissions, cx)?;
    let mut what = creation(new.kind, new.permissions, &inherited, &parent.inode, &subject, me, cx)?;
    if new.kind == FileKind::Symlink {
        what.permissions = 0o777;
    }
    what.device = new.device;
    what.target = new.target;
    let made = parent.inode.ops.create(&parent.inode, &found.name, &what, cx)?;
    notify::created(&parent.inode, &found.name, &made, cx);
    Ok(made)
}

/// link(2): one more name for what is at `from`.
///
/// # Errors
/// Those of link(2).
pub fn link(from: At<'_>, walking: WalkFlags, to: At<'_>, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    let source = from.walk(walking, me, cx)?.target.ok_or(Errno::ENOENT)?;
    let found = to.walk(NAME, me, cx)?;
    if found.has_trailing_slash && found.target.is_none() {
        return Err(Errno::ENOENT.into());
    }
    let subject = Subject::of(me, cx)?;
    if found.target.is_none() && source.mount.id != found.parent.mount.id {
        return Err(Errno::EXDEV.into());
    }
    let parent = check_new(&found, &subject, cx)?;
    source.inode.check_not(InodeFlags::FIXED)?;
    if source.inode.kind == FileKind::Directory {
        return Err(Errno::EPERM.into());
    }
    // What is in a layer that is only read gets no names there.
    source.inode.ops.real_to_change(&source.inode, Some(me.as_dyn()), cx)?;
    parent.inode.ops.link(&parent.inode, &found.name, &source.inode, cx)?;
    notify::linked(&parent.inode, &found.name, &source.inode, cx);
    Ok(())
}

/// Judges and makes a change of names, and does so again where another core has put something else in a name's place in between.
pub(super) fn judge_and_change(mut change: impl FnMut() -> Step<()>) -> Step<()> {
    /// So often it is tried.
    const TRIES: usize = 64;
    const CHANGED: Step<()> = Err(Stop::Error(Errno::ESTALE));
    (0..TRIES).map(|_| change()).find(|outcome| *outcome != CHANGED).unwrap_or(CHANGED)
}

/// unlink(2).
///
/// # Errors
/// Those of unlink(2).
pub fn unlink(at: At<'_>, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    judge_and_change(|| unlink_once(at, me, cx))
}

fn unlink_once(at: At<'_>, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    let found = at.walk(NAME, me, cx)?;
    if found.name.is_empty() {
        return Err(Errno::EISDIR.into());
    }
    let victim = found.target.ok_or(Errno::ENOENT)?;
    let parent = found.parent;
    parent.mount.check_writable(cx)?;
    let is_directory = victim.inode.kind == FileKind::Directory;
    if found.has_trailing_slash {
        return Err(if is_directory { Errno::EISDIR } else { Errno::ENOTDIR }.into());
    }
    Subject::of(me, cx)?.check_removal(&parent.inode, &victim.inode, cx)?;
    if is_directory {
        return Err(Errno::EISDIR.into());
    }
    if victim.inode.mounts.load(Ordering::Relaxed) > 0 || victim.mount.id != parent.mount.id {
        return Err(Errno::EBUSY.into());
    }
    let named =
        Named { me: Some(me.as_dyn()), directory: &parent.inode, name: &found.name, inode: Some(&victim.inode) };
    parent.inode.ops.unlink(&named, cx)?;
    notify::unlinked(&parent.inode, &found.name, &victim.inode, cx);
    Ok(())
}

/// rmdir(2).
///
/// # Errors
/// Those of rmdir(2).
pub fn remove_directory(at: At<'_>, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    judge_and_change(|| remove_directory_once(at, me, cx))
}

fn remove_directory_once(at: At<'_>, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    let found = at.walk(NAME, me, cx)?;
    if found.ends_in_dot {
        return Err(Errno::EINVAL.into());
    }
    let victim = found.target.ok_or(Errno::ENOENT)?;
    if found.name.is_empty() {
        // `..` has something in it; the root is in use.
        let is_above = at.path.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty()) == Some(b"..");
        return Err(if is_above { Errno::ENOTEMPTY } else { Errno::EBUSY }.into());
    }
    let parent = found.parent;
    parent.mount.check_writable(cx)?;
    Subject::of(me, cx)?.check_removal(&parent.inode, &victim.inode, cx)?;
    if victim.inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    if victim.inode.mounts.load(Ordering::Relaxed) > 0 || victim.mount.id != parent.mount.id {
        return Err(Errno::EBUSY.into());
    }
    let named =
        Named { me: Some(me.as_dyn()), directory: &parent.inode, name: &found.name, inode: Some(&victim.inode) };
    parent.inode.ops.remove_directory(&named, cx)?;
    notify::unlinked(&parent.inode, &found.name, &victim.inode, cx);
    Ok(())
}

/// rename(2).
///
/// # Errors
/// Those of rename(2).
pub fn rename(from: At<'_>, to: At<'_>, how: Rename, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    judge_and_change(|| rename_once(from, to, how, me, cx))
}

fn rename_once(from: At<'_>, to: At<'_>, how: Rename, me: &impl VfsCaller, cx: &Cx) -> Step<()> {
    let source = from.walk(NAME, me, cx)?;
    let target = to.walk(NAME, me, cx)?;
    if source.parent.mount.id != target.parent.mount.id {
        return Err(Errno::EXDEV.into());
    }
    if source.name.is_empty() || target.name.is_empty() {
        let no_replace = how == Rename::NoReplace && !source.name.is_empty();
        return Err(if no_replace { Errno::EEXIST } else { Errno::EBUSY }.into());
    }
    source.parent.mount.check_writable(cx)?;
    let moved = source.target.ok_or(Errno::ENOENT)?;
    match (&target.target, how) {
        (Some(_), Rename::NoReplace) => return Err(Errno::EEXIST.into()),
        (None, Rename::Exchange) => return Err(Errno::ENOENT.into()),
        _ => {}
    }
    let is_directory = |path: &Path<'_>| path.inode.kind == FileKind::Directory;
    if let (Some(existing), Rename::Exchange) = (&target.target, how)
        && target.has_trailing_slash
        && !is_directory(existing)
    {
        return Err(Errno::ENOTDIR.into());
    }
    if !is_directory(&moved) && (source.has_trailing_slash || (target.has_trailing_slash && how != Rename::Exchange)) {
        return Err(Errno::ENOTDIR.into());
    }
    let (parent, to_parent) = (&source.parent.inode, &target.parent.inode);
    if is_directory(&moved) && Inode::is_within(to_parent, &moved.inode, cx) {
        return Err(Errno::EINVAL.into());
    }
    if let Some(existing) = &target.target {
        if Inode::is_within(parent, &existing.inode, cx) {
            return Err(if how == Rename::Exchange { Errno::EINVAL } else { Errno::ENOTEMPTY }.into());
        }
        let is_same = existing.inode.downgrade() == moved.inode.downgrade();
        if is_same && !parent.ops.is_in_other_letters(&source.name, &target.name, cx)? {
            return Ok(());
        }
    }
    let subject = Subject::of(me, cx)?;
    subject.check_removal(parent, &moved.inode, cx)?;
    let crosses = parent.downgrade() != to_parent.downgrade();
    match &target.target {
        Some(existing) => {
            subject.check_removal(to_parent, &existing.inode, cx)?;
            match (is_directory(&moved), is_directory(existing)) {
                _ if how == Rename::Exchange => {}
                (true, false) => return Err(Errno::ENOTDIR.into()),
                (false, true) => return Err(Errno::EISDIR.into()),
                _ => {}
            }
        }
        None => subject.check(to_parent, Want::WRITE | Want::EXECUTE, cx)?,
    }
    if crosses {
        // The `..` of a directory is rewritten.
        if is_directory(&moved) {
            subject.check(&moved.inode, Want::WRITE, cx)?;
        }
        if let (Some(existing), Rename::Exchange) = (&target.target, how)
            && is_directory(existing)
        {
            subject.check(&existing.inode, Want::WRITE, cx)?;
        }
    }
    let is_busy = |path: &Path<'_>, parent: &Path<'_>| {
        path.inode.mounts.load(Ordering::Relaxed) > 0 || path.mount.id != parent.mount.id
    };
    if is_busy(&moved, &source.parent)
        || target.target.as_ref().is_some_and(|existing| is_busy(existing, &target.parent))
    {
        return Err(Errno::EBUSY.into());
    }
    let existing = target.target.as_ref().map(|existing| &existing.inode);
    let me = Some(me.as_dyn());
    let old = Named { me, directory: parent, name: &source.name, inode: Some(&moved.inode) };
    parent.ops.rename(&old, &Named { me, directory: to_parent, name: &target.name, inode: existing }, how, cx)?;
    let (old, new) = ((parent, &*source.name), (to_parent, &*target.name));
    let replaced = existing.filter(|_| how != Rename::Exchange);
    notify::renamed(old, new, &moved.inode, replaced, cx);
    if let (Some(existing), Rename::Exchange) = (existing, how) {
        notify::renamed(new, old, existing, None, cx);
    }
    Ok(())
}

/// readlink(2): where a symbolic link leads. An empty path is the link that the descriptor was opened on.
///
/// # Errors
/// Those of readlink(2).
pub fn read_link(at: At<'_>, me: &impl VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
    let walking = if at.directory >= 0 { WalkFlags::MAY_BE_EMPTY } else { WalkFlags::empty() };
    let path = at.walk(walking, me, cx)?.target.ok_or(Errno::ENOENT)?;
    if path.inode.kind != FileKind::Symlink {
        return Err(if at.path.is_empty() { Errno::ENOENT } else { Errno::EINVAL }.into());
    }
    path.mount.touch_accessed(&path.inode, cx);
    path.inode.ops.read_link(me, cx)
}

/// A directory that may become the working directory or the root.
///
/// # Errors
/// ENOTDIR, EACCES; `Again`, as for [`Path::keep_in_step`].
pub fn enterable(path: &Path<'_>, me: &impl VfsCaller, cx: &Cx) -> Step<Location> {
    if path.inode.kind != FileKind::Directory {
        return Err(Errno::ENOTDIR.into());
    }
    Subject::of(me, cx)?.check(&path.inode, Want::EXECUTE, cx)?;
    path.keep_in_step()
}
