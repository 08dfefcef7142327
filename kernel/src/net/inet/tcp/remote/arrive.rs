//! A segment has come from another machine, or word of one that did not arrive there.
//!
//! A SYN makes a connection that waits for the last part of its beginning, with the listener's name. Where there are too many of those the SYN is answered with a *cookie* (RFC 4987): nothing is kept, and the segment that brings the cookie
//! back makes the connection (`net.ipv4.tcp_syncookies`).

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use refs::TempRc;
use tcpip::ip::{IpHeader, Packet, protocol};
use tcpip::tcp::{Connection, Error, Header, LONGEST_HEADER, Opening, Segment, Verdict, cookie};
use tcpip::{Checksum, OutgoingChecksum};

use super::options::{errno_of, key, opening};
use super::{Beginning, Ends, HALF_OPEN, Remote, Stage, find};
use crate::net::counters;
use crate::net::inet::address::Address;
use crate::net::inet::settings::SYN_COOKIES;
use crate::net::inet::tcp::{Endpoint, PORTS};
use crate::net::interface::{self, now};

/// When a cookie was last sent, in nanoseconds, but for 0: never.
static LAST_COOKIE: AtomicU64 = AtomicU64::new(0);
/// How long a cookie may come back after that: longer than one is good.
const COOKIES_COME_BACK: u64 = 300_000_000_000;

/// A segment has come; whether it was one.
pub(in crate::net::inet) fn segment_came(packet: &Packet<'_>, checksum: Checksum, cx: &Cx) {
    counters::TCP_IN.count();
    let Ok(segment) = Segment::parse(packet.payload, packet.source, packet.destination, checksum) else {
        return counters::TCP_WRONG.count();
    };
    let local = Address { ip: packet.destination, port: segment.header.destination_port };
    let ends = (local, Address { ip: packet.source, port: segment.header.source_port });
    let known = find(&ends, cx).and_then(|remote| remote.upgrade(cx).ok());
    let answer = match known {
        Some(remote) => {
            let verdict = remote.state.lock(cx).connection.on_segment(now(), &segment);
            remote.go_on(cx);
            match verdict {
                Verdict::Taken => None,
                Verdict::Reply(header) => Some(header),
                // Its machine sends the SYN again, until the socket has what came before.
                Verdict::Reopen if remote.owes_socket(cx) => None,
                Verdict::Reopen => {
                    remote.forget(cx);
                    accept(ends, &segment, cx)
                }
            }
        }
        None => accept(ends, &segment, cx),
    };
    if let Some(header) = answer {
        reply(&ends, &header, cx);
    }
}

/// A router, or the other machine, says that a packet did not arrive.
pub(in crate::net::inet) fn unreachable(ends: &Ends, error: Error, sequence: u32, cx: &Cx) {
    if let Some(Ok(remote)) = find(ends, cx).map(|remote| remote.upgrade(cx)) {
        let is_believed = remote.state.lock(cx).connection.on_unreachable(error, sequence);
        if is_believed {
            remote.tell_of_trouble(error, cx);
        }
        remote.go_on(cx);
    }
}

/// A router says that a packet did not fit.
pub(in crate::net::inet) fn too_big(ends: &Ends, mtu: usize, sequence: u32, cx: &Cx) {
    if let Some(Ok(remote)) = find(ends, cx).map(|remote| remote.upgrade(cx)) {
        remote.state.lock(cx).connection.on_path_mtu(now(), mtu, sequence);
        remote.go_on(cx);
    }
}

/// What a closed or connecting socket is connected with, or would be, is to look whether it is wanted.
pub(in crate::net::inet::tcp) fn was_left(ends: &Ends, cx: &Cx) {
    if let Some(Ok(remote)) = find(ends, cx).map(|remote| remote.upgrade(cx)) {
        remote.go_on(cx);
    }
}

/// A segment of no connection has come: begins one if it is a SYN that somebody listens for, or brings a cookie back. What answers it, if not.
fn accept(ends: Ends, segment: &Segment<'_>, cx: &Cx) -> Option<Header> {
    let header = &segment.header;
    let listener = PORTS.find(ends.0, ends.1).and_then(|listener| listener.upgrade(cx).ok());
    let Some(listener) = listener else { return segment.reset() };
    match header.acknowledgment {
        None if header.syn => accept_syn(ends, &listener, segment, cx),
        Some(_) if !header.syn && !header.rst && may_be_cookie() => accept_cookie(ends, &listener, segment, cx),
        _ => segment.reset(),
    }
}

fn may_be_cookie() -> bool {
    let last = LAST_COOKIE.load(Ordering::Relaxed);
    last != 0 && frame::time::now().saturating_sub(last) < COOKIES_COME_BACK
}

fn accept_syn(ends: Ends, listener: &TempRc<'_, Endpoint>, segment: &Segment<'_>, cx: &Cx) -> Option<Header> {
    let Some(payer) = listener.payer_if_listening(cx) else { return segment.reset() };
    let settings = listener.settings.lock(cx).clone();
    let way = interface::way_to(ends.1.ip).ok()?;
    let opening = opening(&ends, &way, &settings, cx);
    let cookies = SYN_COOKIES.get();
    let half_open = HALF_OPEN.one_more().filter(|_| cookies < 2);
    let Some(half_open) = half_open else {
        return if cookies > 0 { answer_with_cookie(&opening, segment, cx) } else { None };
    };
    let connection = Connection::accept(now(), &opening, segment)?;
    let stage = Stage::Accepting { listener: listener.name, _half_open: Some(half_open) };
    let beginning = Beginning { connection, stage, version: listener.version };
    // One that cannot be entered is tried again by its machine.
    let entered = Remote::enter(ends, beginning, &settings, &payer, cx).ok()?;
    if let Ok(remote) = entered.upgrade(cx) {
        remote.go_on(cx);
    }
    None
}

fn answer_with_cookie(opening: &Opening, syn: &Segment<'_>, cx: &Cx) -> Option<Header> {
    let told = cookie::Listener {
        mtu: opening.mtu,
        window: opening.settings.receive_initial,
        window_scale: opening.settings.window_scale(),
        timestamp_offset: opening.timestamp_offset,
    };
    counters::COOKIES_SENT.count();
    LAST_COOKIE.store(frame::time::now().max(1), Ordering::Relaxed);
    cookie::encode(&key(cx), now(), &opening.endpoints, &told, syn)
}

/// An acknowledgment of no connection has come: makes the connection if what it acknowledges is a cookie.
fn accept_cookie(ends: Ends, listener: &TempRc<'_, Endpoint>, segment: &Segment<'_>, cx: &Cx) -> Option<Header> {
    let Some(payer) = listener.payer_if_listening(cx) else { return segment.reset() };
    let settings = listener.settings.lock(cx).clone();
    let way = interface::way_to(ends.1.ip).ok()?;
    let opening = opening(&ends, &way, &settings, cx);
    let Some(connection) = cookie::decode(&key(cx), now(), &opening, segment) else {
        counters::COOKIES_WRONG.count();
        return segment.reset();
    };
    counters::COOKIES_BACK.count();
    let stage = Stage::Accepting { listener: listener.name, _half_open: None };
    let beginning = Beginning { connection, stage, version: listener.version };
    let entered = Remote::enter(ends, beginning, &settings, &payer, cx).ok()?;
    let Ok(remote) = entered.upgrade(cx) else { return None };
    let verdict = remote.state.lock(cx).connection.on_segment(now(), segment);
    remote.go_on(cx);
    match verdict {
        Verdict::Reply(header) => Some(header),
        Verdict::Taken | Verdict::Reopen => None,
    }
}

/// Sends a segment without data that belongs to no connection.
fn reply(ends: &Ends, header: &Header, cx: &Cx) {
    let mut bytes = [0; LONGEST_HEADER];
    let (source, destination) = (ends.0.ip, ends.1.ip);
    if let Ok(len) = header.emit(&mut bytes, 0, source, destination, OutgoingChecksum::Full)
        && let Ok(way) = interface::way_to(destination)
    {
        counters::TCP_OUT.count();
        // It may be lost.
        let _ = interface::send(&IpHeader::new(source, destination, protocol::TCP), &way, &bytes[..len], cx);
    }
}

impl Remote {
    /// The other machine may not be reached: that is told where the socket's program wants to hear of it (IP_RECVERR). The connection goes on.
    pub(super) fn tell_of_trouble(&self, error: Error, cx: &Cx) {
        if let Some(peer) = self.proxy.get(cx).connected_peer(cx) {
            peer.has_trouble(errno_of(error), cx);
        }
    }
}
