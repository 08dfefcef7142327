//! What stands in for the machine where `frame` is compiled for a host: enough for the kernel's own unit tests, which need a clock and a
//! console but neither interrupts nor user code.

/// As on the machine.
pub const KERNEL_STACK_BYTES: usize = 32 << 10;

/// Kernel stacks, of which there are none.
pub(crate) mod stacks {
    pub(crate) fn spare_frames() -> usize {
        0
    }

    pub(crate) fn give_spare_back() -> bool {
        false
    }
}

/// Gives a test a context: that of a task which never suspends, on a thread that has no other.
///
/// # Panics
/// If it is called within itself.
pub fn with_context<R>(f: impl FnOnce(&mut refs::Cx) -> R) -> R {
    use std::cell::Cell;

    std::thread_local! {
        static IS_ONE: Cell<bool> = const { Cell::new(false) };
    }
    assert!(!IS_ONE.replace(true), "there is one context on each stack");
    // SAFETY: the only one on this thread's stack, as was just asked. It has no worker: to suspend with it ends the test.
    let mut cx = unsafe { refs::Cx::new(std::ptr::null()) };
    let result = f(&mut cx);
    IS_ONE.set(false);
    result
}

/// The cores that there are: one, if a test does not pretend that there are more.
#[cfg(not(ebb_shuttle))]
pub mod pretended {
    use std::cell::Cell;

    use crate::core_set::CoreSet;

    std::thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(1) };
        static INTERRUPTED: Cell<CoreSet> = const { Cell::new(CoreSet::EMPTY) };
    }

    /// For this thread there are so many cores from now on.
    pub fn set_count(count: usize) {
        COUNT.set(count);
    }

    /// Which cores this thread has interrupted since it was last asked.
    pub fn take_interrupted() -> CoreSet {
        INTERRUPTED.take()
    }

    pub(crate) fn count() -> usize {
        COUNT.get()
    }

    pub(crate) fn interrupt(core: usize) -> bool {
        if COUNT.get() > 1 {
            let mut interrupted = INTERRUPTED.get();
            interrupted.insert(core);
            INTERRUPTED.set(interrupted);
        }
        COUNT.get() > 1
    }
}

/// The cores of a machine in one of many interleavings.
#[cfg(ebb_shuttle)]
pub mod pretended {
    pub(crate) use tasks::interleavings::{cores as count, interrupt};
}

/// Interrupts, of which there are none.
pub mod irq {
    use core::marker::PhantomData;

    use refs::{Cx, NoSuspend};

    /// An interrupt handler's context.
    pub struct IrqCx {
        _private: PhantomData<*mut ()>,
    }

    // SAFETY: nobody can make one.
    unsafe impl NoSuspend for IrqCx {}

    /// What handles an interrupt.
    pub type Handler = fn(&IrqCx);

    /// Nothing is ever pending.
    #[cfg_attr(false, ebb_lint::never_suspends)]
    pub fn poll(_cx: &mut Cx) {}
}

/// The host's clock, without a timer.
pub mod time {
    use std::time::SystemTime;

    use super::irq::Handler;

    /// Nanoseconds since this was first asked, or where the clock was set to stand.
    #[cfg(not(ebb_shuttle))]
    pub fn now() -> u64 {
        use std::sync::OnceLock;
        use std::time::Instant;

        static START: OnceLock<Instant> = OnceLock::new();
        STANDS_AT.get().unwrap_or_else(|| START.get_or_init(Instant::now).elapsed().as_nanos() as u64)
    }

    std::thread_local! {
        static STANDS_AT: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
    }

    /// For this thread the clock stands at `now` from now on.
    pub fn stand_at(now: u64) {
        STANDS_AT.set(Some(now));
    }

    /// A clock that stands still while nobody looks, and goes on by half a millisecond when somebody does: what a test does with it is the same
    /// each time.
    #[cfg(ebb_shuttle)]
    pub fn now() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};

        shuttle::lazy_static! {
            static ref NOW: AtomicU64 = AtomicU64::new(0);
        }
        STANDS_AT.get().unwrap_or_else(|| NOW.fetch_add(500_000, Ordering::Relaxed))
    }

    /// As if the time stamp counter counted nanoseconds.
    pub fn tsc_scale() -> (u64, u64) {
        (0, 1 << 32)
    }

    /// As if the time stamp counter counted nanoseconds.
    pub fn tsc_hertz() -> u64 {
        1_000_000_000
    }

    /// The host's wall clock.
    pub fn boot_wall_seconds() -> u64 {
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
    }

    /// No alarm ever goes off.
    pub fn set_alarm(_deadline: Option<u64>) {}

    /// No alarm ever goes off.
    pub fn on_alarm(_handler: Handler) {}
}

pub mod pci;

/// The console is the standard error; other ports are not there.
pub mod serial {
    use super::irq::IrqCx;

    /// A serial port.
    pub struct Port {
        _private: (),
    }

    /// There is none.
    pub fn port(_number: usize) -> Option<&'static Port> {
        None
    }

    impl Port {
        /// Goes nowhere.
        pub fn write(&self, _bytes: &[u8]) {}

        /// Goes nowhere.
        pub fn try_write(&self, bytes: &[u8]) -> usize {
            bytes.len()
        }

        /// Everything goes at once.
        pub fn on_ready(&self, _handler: fn(&IrqCx)) {}

        /// Nothing ever arrives.
        pub fn on_input(&self, _handler: fn(&IrqCx, &[u8])) {}
    }

    /// Writes to the standard error.
    pub fn print(text: core::fmt::Arguments<'_>) {
        std::eprint!("{text}");
    }

    /// `println!` to the console.
    #[macro_export]
    macro_rules! println {
        ($($part:tt)*) => { $crate::serial::print(format_args!("{}\n", format_args!($($part)*))) };
    }
}

/// The end of the program.
pub mod power {
    /// Why the machine stops.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PowerOff {
        /// As asked for.
        Orderly,
        /// After a kernel panic.
        Panic,
    }

    /// Ends the program.
    pub fn off(why: PowerOff) -> ! {
        std::process::exit(if why == PowerOff::Orderly { 33 } else { 99 })
    }

    /// Ends the program.
    pub fn restart() -> ! {
        off(PowerOff::Orderly)
    }
}

/// User code, which cannot be run here.
pub mod user {
    use refs::Cx;

    pub use crate::trap::{BadFpuState, BadSegmentBase, CycleCounter, Registers, Trap};

    const FPU_BYTES: usize = 576;

    /// The registers of a user thread.
    pub struct UserContext {
        /// The general registers.
        pub registers: Registers,
        bases: (usize, usize),
        cycle_counter: CycleCounter,
        fpu: [u8; FPU_BYTES],
    }

    impl Default for UserContext {
        fn default() -> Self {
            Self::new()
        }
    }

    impl UserContext {
        /// All zero.
        pub fn new() -> Self {
            UserContext {
                registers: Registers::default(),
                bases: (0, 0),
                cycle_counter: CycleCounter::Readable,
                fpu: [0; FPU_BYTES],
            }
        }

        /// A copy.
        pub fn duplicate(&mut self, _cx: &Cx) -> Self {
            UserContext {
                registers: self.registers,
                bases: self.bases,
                cycle_counter: self.cycle_counter,
                fpu: self.fpu,
            }
        }

        /// Nothing: there is no processor that could have it.
        pub fn take_out(&mut self, _cx: &Cx) {}

        /// The bases of the segments `fs` and `gs`.
        pub fn segment_bases(&self) -> (usize, usize) {
            self.bases
        }

        /// Sets the bases of the segments `fs` and `gs`.
        ///
        /// # Errors
        /// None here.
        pub fn set_segment_bases(&mut self, fs: usize, gs: usize, _cx: &Cx) -> Result<(), BadSegmentBase> {
            self.bases = (fs, gs);
            Ok(())
        }

        /// Whether user code may read the processor's time-stamp counter.
        pub fn cycle_counter(&self) -> CycleCounter {
            self.cycle_counter
        }

        /// Says whether user code may read the processor's time-stamp counter.
        pub fn set_cycle_counter(&mut self, cycle_counter: CycleCounter, _cx: &Cx) {
            self.cycle_counter = cycle_counter;
        }

        /// All zero again.
        pub fn reset_fpu(&mut self, _cx: &Cx) {
            self.fpu = [0; FPU_BYTES];
        }

        /// The floating-point state, without what belongs to software.
        pub fn fpu_state<'a>(&'a mut self, _software: &[u8; 48], _cx: &'a Cx) -> &'a [u8] {
            &self.fpu
        }

        /// Has `fill` replace the floating-point state; it says how many bytes it wrote.
        ///
        /// # Errors
        /// `fill`'s own; the state has the wrong length.
        pub fn set_fpu_state<E>(
            &mut self,
            _cx: &Cx,
            fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
        ) -> Result<Result<(), BadFpuState>, E> {
            let len = fill(&mut self.fpu)?;
            Ok(if len == FPU_BYTES { Ok(()) } else { Err(BadFpuState) })
        }

        /// Sets the result of a system call.
        pub fn set_call_result(&mut self, result: usize) {
            self.registers.rax = result;
        }

        /// Asks for another turn: there is no user code.
        #[cfg_attr(false, ebb_lint::leaf)]
        pub fn run_async(&mut self, _cx: &mut Cx, _activate: impl Fn(&Cx) -> bool) -> Trap {
            Trap::Preempted
        }
    }

    /// The size in bytes of the floating-point state, and the mask of its components.
    pub fn fpu_size() -> (usize, u64) {
        (FPU_BYTES, 3)
    }
}
