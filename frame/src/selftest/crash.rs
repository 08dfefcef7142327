//! Ways to die, to see what the kernel says then.

use core::hint::black_box;

use refs::Cx;
use tasks::{Body, Next};

/// Dies in the way that its kind names: `panic`, `stack` (an overflow), `null` (a read through a null pointer),
/// `text` (a write to the kernel's code), `invalid` (an invalid instruction), `check` (a machine check between a system call's first two
/// instructions: neither the stack nor `gs` are the kernel's), `double` (a double fault there).
pub(super) struct Crash {
    pub(super) kind: &'static str,
}

impl Body for Crash {
    fn run_async(&mut self, _cx: &mut Cx) -> Next {
        match self.kind {
            "stack" => {
                overflow(1);
            }
            // SAFETY: none: this is to fault, and it does.
            "null" => unsafe {
                core::ptr::read_volatile(black_box(8) as *const u64);
            },
            // SAFETY: none: this is to fault, and it does.
            "text" => unsafe {
                core::ptr::write_volatile(crate::arch::machine::kernel_map::text().start as *mut u8, 0);
            },
            // SAFETY: the exception does not return.
            "invalid" => unsafe { core::arch::asm!("ud2") },
            // SAFETY: the exception does not return.
            "check" => unsafe {
                core::arch::asm!("mov rsp, {user}", "swapgs", "int 18", "ud2", user = in(reg) USER_STACK)
            },
            // SAFETY: the exception that cannot be delivered does not return.
            "double" => unsafe { core::arch::asm!("mov rsp, {user}", "swapgs", "ud2", user = in(reg) USER_STACK) },
            _ => {}
        }
        panic!("crash={}", self.kind)
    }
}

/// Some address of the user's, where nothing is mapped.
const USER_STACK: usize = 0x7000_0000;

#[inline(never)]
fn overflow(depth: usize) -> usize {
    let room = black_box([depth; 64]);
    if depth == 0 { 0 } else { overflow(black_box(depth + 1)) + room[depth % 64] }
}
