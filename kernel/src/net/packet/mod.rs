//! AF_PACKET: frames as they come from a network card and go to it: packet(7).
//!
//! | file | what it is |
//! | --- | --- |
//! | `endpoint` | a socket's end: which frames it wants, and what waits in it |
//! | `ring` | frames in memory that a program has mapped |
//! | `seen` | a frame that is shown |
//! | `socket` | an endpoint as an open file, and the family |
//!
//! [`seen`] is called with each frame that comes from a card or goes to it. While nobody wants any that is one look at a number.
//!
//! What is sent within this machine goes from socket to socket without frames. While a socket looks at the loopback device ([`watches_loopback`]) those that send make frames of what they send, to be [shown](seen_on_loopback) and
//! for nothing else. While none does, that too is one look at a number.
//!
//! Locks: an endpoint's `state`; who wants frames (`TAPS`), after it.

mod endpoint;
mod ring;
mod seen;
mod socket;

pub use endpoint::{Endpoint, SOCKETS};
pub use seen::{Checksum, Direction};
pub use socket::PacketFamily;

use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use refs::{SpinLock, WeakRc};

use crate::error::{Errno, Result};
use crate::net::devices;
use crate::net::interface::Interface;
use seen::Seen;

/// So many sockets get frames at most: each frame is shown to all of them in one go. There is a bit for each in a word.
const MOST_TAPS: usize = 64;
/// So many instructions their filters have at most, all together: each frame may take as many steps.
const MOST_INSTRUCTIONS: usize = 16_384;

static TAPS: SpinLock<[Option<Tap>; MOST_TAPS]> = SpinLock::new([None; MOST_TAPS]);
/// Which places in that are taken, a bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// Those of them that look at the loopback device.
static ON_LOOPBACK: AtomicU64 = AtomicU64::new(0);

/// Who is shown frames.
#[derive(Clone, Copy)]
struct Tap {
    endpoint: WeakRc<Endpoint>,
    /// Of which device; 0: of all.
    device: u32,
    /// How many instructions its filter has.
    instructions: usize,
}

impl Tap {
    fn watches_loopback(&self) -> bool {
        self.device == 0 || self.device == devices::INDEX as u32
    }
}

/// A socket's place among those who are shown frames. It ends with its socket, however that ends.
struct Tapping {
    place: usize,
}

impl Tapping {
    /// From now on a socket is shown the frames of a device; 0: of all.
    ///
    /// # Errors
    /// ENOBUFS: too many are, or their filters are too long.
    fn new(tap: Tap, cx: &Cx) -> Result<Self> {
        let mut taps = TAPS.lock(cx);
        let place = taps.iter().position(Option::is_none).ok_or(Errno::ENOBUFS)?;
        check(&taps, place, &tap)?;
        put(&mut taps, place, Some(tap));
        Ok(Tapping { place })
    }

    /// From now on it is shown those of another device, or has another filter.
    ///
    /// # Errors
    /// ENOBUFS: all filters are too long; nothing is changed.
    fn change(&self, tap: Tap, cx: &Cx) -> Result<()> {
        let mut taps = TAPS.lock(cx);
        check(&taps, self.place, &tap)?;
        put(&mut taps, self.place, Some(tap));
        Ok(())
    }
}

/// Whether the filters would not be too long.
fn check(taps: &[Option<Tap>; MOST_TAPS], place: usize, tap: &Tap) -> Result<()> {
    let others = taps.iter().enumerate().filter(|(at, _)| *at != place).filter_map(|(_, other)| other.as_ref());
    let instructions: usize = others.map(|other| other.instructions).sum();
    if instructions + tap.instructions > MOST_INSTRUCTIONS { Err(Errno::ENOBUFS) } else { Ok(()) }
}

impl Drop for Tapping {
    fn drop(&mut self) {
        TAPS.with(|taps| put(taps, self.place, None));
    }
}

/// With `TAPS` locked.
fn put(taps: &mut [Option<Tap>; MOST_TAPS], place: usize, tap: Option<Tap>) {
    taps[place] = tap;
    let note = |places: &AtomicU64, is_in: bool| {
        if is_in {
            places.fetch_or(1 << place, Ordering::Relaxed);
        } else {
            places.fetch_and(!(1 << place), Ordering::Relaxed);
        }
    };
    note(&TAKEN, tap.is_some());
    note(&ON_LOOPBACK, tap.is_some_and(|tap| tap.watches_loopback()));
}

/// Shows a frame of a card's to those who want such.
#[inline]
pub fn seen(frame: &[u8], interface: &Interface, direction: Direction, checksum: Checksum, cx: &Cx) {
    if TAKEN.load(Ordering::Relaxed) != 0 {
        show(&Seen::on(interface, frame, direction, checksum), cx);
    }
}

/// Whether somebody wants to see what goes over the loopback device.
#[inline(always)]
pub fn watches_loopback() -> bool {
    ON_LOOPBACK.load(Ordering::Relaxed) != 0
}

/// Shows a frame of the loopback device: as it goes, and as it comes.
pub fn seen_on_loopback(frame: &[u8], checksum: Checksum, cx: &Cx) {
    for direction in [Direction::Out, Direction::In] {
        show(&Seen::on_loopback(frame, direction, checksum), cx);
    }
}

#[inline(never)]
fn show(seen: &Seen<'_>, cx: &Cx) {
    let mut places = TAKEN.load(Ordering::Relaxed);
    while places != 0 {
        let tap = TAPS.lock(cx)[places.trailing_zeros() as usize];
        places &= places - 1;
        // One that ends just now is shown nothing.
        if let Some(endpoint) = tap.and_then(|tap| tap.endpoint.upgrade(cx).ok()) {
            endpoint.show(seen, cx);
        }
    }
}
