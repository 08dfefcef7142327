//! The interrupt controller of the machine, for the lines of the old ISA devices.

use core::sync::atomic::{AtomicUsize, Ordering};

use refs::RawSpin;

use super::kernel_map;
use super::traps::FIRST_INTERRUPT;

/// Where every PC's first controller is.
const PLACE: usize = 0xfec0_0000;
const LINES: u8 = 16;

static REGISTERS: AtomicUsize = AtomicUsize::new(0);
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

/// Lets the interrupts of an ISA line (edge-triggered, active high) through, to the boot core.
pub fn enable(line: u8) {
    write(0x11 + 2 * u32::from(line), 0);
    write(0x10 + 2 * u32::from(line), vector(line) as u32);
}
