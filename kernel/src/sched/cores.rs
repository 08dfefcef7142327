//! [`Core`]: a core's run queue, and what others see of it without its lock; [`IdleCores`]: who has nothing to do.

use frame::core_set::{CoreSet, WORDS};
use frame::cpu::PerCore;
use refs::SpinLock;
use tasks::{SchedWords, StaticRef, Worker};

use super::atomic::{AtomicU64, Ordering, fence};
use super::run_queue::RunQueue;
use super::task::Words;

/// A core, on cache lines of its own.
#[repr(align(128))]
pub(super) struct Core {
    queue: SpinLock<RunQueue>,
    /// What [`Load`] says, as one word. Written with the lock held.
    load: AtomicU64,
    /// The floor of its virtual time. Written with the lock held.
    floor: AtomicU64,
    /// How often it has looked what others want of it.
    pub looks: AtomicU64,
    /// How much of the time of its tasks was spent in the kernel, in nanoseconds, as far as it was sampled.
    pub system_time: AtomicU64,
    /// Before this time no fair task is moved from here or to here to even out who gets how much.
    pub balanced_until: AtomicU64,
    /// The task that was moved here last for that. It stays a while: another one's turn to move comes first.
    pub newcomer: StaticRef<SchedWords>,
}

/// How much a core has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// How many tasks it runs and how many wait there.
    pub tasks: u32,
    /// How many of those any other core, or some other one, could take.
    pub movable: u32,
    /// The priority of what it runs.
    pub priority: u8,
}

impl Load {
    const TASKS_BITS: u32 = 28;

    fn of(queue: &RunQueue) -> Self {
        let waiting = u32::try_from(queue.len()).unwrap_or(u32::MAX).min((1 << Self::TASKS_BITS) - 2);
        Load {
            tasks: waiting + u32::from(queue.running.is_some()),
            movable: u32::try_from(queue.movable_len()).unwrap_or(u32::MAX).min(waiting),
            priority: queue.running.map_or(0, |running| Words(running).priority()),
        }
    }

    fn word(self) -> u64 {
        u64::from(self.priority)
            | u64::from(self.tasks) << u8::BITS
            | u64::from(self.movable) << (u8::BITS + Self::TASKS_BITS)
    }

    fn of_word(word: u64) -> Self {
        let tasks = |word: u64| (word & ((1 << Self::TASKS_BITS) - 1)) as u32;
        Load {
            priority: word as u8,
            tasks: tasks(word >> u8::BITS),
            movable: tasks(word >> (u8::BITS + Self::TASKS_BITS)),
        }
    }
}

impl Core {
    pub const fn new() -> Self {
        Core {
            queue: SpinLock::new(RunQueue::new()),
            load: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            system_time: AtomicU64::new(0),
            balanced_until: AtomicU64::new(0),
            newcomer: StaticRef::none(),
        }
    }

    /// Runs `f` on the queue, and shows others what it has become.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut RunQueue) -> R + Send) -> R {
        self.queue.with(|queue| {
            let result = f(queue);
            self.load.store(Load::of(queue).word(), Ordering::Release);
            self.floor.store(queue.floor(), Ordering::Relaxed);
            result
        })
    }

    /// Runs `f` on the queue, which does not change who waits and who runs; or there is no other core to see it.
    #[inline(always)]
    pub fn look<R>(&self, f: impl FnOnce(&mut RunQueue) -> R + Send) -> R {
        self.queue.with(f)
    }

    /// The floor of its virtual time, as it was a moment ago.
    pub fn floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    pub fn load(&self) -> Load {
        Load::of_word(self.load.load(Ordering::SeqCst))
    }
}

const BITS: usize = u64::BITS as usize;

/// The cores that have nothing to do and sleep, or are about to.
///
/// A core says here that it idles *before* it looks for the last time what waits anywhere; who lets a task wait looks here *after*
/// it has entered it. So one of the two sees the other, and no task waits while a core sleeps that may run it.
#[repr(align(128))]
pub(super) struct IdleCores([AtomicU64; WORDS]);

impl IdleCores {
    pub const fn new() -> Self {
        IdleCores([const { AtomicU64::new(0) }; WORDS])
    }

    /// Core `core` idles.
    pub fn add(&self, core: usize) {
        let (word, bit) = self.place(core);
        word.fetch_or(bit, Ordering::SeqCst);
    }

    /// Core `core` does not idle any more. Whether it did: whoever has this result calls it, if it is another one's.
    pub fn remove(&self, core: usize) -> bool {
        let (word, bit) = self.place(core);
        word.load(Ordering::SeqCst) & bit != 0 && word.fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    /// Whether there is one.
    pub fn is_any(&self) -> bool {
        self.in_use().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Some idle core of `among`, which idles no more: the caller calls it.
    pub fn take(&self, among: CoreSet) -> Option<usize> {
        for (index, (word, among)) in self.in_use().zip(among.words()).enumerate() {
            loop {
                let idle = word.load(Ordering::SeqCst) & among;
                if idle == 0 {
                    break;
                }
                let core = index * BITS + idle.trailing_zeros() as usize;
                if self.remove(core) {
                    return Some(core);
                }
            }
        }
        None
    }

    /// The word of a core, and its bit there.
    fn place(&self, core: usize) -> (&AtomicU64, u64) {
        (&self.0[core / BITS], 1 << (core % BITS))
    }

    /// The words in which there are cores: one on nearly all machines.
    fn in_use(&self) -> impl Iterator<Item = &AtomicU64> {
        self.0.iter().take(frame::cpu::count().div_ceil(BITS))
    }

    /// As `take`, for who has just let a task wait.
    pub fn take_after_entering(&self, among: CoreSet) -> Option<usize> {
        fence(Ordering::SeqCst);
        self.take(among)
    }
}

/// A core is to look what it has to run, or when the time slice of what it runs ends. It is called with no lock held.
#[must_use = "a core that is not called sleeps on"]
pub(super) enum CoreCall {
    None,
    /// This one is to look.
    To(usize),
    /// The slice of what this core runs ends at this time.
    SliceEnds(usize, u64),
}

impl CoreCall {
    pub fn make(self, cores: &PerCore<Core>) {
        match self {
            CoreCall::None => {}
            CoreCall::To(core) => {
                if !frame::cpu::interrupt(core) {
                    // The calling one may be freeing what was destroyed, between two tasks: it looks again before it sleeps.
                    cores[core].look(|queue| queue.worker.map(Worker::request_yield));
                }
            }
            CoreCall::SliceEnds(core, end) => {
                crate::time::note_slice_end(core, end);
                if !frame::cpu::interrupt(core) {
                    crate::time::slice_end_was_noted(core);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_comes_back_from_its_word() {
        for load in [
            Load::default(),
            Load { tasks: 1, movable: 0, priority: 99 },
            Load { tasks: (1 << Load::TASKS_BITS) - 1, movable: (1 << Load::TASKS_BITS) - 2, priority: 255 },
        ] {
            assert_eq!(Load::of_word(load.word()), load);
        }
    }

    #[test]
    fn an_idle_core_is_taken_once() {
        let idle = IdleCores::new();
        idle.add(3);
        idle.add(5);
        let fifth = CoreSet::from_words([1 << 5]);
        assert_eq!((idle.take(fifth), idle.take(fifth), idle.remove(5)), (Some(5), None, false));
        assert_eq!((idle.take(CoreSet::below(64)), idle.take(CoreSet::below(64))), (Some(3), None));
    }

    #[cfg(not(ebb_shuttle))]
    #[test]
    fn idle_cores_are_found_wherever_they_are() {
        frame::cpu::pretended::set_count(256);
        let idle = IdleCores::new();
        for core in [63, 64, 255] {
            idle.add(core);
        }
        assert!(idle.is_any());
        let all = CoreSet::below(256);
        assert_eq!((idle.take(all.without(63)), idle.take(all), idle.take(all)), (Some(64), Some(63), Some(255)));
        assert!(!idle.is_any() && idle.take(all).is_none());
    }
}
