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

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, WeakRc};

use crate::error::{Errno, Result};
use crate::net::devices;
use crate::net::interface::Interface;
use seen::Seen;

/// So many sockets get frames at most: each frame is shown to all of them in one go.
const MOST_TAPS: usize = 64;

static TAPS: SpinLock<Vec<Tap>> = SpinLock::new(Vec::new());
static TAP_COUNT: AtomicUsize = AtomicUsize::new(0);
/// So many of them look at the loopback device.
static LOOPBACK_TAP_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Who is shown frames.
#[derive(Clone, Copy)]
struct Tap {
    endpoint: WeakRc<Endpoint>,
    /// Of which device; 0: of all.
    device: u32,
}

impl Tap {
    fn watches_loopback(&self) -> bool {
        self.device == 0 || self.device == devices::INDEX as u32
    }
}

/// Shows a frame of a card's to those who want such.
#[inline]
pub fn seen(frame: &[u8], interface: &Interface, direction: Direction, checksum: Checksum, cx: &Cx) {
    if TAP_COUNT.load(Ordering::Relaxed) > 0 {
        show(&Seen::on(interface, frame, direction, checksum), cx);
    }
}

/// Whether somebody wants to see what goes over the loopback device.
#[inline(always)]
pub fn watches_loopback() -> bool {
    LOOPBACK_TAP_COUNT.load(Ordering::Relaxed) > 0
}

/// Shows a frame of the loopback device: as it goes, and as it comes.
pub fn seen_on_loopback(frame: &[u8], checksum: Checksum, cx: &Cx) {
    for direction in [Direction::Out, Direction::In] {
        show(&Seen::on_loopback(frame, direction, checksum), cx);
    }
}

#[inline(never)]
fn show(seen: &Seen<'_>, cx: &Cx) {
    let taps = TAPS.lock(cx).clone();
    for tap in taps.iter().filter_map(|tap| tap.endpoint.upgrade(cx).ok()) {
        tap.show(seen, cx);
    }
}

/// From now on a socket is shown the frames of a device; 0: of all.
///
/// # Errors
/// ENOBUFS: too many are.
fn enter(endpoint: WeakRc<Endpoint>, device: u32, cx: &Cx) -> Result<()> {
    let mut taps = TAPS.lock(cx);
    match taps.iter().position(|tap| tap.endpoint == endpoint) {
        Some(at) => taps[at].device = device,
        None if taps.len() >= MOST_TAPS || taps.try_reserve(1).is_err() => return Err(Errno::ENOBUFS),
        None => taps.push(Tap { endpoint, device }),
    }
    count(&taps);
    Ok(())
}

/// It is shown no more.
fn leave(endpoint: WeakRc<Endpoint>, cx: &Cx) {
    let mut taps = TAPS.lock(cx);
    taps.retain(|tap| tap.endpoint != endpoint);
    count(&taps);
}

fn count(taps: &[Tap]) {
    TAP_COUNT.store(taps.len(), Ordering::Relaxed);
    LOOPBACK_TAP_COUNT.store(taps.iter().filter(|tap| tap.watches_loopback()).count(), Ordering::Relaxed);
}
