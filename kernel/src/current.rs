//! [`Current`]: what a running thread knows of itself. It is the body of the thread's task, and every system call gets it.

use core::any::Any;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::mm::{Access, Fault};
use frame::user::UserContext;
use linux_raw_sys::general::RLIMIT_STACK;
use refs::{Gone, SpinLock, TempRc, WeakRc};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::credentials::{Capability, Credentials, TraceAs};
use crate::error::{Errno, Result};
use crate::event::PollFd;
use crate::fs::{FileTable, FsContext, VfsCaller};
use crate::memory::{AddressSpace, BadAccess};
use crate::process::{Process, RseqRegistration, Thread, oom};
use crate::reclaim::Payer;
use crate::signal::Signal;
use crate::step::{Absent, Caller, Interruption, Patience, complete_async, complete_in_turn_async};
use crate::time::clock::TimeSpec;
use crate::user_memory::{
    HasMemory, InOut, Out, Readable, UserInOut, UserMemory, UserOut, UserPtr, UserSlice, Writable,
};
use crate::{arch, signal};

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
    /// The last fault, for the frame of its handler.
    pub fault: arch::Fault,
    /// What it has registered by rseq(2).
    pub restartable: Option<RseqRegistration>,
    /// How many system calls until one is measured, to tell time in the kernel from time in user mode.
    pub until_sample: u32,
    /// For how long it had run, in nanoseconds, when the last one was measured.
    pub sampled_at: u64,
}

/// What became of a fault that is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The page is accessible.
    Now,
    /// There is no memory just now, but a program was chosen to be ended: others must run, then the access is tried again.
    Later,
    /// A device was asked for the page: when it has come the access is tried again.
    WhenThere(Absent),
    /// Nothing is mapped there, but another thread is in the middle of a change: [`Current::resolve_in_turn_async`] waits for that.
    Unsettled,
}

/// What is known of the page that was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The processor has found nothing there that it may use.
    Absent,
    /// Nothing.
    Unknown,
}

/// One of about this many system calls is measured, and stands for all: at least half and at most half more.
pub const SAMPLE_INTERVAL: u32 = 64;

/// A call that was interrupted and goes on where it was, rather than anew.
#[derive(Clone, Copy, Debug)]
pub enum Restart {
    /// A sleep until a time (nanoseconds since boot), whose remainder is reported at an address (0: nowhere).
    Sleep {
        /// When it ends.
        until: u64,
        /// Where the rest is written if a handler ends it.
        remainder: UserOut<TimeSpec>,
    },
    /// `poll` until a time.
    Poll {
        /// The descriptors.
        fds: UserSlice<PollFd, InOut>,
        /// When it ends.
        until: u64,
    },
    /// `futex(FUTEX_WAIT)` until a time.
    Futex {
        /// The word.
        word: UserInOut<u32>,
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
    /// The thread behind what lower rooms know of it.
    ///
    /// # Errors
    /// ESRCH if it is none: there is no other kind of caller.
    #[inline]
    pub fn of(caller: &dyn VfsCaller) -> Result<&Current> {
        let any: &dyn Any = caller;
        any.downcast_ref().ok_or(Errno::ESRCH)
    }

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

    /// Notes for those who look at the thread where it waits outside of calls.
    pub fn note_wait_outside(&self, cx: &Cx) {
        if let Ok(thread) = self.thread(cx) {
            thread.blocked_call.note_outside(&self.context.registers);
        }
    }

    /// Makes the page of `address` accessible if the address space allows it; lets a stack grow.
    ///
    /// # Errors
    /// Why not. `NoMemory` only if this program itself is the one that was chosen to be ended, or there is none.
    #[inline]
    pub fn resolve(
        &self,
        address: usize,
        access: Access,
        presence: Presence,
        cx: &Cx,
    ) -> core::result::Result<Resolved, BadAccess> {
        let Ok(space) = self.space(cx) else { return Err(BadAccess::NotMapped) };
        let outcome = match presence {
            Presence::Absent => space.fault_absent(address, access, cx),
            Presence::Unknown => space.fault(address, access, cx),
        };
        match outcome {
            Ok(()) => Ok(Resolved::Now),
            Err(BadAccess::NotMapped) if space.is_claimed(cx) => Ok(Resolved::Unsettled),
            Err(bad) => self.resolve_bad(&space, bad, address, access, cx),
        }
    }

    /// As [`resolve`](Self::resolve), for what that has found unsettled: waits for its turn.
    ///
    /// # Errors
    /// Why not. Where a signal ends the process, nothing is decided.
    #[cold]
    pub fn resolve_in_turn_async(
        &mut self,
        cx: &mut Cx,
        address: usize,
        access: Access,
    ) -> core::result::Result<Resolved, BadAccess> {
        let settled = complete_in_turn_async(cx, self, |cx, me, waker| {
            let space = me.space(cx)?;
            Ok(match space.fault_step(address, access, waker, cx)? {
                Ok(()) => Ok(Resolved::Now),
                Err(bad) => me.resolve_bad(&space, bad, address, access, cx),
            })
        });
        settled.unwrap_or(Ok(Resolved::Later))
    }

    /// What a page's fault comes to that was not resolved at once: lets a stack grow, or has room made.
    fn resolve_bad(
        &self,
        space: &AddressSpace,
        bad: BadAccess,
        address: usize,
        access: Access,
        cx: &Cx,
    ) -> core::result::Result<Resolved, BadAccess> {
        let mut outcome = Err(bad);
        if bad == BadAccess::NotMapped
            && let Ok(thread) = self.thread(cx)
            && space.grow_stack(address, thread.limit(RLIMIT_STACK, cx).0, cx)
        {
            outcome = space.fault(address, access, cx);
        }
        match outcome {
            Ok(()) => Ok(Resolved::Now),
            Err(BadAccess::NoMemory) => oom::make_room(self, cx).map(|()| Resolved::Later),
            Err(BadAccess::Absent(absent)) => Ok(Resolved::WhenThere(absent)),
            Err(bad) => Err(bad),
        }
    }
}

impl Current {
    /// What must come before the page of `address` is accessible, if anything must: looked at once more.
    #[cold]
    pub fn still_absent(&self, address: usize, access: Access, cx: &Cx) -> Option<Absent> {
        match self.resolve(address, access, Presence::Unknown, cx) {
            Ok(Resolved::WhenThere(absent)) => Some(absent),
            _ => None,
        }
    }
}

impl Caller for Current {
    fn fault_in_async(&mut self, cx: &mut Cx, fault: Fault) -> Result<()> {
        let mut resolved = self.resolve(fault.address, fault.access, Presence::Unknown, cx);
        if resolved == Ok(Resolved::Unsettled) {
            resolved = self.resolve_in_turn_async(cx, fault.address, fault.access);
        }
        match resolved.map_err(|bad| bad.errno())? {
            Resolved::Now => return Ok(()),
            Resolved::WhenThere(absent) => {
                return absent.wait_async(cx, self, |cx, me| me.still_absent(fault.address, fault.access, cx));
            }
            Resolved::Later | Resolved::Unsettled => tasks::yield_async(cx),
        }
        self.interrupted(Interruption::KillOnly, cx).map_or(Ok(()), Err)
    }

    fn make_room_async(&mut self, cx: &mut Cx) -> Result<()> {
        oom::make_room_in_group(self, cx).map_err(|bad| bad.errno())?;
        tasks::yield_async(cx);
        self.interrupted(Interruption::KillOnly, cx).map_or(Ok(()), Err)
    }

    fn pause_async(&mut self, cx: &mut Cx, interruption: Interruption) -> Result<()> {
        tasks::pause_async(cx);
        self.interrupted(interruption, cx).map_or(Ok(()), Err)
    }

    #[inline]
    fn begin_wait(&self, interruption: Interruption, cx: &Cx) -> Result<()> {
        let thread = self.thread(cx).map_err(|_| Errno::EINTR)?;
        match signal::deliver::interrupted_thread(&thread, self, interruption, cx) {
            Some(error) => Err(error),
            None => {
                thread.blocked_call.note(&self.context.registers);
                Ok(())
            }
        }
    }

    fn interrupted(&self, interruption: Interruption, cx: &Cx) -> Option<Errno> {
        signal::deliver::interrupted(self, interruption, cx)
    }
}

impl Current {
    /// The calling program's memory.
    #[inline(always)]
    pub fn memory<'cx>(&self, cx: &'cx Cx) -> core::result::Result<UserMemory<'cx>, Gone> {
        Ok(UserMemory::new(self.space(cx)?.into_ref(), cx))
    }

    /// Reads a value, making memory accessible as needed.
    ///
    /// # Errors
    /// EFAULT.
    pub fn read_async<T: FromBytes + IntoBytes>(&mut self, cx: &mut Cx, from: UserPtr<T, impl Readable>) -> Result<T> {
        complete_async(cx, self, Patience::Forever, |cx, me, _| Ok(me.memory(cx)?.read(from)?))
    }

    /// Writes a value, making memory accessible as needed.
    ///
    /// # Errors
    /// EFAULT.
    pub fn write_async<T: IntoBytes + Immutable>(
        &mut self,
        cx: &mut Cx,
        to: UserPtr<T, impl Writable>,
        value: &T,
    ) -> Result<()> {
        complete_async(cx, self, Patience::Forever, |cx, me, _| Ok(me.memory(cx)?.write(to, value)?))
    }

    /// Writes bytes, as many as there is room for, making memory accessible as needed.
    ///
    /// # Errors
    /// EFAULT.
    pub fn write_bytes_async(&mut self, cx: &mut Cx, to: UserSlice<u8, Out>, bytes: &[u8]) -> Result<()> {
        complete_async(cx, self, Patience::Forever, |cx, me, _| Ok(me.memory(cx)?.write_slice(to, bytes)?))
    }
}

impl HasMemory for Current {
    #[inline(always)]
    fn space_name(&self) -> WeakRc<AddressSpace> {
        self.space
    }
}

impl VfsCaller for Current {
    #[inline(always)]
    fn as_dyn(&self) -> &dyn VfsCaller {
        self
    }

    #[inline(always)]
    fn files<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, FileTable>, Gone> {
        Current::files(self, cx)
    }

    #[inline(always)]
    fn fs<'cx>(&self, cx: &'cx Cx) -> core::result::Result<TempRc<'cx, FsContext>, Gone> {
        Current::fs(self, cx)
    }

    #[inline(always)]
    fn credentials<'cx>(&self, cx: &'cx Cx) -> core::result::Result<&'cx SpinLock<Credentials>, Gone> {
        Ok(&self.thread(cx)?.into_ref().credentials)
    }

    fn pid(&self, cx: &Cx) -> core::result::Result<u32, Gone> {
        Ok(self.process(cx)?.pid)
    }

    fn limit(&self, resource: u32, cx: &Cx) -> core::result::Result<u64, Gone> {
        Ok(self.process(cx)?.limits.lock(cx).soft(resource))
    }

    fn payer(&self, cx: &Cx) -> core::result::Result<Payer, Gone> {
        Ok(self.process(cx)?.payer(cx))
    }

    fn raise(&self, signal: Signal, cx: &Cx) {
        signal::send::raise(self, signal, cx);
    }
}
