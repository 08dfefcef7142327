//! The instruction CRC32 of SSE4.2.

use core::arch::asm;
use core::sync::atomic::{AtomicU8, Ordering};

/// Bit 20 of ECX of CPUID's leaf 1: SSE4.2.
const SSE4_2: u32 = 1 << 20;

/// What is known of the processor. All cores of a machine are taken to be the same.
static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;

/// Who holds one knows that the processor has the instruction.
#[derive(Clone, Copy)]
pub struct Instruction(());

impl Instruction {
    /// The instruction, if the processor has it.
    #[inline]
    pub fn find() -> Option<Self> {
        match KNOWN.load(Ordering::Relaxed) {
            PRESENT => Some(Instruction(())),
            ABSENT => None,
            _ => Self::ask(),
        }
    }

    #[cold]
    fn ask() -> Option<Self> {
        // Newer compilers know that every x86-64 processor has CPUID.
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 processor has CPUID, and its leaf 1.
        let features = unsafe { core::arch::x86_64::__cpuid(1) }.ecx;
        let known = if features & SSE4_2 != 0 { PRESENT } else { ABSENT };
        KNOWN.store(known, Ordering::Relaxed);
        (known == PRESENT).then_some(Instruction(()))
    }

    pub fn crc32c(self, seed: u32, bytes: &[u8]) -> u32 {
        let mut crc = u64::from(seed);
        let (lines, rest) = bytes.as_chunks::<64>();
        for line in lines {
            // SAFETY: `self` shows that the processor has the instruction. It reads the 64 bytes of `line` and nothing else, and changes the one register and no flags.
            unsafe {
                asm!(
                    "crc32 {crc}, qword ptr [{line}]",
                    "crc32 {crc}, qword ptr [{line} + 8]",
                    "crc32 {crc}, qword ptr [{line} + 16]",
                    "crc32 {crc}, qword ptr [{line} + 24]",
                    "crc32 {crc}, qword ptr [{line} + 32]",
                    "crc32 {crc}, qword ptr [{line} + 40]",
                    "crc32 {crc}, qword ptr [{line} + 48]",
                    "crc32 {crc}, qword ptr [{line} + 56]",
                    crc = inout(reg) crc,
                    line = in(reg) line.as_ptr(),
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
        }
        let (eights, rest) = rest.as_chunks::<8>();
        for eight in eights {
            let value = u64::from_le_bytes(*eight);
            // SAFETY: as above; it reads no memory.
            unsafe {
                asm!("crc32 {crc}, {value}", crc = inout(reg) crc, value = in(reg) value, options(pure, nomem, nostack, preserves_flags));
            }
        }
        for byte in rest {
            // SAFETY: as above.
            unsafe {
                asm!("crc32 {crc:e}, {byte}", crc = inout(reg) crc, byte = in(reg_byte) *byte, options(pure, nomem, nostack, preserves_flags));
            }
        }
        crc as u32
    }
}
