//! Sending and receiving over a connection.

use frame::Cx;
use linux_raw_sys::net::{MSG_ERRQUEUE, MSG_OOB};
use refs::Waker;

use super::Endpoint;
use super::endpoint::{CAPACITY, Phase, State};
use super::peer::{PIECE, Peer, Sent};
use super::remote::SocketSaid;
use super::time_wait;
use crate::error::Errno;
use crate::net::{AtFault, Received, Receiving, Sink, Source};
use crate::reclaim::Held;
use crate::ring::FIRST_SIZE;
use crate::step::{Step, Stop};

/// The memory of a queue that is empty is kept if it is no more than this, or if the peer is about to send more.
const KEPT: usize = FIRST_SIZE;
/// The fewest bytes that may wait (SO_RCVBUF).
const LEAST_CAPACITY: usize = 4096;

impl State {
    /// Whether there is room for so much that a sender who waits for some goes on.
    pub(super) fn has_much_room(&self) -> bool {
        self.input.room() >= self.input.limit() / 4
    }

    /// Takes out what was received; whether the peer is to be told that there is room.
    pub(super) fn consume(&mut self, count: usize) -> bool {
        self.take(count);
        let goes_on = self.peer_has_more && !self.is_finished;
        if self.input.is_empty() && self.input.allocated() > KEPT && !goes_on {
            self.input.clear();
            self.held.remove(Held::Message, 1);
        }
        let tells = self.peer_waits && self.has_much_room();
        self.peer_waits &= !tells;
        tells
    }

    /// Why nothing can be received, where nothing is there.
    fn end_of_input(&mut self) -> Step<Received> {
        if self.is_finished {
            return Ok(Received::default());
        }
        if let Some(error) = self.error.take() {
            return Err(error.into());
        }
        match self.phase {
            _ if self.shutdown.reading => Ok(Received::default()),
            Phase::Closed | Phase::Listening(_) => Err(Errno::ENOTCONN.into()),
            Phase::Connecting | Phase::Connected => Err(Stop::Block),
        }
    }
}

impl Endpoint {
    /// Sends some of the bytes: how many.
    ///
    /// # Errors
    /// EPIPE: it has no connection, or was shut down; what happened to the connection, once. ENOBUFS. `Block` while the peer has no room.
    pub fn send(&self, from: &mut dyn Source, flags: u32, waker: Option<Waker>, cx: &Cx) -> Step<usize> {
        if let Some(waker) = waker {
            self.writable.register(waker, cx);
        }
        let peer = {
            let mut state = self.state.lock(cx);
            match &state.phase {
                Phase::Connecting => return Err(Stop::Block),
                Phase::Connected if !state.shutdown.writing && state.error.is_none() => state.peer,
                _ => return Err(state.error.take().unwrap_or(Errno::EPIPE).into()),
            }
        };
        let peer = peer.ok_or(Errno::EPIPE)?;
        if from.remaining() == 0 {
            return Ok(0);
        }
        let sent = match peer.send(self.name, from, flags & MSG_OOB != 0, cx)? {
            Sent::Bytes(count) => count,
            Sent::ToNobody => {
                // They were sent, and the answer to them is a reset.
                let bytes = from.take(PIECE)?;
                let (place, ends) = {
                    let state = self.state.lock(cx);
                    (state.watched_place(), state.ends())
                };
                if let Some(place) = place {
                    place.show_refused_data(&bytes, cx);
                }
                self.was_reset(peer, cx);
                if let Some((local, remote)) = ends {
                    time_wait::end(&(remote, local));
                }
                bytes.len()
            }
        };
        self.state.lock(cx).sent += sent as u64;
        Ok(sent)
    }

    /// Receives bytes into `sink`.
    ///
    /// # Errors
    /// ENOTCONN; what happened to the connection, once. `Block` while there is nothing and more may come.
    pub fn receive(
        &self,
        sink: &mut Sink<'_>,
        at_fault: AtFault,
        receiving: &Receiving,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received> {
        if receiving.flags & MSG_OOB != 0 {
            return self.receive_urgent(sink, receiving, cx);
        }
        if receiving.flags & MSG_ERRQUEUE != 0 {
            return Err(Errno::EAGAIN.into());
        }
        if let Some(waker) = waker {
            self.readable.register(waker, cx);
        }
        let mut state = self.state.lock(cx);
        let skipped = usize::from(state.skips_urgent());
        if state.readable() == 0 {
            if skipped > 0 && !receiving.peeks() {
                state.take(skipped);
            }
            return state.end_of_input();
        }
        let most = if skipped > 0 { state.input.len() } else { state.before_urgent() };
        let copied = copy(&state, skipped..most, sink, at_fault)?;
        let mut peer = None;
        if !receiving.peeks() && copied > 0 && state.consume(skipped + copied) {
            peer = state.peer;
        }
        drop(state);
        if let Some(peer) = peer {
            peer.made_room(cx);
        }
        Ok(Received { copied, len: copied, ..Received::default() })
    }

    /// What its socket has told it, which stands for the end at another machine. And who waits for room and is to be told that there is much, if so.
    pub(super) fn said(&self, has_much_room: bool, cx: &Cx) -> (SocketSaid, Option<Peer>) {
        let mut state = self.state.lock(cx);
        if matches!(state.phase, Phase::Closed) && state.error.is_some() {
            return (SocketSaid::Reset, None);
        }
        let tells = has_much_room && core::mem::take(&mut state.peer_waits);
        let said = if state.is_finished { SocketSaid::End(state.peer) } else { SocketSaid::Nothing };
        (said, state.peer.filter(|_| tells))
    }

    /// Changes how many bytes wait at most (SO_RCVBUF): about so many.
    pub(super) fn set_capacity(&self, bytes: usize, cx: &Cx) {
        let limit = bytes.clamp(LEAST_CAPACITY, CAPACITY).next_power_of_two();
        self.state.lock(cx).input.set_limit(limit);
    }
}

/// Copies what lies in a range of the input.
fn copy(state: &State, range: core::ops::Range<usize>, sink: &mut Sink<'_>, at_fault: AtFault) -> Step<usize> {
    let mut copied = 0;
    for part in state.input.parts(range) {
        let (count, fault) = sink(part);
        match fault {
            Some(fault) if copied == 0 || at_fault == AtFault::Undo => return Err(fault.into()),
            Some(_) => return Ok(copied),
            None => copied += count,
        }
        if count < part.len() {
            break;
        }
    }
    Ok(copied)
}
