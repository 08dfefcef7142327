//! Cores, and data of which each core has its own.

use refs::NoSuspend;

/// Room for so many cores in each [`PerCpu`].
pub const MAX_CORES: usize = 64;

/// The number of the core that runs this; it stays true until the next suspension.
#[inline(always)]
pub fn current(_cx: &impl NoSuspend) -> usize {
    #[cfg(target_os = "none")]
    return crate::arch::machine::core_block::core_number();
    // On a host one thread plays the only core.
    #[cfg(not(target_os = "none"))]
    0
}

/// Whether `rdpid` gives user code the number of its core. A segment's limit does everywhere (`lsl` of selector 0x7b, as on Linux).
pub fn has_rdpid() -> bool {
    #[cfg(target_os = "none")]
    return crate::arch::machine::features::has_rdpid();
    #[cfg(not(target_os = "none"))]
    false
}

/// How many cores run. Their numbers are those below it.
#[inline(always)]
pub fn count() -> usize {
    #[cfg(target_os = "none")]
    return crate::arch::machine::core_block::count();
    // The tests of the kernel's scheduler have two (`tasks::interleavings`).
    #[cfg(not(target_os = "none"))]
    if cfg!(ebb_shuttle) { 2 } else { 1 }
}

/// Interrupts another core: user code there comes back into the kernel, an idle core looks whether there is something to run, and the handler of
/// [`on_interrupt`] is called. A core that runs kernel code does so when it next lets interrupts in. False, and nothing, if it is the calling core.
#[inline]
pub fn interrupt(core: usize) -> bool {
    #[cfg(target_os = "none")]
    return crate::arch::machine::cores::interrupt(core);
    // There is no other.
    #[cfg(not(target_os = "none"))]
    {
        let _ = core;
        false
    }
}

static INTERRUPT_HANDLER: refs::SpinLock<Option<crate::irq::Handler>> = refs::SpinLock::new(None);

/// What is called on a core that another one has [interrupted](interrupt).
pub fn on_interrupt(handler: crate::irq::Handler) {
    INTERRUPT_HANDLER.with(|current| *current = Some(handler));
}

/// Another core has interrupted this one.
#[cfg(target_os = "none")]
pub(crate) fn was_interrupted(cx: &crate::irq::IrqCx) {
    let handler = *INTERRUPT_HANDLER.lock(cx);
    if let Some(handler) = handler {
        handler(cx);
    }
}

/// One `T` for each core.
pub struct PerCpu<T: Sync + 'static> {
    values: [T; MAX_CORES],
}

impl<T: Sync> PerCpu<T> {
    /// From the values, in the order of the cores' numbers.
    pub const fn new(values: [T; MAX_CORES]) -> Self {
        PerCpu { values }
    }

    /// This core's value, until the next suspension.
    #[inline(always)]
    pub fn get<'a>(&'a self, cx: &'a impl NoSuspend) -> &'a T {
        &self.values[current(cx)]
    }
}
