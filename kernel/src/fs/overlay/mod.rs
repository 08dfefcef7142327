//! overlay: a tree that is put together from directories of other file systems, its *layers*. All but the topmost one, the *upper* layer, are only read: what is
//! changed is copied there first.
//!
//! ```text
//!   Directory --> its upper directory, its lower directories      a name is what the topmost layer has that has it; directories are merged
//!   Node      --> its upper file, or else its lower one           any other file
//! ```
//!
//! The layers keep everything, and an inode here owns those of the layers that it shows. It knows each name that was asked for (`cache`), so the layers are asked once; the
//! tree must not be changed but through the overlay, as on Linux. What is known and not used is forgotten after a while (`recent`).
//!
//! What hides something in a lower layer is kept in the upper one, as on Linux: a name that is gone is a *whiteout* (a character device 0, 0); a directory
//! that shows nothing of the layers below is *opaque* (an attribute). What must appear at once is made in the work directory ([`temporary`]) and renamed.
//!
//! Whoever changes a name holds the overlay's `tree`, and calls what takes those of the layers. No other lock of an overlay is held over a call into a layer, but the metadata's.

mod cache;
mod change;
mod copy_up;
mod directory;
mod file;
mod layers;
mod listing;
mod node;
mod options;
mod recent;
mod rename;
mod temporary;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use frame::Cx;
use linux_raw_sys::general::{AT_FDCWD, OVERLAYFS_SUPER_MAGIC};
use refs::{SpinLock, StrongRc, TempRc, Waker, WeakRc};

use super::walk::{self, WalkFlags};
use super::{
    Dentry, DeviceNumber, FileKind, FileSystem, Inode, Instance, Kept, MountFlags, Path, VfsCaller, next_device,
};
use crate::error::{Errno, Result};
use crate::step::{Step, Stop};
use layers::Found;
use node::{Below, Lower};
pub use options::NAMES as OPTIONS;
use options::Options;
use temporary::{Litter, mark_volatile, prepare_work};

/// How many file systems may be stacked, one on the other, as on Linux.
const MOST_DEPTH: u8 = 2;

/// The names of the attributes in which an overlay notes something of a file in a layer.
struct Notes {
    /// What all begin with.
    prefix: &'static [u8],
    /// `y`: a directory shows nothing of the layers below.
    opaque: &'static [u8],
    /// Where a directory that was renamed is in the layers below: a name, or a path from the root.
    redirect: &'static [u8],
    /// Which file of a lower layer a file was copied from.
    origin: &'static [u8],
}

static TRUSTED: Notes = Notes {
    prefix: b"trusted.overlay.",
    opaque: b"trusted.overlay.opaque",
    redirect: b"trusted.overlay.redirect",
    origin: b"trusted.overlay.origin",
};
static USERS: Notes = Notes {
    prefix: b"user.overlay.",
    opaque: b"user.overlay.opaque",
    redirect: b"user.overlay.redirect",
    origin: b"user.overlay.origin",
};

/// The file system of the upper layer, where all is that is to be synchronised.
struct UpperLayer(StrongRc<FileSystem>);

impl Kept for UpperLayer {
    fn sync(&self, number: &mut Option<u64>, waker: Option<Waker>, cx: &Cx) -> Step<()> {
        self.0.get(cx).sync(number, waker, cx)
    }
}

/// The root directory of a lower layer, and which of the overlay's file systems it is on.
struct Layer {
    root: StrongRc<Inode>,
    store: u16,
}

/// What all inodes of an overlay share. They own it.
struct Overlay {
    /// The lower layers, the topmost first.
    layers: Vec<Layer>,
    /// Where what is to appear at once is made; `None` if there is no upper layer.
    work: Option<StrongRc<Inode>>,
    options: Options,
    notes: &'static Notes,
    /// What stat(2) tells as the device of the files of each file system that layers are on. The first is that of the upper layer.
    devices: Vec<u32>,
    /// Whether that is but one.
    is_on_one: bool,
    /// For the names in the work directory.
    next_temporary: AtomicU64,
    /// What is to be removed from the work directory.
    litter: SpinLock<Vec<Litter>>,
    /// The inodes here of files of the upper layer with several names, by those there.
    linked: SpinLock<BTreeMap<WeakRc<Inode>, WeakRc<Inode>>>,
    /// The files that are being copied to the upper layer.
    copies: SpinLock<Vec<WeakRc<Inode>>>,
    /// The names that are known, the oldest first.
    recent: SpinLock<VecDeque<recent::Known>>,
}

impl Overlay {
    /// The work directory.
    ///
    /// # Errors
    /// EROFS: there is no upper layer.
    fn work<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, Inode>> {
        Ok(self.work.as_ref().ok_or(Errno::EROFS)?.get(cx))
    }
}

/// Whether an inode of a layer says that there is nothing.
fn is_whiteout(inode: &Inode) -> bool {
    inode.kind == FileKind::CharacterDevice && inode.device == DeviceNumber::default()
}

/// The directory that a path of the options leads to.
fn find<'cx>(path: &[u8], me: &dyn VfsCaller, cx: &'cx Cx) -> Step<Path<'cx>> {
    let found = walk::resolve(AT_FDCWD, path, WalkFlags::FOLLOW, me, cx)?;
    if found.inode.kind == FileKind::Directory { Ok(found) } else { Err(Errno::EINVAL.into()) }
}

fn share(inode: &TempRc<'_, Inode>) -> Step<StrongRc<Inode>> {
    inode.share().ok_or(Stop::Again)
}

/// A new overlay of the directories that the options name; without an upper layer nothing can be written.
///
/// # Errors
/// EINVAL: options that are not understood; what is no directory; a work directory of an overlay that was volatile; work and upper directory that are on different mounts or one in the other; an upper layer that cannot be written; too many overlays
/// one on the other. ELOOP: a layer that is in another one. Those of finding the directories and of making those for temporary files.
pub fn mount(options: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<(Instance, MountFlags)> {
    let options = Options::parse(options)?;
    let upper = options.upper.as_ref().map(|path| find(path, me, cx)).transpose()?;
    let work = options.work.as_ref().map(|path| find(path, me, cx)).transpose()?;
    if let (Some(upper), Some(work)) = (&upper, &work) {
        check_upper(upper, work, cx)?;
    }
    let lower = options.lower.iter().map(|path| find(path, me, cx)).collect::<Step<Vec<_>>>()?;
    check_apart(&lower, upper.as_ref(), work.as_ref(), cx)?;
    let mut depth = 1;
    for layer in &lower {
        let file_system = layer.inode.file_system.get(cx);
        if matches!(file_system.name, "proc" | "cgroup2") || file_system.depth >= MOST_DEPTH {
            return Err(Errno::EINVAL.into());
        }
        depth = depth.max(file_system.depth + 1);
    }
    let work = work.map(|work| prepare_work(&work.inode, me, cx)).transpose()?;
    // The first file system is the upper layer's.
    let mut stores: Vec<Option<WeakRc<FileSystem>>> = Vec::new();
    stores.push(upper.as_ref().map(|upper| upper.inode.file_system.downgrade()));
    let mut layers = Vec::with_capacity(lower.len());
    for layer in &lower {
        let name = Some(layer.inode.file_system.downgrade());
        let store = stores.iter().position(|store| *store == name).unwrap_or(stores.len());
        if store == stores.len() {
            stores.push(name);
        }
        layers.push(Layer { root: share(&layer.inode)?, store: store as u16 });
    }
    let devices = stores.iter().map(|_| next_device()).collect();
    let file_system = FileSystem::stacked("overlay", OVERLAYFS_SUPER_MAGIC, options.shown.clone(), depth);
    if let Some(upper) = upper.as_ref().filter(|_| !options.is_volatile) {
        let upper = UpperLayer(upper.inode.file_system.share());
        file_system.get(cx).keep(StrongRc::new(upper).unsize(|upper| upper));
    }
    let notes = if options.notes_are_users { &USERS } else { &TRUSTED };
    let access = if upper.is_some() { MountFlags::empty() } else { MountFlags::READ_ONLY };
    let overlay = StrongRc::new(Overlay {
        layers,
        work,
        options,
        notes,
        devices,
        is_on_one: stores.iter().flatten().count() == 1,
        next_temporary: AtomicU64::new(0),
        litter: SpinLock::new(Vec::new()),
        linked: SpinLock::new(BTreeMap::new()),
        copies: SpinLock::new(Vec::new()),
        recent: SpinLock::new(VecDeque::new()),
    });
    let shared = overlay.get(cx);
    let lowers = (0u16..).zip(&shared.layers).map(|(layer, of)| Lower { layer, inode: of.root.share() }).collect();
    let found = Found { upper: upper.map(|upper| share(&upper.inode)).transpose()?, lowers, ..Found::default() };
    let root = node::make(&overlay, &file_system, Dentry::default(), found, cx)?;
    if shared.options.is_volatile {
        mark_volatile(&shared.work(cx)?, me, cx)?;
    }
    Ok(((file_system, root), access))
}

/// Checks where what is written is to be.
fn check_upper(upper: &Path<'_>, work: &Path<'_>, cx: &Cx) -> Result<()> {
    let is_apart = !Inode::is_within(&work.inode, &upper.inode, cx) && !Inode::is_within(&upper.inode, &work.inode, cx);
    let can_be_written = !upper.mount.flags().contains(MountFlags::READ_ONLY)
        && upper.inode.file_system.get(cx).depth == 0
        && !matches!(upper.inode.file_system.get(cx).name, "proc" | "cgroup2");
    if upper.mount.id == work.mount.id && is_apart && can_be_written { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Checks that no layer is in another one.
fn check_apart(lower: &[Path<'_>], upper: Option<&Path<'_>>, work: Option<&Path<'_>>, cx: &Cx) -> Result<()> {
    let all: Vec<_> = lower.iter().chain(upper).chain(work).map(|path| &path.inode).collect();
    let names: alloc::collections::BTreeSet<_> = all.iter().map(|inode| inode.downgrade()).collect();
    if names.len() != all.len() {
        return Err(Errno::ELOOP);
    }
    for layer in all {
        let mut above = layer.parent(cx);
        while let Some(at) = above {
            if names.contains(&at.downgrade()) {
                return Err(Errno::ELOOP);
            }
            above = at.parent(cx);
        }
    }
    Ok(())
}

/// What all inodes here have, and their files below.
fn below(inode: &Inode) -> Result<&Below> {
    if let Some(directory) = inode.ops_as::<directory::Directory>() {
        return Ok(&directory.below);
    }
    Ok(&inode.ops_as::<node::Node>().ok_or(Errno::EXDEV)?.below)
}
