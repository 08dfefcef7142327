//! Which data arrived out of order, and the SACK blocks that tell the peer so (RFC 2018, RFC 2883).
//!
//! Invariants: ranges are sorted, not empty, apart from each other, and lie after what was received in order. There are at most [`MOST_RANGES`]; data
//! that would need one more is not taken, and the peer sends it again.

use alloc::vec::Vec;

/// The most ranges.
pub(crate) const MOST_RANGES: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// Larger the later something was added to it.
    age: u64,
}

/// The ranges after a gap.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    ranges: Vec<Range>,
    additions: u64,
}

/// What became of data that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is remembered.
    New,
    /// All of it had arrived before: the range that it repeats.
    Repeated,
    /// There are too many ranges, or there is no memory for one more.
    Refused,
}

impl Assembler {
    /// Whether nothing is out of order.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The end of the last range.
    pub fn end(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end)
    }

    /// Remembers that the bytes of `start..end` arrived.
    pub fn add(&mut self, start: u64, end: u64) -> Added {
        self.additions += 1;
        let age = self.additions;
        // Those that touch it.
        let first = self.ranges.partition_point(|range| range.end < start);
        let after = self.ranges.partition_point(|range| range.start <= end);
        if first == after {
            if self.ranges.len() >= MOST_RANGES || self.ranges.try_reserve(1).is_err() {
                return Added::Refused;
            }
            self.ranges.insert(first, Range { start, end, age });
            return Added::New;
        }
        let old = self.ranges[first];
        if old.start <= start && end <= old.end {
            self.ranges[first].age = age;
            return Added::Repeated;
        }
        let whole = Range { start: start.min(old.start), end: end.max(self.ranges[after - 1].end), age };
        self.ranges[first] = whole;
        self.ranges.drain(first + 1..after);
        Added::New
    }

    /// All before `next` has arrived in order: forgets the ranges that this reaches, and returns how far it goes with them.
    pub fn advance(&mut self, next: u64) -> u64 {
        let mut next = next;
        let mut reached = 0;
        while let Some(range) = self.ranges.get(reached).filter(|range| range.start <= next) {
            next = next.max(range.end);
            reached += 1;
        }
        self.ranges.drain(..reached);
        if self.ranges.is_empty() {
            self.ranges = Vec::new();
        }
        next
    }

    /// Up to `most` ranges, the one that changed last first (RFC 2018, section 4).
    pub fn latest(&self, most: usize) -> impl Iterator<Item = (u64, u64)> {
        let mut before = u64::MAX;
        (0..most).map_while(move |_| {
            let range = self.ranges.iter().filter(|range| range.age < before).max_by_key(|range| range.age)?;
            before = range.age;
            Some((range.start, range.end))
        })
    }

    /// Bytes of memory that it holds.
    pub fn held_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(assembler: &Assembler) -> Vec<(u64, u64)> {
        assembler.latest(MOST_RANGES).collect()
    }

    #[test]
    fn ranges_join_where_they_touch() {
        let mut assembler = Assembler::default();
        assert_eq!(assembler.add(10, 20), Added::New);
        assert_eq!(assembler.add(30, 40), Added::New);
        assert_eq!(all(&assembler), [(30, 40), (10, 20)]);
        assert_eq!(assembler.add(12, 20), Added::Repeated);
        assert_eq!(all(&assembler), [(10, 20), (30, 40)]);
        assert_eq!(assembler.add(20, 30), Added::New);
        assert_eq!(all(&assembler), [(10, 40)]);
        assert_eq!(assembler.advance(9), 9);
        assert_eq!(assembler.advance(10), 40);
        assert!(assembler.is_empty());
    }

    #[test]
    fn there_are_only_so_many() {
        let mut assembler = Assembler::default();
        for at in 0..MOST_RANGES as u64 {
            assert_eq!(assembler.add(10 * at + 10, 10 * at + 15), Added::New);
        }
        assert_eq!(assembler.add(5000, 5001), Added::Refused);
        assert_eq!(assembler.add(15, 20), Added::New, "it joins two");
    }
}
