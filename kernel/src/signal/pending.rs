//! [`Pending`]: signals that were sent and not taken yet, of one thread or of a whole process.
//!
//! Standard signals coalesce: one that is pending already is not entered again. Real-time signals are queued, each with its information,
//! and are taken in the order in which they came. The lowest number is taken first, but faults of the thread itself before all.
//! The set of what is pending is mirrored in an atomic, so that to look costs one load.

use alloc::collections::{BTreeMap, LinkedList, VecDeque};
use core::sync::atomic::{AtomicU64, Ordering};

use refs::{NoSuspend, SpinLock};

use super::{Info, Signal, SignalSet};
use crate::error::{Errno, Result};
use crate::pieces::{Pieces, free_in_pieces};

/// Signals that were sent and not taken yet.
#[derive(Default)]
pub struct Pending {
    /// What is in the queue, and SIGKILL, which is not.
    set: AtomicU64,
    queue: SpinLock<Queue>,
}

impl Pending {
    /// Which signals are pending.
    #[inline(always)]
    pub fn set(&self) -> SignalSet {
        SignalSet(self.set.load(Ordering::SeqCst))
    }

    /// Enters a signal, unless it coalesces with one that is pending.
    ///
    /// # Errors
    /// EAGAIN if `limit` (RLIMIT_SIGPENDING) signals are queued and it is a real-time one.
    pub fn push(&self, info: Info, limit: u64, cx: &impl NoSuspend) -> Result<()> {
        let mut queue = self.queue.lock(cx);
        queue.push(info, limit)?;
        self.set.store(queue.set.0, Ordering::SeqCst);
        Ok(())
    }

    /// SIGKILL has come, for which nothing is queued: it is seen among what is pending.
    pub fn show_kill(&self) {
        self.set.fetch_or(Signal::KILL.set().0, Ordering::SeqCst);
    }

    /// Takes the next signal out of those in `wanted`.
    pub fn take(&self, wanted: SignalSet, cx: &impl NoSuspend) -> Option<Info> {
        if self.set().intersection(wanted).is_empty() {
            return None;
        }
        let mut queue = self.queue.lock(cx);
        let info = queue.take(wanted);
        self.set.store(queue.set.0, Ordering::SeqCst);
        info
    }

    /// Takes the next signal out of those in `wanted` if `give` has a use for it; whether there was one. Nobody comes between: a signal that `give` cannot use stays where it is.
    ///
    /// # Errors
    /// That of `give`.
    pub fn take_if<E>(
        &self,
        wanted: SignalSet,
        give: impl FnOnce(&Info) -> core::result::Result<(), E>,
        cx: &impl NoSuspend,
    ) -> core::result::Result<bool, E> {
        if self.set().intersection(wanted).is_empty() {
            return Ok(false);
        }
        let mut queue = self.queue.lock(cx);
        let Some(info) = queue.take(wanted) else { return Ok(false) };
        if let Err(error) = give(&info) {
            queue.put_back(info);
            return Err(error);
        }
        self.set.store(queue.set.0, Ordering::SeqCst);
        Ok(true)
    }

    /// Takes all signals of a set out, unseen.
    pub fn discard(&self, set: SignalSet, cx: &impl NoSuspend) {
        if self.set().intersection(set).is_empty() {
            return;
        }
        let mut queue = self.queue.lock(cx);
        queue.discard(set);
        self.set.store(queue.set.0, Ordering::SeqCst);
    }

    /// Counts expirations of a POSIX timer whose signal is still pending; false if it is not.
    pub fn add_overrun(&self, timer: u32, times: u32, cx: &impl NoSuspend) -> bool {
        let mut queue = self.queue.lock(cx);
        let Some((_, overrun)) = queue.timers.get_mut(&timer) else { return false };
        *overrun = overrun.saturating_add(times);
        true
    }

    /// The signal at that place among those that are queued, the standard ones first; it stays.
    pub fn peek(&self, at: usize, cx: &impl NoSuspend) -> Option<Info> {
        let queue = self.queue.lock(cx);
        match at.checked_sub(queue.standard.len()) {
            None => queue.standard.get(at).copied(),
            Some(mut at) => queue.real_time.values().find_map(|infos| match at.checked_sub(infos.len()) {
                None => infos.get(at),
                Some(behind) => {
                    at = behind;
                    None
                }
            }),
        }
    }

    /// How many signals are queued.
    pub fn len(&self, cx: &impl NoSuspend) -> usize {
        self.queue.lock(cx).len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.set().is_empty()
    }
}

#[derive(Default)]
struct Queue {
    /// One of each at most.
    standard: VecDeque<Info>,
    /// Those of each signal of which there are any, by its number.
    real_time: BTreeMap<u32, Infos>,
    /// How many real-time signals there are.
    queued: usize,
    /// The POSIX timers whose signal is here: which it is, and how often they have expired since it was sent.
    timers: BTreeMap<u32, (Signal, u32)>,
    set: SignalSet,
}

/// The real-time signals of one number, in order. They may be very many, so they stand in chunks: none is moved when there are more.
#[derive(Default)]
struct Infos(LinkedList<VecDeque<Info>>);

impl Infos {
    const CHUNK: usize = 32;

    fn push(&mut self, info: Info) {
        match self.0.back_mut() {
            Some(last) if last.len() < Self::CHUNK => last.push_back(info),
            _ => self.0.push_back(VecDeque::from([info])),
        }
    }

    /// The first one comes back.
    fn put_back(&mut self, info: Info) {
        match self.0.front_mut() {
            Some(first) if first.len() < Self::CHUNK => first.push_front(info),
            _ => self.0.push_front(VecDeque::from([info])),
        }
    }

    fn pop(&mut self) -> Option<Info> {
        let first = self.0.front_mut()?;
        let info = first.pop_front();
        if first.is_empty() {
            self.0.pop_front();
        }
        info
    }

    fn get(&self, at: usize) -> Option<Info> {
        let first = self.0.front()?;
        match at.checked_sub(first.len()) {
            None => first.get(at).copied(),
            Some(behind) => self.0.iter().nth(1 + behind / Self::CHUNK)?.get(behind % Self::CHUNK).copied(),
        }
    }

    fn len(&self) -> usize {
        let behind_first = self.0.len().saturating_sub(2) * Self::CHUNK;
        let edges = if self.0.len() > 1 { self.0.back().map_or(0, VecDeque::len) } else { 0 };
        self.0.front().map_or(0, VecDeque::len) + behind_first + edges
    }
}

impl Pieces for Infos {
    fn free_piece(&mut self) -> bool {
        const CHUNKS: usize = 64;
        (0..CHUNKS).all(|_| self.0.pop_front().is_some())
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        if self.0.len() > 1 {
            free_in_pieces(Infos(core::mem::take(&mut self.0)));
        }
    }
}

impl Queue {
    fn push(&mut self, info: Info, limit: u64) -> Result<()> {
        if info.signal.is_real_time() {
            if self.len() as u64 >= limit {
                return Err(Errno::EAGAIN);
            }
            self.real_time.entry(info.signal.number()).or_default().push(info);
            self.queued += 1;
        } else if self.set.contains(info.signal) {
            return Ok(());
        } else {
            self.standard.push_back(info);
        }
        if let Some(timer) = info.timer_id() {
            self.timers.insert(timer, (info.signal, 0));
        }
        self.set = self.set.union(info.signal.set());
        Ok(())
    }

    fn len(&self) -> usize {
        self.standard.len() + self.queued
    }

    fn take(&mut self, wanted: SignalSet) -> Option<Info> {
        let mut info = self.take_as_sent(wanted)?;
        if let Some(timer) = info.timer_id()
            && let Some((_, overrun)) = self.timers.remove(&timer)
        {
            info.add_overrun(overrun);
        }
        Some(info)
    }

    /// What was taken just now is the first one again.
    fn put_back(&mut self, info: Info) {
        if info.signal.is_real_time() {
            self.real_time.entry(info.signal.number()).or_default().put_back(info);
            self.queued += 1;
        } else {
            self.standard.push_front(info);
        }
        if let Some(timer) = info.timer_id() {
            // What it had overrun stands in it.
            self.timers.insert(timer, (info.signal, 0));
        }
        self.set = self.set.union(info.signal.set());
    }

    fn take_as_sent(&mut self, wanted: SignalSet) -> Option<Info> {
        let wanted = self.set.intersection(wanted);
        if self.len() == 1 && self.queued == 0 && !wanted.is_empty() {
            // The usual case: what is wanted is what there is.
            self.set = SignalSet::EMPTY;
            return self.standard.pop_front();
        }
        let signal = wanted.intersection(SignalSet::FAULTS).first().or(wanted.first())?;
        if !signal.is_real_time() {
            let at = self.standard.iter().position(|info| info.signal == signal)?;
            self.set = self.set.without(signal.set());
            return self.standard.remove(at);
        }
        let infos = self.real_time.get_mut(&signal.number())?;
        let info = infos.pop();
        self.queued -= usize::from(info.is_some());
        if infos.0.is_empty() {
            self.real_time.remove(&signal.number());
            self.set = self.set.without(signal.set());
        }
        info
    }

    fn discard(&mut self, set: SignalSet) {
        self.standard.retain(|info| !set.contains(info.signal));
        let queued = &mut self.queued;
        self.real_time.retain(|_, infos| {
            let goes = infos.0.front().and_then(VecDeque::front).is_none_or(|info| set.contains(info.signal));
            *queued -= if goes { infos.len() } else { 0 };
            !goes
        });
        self.timers.retain(|_, (signal, _)| !set.contains(*signal));
        self.set = self.set.without(set);
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
    fn what_is_put_back_is_taken_next() {
        let numbers: std::vec::Vec<_> = (0..100).map(|value| (34, value)).collect();
        let mut queue = Queue::default();
        for &(signal, value) in &numbers {
            let info = Info { fields: [value, 0, 0, 0], ..Info::kernel(Signal::new(signal).unwrap()) };
            queue.push(info, 100).unwrap();
        }
        queue.push(Info::kernel(Signal::TERM), 0).unwrap();
        for (left, value) in
            [(Signal::TERM, 0)].into_iter().chain((0..100).map(|value| (Signal::new(34).unwrap(), value)))
        {
            for _ in 0..2 {
                let len = queue.len();
                let info = queue.take(SignalSet(!0)).unwrap();
                assert_eq!((info.signal, info.fields[0]), (left, value));
                queue.put_back(info);
                assert_eq!(queue.len(), len);
            }
            queue.take(SignalSet(!0)).unwrap();
        }
        assert!(queue.set.is_empty() && queue.len() == 0 && queue.real_time.is_empty());
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
