//! What is made in the work directory, to appear in the upper layer at once by being renamed; and what is left there, which is removed.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::{StrongRc, TempRc};

use super::layers::child;
use super::{Overlay, share};
use crate::error::Errno;
use crate::fs::{Creation, DeviceNumber, FileKind, Inode, Named, Rename, VfsCaller};
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// Something in the work directory that is to be removed.
pub struct Litter {
    name: Vec<u8>,
    inode: StrongRc<Inode>,
}

/// Something in the work directory. What is not placed is removed.
pub struct Temporary {
    overlay: StrongRc<Overlay>,
    name: Vec<u8>,
    /// It.
    pub inode: StrongRc<Inode>,
    is_placed: bool,
}

/// What says that there is nothing.
pub const WHITEOUT: Creation<'static> = Creation {
    kind: FileKind::CharacterDevice,
    permissions: 0,
    uid: 0,
    gid: 0,
    device: DeviceNumber { major: 0, minor: 0 },
    target: &[],
    attributes: &[],
};

impl Temporary {
    /// Makes something in the work directory.
    ///
    /// # Errors
    /// EROFS without one; those of the upper layer.
    pub fn make(overlay: &StrongRc<Overlay>, what: &Creation<'_>, cx: &Cx) -> Step<Temporary> {
        let shared = overlay.get(cx);
        let work = shared.work(cx)?;
        let name = format!("#{:x}", shared.next_temporary.fetch_add(1, Ordering::Relaxed)).into_bytes();
        let made = match work.ops.create(&work, &name, what, cx) {
            // Another overlay has the same work directory.
            Err(Stop::Error(Errno::EEXIST)) => return Err(Stop::Again),
            made => made?,
        };
        Ok(Temporary { overlay: overlay.share(), name, inode: share(&made)?, is_placed: false })
    }

    /// Gives it a name in the upper layer instead of what is there, which is removed. Called with the overlay's `tree` locked.
    ///
    /// # Errors
    /// Those of the upper layer.
    pub fn place(
        &mut self,
        directory: &TempRc<'_, Inode>,
        name: &[u8],
        existing: Option<&TempRc<'_, Inode>>,
        cx: &Cx,
    ) -> Step<()> {
        let overlay = self.overlay.get(cx);
        let work = overlay.work(cx)?;
        let inode = self.inode.get(cx);
        let is_directory = |inode: &Inode| inode.kind == FileKind::Directory;
        let how = match existing {
            None => Rename::NoReplace,
            Some(other) if is_directory(other) || is_directory(&inode) => Rename::Exchange,
            Some(_) => Rename::Replace,
        };
        let from = Named { me: None, directory: &work, name: &self.name, inode: Some(&inode) };
        let to = Named { me: None, directory, name, inode: existing };
        work.ops.rename(&from, &to, how, cx)?;
        self.is_placed = true;
        if let (Rename::Exchange, Some(other)) = (how, existing.and_then(TempRc::share)) {
            overlay.litter.lock(cx).push(Litter { name: self.name.clone(), inode: other });
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_placed {
            let litter = Litter { name: core::mem::take(&mut self.name), inode: self.inode.share() };
            self.overlay.with(|overlay| overlay.litter.with(|all| all.push(litter)));
        }
    }
}

impl Overlay {
    /// Moves a directory of the upper layer out of the way.
    ///
    /// # Errors
    /// Those of the upper layer.
    pub fn discard(&self, at: &Named<'_, '_>, inode: &TempRc<'_, Inode>, cx: &Cx) -> Step<()> {
        let work = self.work(cx)?;
        let name = format!("#{:x}", self.next_temporary.fetch_add(1, Ordering::Relaxed)).into_bytes();
        let to = Named { me: None, directory: &work, name: &name, inode: None };
        at.directory.ops.rename(at, &to, Rename::NoReplace, cx)?;
        self.litter.lock(cx).push(Litter { name, inode: share(inode)? });
        Ok(())
    }

    /// Removes what is left in the work directory, as much as there is time for.
    pub fn sweep(&self, me: Option<&dyn VfsCaller>, cx: &Cx) {
        self.give_up_copies(cx);
        let mut time_slice = TimeSlice::default();
        loop {
            let next = self.litter.lock(cx).pop();
            let Some(litter) = next else { return };
            match self.remove(&litter, me, cx) {
                Ok(()) | Err(Stop::Error(_)) => {}
                Err(_) => {
                    self.litter.lock(cx).push(litter);
                    return;
                }
            }
            if time_slice.is_over() {
                return;
            }
        }
    }

    fn remove(&self, litter: &Litter, me: Option<&dyn VfsCaller>, cx: &Cx) -> Step<()> {
        let work = self.work(cx)?;
        let inode = litter.inode.get(cx);
        let named = Named { me, directory: &work, name: &litter.name, inode: Some(&inode) };
        if inode.kind != FileKind::Directory {
            return work.ops.unlink(&named, cx);
        }
        // Who has nobody to act for leaves it to the next one.
        empty(&inode, Some(me.ok_or(Stop::Again)?), cx)?;
        work.ops.remove_directory(&named, cx)
    }
}

/// Removes all that is in a directory of the upper layer.
///
/// # Errors
/// Those of the upper layer. `Pause`: there is more.
fn empty(directory: &TempRc<'_, Inode>, me: Option<&dyn VfsCaller>, cx: &Cx) -> Step<()> {
    const AT_ONCE: usize = 64;
    let mut time_slice = TimeSlice::default();
    loop {
        // Down to a directory without others in it.
        let mut at = directory.clone();
        let mut above = None;
        loop {
            let mut names = Vec::new();
            at.ops.list(&at, 0, me, cx, &mut |entry| {
                names.push(entry.name.to_vec());
                names.len() < AT_ONCE
            })?;
            let mut inner = None;
            for name in &names {
                let Some(inode) = child(&at, name, me, cx)? else { continue };
                if inode.kind == FileKind::Directory {
                    inner = Some((name.clone(), inode));
                    break;
                }
                at.ops.unlink(&Named { me, directory: &at, name, inode: Some(&inode) }, cx)?;
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
            match inner {
                Some((name, inode)) => above = Some((core::mem::replace(&mut at, inode), name)),
                None if names.len() < AT_ONCE => break,
                None => {}
            }
        }
        let Some((parent, name)) = above else { return Ok(()) };
        parent.ops.remove_directory(&Named { me, directory: &parent, name: &name, inode: Some(&at) }, cx)?;
    }
}

/// The directories that say that an overlay is, or was, volatile: nobody knows whether its upper layer is complete.
const INCOMPATIBLE: &[u8] = b"incompat";
const VOLATILE: &[u8] = b"volatile";

/// A directory for the overlay's own use.
const OWN_DIRECTORY: Creation<'static> = Creation {
    kind: FileKind::Directory,
    permissions: 0,
    uid: 0,
    gid: 0,
    device: DeviceNumber { major: 0, minor: 0 },
    target: &[],
    attributes: &[],
};

/// Notes that the overlay with this work directory is volatile.
///
/// # Errors
/// Those of the upper layer.
pub fn mark_volatile(work: &TempRc<'_, Inode>, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
    let outer = match child(work, INCOMPATIBLE, Some(me), cx)? {
        Some(outer) => outer,
        None => work.ops.create(work, INCOMPATIBLE, &OWN_DIRECTORY, cx)?,
    };
    outer.ops.create(&outer, VOLATILE, &OWN_DIRECTORY, cx)?;
    Ok(())
}

/// The directory for temporary files in what mount(2) was given as `workdir`. What is left there from before is removed.
///
/// # Errors
/// EINVAL: it was volatile. Those of the upper layer; `Pause`.
pub fn prepare_work(directory: &TempRc<'_, Inode>, me: &dyn VfsCaller, cx: &Cx) -> Step<StrongRc<Inode>> {
    const NAME: &[u8] = b"work";
    if let Some(work) = child(directory, NAME, Some(me), cx)? {
        if work.kind != FileKind::Directory {
            return Err(Errno::ENOTDIR.into());
        }
        if let Some(outer) = child(&work, INCOMPATIBLE, Some(me), cx)?
            && child(&outer, VOLATILE, Some(me), cx)?.is_some()
        {
            return Err(Errno::EINVAL.into());
        }
        empty(&work, Some(me), cx)?;
        return share(&work);
    }
    share(&directory.ops.create(directory, NAME, &OWN_DIRECTORY, cx)?)
}
