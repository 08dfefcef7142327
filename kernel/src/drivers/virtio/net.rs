//! Network cards (virtio-net, 5.1): Ethernet frames that go to the host and come from it.
//!
//! A card has a queue for what comes and one for what goes. Buffers for both are the driver's own for ever, one for each slot of a queue: a frame is copied into a buffer to be sent, and out of one when it has come, so nothing of
//! the kernel's that the device may write is ever parsed in place. What has come goes to the card's [`Receiver`], a frame at a time and with nothing locked; while there is none, frames are lost, as on a cable without an end.
//!
//! Buffers of frames that were sent are taken back by whoever sends next.
//!
//! Owner: a card lives for ever. One that breaks the rules is cut off: nothing comes any more, and whoever sends is told that it is gone. Nobody waits for it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::dma::DmaCoherent;
use frame::mm::PAGE_SIZE;
use frame::pci::{Interrupt, MmioWindow};
use refs::{SpinLock, WaitList};
use tasks::StaticRef;

use super::pci::{Doorbell, Transport};
use super::queue::{Broken, Queue, Segment};
use super::service::{self, AT_ONCE, Attached, Bell, Serve};
use crate::net::interface::{CardAddress, Link, Receiver, Refused, Traffic};
use crate::sched::Parameters;

/// The type of device, and the number that such devices had before version 1.
const KIND: u16 = 1;
const OLD_NUMBER: u16 = 0x1000;

/// Features (5.1.3).
const MTU: u64 = 1 << 3;
const MAC: u64 = 1 << 5;
const WANTED: u64 = MTU | MAC;

/// Bytes before each frame (5.1.6): all of them zero, as nothing is left to the device.
const HEADER_BYTES: usize = 12;
/// Bytes of a frame's own header, with a tag.
const ETHERNET_BYTES: usize = 18;
/// Bytes of a buffer.
const BUFFER_BYTES: usize = 2048;
/// The largest packet in a frame.
const MOST_MTU: u16 = (BUFFER_BYTES - HEADER_BYTES - ETHERNET_BYTES) as u16;
/// The largest packet where the device does not say.
const USUAL_MTU: u16 = 1500;
/// So many buffers a queue has at most, as a power of two.
const BUFFERS_ORDER: u8 = 6;

/// A network card.
pub struct Card {
    attached: Attached,
    address: CardAddress,
    mtu: u16,
    coming: SpinLock<Buffers>,
    going: SpinLock<Buffers>,
    coming_bell: Doorbell,
    going_bell: Doorbell,
    /// Where the task waits.
    waiters: &'static WaitList,
    receiver: StaticRef<ReceiverPlace>,
    received: Traffic,
    sent: Traffic,
    _interrupts: [Interrupt; 2],
}

/// A receiver on the heap: a name for it has two words, and it is found by one.
struct ReceiverPlace(&'static dyn Receiver);

/// A queue with a buffer for each slot.
struct Buffers {
    queue: Queue<()>,
    memory: DmaCoherent,
}

impl Buffers {
    fn new(queue: Queue<()>, transport: &Transport) -> Option<Self> {
        if queue.slots() > 1 << BUFFERS_ORDER {
            return None;
        }
        let order = BUFFERS_ORDER - (PAGE_SIZE / BUFFER_BYTES).trailing_zeros() as u8;
        Some(Buffers { queue, memory: DmaCoherent::new(transport.domain(), order)? })
    }

    /// Gives the device the next buffer: so many bytes of it.
    fn push(&mut self, len: usize, is_written: bool) {
        let at = self.queue.next_slot().map(|slot| slot * BUFFER_BYTES);
        if let Some(address) = at.and_then(|at| self.memory.address(at)) {
            // There is a slot, and one segment needs no memory.
            let _ = self.queue.push(&[Segment { address, len: len as u32, is_written }], ());
        }
    }
}

/// Claims all cards that there are and starts their tasks.
pub fn find() -> Vec<&'static dyn Link> {
    let mut cards: Vec<&'static dyn Link> = Vec::new();
    while let Some(claimed) = Transport::claim(KIND, OLD_NUMBER, WANTED) {
        let card = claimed.and_then(|transport| Card::new(transport).ok_or("it lacks a queue or an interrupt"));
        match card {
            Ok(card) => {
                service::start(card, Parameters::default());
                cards.push(card);
            }
            Err(why) => crate::log!("a virtual network card cannot be used: {why}"),
        }
    }
    cards
}

/// The card's address and the largest packet, as its configuration says (5.1.4).
fn read_config(window: &MmioWindow) -> (CardAddress, u16) {
    (core::array::from_fn(|at| window.read(at)), window.read(10))
}

impl Card {
    fn new(transport: Transport) -> Option<&'static Self> {
        let (said, largest) = transport.read_config(read_config);
        // One that is not told is as good as any that is the machine's own.
        let address = if transport.has(MAC) && said[0] & 1 == 0 { said } else { [0x02, 0, 0, 0, 0, 1] };
        let mtu = if transport.has(MTU) { largest.clamp(68, MOST_MTU) } else { USUAL_MTU };
        let (bell, waiters) = Bell::with_waiters()?;
        let interrupts = [bell.interrupt(&transport, 0, 0)?, bell.interrupt(&transport, 1, 0)?];
        let (coming, coming_bell) = transport.queue(0, 1, 0)?;
        let (going, going_bell) = transport.queue(1, 1, 1)?;
        let mut coming = Buffers::new(coming, &transport)?;
        let going = Buffers::new(going, &transport)?;
        while coming.queue.next_slot().is_some() {
            coming.push(BUFFER_BYTES, true);
        }
        bell.hear_of_faults(&transport);
        transport.begin();
        if coming.queue.must_tell() {
            coming_bell.ring();
        }
        Some(Box::leak(Box::new(Card {
            attached: Attached::new(transport, "the virtual network card"),
            address,
            mtu,
            coming: SpinLock::new(coming),
            going: SpinLock::new(going),
            coming_bell,
            going_bell,
            waiters,
            receiver: StaticRef::none(),
            received: Traffic::default(),
            sent: Traffic::default(),
            _interrupts: interrupts,
        })))
    }

    fn try_send(&self, frame: &[u8], cx: &Cx) -> Result<(), Refused> {
        if frame.len() > usize::from(self.mtu) + ETHERNET_BYTES {
            return Err(Refused::TooLarge);
        }
        let mut going = self.going.lock(cx);
        if self.attached.is_gone() {
            return Err(Refused::Gone);
        }
        // One that says what cannot be is cut off by its task, which finds the same.
        if take_back(&mut going).is_err() {
            self.waiters.wake_all();
            return Err(Refused::Gone);
        }
        let slot = going.queue.next_slot().ok_or(Refused::Full)?;
        let len = HEADER_BYTES + frame.len();
        let mut writer = going.memory.writer(slot * BUFFER_BYTES, len);
        // The kernel's own memory does not fault.
        let _ = writer.zero(HEADER_BYTES).and_then(|_| writer.write(frame));
        going.push(len, false);
        if going.queue.must_tell() {
            self.going_bell.ring();
        }
        Ok(())
    }

    /// Takes in a frame that has come; whether there was one.
    fn take_in(&self, cx: &Cx) -> Result<bool, Broken> {
        let mut coming = self.coming.lock(cx);
        let Some(((), slot, written)) = coming.queue.pop()? else { return Ok(coming.queue.ask_to_be_told()) };
        let len = (written as usize).checked_sub(HEADER_BYTES).filter(|len| *len <= BUFFER_BYTES).ok_or(Broken)?;
        let mut frame = vec![0; len];
        // The kernel's own memory does not fault.
        let _ = coming.memory.reader(slot * BUFFER_BYTES + HEADER_BYTES, len).read(&mut frame);
        coming.push(BUFFER_BYTES, true);
        if coming.queue.must_tell() {
            self.coming_bell.ring();
        }
        drop(coming);
        match self.receiver.get() {
            Some(receiver) => {
                self.received.count(len);
                receiver.0.receive(&frame, cx);
            }
            None => _ = self.received.dropped.fetch_add(1, Ordering::Relaxed),
        }
        Ok(true)
    }
}

impl Link for Card {
    fn address(&self) -> CardAddress {
        self.address
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn lead_to(&self, receiver: &'static dyn Receiver) {
        self.receiver.set(Some(Box::leak(Box::new(ReceiverPlace(receiver)))));
    }

    fn has_room(&self, cx: &Cx) -> bool {
        let mut going = self.going.lock(cx);
        // One that says what cannot be is found out by whoever sends.
        take_back(&mut going).is_err() || going.queue.next_slot().is_some()
    }

    fn send(&self, frame: &[u8], cx: &Cx) -> Result<(), Refused> {
        let outcome = self.try_send(frame, cx);
        match outcome {
            Ok(()) => self.sent.count(frame.len()),
            Err(_) => _ = self.sent.dropped.fetch_add(1, Ordering::Relaxed),
        }
        outcome
    }

    fn traffic(&self) -> (&Traffic, &Traffic) {
        (&self.received, &self.sent)
    }
}

/// Takes back the buffers of what was sent.
fn take_back(going: &mut Buffers) -> Result<(), Broken> {
    while going.queue.pop()?.is_some() {}
    Ok(())
}

impl Serve for &'static Card {
    fn attached(&self) -> &Attached {
        &self.attached
    }

    fn waiters(&self) -> &WaitList {
        self.waiters
    }

    fn work(&self, cx: &Cx) -> Result<bool, Broken> {
        let mut was_busy = false;
        for _ in 0..AT_ONCE {
            if self.attached.is_gone() || !self.take_in(cx)? {
                break;
            }
            was_busy = true;
        }
        Ok(was_busy)
    }

    fn give_up(&self, cx: &Cx) {
        if self.attached.cut_off() {
            drop(self.coming.lock(cx).queue.take_all());
            drop(self.going.lock(cx).queue.take_all());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::service::serve;
    use super::super::simulated::{Random, Registers};
    use super::*;
    use std::sync::Mutex;
    use std::vec::Vec;

    const ADDRESS: CardAddress = [0x52, 0x54, 0, 1, 2, 3];

    /// Keeps what has come.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Vec<u8>>>);

    impl Receiver for Kept {
        fn receive(&self, frame: &[u8], _cx: &Cx) {
            self.0.lock().unwrap().push(frame.to_vec());
        }
    }

    fn plug(queues: &[u16]) -> (&'static Registers, Option<&'static Card>) {
        let mut config = ADDRESS.to_vec();
        config.extend([0, 0, 0, 0, 0xdc, 5]);
        let registers = Registers::plug(OLD_NUMBER, WANTED, queues, &config);
        (registers, Transport::claim(KIND, OLD_NUMBER, WANTED).unwrap().map(Card::new).unwrap())
    }

    fn in_kernel(test: impl FnOnce(&Cx)) {
        let _machine = crate::block::test_memory();
        frame::with_context(|cx| test(cx));
    }

    fn with_header(frame: &[u8]) -> Vec<u8> {
        [&[0; HEADER_BYTES], frame].concat()
    }

    #[test]
    fn frames_come_and_go_as_they_are() {
        in_kernel(|cx| {
            let (registers, card) = plug(&[64, 16]);
            let card = card.unwrap();
            assert_eq!((card.address(), card.mtu()), (ADDRESS, 1500));
            let (mut coming, mut going) = (registers.ring(0), registers.ring(1));
            let kept: &'static Kept = Box::leak(Box::default());
            // Nobody is there for the first.
            for number in 0..100_u8 {
                if number == 1 {
                    card.lead_to(kept);
                }
                let frame = with_header(&[number; 60]);
                assert!(coming.answer(&frame, frame.len() as u32) && serve(&card, cx));
            }
            assert_eq!(*kept.0.lock().unwrap(), (1..100).map(|number| std::vec![number; 60]).collect::<Vec<_>>());
            for number in 0..100_u8 {
                let frame = std::vec![number; 14 + usize::from(number) * 15];
                assert_eq!(card.send(&frame, cx), Ok(()));
                let (head, bytes) = going.take().unwrap();
                assert_eq!(bytes, with_header(&frame));
                going.put(head.into(), 0);
            }
            assert_eq!(card.send(&[0; 1519], cx), Err(Refused::TooLarge));
            assert!(!registers.has_failed());
        });
    }

    #[test]
    fn buffers_come_back_when_frames_were_sent() {
        in_kernel(|cx| {
            let (registers, card) = plug(&[64, 16]);
            let card = card.unwrap();
            for _ in 0..16 {
                assert_eq!(card.send(&[1; 60], cx), Ok(()));
            }
            assert!(!card.has_room(cx));
            assert_eq!(card.send(&[1; 60], cx), Err(Refused::Full));
            let mut going = registers.ring(1);
            let (head, _) = going.take().unwrap();
            going.put(head.into(), 0);
            assert!(card.has_room(cx));
            assert_eq!(card.send(&[1; 60], cx), Ok(()));
        });
    }

    #[test]
    fn a_card_that_lies_is_cut_off() {
        in_kernel(|cx| {
            for len in [0, 11, BUFFER_BYTES as u32 + 1, u32::MAX] {
                let (registers, card) = plug(&[64, 64]);
                let card = card.unwrap();
                assert!(registers.ring(0).answer(&[], len));
                serve(&card, cx);
                assert!(registers.has_failed());
                assert_eq!(card.send(&[1; 60], cx), Err(Refused::Gone));
            }
            for seed in 0..50 {
                let (registers, card) = plug(&[16, 16]);
                let card = card.unwrap();
                let (mut coming, mut going) = (registers.ring(0), registers.ring(1));
                let mut random = Random(seed);
                for _ in 0..50 {
                    match random.next(4) {
                        0 => _ = card.send(&[1; 60], cx),
                        1 => _ = coming.answer(&[1; 80], 80),
                        2 => _ = going.answer(&[], 0),
                        _ => _ = serve(&card, cx),
                    }
                    match random.next(40) {
                        0 => coming.misbehave(&mut random),
                        1 => going.misbehave(&mut random),
                        _ => {}
                    }
                }
                assert_eq!(card.attached.is_gone(), registers.has_failed());
            }
            let (_, card) = plug(&[64]);
            assert!(card.is_none(), "it has no queue to send");
        });
    }
}
