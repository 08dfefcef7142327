//! Tracing: ptrace(2). A thread, the *tracer*, has others stop, the *tracees*, and looks into them and changes them while they stand.
//!
//! ```text
//!   Thread (a tracee)   --owns--> Traced: who traces it, how it goes on, and while it stands its registers
//!   Process (a tracer's) --owns--> Tracees: --names--> the tracees of its threads, and those of them that have changed
//!                                           --owns---> what is left of tracees that have ended, until wait(2) has told it
//! ```
//!
//! Neither keeps the other alive: both know each other by name. A relation ends when the tracee ends, when the tracer lets it go (PTRACE_DETACH), or when the tracer ends: that one goes through its tracees
//! and lets go of one after the other, between which others have their turn, so it takes no long step however many they are. It is charged to the tracer's process as a [`Held::Timer`](crate::reclaim::Held::Timer).
//!
//! A tracee stops by itself, on its own stack, where it comes by: before a signal is delivered, at both ends of a system call, after it has made another thread or has executed a program, before it ends, and when it is told
//! to (`Work::TRAP`). As long as it *stands*, its context is in its `Traced`, where its tracer finds it: no thread reaches into the stack of another. It tells its tracer by SIGCHLD and wait(2), and waits until it is resumed, let go, or killed: who does that
//! notes it in the `Traced` and wakes it. SIGKILL ends each stop, as it ends each wait.
//!
//! Who is not traced pays for none of this: a traced thread's system calls come by the path on which one of some dozen is measured, each of them.
//!
//! Locks: a process's `Tracees`, then a thread's `Traced`.

mod attach;
mod end;
mod relation;
mod stop;
mod tracees;

use bitflags::bitflags;
use linux_raw_sys::ptrace as abi;

pub use attach::{Attach, attach, begin_child, prepare_child, tell_of_child_async, trace_me};
pub use end::{end_of_process, end_of_tracee, release_all_async, thread_ends_async};
pub use relation::{
    At, Mode, Stand, Traced, Tracing, detach, interrupt, is_traced_by_lesser, kill, listen, resume, with_tracee,
};
pub use stop::{
    begin_call_async, end_call_async, event_async, executed_async, handler_entered_async, leave_step, signal_async,
    stop_async, trap_async,
};
pub use tracees::{Found, OfProcess};

bitflags! {
    /// What a tracer wants to know of: PTRACE_SETOPTIONS.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Options: u32 {
        /// Stops at system calls are told apart from those by SIGTRAP.
        const CALLS_MARKED = abi::PTRACE_O_TRACESYSGOOD;
        /// It has made a process by fork(2),
        const FORK = abi::PTRACE_O_TRACEFORK;
        /// by vfork(2),
        const VFORK = abi::PTRACE_O_TRACEVFORK;
        /// or otherwise, or a thread. What it makes is traced, too.
        const CLONE = abi::PTRACE_O_TRACECLONE;
        /// It has executed a program.
        const EXEC = abi::PTRACE_O_TRACEEXEC;
        /// It has its memory back after vfork(2).
        const VFORK_DONE = abi::PTRACE_O_TRACEVFORKDONE;
        /// It is about to end.
        const EXIT = abi::PTRACE_O_TRACEEXIT;
        /// A filter says so: there are none.
        const SECCOMP = abi::PTRACE_O_TRACESECCOMP;
        /// It is killed when its tracer ends.
        const EXIT_KILL = abi::PTRACE_O_EXITKILL;
    }
}

/// What a tracee tells its tracer of itself (PTRACE_EVENT_*), in a stop of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has made a process by fork(2).
    Fork = abi::PTRACE_EVENT_FORK as isize,
    /// The same by vfork(2).
    VFork = abi::PTRACE_EVENT_VFORK as isize,
    /// It has made another process, or a thread.
    Clone = abi::PTRACE_EVENT_CLONE as isize,
    /// It has executed a program.
    Exec = abi::PTRACE_EVENT_EXEC as isize,
    /// It has its memory back after vfork(2).
    VForkDone = abi::PTRACE_EVENT_VFORK_DONE as isize,
    /// It is about to end.
    Exit = abi::PTRACE_EVENT_EXIT as isize,
}

impl Event {
    /// The option with which a tracer asks for it.
    pub fn option(self) -> Options {
        match self {
            Event::Fork => Options::FORK,
            Event::VFork => Options::VFORK,
            Event::Clone => Options::CLONE,
            Event::Exec => Options::EXEC,
            Event::VForkDone => Options::VFORK_DONE,
            Event::Exit => Options::EXIT,
        }
    }
}
