//! [`BlockedCall`]: in which system call a thread waits, for those who look at it from outside (`/proc/PID/syscall`).
//!
//! A thread's registers are its own, and nobody else can read them. So it notes what others may want to know before it waits, and only then: a call that does not wait pays nothing.

use core::sync::atomic::{AtomicUsize, Ordering};

use frame::user::Registers;

use crate::arch;

/// Where a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The call and its arguments; `None` where it waits outside of calls (it is stopped or frozen).
    pub call: Option<(usize, [usize; 6])>,
    /// Its stack pointer in user mode.
    pub stack: usize,
    /// Where it goes on in user mode.
    pub instruction: usize,
}

/// What a thread noted when it last began to wait.
///
/// The words are written by the thread alone and read at any time: who reads them while they are written may see some of an older wait.
pub struct BlockedCall {
    number: AtomicUsize,
    arguments: [AtomicUsize; 6],
    stack: AtomicUsize,
    instruction: AtomicUsize,
}

/// The number of no call.
const NONE: usize = usize::MAX;

impl Default for BlockedCall {
    fn default() -> Self {
        BlockedCall {
            number: AtomicUsize::new(NONE),
            arguments: [const { AtomicUsize::new(0) }; _],
            stack: AtomicUsize::new(0),
            instruction: AtomicUsize::new(0),
        }
    }
}

impl BlockedCall {
    /// The thread begins to wait in the call that its registers ask for.
    #[inline]
    pub fn note(&self, registers: &Registers) {
        self.number.store(arch::call_number(registers), Ordering::Relaxed);
        for (word, &argument) in self.arguments.iter().zip(arch::call_arguments(registers)) {
            word.store(argument, Ordering::Relaxed);
        }
        self.note_place(registers);
    }

    /// The thread begins to wait outside of calls.
    pub fn note_outside(&self, registers: &Registers) {
        self.number.store(NONE, Ordering::Relaxed);
        self.note_place(registers);
    }

    #[inline(always)]
    fn note_place(&self, registers: &Registers) {
        self.stack.store(arch::stack_pointer(registers), Ordering::Relaxed);
        self.instruction.store(arch::instruction_pointer(registers), Ordering::Relaxed);
    }

    /// What was noted last.
    pub fn get(&self) -> Blocked {
        let number = self.number.load(Ordering::Relaxed);
        Blocked {
            call: (number != NONE)
                .then(|| (number, self.arguments.each_ref().map(|word| word.load(Ordering::Relaxed)))),
            stack: self.stack.load(Ordering::Relaxed),
            instruction: self.instruction.load(Ordering::Relaxed),
        }
    }
}

impl Blocked {
    /// Where the thread of these registers is: in a call of its own, which looks at it.
    pub fn of_caller(registers: &Registers) -> Self {
        Blocked {
            call: Some((arch::call_number(registers), *arch::call_arguments(registers))),
            stack: arch::stack_pointer(registers),
            instruction: arch::instruction_pointer(registers),
        }
    }
}
