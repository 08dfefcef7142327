//! Bytes go from the socket into the control block, and from there to the socket; segments go out.
//!
//! What a socket sends is written into the control block where it is sent ([`Remote::write`]), so a proxy has no bytes. What has come waits in the control block until the socket has room.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::Reader;
use refs::SpinLock;
use tcpip::tcp::{Blocked, Error, State};

use super::{AT_ONCE, Ends, Progress, Remote, Stage, was_left};
use crate::error::Errno;
use crate::net::inet::tcp::peer::{PIECE, Peer, Sent};
use crate::net::interface::{self, Outgoing, Unsent, now};
use crate::net::{Shutdown, Source};
use crate::ring::Ring;
use crate::step::{Step, Stop};

/// How long who finds no room at the card waits at most, in nanoseconds.
const ROOM_PAUSE: u64 = 10_000_000;
/// How long what has come waits where the socket finds no memory for it, in nanoseconds.
const MEMORY_PAUSE: u64 = 100_000_000;
/// So many connections go on at once when the card has room.
const AT_ROOM: usize = 8;

/// Connections that have found no room at their card.
static WAITS_FOR_CARD: SpinLock<BTreeSet<Ends>> = SpinLock::new(BTreeSet::new());

/// A card has room again: some of the connections that have waited for it go on. Each fills it as far as it can, so the next wait for the next time.
pub(in crate::net::inet) fn card_has_room(cx: &Cx) {
    for _ in 0..AT_ROOM {
        let next = WAITS_FOR_CARD.lock(cx).pop_first();
        let Some(ends) = next else { return };
        was_left(&ends, cx);
    }
}

/// What a proxy was told by its socket.
pub(in crate::net::inet::tcp) enum SocketSaid {
    /// It sends nothing more.
    End(Option<Peer>),
    /// The connection is to be reset.
    Reset,
    Nothing,
}

impl Progress {
    /// How many bytes the socket may send now.
    fn room(&self) -> usize {
        if !matches!(self.connection.state(), State::Established | State::CloseWait) {
            return 0;
        }
        let most = self.marks.unsent_most;
        let has_too_much = most > 0 && self.connection.unsent_bytes() >= most;
        if has_too_much { 0 } else { self.connection.room() }
    }

    /// Whether that is enough for a sender who waits to go on.
    fn has_much_room(&self) -> bool {
        self.room() >= self.connection.settings().send_limit / 3
    }
}

impl Remote {
    /// Takes bytes that the socket sends: how many; none if there is no room.
    ///
    /// # Errors
    /// ENOBUFS. A fault on the first.
    pub(in crate::net::inet::tcp) fn write(&self, from: &mut dyn Source, cx: &Cx) -> Step<usize> {
        let mut state = self.state.lock(cx);
        let most = from.remaining().min(state.room()).min(PIECE);
        if most == 0 {
            return Ok(0);
        }
        let mut stopped = None;
        let written = state.connection.write_with(most, |space| {
            from.fill(space).unwrap_or_else(|stop| {
                stopped = Some(stop);
                0
            })
        });
        match (written, stopped) {
            (Ok(0), Some(stop)) => Err(stop),
            (Ok(count), _) => Ok(count),
            (Err(Blocked::OutOfMemory), _) => Err(Errno::ENOBUFS.into()),
            (Err(_), _) => Ok(0),
        }
    }

    /// Whether there is so much room that a sender who waits for some goes on.
    pub(in crate::net::inet::tcp) fn has_much_room(&self, cx: &Cx) -> bool {
        self.state.lock(cx).has_much_room()
    }

    /// Tells the socket that there is room, and the control block what became of the socket.
    pub(super) fn take_from_socket(&self, cx: &Cx) {
        let has_much_room = {
            let state = self.state.lock(cx);
            if !matches!(state.stage, Stage::Open) || state.connection.state() == State::Closed {
                return;
            }
            state.has_much_room()
        };
        let (said, waits) = self.proxy.get(cx).said(has_much_room, cx);
        if let Some(peer) = waits {
            peer.made_room(cx);
        }
        match said {
            // It was closed with something unread, without patience, or in a kill.
            SocketSaid::Reset => self.reset(cx),
            SocketSaid::End(peer) if peer.is_some_and(|peer| peer.is_used(cx)) => {
                self.state.lock(cx).connection.shut_writing();
            }
            SocketSaid::End(_) => self.close(cx),
            SocketSaid::Nothing => {}
        }
    }

    /// Moves what has come to the socket, and tells it of the end.
    pub(super) fn give_to_socket(&self, cx: &Cx) {
        let proxy = self.proxy.get(cx);
        loop {
            let (has_bytes, is_done, has_told) = {
                let state = self.state.lock(cx);
                if !matches!(state.stage, Stage::Open) {
                    return;
                }
                let has_bytes = state.connection.readable_bytes() > 0;
                (has_bytes, state.connection.is_peer_done(), state.has_told_end)
            };
            let Some(peer) = proxy.connected_peer(cx) else { return };
            if !has_bytes {
                if is_done && !has_told {
                    self.state.lock(cx).has_told_end = true;
                    let _ = proxy.shut_down(Shutdown { reading: false, writing: true }, cx);
                }
                return;
            }
            match peer.send(proxy.name, &mut Arrived { remote: self, cx }, false, cx) {
                Ok(Sent::Bytes(count)) if count > 0 => {}
                Ok(Sent::ToNobody) => return self.reset(cx),
                // The socket calls when it has room.
                Err(Stop::Block) => return,
                // After the peer's end nobody else would call where there was no memory.
                Ok(Sent::Bytes(_)) | Err(_) => return self.go_on_at(frame::time::now() + MEMORY_PAUSE, cx),
            }
        }
    }

    /// Sends what there is to send.
    pub(super) fn transmit(&self, cx: &Cx) {
        let (header, has_any) = {
            let state = self.state.lock(cx);
            (state.marks.header(&self.ends), state.connection.may_transmit())
        };
        if !has_any {
            return;
        }
        let Ok(way) = interface::way_to(self.ends.1.ip) else { return };
        let Ok(mut out) = Outgoing::new(way, header, cx) else {
            return self.go_on_at(frame::time::now() + ROOM_PAUSE, cx);
        };
        self.transmit_by(&mut out, cx);
        out.end(cx);
    }

    fn transmit_by(&self, out: &mut Outgoing, cx: &Cx) {
        let offload = out.offload();
        for _ in 0..AT_ONCE {
            if !out.has_room(cx) {
                WAITS_FOR_CARD.lock(cx).insert(self.ends);
                return self.go_on_at(frame::time::now() + ROOM_PAUSE, cx);
            }
            let sent = self.state.lock(cx).connection.transmit(now(), offload, out.payload());
            let Some(sent) = sent else { return };
            match out.send(&sent, cx) {
                Ok(()) | Err(Unsent::NoRoom | Unsent::TooLarge) => {}
                Err(Unsent::NoRoute | Unsent::NoNeighbour) => {
                    if self.does_not_arrive(Error::HostUnreachable, cx) {
                        return;
                    }
                }
            }
        }
        self.go_on_at(frame::time::now(), cx);
    }

    /// No neighbour takes its packets: whether that is its end.
    fn does_not_arrive(&self, error: Error, cx: &Cx) -> bool {
        let is_opening = {
            let mut state = self.state.lock(cx);
            let is_opening = matches!(state.stage, Stage::Opening(_));
            if is_opening {
                state.connection.abort();
            } else {
                state.connection.note_unreachable(error);
            }
            is_opening
        };
        if is_opening {
            self.refuse(error, cx);
        } else {
            self.tell_of_trouble(error, cx);
        }
        is_opening
    }
}

/// What has come, as something that is sent to the socket.
struct Arrived<'a> {
    remote: &'a Remote,
    cx: &'a Cx,
}

impl Source for Arrived<'_> {
    fn remaining(&self) -> usize {
        self.remote.state.lock(self.cx).connection.readable_bytes()
    }

    fn take(&mut self, most: usize) -> Step<Vec<u8>> {
        let mut bytes = vec![0; most.min(self.remaining())];
        let read = self.fill(&mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Step<usize> {
        Ok(self.remote.state.lock(self.cx).connection.read(now(), bytes).unwrap_or(0))
    }

    fn push_to(&mut self, ring: &mut Ring, most: usize) -> Step<usize> {
        let mut state = self.remote.state.lock(self.cx);
        let pushed = state.connection.read_with(now(), most, |bytes| {
            // The kernel's own memory does not fault.
            ring.push(&mut Reader::from(bytes)).unwrap_or(0)
        });
        pushed.map_err(|blocked| match blocked {
            Blocked::WouldBlock => Stop::Block,
            _ => Errno::ECONNRESET.into(),
        })
    }
}
