//! Directories of the host, served by messages of 9P (the device that QEMU calls `virtio-9p`; type 9).
//!
//! One queue carries all messages, each in a slot of its own; the slot's number is the message's tag. A [task](super::service) takes out what the server has answered.
//!
//! Owner: a channel lives for ever. An exchange is the queue's from [`submit`](Channel::submit) until the task tells its owner. A device that breaks the rules is cut off, and what it had to do fails at once.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use frame::dma::{DmaCoherent, DmaMap, Domain};
use frame::mm::PAGE_SIZE;
use frame::pci::{Interrupt, MmioWindow};
use ninep::{DATA_AT, HEADER_BYTES, NO_TAG, Reply};
use refs::{SpinLock, WaitList};

use super::pci::{Doorbell, Transport};
use super::queue::{Broken, DIRECT_DESCRIPTORS, Queue, Segment};
use super::service::{self, Attached, Bell, Serve, take_done};
use crate::block::Refused;
use crate::error::{Errno, Result};
use crate::fs::remote::channel::{Channel, Data, Exchange, MOST_BYTES};
use crate::sched::Parameters;

/// The type of device, and the number that such devices had before version 1.
const KIND: u16 = 9;
const OLD_NUMBER: u16 = 0x1009;
/// The device has a name.
const HAS_NAME: u64 = 1;
/// The longest name.
const LONGEST_NAME: usize = 255;

/// Each slot has so many pages, as a power of two: in the first half is the message, in the second the reply.
const SLOT_ORDER: u8 = 2;
const REPLY_AT: usize = MOST_BYTES;
const _: () = assert!(PAGE_SIZE << SLOT_ORDER == 2 * MOST_BYTES);
/// So many frames an exchange has at most: half a mebibyte.
const MOST_FRAMES: usize = 128;

/// A device.
struct Server {
    name: Vec<u8>,
    attached: Attached,
    ring: SpinLock<Ring>,
    most_frames: usize,
    doorbell: Doorbell,
    done: &'static WaitList,
    room: WaitList,
    _interrupt: Interrupt,
}

struct Ring {
    queue: Queue<UnderWay>,
    slots: Vec<Option<DmaCoherent>>,
    domain: &'static Domain,
}

/// An exchange that the device works on.
struct UnderWay {
    exchange: Exchange,
    /// Its frames.
    lent: DmaMap,
}

/// Claims all such devices that there are and starts their tasks.
pub fn find() -> Vec<&'static dyn Channel> {
    let mut found: Vec<&'static dyn Channel> = Vec::new();
    while let Some(claimed) = Transport::claim(KIND, OLD_NUMBER, HAS_NAME) {
        match claimed.and_then(Server::start) {
            Ok(server) => found.push(server),
            Err(why) => crate::log!("a directory of the host cannot be used: {why}"),
        }
    }
    found
}

/// What the device is called.
fn read_name(window: &MmioWindow) -> Vec<u8> {
    let len = usize::from(window.read::<u16>(0)).min(LONGEST_NAME);
    (0..len).map(|at| window.read::<u8>(2 + at)).collect()
}

impl Server {
    fn start(transport: Transport) -> core::result::Result<&'static Self, &'static str> {
        let fail = |transport: &Transport, why| {
            transport.fail();
            Err(why)
        };
        if !transport.has(HAS_NAME) {
            return fail(&transport, "it has no name");
        }
        let name = transport.read_config(read_name);
        let Some((bell, done)) = Bell::with_waiters() else { return fail(&transport, "there are too many") };
        let interrupt = bell.interrupt(&transport, 0, 0);
        let (Some(interrupt), Some((queue, doorbell))) = (interrupt, transport.queue(0, DIRECT_DESCRIPTORS, 0)) else {
            return fail(&transport, "it has no queue with an interrupt, or there is no memory for one");
        };
        // The message and the reply are segments, too.
        let most_frames = queue.most_segments().saturating_sub(2).min(MOST_FRAMES);
        if most_frames == 0 {
            return fail(&transport, "its queue is too short");
        }
        let mut slots: Vec<_> = (0..queue.slots()).map(|_| None).collect();
        // So an idle queue always has a slot with memory: the first one, or the one that became free last. Who is refused for want of memory waits for an exchange that is under way.
        let first = queue.next_slot().and_then(|slot| slots.get_mut(slot));
        match (first, DmaCoherent::new(transport.domain(), SLOT_ORDER)) {
            (Some(first), Some(memory)) => *first = Some(memory),
            _ => return fail(&transport, "there is no memory for it"),
        }
        let ring = SpinLock::new(Ring { queue, slots, domain: transport.domain() });
        bell.hear_of_faults(&transport);
        transport.begin();
        let server: &'static Server = Box::leak(Box::new(Server {
            name,
            attached: Attached::new(transport, "the host's directory"),
            ring,
            most_frames,
            doorbell,
            done,
            room: WaitList::new(),
            _interrupt: interrupt,
        }));
        service::start(Completer { server }, Parameters::default());
        Ok(server)
    }

    /// The device has said what cannot be: from now on everything fails.
    fn give_up(&self, cx: &Cx) {
        if !self.attached.cut_off() {
            return;
        }
        // Who comes later finds that it is gone.
        let rest = self.ring.lock(cx).queue.take_all();
        for under_way in rest {
            finish(under_way, Err(Errno::EIO), cx);
        }
        self.room.wake_all();
    }
}

/// Tells the owner of an exchange. The device does not use its frames any more, or cannot.
fn finish(under_way: UnderWay, reply: Result<Vec<u8>>, cx: &Cx) {
    let UnderWay { exchange, lent } = under_way;
    let frames = lent.take_back();
    exchange.owner.completed(frames, reply, cx);
}

impl service::Ring for Ring {
    type Request = UnderWay;

    fn queue(&mut self) -> &mut Queue<UnderWay> {
        &mut self.queue
    }
}

impl Ring {
    /// Makes an exchange available; it comes back if there is no slot, or no memory for the tables of an IOMMU.
    fn push(&mut self, mut exchange: Exchange) -> core::result::Result<(), (Exchange, Refused)> {
        let Some(slot) = self.queue.next_slot() else { return Err((exchange, Refused::Full)) };
        let Some(place) = self.slots.get_mut(slot) else { return Err((exchange, Refused::Full)) };
        if place.is_none() {
            *place = DmaCoherent::new(self.domain, SLOT_ORDER);
        }
        let Some(memory) = place else { return Err((exchange, Refused::Full)) };
        let is_version = Reply::header(&exchange.message).is_some_and(|(_, _, tag)| tag == NO_TAG);
        if let Some(tag) = exchange.message.get_mut(HEADER_BYTES - 2..HEADER_BYTES)
            && !is_version
        {
            tag.copy_from_slice(&(slot as u16).to_le_bytes());
        }
        // It is memory of the kernel's, which does not fault.
        let _ = memory.writer(0, MOST_BYTES).write(&exchange.message);
        let (Some(message), Some(reply)) = (memory.address(0), memory.address(REPLY_AT)) else {
            return Err((exchange, Refused::Gone));
        };
        let lent = match DmaMap::new(self.domain, core::mem::take(&mut exchange.frames)) {
            Ok(lent) => lent,
            Err(frames) => {
                exchange.frames = frames;
                return Err((exchange, Refused::Gone));
            }
        };
        let (sent, received) = match exchange.data {
            Data::None => (0, 0),
            Data::Sent(len) => (len, 0),
            Data::Received(len) => (0, len),
        };
        let mut segments = vec![Segment { address: message, len: exchange.message.len() as u32, is_written: false }];
        add_frames(&mut segments, &lent, sent, false);
        let reply_len = if received > 0 { DATA_AT } else { MOST_BYTES };
        segments.push(Segment { address: reply, len: reply_len as u32, is_written: true });
        add_frames(&mut segments, &lent, received, true);
        match self.queue.push(&segments, UnderWay { exchange, lent }) {
            Ok(()) => Ok(()),
            Err(UnderWay { mut exchange, lent }) => {
                exchange.frames = lent.take_back();
                Err((exchange, Refused::Full))
            }
        }
    }

    /// The reply in a slot, of which the device says that it is of so many bytes with its data; `None` if it is none.
    fn reply(&self, slot: usize, written: u32, under_way: &UnderWay) -> Option<Vec<u8>> {
        let memory = self.slots.get(slot)?.as_ref()?;
        let own_bytes = match under_way.exchange.data {
            Data::Received(_) => (written as usize).min(DATA_AT),
            _ => (written as usize).min(MOST_BYTES),
        };
        let mut bytes = vec![0; own_bytes];
        let _ = memory.reader(REPLY_AT, own_bytes).read(&mut bytes);
        let (len, _, tag) = Reply::header(&bytes)?;
        let (_, _, asked) = Reply::header(&under_way.exchange.message)?;
        let is_reply = (HEADER_BYTES as u32..=written).contains(&len) && tag == asked;
        bytes.truncate(len as usize);
        is_reply.then_some(bytes)
    }
}

fn add_frames(segments: &mut Vec<Segment>, lent: &DmaMap, bytes: usize, is_written: bool) {
    let mut left = bytes;
    for index in 0..lent.len() {
        let len = left.min(PAGE_SIZE);
        if let Some(address) = lent.address(index).filter(|_| len > 0) {
            segments.push(Segment { address, len: len as u32, is_written });
        }
        left -= len;
    }
}

impl Channel for Server {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn most_frames(&self) -> usize {
        self.most_frames
    }

    fn submit(&self, exchange: Exchange, cx: &Cx) -> core::result::Result<(), (Exchange, Refused)> {
        let bytes = match exchange.data {
            Data::None => 0,
            Data::Sent(len) | Data::Received(len) => len,
        };
        let is_possible = exchange.message.len() <= MOST_BYTES
            && exchange.frames.len() <= self.most_frames
            && bytes.div_ceil(PAGE_SIZE) == exchange.frames.len();
        let mut ring = self.ring.lock(cx);
        if !is_possible || self.attached.is_gone() {
            return Err((exchange, Refused::Gone));
        }
        ring.push(exchange)?;
        if ring.queue.must_tell() {
            self.doorbell.ring();
        }
        Ok(())
    }

    fn room(&self) -> &WaitList {
        &self.room
    }
}

/// Takes what the server has answered out of the queue.
struct Completer {
    server: &'static Server,
}

impl Serve for Completer {
    fn attached(&self) -> &Attached {
        &self.server.attached
    }

    fn waiters(&self) -> &WaitList {
        self.server.done
    }

    fn work(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        let server = self.server;
        let judge = |ring: &Ring, under_way, slot, written| {
            // So many bytes cannot be: the device has written more than it was given.
            let is_broken = written == u32::MAX || server.attached.has_faulted();
            let reply = if is_broken { None } else { ring.reply(slot, written, &under_way) };
            (under_way, reply)
        };
        let tell = |(under_way, reply): (_, Option<Vec<u8>>)| {
            if reply.is_none() {
                // It is cut off before the frames are somebody else's.
                server.give_up(cx);
            }
            finish(under_way, reply.ok_or(Errno::EIO), cx);
        };
        let was_busy = take_done(&server.attached, &server.ring, judge, tell, cx)?;
        if was_busy {
            server.room.wake_all();
        }
        Ok(was_busy)
    }

    fn give_up(&self, cx: &Cx) {
        self.server.give_up(cx);
    }
}
