//! [`WaitQueue`]: wakers in the order in which they came.
//!
//! Nobody takes a waker out when its wait is over, so from time to time somebody must look for such. Nobody looks at more than some of them:
//! they stand in chunks of [`CHUNK`], and whoever begins a chunk looks through two others. A round is over before as many have come as there were
//! at its begin, so no more than about half are waits that are over.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::Waker;

/// So many wakers stand in a chunk: a page of them.
const CHUNK: usize = 256;

/// Wakers in the order in which they came. Nearly all queues are empty: such a one is one word.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue(Option<Box<Chunks>>);

#[derive(Debug, Default)]
struct Chunks {
    /// Those that came before the others. No chunk is empty.
    older: VecDeque<VecDeque<Waker>>,
    /// Which of them is to be looked through next.
    next: usize,
    newest: VecDeque<Waker>,
    /// Whether one that entered was exclusive.
    has_exclusive: bool,
    /// The queue behind this one, in a list of queues.
    behind: WaitQueue,
}

// Not left to the compiler: as queues may stand in queues it would call a function for each of the lists of each object that ends, of which nearly all are empty.
impl Drop for WaitQueue {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(chunks) = self.0.take() {
            drop_chunks(chunks);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_chunks(chunks: Box<Chunks>) {
    drop(chunks);
}

impl WaitQueue {
    pub(crate) const fn new() -> Self {
        WaitQueue(None)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|chunks| chunks.newest.is_empty() && chunks.older.is_empty())
    }

    /// Whether one that entered was exclusive, since the queue was made.
    pub(crate) fn has_exclusive(&self) -> bool {
        self.0.as_ref().is_some_and(|chunks| chunks.has_exclusive)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|chunks| chunks.older.iter().map(VecDeque::len).sum::<usize>() + chunks.newest.len()).sum()
    }

    /// Puts another queue behind this one, which is not empty and stands before none: each keeps what is its own.
    pub(crate) fn put_before(&mut self, behind: WaitQueue) {
        if let Some(chunks) = &mut self.0 {
            chunks.behind = behind;
        }
    }

    /// Takes the queue away that stands behind this one.
    pub(crate) fn take_behind(&mut self) -> WaitQueue {
        self.0.as_mut().map_or(WaitQueue::new(), |chunks| core::mem::take(&mut chunks.behind))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waker> {
        self.0.iter().flat_map(|chunks| chunks.older.iter().flatten().chain(&chunks.newest))
    }

    /// Enters one behind all others. Some of those whose wait is over go.
    ///
    /// Out of line: nearly all wait lists have their only waiter elsewhere, and entering that is quicker for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, waker: Waker) {
        self.0.get_or_insert_default().push(waker);
    }

    /// Takes out those that came first, `most` at most, and gives them to `take`; how many.
    pub(crate) fn take_first(&mut self, most: usize, mut take: impl FnMut(Waker)) -> usize {
        let Some(chunks) = &mut self.0 else { return 0 };
        let mut taken = 0;
        while taken < most {
            let is_older = !chunks.older.is_empty();
            let first = chunks.older.front_mut().unwrap_or(&mut chunks.newest);
            let count = first.len().min(most - taken);
            first.drain(..count).for_each(&mut take);
            taken += count;
            if !is_older {
                break;
            }
            if first.is_empty() {
                chunks.remove_older(0);
            }
        }
        taken
    }

    /// Throws out those that came first as long as their waits are over, `most` at most, and takes out the next.
    #[inline(always)]
    pub(crate) fn pop_behind_over(&mut self, most: usize) -> Option<Waker> {
        self.0.as_mut()?.pop_behind_over(most)
    }

    /// Takes out the one that came first.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        self.0.as_mut()?.pop()
    }
}

impl Chunks {
    fn push(&mut self, waker: Waker) {
        self.has_exclusive |= waker.is_exclusive();
        if self.newest.len() == self.newest.capacity() {
            self.make_room();
        }
        self.newest.push_back(waker);
    }

    #[inline(never)]
    fn pop(&mut self) -> Option<Waker> {
        let Some(first) = self.older.front_mut() else { return self.newest.pop_front() };
        let waker = first.pop_front();
        if first.is_empty() {
            self.remove_older(0);
        }
        waker
    }

    #[inline(never)]
    fn pop_behind_over(&mut self, most: usize) -> Option<Waker> {
        let mut left = most;
        while left > 0 {
            let is_older = !self.older.is_empty();
            let first = self.older.front_mut().unwrap_or(&mut self.newest);
            let over = first.iter().take(left).take_while(|waker| !waker.is_waiting()).count();
            first.drain(..over);
            if !is_older || !first.is_empty() {
                break;
            }
            left -= over;
            self.remove_older(0);
        }
        self.pop()
    }

    /// Throws out waits that are over. Room for as many as are left comes with it, or a new chunk: else many who come again in turn, each
    /// with one wait that is over, would each look at all.
    #[cold]
    fn make_room(&mut self) {
        self.newest.retain(|waker| waker.is_waiting());
        let left = self.newest.len();
        if left <= CHUNK / 2 {
            self.newest.reserve(left.max(1));
            return;
        }
        self.look_through_next();
        self.look_through_next();
        let full = core::mem::replace(&mut self.newest, VecDeque::with_capacity(CHUNK));
        self.older.push_back(full);
    }

    /// Throws those of an older chunk out whose wait is over.
    fn look_through_next(&mut self) {
        if self.next >= self.older.len() {
            self.next = 0;
        }
        let Some(chunk) = self.older.get_mut(self.next) else { return };
        chunk.retain(|waker| waker.is_waiting());
        if chunk.is_empty() {
            self.remove_older(self.next);
            return;
        }
        if chunk.len() < chunk.capacity() / 4 {
            chunk.shrink_to(2 * chunk.len());
        }
        self.next += 1;
    }

    fn remove_older(&mut self, at: usize) {
        self.older.remove(at);
        if at < self.next {
            self.next -= 1;
        }
    }
}

#[cfg(all(test, not(any(ebb_loom, ebb_shuttle))))]
mod tests {
    use std::boxed::Box;
    use std::vec::Vec;

    use super::*;
    use crate::WakeSlot;

    fn slots(count: usize) -> Vec<&'static WakeSlot> {
        (0..count).map(|_| &*Box::leak(Box::new(WakeSlot::new(|_| {})))).collect()
    }

    #[test]
    fn all_come_out_in_the_order_in_which_they_came() {
        let slots = slots(2000);
        let mut queue = WaitQueue::new();
        let wakers: Vec<Waker> = slots.iter().map(|slot| slot.prepare()).collect();
        wakers.iter().for_each(|waker| queue.push(*waker));
        assert_eq!(queue.len(), 2000);
        assert!(queue.iter().eq(&wakers));
        assert!(core::iter::from_fn(|| queue.pop()).eq(wakers));
        assert!(queue.is_empty());
    }

    #[test]
    fn some_at_a_time_come_out_in_the_order_in_which_they_came() {
        let slots = slots(2000);
        for most in [1, 32, 700, 3000] {
            let mut queue = WaitQueue::new();
            let wakers: Vec<Waker> = slots.iter().map(|slot| slot.prepare()).collect();
            wakers.iter().for_each(|waker| queue.push(*waker));
            let mut out = Vec::new();
            while queue.take_first(most, |waker| out.push(waker)) > 0 {}
            assert!(out == wakers && queue.is_empty());
        }
    }

    #[test]
    fn those_that_are_over_and_came_first_go_at_once() {
        let slots = slots(2000);
        for (over, most, left) in
            [(0, 9, 1999), (1, 9, 1998), (700, 9, 1990), (700, 600, 1399), (700, 701, 1299), (2000, 5000, 0)]
        {
            let mut queue = WaitQueue::new();
            let wakers: Vec<Waker> = slots.iter().map(|slot| slot.prepare()).collect();
            wakers.iter().for_each(|waker| queue.push(*waker));
            slots[..over].iter().for_each(|slot| _ = slot.finish());
            assert_eq!(queue.pop_behind_over(most), wakers.get(over.min(most)).copied());
            assert_eq!(queue.len(), left);
        }
    }

    #[test]
    fn waits_that_are_over_go_though_nobody_is_woken() {
        let slots = slots(1000);
        let mut queue = WaitQueue::new();
        for round in 0..20 {
            // Each tenth stays.
            for slot in slots.iter().enumerate().filter(|(at, _)| round == 0 || at % 10 != 0).map(|(_, slot)| slot) {
                slot.finish();
                queue.push(slot.prepare());
            }
            assert!(queue.len() <= 3 * slots.len(), "{} in round {round}", queue.len());
        }
        let mut waiting = Vec::new();
        while let Some(waker) = queue.pop() {
            waiting.extend(waker.is_waiting().then_some(waker));
        }
        assert_eq!(waiting.len(), 1000);
        let stayed: Vec<usize> = slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| waiting[..100].iter().any(|waker| core::ptr::eq(waker.slot(), **slot)))
            .map(|(at, _)| at)
            .collect();
        assert!(stayed.iter().all(|at| at % 10 == 0), "those that have waited longest come first");
    }

    #[test]
    fn who_comes_again_in_turn_does_not_look_at_all_each_time() {
        let slots = slots(100);
        let mut queue = WaitQueue::new();
        slots.iter().for_each(|slot| queue.push(slot.prepare()));
        let mut rooms = 0;
        for slot in slots.iter().cycle().take(10_000) {
            slot.finish();
            rooms +=
                usize::from(queue.0.as_ref().is_some_and(|chunks| chunks.newest.len() == chunks.newest.capacity()));
            queue.push(slot.prepare());
        }
        assert!(rooms <= 10_000 / 100 + 1, "{rooms}");
    }
}
