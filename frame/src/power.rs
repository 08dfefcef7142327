//! The end: power off, restart, and what the emulator is told about it.

use crate::arch::machine::stop;

/// Why the machine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOff {
    /// As asked for.
    Orderly,
    /// After a kernel panic.
    Panic,
}

/// Stops the machine: QEMU exits with 33 (orderly) or 99 (panic).
pub fn off(why: PowerOff) -> ! {
    stop::off(why)
}

/// Restarts the machine.
pub fn restart() -> ! {
    stop::restart()
}
