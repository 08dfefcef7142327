//! What the owner of a connection does: writes, reads, and closes (RFC 9293, section 3.10).

use crate::time::Instant;

use super::assembler::Assembler;
use super::connection::{Connection, State};
use super::sequence::START;
use super::settings::{Blocked, Error};
use super::stream::Stream;

/// A round trip where none was measured, for growing the receive buffer.
const GUESSED_ROUND_TRIP: crate::Duration = crate::Duration::from_millis(100);

/// What can be done with a connection now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Readiness {
    /// A read returns bytes, the end of the stream or an error.
    pub readable: bool,
    /// A write takes bytes or returns an error.
    pub writable: bool,
    /// The peer sends no more (`POLLRDHUP`).
    pub is_peer_done: bool,
    /// Both directions are shut (`POLLHUP`).
    pub is_hung_up: bool,
    /// It failed (`POLLERR`).
    pub has_error: bool,
}

impl Connection {
    /// Bytes that may be written now.
    pub fn room(&self) -> usize {
        let queued = self.sending.written.saturating_sub(self.sending.una.max(START + 1)) as usize;
        self.settings.send_limit.saturating_sub(queued)
    }

    /// Queues bytes to be sent, at most `most`, which `fill` writes: it is called with room for some, and returns how many of these it has filled; fewer end it.
    /// Returns how many there are, at least one unless `most` is zero or the first `fill` returns zero. Call [`transmit`](Connection::transmit) after it.
    ///
    /// # Errors
    ///
    /// See [`Blocked`]. Nothing was written.
    pub fn write_with(&mut self, most: usize, mut fill: impl FnMut(&mut [u8]) -> usize) -> Result<usize, Blocked> {
        self.check_failed()?;
        if self.sending.is_shut || self.state == State::Closed {
            return Err(Blocked::Shut);
        }
        let is_open = matches!(self.state, State::Established | State::CloseWait);
        let room = if is_open { self.room() } else { 0 };
        if room == 0 && most > 0 {
            return Err(Blocked::WouldBlock);
        }
        let most = most.min(room);
        let mut written = 0;
        while written < most {
            let sending = &mut self.sending;
            let Ok(space) = sending.stream.room(sending.written, most - written) else {
                return if written > 0 { Ok(written) } else { Err(Blocked::OutOfMemory) };
            };
            let offered = space.len();
            let count = fill(space).min(offered);
            sending.written += count as u64;
            written += count;
            if count < offered {
                break;
            }
        }
        Ok(written)
    }

    /// [Writes](Connection::write_with) a slice, or as much of it as there is room for.
    ///
    /// # Errors
    ///
    /// See [`Blocked`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Blocked> {
        let mut rest = bytes;
        self.write_with(bytes.len(), |space| {
            let (now, later) = rest.split_at(space.len());
            space.copy_from_slice(now);
            rest = later;
            now.len()
        })
    }

    /// Takes bytes that were received, at most `most`: `take` is called with some of them, and returns how many it has used up; fewer than all end it. Returns how
    /// many these are; zero is the end of the stream. Call [`transmit`](Connection::transmit) after it: the window may have grown.
    ///
    /// # Errors
    ///
    /// See [`Blocked`].
    pub fn read_with(
        &mut self,
        now: Instant,
        most: usize,
        mut take: impl FnMut(&[u8]) -> usize,
    ) -> Result<usize, Blocked> {
        let count = self.peek_with(0, most, &mut take)?;
        if count > 0 {
            let receiving = &mut self.receiving;
            receiving.read += count as u64;
            let is_all = receiving.read >= receiving.next && receiving.assembler.is_empty();
            receiving.stream.discard(receiving.read, is_all);
            self.grow_buffer(now);
            self.offer_more();
        }
        Ok(count)
    }

    /// [Reads](Connection::read_with) into a slice.
    ///
    /// # Errors
    ///
    /// See [`Blocked`].
    pub fn read(&mut self, now: Instant, out: &mut [u8]) -> Result<usize, Blocked> {
        let mut at = 0;
        self.read_with(now, out.len(), |bytes| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
            bytes.len()
        })
    }

    /// As [`read_with`](Connection::read_with), from `skip` bytes on, and the bytes stay (`MSG_PEEK`, `SO_PEEK_OFF`).
    ///
    /// # Errors
    ///
    /// See [`Blocked`].
    pub fn peek_with(
        &mut self,
        skip: usize,
        most: usize,
        mut take: impl FnMut(&[u8]) -> usize,
    ) -> Result<usize, Blocked> {
        let available = self.readable_bytes().saturating_sub(skip);
        if available == 0 {
            if self.receiving.is_shut || self.is_peer_done() {
                return Ok(0);
            }
            self.check_failed()?;
            return if self.state == State::Closed { Ok(0) } else { Err(Blocked::WouldBlock) };
        }
        let most = most.min(available);
        let mut at = 0;
        while at < most {
            let bytes = self.receiving.stream.bytes(self.receiving.read + (skip + at) as u64, most - at);
            let count = take(bytes).min(bytes.len());
            at += count;
            if count < bytes.len() || bytes.is_empty() {
                break;
            }
        }
        Ok(at)
    }

    /// Bytes that can be read now (`FIONREAD`).
    pub fn readable_bytes(&self) -> usize {
        let end = self.receiving.next - u64::from(self.is_peer_done());
        end.saturating_sub(self.receiving.read) as usize
    }

    /// Bytes that were written and are not acknowledged (`SIOCOUTQ`).
    pub fn unacknowledged_bytes(&self) -> usize {
        self.sending.written.saturating_sub(self.sending.una.max(START + 1)) as usize
    }

    /// Bytes that were written and were never sent (`SIOCOUTQNSD`).
    pub fn unsent_bytes(&self) -> usize {
        self.sending.written.saturating_sub(self.sending.next.max(START + 1)) as usize
    }

    /// What came is acknowledged now, if it is not (`TCP_QUICKACK`).
    pub fn acknowledge_now(&mut self) {
        self.due.ack |= self.timers.delayed_ack.take().is_some();
    }

    /// Acknowledgments wait for more to come, or for data to go with, also at the beginning (`TCP_QUICKACK` of zero).
    pub fn acknowledge_later(&mut self) {
        self.receiving.quick = 0;
    }

    /// The peer can send more: tells it so if that is worth a segment (when the window becomes twice what it is).
    fn offer_more(&mut self) {
        if self.is_peer_done() || matches!(self.state, State::SynSent | State::SynReceived | State::Closed) {
            return;
        }
        let receiving = &self.receiving;
        let offered = receiving.edge.saturating_sub(receiving.next);
        let possible = self.possible_edge() - receiving.next;
        let step = (2 * receiving.mss).min(receiving.buffer / 2) as u64;
        if possible >= 2 * offered && possible >= offered + step {
            self.due.ack = true;
        }
    }

    /// Dynamic right-sizing: a receiver that reads as fast as data comes gets a buffer of twice what came in a round trip.
    fn grow_buffer(&mut self, now: Instant) {
        let round_trip = self.rtt.smoothed().unwrap_or(GUESSED_ROUND_TRIP);
        let receiving = &mut self.receiving;
        if now.since(receiving.measured_since) < round_trip {
            return;
        }
        let read = (receiving.read - receiving.measured_from) as usize;
        if read > receiving.measured_most {
            receiving.measured_most = read;
            // What comes in the next round trip may be twice as much.
            let wanted = (4 * read).min(self.settings.receive_limit);
            receiving.buffer = receiving.buffer.max(wanted);
        }
        (receiving.measured_since, receiving.measured_from) = (now, receiving.read);
    }

    fn check_failed(&mut self) -> Result<(), Blocked> {
        self.error.take().map_or(Ok(()), |error| Err(Blocked::Failed(error)))
    }

    /// What can be done now.
    pub fn readiness(&self) -> Readiness {
        let has_error = self.error.is_some();
        let is_over = self.state == State::Closed;
        let is_peer_done = self.is_peer_done() || self.receiving.is_shut || is_over;
        let is_open = matches!(self.state, State::Established | State::CloseWait) && !self.sending.is_shut;
        // As Linux: not for every few bytes that were acknowledged.
        let has_room = self.room() > 0 && self.room() >= self.settings.send_limit / 3;
        Readiness {
            readable: self.readable_bytes() > 0 || is_peer_done || has_error,
            writable: is_open && has_room || self.sending.is_shut || is_over || has_error,
            is_peer_done,
            is_hung_up: is_over || is_peer_done && self.sending.is_shut,
            has_error,
        }
    }

    /// No more will be written (`SHUT_WR`): after what is queued a FIN goes out.
    pub fn shut_writing(&mut self) {
        if self.sending.is_shut {
            return;
        }
        match self.state {
            State::SynSent => return self.end(None),
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
        self.sending.is_shut = true;
    }

    /// No more will be read (`SHUT_RD`): what is there and what comes is dropped.
    pub fn shut_reading(&mut self) {
        let receiving = &mut self.receiving;
        receiving.is_shut = true;
        receiving.read =
            receiving.read.max(receiving.next - u64::from(receiving.fin.is_some_and(|fin| receiving.next > fin)));
        receiving.stream = Stream::new(receiving.next);
        self.offer_more();
    }

    /// The owner lets go (`close`): what is queued is still sent, and the connection lives on until it is over. With bytes that were not read it is
    /// [aborted](Connection::abort), so that the peer knows that they were lost (RFC 9293, section 3.6.1).
    pub fn close(&mut self, now: Instant) {
        self.is_orphan = true;
        if self.readable_bytes() > 0 && !self.receiving.is_shut {
            return self.abort();
        }
        // What comes before data that arrived out of order is answered with a reset.
        self.receiving.stream = Stream::new(self.receiving.next);
        self.receiving.assembler = Assembler::default();
        self.shut_writing();
        self.guard_orphan(now);
    }

    /// Ends it at once with a reset (`SO_LINGER` of zero): what is queued is lost.
    pub fn abort(&mut self) {
        let needs_reset = !matches!(self.state, State::Closed | State::SynSent | State::TimeWait | State::LastAck);
        let error = (!self.is_orphan && self.state != State::Closed).then_some(Error::Aborted);
        self.end(error);
        self.due.reset = needs_reset;
    }
}
