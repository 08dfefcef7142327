//! The end of a connection: shutting it down, closing it, and what a peer learns of that.
//!
//! An end that closes before its peer has done so leaves something behind: see `time_wait`. One that has not received everything, or does not want to linger, resets the connection instead.

use frame::Cx;
use refs::WeakRc;

use super::endpoint::{Connecting, Phase, State};
use super::peer::Peer;
use super::{Endpoint, remote, time_wait};
use crate::error::Errno;
use crate::fs::Events;
use crate::fs::fasync::Band;
use crate::net::inet::address::Address;
use crate::net::{Shutdown, counters};
use crate::step::{Interruption, Step, Stop};

impl State {
    /// Its addresses, while it waits for a connection.
    fn connecting_ends(&self) -> Option<(Address, Address)> {
        self.ends().filter(|_| matches!(self.phase, Phase::Connecting))
    }

    /// Its own address, and its peer's, if it has or had one.
    pub(super) fn ends(&self) -> Option<(Address, Address)> {
        Some((self.local, self.remote?))
    }
}

impl Endpoint {
    /// Ends one or both directions.
    ///
    /// # Errors
    /// ENOTCONN. `Pause` between two parts of a listener's connections.
    pub fn shut_down(&self, what: Shutdown, cx: &Cx) -> Step<()> {
        if matches!(self.state.lock(cx).phase, Phase::Listening(_)) {
            // What it sends itself is nothing.
            let is_over = !what.reading || !self.stop_listening(cx);
            return if is_over { Ok(()) } else { Err(Stop::Pause(Interruption::KillOnly)) };
        }
        let mut was_connecting = None;
        let (outcome, peer, ends, place) = {
            let mut state = self.state.lock(cx);
            let ends = state.ends();
            let place = state.watched_place();
            let ends_now = what.writing && !state.shutdown.writing;
            state.shutdown.reading |= what.reading;
            state.shutdown.writing |= what.writing;
            match state.phase {
                Phase::Connected => (Ok(()), state.peer.filter(|_| ends_now), ends, place),
                Phase::Connecting => {
                    was_connecting = state.connecting_ends();
                    state.begin_anew(self.version);
                    (Ok(()), None, None, None)
                }
                Phase::Closed | Phase::Listening(_) => (Err(Errno::ENOTCONN.into()), None, None, None),
            }
        };
        self.wake_all();
        if let Some(ends) = was_connecting {
            remote::was_left(&ends, cx);
        }
        if let Some(peer) = peer {
            if let Some(place) = place {
                place.show_end(cx);
            }
            peer.finish(self.name, ends, cx);
            self.end_if_finished(cx);
        }
        outcome
    }

    /// Both ends send nothing more, and the peer ended first: nothing is left of the connection.
    fn end_if_finished(&self, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            if !(matches!(state.phase, Phase::Connected) && state.is_finished && state.shutdown.writing) {
                return;
            }
            state.disconnect();
        }
    }

    /// The peer sends nothing more; false if it is not that one's peer any more.
    pub(super) fn peer_finished(&self, from: WeakRc<Endpoint>, cx: &Cx) -> bool {
        let left = {
            let mut state = self.state.lock(cx);
            if !matches!(state.phase, Phase::Connected) || !state.peer.is_some_and(|peer| peer.is(from)) {
                return false;
            }
            state.is_finished = true;
            if state.shutdown.writing {
                // This end was the first.
                let left = state.bound.take().zip(state.ends());
                state.disconnect();
                left
            } else {
                None
            }
        };
        if let Some((bound, ends)) = left {
            let told = !Peer::new(from).is_elsewhere(cx);
            time_wait::leave(ends, self.version, true, told, bound);
        }
        self.wake_all();
        self.fasync.signal(Events::IN, Band::In, cx);
        true
    }

    /// The endpoint of that name has no connection with this one any more.
    pub(super) fn peer_reset(&self, from: WeakRc<Endpoint>, cx: &Cx) {
        self.was_reset(Peer::new(from), cx);
    }

    /// The connection with that peer was reset.
    pub(super) fn was_reset(&self, by: Peer, cx: &Cx) {
        self.was_broken(by, Errno::ECONNRESET, cx);
    }

    /// The connection with that peer ended before its time.
    pub(super) fn was_broken(&self, by: Peer, error: Errno, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            if !matches!(state.phase, Phase::Connected) || state.peer != Some(by) {
                return;
            }
            counters::TCP_BROKEN.count();
            state.error = Some(if state.is_finished { Errno::EPIPE } else { error });
            state.disconnect();
        }
        self.wake_all();
        self.fasync.signal(Events::IN, Band::HangUp, cx);
    }

    /// Bytes came from `from` that nobody will receive. Where that is because it sends nothing itself any more it has no connection from now on.
    pub(super) fn refuse_bytes(&self, from: WeakRc<Endpoint>, cx: &Cx) {
        self.was_reset(Peer::new(from), cx);
    }

    /// Takes its connection away, if it has or makes one, as if it had never had one: connect(2) with AF_UNSPEC.
    pub(super) fn disconnect(&self, cx: &Cx) -> Step<()> {
        if self.stop_listening(cx) {
            return Err(Stop::Pause(Interruption::KillOnly));
        }
        let (peer, ends, place, was_connecting) = {
            let mut state = self.state.lock(cx);
            let ends = state.ends();
            let place = state.watched_place();
            let peer = state.peer.filter(|_| matches!(state.phase, Phase::Connected));
            let was_connecting = state.connecting_ends();
            if peer.is_some() || matches!(state.phase, Phase::Connecting) {
                state.error = Some(Errno::ECONNRESET);
            }
            state.begin_anew(self.version);
            (peer, ends, place, was_connecting)
        };
        if let Some(peer) = peer {
            if let Some(place) = place {
                place.show_reset(cx);
            }
            peer.reset(self.name, ends, cx);
        }
        if let Some(ends) = was_connecting {
            remote::was_left(&ends, cx);
        }
        self.wake_all();
        Ok(())
    }

    /// It is about to be destroyed: a part of what must be done before; false if nothing is left.
    pub(super) fn close(&self, cx: &Cx) -> bool {
        if self.stop_listening(cx) {
            return true;
        }
        let (peer, ends, place, resets, bound, waits, was_connecting) = {
            let mut state = self.state.lock(cx);
            let ends = state.ends();
            let place = state.watched_place();
            let is_connected = matches!(state.phase, Phase::Connected);
            let is_unread = !state.input.is_empty();
            let resets = is_unread || state.linger == Some(0);
            let waits = is_connected && !resets && !state.is_finished;
            let peer = state.peer.filter(|_| is_connected);
            if is_connected && resets {
                let counter = if is_unread { &counters::RESET_UNREAD } else { &counters::RESET_AT_ONCE };
                counter.count();
            }
            let bound = state.bound.take();
            let was_connecting = state.connecting_ends();
            state.disconnect();
            state.connecting = Connecting::No;
            (peer, ends, place, resets, bound, waits, was_connecting)
        };
        match bound.zip(ends) {
            Some((bound, ends)) if waits => {
                let told = !peer.is_some_and(|peer| peer.is_elsewhere(cx));
                time_wait::leave(ends, self.version, false, told, bound);
            }
            bound => drop(bound),
        }
        if let Some(place) = place.filter(|_| peer.is_some()) {
            if resets { place.show_reset(cx) } else { place.show_end(cx) }
        }
        match peer {
            Some(peer) if resets => peer.reset(self.name, ends, cx),
            Some(peer) => peer.finish(self.name, ends, cx),
            None => {}
        }
        if let Some(ends) = was_connecting {
            remote::was_left(&ends, cx);
        }
        self.wake_all();
        false
    }

    /// All of its program's group is killed: [`close`](Self::close), which comes next, resets its connection.
    pub(super) fn note_kill(&self, cx: &Cx) {
        self.state.lock(cx).linger = Some(0);
    }

    /// Its connection was not accepted, or could not be handed out: the peer is told.
    pub(super) fn abort(&self, cx: &Cx) {
        self.state.lock(cx).linger = Some(0);
        self.close(cx);
    }
}
