//! Switching the machine off, and how long it has been on.

use rustix::system::{RebootCommand, reboot};
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// Nanoseconds since the kernel started its clock.
pub fn nanoseconds_since_boot() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// Reports an error on the console and powers off in any case. Returns only if the kernel refuses.
pub fn off_after(outcome: io::Result<()>) -> io::Result<()> {
    if let Err(error) = &outcome {
        eprintln!("ebb agent: {error}");
    }
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff)?;
    // A machine without a way to switch itself off; the emulator is told not to come up again.
    reboot(RebootCommand::Restart)?;
    Err(io::Error::other("the kernel neither powers off nor restarts"))
}
