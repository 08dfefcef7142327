//! `/proc/ebb/stretch`, in kernels that are built with the feature `stretch`: the longest stretch with interrupts off.
//!
//! The first line is the longest of all. Then comes a line for each core, with its longest stretch and the longest time between two quiescent states of its, and one for each cause, in cycles of the time stamp counter (under `-icount shift=0`:
//! instructions), with the longest part of it and the two places in the source between which that lies. Whatever is written to the file forgets
//! them.

use frame::stretch::{self, Cause, CoreStretch, Stretch};

use super::{Entry, setting};

/// The file.
pub const ENTRY: Entry = setting(
    "stretch",
    |text, _, _, _| {
        if let Some(longest) = stretch::longest().max_by_key(|time_slice| time_slice.cycles) {
            text.add(format_args!("longest {}\n", Line(longest)));
        }
        for core in 0..frame::cpu::count() {
            let CoreStretch { cycles, between_quiescent } = stretch::of_core(core);
            text.add(format_args!("core {core}: {cycles}, {between_quiescent} between quiescent states\n"));
        }
        for time_slice in stretch::longest() {
            text.add(format_args!("{}\n", Line(time_slice)));
        }
        Ok(())
    },
    |_, _, _, _| {
        stretch::reset();
        Ok(())
    },
);

/// A stretch as it is written: `95400 call 231, 0 switches, 90000 from kernel/src/process/exit.rs:57 to frame/src/user.rs:240`.
struct Line(Stretch);

impl core::fmt::Display for Line {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Stretch { cause, cycles, switches, part, part_at: [from, to] } = self.0;
        write!(f, "{cycles} ")?;
        match cause {
            Cause::Call(number) => write!(f, "call {number}")?,
            Cause::Trap(vector) => write!(f, "trap {vector}")?,
            Cause::Idle => f.write_str("idle")?,
        }
        write!(f, ", {switches} switches, {part} from {}:{} to {}:{}", from.file(), from.line(), to.file(), to.line())
    }
}
