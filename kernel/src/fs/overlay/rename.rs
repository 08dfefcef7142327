//! rename(2) in an overlay.
//!
//! Both names are in the upper layer when it begins. Where a lower layer would show something under the old name, something is to stay there that hides it: so there is a whiteout under
//! the new name first (which shows nothing, as there was nothing or what was there is to go), and then the two names exchange what they have. So at no time anything is seen
//! that was not there.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::TempRc;

use super::cache::Entry;
use super::change::{lost_name, place_whiteout};
use super::copy_up::copy_up;
use super::directory::{Directory, Now};
use super::node::Below;
use super::options::Redirect;
use super::{Overlay, below, share};
use crate::error::Errno;
use crate::fs::attributes::{self, SetAttribute};
use crate::fs::{Dentry, FileKind, Inode, Named, Rename};
use crate::step::{Step, Stop};

/// The longest note of where a directory is below, as on Linux.
const LONGEST_REDIRECT: usize = 256;

/// Whether it shows something of lower layers that would be lost under another name.
fn shows_lower(inode: &Inode, own: &Below) -> bool {
    inode.kind == FileKind::Directory && !own.lowers.is_empty()
}

impl Overlay {
    /// Sees to it that a directory that goes to another name shows there what it shows now: of the layers below, what is under its old name, or nothing although there is
    /// something under the new one (`covers`).
    fn prepare_move(
        &self,
        from: &Named<'_, '_>,
        stays_in: bool,
        inode: &TempRc<'_, Inode>,
        covers: bool,
        cx: &Cx,
    ) -> Step<()> {
        let own = below(inode)?;
        let Some(upper) = own.upper(cx).filter(|upper| upper.kind == FileKind::Directory) else { return Ok(()) };
        if own.lowers.is_empty() {
            return if covers { self.set_opaque(&upper, cx) } else { Ok(()) };
        }
        let now = self.note(&upper, self.notes.redirect, cx)?;
        let to = match now {
            Some(path) if path.first() == Some(&b'/') => return Ok(()),
            Some(_) if stays_in => return Ok(()),
            _ if stays_in => from.name.to_vec(),
            _ => self.path_below(inode, cx)?,
        };
        attributes::put(&upper, self.notes.redirect, Some(&to), SetAttribute::Any, cx)
    }

    /// The path of a directory in the lower layers, from their roots.
    fn path_below(&self, inode: &TempRc<'_, Inode>, cx: &Cx) -> Step<Vec<u8>> {
        // From its end to its start.
        let mut path = Vec::new();
        let mut at = inode.clone();
        loop {
            let redirect = match below(&at)?.upper(cx) {
                Some(upper) => self.note(&upper, self.notes.redirect, cx)?,
                None => None,
            };
            let dentry = at.dentry.lock(cx);
            let Some(parent) = dentry.parent else { break };
            let name = redirect.unwrap_or_else(|| dentry.name.to_vec());
            drop(dentry);
            let is_absolute = name.first() == Some(&b'/');
            path.extend(name.iter().rev());
            if !is_absolute {
                path.push(b'/');
            }
            if path.len() > LONGEST_REDIRECT {
                return Err(Errno::EXDEV.into());
            }
            if is_absolute {
                break;
            }
            at = parent.upgrade(cx)?;
        }
        path.reverse();
        Ok(path)
    }
}

impl Directory {
    /// Moves a name to another one.
    ///
    /// # Errors
    /// ESTALE. EXDEV: a directory that is, or is in, a lower layer too, unless `redirect_dir=on`. Those of rename(2) and of the layers.
    pub fn move_name(&self, from: &Named<'_, '_>, into: &Named<'_, '_>, how: Rename, cx: &Cx) -> Step<()> {
        let (this, to) = (from.directory, into.directory);
        let target = to.ops_as::<Directory>().ok_or(Errno::EXDEV)?;
        let overlay = self.below.overlay.get(cx);
        let moved = from.inode.ok_or(Errno::ESTALE)?;
        let _owners = [share(this)?, share(to)?, share(moved)?];
        let may_redirect = overlay.options.redirect == Redirect::On;
        let exchanged = into.inode.filter(|_| how == Rename::Exchange);
        for inode in core::iter::once(moved).chain(exchanged) {
            if shows_lower(inode, below(inode)?) && !may_redirect {
                return Err(Errno::EXDEV.into());
            }
        }
        // All that may take long comes before the names are locked.
        let replaced = into.inode.filter(|_| how != Rename::Exchange).and_then(|other| other.ops_as::<Directory>());
        if let Some(replaced) = replaced {
            replaced.know_all(into.me, cx)?;
        }
        for inode in core::iter::once(moved).chain(exchanged) {
            copy_up(inode, u64::MAX, from.me, cx)?;
        }
        let upper_from = copy_up(this, u64::MAX, from.me, cx)?;
        let upper_to = copy_up(to, u64::MAX, from.me, cx)?;
        let file_system = this.file_system.get(cx);
        let _tree = file_system.tree.lock(cx);
        let (moved, covers) = self.check(from, cx)?;
        let (existing, to_covers) = match target.now(into.name, cx)? {
            Now::There(inode, covers) => (Some(inode), covers),
            Now::Nothing(whiteout) => (None, whiteout.is_some()),
        };
        into.check(existing.as_ref())?;
        let moves_directory = moved.kind == FileKind::Directory;
        if moves_directory && Inode::is_within(to, &moved, cx) {
            return Err(Errno::EINVAL.into());
        }
        match (&existing, how) {
            (Some(_), Rename::NoReplace) => return Err(Errno::EEXIST.into()),
            (None, Rename::Exchange) => return Err(Errno::ENOENT.into()),
            _ => {}
        }
        if existing.as_ref().is_some_and(|other| other.downgrade() == moved.downgrade()) {
            return Ok(());
        }
        let stays_in = this.downgrade() == to.downgrade();
        let upper = below(&moved)?.upper(cx).ok_or(Stop::Again)?;
        let old = Named { me: from.me, directory: &upper_from, name: from.name, inode: Some(&upper) };
        let new = |inode| Named { me: into.me, directory: &upper_to, name: into.name, inode };
        if let (Some(other), Rename::Exchange) = (&existing, how) {
            if other.kind == FileKind::Directory && Inode::is_within(this, other, cx) {
                return Err(Errno::EINVAL.into());
            }
            let other_upper = below(other)?.upper(cx).ok_or(Stop::Again)?;
            overlay.prepare_move(from, stays_in, &moved, to_covers, cx)?;
            overlay.prepare_move(into, stays_in, other, covers, cx)?;
            upper_from.ops.rename(&old, &new(Some(&other_upper)), Rename::Exchange, cx)?;
            self.enter(this, from.name, Entry::Inode { inode: share(other)?, covers }, cx)?;
            target.enter(to, into.name, Entry::Inode { inode: share(&moved)?, covers: to_covers }, cx)?;
            *other.dentry.lock(cx) = Dentry::new(this, from.name);
            *moved.dentry.lock(cx) = Dentry::new(to, into.name);
            return Ok(());
        }
        let there = existing.as_ref().map(|other| below(other).map(|own| own.upper(cx))).transpose()?.flatten();
        if let Some(other) = &existing {
            match other.ops_as::<Directory>() {
                None if moves_directory => return Err(Errno::ENOTDIR.into()),
                Some(_) if !moves_directory => return Err(Errno::EISDIR.into()),
                Some(directory) => directory.check_empty(cx)?,
                None => {}
            }
        }
        overlay.prepare_move(from, stays_in, &moved, to_covers, cx)?;
        // What the upper layer has under the new name: nothing, or something that says so, or what is to go.
        let whiteout = match target.now(into.name, cx)? {
            Now::Nothing(whiteout) => whiteout,
            Now::There(..) => None,
        };
        let is_directory_there = there.as_ref().is_some_and(|there| there.kind == FileKind::Directory);
        let placed = if covers && whiteout.is_none() || is_directory_there {
            Some(place_whiteout(&self.below.overlay, &upper_to, into.name, there.as_ref(), cx)?)
        } else {
            None
        };
        let whiteout = placed.as_ref().map(|placed| placed.get(cx)).or(whiteout);
        let left = match &whiteout {
            Some(whiteout) if covers || moves_directory => {
                upper_from.ops.rename(&old, &new(Some(whiteout)), Rename::Exchange, cx)?;
                if covers {
                    Some(share(whiteout)?)
                } else {
                    let named = Named { me: from.me, directory: &upper_from, name: from.name, inode: Some(whiteout) };
                    upper_from.ops.unlink(&named, cx)?;
                    None
                }
            }
            there_now => {
                let existing = there_now.as_ref().or(there.as_ref());
                upper_from.ops.rename(&old, &new(existing), Rename::Replace, cx)?;
                None
            }
        };
        if let Some(other) = &existing {
            if let Some(directory) = other.ops_as::<Directory>() {
                directory.is_removed.store(true, Ordering::Relaxed);
            }
            lost_name(other, to, into.name, cx);
        }
        target.enter(to, into.name, Entry::Inode { inode: share(&moved)?, covers: to_covers }, cx)?;
        self.enter(this, from.name, Entry::Nothing(left), cx)?;
        *moved.dentry.lock(cx) = Dentry::new(to, into.name);
        Ok(())
    }
}
