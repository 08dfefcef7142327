//! The local interrupt controller: this core's timer, and "end of interrupt".

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::core_block::core_block;
use super::instructions::{rdmsr, wrmsr};
use super::{features, kernel_map, port, tsc};
use crate::irq::IrqCx;

const BASE: u32 = 0x1b;
const BASE_ENABLED: u64 = 1 << 11;
const BASE_X2APIC: u64 = 1 << 10;
const X2APIC_FIRST: u32 = 0x800;
const TSC_DEADLINE: u32 = 0x6e0;

/// Registers, by their number in x2APIC (xAPIC: times 16).
const TASK_PRIORITY: u32 = 0x08;
const END_OF_INTERRUPT: u32 = 0x0b;
const SPURIOUS: u32 = 0x0f;
const ID: u32 = 0x02;
/// What is sent to other cores; in x2APIC one register with the receiver in its upper half.
const COMMAND: u32 = 0x30;
const COMMAND_RECEIVER: u32 = 0x31;
const TIMER: u32 = 0x32;
const LINT0: u32 = 0x35;
const LINT1: u32 = 0x36;
const INITIAL_COUNT: u32 = 0x38;
const CURRENT_COUNT: u32 = 0x39;
const DIVIDER: u32 = 0x3e;

const MASKED: u32 = 1 << 16;
const MODE_DEADLINE: u32 = 2 << 17;
const DIVIDE_BY_16: u32 = 3;

/// The vector of the timer.
pub const TIMER_VECTOR: usize = 0xf0;
/// Another core wants this one to look what it has to run.
pub const RESCHEDULE_VECTOR: usize = 0xf1;
/// Another core asks for something: see [`super::cores::answer`].
pub const REQUEST_VECTOR: usize = 0xf2;

const ASSERT: u32 = 1 << 14;
const PENDING: u32 = 1 << 12;
const NON_MASKABLE: u32 = 4 << 8;
const INIT: u32 = 5 << 8;
const START: u32 = 6 << 8;
const ALL_OTHERS: u32 = 3 << 18;
const SPURIOUS_VECTOR: u32 = 0xff;

/// The registers' address, or 0 with x2APIC.
static REGISTERS: AtomicUsize = AtomicUsize::new(0);
/// Timer ticks per nanosecond, as a fraction of 2^32; 0: the timer takes deadlines.
static TICKS_PER_NANOSECOND: AtomicU64 = AtomicU64::new(0);

fn read(register: u32) -> u32 {
    let base = REGISTERS.load(Ordering::Relaxed);
    // SAFETY: `init` mapped the registers or switched x2APIC on; those named here exist in both.
    unsafe {
        if base == 0 {
            rdmsr(X2APIC_FIRST + register) as u32
        } else {
            ((base + register as usize * 16) as *const u32).read_volatile()
        }
    }
}

fn write(register: u32, value: u32) {
    let base = REGISTERS.load(Ordering::Relaxed);
    // SAFETY: as above.
    unsafe {
        if base == 0 {
            wrmsr(X2APIC_FIRST + register, value.into());
        } else {
            ((base + register as usize * 16) as *mut u32).write_volatile(value);
        }
    }
}

/// Sets the controller of the boot core up, and silences the old one.
pub fn init() {
    // SAFETY: the register exists on every x86-64 processor.
    let base = unsafe { rdmsr(BASE) };
    if features::has_x2apic() {
        // SAFETY: the processor has x2APIC.
        unsafe { wrmsr(BASE, base | BASE_ENABLED | BASE_X2APIC) };
    } else {
        let at = (base & 0x000f_ffff_ffff_f000) as usize;
        // SAFETY: the processor says that the registers are there; they are mapped once, here.
        let registers = unsafe {
            wrmsr(BASE, base | BASE_ENABLED);
            kernel_map::map_device(at)
        };
        REGISTERS.store(registers.expect("at boot there is memory for a page table").addr(), Ordering::Relaxed);
    }
    // SAFETY: the ports of the two 8259 controllers: all their lines are masked.
    unsafe {
        port::write_u8(0x21, 0xff);
        port::write_u8(0xa1, 0xff);
    }
    set_up();
}

/// Sets the controller of another core up, as the boot core's is.
pub fn init_other() {
    // SAFETY: the register exists on every x86-64 processor; x2APIC is there if the boot core has switched it on.
    unsafe {
        let mode = if REGISTERS.load(Ordering::Relaxed) == 0 { BASE_X2APIC } else { 0 };
        wrmsr(BASE, rdmsr(BASE) | BASE_ENABLED | mode);
    }
    set_up();
    start_timer();
}

fn set_up() {
    write(LINT0, MASKED);
    write(LINT1, MASKED);
    write(TASK_PRIORITY, 0);
    write(SPURIOUS, 1 << 8 | SPURIOUS_VECTOR);
    write(DIVIDER, DIVIDE_BY_16);
    write(TIMER, MASKED | TIMER_VECTOR as u32);
}

/// Has the timer count down from its highest value, without an interrupt.
pub fn start_counting() {
    write(INITIAL_COUNT, u32::MAX);
}

/// How far the timer has counted.
pub fn counted() -> u64 {
    u64::from(u32::MAX - read(CURRENT_COUNT))
}

/// The timer's ticks per second are known: from now on it can be used.
pub fn set_frequency(ticks_per_second: u64) {
    if !features::has_tsc_deadline() {
        TICKS_PER_NANOSECOND.store(((ticks_per_second << 32) / 1_000_000_000).max(1), Ordering::Relaxed);
    }
    start_timer();
}

fn start_timer() {
    write(INITIAL_COUNT, 0);
    let mode = if TICKS_PER_NANOSECOND.load(Ordering::Relaxed) == 0 { MODE_DEADLINE } else { 0 };
    write(TIMER, mode | TIMER_VECTOR as u32);
}

/// The number of this core's controller.
pub fn id() -> u32 {
    let id = read(ID);
    if REGISTERS.load(Ordering::Relaxed) == 0 { id } else { id >> 24 }
}

/// Whether controllers have numbers of 32 bits.
pub fn is_wide() -> bool {
    REGISTERS.load(Ordering::Relaxed) == 0
}

/// Sends a command to a controller; to several if the command says so.
fn command(receiver: u32, command: u32) {
    if REGISTERS.load(Ordering::Relaxed) == 0 {
        // SAFETY: x2APIC is on. What was written before is seen by the receiver: writing the register waits for nothing, the fences do.
        unsafe {
            core::arch::asm!("mfence", "lfence", options(nostack, preserves_flags));
            wrmsr(X2APIC_FIRST + COMMAND, u64::from(receiver) << 32 | u64::from(command));
        }
        return;
    }
    while read(COMMAND) & PENDING != 0 {
        core::hint::spin_loop();
    }
    write(COMMAND_RECEIVER, receiver << 24);
    write(COMMAND, command);
}

/// Interrupts another core.
pub fn interrupt(receiver: u32, vector: usize) {
    command(receiver, ASSERT | vector as u32);
}

/// Interrupts all other cores in a way that none can keep from itself.
pub fn interrupt_all_others() {
    if super::core_block::count() > 1 {
        command(0, ALL_OTHERS | ASSERT | NON_MASKABLE);
    }
}

/// Resets another core, which waits then for [`start`].
///
/// # Safety
/// It runs nothing.
pub unsafe fn reset(receiver: u32) {
    command(receiver, ASSERT | INIT);
}

/// Has another core, which was reset, run the code at physical address `page`, in real mode; nothing if it runs already.
///
/// # Safety
/// The page is below a megabyte, and holds such code.
pub unsafe fn start(receiver: u32, page: usize) {
    command(receiver, ASSERT | START | (page >> 12) as u32);
}

/// Has the timer of this core go off at a time, or never.
pub fn set_alarm(deadline: Option<u64>) {
    let deadline = deadline.unwrap_or(u64::MAX);
    if core_block().alarm.swap(deadline, Ordering::Relaxed) != deadline {
        arm(deadline);
    }
}

fn arm(deadline: u64) {
    let ratio = TICKS_PER_NANOSECOND.load(Ordering::Relaxed);
    if ratio == 0 {
        let cycle = if deadline == u64::MAX { 0 } else { tsc::at(deadline).max(1) };
        // SAFETY: the processor has the register: `set_frequency` asked.
        unsafe { wrmsr(TSC_DEADLINE, cycle) };
        return;
    }
    let ticks = if deadline == u64::MAX {
        0
    } else {
        let left = deadline.saturating_sub(tsc::nanoseconds());
        // One tick more, so that the alarm is not early by rounding.
        ((u128::from(left) * u128::from(ratio)) >> 32).min(u128::from(u32::MAX - 1)) as u32 + 1
    };
    write(INITIAL_COUNT, ticks);
}

/// The timer went off: true if the alarm is due. Else (it was too far away for the counter) the timer goes on.
pub fn timer_interrupt(_cx: &IrqCx) -> bool {
    let alarm = &core_block().alarm;
    let deadline = alarm.load(Ordering::Relaxed);
    if deadline > tsc::nanoseconds() {
        if deadline != u64::MAX {
            arm(deadline);
        }
        return false;
    }
    alarm.store(u64::MAX, Ordering::Relaxed);
    true
}

/// Tells the controller that the interrupt is handled.
pub fn end_of_interrupt() {
    write(END_OF_INTERRUPT, 0);
}
