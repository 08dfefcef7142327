//! A channel of two rings in the layout of Barrelfish's "fast IPC", written here to be measured: 64-byte slots of a status
//! word, a flags word and seven registers; the writer's and the reader's position are their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The seven registers of a message.
pub type Message = [u64; 7];

const EMPTY: u32 = 0;
const FULL: u32 = 1;

#[derive(Default)]
#[repr(C, align(64))]
struct Slot {
    status: AtomicU32,
    flags: AtomicU32,
    registers: [AtomicU64; 7],
}

/// One end of a one-way ring that writes.
pub struct Sender {
    ring: Arc<[Slot]>,
    next: usize,
}

/// The end that reads.
pub struct Receiver {
    ring: Arc<[Slot]>,
    next: usize,
}

/// A ring of so many slots, a power of two.
pub fn ring(slots: usize) -> (Sender, Receiver) {
    assert!(slots.is_power_of_two());
    let ring: Arc<[Slot]> = (0..slots).map(|_| Slot::default()).collect();
    (Sender { ring: ring.clone(), next: 0 }, Receiver { ring, next: 0 })
}

impl Sender {
    /// Sends, if there is room.
    #[inline(always)]
    pub fn try_send(&mut self, message: &Message) -> bool {
        let slot = &self.ring[self.next & (self.ring.len() - 1)];
        if slot.status.load(Ordering::Acquire) != EMPTY {
            return false;
        }
        slot.flags.store(1, Ordering::Relaxed);
        for (register, value) in slot.registers.iter().zip(message) {
            register.store(*value, Ordering::Relaxed);
        }
        slot.status.store(FULL, Ordering::Release);
        self.next += 1;
        true
    }
}

impl Receiver {
    /// The next message, if there is one.
    #[inline(always)]
    pub fn try_recv(&mut self) -> Option<Message> {
        let slot = &self.ring[self.next & (self.ring.len() - 1)];
        if slot.status.load(Ordering::Acquire) != FULL {
            return None;
        }
        let message = core::array::from_fn(|index| slot.registers[index].load(Ordering::Relaxed));
        slot.status.store(EMPTY, Ordering::Release);
        self.next += 1;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_ring_keeps_order_and_says_when_it_is_full_or_empty() {
        let (mut sender, mut receiver) = super::ring(2);
        assert!(sender.try_send(&[1; 7]) && sender.try_send(&[2; 7]) && !sender.try_send(&[3; 7]));
        assert_eq!(receiver.try_recv(), Some([1; 7]));
        assert!(sender.try_send(&[3; 7]));
        assert_eq!((receiver.try_recv(), receiver.try_recv(), receiver.try_recv()), (Some([2; 7]), Some([3; 7]), None));
    }
}
