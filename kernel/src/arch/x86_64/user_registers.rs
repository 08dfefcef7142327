//! The registers as core files and debuggers have them: `struct user_regs_struct`.

use frame::Cx;
use frame::mm::USER_END;
use frame::user::UserContext;

use super::signal_frame::USER_FLAGS;
use crate::error::{Errno, Result};

/// The segments of user code and data (Linux's `__USER_CS` and `__USER_DS`).
const USER_CODE_SEGMENT: u64 = 0x33;
const USER_DATA_SEGMENT: u64 = 0x2b;

/// The registers as core files have them: `elf_gregset_t`.
pub type CoreRegisters = [u64; 27];

/// What stands in the place of a call's number where a thread is in none.
pub const NO_CALL: u64 = u64::MAX;

/// The machine and its conventions as GET_SYSCALL_INFO says them: AUDIT_ARCH_X86_64.
pub const AUDIT_ARCH: u32 = 0xc000_003e;

/// The registers of a thread that is in the system call `call`, or in none ([`NO_CALL`]).
pub fn core_registers(context: &UserContext, call: u64) -> CoreRegisters {
    let registers = &context.registers;
    let (fs, gs) = context.segment_bases();
    [
        registers.r15 as u64,
        registers.r14 as u64,
        registers.r13 as u64,
        registers.r12 as u64,
        registers.rbp as u64,
        registers.rbx as u64,
        registers.r11 as u64,
        registers.r10 as u64,
        registers.r9 as u64,
        registers.r8 as u64,
        registers.rax as u64,
        registers.rcx as u64,
        registers.rdx as u64,
        registers.rsi as u64,
        registers.rdi as u64,
        call,
        registers.rip as u64,
        USER_CODE_SEGMENT,
        registers.rflags as u64,
        registers.rsp as u64,
        USER_DATA_SEGMENT,
        fs as u64,
        gs as u64,
        0,
        0,
        0,
        0,
    ]
}

/// The registers become what a debugger says, as far as a program may have them so. Gives back the number of the call that the thread is to be in.
///
/// # Errors
/// EIO for a segment or a base that no program has; nothing has changed.
pub fn set_core_registers(context: &mut UserContext, new: &CoreRegisters, cx: &Cx) -> Result<u64> {
    let [
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        call,
        rip,
        cs,
        flags,
        rsp,
        ss,
        fs,
        gs,
        ..,
    ] = *new;
    // As on Linux, the privilege level is the program's whatever it says.
    const LEVEL: u64 = 3;
    let has_segments = (cs | LEVEL, ss | LEVEL) == (USER_CODE_SEGMENT, USER_DATA_SEGMENT);
    if !has_segments || new[23..].iter().any(|&segment| segment & 0xffff != 0) || fs.max(gs) >= USER_END as u64 {
        return Err(Errno::EIO);
    }
    context.set_segment_bases(fs as usize, gs as usize, cx).map_err(|_| Errno::EIO)?;
    let to = &mut context.registers;
    [to.r15, to.r14, to.r13, to.r12, to.rbp, to.rbx, to.r11, to.r10, to.r9, to.r8] =
        [r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8].map(|value| value as usize);
    [to.rax, to.rcx, to.rdx, to.rsi, to.rdi, to.rip, to.rsp] =
        [rax, rcx, rdx, rsi, rdi, rip, rsp].map(|value| value as usize);
    to.rflags = to.rflags & !USER_FLAGS | flags as usize & USER_FLAGS;
    Ok(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_back_as_they_were_set_but_for_flags_that_are_the_systems() {
        frame::with_context(|cx| {
            let mut context = UserContext::new();
            let mut new = core_registers(&context, NO_CALL);
            for (index, value) in new[..16].iter_mut().enumerate() {
                *value = index as u64 + 1;
            }
            new[18] = u64::MAX;
            assert_eq!(set_core_registers(&mut context, &new, cx), Ok(16));
            new[18] = USER_FLAGS as u64;
            assert_eq!(core_registers(&context, 16), new);
            new[17] = 0x10;
            assert_eq!(set_core_registers(&mut context, &new, cx), Err(Errno::EIO));
        });
    }
}
