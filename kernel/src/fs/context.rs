//! [`FsContext`]: root, working directory and umask.

use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc};

use super::{Location, MOUNTS, Path};
use crate::error::{Errno, Result};

/// Root, working directory and umask of a process (shared by CLONE_FS).
pub struct FsContext {
    /// The bits that new files do not get: see umask(2).
    pub umask: AtomicU32,
    places: SpinLock<Places>,
}

struct Places {
    root: Location,
    working: Location,
}

impl FsContext {
    /// That of process 1: both directories are the root of the tree.
    ///
    /// # Errors
    /// ENOENT before a root is mounted.
    pub fn initial(cx: &Cx) -> Result<Self> {
        let root = MOUNTS.root(cx).ok_or(Errno::ENOENT)?;
        let places = Places { root: root.keep()?, working: root.keep()? };
        Ok(FsContext { umask: AtomicU32::new(0o022), places: SpinLock::new(places) })
    }

    /// The same, for a child that does not share it.
    pub fn duplicate(&self, cx: &Cx) -> StrongRc<FsContext> {
        let places = self.places.lock(cx);
        let places = Places { root: places.root.share(), working: places.working.share() };
        let umask = AtomicU32::new(self.umask.load(Ordering::Relaxed));
        StrongRc::new(FsContext { umask, places: SpinLock::new(places) })
    }

    /// Whether nobody sees when exactly it comes to its end. Who wants to know whether a mount is used sees to it first that all has that nobody has any more.
    pub fn end_is_unseen(&self) -> bool {
        self.places.with(|places| places.root.stays() && places.working.stays())
    }

    /// What `/` is.
    #[inline]
    pub fn root<'cx>(&self, cx: &'cx Cx) -> Result<Path<'cx>> {
        self.places.lock(cx).root.path(cx)
    }

    /// What relative paths start from.
    #[inline]
    pub fn working<'cx>(&self, cx: &'cx Cx) -> Result<Path<'cx>> {
        self.places.lock(cx).working.path(cx)
    }

    /// Changes what `/` is.
    pub fn set_root(&self, to: Location, cx: &Cx) {
        let old = core::mem::replace(&mut self.places.lock(cx).root, to);
        drop(old);
    }

    /// Has root and working directory that are the place `old` be `new` instead.
    ///
    /// # Errors
    /// ENOENT: the new one is gone.
    pub fn replace(&self, old: &Path<'_>, new: &Path<'_>, cx: &Cx) -> Result<()> {
        // They become the old ones, which end with no lock held.
        let (mut root, mut working) = (new.keep()?, new.keep()?);
        let mut places = self.places.lock(cx);
        if places.root.path(cx)?.is(old) {
            core::mem::swap(&mut places.root, &mut root);
        }
        if places.working.path(cx)?.is(old) {
            core::mem::swap(&mut places.working, &mut working);
        }
        Ok(())
    }

    /// Changes what relative paths start from.
    pub fn set_working(&self, to: Location, cx: &Cx) {
        let old = core::mem::replace(&mut self.places.lock(cx).working, to);
        drop(old);
    }
}
