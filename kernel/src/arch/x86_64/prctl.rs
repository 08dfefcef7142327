//! arch_prctl(2): the bases of the segments `fs` and `gs`. And of prctl(2) what only this processor has: whether programs may read the
//! time-stamp counter.

use frame::Cx;
use frame::mm::USER_END;
use frame::user::{CycleCounter, UserContext};
use linux_raw_sys::prctl::{PR_TSC_ENABLE, PR_TSC_SIGSEGV};

use crate::error::{Errno, Result};

const ARCH_SET_GS: i32 = 0x1001;
const ARCH_SET_FS: i32 = 0x1002;
const ARCH_GET_FS: i32 = 0x1003;
const ARCH_GET_GS: i32 = 0x1004;
const ARCH_GET_CPUID: i32 = 0x1011;
const ARCH_SET_CPUID: i32 = 0x1012;

/// What is left to do for a call.
#[derive(Clone, Copy, Debug)]
pub enum Prctl {
    /// Nothing.
    Done,
    /// The value goes to the address that the call names.
    Store(usize),
    /// The value is the call's result.
    Return(usize),
}

/// Does what `operation` says with `address`.
///
/// # Errors
/// EPERM for an address that is not a program's; ENODEV to have CPUID fault; EINVAL for another operation.
pub fn prctl(context: &mut UserContext, operation: i32, address: usize, cx: &Cx) -> Result<Prctl> {
    let (fs, gs) = context.segment_bases();
    let bases = match operation {
        ARCH_GET_FS => return Ok(Prctl::Store(fs)),
        ARCH_GET_GS => return Ok(Prctl::Store(gs)),
        // Programs may always ask for the processor's features.
        ARCH_GET_CPUID => return Ok(Prctl::Return(1)),
        ARCH_SET_CPUID => return Err(Errno::ENODEV),
        ARCH_SET_FS | ARCH_SET_GS if address >= USER_END => return Err(Errno::EPERM),
        ARCH_SET_FS => (address, gs),
        ARCH_SET_GS => (fs, address),
        _ => return Err(Errno::EINVAL),
    };
    context.set_segment_bases(bases.0, bases.1, cx).map_err(|_| Errno::EPERM)?;
    Ok(Prctl::Done)
}

/// What PR_GET_TSC says.
pub fn cycle_counter(context: &UserContext) -> u32 {
    match context.cycle_counter() {
        CycleCounter::Readable => PR_TSC_ENABLE,
        CycleCounter::Trapping => PR_TSC_SIGSEGV,
    }
}

/// Does what PR_SET_TSC says. Children inherit it, and programs that are executed.
///
/// # Errors
/// EINVAL for another value than the two.
pub fn set_cycle_counter(context: &mut UserContext, value: u32, cx: &Cx) -> Result<()> {
    let cycle_counter = match value {
        PR_TSC_ENABLE => CycleCounter::Readable,
        PR_TSC_SIGSEGV => CycleCounter::Trapping,
        _ => return Err(Errno::EINVAL),
    };
    context.set_cycle_counter(cycle_counter, cx);
    Ok(())
}
