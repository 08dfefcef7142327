//! Changing what mounts allow: of one or of a whole tree, of all or of none.
//!
//! Whoever changes something through a mount asks whether it may ([`Mount::check_writable`]) in the same step, so the two have no suspension between them. Whoever makes
//! the mount read-only says so first, which has new changes wait, then waits until each core has passed a suspension, and only then counts who may
//! write for longer: so changes are free of charge, and none that has begun is done later.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use refs::WeakRc;

use super::mount::CLOSING;
use super::{FileSystem, Mount, MountFlags};
use crate::error::{Errno, Result};

/// Somebody changes flags: one at a time, so that none waits for mounts of another who waits for its own. It never suspends.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// What becomes of the flags of a mount.
pub type Change<'a> = &'a dyn Fn(MountFlags) -> MountFlags;

/// Changes what all of `mounts` allow, or nothing. Those that are gone meanwhile do not count.
///
/// # Errors
/// EBUSY: one of them is to be read-only, and files are open for writing there.
#[cfg_attr(false, ebb_lint::never_suspends)]
pub fn change_flags(cx: &mut Cx, mounts: &[WeakRc<Mount>], change: Change<'_>) -> Result<()> {
    while CHANGING.swap(true, Ordering::Acquire) {
        frame::irq::poll(cx);
    }
    let outcome = change_alone(cx, mounts, change);
    CHANGING.store(false, Ordering::Release);
    outcome
}

#[cfg_attr(false, ebb_lint::never_suspends)]
fn change_alone(cx: &mut Cx, mounts: &[WeakRc<Mount>], change: Change<'_>) -> Result<()> {
    let closing = close(mounts, change, cx);
    if !closing.is_empty() {
        // Others may wait for this, and so it does not give way. Whoever asked before whether he may write has then done what he would, or counts as a writer.
        tasks::wait_for_all(cx);
    }
    let is_busy = closing.iter().any(|mount| mount.upgrade(cx).is_ok_and(|mount| mount.has_writers()));
    for mount in mounts {
        let Ok(mount) = mount.upgrade(cx) else { continue };
        let now = mount.flags();
        mount.set_flags(if is_busy { now } else { mount.allowed(change(now)) });
    }
    if is_busy {
        return Err(Errno::EBUSY);
    }
    if !closing.is_empty() {
        // Whoever reads just now may still note the time of access.
        tasks::wait_for_all(cx);
    }
    Ok(())
}

/// Closes those to new writers that are to be read-only from now on; which.
fn close(mounts: &[WeakRc<Mount>], change: Change<'_>, cx: &Cx) -> Vec<WeakRc<Mount>> {
    let mut closing = Vec::new();
    for name in mounts {
        let Ok(mount) = name.upgrade(cx) else { continue };
        let now = mount.flags();
        if change(now).contains(MountFlags::READ_ONLY) && !now.contains(MountFlags::READ_ONLY) {
            mount.flags.store(now.bits() | CLOSING, Ordering::SeqCst);
            closing.push(*name);
        }
    }
    closing
}

impl Mount {
    /// What it may allow of what is asked for: of some file systems nothing is written.
    pub(super) fn allowed(&self, flags: MountFlags) -> MountFlags {
        let is_read_only = self.file_system.with(FileSystem::is_read_only);
        if is_read_only { flags | MountFlags::READ_ONLY } else { flags }
    }

    /// It does not allow this from now on. (Who makes it read-only has seen to it that nobody writes.)
    pub(super) fn set_flags(&self, flags: MountFlags) {
        self.flags.store(flags.bits(), Ordering::SeqCst);
    }
}
