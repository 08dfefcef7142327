//! Ways to die, to see what the kernel says then.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};

use refs::{Cx, SpinLock};
use tasks::{Body, Next};

use crate::arch::machine::core_block::block_of;
use crate::cpu;

/// Dies in the way that its kind names: `panic`, `memory` (a block of the heap that there is no memory for), `stack` (an overflow), `null` (a read through a null pointer),
/// `text` (a write to the kernel's code), `invalid` (an invalid instruction), `check` (a machine check between a system call's first two
/// instructions: neither the stack nor `gs` are the kernel's), `double` (a double fault there), `lock` (a lock is taken twice), `order` (two locks are taken in both orders),
/// `cores` (a panic while one core runs user code, one computes in the kernel, and all others idle).
pub(super) struct Crash(pub(super) &'static str);

impl Body for Crash {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        match self.0 {
            "memory" => drop(black_box(Vec::<u8>::with_capacity(black_box(1 << 40)))),
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
            "lock" => {
                let _held = ONE.lock(cx);
                ONE.with(|_| ());
            }
            "order" => {
                ONE.with(|_| OTHER.with(|_| ()));
                OTHER.with(|_| ONE.with(|_| ()));
            }
            "cores" => {
                tasks::spawn(&super::POLICY, Box::new(Busy), |_, _| ());
                tasks::spawn(&super::POLICY, Box::new(UserLoop), |_, _| ());
                let me = cpu::current(cx);
                let is_quiescent = |core| block_of(core).is_some_and(|block| !block.report.is_present());
                // The kernel's loop is no quiescent state, user code is one, and so is idleness.
                while !IS_BUSY.load(Ordering::Acquire)
                    || !IN_USER_MODE.load(Ordering::Acquire)
                    || super::POLICY.idle_cores() + 3 < cpu::count()
                    || (0..cpu::count()).filter(|core| *core != me && !is_quiescent(*core)).count() > 1
                {
                    core::hint::spin_loop();
                }
            }
            _ => {}
        }
        panic!("crash={}", self.0)
    }
}

static ONE: SpinLock<()> = SpinLock::new(());
static OTHER: SpinLock<()> = SpinLock::new(());
static IS_BUSY: AtomicBool = AtomicBool::new(false);
static IN_USER_MODE: AtomicBool = AtomicBool::new(false);

/// Computes in the kernel for ever.
struct Busy;

impl Body for Busy {
    fn run_async(&mut self, _cx: &mut Cx) -> Next {
        compute_in_the_kernel()
    }
}

#[inline(never)]
fn compute_in_the_kernel() -> Next {
    while !black_box(false) {
        IS_BUSY.store(true, Ordering::Release);
    }
    Next::End
}

/// Runs user code for ever.
struct UserLoop;

impl Body for UserLoop {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        IN_USER_MODE.store(true, Ordering::Release);
        loop {
            super::user_code::loop_async(cx);
        }
    }
}

/// Some address of the user's, where nothing is mapped.
const USER_STACK: usize = 0x7000_0000;

#[inline(never)]
fn overflow(depth: usize) -> usize {
    let room = black_box([depth; 64]);
    if depth == 0 { 0 } else { overflow(black_box(depth + 1)) + room[depth % 64] }
}
