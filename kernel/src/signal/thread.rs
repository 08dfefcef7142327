//! [`ThreadSignals`]: what a thread has of signals: what it blocks, what is pending for it alone, its alternate stack, and the word
//! that says what is to be done before it goes on in user mode.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitflags::bitflags;
use linux_raw_sys::general as abi;
use refs::SpinLock;

use super::{Pending, Signal, SignalSet};
use crate::arch::signal_frame::StackT;
use crate::error::{Errno, Result};

bitflags! {
    /// What is to be done before a thread goes on in user mode.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Work: u32 {
        /// A signal that it does not block may be pending.
        const SIGNAL = 1;
        /// It must exit.
        const EXIT = 2;
        /// It must stop, until this is taken away.
        const STOP = 4;
        /// Its mask is a temporary one.
        const RESTORE_MASK = 8;
        /// A call was interrupted: it is restarted, or fails with EINTR.
        const RESTART = 16;
        /// It runs for the first time and writes its id where clone(2) was told.
        const BORN = 32;
        /// It was preempted, perhaps in a restartable sequence.
        const RESTARTABLE = 64;
        /// It was told on which cores it may run.
        const MOVE = 128;
        /// Its control group freezes, or did: it stands still as long as that is so.
        const FREEZE = 256;
        /// A control group of its may have used up its time on the processor: it waits until there is more.
        const THROTTLE = 512;
        /// It has taken memory beyond what a control group of its should have: it waits for that.
        const PAY = 1024;
        /// It is traced, and is to stop.
        const TRAP = 2048;
    }
}

/// The alternate signal stack: see sigaltstack(2).
#[derive(Clone, Copy, Debug, Default)]
pub struct AltStack {
    /// Its lowest address.
    pub base: u64,
    /// Its size in bytes; 0 if there is none.
    pub size: u64,
    /// Whether it is forgotten while a handler runs on it (SS_AUTODISARM).
    pub auto_disarm: bool,
}

impl AltStack {
    /// Whether a stack pointer lies in it.
    pub fn contains(&self, sp: usize) -> bool {
        !self.auto_disarm && (sp as u64).wrapping_sub(self.base).wrapping_sub(1) < self.size
    }

    /// As a program sees it whose stack pointer is `sp`.
    pub fn encode(self, sp: usize) -> StackT {
        let state = if self.size == 0 {
            abi::SS_DISABLE
        } else if self.contains(sp) {
            abi::SS_ONSTACK
        } else {
            0
        };
        let flags = state | if self.auto_disarm { abi::SS_AUTODISARM } else { 0 };
        StackT { base: self.base, flags, padding: 0, size: self.size }
    }

    /// The alternate stack that a program asks for.
    ///
    /// # Errors
    /// EINVAL for flags that are not there; ENOMEM if it is too small.
    pub fn decode(stack: &StackT) -> Result<Self> {
        let auto_disarm = stack.flags & abi::SS_AUTODISARM != 0;
        match stack.flags & !abi::SS_AUTODISARM {
            abi::SS_DISABLE => Ok(AltStack::default()),
            0 | abi::SS_ONSTACK if stack.size < u64::from(abi::MINSIGSTKSZ) => Err(Errno::ENOMEM),
            0 | abi::SS_ONSTACK => Ok(AltStack { base: stack.base, size: stack.size, auto_disarm }),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// What a thread has of signals.
///
/// Who sends from another core enters the signal in a [`Pending`] and looks then what is blocked and waited for; the thread changes what it blocks or waits for and looks then
/// what is pending. All of these accesses, and those of the slot in which the thread waits, are sequentially consistent: so at least one of the two sees the other.
#[derive(Default)]
pub struct ThreadSignals {
    work: AtomicU32,
    blocked: AtomicU64,
    /// What is blocked again once `RESTORE_MASK` is done.
    saved: AtomicU64,
    /// Sent to this thread alone.
    pub pending: Pending,
    /// Where handlers with SA_ONSTACK run.
    pub alt_stack: SpinLock<AltStack>,
    /// What rt_sigtimedwait waits for: these wake it although they are blocked.
    waited: AtomicU64,
}

impl ThreadSignals {
    /// A thread that starts with this mask.
    pub fn new(blocked: SignalSet, alt_stack: AltStack) -> Self {
        ThreadSignals {
            blocked: AtomicU64::new(blocked.0),
            alt_stack: SpinLock::new(alt_stack),
            ..ThreadSignals::default()
        }
    }

    /// What is to be done.
    #[inline(always)]
    pub fn work(&self) -> Work {
        Work::from_bits_retain(self.work.load(Ordering::SeqCst))
    }

    /// Adds to what is to be done.
    pub fn add_work(&self, work: Work) {
        self.work.fetch_or(work.bits(), Ordering::SeqCst);
    }

    /// Takes from what is to be done; what there was before.
    pub fn remove_work(&self, work: Work) -> Work {
        Work::from_bits_retain(self.work.fetch_and(!work.bits(), Ordering::SeqCst))
    }

    /// What is blocked.
    #[inline]
    pub fn blocked(&self) -> SignalSet {
        SignalSet(self.blocked.load(Ordering::SeqCst))
    }

    /// Blocks these and nothing else; which of them were not blocked before. [`look_again`](Self::look_again) must follow.
    pub fn set_blocked(&self, set: SignalSet) -> SignalSet {
        let blocked = set.without(SignalSet::UNBLOCKABLE);
        blocked.without(SignalSet(self.blocked.swap(blocked.0, Ordering::SeqCst)))
    }

    /// What is blocked now is blocked again once `RESTORE_MASK` is done, unless there is such a mask already.
    pub fn save_mask(&self) {
        if !self.work().contains(Work::RESTORE_MASK) {
            self.saved.store(self.blocked().0, Ordering::Release);
        }
        self.add_work(Work::RESTORE_MASK);
    }

    /// Ends the time of a temporary mask, if there is one. Gives back what is to be blocked after a handler that is about to run.
    pub fn take_saved_mask(&self) -> SignalSet {
        if self.remove_work(Work::RESTORE_MASK).contains(Work::RESTORE_MASK) {
            SignalSet(self.saved.load(Ordering::Acquire))
        } else {
            self.blocked()
        }
    }

    /// What is pending and not blocked.
    pub fn deliverable(&self, of_process: &Pending) -> SignalSet {
        self.pending.set().union(of_process.set()).without(self.blocked())
    }

    /// Whether the thread would take the signal now: it does not block it or waits for it.
    pub fn wants(&self, signal: Signal) -> bool {
        !self.blocked().contains(signal) || SignalSet(self.waited.load(Ordering::SeqCst)).contains(signal)
    }

    /// Says what rt_sigtimedwait waits for.
    pub fn set_waited(&self, set: SignalSet) {
        self.waited.store(set.0, Ordering::SeqCst);
    }

    /// Sets `Work::SIGNAL` anew, after a change of what is blocked or pending. It is taken away before the look: what is sent after that adds it again.
    pub fn look_again(&self, of_process: &Pending) {
        self.remove_work(Work::SIGNAL);
        if !self.deliverable(of_process).is_empty() {
            self.add_work(Work::SIGNAL);
        }
    }
}
