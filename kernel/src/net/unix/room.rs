//! [`Room`]: what a sender has reserved in an inbox. It looks for room and reserves it with the inbox locked, copies the message with nothing locked, and puts it in:
//! so nobody else takes the room meanwhile.

use core::sync::atomic::Ordering;

use frame::Cx;

use super::inbox::Packet;
use super::{Endpoint, Kind};
use crate::step::{Step, Stop};

/// The largest piece of a stream that is sent at once.
const PIECE: usize = 32_768;

/// Room for one message of `len` bytes in the inbox of an endpoint. Dropping it gives it back.
pub(super) struct Room<'a> {
    endpoint: &'a Endpoint,
    /// How many bytes fit.
    pub(super) len: usize,
    /// How many descriptors go along.
    rights: u32,
    is_filled: bool,
    cx: &'a Cx,
}

impl Endpoint {
    /// Reserves room for a message of `len` bytes with so many descriptors, or (a stream) for as many of the bytes as fit.
    ///
    /// # Errors
    /// `Block` while there is none. ENOBUFS, ETOOMANYREFS: the budget that what waits here is charged to has no room for the message, or for the descriptors.
    pub(super) fn reserve<'a>(&'a self, len: usize, rights: u32, cx: &'a Cx) -> Step<Room<'a>> {
        let mut inbox = self.inbox.lock(cx);
        let room = inbox.room();
        let len = if self.kind == Kind::Stream { len.min(room).min(PIECE) } else { len };
        if room == 0 || len > room {
            // Whoever makes room locks the inbox after this, and sees it.
            self.refused.store(true, Ordering::Relaxed);
            return Err(Stop::Block);
        }
        inbox.reserve(len, rights)?;
        Ok(Room { endpoint: self, len, rights, is_filled: false, cx })
    }
}

impl Room<'_> {
    /// Puts a message there, which is no longer than the room.
    ///
    /// # Errors
    /// The message, if nothing comes into the inbox any more.
    pub(super) fn fill(mut self, packet: Packet) -> Result<(), Packet> {
        let mut inbox = self.endpoint.inbox.lock(self.cx);
        if inbox.is_closed() {
            drop(inbox);
            return Err(packet);
        }
        inbox.give_back(self.len);
        self.is_filled = true;
        if self.endpoint.kind == Kind::Stream {
            inbox.push_stream(packet);
        } else {
            inbox.push(packet);
        }
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if !self.is_filled {
            self.endpoint.inbox.lock(self.cx).cancel(self.len, self.rights);
            // Others found none because of it.
            self.endpoint.has_room(self.cx);
        }
    }
}
