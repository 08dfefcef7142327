//! [`Queue`]: a split virtqueue (2.7), of requests that carry a `T` each.
//!
//! The ring has a *slot* for each request under way, always the same descriptors. Where the device takes indirect descriptors a slot is one of the ring's, which leads to a table of the slot's own; where not, it is some of
//! the ring's, one behind the other. (A request of one segment needs no table.) So which slot a request has says all that there is to know, nothing is searched, and what the device says is easily judged: it may only name slots that are under way, each once, and
//! not have written more than it was given.
//!
//! In memory: the descriptors, what is made available, what was used; each at an offset as aligned as it must be.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use frame::dma::{DeviceAddress, DmaCoherent, Domain};
use frame::mm::PAGE_SIZE;

/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;
/// Flags of a descriptor: another one follows; the device writes; it leads to a table.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// No more requests than this are under way at a time, where the driver does not say.
pub const MOST_SLOTS: usize = 64;
/// How many descriptors a slot has at most that has no table of its own.
pub const DIRECT_DESCRIPTORS: usize = 34;
/// How many descriptors a table has.
const INDIRECT_DESCRIPTORS: usize = PAGE_SIZE / DESCRIPTOR;
/// The largest ring that is used.
pub const MOST_DESCRIPTORS: u16 = 256;

/// A piece of memory for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it is.
    pub address: DeviceAddress,
    /// How long it is, in bytes.
    pub len: u32,
    /// Whether the device writes it, or reads.
    pub is_written: bool,
}

/// Which of the optional features the device has agreed to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// Descriptors may lead to tables of descriptors.
    pub indirect: bool,
    /// Each side says from which request on it wants to be told.
    pub event_index: bool,
}

/// The device has said what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

struct Slot<T> {
    /// What the device works on, and how many bytes it may write.
    under_way: Option<(T, u64)>,
    table: Option<DmaCoherent>,
}

/// A ring of requests.
pub struct Queue<T> {
    memory: DmaCoherent,
    domain: &'static Domain,
    size: u16,
    available_at: usize,
    used_at: usize,
    features: Features,
    slots: Box<[Slot<T>]>,
    free: Vec<usize>,
    /// How many descriptors of the ring a slot has.
    width: usize,
    /// The next entry that is made available.
    available: u16,
    /// As it was when the device was last told.
    told: u16,
    /// The next entry that the device has used.
    used: u16,
}

impl<T> Queue<T> {
    /// A ring of `size` descriptors, a power of two up to [`MOST_DESCRIPTORS`], for so many requests at most at a time, of `segments` segments ([`DIRECT_DESCRIPTORS`] at most), or more where the device takes tables. `None` if there is no memory, or it
    /// is too small to be of use.
    pub fn with_slots(
        size: u16,
        segments: usize,
        most_slots: usize,
        features: Features,
        domain: &'static Domain,
    ) -> Option<Self> {
        if !size.is_power_of_two() || size > MOST_DESCRIPTORS {
            return None;
        }
        let entries = usize::from(size);
        let width = if features.indirect { 1 } else { segments.min(DIRECT_DESCRIPTORS).min(entries) };
        if width < segments.min(3) && !features.indirect {
            return None;
        }
        let available_at = entries * DESCRIPTOR;
        // Behind it the ring, and the word that says when the driver wants to be told.
        let used_at = (available_at + 4 + 2 * entries + 2).next_multiple_of(4);
        let len = used_at + 4 + 8 * entries + 2;
        let order = len.div_ceil(PAGE_SIZE).next_power_of_two().trailing_zeros() as u8;
        let count = (entries / width).min(most_slots);
        Some(Queue {
            memory: DmaCoherent::new(domain, order)?,
            domain,
            size,
            available_at,
            used_at,
            features,
            slots: (0..count).map(|_| Slot { under_way: None, table: None }).collect(),
            free: (0..count).rev().collect(),
            width,
            available: 0,
            told: 0,
            used: 0,
        })
    }

    /// Where descriptors, what is available, and what was used are.
    pub fn addresses(&self) -> Option<[DeviceAddress; 3]> {
        Some([self.memory.address(0)?, self.memory.address(self.available_at)?, self.memory.address(self.used_at)?])
    }

    /// How many slots it has.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// How many segments a request may have.
    pub fn most_segments(&self) -> usize {
        if self.features.indirect { INDIRECT_DESCRIPTORS } else { self.width }
    }

    /// How many requests are under way.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The slot that the next request gets: of those that are free the one that became so last. `None` if all are under way.
    pub fn next_slot(&self) -> Option<usize> {
        self.free.last().copied()
    }

    /// The slot for a request of so many segments, with a table if it needs one.
    fn slot_for(&mut self, segments: usize) -> Option<usize> {
        let slot = self.next_slot()?;
        if segments > self.width && self.slots[slot].table.is_none() {
            self.slots[slot].table = Some(DmaCoherent::new(self.domain, 0)?);
        }
        Some(slot)
    }

    /// Makes a request available to the device, in the slot that [`next_slot`](Self::next_slot) named. It has from one to [`most_segments`](Self::most_segments) segments; first those that the device reads.
    ///
    /// # Errors
    /// There is no slot, it has too few or too many segments, or there is no memory for its table.
    pub fn push(&mut self, segments: &[Segment], request: T) -> Result<(), T> {
        if segments.is_empty() || segments.len() > self.most_segments() {
            return Err(request);
        }
        let Some(slot) = self.slot_for(segments.len()) else { return Err(request) };
        self.free.pop();
        let head = slot * self.width;
        match self.slots[slot].table.as_ref().filter(|_| segments.len() > self.width) {
            Some(table) => {
                write_chain(table, 0, segments);
                let len = (segments.len() * DESCRIPTOR) as u32;
                if let Some(address) = table.address(0) {
                    write_descriptor(&self.memory, head, Segment { address, len, is_written: false }, INDIRECT, 0);
                }
            }
            None => write_chain(&self.memory, head, segments),
        }
        let writable = segments.iter().filter(|segment| segment.is_written).map(|segment| u64::from(segment.len)).sum();
        self.slots[slot].under_way = Some((request, writable));
        let entry = usize::from(self.available % self.size);
        self.memory.store(self.available_at + 4 + 2 * entry, head as u16);
        self.available = self.available.wrapping_add(1);
        self.memory.store(self.available_at + 2, self.available);
        Ok(())
    }

    /// Whether the device must be told of what was made available since it was last told.
    pub fn must_tell(&mut self) -> bool {
        let before = core::mem::replace(&mut self.told, self.available);
        if before == self.available {
            return false;
        }
        // The device may have gone to sleep just now: it looks again at what is available after it has said so.
        fence(Ordering::SeqCst);
        if self.features.event_index {
            let event: u16 = self.memory.load(self.used_at + 4 + 8 * usize::from(self.size));
            self.available.wrapping_sub(event).wrapping_sub(1) < self.available.wrapping_sub(before)
        } else {
            self.memory.load::<u16>(self.used_at) & 1 == 0
        }
    }

    /// A request that the device has done, and how many bytes it says that it wrote.
    ///
    /// # Errors
    /// It says what cannot be.
    pub fn pop(&mut self) -> Result<Option<(T, usize, u32)>, Broken> {
        let used: u16 = self.memory.load(self.used_at + 2);
        let done = usize::from(used.wrapping_sub(self.used));
        if done == 0 {
            return Ok(None);
        }
        if done > self.under_way() {
            return Err(Broken);
        }
        let entry = self.used_at + 4 + 8 * usize::from(self.used % self.size);
        let (head, len): (u32, u32) = (self.memory.load(entry), self.memory.load(entry + 4));
        let head = head as usize;
        let slot = head / self.width;
        if !head.is_multiple_of(self.width) {
            return Err(Broken);
        }
        let under_way = self.slots.get_mut(slot).and_then(|slot| slot.under_way.take());
        let (request, writable) = under_way.ok_or(Broken)?;
        self.used = self.used.wrapping_add(1);
        self.free.push(slot);
        // The request was the device's until here, whatever else is wrong; it is given back by the caller.
        let len = if u64::from(len) > writable { u32::MAX } else { len };
        Ok(Some((request, slot, len)))
    }

    /// Whether the device says that it has done something.
    pub fn has_done(&self) -> bool {
        self.memory.load::<u16>(self.used_at + 2) != self.used
    }

    /// Asks to be told of the next request that is done; whether one is by now, of which the device may not tell.
    pub fn ask_to_be_told(&mut self) -> bool {
        self.ask_to_be_told_after(0)
    }

    /// Asks to be told when one more is done than so many; whether that is so by now, of which the device may not tell.
    pub fn ask_to_be_told_after(&mut self, more: usize) -> bool {
        if self.features.event_index {
            let event = self.used.wrapping_add(more as u16);
            self.memory.store(self.available_at + 4 + 2 * usize::from(self.size), event);
        }
        fence(Ordering::SeqCst);
        let done = self.memory.load::<u16>(self.used_at + 2).wrapping_sub(self.used);
        usize::from(done) > more
    }

    /// Takes out what is under way: the device is cut off, or gone.
    pub fn take_all(&mut self) -> Vec<T> {
        let all = self.slots.iter_mut().filter_map(|slot| slot.under_way.take());
        all.map(|(request, _)| request).collect()
    }
}

fn write_chain(memory: &DmaCoherent, first: usize, segments: &[Segment]) {
    for (index, segment) in segments.iter().enumerate() {
        let at = first + index;
        let flags = if index + 1 < segments.len() { NEXT } else { 0 };
        write_descriptor(memory, at, *segment, flags, at as u16 + 1);
    }
}

fn write_descriptor(memory: &DmaCoherent, index: usize, segment: Segment, flags: u16, next: u16) {
    let at = index * DESCRIPTOR;
    memory.store_address(at, segment.address);
    memory.store(at + 8, segment.len);
    memory.store(at + 12, flags | if segment.is_written { WRITE } else { 0 });
    memory.store(at + 14, next);
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Random, RingOfDevice};
    use super::*;
    use frame::dma::{DmaMap, simulated};
    use frame::mm::UFrame;
    use std::collections::BTreeMap;
    use std::vec;

    fn queue(size: u16, features: Features) -> Queue<u64> {
        let domain = simulated::domain();
        simulated::allow(domain);
        Queue::with_slots(size, DIRECT_DESCRIPTORS, MOST_SLOTS, features, domain).unwrap()
    }

    fn ring<T>(queue: &Queue<T>) -> RingOfDevice {
        RingOfDevice::new(queue.addresses().unwrap().map(simulated::number), queue.size)
    }

    fn all_features() -> impl Iterator<Item = Features> {
        [(false, false), (false, true), (true, false), (true, true)]
            .into_iter()
            .map(|(indirect, event_index)| Features { indirect, event_index })
    }

    fn segments(map: &DmaMap, count: usize) -> Vec<Segment> {
        let address = map.address(0).unwrap();
        (0..count).map(|index| Segment { address, len: 8 + index as u32, is_written: index > 0 }).collect()
    }

    #[test]
    fn what_a_good_device_does_comes_back_once() {
        let _machine = crate::block::test_memory();
        for features in all_features() {
            for size in [4, 64, 256] {
                let mut queue = queue(size, features);
                let mut device = ring(&queue);
                // The numbers of entries begin anew soon.
                let begin = 65_400;
                (queue.available, queue.told, queue.used) = (begin, begin, begin);
                (device.seen, device.used) = (begin, begin);
                for ring in [1, 2] {
                    simulated::write(device.addresses[ring] + 2, &begin.to_le_bytes());
                }
                let map = DmaMap::new(simulated::domain(), vec![UFrame::zeroed().unwrap()]).ok().unwrap();
                let mut random = Random(size.into());
                let mut expected = BTreeMap::new();
                let (mut pushed, mut popped) = (0, 0);
                while popped < 500 {
                    if random.next(2) == 0 {
                        let count = 1 + random.next(queue.most_segments() as u64) as usize;
                        if queue.push(&segments(&map, count), pushed).is_ok() {
                            expected.insert(pushed, count);
                            pushed += 1;
                        } else {
                            assert_eq!(expected.len(), queue.slots());
                        }
                        // A device that sleeps is told; this one looks all the time.
                        queue.must_tell();
                    }
                    device.look();
                    if random.next(2) == 0 && !device.heads.is_empty() {
                        let at = random.next(device.heads.len() as u64) as usize;
                        let head = device.heads.swap_remove(at);
                        let chain = device.chain(head);
                        assert!(chain.iter().skip(1).all(|(_, len, is_written)| *is_written && *len > 8));
                        let len = chain.iter().skip(1).map(|(_, len, _)| len).sum::<u32>();
                        device.put(head.into(), len);
                    }
                    while let Some((number, _, len)) = queue.pop().unwrap() {
                        let count = expected.remove(&number).unwrap();
                        assert_eq!(len as usize, (1..count).map(|index| 8 + index).sum::<usize>());
                        popped += 1;
                    }
                    assert!(!queue.ask_to_be_told());
                }
            }
        }
    }

    #[test]
    fn a_device_is_told_exactly_when_it_sleeps() {
        let _machine = crate::block::test_memory();
        let mut queue = queue(64, Features { indirect: true, event_index: true });
        let device = ring(&queue);
        let map = DmaMap::new(simulated::domain(), vec![UFrame::zeroed().unwrap()]).ok().unwrap();
        let event = device.addresses[2] + 4 + 8 * 64;
        assert!(!queue.must_tell());
        queue.push(&segments(&map, 1), 0).unwrap();
        assert!(queue.must_tell(), "it waits for the first");
        queue.push(&segments(&map, 1), 1).unwrap();
        assert!(!queue.must_tell(), "it is awake");
        simulated::write(event, &2_u16.to_le_bytes());
        queue.push(&segments(&map, 1), 2).unwrap();
        assert!(queue.must_tell(), "it went to sleep after two");
    }

    #[test]
    fn a_bad_device_is_found_out_and_gets_nothing_twice() {
        let _machine = crate::block::test_memory();
        let (mut rounds, mut broken) = (0, 0);
        for seed in 0..150 {
            for features in all_features() {
                let mut random = Random(seed);
                let mut queue = queue(if seed % 2 == 0 { 64 } else { 128 }, features);
                let mut device = ring(&queue);
                let map = DmaMap::new(simulated::domain(), vec![UFrame::zeroed().unwrap()]).ok().unwrap();
                let mut under_way = std::collections::BTreeSet::new();
                for number in 0..200 {
                    let count = 1 + random.next(queue.most_segments() as u64) as usize;
                    if queue.push(&segments(&map, count), number).is_ok() {
                        under_way.insert(number);
                    }
                    queue.must_tell();
                    device.look();
                    let head = match device.heads.pop() {
                        Some(head) if random.next(8) != 0 => u32::from(head),
                        _ => [0, 1, 33, 34, 64, 255, 256, u32::MAX][random.next(8) as usize],
                    };
                    device.put(head, if random.next(16) == 0 { u32::MAX } else { random.next(9) as u32 });
                    if random.next(64) == 0 {
                        let anywhere = random.next(0x1_0000) as u16;
                        device.used = anywhere;
                        simulated::write(device.addresses[2] + 2, &anywhere.to_le_bytes());
                    }
                    let mut popped = 0;
                    let outcome = loop {
                        match queue.pop() {
                            Ok(Some((number, _, _))) => assert!(under_way.remove(&number), "twice"),
                            Ok(None) => break Ok(()),
                            Err(Broken) => break Err(Broken),
                        }
                        popped += 1;
                        assert!(popped <= 64, "it never ends");
                    };
                    rounds += 1;
                    if outcome.is_err() {
                        broken += 1;
                        break;
                    }
                }
                let rest: std::collections::BTreeSet<u64> = queue.take_all().into_iter().collect();
                assert_eq!(rest, under_way, "each comes back, however broken the device is");
            }
        }
        assert!(rounds > 2_000 && broken > 200, "{rounds} {broken}");
    }
}
