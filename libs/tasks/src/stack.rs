//! Stacks, and where they come from.

/// A stack that nothing runs on: whoever has it may run on it.
#[derive(Debug)]
pub struct Stack {
    bottom: usize,
    top: usize,
}

impl Stack {
    /// A stack from `bottom` (its lowest address) to `top` (the address behind its highest byte, a multiple of 16).
    ///
    /// # Safety
    /// There are at least 4096 bytes. The memory is writable, used for nothing else, and stays so until the stack is given back to its
    /// source; its provenance was exposed. What lies below `bottom` must not be mapped, or the source must notice an overflow otherwise.
    pub unsafe fn new(bottom: usize, top: usize) -> Self {
        Stack { bottom, top }
    }

    /// The lowest address.
    pub fn bottom(&self) -> usize {
        self.bottom
    }

    /// The address behind the highest byte.
    pub fn top(&self) -> usize {
        self.top
    }
}

/// Where stacks come from and go to.
pub trait StackSource: Sync {
    /// A stack, from the pool or new; `None` if there is no memory.
    fn take(&self) -> Option<Stack>;

    /// Takes a stack back. A source that finds that it was overflowed ends the program.
    ///
    /// # Safety
    /// The stack came from [`take`](Self::take) of this very source: another one's may be of another size, or no memory of the heap at all.
    unsafe fn give(&self, stack: Stack);
}
