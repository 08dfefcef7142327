//! How long this kernel keeps interrupts off: for kernels that are built with the feature `stretch`.
//!
//! A stretch is kernel work during which no interrupt is taken: it begins where user code traps, where an interrupt is let in, or where the
//! idle loop finds work, and ends where user code runs, the core idles, or [`irq::poll`](crate::irq::poll) lets interrupts in. A task switch does not end it,
//! so a stretch bounds what another process waits for. The longest is kept for each cause, with the longest part of it between two points that it
//! passed: what takes so long is between them. Of each core is kept the longest, and the longest time between two quiescent states: suspensions, user code and idleness (where interrupts are
//! let in in the middle of a task's work is none). What the kernel does before any user code runs is not counted. Without the feature none of this
//! exists.

use core::panic::Location;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use refs::RawSpin;

use crate::arch::machine::core_block::core_number;
use crate::arch::machine::instructions::rdtsc;
use crate::cpu::MAX_CORES;

/// What a stretch began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system call of this number; those from 511 on count as 511.
    Call(usize),
    /// The exception or interrupt of this vector.
    Trap(usize),
    /// The idle loop found work.
    Idle,
}

const CALLS: usize = 512;
const VECTORS: usize = 256;
const CAUSES: usize = CALLS + VECTORS + 1;

impl Cause {
    fn index(self) -> usize {
        match self {
            Cause::Call(number) => number.min(CALLS - 1),
            Cause::Trap(vector) => CALLS + vector % VECTORS,
            Cause::Idle => CALLS + VECTORS,
        }
    }

    fn of(index: usize) -> Self {
        match index {
            ..CALLS => Cause::Call(index),
            _ if index < CALLS + VECTORS => Cause::Trap(index - CALLS),
            _ => Cause::Idle,
        }
    }
}

/// A stretch that is over.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// What it began with.
    pub cause: Cause,
    /// How long it took, in cycles of the time stamp counter.
    pub cycles: u64,
    /// How often one task left the core and another one went on.
    pub switches: usize,
    /// The longest part between two points that it passed, in cycles.
    pub part: u64,
    /// Where that part began, and where it ended.
    pub part_at: [&'static Location<'static>; 2],
}

/// A place in the source, or none.
struct Place(AtomicPtr<Location<'static>>);

impl Place {
    const fn none() -> Self {
        Place(AtomicPtr::new(null_mut()))
    }

    fn set(&self, location: &'static Location<'static>) {
        self.0.store(core::ptr::from_ref(location).cast_mut(), Ordering::Relaxed);
    }

    fn get(&self) -> Option<&'static Location<'static>> {
        // SAFETY: null, or what `set` was given, which lives for ever and is never written to.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }
    }
}

/// The stretch that a core is in, or the longest of a cause: `cycles` is when it began, or how long it took.
struct Noted {
    cycles: AtomicU64,
    cause: AtomicUsize,
    switches: AtomicUsize,
    part: AtomicU64,
    part_at: [Place; 2],
}

impl Noted {
    const fn none() -> Self {
        Noted {
            cycles: AtomicU64::new(0),
            cause: AtomicUsize::new(0),
            switches: AtomicUsize::new(0),
            part: AtomicU64::new(0),
            part_at: [const { Place::none() }; 2],
        }
    }
}

/// The longest stretch of each cause.
static LONGEST: [Noted; CAUSES] = [const { Noted::none() }; CAUSES];

/// The account of a core, on lines of its own: only the core writes there, but for [`reset`].
#[repr(align(128))]
struct OfCore {
    /// The stretch that it is in.
    now: Noted,
    /// When it has last passed a point, and where.
    passed: AtomicU64,
    passed_at: Place,
    /// The longest stretch, in cycles.
    longest: AtomicU64,
    /// When it was last quiescent; 0: it is.
    quiescent: AtomicU64,
    /// The longest time between two quiescent states.
    between_quiescent: AtomicU64,
}

static CORES: [OfCore; MAX_CORES] = [const {
    OfCore {
        now: Noted::none(),
        passed: AtomicU64::new(0),
        passed_at: Place::none(),
        longest: AtomicU64::new(0),
        quiescent: AtomicU64::new(0),
        between_quiescent: AtomicU64::new(0),
    }
}; MAX_CORES];

/// The calling core's.
fn here() -> &'static OfCore {
    &CORES[core_number()]
}

/// For whoever writes to [`LONGEST`].
static WRITING: RawSpin = RawSpin::new();

/// The longest of a core.
#[derive(Clone, Copy, Debug)]
pub struct CoreStretch {
    /// The longest stretch, in cycles of the time stamp counter.
    pub cycles: u64,
    /// The longest time between two quiescent states, in cycles.
    pub between_quiescent: u64,
}

/// The longest stretch of a core.
pub fn of_core(core: usize) -> CoreStretch {
    let of_core = &CORES[core];
    CoreStretch {
        cycles: of_core.longest.load(Ordering::Relaxed),
        between_quiescent: of_core.between_quiescent.load(Ordering::Relaxed),
    }
}

/// The core is quiescent at this moment.
pub(crate) fn quiescent() {
    let core = here();
    let now = rdtsc();
    let since = core.quiescent.swap(now, Ordering::Relaxed);
    if since != 0 && COUNTS.load(Ordering::Relaxed) {
        core.between_quiescent.fetch_max(now.saturating_sub(since), Ordering::Relaxed);
    }
}

/// The core is quiescent from here on, in user code or because it idles, until a stretch [begins](begin).
pub(crate) fn quiescent_from_here() {
    quiescent();
    here().quiescent.store(0, Ordering::Relaxed);
}

/// Whether user code has run.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// User code runs for the first time, or again: from here on it matters how long others wait.
pub(crate) fn user_code_runs() {
    COUNTS.store(true, Ordering::Relaxed);
}

/// Interrupts are off from here on.
#[track_caller]
pub(crate) fn begin(cause: Cause) {
    let OfCore { now, passed, passed_at, quiescent, .. } = here();
    now.cause.store(cause.index(), Ordering::Relaxed);
    now.switches.store(0, Ordering::Relaxed);
    now.part.store(0, Ordering::Relaxed);
    let cycles = rdtsc();
    if quiescent.load(Ordering::Relaxed) == 0 {
        quiescent.store(cycles, Ordering::Relaxed);
    }
    now.cycles.store(cycles, Ordering::Relaxed);
    passed.store(cycles, Ordering::Relaxed);
    passed_at.set(Location::caller());
}

/// A task leaves the core; what follows is another's work.
#[track_caller]
pub(crate) fn switch() {
    pass();
    quiescent();
    here().now.switches.fetch_add(1, Ordering::Relaxed);
}

/// The caller is a point in the middle of a stretch: what takes long lies before or behind it.
#[track_caller]
pub fn pass() {
    let OfCore { now, passed, passed_at, .. } = here();
    let cycles = rdtsc();
    let part = cycles.saturating_sub(passed.swap(cycles, Ordering::Relaxed));
    if part > now.part.load(Ordering::Relaxed) {
        now.part.store(part, Ordering::Relaxed);
        if let Some(from) = passed_at.get() {
            now.part_at[0].set(from);
        }
        now.part_at[1].set(Location::caller());
    }
    passed_at.set(Location::caller());
}

/// Interrupts are let in. Gives the cause of the stretch that ends.
#[track_caller]
pub(crate) fn end() -> Cause {
    pass();
    let core = here();
    let now = &core.now;
    let cause = now.cause.load(Ordering::Relaxed);
    let since = now.cycles.swap(0, Ordering::Relaxed);
    let cycles = rdtsc().saturating_sub(since);
    if since != 0 && COUNTS.load(Ordering::Relaxed) {
        core.longest.fetch_max(cycles, Ordering::Relaxed);
        keep(&LONGEST[cause], now, cycles);
    }
    Cause::of(cause)
}

/// Keeps a stretch if it is the longest of its cause.
fn keep(longest: &Noted, now: &Noted, cycles: u64) {
    let is_longer = || cycles > longest.cycles.load(Ordering::Relaxed);
    if !is_longer() {
        return;
    }
    WRITING.lock();
    // Another core may have kept one meanwhile.
    if is_longer() {
        longest.cycles.store(cycles, Ordering::Relaxed);
        longest.switches.store(now.switches.load(Ordering::Relaxed), Ordering::Relaxed);
        longest.part.store(now.part.load(Ordering::Relaxed), Ordering::Relaxed);
        for (to, from) in longest.part_at.iter().zip(&now.part_at) {
            if let Some(location) = from.get() {
                to.set(location);
            }
        }
    }
    WRITING.unlock();
}

/// The longest stretch of each cause that there was.
pub fn longest() -> impl Iterator<Item = Stretch> {
    LONGEST.iter().enumerate().filter_map(|(index, noted)| {
        let cycles = noted.cycles.load(Ordering::Relaxed);
        let [Some(from), Some(to)] = noted.part_at.each_ref().map(Place::get) else { return None };
        (cycles != 0).then(|| Stretch {
            cause: Cause::of(index),
            cycles,
            switches: noted.switches.load(Ordering::Relaxed),
            part: noted.part.load(Ordering::Relaxed),
            part_at: [from, to],
        })
    })
}

/// Forgets all stretches so far, but for the one that this is called in.
pub fn reset() {
    for noted in &LONGEST {
        noted.cycles.store(0, Ordering::Relaxed);
    }
    for core in &CORES {
        core.longest.store(0, Ordering::Relaxed);
        core.between_quiescent.store(0, Ordering::Relaxed);
    }
}
