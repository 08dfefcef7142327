//! How the machine stops, and what it says when it has to.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use super::core_block::{self, Mode};
use super::instructions::halt_for_ever;
use super::{port, symbols, traps, tsc, uart};
use crate::power::PowerOff;

/// QEMU's `isa-debug-exit` device, where the emulator was started with it.
const DEBUG_EXIT: u16 = 0xf4;
/// The power management control register of QEMU's q35 and pc machines, and its value for "soft off" (S5).
const QEMU_PM1A_CONTROL: u16 = 0x604;
const SOFT_OFF: u16 = 0x2000;
/// The keyboard controller, and its command that pulls the reset line.
const KEYBOARD_COMMAND: u16 = 0x64;
const PULSE_RESET: u8 = 0xfe;

/// Whether all cores are to stay where they are, at their next non-maskable interrupt.
pub static STOPPED: AtomicBool = AtomicBool::new(false);

/// After how many seconds the machine restarts that a panic has stopped; 0: it does not, below 0: at once.
static RESTART_AFTER: AtomicI64 = AtomicI64::new(0);

/// Reads the command line's `panic=SECONDS`, which says what Linux's does.
pub fn read_command_line(line: &str) {
    let seconds = line.split_whitespace().filter_map(|word| word.strip_prefix("panic=")?.parse().ok()).next_back();
    RESTART_AFTER.store(seconds.unwrap_or(0), Ordering::Relaxed);
}

/// Stops the machine. Where no emulator ends by that after a panic, it restarts if the command line says so.
pub fn off(why: PowerOff) -> ! {
    let code = match why {
        PowerOff::Orderly => 0x10,
        PowerOff::Panic => 0x31,
    };
    // SAFETY: neither device touches memory.
    unsafe {
        port::write_u8(DEBUG_EXIT, code);
        if why == PowerOff::Orderly {
            port::write_u16(QEMU_PM1A_CONTROL, SOFT_OFF);
        }
    }
    let seconds = RESTART_AFTER.load(Ordering::Relaxed);
    if why == PowerOff::Panic && seconds != 0 {
        let end = tsc::nanoseconds().saturating_add((seconds.max(0) as u64).saturating_mul(1_000_000_000));
        while tsc::nanoseconds() < end {
            core::hint::spin_loop();
        }
        restart()
    }
    halt_for_ever()
}

/// Restarts the machine: by the keyboard controller, else by a triple fault.
pub fn restart() -> ! {
    // SAFETY: the device does not touch memory. Without an interrupt table any exception is fatal, which resets the machine.
    unsafe {
        port::write_u8(KEYBOARD_COMMAND, PULSE_RESET);
        let nowhere = [0u16; 5];
        core::arch::asm!("lidt [{}]", "ud2", in(reg) &nowhere, options(noreturn));
    }
}

/// This core has waited for another one for so long that it would do so for ever: for a lock, or for answers.
pub fn stuck(lock: usize) {
    match lock {
        0 => panic!(
            "core {} waits for other cores for {} s",
            core_block::core_number(),
            refs::Wait::TOO_LONG / 1_000_000_000
        ),
        _ => panic!(
            "core {} waits for the lock at {lock:#x} for {} s; holder: {:?}",
            core_block::core_number(),
            refs::Wait::TOO_LONG / 1_000_000_000,
            holder(lock)
        ),
    }
}

/// Who holds a lock.
#[cfg(feature = "check-locks")]
fn holder(lock: usize) -> Option<refs::lock_order::Holder> {
    refs::lock_order::holder(lock)
}

/// Nobody knows who holds a lock.
#[cfg(not(feature = "check-locks"))]
fn holder(_lock: usize) -> Option<core::convert::Infallible> {
    None
}

/// Reports what nobody can survive, and stops.
pub fn die(message: core::fmt::Arguments<'_>, trap: Option<&traps::KernelTrap>, ip: usize, rsp: usize) -> ! {
    /// The number of the core that was first, plus 1.
    static DYING: AtomicUsize = AtomicUsize::new(0);
    let me = core_block::core_number() + 1;
    let first = DYING.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire);
    if first.is_err_and(|first| first != me) {
        // It says what it has to say, and stops the machine.
        halt_for_ever();
    }
    if first.is_ok() {
        STOPPED.store(true, Ordering::Release);
        super::apic::interrupt_all_others();
        uart::seize_console();
        crate::println!("ebb: panic: {message}");
        if let Some(trap) = trap {
            crate::println!("{trap}");
        }
        symbols::print_backtrace(ip, rsp);
        for core in (0..core_block::count()).filter(|core| core + 1 != me) {
            print_other(core);
        }
    }
    off(PowerOff::Panic)
}

/// How long a core that was stopped may take until it stays, in nanoseconds: others may use its processor meanwhile.
const PATIENCE: u64 = 200_000_000;

/// Prints where another core was stopped.
fn print_other(core: usize) {
    let Some(block) = core_block::block_of(core) else { return };
    let end = tsc::nanoseconds() + PATIENCE;
    let at = loop {
        match block.stopped_at() {
            Some(at) => break at,
            None if tsc::nanoseconds() > end => {
                crate::println!("core {core} does not answer");
                return;
            }
            None => core::hint::spin_loop(),
        }
    };
    match at.mode {
        Mode::User => crate::println!("core {core} in user mode at {:#x}", at.ip),
        Mode::Kernel => {
            crate::println!("core {core} in the kernel:");
            symbols::print_backtrace(at.ip, at.rsp);
        }
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let rsp;
    // SAFETY: reading the stack pointer has no effect.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) rsp, options(nomem, nostack, preserves_flags)) };
    match info.location() {
        Some(place) => die(format_args!("{} at {}:{}", info.message(), place.file(), place.line()), None, 0, rsp),
        None => die(format_args!("{}", info.message()), None, 0, rsp),
    }
}
