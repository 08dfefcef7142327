//! [`Pending`]: signals that were sent and not taken yet, of one thread or of a whole process.
//!
//! Standard signals coalesce: one that is pending already is not entered again. Real-time signals are queued, each with its information,
//! and are taken in the order in which they came. The lowest number is taken first, but faults of the thread itself before all.
//! The set of what is pending is mirrored in an atomic, so that to look costs one load.

use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicU64, Ordering};

use refs::{NoSuspend, SpinLock};

use super::{Info, Signal, SignalSet};
use crate::error::{Errno, Result};

/// Signals that were sent and not taken yet.
#[derive(Default)]
pub struct Pending {
    /// What is in the queue.
    set: AtomicU64,
    queue: SpinLock<Queue>,
}

impl Pending {
    /// Which signals are pending.
    #[inline(always)]
    pub fn set(&self) -> SignalSet {
        SignalSet(self.set.load(Ordering::Acquire))
    }

    /// Enters a signal, unless it coalesces with one that is pending.
    ///
    /// # Errors
    /// EAGAIN if `limit` (RLIMIT_SIGPENDING) signals are queued and it is a real-time one.
    pub fn push(&self, info: Info, limit: u64, cx: &impl NoSuspend) -> Result<()> {
        let mut queue = self.queue.lock(cx);
        queue.push(info, limit)?;
        self.set.store(queue.set.0, Ordering::Release);
        Ok(())
    }

    /// Takes the next signal out of those in `wanted`.
    pub fn take(&self, wanted: SignalSet, cx: &impl NoSuspend) -> Option<Info> {
        if self.set().intersection(wanted).is_empty() {
            return None;
        }
        let mut queue = self.queue.lock(cx);
        let info = queue.take(wanted);
        self.set.store(queue.set.0, Ordering::Release);
        info
    }

    /// Takes all signals of a set out, unseen.
    pub fn discard(&self, set: SignalSet, cx: &impl NoSuspend) {
        if self.set().intersection(set).is_empty() {
            return;
        }
        let mut queue = self.queue.lock(cx);
        queue.discard(set);
        self.set.store(queue.set.0, Ordering::Release);
    }

    /// Counts expirations of a POSIX timer whose signal is still pending; false if it is not.
    pub fn add_overrun(&self, timer: u32, times: u32, cx: &impl NoSuspend) -> bool {
        let mut queue = self.queue.lock(cx);
        let queued = queue.infos.iter_mut().find(|info| info.timer_id() == Some(timer));
        if let Some(info) = queued {
            info.add_overrun(times);
            return true;
        }
        false
    }

    /// How many signals are queued.
    pub fn len(&self, cx: &impl NoSuspend) -> usize {
        self.queue.lock(cx).infos.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.set().is_empty()
    }
}

#[derive(Default)]
struct Queue {
    infos: VecDeque<Info>,
    set: SignalSet,
}

impl Queue {
    fn push(&mut self, info: Info, limit: u64) -> Result<()> {
        if info.signal.is_real_time() {
            if self.infos.len() as u64 >= limit {
                return Err(Errno::EAGAIN);
            }
        } else if self.set.contains(info.signal) {
            return Ok(());
        }
        self.infos.push_back(info);
        self.set = self.set.union(info.signal.set());
        Ok(())
    }

    fn take(&mut self, wanted: SignalSet) -> Option<Info> {
        let wanted = self.set.intersection(wanted);
        if self.infos.len() == 1 && !wanted.is_empty() {
            // The usual case: what is wanted is what there is.
            self.set = SignalSet::EMPTY;
            return self.infos.pop_front();
        }
        let signal = wanted.intersection(SignalSet::FAULTS).first().or(wanted.first())?;
        let at = self.infos.iter().position(|info| info.signal == signal)?;
        let info = self.infos.remove(at);
        if !self.has(signal) {
            self.set = self.set.without(signal.set());
        }
        info
    }

    fn discard(&mut self, set: SignalSet) {
        self.infos.retain(|info| !set.contains(info.signal));
        self.set = self.set.without(set);
    }

    fn has(&self, signal: Signal) -> bool {
        self.infos.iter().any(|info| info.signal == signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(signals: &[(i32, u64)]) -> Queue {
        let mut queue = Queue::default();
        for &(signal, value) in signals {
            let info = Info { fields: [value, 0, 0, 0], ..Info::kernel(Signal::new(signal).unwrap()) };
            queue.push(info, 3).unwrap();
        }
        queue
    }

    #[test]
    fn standard_signals_coalesce_and_real_time_signals_queue_in_order() {
        let mut queue = queue(&[(40, 3), (10, 1), (10, 2), (40, 4)]);
        let taken: std::vec::Vec<_> = core::iter::from_fn(|| queue.take(SignalSet(!0)))
            .map(|info| (info.signal.number(), info.fields[0]))
            .collect();
        assert_eq!(taken, [(10, 1), (40, 3), (40, 4)]);
        assert!(queue.set.is_empty());
    }

    #[test]
    fn faults_come_before_lower_numbers() {
        assert_eq!(queue(&[(1, 0), (11, 0)]).take(SignalSet(!0)).map(|info| info.signal), Some(Signal::SEGV));
    }

    #[test]
    fn real_time_signals_are_limited_and_standard_ones_are_not() {
        let mut queue = queue(&[(34, 0), (34, 1), (34, 2)]);
        assert_eq!(queue.push(Info::kernel(Signal::new(35).unwrap()), 3), Err(Errno::EAGAIN));
        assert_eq!(queue.push(Info::kernel(Signal::TERM), 3), Ok(()));
    }

    #[test]
    fn what_is_discarded_is_not_taken() {
        let mut queue = queue(&[(20, 0), (18, 0)]);
        queue.discard(SignalSet::STOPS);
        assert_eq!(queue.set, Signal::CONT.set());
    }
}
