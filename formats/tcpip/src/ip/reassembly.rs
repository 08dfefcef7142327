//! Fragments become datagrams again (RFC 791, RFC 8200 section 4.5, RFC 5722).
//!
//! Memory and time are bounded: so many datagrams, so many bytes over all, so long for each. A datagram whose fragments overlap, or disagree on where it ends, is
//! given up whole, for that is how firewalls are deceived. Where there is no room the oldest datagram makes some.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::Malformed;
use crate::time::{Duration, Instant};

use super::packet::{Fragment, LONGEST_DATAGRAM, Packet, Walk};

/// Fragments of one datagram, at most.
const MOST_FRAGMENTS: usize = 64;

/// What bounds a [`Reassembler`].
#[derive(Clone, Copy, Debug)]
pub struct ReassemblyLimits {
    /// Datagrams that are incomplete.
    pub datagrams: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// How long each may take.
    pub time: Duration,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        ReassemblyLimits { datagrams: 64, bytes: 1 << 20, time: Duration::from_secs(30) }
    }
}

/// A datagram that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    hop_limit: u8,
    traffic_class: u8,
    payload: Vec<u8>,
}

impl Datagram {
    /// The packet that it would have been.
    ///
    /// # Errors
    ///
    /// Its extension headers are wrong.
    pub fn packet(&self) -> Result<Packet<'_>, Malformed> {
        let mut packet = Packet {
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            fragment: None,
            payload: &self.payload,
        };
        if self.source.is_ipv6() {
            let walk = Walk { protocol: self.protocol, fragment: None, payload: &self.payload };
            let end = walk.into_payload(false)?;
            if end.fragment.is_some() {
                return Err(Malformed);
            }
            (packet.protocol, packet.payload) = (end.protocol, end.payload);
        }
        Ok(packet)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    /// Of IPv4 only.
    protocol: Option<u8>,
    id: u32,
}

#[derive(Debug)]
struct Partial {
    key: Key,
    began: Instant,
    /// Of the fragment at the beginning.
    first: Option<(u8, u8, u8)>,
    /// Where it ends, once the last fragment has come.
    len: Option<usize>,
    data: Vec<u8>,
    /// What has come: starts and ends, sorted.
    ranges: Vec<(usize, usize)>,
}

/// What a fragment did to its datagram.
enum Step {
    Incomplete,
    Complete,
    /// It contradicts what came before.
    Contradiction,
}

/// All datagrams that are incomplete, the oldest first.
#[derive(Debug)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    partials: VecDeque<Partial>,
    bytes: usize,
}

impl Reassembler {
    /// One with such limits.
    pub fn new(limits: ReassemblyLimits) -> Self {
        Reassembler { limits, partials: VecDeque::new(), bytes: 0 }
    }

    /// Bytes that are kept.
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// When the oldest datagram is given up, by [`expire`](Reassembler::expire).
    pub fn deadline(&self) -> Option<Instant> {
        self.partials.front().map(|oldest| oldest.began + self.limits.time)
    }

    /// Gives up datagrams that have taken too long.
    pub fn expire(&mut self, now: Instant) {
        while self.deadline().is_some_and(|at| at <= now) {
            self.remove(0);
        }
    }

    /// Takes in a packet that is a fragment. Returns the datagram if it is complete now; any other packet, and a fragment for which there is no memory, is dropped.
    pub fn push(&mut self, now: Instant, packet: &Packet<'_>) -> Option<Datagram> {
        let fragment = packet.fragment?;
        self.expire(now);
        let index = self.find(now, packet, fragment)?;
        let partial = &mut self.partials[index];
        let before = partial.data.capacity();
        let step = partial.add(packet, fragment);
        self.bytes = self.bytes - before + partial.data.capacity();
        match step {
            Some(Step::Complete) => {}
            Some(Step::Incomplete) => {
                self.make_room(index);
                return None;
            }
            // Without memory, or contradicted, nothing can become of it.
            Some(Step::Contradiction) | None => {
                self.remove(index);
                return None;
            }
        }
        let partial = self.remove(index)?;
        let (protocol, hop_limit, traffic_class) = partial.first?;
        let Key { source, destination, .. } = partial.key;
        Some(Datagram { source, destination, protocol, hop_limit, traffic_class, payload: partial.data })
    }

    fn find(&mut self, now: Instant, packet: &Packet<'_>, fragment: Fragment) -> Option<usize> {
        let key = Key {
            source: packet.source,
            destination: packet.destination,
            protocol: packet.source.is_ipv4().then_some(packet.protocol),
            id: fragment.id,
        };
        if let Some(index) = self.partials.iter().position(|partial| partial.key == key) {
            return Some(index);
        }
        if self.partials.len() >= self.limits.datagrams.max(1) {
            self.remove(0);
        }
        self.partials.try_reserve(1).ok()?;
        self.partials.push_back(Partial {
            key,
            began: now,
            first: None,
            len: None,
            data: Vec::new(),
            ranges: Vec::new(),
        });
        Some(self.partials.len() - 1)
    }

    /// Gives up the oldest ones, but at last the one at `keep` as well, until what is kept is within the limit.
    fn make_room(&mut self, mut keep: usize) {
        while self.bytes > self.limits.bytes && !self.partials.is_empty() {
            let oldest = usize::from(keep == 0 && self.partials.len() > 1);
            self.remove(oldest);
            keep = keep.saturating_sub(usize::from(oldest < keep));
        }
    }

    fn remove(&mut self, index: usize) -> Option<Partial> {
        let partial = self.partials.remove(index)?;
        self.bytes -= partial.data.capacity();
        Some(partial)
    }
}

impl Partial {
    /// `None`: there is no memory.
    fn add(&mut self, packet: &Packet<'_>, fragment: Fragment) -> Option<Step> {
        let start = fragment.offset;
        let end = start + packet.payload.len();
        let at = self.ranges.partition_point(|range| range.1 <= start);
        if self.ranges.get(at) == Some(&(start, end)) {
            // The same once more.
            return Some(Step::Incomplete);
        }
        let overlaps = self.ranges.get(at).is_some_and(|next| next.0 < end);
        let farthest = self.ranges.last().map_or(0, |last| last.1);
        let is_beyond = self.len.is_some_and(|len| end > len || !fragment.has_more && end != len);
        let is_short = !fragment.has_more && end < farthest;
        if overlaps || is_beyond || is_short || end > LONGEST_DATAGRAM || self.ranges.len() >= MOST_FRAGMENTS {
            return Some(Step::Contradiction);
        }
        self.ranges.try_reserve(1).ok()?;
        if self.data.len() < end {
            self.data.try_reserve_exact(end - self.data.len()).ok()?;
            self.data.resize(end, 0);
        }
        self.data[start..end].copy_from_slice(packet.payload);
        self.ranges.insert(at, (start, end));
        if start == 0 {
            self.first = Some((packet.protocol, packet.hop_limit, packet.traffic_class));
        }
        if !fragment.has_more {
            self.len = Some(end);
        }
        // They do not overlap, so their sum tells whether there is a gap.
        let sum: usize = self.ranges.iter().map(|(start, end)| end - start).sum();
        Some(if self.len == Some(sum) { Step::Complete } else { Step::Incomplete })
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    fn fragment(id: u32, offset: usize, has_more: bool, payload: &[u8]) -> Packet<'_> {
        Packet {
            source: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            destination: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
            protocol: 17,
            hop_limit: 64,
            traffic_class: 0,
            fragment: Some(Fragment { id, offset, has_more }),
            payload,
        }
    }

    #[test]
    fn fragments_in_any_order_become_the_datagram() {
        let bytes: Vec<u8> = (0..100).collect();
        let parts = [(0, 40), (40, 80), (80, 100)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
            let mut reassembler = Reassembler::new(ReassemblyLimits::default());
            let mut whole = None;
            for index in order {
                let (start, end) = parts[index];
                assert!(whole.is_none());
                let packet = fragment(1, start, end < 100, &bytes[start..end]);
                whole = reassembler.push(Instant::default(), &packet);
                if whole.is_none() {
                    assert!(reassembler.push(Instant::default(), &packet).is_none(), "twice the same");
                }
            }
            assert_eq!(whole.unwrap().packet().unwrap().payload, bytes);
            assert_eq!(reassembler.held_bytes(), 0);
        }
    }

    #[test]
    fn overlapping_fragments_end_it() {
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        let now = Instant::default();
        assert!(reassembler.push(now, &fragment(1, 0, true, &[1; 16])).is_none());
        assert!(reassembler.push(now, &fragment(1, 8, false, &[2; 16])).is_none());
        assert_eq!(reassembler.held_bytes(), 0);
    }

    #[test]
    fn memory_and_time_are_bounded() {
        let limits = ReassemblyLimits { datagrams: 4, bytes: 1000, time: Duration::from_secs(30) };
        let mut reassembler = Reassembler::new(limits);
        for id in 0..100 {
            reassembler.push(Instant::default(), &fragment(id, 8 * id as usize, true, &[0; 400]));
            assert!(reassembler.held_bytes() <= 1000 && reassembler.partials.len() <= 4);
        }
        reassembler.expire(Instant::default() + Duration::from_secs(30));
        assert_eq!((reassembler.held_bytes(), reassembler.deadline()), (0, None));
    }
}
