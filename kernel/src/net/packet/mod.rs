//! AF_PACKET: frames as they come from a network card and go to it: packet(7).
//!
//! | file | what it is |
//! | --- | --- |
//! | `endpoint` | a socket's end: which frames it wants, and what waits in it |
//! | `ring` | frames in memory that a program has mapped |
//! | `socket` | an endpoint as an open file, and the family |
//!
//! [`seen`] is called with each frame that comes from a card or goes to it. While nobody wants any that is one look at a number.
//!
//! What is sent within this machine goes from socket to socket, and there are no frames of it: a socket that is bound to the loopback device receives nothing.
//!
//! Locks: an endpoint's `state`; who wants frames (`TAPS`), after it.

mod endpoint;
mod ring;
mod socket;

pub use endpoint::{Endpoint, SOCKETS};
pub use socket::PacketFamily;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::{SpinLock, WeakRc};

use crate::error::{Errno, Result};
use crate::net::interface::Interface;

/// So many sockets get frames at most: each frame is shown to all of them in one go.
const MOST_TAPS: usize = 64;

static TAPS: SpinLock<Vec<WeakRc<Endpoint>>> = SpinLock::new(Vec::new());
static TAP_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether a frame comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It has come.
    In,
    /// It goes.
    Out,
}

/// Shows a frame to those who want such.
#[inline]
pub fn seen(frame: &[u8], interface: &Interface, direction: Direction, cx: &Cx) {
    if TAP_COUNT.load(Ordering::Relaxed) > 0 {
        show(frame, interface, direction, cx);
    }
}

#[inline(never)]
fn show(frame: &[u8], interface: &Interface, direction: Direction, cx: &Cx) {
    let taps = TAPS.lock(cx).clone();
    for tap in taps.iter().filter_map(|tap| tap.upgrade(cx).ok()) {
        tap.show(frame, interface, direction, cx);
    }
}

/// From now on a socket is shown frames.
///
/// # Errors
/// ENOBUFS: too many are.
fn enter(tap: WeakRc<Endpoint>, cx: &Cx) -> Result<()> {
    let mut taps = TAPS.lock(cx);
    if taps.contains(&tap) {
        return Ok(());
    }
    if taps.len() >= MOST_TAPS || taps.try_reserve(1).is_err() {
        return Err(Errno::ENOBUFS);
    }
    taps.push(tap);
    TAP_COUNT.store(taps.len(), Ordering::Relaxed);
    Ok(())
}

/// It is shown no more.
fn leave(tap: WeakRc<Endpoint>, cx: &Cx) {
    let mut taps = TAPS.lock(cx);
    taps.retain(|one| *one != tap);
    TAP_COUNT.store(taps.len(), Ordering::Relaxed);
}
