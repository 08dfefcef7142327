//! Making, linking and removing files: what the upper layer is told.
//!
//! What hides something of a lower layer is put in its place in one go, made in the work directory before; and only what succeeded there is noted in the directory here. So a step that
//! must wait for a layer leaves nothing behind but what is swept up.

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{StrongRc, TempRc};

use super::cache::Entry;
use super::copy_up::copy_up;
use super::directory::{Directory, Now};
use super::temporary::{Temporary, WHITEOUT};
use super::{Overlay, below, share};
use crate::error::Errno;
use crate::fs::attributes::{self, SetAttribute};
use crate::fs::{Creation, Dentry, DeviceNumber, FileKind, Inode, Named, VfsCaller};
use crate::step::{Step, Stop};

impl Overlay {
    /// Notes that a directory of the upper layer shows nothing of those below.
    pub fn set_opaque(&self, directory: &Inode, cx: &Cx) -> Step<()> {
        attributes::put(directory, self.notes.opaque, Some(b"y"), SetAttribute::Any, cx)
    }
}

/// Puts something into a directory of the upper layer that says that there is nothing under this name, instead of what is there. Called with the overlay's `tree` locked.
///
/// # Errors
/// Those of the upper layer.
pub fn place_whiteout(
    overlay: &StrongRc<Overlay>,
    directory: &TempRc<'_, Inode>,
    name: &[u8],
    existing: Option<&TempRc<'_, Inode>>,
    cx: &Cx,
) -> Step<StrongRc<Inode>> {
    if existing.is_none() {
        return share(&directory.ops.create(directory, name, &WHITEOUT, cx)?);
    }
    let mut whiteout = Temporary::make(overlay, &WHITEOUT, cx)?;
    whiteout.place(directory, name, existing, cx)?;
    Ok(whiteout.inode.share())
}

/// An inode lost one of its names.
pub fn lost_name(inode: &TempRc<'_, Inode>, directory: &TempRc<'_, Inode>, name: &[u8], cx: &Cx) {
    let is_last = match below(inode).ok().and_then(|below| below.upper(cx)) {
        Some(upper) if inode.kind != FileKind::Directory => upper.metadata(cx).links == 0,
        // Each name of a lower layer has an inode of its own.
        _ => true,
    };
    let mut dentry = inode.dentry.lock(cx);
    if is_last || dentry.is(directory, name) {
        dentry.is_removed = true;
    }
}

impl Directory {
    /// Makes a file.
    ///
    /// # Errors
    /// EEXIST; EPERM: it would be a whiteout; those of the upper layer.
    pub fn make<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        if what.kind == FileKind::CharacterDevice && what.device == DeviceNumber::default() {
            return Err(Errno::EPERM.into());
        }
        let _owner = share(this)?;
        let directory = copy_up(this, u64::MAX, None, cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let Now::Nothing(whiteout) = self.now(name, cx)? else { return Err(Errno::EEXIST.into()) };
        let made = match &whiteout {
            None => share(&directory.ops.create(&directory, name, what, cx)?)?,
            Some(whiteout) => {
                let mut temporary = Temporary::make(&self.below.overlay, what, cx)?;
                if what.kind == FileKind::Directory {
                    self.below.overlay.get(cx).set_opaque(&temporary.inode.get(cx), cx)?;
                }
                temporary.place(&directory, name, Some(whiteout), cx)?;
                temporary.inode.share()
            }
        };
        self.enter_made(this, name, made, whiteout.is_some(), cx)
    }

    /// Gives a file one more name. It is in the upper layer.
    ///
    /// # Errors
    /// EEXIST; those of the upper layer.
    pub fn make_link(&self, this: &TempRc<'_, Inode>, name: &[u8], target: &TempRc<'_, Inode>, cx: &Cx) -> Step<()> {
        let _owner = share(this)?;
        let share = share(target)?;
        let directory = copy_up(this, u64::MAX, None, cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let Now::Nothing(whiteout) = self.now(name, cx)? else { return Err(Errno::EEXIST.into()) };
        let upper = below(target)?.upper(cx).ok_or(Stop::Again)?;
        if let Some(whiteout) = &whiteout {
            // Nobody sees that it is gone before the new name is there, and what is left is no more than a name that is not there.
            directory.ops.unlink(&Named { me: None, directory: &directory, name, inode: Some(whiteout) }, cx)?;
        }
        let linked = directory.ops.link(&directory, name, &upper, cx);
        if linked.is_err() && whiteout.is_some() {
            let back = directory.ops.create(&directory, name, &WHITEOUT, cx)?;
            self.enter(this, name, Entry::Nothing(back.share()), cx)?;
        }
        linked?;
        let overlay = self.below.overlay.get(cx);
        overlay.linked.lock(cx).insert(upper.downgrade(), target.downgrade());
        self.enter(this, name, Entry::Inode { inode: share, covers: whiteout.is_some() }, cx)?;
        let mut dentry = target.dentry.lock(cx);
        if dentry.is_removed {
            *dentry = Dentry::new(this, name);
        }
        Ok(())
    }

    /// Takes out the name of a file that is no directory.
    ///
    /// # Errors
    /// ESTALE, EISDIR; those of the upper layer.
    pub fn remove_file(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let Named { me, directory: this, name, .. } = *at;
        let _owner = share(this)?;
        let directory = copy_up(this, u64::MAX, me, cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let (inode, covers) = self.check(at, cx)?;
        if inode.kind == FileKind::Directory {
            return Err(Errno::EISDIR.into());
        }
        let upper = below(&inode)?.upper(cx);
        let whiteout = match &upper {
            Some(upper) if !covers => {
                directory.ops.unlink(&Named { me, directory: &directory, name, inode: Some(upper) }, cx)?;
                None
            }
            upper => Some(place_whiteout(&self.below.overlay, &directory, name, upper.as_ref(), cx)?),
        };
        self.enter(this, name, Entry::Nothing(whiteout), cx)?;
        lost_name(&inode, this, name, cx);
        Ok(())
    }

    /// Takes out an empty directory.
    ///
    /// # Errors
    /// ESTALE, ENOTDIR, ENOTEMPTY; those of the layers.
    pub fn remove_empty(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let Named { me, directory: this, name, inode: found } = *at;
        let found = found.ok_or(Errno::ESTALE)?;
        let removed = found.ops_as::<Directory>().ok_or(Errno::ENOTDIR)?;
        let _owner = share(this)?;
        let _other_owner = share(found)?;
        removed.know_all(me, cx)?;
        let directory = copy_up(this, u64::MAX, me, cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let (inode, covers) = self.check(at, cx)?;
        removed.check_empty(cx)?;
        let whiteout = self.take_out_directory(&directory, name, removed, covers, me, cx)?;
        removed.is_removed.store(true, Ordering::Relaxed);
        self.enter(this, name, Entry::Nothing(whiteout), cx)?;
        lost_name(&inode, this, name, cx);
        Ok(())
    }

    /// Checks that nothing is in it. Called with the overlay's `tree` locked; all names are known.
    ///
    /// # Errors
    /// ENOTEMPTY.
    pub fn check_empty(&self, cx: &Cx) -> Step<()> {
        let cache = self.cache.lock(cx);
        match (cache.is_complete, cache.there) {
            (true, 0) => Ok(()),
            (true, _) => Err(Errno::ENOTEMPTY.into()),
            (false, _) => Err(Stop::Again),
        }
    }

    /// Takes an empty directory out of the upper layer, where it may have whiteouts in it; what is there instead.
    fn take_out_directory(
        &self,
        directory: &TempRc<'_, Inode>,
        name: &[u8],
        removed: &Directory,
        covers: bool,
        me: Option<&dyn VfsCaller>,
        cx: &Cx,
    ) -> Step<Option<StrongRc<Inode>>> {
        let upper = removed.below.upper(cx);
        match &upper {
            Some(upper) if !covers => {
                let named = Named { me, directory, name, inode: Some(upper) };
                match directory.ops.remove_directory(&named, cx) {
                    Err(Stop::Error(Errno::ENOTEMPTY)) => self.below.overlay.get(cx).discard(&named, upper, cx)?,
                    outcome => outcome?,
                }
                Ok(None)
            }
            upper => Ok(Some(place_whiteout(&self.below.overlay, directory, name, upper.as_ref(), cx)?)),
        }
    }
}
