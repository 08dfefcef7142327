//! [`Peer`]: the other end of a connection, as an end knows it: what is asked of it, and what it is told. It is an endpoint of this machine, if only one that [stands](super::remote) for the end at another.

use frame::Cx;
use linux_raw_sys::net;
use refs::WeakRc;

use super::Endpoint;
use super::endpoint::Phase;
use super::remote::Remote;
use super::time_wait::{self, Ends};
use crate::error::Errno;
use crate::fs::Events;
use crate::fs::fasync::Band;
use crate::net::Source;
use crate::net::inet::loopback;
use crate::net::inet::settings::Settings;
use crate::reclaim::Held;
use crate::step::{Step, Stop};

/// The most bytes that are sent in one go.
pub(super) const PIECE: usize = 32_768;

/// An endpoint's peer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer(WeakRc<Endpoint>);

/// What came of sending.
pub(super) enum Sent {
    /// So many bytes were taken.
    Bytes(usize),
    /// Nobody takes them: the answer of the other side will be a reset.
    ToNobody,
}

impl Peer {
    /// The endpoint of that name.
    pub(super) fn new(name: WeakRc<Endpoint>) -> Self {
        Peer(name)
    }

    /// Whether it stands for the end at another machine.
    pub(super) fn is_elsewhere(&self, cx: &Cx) -> bool {
        self.0.upgrade(cx).is_ok_and(|other| other.remote(cx).is_some())
    }

    /// Whether it is the endpoint of that name.
    pub(super) fn is(&self, name: WeakRc<Endpoint>) -> bool {
        self.0 == name
    }

    /// Gives it some of the bytes from `own`; with `urgent`, the last of all is marked so.
    ///
    /// # Errors
    /// `Block`: it has no room, and will wake `own` when it has. ENOBUFS. A fault.
    pub(super) fn send(&self, own: WeakRc<Endpoint>, from: &mut dyn Source, is_urgent: bool, cx: &Cx) -> Step<Sent> {
        let Ok(other) = self.0.upgrade(cx) else { return Ok(Sent::ToNobody) };
        let (count, seen) = {
            let mut state = other.state.lock(cx);
            let hears = matches!(state.phase, Phase::Connected) && state.peer.as_ref().is_some_and(|peer| peer.is(own));
            if !hears || (state.shutdown.reading && state.shutdown.writing) {
                drop(state);
                other.refuse_bytes(own, cx);
                return Ok(Sent::ToNobody);
            }
            if let Some(remote) = other.remote(cx) {
                let count = remote.write(from, cx)?;
                if count == 0 {
                    state.peer_waits = true;
                    return Err(Stop::Block);
                }
                drop(state);
                remote.go_on(cx);
                return Ok(Sent::Bytes(count));
            }
            let room = state.input.room();
            if room == 0 {
                (state.peer_waits, state.peer_has_more) = (true, true);
                return Err(Stop::Block);
            }
            if state.held.count(Held::Message) == 0 {
                state.held.add(Held::Message, 1).map_err(|_| Errno::ENOBUFS)?;
            }
            let most = from.remaining().min(room).min(PIECE);
            state.input.grow(most).map_err(|_| Errno::ENOBUFS)?;
            let count = from.push_to(&mut state.input, most)?;
            state.peer_has_more = false;
            if is_urgent && from.remaining() == 0 && count > 0 {
                state.mark_urgent();
            }
            let seen = if loopback::watched() { state.watched_arrival(count) } else { None };
            (count, seen)
        };
        if let Some((place, bytes)) = seen {
            place.show_data(&bytes, cx);
        }
        other.readable.wake();
        let event = if is_urgent { Events::IN | Events::PRIORITY } else { Events::IN };
        other.fasync.signal(event, Band::In, cx);
        Ok(Sent::Bytes(count))
    }

    /// Whether it has enough room that it is worth sending; if not it wakes `own` when it has.
    pub(super) fn has_room(&self, own: WeakRc<Endpoint>, cx: &Cx) -> bool {
        let Ok(other) = self.0.upgrade(cx) else { return true };
        let mut state = other.state.lock(cx);
        let is_enough = match other.remote(cx) {
            Some(remote) => remote.has_much_room(cx),
            None => state.has_much_room(),
        };
        let has_room = is_enough || !state.peer.as_ref().is_some_and(|peer| peer.is(own));
        state.peer_waits |= !has_room;
        has_room
    }

    /// There is room for what it sends.
    pub(super) fn made_room(&self, cx: &Cx) {
        if let Ok(other) = self.0.upgrade(cx) {
            other.writable.wake();
            other.fasync.signal(Events::OUT, Band::Out, cx);
            other.call_remote(cx);
        }
    }

    /// `own`, which has these addresses, sends nothing more.
    pub(super) fn finish(&self, own: WeakRc<Endpoint>, ends: Option<Ends>, cx: &Cx) {
        let mut is_told = false;
        if let Ok(other) = self.0.upgrade(cx) {
            is_told = other.peer_finished(own, cx);
            other.call_remote(cx);
        }
        if let Some((local, remote)) = ends
            && !is_told
        {
            time_wait::peer_finished(&(remote, local));
        }
    }

    /// `own`, which had these addresses, has no connection any more.
    pub(super) fn reset(&self, own: WeakRc<Endpoint>, ends: Option<Ends>, cx: &Cx) {
        if let Ok(other) = self.0.upgrade(cx) {
            other.peer_reset(own, cx);
            other.call_remote(cx);
        }
        if let Some((local, remote)) = ends {
            time_wait::end(&(remote, local));
        }
    }

    /// `own`, which had these addresses, has no connection any more, for that reason.
    pub(super) fn fail(&self, own: WeakRc<Endpoint>, ends: Option<Ends>, error: Errno, cx: &Cx) {
        if let Ok(other) = self.0.upgrade(cx) {
            other.was_broken(Peer::new(own), error, cx);
        }
        if let Some((local, remote)) = ends {
            time_wait::end(&(remote, local));
        }
    }

    /// What goes on at the end at another machine that it stands for, if it does.
    pub(super) fn with_remote<T>(&self, with: impl FnOnce(&Remote) -> T, cx: &Cx) -> Option<T> {
        let other = self.0.upgrade(cx).ok()?;
        let remote = other.remote(cx)?;
        Some(with(&remote))
    }

    /// It may not be reached just now: its program is told if it wants to hear of that (IP_RECVERR).
    pub(super) fn has_trouble(&self, error: Errno, cx: &Cx) {
        let Ok(other) = self.0.upgrade(cx) else { return };
        let wants = {
            let settings = other.settings.lock(cx);
            settings.is_on(net::SOL_IP, net::IP_RECVERR) || settings.is_on(net::SOL_IPV6, net::IPV6_RECVERR)
        };
        if wants {
            other.state.lock(cx).error = Some(error);
            other.wake_all();
            other.fasync.signal(Events::ERROR, Band::HangUp, cx);
        }
    }

    /// What its program has set.
    pub(super) fn settings(&self, cx: &Cx) -> Option<Settings> {
        self.0.upgrade(cx).ok().map(|other| other.settings.lock(cx).clone())
    }

    /// Whether it still has the connection.
    pub(super) fn is_used(&self, cx: &Cx) -> bool {
        self.0.upgrade(cx).is_ok_and(|other| other.connected_peer(cx).is_some())
    }
}
