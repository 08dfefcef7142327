//! The plainest policy and the plainest stacks: for programs that need nothing better, and for tests.

use alloc::alloc::{alloc, dealloc};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;

use refs::SpinLock;

use crate::{Policy, Ready, Stack, StackSource, Why, Worker};

/// First come, first served: each worker gets, of the tasks that it may run, the one that has been ready for longest.
#[derive(Default)]
pub struct Fifo {
    queue: SpinLock<Queue>,
}

#[derive(Default)]
struct Queue {
    /// How many tasks were ever entered.
    entered: u64,
    /// Those that any worker may run, each with the number under which it was entered.
    anywhere: VecDeque<(u64, Ready)>,
    /// Those that one worker has to run, and that worker.
    at: Vec<(&'static Worker, VecDeque<(u64, Ready)>)>,
}

impl Fifo {
    /// An empty queue.
    pub const fn new() -> Self {
        Fifo { queue: SpinLock::new(Queue { entered: 0, anywhere: VecDeque::new(), at: Vec::new() }) }
    }
}

impl fmt::Debug for Fifo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready =
            self.queue.with(|queue| queue.anywhere.len() + queue.at.iter().map(|(_, at)| at.len()).sum::<usize>());
        f.debug_struct("Fifo").field("ready", &ready).finish()
    }
}

impl Queue {
    /// Those that `worker` has to run.
    fn at(&mut self, worker: &'static Worker) -> &mut VecDeque<(u64, Ready)> {
        let index = self.at.iter().position(|(of, _)| core::ptr::eq(*of, worker)).unwrap_or_else(|| {
            self.at.push((worker, VecDeque::new()));
            self.at.len() - 1
        });
        &mut self.at[index].1
    }
}

impl Policy for Fifo {
    fn enqueue(&self, ready: Ready, _why: Why) {
        self.queue.with(|queue| {
            let number = queue.entered;
            queue.entered += 1;
            match ready.worker() {
                None => queue.anywhere.push_back((number, ready)),
                Some(worker) => queue.at(worker).push_back((number, ready)),
            }
        });
    }

    fn next(&self, worker: &'static Worker) -> Option<Ready> {
        self.queue.with(|queue| {
            let first_anywhere = queue.anywhere.front().map(|(number, _)| *number);
            let here = queue.at(worker);
            let is_here = here.front().is_some_and(|(number, _)| first_anywhere.is_none_or(|first| *number < first));
            let from = if is_here { here } else { &mut queue.anywhere };
            from.pop_front().map(|(_, ready)| ready)
        })
    }
}

/// Pooled stacks of one size from the heap. Below each stack lies a red zone of known words: what a task wrote there is found when
/// the stack comes back, and ends the program (an overflow is never silent, but it is seen late: use guard pages where there are any).
pub struct HeapStacks {
    size_bytes: usize,
    pool: SpinLock<Vec<Stack>>,
}

const RED_ZONE_WORDS: usize = 16;
const RED_ZONE: usize = 0x5afe_57ac_0f10_0d01;

impl HeapStacks {
    /// Stacks of `size_bytes` (at least 4096; a multiple of 16; no more than an allocation can have).
    ///
    /// # Panics
    /// If it is another size.
    pub const fn new(size_bytes: usize) -> Self {
        assert!(size_bytes >= 4096 && size_bytes.is_multiple_of(16) && size_bytes <= isize::MAX as usize - 15);
        HeapStacks { size_bytes, pool: SpinLock::new(Vec::new()) }
    }

    /// How many stacks lie unused in the pool.
    pub fn pooled(&self) -> usize {
        self.pool.with(|pool| pool.len())
    }

    fn layout(&self) -> Layout {
        Layout::from_size_align(self.size_bytes, 16).expect("the size was checked by `new`")
    }
}

impl StackSource for HeapStacks {
    fn take(&self) -> Option<Stack> {
        if let Some(stack) = self.pool.with(Vec::pop) {
            return Some(stack);
        }
        // SAFETY: the layout's size is not zero.
        let bottom = unsafe { alloc(self.layout()) };
        if bottom.is_null() {
            return None;
        }
        for word in 0..RED_ZONE_WORDS {
            // SAFETY: the red zone lies within the new allocation, which is aligned to 16.
            unsafe { bottom.cast::<usize>().add(word).write(RED_ZONE) };
        }
        let bottom = bottom.expose_provenance();
        // SAFETY: fresh memory that stays ours until the pool is dropped, which is after all stacks came back or never.
        Some(unsafe { Stack::new(bottom, bottom + self.size_bytes) })
    }

    unsafe fn give(&self, stack: Stack) {
        for word in 0..RED_ZONE_WORDS {
            let address = core::ptr::with_exposed_provenance::<usize>(stack.bottom()).wrapping_add(word);
            // SAFETY: the red zone of a stack that `take` made, and that nothing runs on.
            let found = unsafe { address.read() };
            assert_eq!(found, RED_ZONE, "a task has overflowed its stack of {} bytes", self.size_bytes);
        }
        self.pool.with(|pool| pool.push(stack));
    }
}

impl fmt::Debug for HeapStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapStacks").field("size_bytes", &self.size_bytes).field("pooled", &self.pooled()).finish()
    }
}

impl Drop for HeapStacks {
    fn drop(&mut self) {
        let layout = self.layout();
        for stack in self.pool.get_mut().drain(..) {
            let bottom = core::ptr::with_exposed_provenance_mut(stack.bottom());
            // SAFETY: allocated in `take` with this layout, and in the pool, so nothing runs on it.
            unsafe { dealloc(bottom, layout) };
        }
    }
}
