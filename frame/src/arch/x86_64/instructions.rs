//! Single instructions that Rust has no name for.

use core::arch::asm;

/// Reads a model-specific register.
///
/// # Safety
/// The processor has the register.
#[inline(always)]
pub unsafe fn rdmsr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: by this function's contract; reading has no effect on memory.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nostack, nomem, preserves_flags))
    };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The processor has the register, takes the value, and what the value means is sound.
#[inline(always)]
pub unsafe fn wrmsr(register: u32, value: u64) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
            options(nostack, preserves_flags));
    }
}

/// The time stamp counter, not before what stands before it in the program: a processor reads it ahead of earlier loads otherwise (Intel SDM volume 2, RDTSC).
#[inline(always)]
pub fn ordered_rdtsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as for `rdtsc`. As it may touch memory, for all that the compiler knows, no load moves across it.
    unsafe { asm!("lfence", "rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}

/// The time stamp counter.
#[inline(always)]
pub fn rdtsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: every x86-64 processor has it, and `start` leaves it allowed; it has no effect on memory.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nostack, nomem, preserves_flags)) };
    high << 32 | low
}

/// Writes a cache line back to memory, before any later write.
#[inline(always)]
pub fn write_back(byte: *const u8) {
    // SAFETY: it changes no memory as the program sees it; an address that is not mapped would be a fault, as a read there would.
    unsafe { asm!("clflush [{}]", "mfence", in(reg) byte, options(nostack, preserves_flags)) };
}

/// The address of the last page fault.
#[inline(always)]
pub fn read_cr2() -> usize {
    let address;
    // SAFETY: the kernel is privileged; reading has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nostack, nomem, preserves_flags)) };
    address
}

/// The physical address of the active top-level page table.
#[inline(always)]
pub fn read_cr3() -> usize {
    let root: usize;
    // SAFETY: the kernel is privileged; reading has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) root, options(nostack, nomem, preserves_flags)) };
    root
}

/// Activates a top-level page table, and forgets the translations of all pages that are not global. Where process-context identifiers are switched on, the
/// lowest 12 bits are the one that is current from now on: translations of others are not forgotten, and with the highest bit none are.
///
/// # Safety
/// `root` is the physical address of a table whose kernel half is the kernel's, and it stays one while it is active. An identifier, and translations that are
/// kept, are of this table.
#[inline(always)]
pub unsafe fn write_cr3(root: usize) {
    // SAFETY: by this function's contract.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) };
}

/// Forgets the translation of the page of `address`.
#[inline(always)]
pub fn invlpg(address: usize) {
    // SAFETY: forgetting a translation has no effect but time.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
}

macro_rules! control_register {
    ($read:ident, $write:ident, $name:literal) => {
        /// Reads the control register.
        #[inline(always)]
        pub fn $read() -> u64 {
            let value;
            // SAFETY: the kernel is privileged; reading has no effect.
            unsafe { asm!(concat!("mov {}, ", $name), out(reg) value, options(nostack, nomem, preserves_flags)) };
            value
        }

        /// Writes the control register.
        ///
        /// # Safety
        /// The processor has every feature that is switched on, and the kernel is ready for it.
        #[inline(always)]
        pub unsafe fn $write(value: u64) {
            // SAFETY: by this function's contract.
            unsafe { asm!(concat!("mov ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) };
        }
    };
}
control_register!(read_cr0, write_cr0, "cr0");
control_register!(read_cr4, write_cr4, "cr4");

/// Reads and clears the debug status register.
pub fn take_dr6() -> usize {
    let status;
    // SAFETY: the kernel is privileged; 0xffff_0ff0 is the register's value when nothing is pending.
    unsafe {
        asm!("mov {0}, dr6", "mov dr6, {1}", out(reg) status, in(reg) 0xffff_0ff0_usize,
            options(nostack, nomem, preserves_flags));
    }
    status
}

/// Lets in the interrupts that are pending, and no more.
#[inline(always)]
pub fn open_interrupt_window() {
    // SAFETY: called where handlers may run (`irq::poll`). `sti` takes effect behind the instruction that follows it, hence `nop`.
    unsafe { asm!("sti", "nop", "cli", options(nostack)) };
}

/// Waits for an interrupt and lets it in. Interrupts are off before and after.
#[inline(always)]
pub fn wait_for_interrupt() {
    // SAFETY: called by the idle loop, where handlers may run. An interrupt between `sti` and `hlt` is not lost: `sti` takes effect
    // behind the `hlt`.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Stops this core for ever.
pub fn halt_for_ever() -> ! {
    loop {
        // SAFETY: with interrupts off nothing but a non-maskable interrupt goes on from here.
        unsafe { asm!("cli", "hlt", options(nostack, nomem)) };
    }
}

/// Sets an extended control register.
///
/// # Safety
/// The processor supports all of the features in `value`, and CR4.OSXSAVE is set.
pub unsafe fn xsetbv(register: u32, value: u64) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!("xsetbv", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
            options(nostack, nomem, preserves_flags));
    }
}
