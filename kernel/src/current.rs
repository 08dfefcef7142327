//! [`Current`]: what a running thread knows of itself. It is the body of the thread's task, and every system call gets it.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Access, Fault};
use frame::user::{Trap, UserContext};
use refs::{Gone, TempRc, WeakRc};
use tasks::{Body, Next};

use crate::credentials::{Capability, TraceAs};
use crate::error::{Errno, Result};
use crate::fs::{FileTable, FsContext};
use crate::memory::{AddressSpace, Resolved};
use crate::process::{Process, Restartable, Thread};
use crate::step::Interruption;
use crate::{memory, sched, signal, syscall};

/// The running thread, seen from inside. Names only (`WeakRc`): what they name belongs to tables.
pub struct Current {
    /// Registers and floating-point state of the user program.
    pub context: UserContext,
    /// The thread.
    pub thread: WeakRc<Thread>,
    /// Its process (thread group).
    pub process: WeakRc<Process>,
    /// Its address space.
    pub space: WeakRc<AddressSpace>,
    /// Its file descriptors.
    pub files: WeakRc<FileTable>,
    /// Its root, working directory and umask.
    pub fs: WeakRc<FsContext>,
    /// What `restart_syscall` goes on with.
    pub restart: Option<Restart>,
    /// The call that a signal interrupted, until it is known how it goes on: why, and its number.
    pub interrupted_call: Option<(Errno, usize)>,
    /// The last fault, for the frame of its handler: address, error code, vector.
    pub fault: (usize, usize, u8),
    /// What it has registered by rseq(2).
    pub restartable: Option<Restartable>,
    /// Room for the floating-point state of a signal frame; empty until it is needed.
    pub fp_scratch: Vec<u8>,
    /// How many system calls until one is measured, to tell time in the kernel from time in user mode.
    pub until_sample: u32,
}

/// One of this many system calls is measured, and stands for all.
pub const SAMPLE_INTERVAL: u32 = 32;

/// A call that was interrupted and goes on where it was, rather than anew.
#[derive(Clone, Copy, Debug)]
pub enum Restart {
    /// A sleep until a time (nanoseconds since boot), whose remainder is reported at an address (0: nowhere).
    Sleep {
        /// When it ends.
        until: u64,
        /// Where the rest is written if a handler ends it.
        remainder: usize,
    },
    /// `poll` until a time.
    Poll {
        /// The descriptors.
        fds: usize,
        /// How many.
        count: usize,
        /// When it ends.
        until: u64,
    },
    /// `futex(FUTEX_WAIT)` until a time.
    Futex {
        /// The word.
        address: usize,
        /// What it must be.
        value: u32,
        /// When it ends.
        until: u64,
        /// The bits waited for.
        mask: u32,
        /// Whether the futex is private to the address space.
        private: bool,
    },
}

impl Current {
    /// The thread.
    #[inline(always)]
    pub fn thread<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, Thread>, Gone> {
        self.thread.upgrade(cx)
    }

    /// The process.
    #[inline(always)]
    pub fn process<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, Process>, Gone> {
        self.process.upgrade(cx)
    }

    /// The address space.
    #[inline(always)]
    pub fn space<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, AddressSpace>, Gone> {
        self.space.upgrade(cx)
    }

    /// The descriptors.
    #[inline(always)]
    pub fn files<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, FileTable>, Gone> {
        self.files.upgrade(cx)
    }

    /// Root, working directory and umask.
    #[inline(always)]
    pub fn fs<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, FsContext>, Gone> {
        self.fs.upgrade(cx)
    }

    /// Whether the thread has a capability. One that is gone has none.
    pub fn has(&self, capability: Capability, cx: &Cx) -> bool {
        self.thread(cx).is_ok_and(|thread| thread.credentials.lock(cx).has(capability))
    }

    /// Checks that the thread has a capability.
    ///
    /// # Errors
    /// EPERM.
    pub fn require(&self, capability: Capability, cx: &Cx) -> Result<()> {
        if self.has(capability, cx) { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Whether it may look into another thread: see ptrace(2), "Ptrace access mode checking". Into those of its own process always.
    ///
    /// # Errors
    /// ESRCH if one of the two is gone.
    pub fn may_trace(&self, target: &Thread, by: TraceAs, cx: &Cx) -> Result<bool> {
        if target.process == self.process {
            return Ok(true);
        }
        let is_dumpable = target.process(cx)?.dumpable.load(Ordering::Relaxed) == 1;
        let own = self.thread(cx)?.credentials.lock(cx).clone();
        Ok(own.may_trace(&target.credentials.lock(cx), is_dumpable, by))
    }

    /// Makes user memory accessible after a copy faulted there.
    ///
    /// # Errors
    /// EFAULT if the program has no right to it; ENOMEM.
    pub fn fault_in_async(&mut self, cx: &mut Cx, fault: Fault) -> Result<()> {
        match memory::resolve(self, fault.address, fault.access, cx).map_err(|bad| bad.errno())? {
            Resolved::Now => return Ok(()),
            Resolved::Later => tasks::yield_async(cx),
        }
        self.interrupted(Interruption::KillOnly, cx).map_or(Ok(()), Err)
    }

    /// Lets interrupts in, and others run whose turn it is: for work that takes long.
    ///
    /// # Errors
    /// As for a wait that such a signal ends.
    pub fn pause_async(&mut self, cx: &mut Cx, interruption: Interruption) -> Result<()> {
        frame::irq::poll(cx);
        if tasks::must_yield(cx) {
            tasks::yield_async(cx);
        }
        self.interrupted(interruption, cx).map_or(Ok(()), Err)
    }

    /// The error with which a wait ends now because of a signal, if it must.
    pub fn interrupted(&self, interruption: Interruption, cx: &Cx) -> Option<Errno> {
        signal::interrupted(self, interruption, cx)
    }

    /// A system call whose time on the processor stands for that of all since the last one that was measured.
    #[cold]
    #[inline(never)]
    fn measured_call_async(&mut self, cx: &mut Cx) {
        self.until_sample = SAMPLE_INTERVAL - 1;
        let before = sched::own_cpu_time(cx);
        syscall::dispatch_async(cx, self);
        let took = sched::own_cpu_time(cx).saturating_sub(before);
        if let Ok(thread) = self.thread(cx) {
            let stands_for = took.saturating_mul(SAMPLE_INTERVAL.into());
            thread.system_time.fetch_add(stands_for, Ordering::Relaxed);
            sched::add_system_time(stands_for);
        }
    }

    /// Other tasks run before it goes on in user mode.
    fn was_preempted(&self, cx: &Cx) {
        if self.restartable.is_some()
            && let Ok(thread) = self.thread(cx)
        {
            thread.signals.add_work(signal::Work::RESTARTABLE);
        }
    }

    fn page_fault(&mut self, cx: &Cx, address: usize, access: Access) {
        if let Ok(thread) = self.thread(cx) {
            thread.minor_faults.fetch_add(1, Ordering::Relaxed);
        }
        match memory::resolve(self, address, access, cx) {
            Ok(Resolved::Now) => {}
            Ok(Resolved::Later) => tasks::request_yield(cx),
            Err(bad) => signal::raise_fault(self, bad, address, cx),
        }
    }
}

impl Body for Current {
    /// The life of a thread. Between two traps it keeps nothing on the stack, so a thread that is preempted in user mode owns none.
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        loop {
            if signal::is_pending(self, cx) && signal::deliver_async(cx, self) == signal::Outcome::Ended {
                return Next::End;
            }
            match self.space(cx) {
                Ok(space) => space.vm().activate(cx),
                Err(Gone) => return Next::End,
            }
            match self.context.run_async(cx) {
                Trap::Syscall => match self.until_sample.checked_sub(1) {
                    Some(left) => {
                        self.until_sample = left;
                        syscall::dispatch_async(cx, self);
                    }
                    None => self.measured_call_async(cx),
                },
                Trap::PageFault { address, access, .. } => self.page_fault(cx, address, access),
                Trap::Exception { vector, code } => signal::raise_exception(self, vector, code, cx),
                Trap::Preempted => {
                    self.was_preempted(cx);
                    return Next::Again;
                }
            }
        }
    }
}
