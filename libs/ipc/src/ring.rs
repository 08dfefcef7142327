//! Streaming rings: messages one way, in order.
//!
//! Each slot is one line and carries its own status word, so that a message is one line that moves once: the receiver does not
//! look at a shared tail, and does not write to the slot. How far it has come it tells in a line of its own, seldom: after a
//! quarter of the ring, or when it finds nothing more. The sender looks there only when the ring seems full.
//!
//! A slot's status names the lap in which it was written. What the receiver finds is thus either the previous lap's message
//! (nothing new), this lap's, or the end of the channel. Both cursors are private; the peer's is checked before it is believed.

use crate::Error;
use crate::atomic::Ordering;
use crate::link::Link;
use crate::message::{Kind, Message, SHORT_MASK, Status};
use crate::region::Region;

/// A message in a ring, with what it is in the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Request, response or neither.
    pub kind: Kind,
    /// Ties a response to its request; it comes from the peer, so it is looked up, never trusted.
    pub cookie: u32,
    /// What it says.
    pub message: Message,
}

/// The end of a ring that puts messages in.
#[derive(Debug)]
pub struct Sender {
    slots: Region,
    /// Where the receiver tells how far it has come.
    cursor: Region,
    link: Link,
    /// How many messages were ever sent.
    tail: u64,
    /// How many are known to be taken.
    head: u64,
}

impl Sender {
    /// `slots` are a power of two of lines, or none; `cursor` is one line.
    pub(crate) fn new(slots: Region, cursor: Region, link: Link) -> Sender {
        Sender { slots, cursor, link, tail: 0, head: 0 }
    }

    /// How many messages fit.
    pub fn capacity(&self) -> usize {
        self.slots.len_lines()
    }

    /// Sends a message. The receiver sees it at once, but is not rung if it sleeps.
    ///
    /// # Errors
    /// [`Error::Full`] when the peer has not told of having taken enough of what was sent (up to a quarter of the ring may be
    /// taken and not told of); [`Error::Closed`]; [`Error::Corrupt`].
    #[inline(always)]
    pub fn send(&mut self, packet: &Packet) -> Result<(), Error> {
        if self.tail - self.head == self.slots.len_lines() as u64 {
            self.make_room()?;
        }
        self.link.check()?;
        let slots = self.slots.lines();
        let index = self.tail as usize & (slots.len() - 1);
        let status = Status::new(packet.kind, lap(self.tail, slots.len()), packet.message.tag, packet.cookie);
        slots[index].publish(status, &packet.message.words);
        self.tail += 1;
        Ok(())
    }

    /// Learns how far the receiver has come.
    #[cold]
    fn make_room(&mut self) -> Result<(), Error> {
        let told = self.cursor.lines()[0].word(0).load(Ordering::Acquire);
        let taken = told.wrapping_sub(self.head);
        if taken > self.tail - self.head {
            return Err(self.link.corrupt());
        }
        self.head = told;
        if taken == 0 {
            self.link.check()?;
            return Err(Error::Full);
        }
        Ok(())
    }

    /// The connection that this is part of.
    pub fn link(&self) -> &Link {
        &self.link
    }
}

/// The end of a ring that takes messages out.
#[derive(Debug)]
pub struct Receiver {
    slots: Region,
    cursor: Region,
    link: Link,
    /// How many messages were ever taken.
    head: u64,
    /// How many of them the sender has been told about.
    told: u64,
}

impl Receiver {
    /// As for [`Sender::new`].
    pub(crate) fn new(slots: Region, cursor: Region, link: Link) -> Receiver {
        Receiver { slots, cursor, link, head: 0, told: 0 }
    }

    /// Takes the next message, if there is one.
    ///
    /// # Errors
    /// [`Error::Closed`] when the peer is gone and all that it sent was taken; [`Error::Corrupt`].
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<Packet>, Error> {
        let len = self.slots.len_lines();
        if len == 0 {
            return self.link.check().map(|()| None);
        }
        let index = self.head as usize & (len - 1);
        let lap = lap(self.head, len);
        let mut status = self.slots.lines()[index].status();
        if status.kind().is_none() || status.short() != lap {
            status = match self.nothing_yet(status)? {
                None => return Ok(None),
                Some(status) => status,
            };
        }
        let Some(kind) = status.kind() else { return Err(self.link.corrupt()) };
        let words = self.slots.lines()[index].read();
        self.head += 1;
        if self.head - self.told > len as u64 / 4 {
            self.tell();
        }
        Ok(Some(Packet { kind, cookie: status.long(), message: Message { tag: status.tag(), words } }))
    }

    /// `status` is not this lap's: is that as it should be, and is there still somebody to wait for? Gives this lap's status
    /// word if it came meanwhile.
    #[inline(never)]
    fn nothing_yet(&mut self, status: Status) -> Result<Option<Status>, Error> {
        let len = self.slots.len_lines();
        let lap_now = lap(self.head, len);
        let is_old = if self.head < len as u64 {
            status.0 == 0
        } else {
            status.kind().is_some() && status.short() == lap_now.wrapping_sub(1) & SHORT_MASK
        };
        if !is_old {
            return Err(self.link.corrupt());
        }
        if self.told != self.head {
            self.tell();
        }
        let Err(error) = self.link.check() else { return Ok(None) };
        // The peer may have sent and then closed: what it did before it closed is visible now.
        let status = self.slots.lines()[self.head as usize & (len - 1)].status();
        if status.kind().is_some() && status.short() == lap_now { Ok(Some(status)) } else { Err(error) }
    }

    /// Tells the sender how far this end has come, so that it may use those slots again.
    fn tell(&mut self) {
        self.told = self.head;
        self.cursor.lines()[0].word(0).store(self.head, Ordering::Release);
    }

    /// The connection that this is part of.
    pub fn link(&self) -> &Link {
        &self.link
    }
}

/// The lap in which message number `position` goes through a ring of `len` slots; the first is 1, so that it differs from an
/// empty slot's 0.
#[inline(always)]
fn lap(position: u64, len: usize) -> u16 {
    ((position >> len.trailing_zeros()) + 1) as u16 & SHORT_MASK
}
