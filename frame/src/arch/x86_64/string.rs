//! The processor's string instructions, for kernel memory and untyped frames, which user programs may read and change meanwhile.
//!
//! The direction flag is clear in kernel code.

use core::arch::asm;

/// Zeroes words.
///
/// # Safety
/// `to` is valid for writes of `len` bytes, and `len` is a multiple of 8.
#[inline(always)]
pub unsafe fn zero_words(to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rep stosq", inout("rcx") len / 8 => _, inout("rdi") to => _, in("rax") 0_u64, options(nostack, preserves_flags));
    }
}

/// Copies words.
///
/// # Safety
/// Both are valid for `len` bytes and do not overlap, and `len` is a multiple of 8.
#[inline(always)]
pub unsafe fn copy_words(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rep movsq", inout("rcx") len / 8 => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

/// Copies bytes, from the front.
///
/// # Safety
/// Both are valid for `len` bytes.
#[inline(always)]
pub unsafe fn copy_bytes(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "rep movsq",
            "mov ecx, {rest:e}",
            "rep movsb",
            rest = in(reg) len & 7,
            inout("rcx") len / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Zeroes bytes.
///
/// # Safety
/// Valid for writes of `len` bytes.
#[inline(always)]
pub unsafe fn zero_bytes(to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "rep stosq",
            "mov ecx, {rest:e}",
            "rep stosb",
            rest = in(reg) len & 7,
            inout("rcx") len / 8 => _, inout("rdi") to => _, in("rax") 0_u64,
            options(nostack, preserves_flags)
        );
    }
}
