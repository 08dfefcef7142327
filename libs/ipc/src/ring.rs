//! Streaming rings: messages one way, in order.
//!
//! Each slot is one line and carries its own status word: the sender publishes a message with it, the receiver gives the slot back
//! with it. There are no shared cursors. That the receiver writes to the line is not waste: the line then is the receiver's
//! alone, and the sender gets it back with one read, of which a processor has many under way, where taking a line away from a
//! reader happens one store at a time (a stream is a third quicker so).
//!
//! A slot's status names the lap in which it was written or given back. What either end finds is exactly what the other end has
//! to do next, or what it has not done yet, or the end of the channel. Both positions are private.

use crate::Error;
use crate::link::Link;
use crate::message::{Kind, Message, SHORT_MASK, Status};
use crate::region::Region;

/// A message in a ring, with what it is in the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Request, response or neither.
    pub kind: Kind,
    /// Ties a response to its request; it comes from the peer, so it is looked up, never trusted.
    pub cookie: u32,
    /// What it says.
    pub message: Message,
}

/// The end of a ring that puts messages in.
pub struct Sender {
    slots: Region,
    link: Link,
    /// The ring has two to the power of this many slots.
    shift: u32,
    /// How many messages were ever sent.
    tail: u64,
}

impl Sender {
    /// `slots` are a power of two of lines, or none.
    pub(crate) fn new(slots: Region, link: Link) -> Sender {
        let shift = slots.len_lines().trailing_zeros();
        Sender { slots, link, shift, tail: 0 }
    }

    /// How many messages fit.
    pub fn capacity(&self) -> usize {
        self.slots.len_lines()
    }

    /// Sends a message. The receiver sees it at once, but is not rung if it sleeps.
    ///
    /// # Errors
    /// [`Error::Full`] when the peer has not yet taken what was sent a whole ring before; [`Error::Closed`];
    /// [`Error::Corrupt`].
    #[inline(always)]
    pub fn send(&mut self, packet: &Packet) -> Result<(), Error> {
        self.link.check()?;
        let len = self.slots.len_lines();
        let Some(slot) = self.slots.lines().get(self.tail as usize & len.wrapping_sub(1)) else {
            return Err(Error::Full);
        };
        let lap = lap(self.tail, self.shift);
        let found = slot.status();
        if found != given_back(before(lap)) {
            return Err(self.no_room(found));
        }
        slot.publish(Status::new(packet.kind, lap, packet.message.tag, packet.cookie), &packet.message.words);
        self.tail += 1;
        Ok(())
    }

    /// The next slot is not free: is it that the message of the previous lap is still in it?
    #[inline(never)]
    fn no_room(&self, found: Status) -> Error {
        let lap = lap(self.tail, self.shift);
        if is_of_lap(found, before(lap)) { Error::Full } else { self.link.corrupt() }
    }

    /// The connection that this is part of.
    pub fn link(&self) -> &Link {
        &self.link
    }
}

/// The end of a ring that takes messages out.
pub struct Receiver {
    slots: Region,
    link: Link,
    shift: u32,
    /// How many messages were ever taken.
    head: u64,
}

impl Receiver {
    /// As for [`Sender::new`].
    pub(crate) fn new(slots: Region, link: Link) -> Receiver {
        let shift = slots.len_lines().trailing_zeros();
        Receiver { slots, link, shift, head: 0 }
    }

    /// Takes the next message, if there is one. Its slot is free at once, but the sender is not rung if it sleeps.
    ///
    /// # Errors
    /// [`Error::Closed`] when the peer is gone and all that it sent was taken; [`Error::Corrupt`].
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<Packet>, Error> {
        let len = self.slots.len_lines();
        // An end without a ring receives nothing.
        let Some(slot) = self.slots.lines().get(self.head as usize & len.wrapping_sub(1)) else {
            return self.link.check().map(|()| None);
        };
        let lap = lap(self.head, self.shift);
        let mut status = slot.status();
        if !is_of_lap(status, lap) {
            status = match self.nothing_yet(status) {
                Ok(Some(status)) => status,
                Ok(None) => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        let Some(kind) = status.kind() else { return Ok(None) };
        let words = slot.read();
        slot.give_back(given_back(lap));
        self.head += 1;
        Ok(Some(Packet { kind, cookie: status.long(), message: Message { tag: status.tag(), words } }))
    }

    /// `status` is not this lap's: is that as it should be, and is there still somebody to wait for? Gives this lap's status
    /// word if it came meanwhile.
    #[inline(never)]
    fn nothing_yet(&self, status: Status) -> Result<Option<Status>, Error> {
        let lap = lap(self.head, self.shift);
        if status != given_back(before(lap)) {
            return Err(self.link.corrupt());
        }
        let Err(error) = self.link.check() else { return Ok(None) };
        // The peer may have sent and then closed: what it did before it closed is visible now.
        let status = self.slots.lines()[self.head as usize & (self.slots.len_lines() - 1)].status();
        if is_of_lap(status, lap) { Ok(Some(status)) } else { Err(error) }
    }

    /// The connection that this is part of.
    pub fn link(&self) -> &Link {
        &self.link
    }
}

/// The lap in which message number `position` goes through a ring of two to the power of `shift` slots; the first is 1, so that it
/// differs from the lap before it, 0, in which all slots were "given back".
#[inline(always)]
fn lap(position: u64, shift: u32) -> u16 {
    ((position >> (shift & 63)) + 1) as u16 & SHORT_MASK
}

/// Whether the word says that its slot was written in that lap.
#[inline(always)]
fn is_of_lap(status: Status, lap: u16) -> bool {
    status.short() == lap && status.kind().is_some()
}

/// What stands in a slot whose message of that lap was taken.
#[inline(always)]
fn given_back(lap: u16) -> Status {
    Status(u64::from(lap) << 2)
}

/// The lap before.
#[inline(always)]
fn before(lap: u16) -> u16 {
    lap.wrapping_sub(1) & SHORT_MASK
}
