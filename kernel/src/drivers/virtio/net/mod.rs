//! Network cards (virtio-net, 5.1): Ethernet frames that go to the host and come from it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `coming` | the queue for what comes |
//! | `going` | the queue for what goes |
//! | `header` | what is said of a frame beside it |
//!
//! A card has a queue for what comes and one for what goes. Buffers for both are the driver's own for ever: a frame is copied into some to be sent, and out of some when it has come, so nothing of
//! the kernel's that the device may write is ever parsed in place. What has come goes to the card's [`Receiver`], a frame at a time and with nothing locked; while there is none, frames are lost, as on a cable without an end.
//!
//! Where the device can, it computes checksums of TCP and UDP, or says that they are right, cuts long segments of TCP into those of a packet's size, and joins those that come.
//!
//! The device tells of a frame when it comes and the card's task sleeps; while the task works it looks for itself, [some](AT_ONCE) frames at a time before others have their turn. It tells of what was sent only where somebody waits for room.
//!
//! Owner: a card lives for ever. One that breaks the rules is cut off: nothing comes any more, and whoever sends is told that it is gone. Nobody waits for it.

mod coming;
mod going;
mod header;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use frame::pci::{Interrupt, MmioWindow};
use refs::{SpinLock, WaitList};
use tasks::StaticRef;

use super::pci::Transport;
use super::queue::Broken;
use super::service::{self, Attached, Bell, Serve};
use crate::net::interface::{Abilities, CardAddress, Link, Offload, Receiver, Refused, Traffic};
use crate::sched::Parameters;

use coming::{BUFFER_BYTES, Coming};
use going::Going;
use header::HEADER_BYTES;

/// The type of device, and the number that such devices had before version 1.
const KIND: u16 = 1;
const OLD_NUMBER: u16 = 0x1000;

/// Features (5.1.3): it computes checksums of what goes, and may leave those of what comes.
const COMPUTES: u64 = 1 << 0;
const LEAVES: u64 = 1 << 1;
const MTU: u64 = 1 << 3;
const MAC: u64 = 1 << 5;
/// It joins segments of TCP that come, of both versions; cuts those that go.
const JOINS_V4: u64 = 1 << 7;
const JOINS_V6: u64 = 1 << 8;
const JOINS: u64 = JOINS_V4 | JOINS_V6;
const CUTS_V4: u64 = 1 << 11;
const CUTS_V6: u64 = 1 << 12;
/// It may use several buffers for one frame.
const SPREADS: u64 = 1 << 15;
const WANTED: u64 = COMPUTES | LEAVES | MTU | MAC | JOINS | CUTS_V4 | CUTS_V6 | SPREADS;

/// So many frames are taken in before others have their turn.
const AT_ONCE: usize = 64;
/// Bytes of a frame's own header, with a tag.
const ETHERNET_BYTES: usize = 18;
/// Bytes of the longest frame, which is to be cut or was joined.
const MOST_FRAME: usize = 65_535 + ETHERNET_BYTES;
/// The largest packet in a frame.
const MOST_MTU: u16 = (BUFFER_BYTES - HEADER_BYTES - ETHERNET_BYTES) as u16;
/// The largest packet where the device does not say.
const USUAL_MTU: u16 = 1500;

/// Which features are taken of those that a device offers: none that needs another which it lacks.
fn choose(offered: u64) -> u64 {
    let mut wanted = WANTED;
    if offered & COMPUTES == 0 {
        wanted &= !(CUTS_V4 | CUTS_V6);
    }
    // Without the second a buffer would have to be as long as the longest frame.
    if offered & LEAVES == 0 || offered & SPREADS == 0 {
        wanted &= !JOINS;
    }
    wanted
}

/// A network card.
pub struct Card {
    attached: Attached,
    address: CardAddress,
    mtu: u16,
    abilities: Abilities,
    coming: SpinLock<Coming>,
    going: SpinLock<Going>,
    /// What the next frame is copied into; it is taken out while it is used.
    frame: SpinLock<Vec<u8>>,
    /// Where the task waits.
    waiters: &'static WaitList,
    receiver: StaticRef<ReceiverPlace>,
    received: Traffic,
    sent: Traffic,
    _interrupts: [Interrupt; 2],
}

/// A receiver on the heap: a name for it has two words, and it is found by one.
struct ReceiverPlace(&'static dyn Receiver);

/// Claims all cards that there are and starts their tasks.
pub fn find() -> Vec<&'static dyn Link> {
    let mut cards: Vec<&'static dyn Link> = Vec::new();
    while let Some(claimed) = Transport::claim_with(KIND, OLD_NUMBER, choose) {
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
        let mut coming = Coming::new(&transport)?;
        let going = Going::new(&transport)?;
        let abilities = Abilities {
            computes_checksums: transport.has(COMPUTES),
            cuts_v4: transport.has(CUTS_V4),
            cuts_v6: transport.has(CUTS_V6),
        };
        bell.hear_of_faults(&transport);
        transport.begin();
        coming.tell();
        Some(Box::leak(Box::new(Card {
            attached: Attached::new(transport, "the virtual network card"),
            address,
            mtu,
            abilities,
            coming: SpinLock::new(coming),
            going: SpinLock::new(going),
            frame: SpinLock::new(Vec::new()),
            waiters,
            receiver: StaticRef::none(),
            received: Traffic::default(),
            sent: Traffic::default(),
            _interrupts: interrupts,
        })))
    }

    fn try_send(&self, frame: &[u8], offload: &Offload, cx: &Cx) -> Result<(), Refused> {
        let most = if offload.cut.is_some() { MOST_FRAME } else { usize::from(self.mtu) + ETHERNET_BYTES };
        let is_able = offload.checksum.is_none() || self.abilities.computes_checksums;
        if frame.len() > most || !is_able || offload.cut.is_some_and(|cut| !self.abilities.cuts(cut.is_v6)) {
            return Err(Refused::TooLarge);
        }
        let mut going = self.going.lock(cx);
        if self.attached.is_gone() {
            return Err(Refused::Gone);
        }
        // One that says what cannot be is cut off by its task, which finds the same.
        if going.take_back().is_err() {
            self.waiters.wake_all();
            return Err(Refused::Gone);
        }
        going.send(frame, offload)
    }

    /// Takes in a frame that has come; whether there was one.
    fn take_in(&self, frame: &mut Vec<u8>, cx: &Cx) -> Result<bool, Broken> {
        let taken = {
            let mut coming = self.coming.lock(cx);
            match coming.take(frame)? {
                Some(taken) => taken,
                None => {
                    coming.tell();
                    return Ok(coming.queue.ask_to_be_told());
                }
            }
        };
        let (len, checksum) = taken;
        match self.receiver.get() {
            Some(receiver) => {
                self.received.count(len);
                receiver.0.receive(&frame[..len], checksum, cx);
            }
            None => _ = self.received.dropped.fetch_add(1, Ordering::Relaxed),
        }
        Ok(true)
    }

    /// Whether somebody waited for room, and there is some.
    fn has_room_again(&self, cx: &Cx) -> Result<bool, Broken> {
        let mut going = self.going.lock(cx);
        if !going.is_waited_for {
            return Ok(false);
        }
        let has_room = going.has_room_or_asks()?;
        going.is_waited_for = !has_room;
        Ok(has_room)
    }
}

impl Link for Card {
    fn address(&self) -> CardAddress {
        self.address
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn lead_to(&self, receiver: &'static dyn Receiver) {
        self.receiver.set(Some(Box::leak(Box::new(ReceiverPlace(receiver)))));
    }

    fn has_room(&self, cx: &Cx) -> bool {
        let mut going = self.going.lock(cx);
        if self.attached.is_gone() || going.has_room() {
            return true;
        }
        // One that says what cannot be is found out by whoever sends.
        going.has_room_or_asks().unwrap_or(true)
    }

    fn send(&self, frame: &[u8], offload: &Offload, cx: &Cx) -> Result<(), Refused> {
        let outcome = self.try_send(frame, offload, cx);
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

impl Serve for &'static Card {
    fn attached(&self) -> &Attached {
        &self.attached
    }

    fn waiters(&self) -> &WaitList {
        self.waiters
    }

    fn work(&self, cx: &Cx) -> Result<bool, Broken> {
        let mut was_busy = false;
        if self.has_room_again(cx)? {
            was_busy = true;
            if let Some(receiver) = self.receiver.get() {
                receiver.0.has_room(cx);
            }
        }
        let mut frame = core::mem::take(&mut *self.frame.lock(cx));
        let outcome =
            loop_over(AT_ONCE, || if self.attached.is_gone() { Ok(false) } else { self.take_in(&mut frame, cx) });
        *self.frame.lock(cx) = frame;
        self.coming.lock(cx).tell();
        Ok(outcome? | was_busy)
    }

    fn give_up(&self, cx: &Cx) {
        if self.attached.cut_off() {
            drop(self.coming.lock(cx).queue.take_all());
            drop(self.going.lock(cx).queue.take_all());
        }
    }
}

/// Does a piece of work up to so many times, as long as there is some; whether there was any.
fn loop_over(most: usize, mut work: impl FnMut() -> Result<bool, Broken>) -> Result<bool, Broken> {
    for done in 0..most {
        if !work()? {
            return Ok(done > 0);
        }
    }
    Ok(true)
}
