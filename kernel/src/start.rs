//! From the framework's start to the first process.

use frame::{BootInfo, Config};

/// What the framework needs to know of this kernel.
pub static CONFIG: Config = Config {
    frames: &crate::memory::buddy::FRAMES,
    slabs: &crate::memory::slab::SLABS,
    tasks: &crate::sched::SCHEDULER,
    start,
};

/// Spawns the task that unpacks the root file system and becomes process 1.
fn start(_info: &'static BootInfo) {}

/// A line in the kernel's log (the console, unless `quiet` is on the command line; and `/dev/kmsg`, `dmesg`).
#[macro_export]
macro_rules! log {
    ($($part:tt)*) => { frame::println!("ebb: {}", format_args!($($part)*)) };
}
