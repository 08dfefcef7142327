//! What was sent and is not yet acknowledged in order, and what is known of each part (RFC 2018, RFC 6675, RFC 8985).
//!
//! Invariants: the parts follow one another without gaps from `una` to the last byte sent, none is empty, and `in_flight` is the sum of those
//! in [`Fate::Flying`], `lost` of those in [`Fate::Lost`], `sacked` of those in [`Fate::Sacked`]. There are at most [`MOST_PARTS`]: a sender that has as many waits for
//! acknowledgments, and an acknowledgment that would need more is believed less.

use alloc::collections::VecDeque;

use crate::OutOfMemory;
use crate::time::Instant;

/// The most parts.
const MOST_PARTS: usize = 8192;

/// What is believed to have become of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is in the network.
    Flying,
    /// It was dropped, and has not been sent again since.
    Lost,
    /// The peer has it, out of order. It may still throw it away.
    Sacked,
}

/// Bytes (or a SYN, or a FIN) that were sent at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The first position.
    pub start: u64,
    /// The position after the last.
    pub end: u64,
    /// When it was sent last.
    pub sent_at: Instant,
    /// Whether it was sent more than once.
    pub is_retransmitted: bool,
    /// What became of it.
    pub fate: Fate,
}

impl Part {
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// All that was sent and not acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    parts: VecDeque<Part>,
    in_flight: usize,
    lost: usize,
    sacked: usize,
}

impl Scoreboard {
    /// Bytes in the network (`pipe`).
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Bytes that were lost and not sent again.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// Bytes that the peer has out of order.
    pub fn sacked(&self) -> usize {
        self.sacked
    }

    /// Whether all is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether another part may be sent.
    pub fn has_room(&self) -> bool {
        // Splitting may need a few.
        self.parts.len() < MOST_PARTS - 8
    }

    /// The parts, in order.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.parts.iter()
    }

    fn sum_of(&mut self, fate: Fate) -> &mut usize {
        match fate {
            Fate::Flying => &mut self.in_flight,
            Fate::Lost => &mut self.lost,
            Fate::Sacked => &mut self.sacked,
        }
    }

    fn set_fate(&mut self, at: usize, fate: Fate) {
        let part = self.parts[at];
        *self.sum_of(part.fate) -= part.len();
        *self.sum_of(fate) += part.len();
        self.parts[at].fate = fate;
    }

    /// New data up to `end` was sent; it begins where the last part ends.
    ///
    /// # Errors
    ///
    /// There is no memory, so it must not be sent.
    pub fn push(&mut self, start: u64, end: u64, now: Instant) -> Result<(), OutOfMemory> {
        self.parts.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.parts.push_back(Part { start, end, sent_at: now, is_retransmitted: false, fate: Fate::Flying });
        self.in_flight += (end - start) as usize;
        Ok(())
    }

    /// Divides the part that contains `at` there. Returns the index of the part that begins at `at`; `None` if there is no room or it is outside.
    fn split(&mut self, at: u64) -> Option<usize> {
        let index = self.parts.partition_point(|part| part.end <= at);
        let part = *self.parts.get(index)?;
        if part.start >= at {
            return Some(index);
        }
        if self.parts.len() >= MOST_PARTS || self.parts.try_reserve(1).is_err() {
            return None;
        }
        self.parts[index].end = at;
        self.parts.insert(index + 1, Part { start: at, ..part });
        Some(index + 1)
    }

    /// All before `una` is acknowledged. Calls `delivered` for each part (or a piece of one) that was not already known to have arrived.
    pub fn acknowledge(&mut self, una: u64, mut delivered: impl FnMut(&Part)) {
        while let Some(part) = self.parts.front().copied().filter(|part| part.start < una) {
            let gone = Part { end: part.end.min(una), ..part };
            *self.sum_of(part.fate) -= gone.len();
            if part.end <= una {
                self.parts.pop_front();
            } else {
                self.parts[0].start = una;
            }
            if part.fate != Fate::Sacked {
                delivered(&gone);
            }
        }
        if self.parts.is_empty() {
            self.parts = VecDeque::new();
        }
    }

    /// The peer has `start..end` out of order. Calls `delivered` for each part that was not known to have arrived.
    pub fn sack(&mut self, start: u64, end: u64, mut delivered: impl FnMut(&Part)) {
        let Some(first) = self.split(start) else { return };
        // Splitting may fail for want of memory: then only whole parts count.
        if self.parts.back().is_some_and(|last| last.end > end) {
            self.split(end);
        }
        let mut index = first;
        while let Some(part) = self.parts.get(index).copied().filter(|part| part.end <= end) {
            if part.fate != Fate::Sacked {
                self.set_fate(index, Fate::Sacked);
                delivered(&part);
            }
            // Neighbours become one, so that the list stays short.
            match index.checked_sub(1).map(|before| self.parts[before]) {
                Some(before) if before.fate == Fate::Sacked && before.end == part.start => {
                    let merged = Part {
                        end: part.end,
                        sent_at: before.sent_at.max(part.sent_at),
                        is_retransmitted: before.is_retransmitted || part.is_retransmitted,
                        ..before
                    };
                    self.parts[index - 1] = merged;
                    self.parts.remove(index);
                }
                _ => index += 1,
            }
        }
    }

    /// Marks the parts as lost that are in the network and of which `is_lost` says so. Returns how many bytes these are.
    pub fn mark_lost(&mut self, mut is_lost: impl FnMut(&Part) -> bool) -> usize {
        let before = self.lost;
        for index in 0..self.parts.len() {
            let part = self.parts[index];
            if part.fate == Fate::Flying && is_lost(&part) {
                self.set_fate(index, Fate::Lost);
            }
        }
        self.lost - before
    }

    /// Marks the first `most` bytes as lost if they are in the network. Returns how many bytes these are.
    pub fn mark_head_lost(&mut self, most: usize) -> usize {
        let Some(head) = self.parts.front().copied().filter(|head| head.fate == Fate::Flying) else { return 0 };
        if head.len() > most {
            self.split(head.start + most as u64);
        }
        let before = self.lost;
        self.set_fate(0, Fate::Lost);
        self.lost - before
    }

    /// The peer threw away what it had out of order (RFC 2018, section 8): nothing of it may be believed.
    pub fn forget_sacks(&mut self) {
        for index in 0..self.parts.len() {
            if self.parts[index].fate == Fate::Sacked {
                self.set_fate(index, Fate::Flying);
            }
        }
    }

    /// Nothing was lost after all.
    pub fn mark_flying(&mut self) {
        for index in 0..self.parts.len() {
            if self.parts[index].fate == Fate::Lost {
                self.set_fate(index, Fate::Flying);
            }
        }
    }

    /// The first lost bytes, at most so many.
    pub fn first_lost(&self, most: usize) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let part = self.parts.iter().find(|part| part.fate == Fate::Lost)?;
        Some((part.start, part.end.min(part.start + most as u64)))
    }

    /// The last bytes that are not known to have arrived, at most so many.
    pub fn last_missing(&self, most: usize) -> Option<(u64, u64)> {
        let part = self.parts.iter().rev().find(|part| part.fate != Fate::Sacked)?;
        Some((part.start.max(part.end.saturating_sub(most as u64)), part.end))
    }

    /// `start..end`, which are within one part, were sent again.
    pub fn retransmitted(&mut self, start: u64, end: u64, now: Instant) {
        let Some(index) = self.split(start) else { return };
        if self.parts[index].end > end {
            self.split(end);
        }
        if self.parts[index].fate == Fate::Lost {
            self.set_fate(index, Fate::Flying);
        }
        let part = &mut self.parts[index];
        (part.sent_at, part.is_retransmitted) = (now, true);
    }

    /// Bytes of memory that it holds.
    pub fn held_bytes(&self) -> usize {
        self.parts.capacity() * size_of::<Part>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(5);

    fn check(board: &Scoreboard) {
        for fate in [Fate::Flying, Fate::Lost, Fate::Sacked] {
            let sum: usize = board.parts().filter(|part| part.fate == fate).map(Part::len).sum();
            let kept = [board.in_flight, board.lost, board.sacked][fate as usize];
            assert_eq!(sum, kept, "{fate:?}");
        }
        assert!(board.parts.iter().zip(board.parts.iter().skip(1)).all(|(one, next)| one.end == next.start));
    }

    #[test]
    fn each_byte_is_counted_once() {
        let mut board = Scoreboard::default();
        board.push(100, 1100, NOW).unwrap();
        board.push(1100, 2100, NOW).unwrap();
        let mut delivered = 0;
        board.sack(1000, 1500, |part| delivered += part.len());
        check(&board);
        assert_eq!((board.in_flight(), board.sacked(), delivered), (1500, 500, 500));
        board.sack(900, 1600, |part| delivered += part.len());
        check(&board);
        assert_eq!((board.sacked(), delivered), (700, 700));
        assert_eq!(board.mark_lost(|part| part.end <= 1000), 800);
        assert_eq!(board.first_lost(500), Some((100, 600)));
        board.retransmitted(100, 600, NOW);
        check(&board);
        assert_eq!((board.lost(), board.in_flight()), (300, 1000));
        assert_eq!(board.last_missing(100), Some((2000, 2100)));
        board.acknowledge(950, |part| delivered += part.len());
        check(&board);
        assert_eq!(delivered, 700 + 800);
        board.acknowledge(2100, |part| delivered += part.len());
        check(&board);
        assert_eq!(delivered, 2000);
        assert!(board.is_empty());
    }

    #[test]
    fn what_is_not_outstanding_is_not_sacked() {
        let mut board = Scoreboard::default();
        board.push(100, 200, NOW).unwrap();
        board.sack(300, 400, |_| panic!("nothing of it was sent"));
        board.sack(0, 100, |_| panic!("all of it was acknowledged"));
        check(&board);
    }
}
