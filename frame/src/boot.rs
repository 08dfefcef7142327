//! From the first instruction to the first task.

use crate::mm::{FramePolicy, SlabPolicy};

/// What the kernel brings: its policies and where it starts.
pub struct Config {
    /// Which frames are handed out.
    pub frames: &'static dyn FramePolicy,
    /// Which slab a heap object goes to.
    pub slabs: &'static dyn SlabPolicy,
    /// Which task runs next.
    pub tasks: &'static dyn tasks::Policy,
    /// Called once on the boot core when all of `frame` works, before any task runs: it spawns the first task(s).
    pub start: fn(&'static BootInfo),
}

/// What the boot loader told.
pub struct BootInfo {
    /// The kernel's command line.
    pub command_line: &'static str,
    /// The initial ram disk as it was loaded, if there is one. It is ordinary read-only memory, for ever.
    pub initramfs: Option<&'static [u8]>,
    /// How many bytes of memory the machine has.
    pub memory_bytes: usize,
}
