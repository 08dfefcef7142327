//! In which order locks are taken: for kernels that are built with the feature `check-locks`. Without it none of this exists.
//!
//! A lock's *class* is the place in the source where it is made. Each core knows which locks it holds. Whenever it waits for a lock while it holds others, the
//! order of the two classes is kept for ever; what would close a circle of such orders ends the kernel with the places where each of them was seen, though nobody has to
//! wait this time. So does taking a lock that the core holds already, taking two locks of one class with no order between them
//! ([`SpinLock::lock_after`](crate::SpinLock::lock_after)), and holding a lock where the core may do something else ([`check_none_held`]).
//!
//! Only what runs on a core that [the kernel has named](crate::set_processor) is looked at. A lock that was merely [tried](crate::SpinLock::try_lock) waits for nobody, and
//! comes after nothing; what is taken while it is held comes after it.

use core::cell::UnsafeCell;
use core::fmt;
use core::hint::spin_loop;
use core::panic::Location;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::processor::current_core;

/// Room for so many classes.
const CLASSES: usize = 512;
/// Room for so many orders of two classes.
const ORDERS: usize = 4096;
/// The most cores.
const CORES: usize = 256;
/// The most locks that a core holds at once.
const DEPTH: usize = 16;
/// Bits of a word.
const BITS: usize = 64;

type Place = &'static Location<'static>;

/// What a lock knows of its class.
pub(crate) struct Class {
    made_at: Place,
    /// Its number plus 1; 0 until a lock of the class is taken for the first time.
    number: AtomicUsize,
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.made_at)
    }
}

impl Class {
    /// The class of what the caller makes.
    #[track_caller]
    pub(crate) const fn of_caller() -> Self {
        Class { made_at: Location::caller(), number: AtomicUsize::new(0) }
    }

    fn number(&self) -> usize {
        match self.number.load(Ordering::Relaxed) {
            0 => {
                let number = KNOWN.with(|known| known.class(self.made_at));
                self.number.store(number + 1, Ordering::Relaxed);
                number
            }
            number => number - 1,
        }
    }
}

/// In which order a lock stands to those of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// There is none: no other is held.
    No,
    /// It comes after the one that is held, by an order which all who take two of them keep.
    After,
}

/// A lock that a core holds. Only the core writes here.
struct Held {
    /// The lock's address, or 0.
    lock: AtomicUsize,
    class: AtomicUsize,
    /// Where it was taken.
    at: AtomicPtr<Location<'static>>,
    /// When, in cycles.
    since: AtomicU64,
}

struct Core {
    depth: AtomicUsize,
    held: [Held; DEPTH],
}

static HELD: [Core; CORES] = [const {
    Core {
        depth: AtomicUsize::new(0),
        held: [const {
            Held {
                lock: AtomicUsize::new(0),
                class: AtomicUsize::new(0),
                at: AtomicPtr::new(null_mut()),
                since: AtomicU64::new(0),
            }
        }; DEPTH],
    }
}; CORES];

/// One class comes before another: where the first was taken, and where the second was while the first was held.
#[derive(Clone, Copy)]
struct Order {
    classes: [usize; 2],
    at: [Place; 2],
}

/// How long locks of a class were held.
#[derive(Clone, Copy)]
struct Use {
    made_at: Place,
    taken: u64,
    longest: u64,
    /// Where the one was taken that was held for the longest time.
    longest_at: Place,
}

/// What was seen so far.
struct Seen {
    classes: [Option<Use>; CLASSES],
    class_count: usize,
    orders: [Option<Order>; ORDERS],
    order_count: usize,
}

/// Bit b of row a: class a comes before class b. Read without a lock, written by who has [`KNOWN`].
static BEFORE: [[AtomicU64; CLASSES / BITS]; CLASSES] =
    [const { [const { AtomicU64::new(0) }; CLASSES / BITS] }; CLASSES];

/// [`Seen`], for one core at a time. Its lock is none of those that are checked.
struct Known {
    is_locked: AtomicBool,
    seen: UnsafeCell<Seen>,
}

// SAFETY: the lock lets one core at a time at what was seen.
unsafe impl Sync for Known {}

static KNOWN: Known = Known {
    is_locked: AtomicBool::new(false),
    seen: UnsafeCell::new(Seen { classes: [None; CLASSES], class_count: 0, orders: [None; ORDERS], order_count: 0 }),
};

impl Known {
    /// Runs `f`, which panics only if it is over with all checks.
    fn with<R>(&self, f: impl FnOnce(&mut Seen) -> R) -> R {
        while self.is_locked.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        // SAFETY: locked, and what is locked here takes no lock.
        let result = f(unsafe { &mut *self.seen.get() });
        self.is_locked.store(false, Ordering::Release);
        result
    }
}

impl Seen {
    fn class(&mut self, made_at: Place) -> usize {
        let is_same = |known: &Option<Use>| {
            known.is_some_and(|known| {
                known.made_at.line() == made_at.line()
                    && known.made_at.column() == made_at.column()
                    && known.made_at.file() == made_at.file()
            })
        };
        if let Some(number) = self.classes[..self.class_count].iter().position(is_same) {
            return number;
        }
        let number = self.class_count;
        // The last one stands for all for which there is no room.
        if number < CLASSES - 1 {
            self.class_count += 1;
        }
        self.classes[number] = Some(Use { made_at, taken: 0, longest: 0, longest_at: made_at });
        number
    }

    fn made_at(&self, class: usize) -> Option<Place> {
        Some(self.classes.get(class)?.as_ref()?.made_at)
    }

    fn order(&self, classes: [usize; 2]) -> Option<&Order> {
        self.orders[..self.order_count].iter().flatten().find(|order| order.classes == classes)
    }

    /// Which class comes before each on a way from `from` to `to`, if there is one.
    fn way(&self, from: usize, to: usize) -> Option<[u16; CLASSES]> {
        const NONE: u16 = u16::MAX;
        let mut before = [NONE; CLASSES];
        let mut queue = [0_u16; CLASSES];
        let (mut first, mut end) = (0, 1);
        queue[0] = from as u16;
        while first < end {
            let class = queue[first];
            first += 1;
            for next in self.orders[..self.order_count].iter().flatten() {
                let [one, other] = next.classes;
                if one == usize::from(class) && before[other] == NONE && other != from {
                    before[other] = class;
                    if other == to {
                        return Some(before);
                    }
                    queue[end] = other as u16;
                    end += 1;
                }
            }
        }
        None
    }
}

fn comes_before(one: usize, other: usize) -> bool {
    BEFORE[one][other / BITS].load(Ordering::Relaxed) & 1 << (other % BITS) != 0
}

#[cfg(target_arch = "x86_64")]
fn cycles() -> u64 {
    // SAFETY: every such processor has a time stamp counter, and a kernel may read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    0
}

impl Core {
    fn held(&self) -> &[Held] {
        &self.held[..self.depth.load(Ordering::Relaxed).min(DEPTH)]
    }

    /// Forgets what is held: the core is about to end with a message.
    fn forget(&self) {
        self.depth.store(0, Ordering::Relaxed);
    }
}

impl Held {
    fn at(&self) -> Option<Place> {
        // SAFETY: null or a `Location` that lives for ever.
        unsafe { self.at.load(Ordering::Relaxed).as_ref() }
    }
}

fn this_core() -> Option<&'static Core> {
    HELD.get(current_core()?)
}

/// The core is about to wait for a lock.
///
/// # Panics
/// If that may be for ever.
#[track_caller]
pub(crate) fn before_lock(lock: usize, class: &Class, beside: Beside) {
    let Some(core) = this_core() else { return };
    if core.held().is_empty() {
        return;
    }
    let at = Location::caller();
    let number = class.number();
    for held in core.held() {
        let Some(held_at) = held.at() else { continue };
        if held.lock.load(Ordering::Relaxed) == lock {
            core.forget();
            panic!(
                "lock order: the lock made at {} is taken at {at} by a core that holds it since {held_at}",
                class.made_at
            );
        }
        let other = held.class.load(Ordering::Relaxed);
        if other == number {
            if beside == Beside::No {
                core.forget();
                panic!(
                    "lock order: two locks made at {} are taken with no order between them: at {held_at}, and then at {at}",
                    class.made_at
                );
            }
        } else if !comes_before(other, number) {
            enter(core, Order { classes: [other, number], at: [held_at, at] });
        }
    }
}

/// Keeps a new order.
#[cold]
fn enter(core: &Core, order: Order) {
    let [one, other] = order.classes;
    let circle = KNOWN.with(|seen| {
        if seen.order(order.classes).is_some() {
            return false;
        }
        if seen.way(other, one).is_some() {
            return true;
        }
        let end = seen.order_count;
        if end < ORDERS {
            seen.orders[end] = Some(order);
            seen.order_count += 1;
            BEFORE[one][other / BITS].fetch_or(1 << (other % BITS), Ordering::Relaxed);
        }
        false
    });
    if circle {
        core.forget();
        panic!("{}", Circle(order));
    }
}

/// An order that would close a circle, with the others of it.
struct Circle(Order);

impl fmt::Display for Circle {
    /// With nothing locked while it is written: what writes takes locks itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = self.0.classes;
        let made_at = |class| KNOWN.with(|seen| seen.made_at(class)).unwrap_or(self.0.at[0]);
        write!(
            f,
            "lock order: the lock made at {} is taken at {} by a core that holds the one made at {} since {}; but it comes before that:",
            made_at(other),
            self.0.at[1],
            made_at(one),
            self.0.at[0]
        )?;
        let Some(before) = KNOWN.with(|seen| seen.way(other, one)) else { return Ok(()) };
        let mut class = one;
        while class != other {
            let first = usize::from(before[class]);
            if let Some(order) = KNOWN.with(|seen| seen.order([first, class]).copied()) {
                write!(
                    f,
                    " the one made at {} was taken at {} while the one made at {} was held since {};",
                    made_at(class),
                    order.at[1],
                    made_at(first),
                    order.at[0]
                )?;
            }
            class = first;
        }
        Ok(())
    }
}

/// The core has the lock now.
#[track_caller]
pub(crate) fn locked(lock: usize, class: &Class) {
    let Some(core) = this_core() else { return };
    let depth = core.depth.load(Ordering::Relaxed);
    let Some(held) = core.held.get(depth) else {
        core.forget();
        panic!("lock order: more than {DEPTH} locks are held at {}", Location::caller());
    };
    held.class.store(class.number(), Ordering::Relaxed);
    held.at.store(from_ref(Location::caller()).cast_mut(), Ordering::Relaxed);
    held.since.store(cycles(), Ordering::Relaxed);
    held.lock.store(lock, Ordering::Relaxed);
    core.depth.store(depth + 1, Ordering::Release);
}

/// The core gives the lock back.
pub(crate) fn unlocked(lock: usize) {
    let Some(core) = this_core() else { return };
    // One that was taken before anybody said which core it is stands nowhere.
    let Some(place) = core.held().iter().rposition(|held| held.lock.load(Ordering::Relaxed) == lock) else { return };
    let held = &core.held[place];
    let time = cycles().saturating_sub(held.since.load(Ordering::Relaxed));
    KNOWN.with(|seen| {
        if let (Some(class), Some(at)) = (&mut seen.classes[held.class.load(Ordering::Relaxed)], held.at()) {
            class.taken += 1;
            if time > class.longest {
                (class.longest, class.longest_at) = (time, at);
            }
        }
    });
    let depth = core.depth.load(Ordering::Relaxed);
    for (to, from) in core.held[place..depth].iter().zip(&core.held[place + 1..depth]) {
        to.class.store(from.class.load(Ordering::Relaxed), Ordering::Relaxed);
        to.at.store(from.at.load(Ordering::Relaxed), Ordering::Relaxed);
        to.since.store(from.since.load(Ordering::Relaxed), Ordering::Relaxed);
        to.lock.store(from.lock.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    core.depth.store(depth - 1, Ordering::Release);
}

/// The core may do something else for any time: another task, user code, an interrupt's handler.
///
/// # Panics
/// If it holds a lock.
#[track_caller]
pub fn check_none_held() {
    let Some(core) = this_core() else { return };
    if let Some(held) = core.held().last() {
        let (class, at) = (held.class.load(Ordering::Relaxed), held.at());
        core.forget();
        let made_at = KNOWN.with(|seen| seen.made_at(class));
        panic!("lock order: the lock made at {made_at:?} and taken at {at:?} is still held at {}", Location::caller());
    }
}

/// Who holds a lock.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The number of the core.
    pub core: usize,
    /// Where the lock was made.
    pub made_at: Place,
    /// Where it was taken.
    pub taken_at: Place,
}

/// Who holds the lock at this address, if any core does. The answer may be old.
pub fn holder(lock: usize) -> Option<Holder> {
    HELD.iter().enumerate().find_map(|(core, locks)| {
        let held = locks.held().iter().find(|held| held.lock.load(Ordering::Relaxed) == lock)?;
        let class = held.class.load(Ordering::Relaxed);
        Some(Holder { core, made_at: KNOWN.with(|seen| seen.made_at(class))?, taken_at: held.at()? })
    })
}

/// A class of locks, as far as its locks were used.
#[derive(Clone, Copy, Debug)]
pub struct LockClass {
    /// Where its locks are made.
    pub made_at: Place,
    /// How often one was given back.
    pub taken: u64,
    /// The longest time for which one was held, in cycles of the time stamp counter.
    pub longest: u64,
    /// Where that one was taken.
    pub longest_at: Place,
}

/// All classes whose locks were used, one after the other: their numbers begin with 0.
pub fn class(number: usize) -> Option<LockClass> {
    KNOWN.with(|seen| {
        let class = (*seen.classes.get(number)?)?;
        Some(LockClass {
            made_at: class.made_at,
            taken: class.taken,
            longest: class.longest,
            longest_at: class.longest_at,
        })
    })
}

/// Two classes whose locks were held at once.
#[derive(Clone, Copy, Debug)]
pub struct LockOrder {
    /// Where the locks of the class that was taken first are made, and of the other one.
    pub made_at: [Place; 2],
    /// Where they were taken when that was first seen.
    pub taken_at: [Place; 2],
}

/// All orders that were seen, one after the other: their numbers begin with 0.
pub fn order(number: usize) -> Option<LockOrder> {
    KNOWN.with(|seen| {
        let order = (*seen.orders.get(number)?)?;
        let [one, other] = order.classes;
        Some(LockOrder { made_at: [seen.made_at(one)?, seen.made_at(other)?], taken_at: order.at })
    })
}

/// Forgets for how long locks were held.
pub fn reset_times() {
    KNOWN.with(|seen| {
        for class in seen.classes.iter_mut().flatten() {
            (class.taken, class.longest) = (0, 0);
        }
    });
}
