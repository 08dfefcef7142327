//! Where randomness comes from.

/// 64 bits that nobody can predict, as far as the processor knows: its random-number generator where it has one, and its time
/// stamp counter. Input for a generator, not a random number by itself.
#[cfg(target_arch = "x86_64")]
pub fn word() -> u64 {
    use core::arch::x86_64::{__cpuid, _rdtsc};
    /// CPUID leaf 1, ECX: RDRAND.
    const RDRAND: u32 = 1 << 30;

    // SAFETY: every x86-64 processor has the time stamp counter, and this kernel leaves it readable.
    let mut word = unsafe { _rdtsc() }.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    #[allow(unused_unsafe)] // Newer compilers know that CPUID is safe.
    // SAFETY: every x86-64 processor has CPUID.
    let features = unsafe { __cpuid(1) }.ecx;
    if features & RDRAND != 0 {
        // The generator may be out of numbers for a moment.
        for _ in 0..16 {
            let (random, ok): (u64, u8);
            // SAFETY: CPUID says that the instruction is there; it writes one register and the flags.
            unsafe {
                core::arch::asm!("rdrand {}", "setc {}", out(reg) random, out(reg_byte) ok, options(nomem, nostack));
            }
            if ok != 0 {
                word ^= random;
                break;
            }
        }
    }
    word
}
