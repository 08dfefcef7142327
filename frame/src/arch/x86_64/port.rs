//! Input and output ports. Only `frame` can name one (invariant 7).

use core::arch::asm;

/// Reads a byte from a port.
///
/// # Safety
/// Reading that port has no effect on memory.
#[inline(always)]
pub unsafe fn read_u8(port: u16) -> u8 {
    let value;
    // SAFETY: by this function's contract.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, preserves_flags)) };
    value
}

/// Writes a byte to a port.
///
/// # Safety
/// The device does nothing to memory because of it.
#[inline(always)]
pub unsafe fn write_u8(port: u16, value: u8) {
    // SAFETY: by this function's contract.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
}

/// Writes 16 bits to a port.
///
/// # Safety
/// As for [`write_u8`].
#[inline(always)]
pub unsafe fn write_u16(port: u16, value: u16) {
    // SAFETY: by this function's contract.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags)) };
}

/// Reads 32 bits from a port.
///
/// # Safety
/// As for [`read_u8`].
pub unsafe fn read_u32(port: u16) -> u32 {
    let value;
    // SAFETY: by this function's contract.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nostack, preserves_flags)) };
    value
}

/// Writes 32 bits to a port.
///
/// # Safety
/// As for [`write_u8`].
pub unsafe fn write_u32(port: u16, value: u32) {
    // SAFETY: by this function's contract.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags)) };
}
