//! The kernel: Linux's system calls, in safe Rust, on top of [`frame`].
//!
//! | module | what it is |
//! | --- | --- |
//! | [`syscall`] | the table of system calls; each file decodes arguments, calls one subsystem, encodes the result |
//! | [`process`] | processes, threads, sessions, program loading |
//! | [`cgroup`] | control groups: the tree, and what is counted and limited in it |
//! | [`reclaim`] | what the end of each kind of object costs, and who is charged for it |
//! | [`credentials`] | for whom a thread acts, and what it may do |
//! | [`signal`] | signals |
//! | [`memory`] | address spaces |
//! | [`block`] | block devices, and the pages of what is on them |
//! | [`fs`] | the virtual file system, open files, and the file systems |
//! | [`pipe`] | pipes, FIFOs and splice |
//! | [`ipc`] | System V IPC: shared memory, semaphores, queues of messages |
//! | [`event`] | epoll, eventfd, signalfd, timerfd, poll |
//! | [`net`] | sockets |
//! | [`drivers`] | terminals, disks, the memory devices, random numbers, the kernel's log |
//! | [`arch`] | what only the processor's architecture decides |
//! | [`time`] | clocks and timers |
//! | [`futex`] | waiting for a word of user memory |
//! | [`sched`] | which task runs next |
//! | [`step`] | steps and the one driver that turns them into calls that block |
//! | [`current`] | what a running thread knows of itself |
//! | [`sysctl`] | numbers that an administrator may change |
//! | [`slots`] | values with numbers that are given out, in memory that goes back |
//! | [`radix`] | values by number, for tables in which nothing may cost more the more there is |
//! | [`table`] | values by number, for tables that grow with what programs ask for |
//! | [`user_memory`] | the calling program's memory |
//!
//! How a system call passes: `current::Current::run_async` (the body of each thread's task) gets a trap from user code,
//! [`syscall::dispatch_async`] looks the number up, and the call is run: as a *step* that does not suspend, repeated by the
//! driver where it must wait or a page of user memory is missing, or as an `_async` function of its own.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod arch;
pub mod block;
pub mod cgroup;
pub mod credentials;
pub mod current;
pub mod drivers;
pub mod error;
pub mod event;
pub mod fs;
pub mod futex;
mod heap;
pub mod ipc;
pub mod log;
pub mod memory;
pub mod net;
mod pieces;
pub mod pipe;
pub mod process;
pub mod radix;
pub mod reboot;
pub mod reclaim;
pub mod ring;
pub mod sched;
pub mod signal;
pub mod slots;
pub mod step;
pub mod syscall;
pub mod sysctl;
mod table;
pub mod time;
pub mod user_memory;
pub mod utsname;

mod start;
pub use start::CONFIG;
