//! The interrupt controller of the machine, for the lines of the old ISA devices.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use refs::RawSpin;

use super::kernel_map;
use super::traps::FIRST_INTERRUPT;

/// Where every PC's first controller is.
const PLACE: usize = 0xfec0_0000;
/// So many lines are used.
pub const LINES: u8 = 16;

static REGISTERS: AtomicUsize = AtomicUsize::new(0);
/// Whether a line names an entry of an IOMMU's table, and not a core.
static USES_TABLE: AtomicBool = AtomicBool::new(false);
/// The registers are a window of two: one at a time may use it.
static WINDOW: RawSpin = RawSpin::new();

/// The vector of an interrupt line.
pub const fn vector(line: u8) -> usize {
    FIRST_INTERRUPT + line as usize
}

/// The interrupt line of a vector.
pub fn line(vector: usize) -> Option<u8> {
    u8::try_from(vector - FIRST_INTERRUPT).ok().filter(|line| *line < LINES)
}

/// Sets a register.
fn write(register: u32, value: u32) {
    let base = REGISTERS.load(Ordering::Relaxed) as *mut u32;
    if base.is_null() {
        return;
    }
    WINDOW.lock();
    // SAFETY: `init` mapped the registers.
    unsafe {
        base.write_volatile(register);
        base.add(4).write_volatile(value);
    }
    WINDOW.unlock();
}

/// Makes the controller reachable. All lines are masked.
pub fn init() {
    // SAFETY: a PC has the registers there; they are mapped once, here.
    let registers = unsafe { kernel_map::map_device(PLACE) };
    REGISTERS.store(registers.expect("at boot there is memory for a page table").addr(), Ordering::Relaxed);
    for line in 0..LINES {
        write(0x10 + 2 * u32::from(line), 1 << 16);
    }
}

/// The upper half of a line's register: the boot core, or the entry of the line's vector (Intel VT-d specification 4.1, 5.1.5.1). The lower half is the same for both.
fn receiver(line: u8) -> u32 {
    const INDEX_SHIFT: u32 = 17;
    const NAMES_ENTRY: u32 = 1 << 16;
    if USES_TABLE.load(Ordering::Relaxed) { (vector(line) as u32) << INDEX_SHIFT | NAMES_ENTRY } else { 0 }
}

/// From now on each line names the entry of its vector in an IOMMU's table. Until the IOMMU looks there it goes to the boot core as before.
pub fn use_table() {
    USES_TABLE.store(true, Ordering::Relaxed);
    for line in 0..LINES {
        write(0x11 + 2 * u32::from(line), receiver(line));
    }
}

/// Lets the interrupts of an ISA line (edge-triggered, active high) through, to the boot core.
pub fn enable(line: u8) {
    write(0x11 + 2 * u32::from(line), receiver(line));
    write(0x10 + 2 * u32::from(line), vector(line) as u32);
}
