//! Names that each core has found lately, so that cores which walk through the same directories (`/`, `/tmp`) do not meet at the directories' locks.
//!
//! A directory has a [`Version`], which moves on with every change of its names. What a core has found holds as long as the directory has the version that it had
//! then. So nobody tells the cores that a name has changed, and whoever walks where nothing changes writes nothing that others read.
//!
//! The version moves on before the change's call is over, while the directory's lock is held: who knows of the change finds it.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::cpu::PerCore;
use refs::{SpinLock, TempRc, WeakRc};

use crate::fs::Inode;
use crate::fs::names::hash_of;

/// How many names a core remembers, each in a place that follows from it.
const PLACES: usize = 64;

/// The longest name that is remembered.
const LONGEST: usize = 24;

/// How often the names of a directory have changed.
#[derive(Default)]
pub(super) struct Version(AtomicU64);

impl Version {
    /// The names have changed, or are about to. Called with the lock of the names held.
    #[inline(always)]
    pub fn move_on(&self) {
        self.0.store(self.now() + 1, Ordering::Release);
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What a core has found in a directory.
struct Found {
    directory: WeakRc<Inode>,
    version: u64,
    inode: WeakRc<Inode>,
    name: [u8; LONGEST],
    len: usize,
}

/// What a core has found, on lines of its own; nothing until there are several cores.
#[repr(align(64))]
struct OfCore(SpinLock<Vec<Option<Found>>>);

static FOUND: PerCore<OfCore> = PerCore::new(OfCore::new());

impl OfCore {
    const fn new() -> Self {
        OfCore(SpinLock::new(Vec::new()))
    }
}

/// Makes what each core remembers. At boot.
pub fn start() {
    FOUND.make(frame::cpu::count(), OfCore::new);
}

/// Whether there is anybody to meet at a directory's lock. One core alone looks into the directory, which costs it less.
#[inline(always)]
pub(super) fn is_worth_it() -> bool {
    frame::cpu::count() > 1
}

/// The inode of a name in `directory`: what this core remembers, or else what `find` finds while the names cannot change.
#[inline(never)]
pub(super) fn look_up<'cx>(
    directory: &TempRc<'cx, Inode>,
    version: &Version,
    name: &[u8],
    find: impl FnOnce() -> Option<TempRc<'cx, Inode>>,
    cx: &'cx Cx,
) -> Option<TempRc<'cx, Inode>> {
    if name.len() > LONGEST {
        return find();
    }
    let own = &FOUND[frame::cpu::current(cx)].0;
    let directory = directory.downgrade();
    let place = (hash_of(name) as usize ^ (directory.address() / 64)) % PLACES;
    // What is found from here on may be newer than the version, which does no harm, but never older.
    let version = version.now();
    if let Some(Some(found)) = own.lock(cx).get(place)
        && found.version == version
        && found.directory == directory
        && found.name.get(..found.len) == Some(name)
        && let Ok(inode) = found.inode.upgrade(cx)
    {
        return Some(inode);
    }
    let inode = find()?;
    let mut found = Found { directory, version, inode: inode.downgrade(), name: [0; LONGEST], len: name.len() };
    found.name.get_mut(..name.len())?.copy_from_slice(name);
    let mut own = own.lock(cx);
    if own.is_empty() && own.try_reserve_exact(PLACES).is_ok() {
        own.resize_with(PLACES, || None);
    }
    // Without memory for it nothing is remembered.
    if let Some(place) = own.get_mut(place) {
        *place = Some(found);
    }
    Some(inode)
}
