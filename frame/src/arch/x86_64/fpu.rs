//! Floating-point and vector state of user code.
//!
//! The kernel is compiled without floating point, so the state of the last user code stays in the processor while the kernel
//! runs. It is kept in the XSAVE layout (standard form; Intel SDM volume 1, chapter 13), or FXSAVE's where there is no XSAVE.

use core::arch::asm;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::features;
use super::instructions::xsetbv;
use crate::user::BadFpuState;

/// A state area is made of these; XSAVE wants it aligned like that.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Chunk(pub [u8; 64]);

const LEGACY_BYTES: usize = 512;
const HEADER: usize = 512;
const HEADER_END: usize = 576;
const CONTROL_WORD: usize = 0;
const MXCSR: usize = 24;
const MXCSR_MASK: usize = 28;
const MXCSR_AFTER_RESET: u32 = 0x1f80;
const CONTROL_WORD_AFTER_RESET: u16 = 0x37f;
/// x87, SSE, AVX, and the three parts of AVX-512: what needs no further permission.
const COMPONENTS: u64 = 0b1110_0111;

static XSAVE: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicUsize = AtomicUsize::new(LEGACY_BYTES);
static ENABLED: AtomicU64 = AtomicU64::new(3);
static MXCSR_ALLOWED: AtomicU32 = AtomicU32::new(0xffbf);

/// Enables the state components that the processor has.
pub fn init() {
    if features::has_xsave() {
        let has = features::cpuid(13, 0);
        let mut components = (u64::from(has.edx) << 32 | u64::from(has.eax)) & COMPONENTS;
        if components & 0b1110_0000 != 0b1110_0000 {
            components &= 0b111;
        }
        // SAFETY: CPUID lists the components, and `features::enable` has set CR4.OSXSAVE.
        unsafe { xsetbv(0, components) };
        XSAVE.store(true, Ordering::Relaxed);
        ENABLED.store(components, Ordering::Relaxed);
        super::vectors::allow(components);
        // With XCR0 set, the leaf tells the size for what is enabled.
        BYTES.store((features::cpuid(13, 0).ebx as usize).max(HEADER_END), Ordering::Relaxed);
    }
    let mut area = [Chunk([0; 64]); LEGACY_BYTES / 64];
    // SAFETY: every x86-64 processor has FXSAVE, and the area has its size and alignment.
    unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut area, options(nostack)) };
    let mask = u32_at(&area, MXCSR_MASK);
    if mask != 0 {
        MXCSR_ALLOWED.store(mask, Ordering::Relaxed);
    }
}

/// Bytes of a state, and its components (XCR0).
pub fn size() -> (usize, u64) {
    (BYTES.load(Ordering::Relaxed), ENABLED.load(Ordering::Relaxed))
}

/// Chunks of a state area.
pub fn chunks() -> usize {
    BYTES.load(Ordering::Relaxed).div_ceil(64)
}

/// A state area as bytes.
pub fn bytes(area: &[Chunk]) -> &[u8] {
    // SAFETY: chunks are plain bytes without padding.
    unsafe { core::slice::from_raw_parts(area.as_ptr().cast(), size_of_val(area)) }
}

fn bytes_mut(area: &mut [Chunk]) -> &mut [u8] {
    // SAFETY: as above.
    unsafe { core::slice::from_raw_parts_mut(area.as_mut_ptr().cast(), size_of_val(area)) }
}

fn u32_at(area: &[Chunk], at: usize) -> u32 {
    let bytes = bytes(area);
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Makes an area hold the state after reset.
pub fn reset(area: &mut [Chunk]) {
    let bytes = bytes_mut(area);
    bytes.fill(0);
    bytes[CONTROL_WORD..CONTROL_WORD + 2].copy_from_slice(&CONTROL_WORD_AFTER_RESET.to_le_bytes());
    bytes[MXCSR..MXCSR + 4].copy_from_slice(&MXCSR_AFTER_RESET.to_le_bytes());
}

/// The bytes of the layout that the processor leaves to software.
pub const SOFTWARE: Range<usize> = 464..512;

/// Notes something in the bytes that are left to software.
pub fn set_software_bytes(area: &mut [Chunk], software: &[u8; SOFTWARE.end - SOFTWARE.start]) {
    bytes_mut(area)[SOFTWARE].copy_from_slice(software);
}

/// Has `fill` write a state into an area, which may be forged: the first 512 bytes, or all. It says how many. One that the processor would not load is
/// refused; the area is then as after reset, as it is where `fill` fails.
pub fn replace<E>(
    area: &mut [Chunk],
    fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<Result<(), BadFpuState>, E> {
    let filled = fill(&mut bytes_mut(area)[..size().0]);
    let outcome = filled.map(|len| accept(area, len));
    if !matches!(outcome, Ok(Ok(()))) {
        reset(area);
    }
    outcome
}

/// Checks a state of which the first `len` bytes were written, and completes it.
fn accept(area: &mut [Chunk], len: usize) -> Result<(), BadFpuState> {
    let (size, enabled) = size();
    let xsave = XSAVE.load(Ordering::Relaxed);
    if u32_at(area, MXCSR) & !MXCSR_ALLOWED.load(Ordering::Relaxed) != 0 {
        return Err(BadFpuState);
    }
    let bytes = bytes_mut(area);
    if len == size && xsave {
        // Components that are not enabled, the compact form, or reserved bits make XRSTOR fault.
        let (words, _) = bytes[HEADER..HEADER_END].as_chunks::<8>();
        let is_good =
            |(index, word): (usize, &[u8; 8])| u64::from_le_bytes(*word) & !(if index == 0 { enabled } else { 0 }) == 0;
        return if words.iter().enumerate().all(is_good) { Ok(()) } else { Err(BadFpuState) };
    }
    if len != LEGACY_BYTES {
        return Err(BadFpuState);
    }
    bytes[LEGACY_BYTES..].fill(0);
    if xsave {
        // x87 and SSE are as given, the rest is as after reset.
        bytes[HEADER] = 3;
    }
    Ok(())
}

/// Saves the processor's state.
///
/// # Safety
/// `area` has [`chunks`] chunks that may be written.
#[inline(always)]
pub unsafe fn save(area: *mut Chunk) {
    // SAFETY: by this function's contract; the instructions write no more than `size` says.
    unsafe {
        if XSAVE.load(Ordering::Relaxed) {
            asm!("xsave64 [{}]", in(reg) area, in("eax") u32::MAX, in("edx") u32::MAX, options(nostack, preserves_flags));
        } else {
            asm!("fxsave64 [{}]", in(reg) area, options(nostack, preserves_flags));
        }
    }
}

/// Loads a state into the processor.
///
/// # Safety
/// `area` has [`chunks`] chunks, filled in by [`reset`], [`replace`] or [`save`] only.
#[inline(always)]
pub unsafe fn restore(area: *const Chunk) {
    // SAFETY: by this function's contract nothing in the area makes the instructions fault.
    unsafe {
        if XSAVE.load(Ordering::Relaxed) {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") u32::MAX, in("edx") u32::MAX, options(nostack, preserves_flags));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack, preserves_flags));
        }
    }
}
