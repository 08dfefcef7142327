//! The plainest policy and the plainest stacks: for programs that need nothing better, and for tests.

use alloc::alloc::{alloc, dealloc};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::alloc::Layout;

use refs::SpinLock;

use crate::{Policy, Ready, Stack, StackSource, Why, Worker};

/// First come, first served.
#[derive(Default)]
pub struct Fifo {
    queue: SpinLock<VecDeque<Ready>>,
}

impl Fifo {
    /// An empty queue.
    pub const fn new() -> Self {
        Fifo { queue: SpinLock::new(VecDeque::new()) }
    }
}

impl Policy for Fifo {
    fn enqueue(&self, ready: Ready, _why: Why) {
        self.queue.with(|queue| queue.push_back(ready));
    }

    fn next(&self, _worker: &'static Worker) -> Option<Ready> {
        self.queue.with(VecDeque::pop_front)
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
    /// Stacks of `size_bytes` (at least 4096; a multiple of 16).
    pub const fn new(size_bytes: usize) -> Self {
        assert!(size_bytes >= 4096 && size_bytes.is_multiple_of(16));
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

    fn give(&self, stack: Stack) {
        for word in 0..RED_ZONE_WORDS {
            let address = core::ptr::with_exposed_provenance::<usize>(stack.bottom()).wrapping_add(word);
            // SAFETY: the red zone of a stack that `take` made, and that nothing runs on.
            let found = unsafe { address.read() };
            assert_eq!(found, RED_ZONE, "a task has overflowed its stack of {} bytes", self.size_bytes);
        }
        self.pool.with(|pool| pool.push(stack));
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
