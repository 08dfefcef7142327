//! Addresses of the loopback device that programs have added, beside those that it always has.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::{AtomicUsize, Ordering};

use frame::Cx;
use refs::SpinLock;
use tcpip::ip::Prefix;

use super::change::{MOST_ADDRESSES, already, not_found};
use crate::error::Errno;
use crate::net::devices;
use crate::net::netlink::route::{self, Change};
use crate::net::refusal::{Refusal, refused};

static ADDRESSES: SpinLock<Vec<Prefix>> = SpinLock::new(Vec::new());
/// How many there are: mostly none, and nobody takes the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether an address is one of them.
pub fn has(address: IpAddr) -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && ADDRESSES.with(|all| all.iter().any(|one| one.address() == address))
}

/// All of them.
pub fn addresses(cx: &Cx) -> Vec<Prefix> {
    ADDRESSES.lock(cx).clone()
}

/// Adds one.
///
/// # Errors
/// EEXIST, ENOBUFS.
pub fn add(prefix: Prefix, cx: &Cx) -> Result<(), Refusal> {
    {
        let mut all = ADDRESSES.lock(cx);
        if prefix.address().is_loopback() || all.iter().any(|one| one.address() == prefix.address()) {
            return Err(refused(Errno::EEXIST, already(prefix.address())));
        }
        if all.len() >= MOST_ADDRESSES || all.try_reserve(1).is_err() {
            return Err(Errno::ENOBUFS.into());
        }
        all.push(prefix);
        COUNT.store(all.len(), Ordering::Relaxed);
    }
    route::tell_address(devices::INDEX, &prefix, Change::New, cx);
    Ok(())
}

/// Removes one.
///
/// # Errors
/// EADDRNOTAVAIL: it is none of them. EOPNOTSUPP: it is one that the device always has.
pub fn remove(prefix: Prefix, cx: &Cx) -> Result<(), Refusal> {
    if prefix.address().is_loopback() {
        return Err(refused(Errno::EOPNOTSUPP, "The loopback device keeps its own addresses"));
    }
    {
        let mut all = ADDRESSES.lock(cx);
        let before = all.len();
        all.retain(|one| *one != prefix);
        if all.len() == before {
            return Err(refused(Errno::EADDRNOTAVAIL, not_found(prefix.address())));
        }
        COUNT.store(all.len(), Ordering::Relaxed);
    }
    route::tell_address(devices::INDEX, &prefix, Change::Gone, cx);
    Ok(())
}
