//! Block devices: what drivers of disks provide, and what everybody else sees of them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `request` | a piece of work for a device, who owns it, who is told |
//! | `device`, `statistics` | what a driver provides, and what it has done |
//! | [`cache`] | pages of what is on devices |
//! | `write_back` | the task that writes dirty pages back |
//! | `disk`, [`partitions`] | devices with names, their caches, and their parts |
//!
//! *Who owns what.* A request is the device's from its submission until its owner has been told, exactly once; with it the frames, which the device may read or write all that time. Whoever asked for it waits for its
//! outcome elsewhere, and may end sooner: nothing is taken back from a device, and nobody waits for it in order to end. So an end takes as long as ever, and frames that are under way come back when the device is done with them. A device that never answers keeps them, and those
//! who wait for it, who can be killed.
//!
//! *Steps.* Whatever needs a device is a step. One that needs a page says `Absent`, and whoever drives it is woken by the cache; one that waits for a transfer of its own says `BlockOnDevice`, with its waker entered. Only fatal
//! signals end either wait, and O_NONBLOCK does not count (RWF_NOWAIT does).
//!
//! *A device that is gone* (broken, or unplugged) fails all that it had to do and all that comes, with EIO.

pub mod cache;
mod device;
mod disk;
pub mod partitions;
mod request;
mod statistics;
mod write_back;

pub use cache::{Backing, Cache, Depth, DirectRead, Extent, Keep, ReadAhead, SyncProgress, VolumeSync, Wanted};
pub use device::{BlockDevice, Geometry, Limits};
pub use disk::{Disk, MAJOR, Used, Volume, add, disks, start_async, sync_all, volume};
pub use request::{Operation, Owner, Refused, Request, SECTOR, Transfer, transfer_async, wait_async};
pub use statistics::Statistics;

/// The right to use simulated memory, of which there is one for all tests.
#[cfg(test)]
pub(crate) fn test_memory() -> std::sync::MutexGuard<'static, ()> {
    use std::sync::{Mutex, Once, PoisonError};
    static ALONE: Mutex<()> = Mutex::new(());
    static ONCE: Once = Once::new();
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    ONCE.call_once(|| frame::mm::simulate(32768, &allocators::buddy::FRAMES, &allocators::slab::SLABS));
    alone
}
