//! What another core could do between any two instructions: the processor steps through a routine, and after each instruction somebody looks.

use alloc::vec::Vec;
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use refs::Cx;

use super::{Outcome, Test};
use crate::arch::machine::copy;
use crate::arch::machine::instructions::take_dr6;
use crate::check;

pub(super) const TESTS: &[Test] = &[("a copy writes each byte once", each_byte_is_written_once)];

/// What is copied, and what somebody else writes where they see that.
const COPIED: u8 = 0x11;
const WRITTEN_SINCE: u8 = 0x22;

/// The bytes that are looked at.
static TARGET: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);
/// How many of them were seen to be what was copied, each as often as it was.
static SEEN: AtomicUsize = AtomicUsize::new(0);

/// The kernel has made a step: whoever sees what was copied writes something else there, as a program may on another core.
pub(crate) fn stepped() {
    take_dr6();
    let target = TARGET.load(Ordering::Relaxed);
    for at in 0..LEN.load(Ordering::Relaxed) {
        // SAFETY: `copy_in_steps` says what is looked at, and has it for itself.
        unsafe {
            let byte = target.add(at);
            if byte.read_volatile() == COPIED {
                SEEN.fetch_add(1, Ordering::Relaxed);
                byte.write_volatile(WRITTEN_SINCE);
            }
        }
    }
}

extern "C" fn copy_user(to: *mut u8, from: *const u8, len: usize) -> usize {
    // SAFETY: `copy_in_steps` has both for so many bytes.
    unsafe { copy::copy_user(to, from, len) }
}

/// Copies, and has [`stepped`] look after each instruction. How many bytes were left, and how many it saw come.
fn copy_in_steps(to: &mut [u8], from: &[u8]) -> (usize, usize) {
    let len = to.len().min(from.len());
    TARGET.store(to.as_mut_ptr(), Ordering::Relaxed);
    LEN.store(len, Ordering::Relaxed);
    SEEN.store(0, Ordering::Relaxed);
    let left;
    // SAFETY: a call of a function of this convention, on a stack that is aligned for it, with the trap flag set, whose traps `stepped` handles.
    unsafe {
        asm!(
            "mov r12, rsp",
            "and rsp, -16",
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "popfq",
            "call {copy}",
            "pushfq",
            "and qword ptr [rsp], -0x101",
            "popfq",
            "mov rsp, r12",
            out("r12") _,
            copy = sym copy_user,
            in("rdi") to.as_mut_ptr(),
            in("rsi") from.as_ptr(),
            in("rdx") len,
            lateout("rax") left,
            clobber_abi("C"),
        );
    }
    LEN.store(0, Ordering::Relaxed);
    (left, SEEN.load(Ordering::Relaxed))
}

fn each_byte_is_written_once(_cx: &mut Cx) -> Outcome {
    for len in (0..=80).chain(504..=530).chain([1023, 1024, 1025]) {
        let from: Vec<u8> = core::iter::repeat_n(COPIED, len).collect();
        let mut to: Vec<u8> = core::iter::repeat_n(0_u8, len).collect();
        let (left, seen) = copy_in_steps(&mut to, &from);
        check!(left == 0, "{left} of {len} bytes are not copied");
        check!(seen == len, "of {len} bytes {seen} are written, those counted that are written again");
    }
    Ok(())
}
