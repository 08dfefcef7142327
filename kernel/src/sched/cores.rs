//! [`Core`]: a core's run queue, and what others see of it without its lock; [`IdleCores`]: who has nothing to do.

use refs::SpinLock;
use refs::reclaim::MAX_CORES;
use tasks::{SchedWords, StaticRef, Worker};

use super::atomic::{AtomicU64, Ordering, fence};
use super::run_queue::RunQueue;
use super::task::Words;

const _: () = assert!(MAX_CORES <= u64::BITS as usize, "a mask has a bit for each core");

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

/// The cores that have nothing to do and sleep, or are about to.
///
/// A core says here that it idles *before* it looks for the last time what waits anywhere; who lets a task wait looks here *after*
/// it has entered it. So one of the two sees the other, and no task waits while a core sleeps that may run it.
#[repr(align(128))]
pub(super) struct IdleCores(AtomicU64);

impl IdleCores {
    pub const fn new() -> Self {
        IdleCores(AtomicU64::new(0))
    }

    /// Core `core` idles.
    pub fn add(&self, core: usize) {
        self.0.fetch_or(1 << core, Ordering::SeqCst);
    }

    /// Core `core` does not idle any more. Whether it did: whoever has this result calls it, if it is another one's.
    pub fn remove(&self, core: usize) -> bool {
        let bit = 1 << core;
        self.0.load(Ordering::SeqCst) & bit != 0 && self.0.fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    /// Whether there is one.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Some idle core of `among` (bit c: core c), which idles no more: the caller calls it.
    pub fn take(&self, among: u64) -> Option<usize> {
        loop {
            let idle = self.0.load(Ordering::SeqCst) & among;
            if idle == 0 {
                return None;
            }
            let core = idle.trailing_zeros() as usize;
            if self.remove(core) {
                return Some(core);
            }
        }
    }

    /// As `take`, for who has just let a task wait.
    pub fn take_after_entering(&self, among: u64) -> Option<usize> {
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
    pub fn make(self, cores: &[Core]) {
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
        assert_eq!((idle.take(1 << 5), idle.take(1 << 5), idle.remove(5)), (Some(5), None, false));
        assert_eq!((idle.take(u64::MAX), idle.take(u64::MAX)), (Some(3), None));
    }
}
