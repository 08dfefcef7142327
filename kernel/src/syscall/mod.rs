//! The table of system calls.
//!
//! Each file in this folder has a `CALLS` list: number (from `linux-raw-sys`), name, the function, and how complete it is. A function decodes its
//! arguments, calls one subsystem and encodes the result; subsystems see neither registers nor raw user pointers.

mod aio;
mod compare;
mod credentials;
mod descriptors;
mod directories;
mod entry;
mod epoll;
mod events;
mod exec;
mod fiemap;
mod file_owner;
mod futex;
mod inotify;
mod ipc;
mod memory;
mod message_vectors;
mod messages;
mod metadata;
mod mount_contexts;
mod mount_lists;
mod mount_trees;
mod mounts;
pub mod numbers;
mod open;
mod pipes;
pub mod poll;
mod prctl;
mod process;
mod ptrace;
mod random;
mod read_write;
mod remote_memory;
mod scheduling;
mod scheduling_attributes;
mod signal;
mod signal_event;
mod sockets;
mod syslog;
mod system;
mod table;
mod terminals;
mod time;
mod timers;

use core::sync::atomic::{AtomicBool, Ordering};

use frame::Cx;
use zerocopy::{FromBytes, Immutable, KnownLayout, transmute_ref};

use crate::arch;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::INIT;
use crate::step::{Patience, Step, go_on_async};
use crate::user_memory::{Argument, UserIn, UserInOut, UserOut};

pub use table::{Completeness, all, page};

/// The six arguments of a call, in order.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Args(pub [usize; 6]);

impl Args {
    /// An argument that the ABI declares as `int` or `unsigned int`: the upper half of the register does not count.
    #[inline(always)]
    pub fn int(&self, index: usize) -> i32 {
        self.0[index] as i32
    }

    /// An argument that is a length or a long.
    #[inline(always)]
    pub fn long(&self, index: usize) -> usize {
        self.0[index]
    }

    /// The address of a value that the call reads. The type is always said: `args.input::<TimeSpec>(1)`.
    #[inline(always)]
    pub fn input<T>(&self, index: usize) -> UserIn<T> {
        UserIn::<T>::new(self.0[index])
    }

    /// The address of a string that ends with a zero: a path, a name.
    #[inline(always)]
    pub fn string(&self, index: usize) -> UserIn<u8> {
        UserIn::<u8>::new(self.0[index])
    }

    /// The address of a value that the call writes.
    #[inline(always)]
    pub fn output<T>(&self, index: usize) -> UserOut<T> {
        UserOut::<T>::new(self.0[index])
    }

    /// An argument whose meaning another argument says.
    #[inline(always)]
    pub fn either(&self, index: usize) -> Argument {
        Argument::new(self.0[index])
    }

    /// The address of a value that the call reads and writes.
    #[inline(always)]
    pub fn in_out<T>(&self, index: usize) -> UserInOut<T> {
        UserInOut::<T>::new(self.0[index])
    }
}

/// How a call is run.
#[derive(Clone, Copy)]
pub enum Call {
    /// A step that never waits (it may fault on user memory, and is then run again).
    Step(fn(&Cx, &Current, &Args) -> Step<usize>),
    /// A call that may suspend or that changes the calling thread.
    Async(fn(&mut Cx, &mut Current, &Args) -> Result<usize>),
}

/// One system call.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its number.
    pub number: u32,
    /// Its name in the manual.
    pub name: &'static str,
    /// What it does.
    pub call: Call,
    /// Whether all of the manual page is there.
    pub completeness: Completeness,
}

impl Entry {
    /// A call that is complete.
    pub const fn new(number: u32, name: &'static str, call: Call) -> Self {
        Entry { number, name, call, completeness: Completeness::Complete }
    }

    /// A call of which something is missing.
    pub const fn partial(number: u32, name: &'static str, call: Call, missing: &'static str) -> Self {
        Entry { number, name, call, completeness: Completeness::Partial(missing) }
    }
}

/// Runs the system call that the thread's registers ask for, and leaves its result there. What it destroyed is freed before the
/// thread is in user mode again.
#[inline(always)]
pub fn dispatch_async(cx: &mut Cx, me: &mut Current) {
    let number = arch::call_number(&me.context.registers);
    if crate::memory::is_exhausted() && !may_run_async(cx, me) {
        me.context.set_call_result(Errno::ENOMEM.as_result());
        return;
    }
    let result = match table::lookup(number) {
        Some(Call::Step(step)) => {
            // The first attempt reads them where they are.
            let args: &Args = transmute_ref!(arch::call_arguments(&me.context.registers));
            match step(cx, me, args) {
                Ok(value) => {
                    me.context.set_call_result(value);
                    return;
                }
                Err(stop) => {
                    let args = *args;
                    go_on_async(cx, me, Patience::Forever, stop, &mut |cx, me, _| step(cx, me, &args))
                }
            }
        }
        Some(Call::Async(call)) => {
            let args = Args(*arch::call_arguments(&me.context.registers));
            call(cx, me, &args)
        }
        None => Err(unknown(number)),
    };
    match result {
        Ok(value) => me.context.set_call_result(value),
        Err(error) if error.is_restart() => crate::signal::deliver::prepare_restart(me, error, number, cx),
        Err(error) => me.context.set_call_result(error.as_result()),
    }
}

/// Almost no memory is left, not even for calls that only need a little: whether the call can be run now.
#[cold]
fn may_run_async(cx: &mut Cx, me: &mut Current) -> bool {
    // Process 1 is never ended, so its calls are always run.
    crate::process::oom::recover_async(cx, me).is_ok() || me.process(cx).is_ok_and(|process| process.pid == INIT)
}

/// A call that is not there: logged once, by name.
#[cold]
fn unknown(number: usize) -> Errno {
    static LOGGED: [AtomicBool; 512] = [const { AtomicBool::new(false) }; 512];
    if let Some(logged) = LOGGED.get(number)
        && !logged.swap(true, Ordering::Relaxed)
    {
        let name = numbers::name(number as u32).unwrap_or("?");
        crate::log!("system call {number} ({name}) is not there: ENOSYS");
    }
    Errno::ENOSYS
}
