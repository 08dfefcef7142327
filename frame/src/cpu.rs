//! Cores, and data of which each core has its own.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicIsize, AtomicPtr, Ordering};

use refs::NoSuspend;
use tasks::StaticRef;

use crate::core_set;

/// There are never more cores than this; one whose number would be beyond is left out.
pub const MAX_CORES: usize = core_set::LIMIT;

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

/// A count that all cores change often, each for itself: it lies together only when somebody asks for it. A core counts up to `APART` so far for itself.
pub struct Count<const APART: isize> {
    /// What has been brought together.
    together: AtomicIsize,
    parts: PerCore<Part>,
}

#[repr(align(64))]
struct Part(AtomicIsize);

impl<const APART: isize> Count<APART> {
    /// Nothing, so far.
    pub const fn new() -> Self {
        Count { together: AtomicIsize::new(0), parts: PerCore::new(Part(AtomicIsize::new(0))) }
    }

    /// Lets each core count for itself that there is.
    pub fn make_parts(&'static self) {
        self.parts.make(count(), || Part(AtomicIsize::new(0)));
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
        let Some(Part(part)) = self.parts.of(current_core()) else {
            self.together.fetch_add(difference, Ordering::Relaxed);
            return;
        };
        // No interrupt comes in between, and the part is this core's.
        let counted = part.load(Ordering::Relaxed) + difference;
        part.store(counted, Ordering::Relaxed);
        if counted.unsigned_abs() > APART.unsigned_abs() {
            self.together.fetch_add(counted, Ordering::Relaxed);
            part.store(0, Ordering::Relaxed);
        }
    }

    /// How many there are, give or take `APART` for each core.
    #[inline(always)]
    pub fn about(&self) -> isize {
        self.together.load(Ordering::Relaxed)
    }

    /// How many there are; while others count, how many there were at about this time.
    pub fn sum(&self) -> isize {
        self.parts.all().map(|part| part.0.load(Ordering::Relaxed)).sum::<isize>() + self.about()
    }
}

impl<const APART: isize> Default for Count<APART> {
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
pub(crate) struct Named<F>(AtomicPtr<()>, PhantomData<F>);

impl<F: Copy> Named<F> {
    pub(crate) const fn none() -> Self {
        assert!(size_of::<F>() == size_of::<*mut ()>(), "F is a pointer to a function");
        Named(AtomicPtr::new(null_mut()), PhantomData)
    }

    pub(crate) fn set(&self, function: F) {
        // SAFETY: both have one size (`none`), and a pointer to a function may be kept as one to data.
        self.0.store(unsafe { core::mem::transmute_copy(&function) }, Ordering::Release);
    }

    /// From now on there is none.
    #[cfg(target_os = "none")]
    pub(crate) fn clear(&self) {
        self.0.store(null_mut(), Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<F> {
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
    crate::mm::was_interrupted();
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

/// One `T` for each core that there is: the boot core's, and those of others once they were [made](Self::make). What is per core takes no memory for cores that there are not.
pub struct PerCore<T: Sync + 'static> {
    first: T,
    /// By the cores' numbers.
    others: [StaticRef<T>; MAX_CORES],
}

impl<T: Sync> PerCore<T> {
    /// With the boot core's.
    pub const fn new(first: T) -> Self {
        PerCore { first, others: [const { StaticRef::none() }; MAX_CORES] }
    }

    /// Makes those of the cores with numbers below `count` that are missing. They live for ever. To be called before these cores run tasks.
    pub fn make(&self, count: usize, new: impl Fn() -> T) {
        for other in self.others.iter().take(count).skip(1) {
            if other.get().is_none() {
                other.set(Some(Box::leak(Box::new(new()))));
            }
        }
    }

    /// A core's, if it was made.
    #[inline(always)]
    pub fn of(&self, core: usize) -> Option<&T> {
        if core == 0 { Some(&self.first) } else { self.others.get(core)?.get() }
    }

    /// Those of all cores that there are, in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        (0..count()).map_while(|core| self.of(core))
    }
}

impl<T: Sync> core::ops::Index<usize> for PerCore<T> {
    type Output = T;

    /// # Panics
    /// If there is no such core.
    #[inline(always)]
    fn index(&self, core: usize) -> &T {
        match self.of(core) {
            Some(of_core) => of_core,
            None => no_such_core(core),
        }
    }
}

#[cold]
#[inline(never)]
fn no_such_core(core: usize) -> ! {
    panic!("core {core} has nothing of its own")
}
