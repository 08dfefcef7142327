//! The order of clone(2)'s arguments, in which architectures differ.

use crate::user_memory::UserOut;

/// The arguments of clone(2) after the flags.
#[derive(Clone, Copy, Debug)]
pub struct CloneArguments {
    /// The child's stack pointer; 0: the caller's.
    pub stack: usize,
    /// Where the child's id is written in the caller's memory.
    pub parent_tid: UserOut<u32>,
    /// Where it is written in the child's memory, and cleared when it exits.
    pub child_tid: UserOut<u32>,
    /// The child's thread-local storage.
    pub tls: usize,
}

/// What the call's arguments mean.
pub fn clone_arguments(arguments: &[usize; 6]) -> CloneArguments {
    let [_flags, stack, parent_tid, child_tid, tls, _] = *arguments;
    CloneArguments {
        stack,
        parent_tid: UserOut::<u32>::new(parent_tid),
        child_tid: UserOut::<u32>::new(child_tid),
        tls,
    }
}
