//! SYN cookies (RFC 4987, section 3.6): a listener that has no room for another half-open connection keeps nothing, and the client brings back what is needed.
//!
//! The cookie is the initial sequence number of the SYN and ACK. From the top: 5 bits of a clock of 64 seconds, 3 bits that name an MSS, and 24 bits of a keyed
//! hash of both, the ends and the client's number. Window scale and SACK travel in the low bits of the time stamp, which the client echoes; a client without
//! time stamps does without both.

use crate::siphash::Key;
use crate::time::Instant;

use super::connection::{Connection, Endpoints, Opening};
use super::initial::message;
use super::segment::{Header, Options, Segment, Timestamps};

/// The values of MSS that a cookie can name: the largest that is not above the client's is used.
const MSS: [u16; 8] = [64, 536, 1220, 1300, 1400, 1440, 1460, 8960];
/// Seconds of a tick of the clock.
const TICK_SECONDS: u64 = 64;
/// A cookie is good in the tick in which it was made and in as many after that.
const TICKS: u64 = 2;
/// Low bits of a time stamp that hold options: four of window scale (15 is none) and one of SACK.
const STAMP_BITS: u32 = 5;
const NO_SCALE: u32 = 15;

/// What a listener answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Bytes of the largest IP packet that the route's device takes.
    pub mtu: usize,
    /// The window to offer, in bytes: what [`Settings::receive_initial`](super::Settings::receive_initial) will be.
    pub window: usize,
    /// The window scale to offer: what a connection with the same settings would.
    pub window_scale: u8,
    /// What is added to the clock of the time stamps.
    pub timestamp_offset: u32,
}

fn sequence(key: &Key, endpoints: &Endpoints, peer: u32, tick: u64, mss: usize) -> u32 {
    let word = u64::from(peer) << 32 | (tick & 0xff_ffff) << 8 | mss as u64;
    let hash = key.hash(&message(endpoints, word)) as u32 & 0xff_ffff;
    (tick as u32 & 31) << 27 | (mss as u32) << 24 | hash
}

/// The SYN and ACK that answers a SYN, with a cookie. `None`: it is no SYN.
pub fn encode(
    key: &Key,
    now: Instant,
    endpoints: &Endpoints,
    listener: &Listener,
    syn: &Segment<'_>,
) -> Option<Header> {
    let theirs = &syn.header;
    if !theirs.syn || theirs.rst || theirs.acknowledgment.is_some() {
        return None;
    }
    let tick = now.millis() / 1000 / TICK_SECONDS;
    let offered = theirs.options.mss.unwrap_or(endpoints.default_mss());
    let mss = MSS.iter().rposition(|&mss| mss <= offered).unwrap_or(0);
    let timestamps = theirs.options.timestamps.map(|stamps| {
        let clock = (now.millis() as u32).wrapping_add(listener.timestamp_offset);
        let options =
            theirs.options.window_scale.map_or(NO_SCALE, u32::from) << 1 | u32::from(theirs.options.sack_permitted);
        // Stamps must not run ahead of the clock, so that later ones are not older.
        let value = (clock >> STAMP_BITS).wrapping_sub(1) << STAMP_BITS | options;
        Timestamps { value, echo: stamps.value }
    });
    let with_stamps = timestamps.is_some();
    Some(Header {
        source_port: theirs.destination_port,
        destination_port: theirs.source_port,
        sequence: sequence(key, endpoints, theirs.sequence, tick, mss),
        acknowledgment: Some(theirs.sequence.wrapping_add(1)),
        syn: true,
        window: listener.window.min(usize::from(u16::MAX)) as u16,
        options: Options {
            mss: Some(listener.mtu.saturating_sub(endpoints.headers_bytes()).clamp(64, usize::from(u16::MAX)) as u16),
            window_scale: (with_stamps && theirs.options.window_scale.is_some()).then_some(listener.window_scale),
            sack_permitted: with_stamps && theirs.options.sack_permitted,
            timestamps,
            ..Options::default()
        },
        ..Header::default()
    })
}

/// The connection that an ACK with a cookie opens; its `opening.sequence` is taken from the cookie. `None`: the cookie was not made by [`encode`] with this key, or is
/// too old. Feed it the segment next.
pub fn decode(key: &Key, now: Instant, opening: &Opening, ack: &Segment<'_>) -> Option<Connection> {
    let header = &ack.header;
    if header.syn || header.rst {
        return None;
    }
    let cookie = header.acknowledgment?.wrapping_sub(1);
    let now_tick = now.millis() / 1000 / TICK_SECONDS;
    let age = u64::from((now_tick as u32).wrapping_sub(cookie >> 27) & 31);
    let tick = now_tick.checked_sub(age).filter(|_| age <= TICKS)?;
    let mss = (cookie >> 24 & 7) as usize;
    let peer = header.sequence.wrapping_sub(1);
    if sequence(key, &opening.endpoints, peer, tick, mss) != cookie {
        return None;
    }
    let mut options = Options { mss: Some(MSS[mss]), timestamps: header.options.timestamps, ..Options::default() };
    if let Some(stamps) = header.options.timestamps {
        let scale = stamps.echo >> 1 & 15;
        options.window_scale = (scale != NO_SCALE).then_some(scale as u8);
        options.sack_permitted = stamps.echo & 1 != 0;
    }
    let opening = Opening { sequence: cookie, ..*opening };
    Some(Connection::from_cookie(now, &opening, &options, header))
}
