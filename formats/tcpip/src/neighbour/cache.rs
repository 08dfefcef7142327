//! The cache of neighbours: which device has an IP address (RFC 826; RFC 4861, section 7.3).
//!
//! Invariants: entries are sorted by address and at most as many as the limits say, each with at most so many packets that wait; an entry has packets that wait only
//! while it is [`Reachability::Incomplete`]. The packets are the caller's, of any type.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::OutOfMemory;
use crate::ethernet::HardwareAddress;
use crate::time::{Duration, Instant};

/// The time between questions, and how many are asked.
const RETRANSMIT: Duration = Duration::from_secs(1);
const MOST_QUESTIONS: u8 = 3;
/// How long a neighbour that has answered is known to be there.
const REACHABLE: Duration = Duration::from_secs(30);
/// How long something above may take to show that a neighbour is there before it is asked.
const DELAY: Duration = Duration::from_secs(5);
/// How long one that has not answered is not asked again.
const FAILED: Duration = Duration::from_secs(1);

/// What is known of a neighbour (`NUD_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// It was asked for, and has not answered yet.
    Incomplete,
    /// It has answered lately.
    Reachable,
    /// It has not been heard of for some time. Its address is still used.
    Stale,
    /// It is stale and was sent something: whether it is there will be seen.
    Delay,
    /// It is asked whether it is there.
    Probe,
    /// It did not answer.
    Failed,
    /// Somebody has said so who knows: it is not asked, and nothing that it says of itself counts.
    Permanent,
}

/// What bounds a [`NeighbourCache`].
#[derive(Clone, Copy, Debug)]
pub struct NeighbourLimits {
    /// Entries.
    pub entries: usize,
    /// Packets that wait for one neighbour.
    pub waiting: usize,
}

impl Default for NeighbourLimits {
    fn default() -> Self {
        NeighbourLimits { entries: 1024, waiting: 16 }
    }
}

#[derive(Debug)]
struct Entry<P> {
    address: IpAddr,
    /// Meaningless while it is incomplete or failed.
    hardware: HardwareAddress,
    state: Reachability,
    /// When the state ends; a stale one's does not.
    until: Option<Instant>,
    questions: u8,
    /// A question is to be sent.
    must_ask: bool,
    used: Instant,
    waiting: VecDeque<P>,
}

/// What becomes of a packet to a neighbour.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolution<P> {
    /// Send it to this device.
    Send(HardwareAddress, P),
    /// It waits. Another that waited for longest was dropped, if there were too many: it is given back. There may be a question to [ask](NeighbourCache::next_question).
    Waits(Option<P>),
    /// The neighbour does not answer, or there is no memory (`EHOSTUNREACH`).
    Unreachable(P),
}

/// A question to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Who has this address?
    pub target: IpAddr,
    /// The device to ask; `None`: all, by broadcast or the group of the address.
    pub device: Option<HardwareAddress>,
}

/// What a neighbour said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It answered a question.
    Answer,
    /// It said so by itself, or asked something.
    Hearsay,
    /// It said so by itself, and its old address is not to be replaced (the override flag of RFC 4861 is off).
    Weak,
}

/// The neighbours of one interface.
#[derive(Debug)]
pub struct NeighbourCache<P> {
    limits: NeighbourLimits,
    entries: Vec<Entry<P>>,
}

impl<P> NeighbourCache<P> {
    /// An empty one.
    pub fn new(limits: NeighbourLimits) -> Self {
        NeighbourCache { limits, entries: Vec::new() }
    }

    fn find(&self, address: IpAddr) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&address, |entry| entry.address)
    }

    /// The entry of an address, which is made if there is none, in place of the one that was not used for longest if there are too many.
    fn find_or_add(&mut self, now: Instant, address: IpAddr) -> Result<&mut Entry<P>, OutOfMemory> {
        let mut place = self.find(address);
        if place.is_err() {
            if self.entries.len() >= self.limits.entries.max(1) {
                let rank =
                    |entry: &Entry<P>| (entry.state == Reachability::Permanent, !entry.waiting.is_empty(), entry.used);
                let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| rank(entry));
                if let Some((index, _)) = oldest {
                    self.entries.remove(index);
                }
                place = self.find(address);
            }
            self.entries.try_reserve(1).map_err(|_| OutOfMemory)?;
        }
        let index = match place {
            Ok(index) => index,
            Err(index) => {
                let entry = Entry {
                    address,
                    hardware: HardwareAddress([0; 6]),
                    state: Reachability::Failed,
                    until: None,
                    questions: 0,
                    must_ask: false,
                    used: now,
                    waiting: VecDeque::new(),
                };
                self.entries.insert(index, entry);
                index
            }
        };
        Ok(&mut self.entries[index])
    }

    /// What is to become of a packet to a neighbour.
    pub fn resolve(&mut self, now: Instant, address: IpAddr, packet: P) -> Resolution<P> {
        let most_waiting = self.limits.waiting.max(1);
        let Ok(entry) = self.find_or_add(now, address) else { return Resolution::Unreachable(packet) };
        entry.used = now;
        match entry.state {
            Reachability::Reachable | Reachability::Delay | Reachability::Probe | Reachability::Permanent => {
                return Resolution::Send(entry.hardware, packet);
            }
            Reachability::Stale => {
                (entry.state, entry.until) = (Reachability::Delay, Some(now + DELAY));
                return Resolution::Send(entry.hardware, packet);
            }
            Reachability::Failed if entry.until.is_some_and(|until| until > now) => {
                return Resolution::Unreachable(packet);
            }
            Reachability::Failed => entry.ask(now, Reachability::Incomplete),
            Reachability::Incomplete => {}
        }
        let dropped = if entry.waiting.len() >= most_waiting { entry.waiting.pop_front() } else { None };
        if entry.waiting.try_reserve(1).is_err() {
            return Resolution::Unreachable(packet);
        }
        entry.waiting.push_back(packet);
        Resolution::Waits(dropped)
    }

    /// A neighbour said which device it is. Returns the packets that waited for it, to be sent there. What is only heard makes an entry only if `is_wanted`: it was asked for us.
    pub fn learn(
        &mut self,
        now: Instant,
        address: IpAddr,
        hardware: HardwareAddress,
        evidence: Evidence,
        is_wanted: bool,
    ) -> VecDeque<P> {
        if !hardware.is_unicast() || self.find(address).is_err() && (evidence == Evidence::Answer || !is_wanted) {
            return VecDeque::new();
        }
        let Ok(entry) = self.find_or_add(now, address) else { return VecDeque::new() };
        let is_known = !matches!(entry.state, Reachability::Incomplete | Reachability::Failed);
        let is_other = is_known && entry.hardware != hardware;
        if entry.state == Reachability::Permanent {
            return VecDeque::new();
        }
        match evidence {
            Evidence::Weak if is_other => {
                // It may be that it has moved: to be found out (RFC 4861, section 7.2.5).
                if entry.state == Reachability::Reachable {
                    (entry.state, entry.until) = (Reachability::Stale, None);
                }
            }
            Evidence::Answer => {
                entry.hardware = hardware;
                (entry.state, entry.until, entry.must_ask) = (Reachability::Reachable, Some(now + REACHABLE), false);
            }
            Evidence::Hearsay | Evidence::Weak => {
                if !is_known || is_other {
                    entry.hardware = hardware;
                    (entry.state, entry.until, entry.must_ask) = (Reachability::Stale, None, false);
                }
            }
        }
        core::mem::take(&mut entry.waiting)
    }

    /// Somebody who knows says which device a neighbour is: for ever (`Permanent`), or as if it had said so itself. Returns the packets that waited for it.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn set(
        &mut self,
        now: Instant,
        address: IpAddr,
        hardware: HardwareAddress,
        state: Reachability,
    ) -> Result<VecDeque<P>, OutOfMemory> {
        let entry = self.find_or_add(now, address)?;
        entry.hardware = hardware;
        entry.used = now;
        (entry.state, entry.must_ask) = (state, false);
        entry.until = (state == Reachability::Reachable).then_some(now + REACHABLE);
        Ok(core::mem::take(&mut entry.waiting))
    }

    /// Something above has shown that a neighbour gets what is sent to it, as an acknowledgment of new data does.
    pub fn confirm(&mut self, now: Instant, address: IpAddr) {
        if let Ok(index) = self.find(address) {
            let entry = &mut self.entries[index];
            if !matches!(entry.state, Reachability::Incomplete | Reachability::Failed | Reachability::Permanent) {
                (entry.state, entry.until, entry.must_ask) = (Reachability::Reachable, Some(now + REACHABLE), false);
            }
        }
    }

    /// The next question to send.
    pub fn next_question(&mut self) -> Option<Question> {
        let entry = self.entries.iter_mut().find(|entry| entry.must_ask)?;
        entry.must_ask = false;
        let device = (entry.state == Reachability::Probe).then_some(entry.hardware);
        Some(Question { target: entry.address, device })
    }

    /// When [`on_deadline`](NeighbourCache::on_deadline) is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.entries.iter().filter_map(|entry| entry.until).min()
    }

    /// Does what is due. Calls `failed` with each packet whose neighbour did not answer: its sender may be told. Then there may be [questions](NeighbourCache::next_question).
    pub fn on_deadline(&mut self, now: Instant, mut failed: impl FnMut(IpAddr, P)) {
        for entry in &mut self.entries {
            if entry.until.is_none_or(|until| until > now) {
                continue;
            }
            match entry.state {
                Reachability::Reachable => (entry.state, entry.until) = (Reachability::Stale, None),
                Reachability::Delay => {
                    entry.questions = 0;
                    entry.ask(now, Reachability::Probe);
                }
                Reachability::Incomplete | Reachability::Probe if entry.questions < MOST_QUESTIONS => {
                    entry.ask(now, entry.state);
                }
                Reachability::Incomplete | Reachability::Probe => {
                    (entry.state, entry.until) = (Reachability::Failed, Some(now + FAILED));
                    (entry.questions, entry.must_ask) = (0, false);
                    for packet in core::mem::take(&mut entry.waiting) {
                        failed(entry.address, packet);
                    }
                }
                Reachability::Failed | Reachability::Stale | Reachability::Permanent => entry.until = None,
            }
        }
        self.entries.retain(|entry| entry.state != Reachability::Failed || entry.until.is_some());
    }

    /// Forgets a neighbour, and returns the packets that waited for it.
    pub fn remove(&mut self, address: IpAddr) -> VecDeque<P> {
        self.find(address).map(|index| self.entries.remove(index).waiting).unwrap_or_default()
    }

    /// All neighbours: address, device, and what is known.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, Option<HardwareAddress>, Reachability)> {
        self.entries.iter().map(|entry| {
            let is_known = !matches!(entry.state, Reachability::Incomplete | Reachability::Failed);
            (entry.address, is_known.then_some(entry.hardware), entry.state)
        })
    }
}

impl<P> Entry<P> {
    fn ask(&mut self, now: Instant, state: Reachability) {
        self.state = state;
        self.until = Some(now + RETRANSMIT);
        self.questions += 1;
        self.must_ask = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 9]);

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn packets_wait_until_the_neighbour_answers() {
        let mut cache = NeighbourCache::new(NeighbourLimits { entries: 8, waiting: 2 });
        let now = Instant::default();
        assert_eq!(cache.resolve(now, address(1), 'a'), Resolution::Waits(None));
        assert_eq!(cache.next_question(), Some(Question { target: address(1), device: None }));
        assert_eq!(cache.next_question(), None);
        assert_eq!(cache.resolve(now, address(1), 'b'), Resolution::Waits(None));
        assert_eq!(cache.resolve(now, address(1), 'c'), Resolution::Waits(Some('a')));
        assert_eq!(cache.learn(now, address(1), DEVICE, Evidence::Answer, true), ['b', 'c']);
        assert_eq!(cache.resolve(now, address(1), 'd'), Resolution::Send(DEVICE, 'd'));
        assert!(cache.learn(now, address(2), DEVICE, Evidence::Answer, true).is_empty());
        assert_eq!(cache.iter().count(), 1, "nobody had asked");
    }

    #[test]
    fn what_is_set_for_ever_is_not_asked_for_and_does_not_change() {
        let mut cache = NeighbourCache::new(NeighbourLimits::default());
        let now = Instant::default();
        assert_eq!(cache.resolve(now, address(1), 'a'), Resolution::Waits(None));
        assert_eq!(cache.set(now, address(1), DEVICE, Reachability::Permanent).unwrap(), ['a']);
        let other = HardwareAddress([2, 0, 0, 0, 0, 8]);
        assert!(cache.learn(now, address(1), other, Evidence::Answer, true).is_empty());
        cache.on_deadline(now + Duration::from_secs(1000), |_, _| ());
        assert_eq!(cache.resolve(now, address(1), 'b'), Resolution::Send(DEVICE, 'b'));
        assert_eq!(cache.next_question(), None);
    }

    #[test]
    fn who_does_not_answer_is_given_up() {
        let mut cache = NeighbourCache::new(NeighbourLimits::default());
        let mut now = Instant::default();
        cache.resolve(now, address(1), 'a');
        let mut questions = 0;
        let mut failed = Vec::new();
        while let Some(at) = cache.deadline().filter(|_| failed.is_empty()) {
            questions += usize::from(cache.next_question().is_some());
            now = at;
            cache.on_deadline(now, |address, packet| failed.push((address, packet)));
        }
        assert_eq!((questions, failed), (3, alloc::vec![(address(1), 'a')]));
        assert_eq!(cache.resolve(now, address(1), 'b'), Resolution::Unreachable('b'));
        assert_eq!(cache.resolve(now + FAILED, address(1), 'c'), Resolution::Waits(None));
    }

    #[test]
    fn a_stale_neighbour_is_used_and_then_asked() {
        let mut cache = NeighbourCache::new(NeighbourLimits::default());
        let now = Instant::default();
        cache.learn(now, address(1), DEVICE, Evidence::Hearsay, true);
        assert_eq!(cache.resolve(now, address(1), 'a'), Resolution::Send(DEVICE, 'a'));
        cache.on_deadline(now + DELAY, |_, _: char| panic!("nothing waits"));
        assert_eq!(cache.next_question(), Some(Question { target: address(1), device: Some(DEVICE) }));
        cache.confirm(now + DELAY, address(1));
        assert_eq!(cache.iter().next().unwrap().2, Reachability::Reachable);
        let other = HardwareAddress([2, 0, 0, 0, 0, 10]);
        cache.learn(now, address(1), other, Evidence::Weak, true);
        assert_eq!(cache.iter().next().unwrap(), (address(1), Some(DEVICE), Reachability::Stale));
    }

    #[test]
    fn there_are_only_so_many() {
        let mut cache = NeighbourCache::new(NeighbourLimits { entries: 4, waiting: 1 });
        for last in 0..100 {
            let now = Instant::from_nanos(u64::from(last));
            cache.learn(now, address(last), DEVICE, Evidence::Hearsay, true);
            cache.resolve(now, address(last / 2), last);
            assert!(cache.entries.len() <= 4);
        }
    }
}
