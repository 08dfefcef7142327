//! What an inode of an overlay shows of the layers ([`Below`]), and all inodes that are no directories ([`Node`]).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{SpinLock, StrongRc, TempRc, Waker, WeakRc};

use super::copy_up::{Job, copy_up};
use super::directory::Directory;
use super::file::OpenNode;
use super::layers::Found;
use super::{Notes, Overlay, share};
use crate::block::{Depth, SyncProgress};
use crate::error::{Errno, Result};
use crate::fs::{
    Dentry, File, FileKind, FileSystem, Inode, InodeOps, Lseek, Metadata, NextExtent, OpenFlags, Timestamp, VfsCaller,
};
use crate::step::Step;

/// An inode of a lower layer.
pub struct Lower {
    /// Which layer, the topmost first.
    pub layer: u16,
    /// The inode.
    pub inode: StrongRc<Inode>,
}

/// What an inode of an overlay shows of the layers. It owns it.
pub struct Below {
    /// The overlay.
    pub overlay: StrongRc<Overlay>,
    /// The inodes of lower layers, the topmost first: several of a directory.
    pub lowers: Vec<Lower>,
    state: SpinLock<State>,
}

struct State {
    /// The inode of the upper layer, once there is one; it stays.
    upper: Option<StrongRc<Inode>>,
    /// On which of the overlay's file systems is what gave it its number, and that number.
    store: u16,
    number: u64,
}

/// Where numbers of files say on which file system they are (`xino`).
const STORE_SHIFT: u32 = 48;
/// What the note of where a file was copied from begins with.
const ORIGIN_MARK: &[u8] = b"ebb";

impl Below {
    /// The inode of the upper layer.
    pub fn upper<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        Some(self.state.lock(cx).upper.as_ref()?.get(cx))
    }

    /// The inode that keeps its metadata.
    pub fn real<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        self.upper(cx).or_else(|| Some(self.lowers.first()?.inode.get(cx)))
    }

    /// Whether what is there is put together from several directories.
    pub fn is_merged(&self, cx: &Cx) -> bool {
        self.lowers.len() + usize::from(self.state.lock(cx).upper.is_some()) > 1
    }

    /// The inode of the upper layer is there now; without `keeps_number` it brings its own number.
    pub fn set_upper(&self, upper: StrongRc<Inode>, keeps_number: bool, cx: &Cx) {
        let mut state = self.state.lock(cx);
        if !keeps_number {
            (state.store, state.number) = (0, upper.get(cx).number);
        }
        state.upper = Some(upper);
    }

    /// What is noted of a file that is copied from `lower`.
    pub fn origin_note(&self, lower: &Inode, overlay: &Overlay) -> Vec<u8> {
        let layer = self.lowers.first().map_or(0, |lower| lower.layer);
        let store = overlay.layers.get(usize::from(layer)).map_or(0, |layer| layer.store);
        [ORIGIN_MARK, &store.to_le_bytes(), &lower.number.to_le_bytes()].concat()
    }

    /// The number of a file that is no directory, as stat(2) tells it, and of its device.
    fn identity(&self, this: &Inode, cx: &Cx) -> (u32, u64) {
        let overlay = self.overlay.get(cx);
        let (store, number) = {
            let state = self.state.lock(cx);
            (state.store, state.number)
        };
        let own = this.file_system.get(cx).device;
        if overlay.is_on_one {
            (own, number)
        } else if overlay.options.numbers_are_own {
            (own, number | u64::from(store) << STORE_SHIFT)
        } else {
            (overlay.devices.get(usize::from(store)).copied().unwrap_or(own), number)
        }
    }

    fn notes(&self) -> &'static Notes {
        self.overlay.with(|overlay| overlay.notes)
    }

    /// What an attribute is called in the layers: one that would be a note gets another name.
    pub fn attribute_below<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        let prefix = self.notes().prefix;
        match name.strip_prefix(prefix) {
            Some(rest) => Cow::Owned([prefix, b"overlay.", rest].concat()),
            None => Cow::Borrowed(name),
        }
    }

    /// The reverse; `None` for notes.
    pub fn attribute_above<'a>(&self, name: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let prefix = self.notes().prefix;
        match name.strip_prefix(prefix) {
            Some(rest) => Some(Cow::Owned([prefix, rest.strip_prefix(b"overlay.")?].concat())),
            None => Some(Cow::Borrowed(name)),
        }
    }

    /// Writes what is in the upper layer to the disk that keeps it: see [`InodeOps::sync`].
    pub fn sync(
        &self,
        range: Range<u64>,
        depth: Depth,
        progress: &mut SyncProgress,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<()> {
        match self.upper(cx) {
            Some(upper) if !self.overlay.get(cx).options.is_volatile => {
                upper.ops.sync(&upper, range, depth, progress, waker, cx)
            }
            _ => Ok(()),
        }
    }

    /// It was read: only the upper layer is told.
    pub fn accessed(&self, when: Timestamp, cx: &Cx) {
        if let Some(upper) = self.upper(cx) {
            upper.accessed_below(when, cx);
        }
    }
}

/// A new inode that shows what was found.
///
/// # Errors
/// ENOENT if that is nothing.
pub fn make(
    overlay: &StrongRc<Overlay>,
    file_system: &StrongRc<FileSystem>,
    dentry: Dentry,
    found: Found,
    cx: &Cx,
) -> Step<StrongRc<Inode>> {
    let shared = overlay.get(cx);
    let first = found.lowers.first();
    let real = found.upper.as_ref().or(first.map(|lower| &lower.inode)).ok_or(Errno::ENOENT)?.get(cx);
    let is_directory = real.kind == FileKind::Directory;
    let of_lower = |lower: &Lower| {
        let store = shared.layers.get(usize::from(lower.layer)).map_or(0, |layer| layer.store);
        (store, lower.inode.get(cx).number)
    };
    let origin = match (&found.upper, first) {
        (_, Some(lower)) => Some(of_lower(lower)),
        (Some(upper), None) if !is_directory => noted_origin(&shared, &upper.get(cx), cx)?,
        _ => None,
    };
    let (store, number) = origin.unwrap_or((0, real.number));
    let told = match (shared.is_on_one, shared.options.numbers_are_own) {
        (true, _) => number,
        (false, true) => number | u64::from(store) << STORE_SHIFT,
        (false, false) if is_directory => file_system.get(cx).next_inode(),
        (false, false) => number,
    };
    let state = SpinLock::new(State { upper: found.upper, store, number });
    let below = Below { overlay: overlay.share(), lowers: found.lowers, state };
    let metadata = real.metadata(cx);
    let inode = StrongRc::new_cyclic(|name| {
        let ops: Box<dyn InodeOps> = match is_directory {
            true => Box::new(Directory::new(below)),
            false => Box::new(Node { below, name, job: SpinLock::new(Job::Idle) }),
        };
        Inode::new(file_system.share(), told, metadata, dentry, ops)
    });
    inode.get(cx).set_flags(real.flags());
    Ok(inode)
}

/// Where a file of the upper layer was copied from: the file system, and its number there.
fn noted_origin(overlay: &Overlay, upper: &Inode, cx: &Cx) -> Step<Option<(u16, u64)>> {
    let note = overlay.note(upper, overlay.notes.origin, cx)?;
    Ok(note.and_then(|note| decode_origin(overlay, &note)))
}

fn decode_origin(overlay: &Overlay, note: &[u8]) -> Option<(u16, u64)> {
    let (store, number) = note.strip_prefix(ORIGIN_MARK)?.split_first_chunk::<2>()?;
    let store = u16::from_le_bytes(*store);
    let is_known = usize::from(store) < overlay.devices.len();
    is_known.then_some((store, u64::from_le_bytes(*number.first_chunk()?)))
}

/// Any file but a directory.
pub struct Node {
    /// What it shows.
    pub below: Below,
    /// Its inode.
    name: WeakRc<Inode>,
    /// How far it is copied to the upper layer.
    pub job: SpinLock<Job>,
}

impl Node {
    fn real<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Inode>> {
        self.below.real(cx).ok_or(Errno::EIO)
    }

    fn upper<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Inode>> {
        self.below.upper(cx).ok_or(Errno::EBADF)
    }
}

impl InodeOps for Node {
    #[inline]
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        if let Some(real) = self.below.real(cx) {
            *metadata = real.metadata_below(cx);
        }
    }

    fn real<'cx>(&self, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        self.below.real(cx)
    }

    fn real_to_change<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        me: Option<&dyn VfsCaller>,
        cx: &'cx Cx,
    ) -> Step<Option<TempRc<'cx, Inode>>> {
        copy_up(this, u64::MAX, me, cx).map(Some)
    }

    fn identity(&self, this: &Inode, cx: &Cx) -> (u32, u64) {
        self.below.identity(this, cx)
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

    fn read_link(&self, me: &dyn VfsCaller, cx: &Cx) -> Step<Vec<u8>> {
        self.real(cx)?.ops.read_link(me, cx)
    }

    fn open(
        &self,
        this: &TempRc<'_, Inode>,
        flags: OpenFlags,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        let real = if flags.can_write() { copy_up(this, u64::MAX, Some(me), cx)? } else { self.real(cx)? };
        let syncs_writes = flags.contains(OpenFlags::DATA_SYNC) && flags.can_write();
        Ok(Some(Box::new(OpenNode { inode: share(this)?, opened: share(&real)?, syncs_writes })))
    }

    fn read(&self, _this: &Inode, offset: u64, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let real = self.real(cx)?;
        real.ops.read(&real, offset, to, cx)
    }

    fn write(
        &self,
        _this: &Inode,
        offset: Option<u64>,
        limit: u64,
        from: &mut Reader<'_>,
        cx: &Cx,
    ) -> Step<(usize, u64)> {
        let upper = self.upper(cx)?;
        upper.ops.write(&upper, offset, limit, from, cx)
    }

    fn set_size(&self, _this: &Inode, size: u64, cx: &Cx) -> Step<()> {
        // What is cut off need not be copied.
        let upper = copy_up(&self.name.upgrade(cx)?, size, None, cx)?;
        upper.ops.set_size(&upper, size, cx)
    }

    fn allocate(&self, _this: &Inode, mode: u32, range: Range<u64>, done: &mut u64, cx: &Cx) -> Step<()> {
        let upper = self.upper(cx)?;
        upper.ops.allocate(&upper, mode, range, done, cx)
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

    fn seek(&self, _this: &Inode, to: Lseek, cx: &Cx) -> Step<u64> {
        let real = self.real(cx)?;
        real.ops.seek(&real, to, cx)
    }

    fn extent(&self, _this: &Inode, range: Range<u64>, cx: &Cx) -> Step<NextExtent> {
        let real = self.real(cx)?;
        real.ops.extent(&real, range, cx)
    }

    fn keeps_content(&self) -> bool {
        true
    }
}

impl Drop for Node {
    /// Nobody finds it by its upper file any more.
    fn drop(&mut self) {
        if let Some(upper) = &self.below.state.get_mut().upper {
            let name = upper.downgrade();
            self.below.overlay.with(|overlay| {
                overlay.linked.with(|linked| {
                    if linked.get(&name).is_some_and(WeakRc::is_gone) {
                        linked.remove(&name);
                    }
                });
            });
        }
    }
}

/// The inode here of a file of the upper layer that has several names, if there is one; else `make` makes it.
///
/// # Errors
/// Those of `make`.
pub fn of_linked(
    overlay: &Overlay,
    upper: &TempRc<'_, Inode>,
    cx: &Cx,
    make: impl FnOnce() -> Step<StrongRc<Inode>>,
) -> Step<StrongRc<Inode>> {
    let find = |cx| overlay.linked.lock(cx).get(&upper.downgrade()).and_then(|known| known.upgrade(cx).ok()?.share());
    if let Some(known) = find(cx) {
        return Ok(known);
    }
    let made = make()?;
    let mut linked = overlay.linked.lock(cx);
    let other = linked.get(&upper.downgrade()).and_then(|known| known.upgrade(cx).ok()?.share());
    if let Some(other) = other {
        return Ok(other);
    }
    linked.insert(upper.downgrade(), made.downgrade());
    Ok(made)
}
