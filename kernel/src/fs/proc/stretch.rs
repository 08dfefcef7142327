//! `/proc/ebb/stretch`, in kernels that are built with the feature `stretch`: the longest stretch with interrupts off.
//!
//! The first line is the longest of all, then comes a line for each cause, in cycles of the time stamp counter (under `-icount shift=0`:
//! instructions). Whatever is written to the file forgets them.

use frame::stretch::{self, Cause};

use super::{Entry, setting};

/// `/proc/ebb`.
pub const ENTRIES: &[Entry] = &[setting(
    "stretch",
    |text, _, _, _| {
        if let Some((cause, cycles)) = stretch::longest().max_by_key(|&(_, cycles)| cycles) {
            text.add(format_args!("longest {cycles} {}\n", Shown(cause)));
        }
        for (cause, cycles) in stretch::longest() {
            text.add(format_args!("{} {cycles}\n", Shown(cause)));
        }
        Ok(())
    },
    |_, _, _, _| {
        stretch::reset();
        Ok(())
    },
)];

/// A cause as it is written: `call 231`, `trap 14`, `idle`, `switch`.
struct Shown(Cause);

impl core::fmt::Display for Shown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Cause::Call(number) => write!(f, "call {number}"),
            Cause::Trap(vector) => write!(f, "trap {vector}"),
            Cause::Idle => f.write_str("idle"),
            Cause::Switch => f.write_str("switch"),
        }
    }
}
