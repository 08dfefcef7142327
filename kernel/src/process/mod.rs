//! Processes and threads.
//!
//! ```text
//!   THREADS  --owns-->  Thread   --names-->  Process  <--owns--  PROCESSES
//!                        | owns shares in      | owns: signal actions, limits, what is pending for all of its threads
//!                        v                     | names: parent, children, threads
//!                AddressSpace, FileTable,      v
//!                FsContext                   group and session (by number)
//! ```
//!
//! A thread's object goes when the thread exits; a process' object when its parent has waited for it. Everything else has names only, which are
//! dead from then on. The end of a process begins with a status ([`Process::begin_exit`]) and the flag `Work::EXIT` in each of its
//! threads; each exits on its own way, and the last takes the process along.
//!
//! Locks: each is short and taken alone; where two are needed names are copied out first.

mod blocked_call;
mod clone;
pub mod core_dump;
mod cpu_clock;
pub mod exec;
mod exit;
mod file_owner;
mod freezer;
mod group_walk;
mod login;
mod members;
mod membership;
pub mod oom;
pub mod oom_group;
mod pid;
mod pidfd;
mod rlimit;
mod rseq;
mod rusage;
mod semaphores;
mod session;
mod stop;
mod table;
mod thread;
mod thread_group;
mod throttle;
pub mod trace;
mod user_count;
mod wait;

pub use blocked_call::Blocked;
pub use clone::{CloneArgs, become_init, clone_async, unshare, write_own_tid_async};
pub use exit::{de_thread_async, exit_thread_async};
pub use file_owner::{FileOwner, Recipient};
pub use freezer::{tell as tell_frozen, wait_while_frozen_async};
pub use group_walk::{GroupWalk, Met};
pub use members::Cursor;
pub use membership::{migrate, new_members, tell_moved};
pub use pid::{THREADS_MAX, last as last_pid, pid_max, set_pid_max};
pub use pidfd::PidFd;
pub use rlimit::{Limit, Limits};
pub use rseq::{RseqRegistration, abort_sequence_async};
pub use rusage::{RUsage, Usage};
pub use semaphores::{note_undo, undo_now_async};
pub use session::{
    Session, create_session, group_members, group_session, is_orphaned, next_member, session, session_of_terminal,
    set_group,
};
pub use stop::{
    Continuation, JobState, begin_stop, continue_next, continue_with, end_stops_at_exit, in_order_of_stops,
    notice_stop, stop_next, stop_with_others, wait_while_stopped_async,
};
pub use thread::{Name, Thread, TimerSlack};
pub use thread_group::{Life, Process, Status};
pub use throttle::{may_have_to_pay, may_have_to_wait, pay_async, wait_while_throttled_async};
pub use wait::{Choice, Report, WaitOptions, wait_async};

use refs::{NoSuspend, TempRc};
use table::PidTable;

/// All processes, zombies too, by pid.
pub static PROCESSES: PidTable<Process> = PidTable::new();
/// All threads that have not exited, by tid.
pub static THREADS: PidTable<Thread> = PidTable::new();
/// The pid of the first process.
pub const INIT: u32 = 1;

/// The process of that id, zombies too.
pub fn find<'cx>(pid: u32, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Process>> {
    PROCESSES.get(pid, cx)
}

/// The thread of that id.
pub fn find_thread<'cx>(tid: u32, cx: &'cx impl NoSuspend) -> Option<TempRc<'cx, Thread>> {
    THREADS.get(tid, cx)
}
