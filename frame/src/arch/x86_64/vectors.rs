//! Whole pages zeroed and copied with the vector registers, which takes a third of the instructions.
//!
//! The registers hold the state of the last user code, also while the kernel runs: what is used here is saved on the stack and
//! put back, so that nobody notices. Only the 256-bit registers are used, and only where there are no larger ones: an
//! instruction on half of a register would clear the other half, which would then be the user's loss.

use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, Ordering};

global_asm!(
    r#"
    .section .text.hot.ebb_vectors, "ax"
    .balign 64
.globl ebb_zero_page
ebb_zero_page:                      # rdi: page
    sub rsp, 32
    vmovdqu [rsp], ymm0
    vpxor xmm0, xmm0, xmm0
    lea rax, [rdi + 4096]
10: .set place, 0
    .rept 32
    vmovdqu [rdi + place], ymm0
    .set place, place + 32
    .endr
    add rdi, 1024
    cmp rdi, rax
    jne 10b
    vmovdqu ymm0, [rsp]
    add rsp, 32
    ret

    .balign 64
.globl ebb_copy_page
ebb_copy_page:                      # rdi: to, rsi: from
    sub rsp, 64
    vmovdqu [rsp], ymm0
    vmovdqu [rsp + 32], ymm1
    lea rax, [rdi + 4096]
20: .set place, 0
    .rept 16
    vmovdqu ymm0, [rsi + place]
    vmovdqu ymm1, [rsi + place + 32]
    vmovdqu [rdi + place], ymm0
    vmovdqu [rdi + place + 32], ymm1
    .set place, place + 64
    .endr
    add rdi, 1024
    add rsi, 1024
    cmp rdi, rax
    jne 20b
    vmovdqu ymm0, [rsp]
    vmovdqu ymm1, [rsp + 32]
    add rsp, 64
    ret

    .pushsection .data.ebb_has_vectors, "aw"
.globl ebb_has_vectors
ebb_has_vectors:
    .byte 0
    .popsection
    "#
);

unsafe extern "C" {
    fn ebb_zero_page(page: *mut u8);
    fn ebb_copy_page(to: *mut u8, from: *const u8);
    static ebb_has_vectors: AtomicBool;
}

/// Whether the routines here, and the vector part of `copy`, can be used.
#[inline(always)]
fn enabled() -> bool {
    // SAFETY: a byte of 0 or 1, which everybody reads and writes as an atomic.
    unsafe { ebb_has_vectors.load(Ordering::Relaxed) }
}

/// Allows the use of the registers if these state components (XCR0) are enabled: SSE and AVX, and nothing beyond.
pub fn allow(components: u64) {
    // SAFETY: as for `enabled`.
    unsafe { ebb_has_vectors.store(components == 0b111, Ordering::Relaxed) };
}

/// Zeroes a page. False if that was not done, because the processor is not suited.
///
/// # Safety
/// The page is memory of the kernel or untyped, and may be written.
#[inline(always)]
pub unsafe fn zero_page(page: *mut u8) -> bool {
    let enabled = enabled();
    if enabled {
        // SAFETY: by this function's contract; the registers are enabled.
        unsafe { ebb_zero_page(page) };
    }
    enabled
}

/// Copies as many bytes as a page has, from the front. False if that was not done, because the processor is not suited.
///
/// # Safety
/// Both are a page long and memory of the kernel or untyped, and the first may be written.
#[inline(always)]
pub unsafe fn copy_page(to: *mut u8, from: *const u8) -> bool {
    let enabled = enabled();
    if enabled {
        // SAFETY: by this function's contract; the registers are enabled.
        unsafe { ebb_copy_page(to, from) };
    }
    enabled
}
