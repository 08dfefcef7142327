//! Directories of an overlay.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, Waker};

use super::cache::{Cache, Entry};
use super::copy_up::copy_up;
use super::layers::{Found, look_up};
use super::listing::Listing;
use super::node::{Below, make, of_linked};
use super::share;
use crate::block::{Depth, SyncProgress};
use crate::error::{Errno, Result};
use crate::fs::{
    Creation, Dentry, DirectoryEntry, FileKind, Inode, InodeOps, Metadata, Named, Rename, Timestamp, VfsCaller,
};
use crate::pieces::free_in_pieces;
use crate::step::{Step, Stop};

/// A directory: what is in the upper layer, merged with what is in lower ones.
pub struct Directory {
    /// What it shows.
    pub below: Below,
    /// The names that it knows.
    pub cache: SpinLock<Cache>,
    /// How far all its names are known.
    pub listing: SpinLock<Option<Box<Listing>>>,
    /// It was removed: nothing can be made in it any more.
    pub is_removed: AtomicBool,
}

/// What is known of a name that is to be changed.
pub enum Now<'cx> {
    /// There is nothing; maybe the upper layer has something there to say so.
    Nothing(Option<TempRc<'cx, Inode>>),
    /// There is this; whether a lower layer would show something there.
    There(TempRc<'cx, Inode>, bool),
}

impl Directory {
    /// One that shows that.
    pub fn new(below: Below) -> Self {
        Directory {
            below,
            cache: SpinLock::new(Cache::default()),
            listing: SpinLock::new(None),
            is_removed: AtomicBool::new(false),
        }
    }

    /// What is known of a name.
    ///
    /// # Errors
    /// ENOENT: the directory was removed. `Again`: nothing is known any more, and it must be looked up.
    pub fn now<'cx>(&self, name: &[u8], cx: &'cx Cx) -> Step<Now<'cx>> {
        if self.is_removed.load(Ordering::Relaxed) {
            return Err(Errno::ENOENT.into());
        }
        let cache = self.cache.lock(cx);
        match cache.names.get(name) {
            Some(Entry::Inode { inode, covers }) => Ok(Now::There(inode.get(cx), *covers)),
            Some(Entry::Nothing(whiteout)) => Ok(Now::Nothing(whiteout.as_ref().map(|whiteout| whiteout.get(cx)))),
            None if cache.is_complete => Ok(Now::Nothing(None)),
            _ => Err(Stop::Again),
        }
    }

    /// What was found, and may go.
    ///
    /// # Errors
    /// ESTALE, EBUSY: as for [`Named::check`].
    pub fn check<'cx>(&self, at: &Named<'_, '_>, cx: &'cx Cx) -> Step<(TempRc<'cx, Inode>, bool)> {
        match self.now(at.name, cx) {
            Ok(Now::There(inode, covers)) => {
                at.check(Some(&inode))?;
                Ok((inode, covers))
            }
            Ok(Now::Nothing(_)) => Err(Errno::ESTALE.into()),
            Err(stop) => Err(stop),
        }
    }

    /// Notes what is under a name from now on.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn enter(&self, this: &TempRc<'_, Inode>, name: &[u8], entry: Entry, cx: &Cx) -> Result<()> {
        let mut cache = self.cache.lock(cx);
        cache.version += 1;
        let _old = cache.set(name, entry)?;
        drop(cache);
        self.below.overlay.get(cx).remember(this, name, cx);
        Ok(())
    }

    /// The inode of something that was made in the upper layer.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn enter_made<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        upper: StrongRc<Inode>,
        covers: bool,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let found = Found { upper: Some(upper), ..Found::default() };
        let inode = make(&self.below.overlay, &this.file_system, Dentry::new(this, name), found, cx)?;
        let made = inode.get(cx);
        self.enter(this, name, Entry::Inode { inode, covers }, cx)?;
        Ok(made)
    }

    #[cold]
    fn look_up<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        version: u64,
        me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let _owner = share(this)?;
        crate::memory::admit()?;
        let overlay = self.below.overlay.get(cx);
        let found = look_up(&overlay, &self.below, name, Some(me), cx)?;
        let covers = found.covers;
        let upper = found.upper.as_ref().map(|upper| upper.get(cx));
        let entry = if upper.is_none() && found.lowers.is_empty() {
            Entry::Nothing(found.whiteout)
        } else {
            let new = || make(&self.below.overlay, &this.file_system, Dentry::new(this, name), found, cx);
            let inode = match upper.filter(|upper| is_linked(upper, cx)) {
                Some(upper) => of_linked(&overlay, &upper, cx, new)?,
                None => new()?,
            };
            Entry::Inode { inode, covers }
        };
        let mut cache = self.cache.lock(cx);
        if cache.version != version {
            return Err(Stop::Again);
        }
        let outcome = match (cache.names.get(name), &entry) {
            // Another core was first.
            (Some(Entry::Inode { inode, .. }), _) => return Ok(inode.get(cx)),
            (Some(Entry::Nothing(_)), _) => return Err(Errno::ENOENT.into()),
            (_, Entry::Inode { inode, .. }) => Ok(inode.get(cx)),
            _ => Err(Errno::ENOENT.into()),
        };
        let _listed = cache.set(name, entry)?;
        drop(cache);
        overlay.remember(this, name, cx);
        outcome
    }
}

/// Whether an inode of the upper layer is found by several names.
fn is_linked(upper: &Inode, cx: &Cx) -> bool {
    upper.kind != FileKind::Directory && upper.metadata(cx).links > 1
}

impl Drop for Directory {
    fn drop(&mut self) {
        let names = core::mem::take(&mut self.cache.get_mut().names);
        if names.len() > 0 {
            free_in_pieces(names);
        }
    }
}

impl InodeOps for Directory {
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        if let Some(real) = self.below.real(cx) {
            *metadata = real.metadata_below(cx);
        }
        if self.is_removed.load(Ordering::Relaxed) {
            metadata.links = 0;
        } else if self.below.is_merged(cx) {
            // Nobody counts the directories in it. So find(1) takes it that the number says nothing.
            metadata.links = 1;
        }
    }

    fn real<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        self.below.real(cx)
    }

    fn sync(
        &self,
        _this: &Inode,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        self.below.sync(range, depth, progress, waker, cx)
    }

    fn real_to_change<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        me: Option<&dyn VfsCaller>,
        cx: &'cx Cx,
    ) -> Step<Option<TempRc<'cx, Inode>>> {
        copy_up(this, u64::MAX, me, cx).map(Some)
    }

    fn attribute_below<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        self.below.attribute_below(name)
    }

    fn attribute_above<'a>(&self, name: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        self.below.attribute_above(name)
    }

    fn accessed(&self, _this: &Inode, when: Timestamp, cx: &Cx) {
        self.below.accessed(when, cx);
    }

    fn has_flags(&self) -> bool {
        true
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let cache = self.cache.lock(cx);
        match cache.names.get(name) {
            Some(Entry::Inode { inode, .. }) => return Ok(inode.get(cx)),
            Some(Entry::Nothing(_)) => return Err(Errno::ENOENT.into()),
            None if cache.is_complete || self.is_removed.load(Ordering::Relaxed) => return Err(Errno::ENOENT.into()),
            _ => {}
        }
        let version = cache.version;
        drop(cache);
        self.look_up(this, name, version, me, cx)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        self.know_all(me, cx)?;
        let cache = self.cache.lock(cx);
        for (next, name, entry) in cache.names.behind(from) {
            let (number, kind) = match entry {
                Entry::Nothing(_) => continue,
                Entry::Listed { number, kind } => (*number, *kind),
                Entry::Inode { inode, .. } => {
                    let inode = inode.get(cx);
                    (inode.ops.identity(&inode, cx).1, inode.kind)
                }
            };
            if !each(DirectoryEntry { name, number, kind, next }) {
                break;
            }
        }
        Ok(())
    }

    fn create<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        what: &Creation<'_>,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        self.make(this, name, what, cx)
    }

    fn create_nameless(&self, this: &TempRc<'_, Inode>, what: &Creation<'_>, cx: &Cx) -> Step<StrongRc<Inode>> {
        let directory = copy_up(this, u64::MAX, None, cx)?;
        let upper = directory.ops.create_nameless(&directory, what, cx)?;
        let (number, found) = (upper.get(cx).number, Found { upper: Some(upper), ..Found::default() });
        let mut dentry = Dentry::new(this, alloc::format!("#{number}").as_bytes());
        dentry.is_removed = true;
        make(&self.below.overlay, &this.file_system, dentry, found, cx)
    }

    fn link(&self, this: &TempRc<'_, Inode>, name: &[u8], target: &TempRc<'_, Inode>, cx: &Cx) -> Step<()> {
        self.make_link(this, name, target, cx)
    }

    fn unlink(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let outcome = self.remove_file(at, cx);
        self.below.overlay.get(cx).sweep(at.me, cx);
        outcome
    }

    fn remove_directory(&self, at: &Named<'_, '_>, cx: &Cx) -> Step<()> {
        let outcome = self.remove_empty(at, cx);
        self.below.overlay.get(cx).sweep(at.me, cx);
        outcome
    }

    fn rename(&self, from: &Named<'_, '_>, to: &Named<'_, '_>, how: Rename, cx: &Cx) -> Step<()> {
        let outcome = self.move_name(from, to, how, cx);
        self.below.overlay.get(cx).sweep(from.me, cx);
        outcome
    }
}
