//! What this processor can do.

use core::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};
use core::sync::atomic::{AtomicBool, Ordering};

use super::instructions::{rdmsr, read_cr0, read_cr4, write_cr0, write_cr4, wrmsr};

/// A leaf of CPUID; zeros if the processor does not have it.
pub fn cpuid(leaf: u32, sub_leaf: u32) -> CpuidResult {
    let last = __cpuid(leaf & 0xf000_0000).eax;
    if leaf > last { CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 } } else { __cpuid_count(leaf, sub_leaf) }
}

static SMAP: AtomicBool = AtomicBool::new(false);

/// Whether the kernel must say (`stac`) when it means to access user memory.
#[inline(always)]
pub fn smap() -> bool {
    SMAP.load(Ordering::Relaxed)
}

static PCIDS: AtomicBool = AtomicBool::new(false);

/// Whether process-context identifiers are switched on.
#[inline(always)]
pub fn has_pcids() -> bool {
    PCIDS.load(Ordering::Relaxed)
}

/// Whether the processor has process-context identifiers, and can be trusted with them: with some of Intel's INVLPG leaves translations of global pages
/// where they are switched on (an erratum of theirs), and whether the microcode mends that is not asked.
fn has_good_pcids() -> bool {
    const BAD: [u32; 6] = [0x97, 0x9a, 0xb7, 0xba, 0xbe, 0xbf];
    let CpuidResult { eax, ecx, .. } = cpuid(1, 0);
    let (family, model) = (eax >> 8 & 15, (eax >> 4 & 15) | (eax >> 12 & 0xf0));
    ecx & 1 << 17 != 0 && !(family == 6 && BAD.contains(&model))
}

/// Whether the processor has x2APIC, XSAVE, 1 GiB pages, and a timer by deadline.
pub fn has_x2apic() -> bool {
    cpuid(1, 0).ecx & 1 << 21 != 0
}

/// Whether the processor has XSAVE.
pub fn has_xsave() -> bool {
    cpuid(1, 0).ecx & 1 << 26 != 0
}

/// Whether the processor has pages of 1 GiB.
pub fn has_gigabyte_pages() -> bool {
    cpuid(0x8000_0001, 0).edx & 1 << 26 != 0
}

/// Whether the local APIC's timer can go off at a value of the time stamp counter.
pub fn has_tsc_deadline() -> bool {
    cpuid(1, 0).ecx & 1 << 24 != 0
}

/// Whether user code gets [the core's number](set_core_number) from `rdpid`.
pub fn has_rdpid() -> bool {
    cpuid(7, 0).ecx & 1 << 22 != 0
}

/// What `rdpid` and `rdtscp` give user code on this core.
pub fn set_core_number(number: usize) {
    let has_rdtscp = cpuid(0x8000_0001, 0).edx & 1 << 27 != 0;
    if has_rdtscp || has_rdpid() {
        // SAFETY: the register is there with either instruction, and holds what the kernel likes.
        unsafe { wrmsr(TSC_AUX, number as u64) };
    }
}

const TSC_AUX: u32 = 0xc000_0103;
const EFER: u32 = 0xc000_0080;
const EFER_SYSCALL: u64 = 1;
const CR0_MONITOR: u64 = 1 << 1;
const CR0_EMULATION: u64 = 1 << 2;
const CR0_TASK_SWITCHED: u64 = 1 << 3;
const CR0_NUMERIC_ERROR: u64 = 1 << 5;
const CR0_WRITE_PROTECT: u64 = 1 << 16;
const CR0_ALIGNMENT_MASK: u64 = 1 << 18;
const CR4_DEBUG_EXTENSIONS: u64 = 1 << 3;
const CR4_MACHINE_CHECK: u64 = 1 << 6;
const CR4_GLOBAL_PAGES: u64 = 1 << 7;
const CR4_FXSR: u64 = 1 << 9;
const CR4_SIMD_EXCEPTIONS: u64 = 1 << 10;
const CR4_UMIP: u64 = 1 << 11;
const CR4_PCIDS: u64 = 1 << 17;
const CR4_XSAVE: u64 = 1 << 18;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// Forgets the translations of all pages, global ones too, and all entries that lead to tables.
pub fn forget_translations() {
    let cr4 = read_cr4();
    // SAFETY: global pages are switched on as they were, and forgetting has no effect but time. (Changing the bit forgets everything: Intel SDM volume 3, section
    // 4.10.4.1.)
    unsafe {
        write_cr4(cr4 & !CR4_GLOBAL_PAGES);
        write_cr4(cr4);
    }
}

/// Switches on, on this core, what protects the kernel and what user code may expect.
///
/// FSGSBASE stays off: the kernel always knows what is in the segment bases.
pub fn enable() {
    let extended = cpuid(7, 0);
    let mut cr4 = read_cr4() | CR4_DEBUG_EXTENSIONS | CR4_GLOBAL_PAGES | CR4_FXSR | CR4_SIMD_EXCEPTIONS;
    let smap = extended.ebx & 1 << 20 != 0;
    let pcids = has_good_pcids();
    for (present, bit) in [
        (extended.ecx & 1 << 2 != 0, CR4_UMIP),
        (extended.ebx & 1 << 7 != 0, CR4_SMEP),
        (smap, CR4_SMAP),
        (pcids, CR4_PCIDS),
        // Without it a machine check stops the processor without a word.
        (cpuid(1, 0).edx & 1 << 7 != 0, CR4_MACHINE_CHECK),
        (has_xsave(), CR4_XSAVE),
    ] {
        if present {
            cr4 |= bit;
        }
    }
    let cr0 = (read_cr0() & !(CR0_EMULATION | CR0_TASK_SWITCHED))
        | CR0_MONITOR
        | CR0_NUMERIC_ERROR
        | CR0_WRITE_PROTECT
        | CR0_ALIGNMENT_MASK;
    // SAFETY: what is switched on is present: by CPUID or on every x86-64 processor. The page table in use has identifier 0, as process-context identifiers
    // ask for. Kernel code runs from kernel pages and
    // reaches user memory only through `copy`, which does what SMAP asks for.
    unsafe {
        write_cr4(cr4);
        write_cr0(cr0);
        wrmsr(EFER, rdmsr(EFER) | EFER_SYSCALL);
    }
    SMAP.store(smap, Ordering::Relaxed);
    PCIDS.store(pcids, Ordering::Relaxed);
}
