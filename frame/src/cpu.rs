//! Cores, and data of which each core has its own.

use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicIsize, AtomicPtr, Ordering};

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

/// The number of the core that runs this, for who has no context and only wants what is near: it is out of date where the caller has suspended since.
#[inline(always)]
pub fn current_core() -> usize {
    #[cfg(target_os = "none")]
    return crate::arch::machine::core_block::core_number();
    #[cfg(not(target_os = "none"))]
    0
}

/// A count that all cores change often, each for itself: it lies together only when somebody asks for it.
pub struct Count {
    /// What has been brought together.
    together: AtomicIsize,
    parts: [Part; MAX_CORES],
}

#[repr(align(64))]
struct Part(AtomicIsize);

impl Count {
    /// A core counts so far for itself.
    pub const APART: isize = 32;

    /// Nothing, so far.
    pub const fn new() -> Self {
        Count { together: AtomicIsize::new(0), parts: [const { Part(AtomicIsize::new(0)) }; MAX_CORES] }
    }

    /// Counts `difference` more.
    #[inline(always)]
    pub fn add(&self, difference: isize) {
        if count() == 1 {
            self.together.fetch_add(difference, Ordering::Relaxed);
        } else {
            self.add_apart(difference);
        }
    }

    #[cold]
    fn add_apart(&self, difference: isize) {
        let part = &self.parts[current_core()].0;
        // No interrupt comes in between, and the part is this core's.
        let counted = part.load(Ordering::Relaxed) + difference;
        part.store(counted, Ordering::Relaxed);
        if counted.unsigned_abs() > Self::APART.unsigned_abs() {
            self.together.fetch_add(counted, Ordering::Relaxed);
            part.store(0, Ordering::Relaxed);
        }
    }

    /// How many there are, give or take [`APART`](Self::APART) for each core.
    #[inline(always)]
    pub fn about(&self) -> isize {
        self.together.load(Ordering::Relaxed)
    }

    /// How many there are; while others count, how many there were at about this time.
    pub fn sum(&self) -> isize {
        self.parts[..count()].iter().map(|part| part.0.load(Ordering::Relaxed)).sum::<isize>() + self.about()
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::new()
    }
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
    #[cfg(not(target_os = "none"))]
    pretended::count()
}

/// How often a core was asked by others to forget what it remembered of page tables, and did it.
pub fn shootdowns(core: usize) -> u64 {
    #[cfg(target_os = "none")]
    return crate::arch::machine::cores::answered(core);
    // There is no other.
    #[cfg(not(target_os = "none"))]
    {
        let _ = core;
        0
    }
}

/// Interrupts another core: user code there comes back into the kernel, an idle core looks whether there is something to run, and the handler of
/// [`on_interrupt`] is called. A core that runs kernel code does so when it next lets interrupts in. False, and nothing, if it is the calling core.
#[inline]
pub fn interrupt(core: usize) -> bool {
    #[cfg(target_os = "none")]
    return crate::arch::machine::cores::interrupt(core);
    #[cfg(not(target_os = "none"))]
    pretended::interrupt(core)
}

#[cfg(not(target_os = "none"))]
pub use crate::hosted::pretended;

/// A function that is named at boot and then called by all cores, which only read it.
struct Named<F>(AtomicPtr<()>, PhantomData<F>);

impl<F: Copy> Named<F> {
    const fn none() -> Self {
        assert!(size_of::<F>() == size_of::<*mut ()>(), "F is a pointer to a function");
        Named(AtomicPtr::new(null_mut()), PhantomData)
    }

    fn set(&self, function: F) {
        // SAFETY: both have one size (`none`), and a pointer to a function may be kept as one to data.
        self.0.store(unsafe { core::mem::transmute_copy(&function) }, Ordering::Release);
    }

    #[cfg(target_os = "none")]
    #[inline(always)]
    fn get(&self) -> Option<F> {
        let pointer = self.0.load(Ordering::Acquire);
        // SAFETY: what is not null was a function of this type.
        (!pointer.is_null()).then(|| unsafe { core::mem::transmute_copy(&pointer) })
    }
}

static INTERRUPT_HANDLER: Named<crate::irq::Handler> = Named::none();

/// What is called on a core that another one has [interrupted](interrupt).
pub fn on_interrupt(handler: crate::irq::Handler) {
    INTERRUPT_HANDLER.set(handler);
}

/// Another core has interrupted this one.
#[cfg(target_os = "none")]
pub(crate) fn was_interrupted(cx: &crate::irq::IrqCx) {
    if let Some(handler) = INTERRUPT_HANDLER.get() {
        handler(cx);
    }
}

static DEAD_HANDLER: Named<fn(usize)> = Named::none();

/// What is called where objects have died on a core and other cores may borrow them just now, with the core's number, on it. It is to see to it that the core comes
/// to a suspension soon, if need be by an interrupt: they are freed then.
pub fn on_dead_left(handler: fn(usize)) {
    DEAD_HANDLER.set(handler);
}

#[cfg(target_os = "none")]
pub(crate) fn dead_are_left(core: usize) {
    if let Some(handler) = DEAD_HANDLER.get() {
        handler(core);
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
