//! What programs change of an interface: whether it is up, its addresses, its neighbours. Whoever listens is told of each change.
//!
//! A program that changes an address of IPv4 has the choice of these addresses from then on: the kernel's own DHCP ends there. What the kernel has found stays until it is removed.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::Ordering;

use frame::Cx;
use tcpip::ethernet::HardwareAddress;
use tcpip::ip::{Address, AddressState, Prefix, Reassembler, ReassemblyLimits};
use tcpip::neighbour::{Autoconfiguration, NeighbourCache, NeighbourLimits, Reachability};
use tcpip::{Duration, dhcp};

use super::routes::{self, Manner};
use super::{Interface, key, now};
use crate::error::Errno;
use crate::net::devices::LEAST_MTU;
use crate::net::netlink::route::{self, Change};
use crate::net::refusal::{Refusal, refused};

/// No device has more addresses: each packet looks at them.
pub const MOST_ADDRESSES: usize = 256;
/// The least that IPv6 needs (RFC 8200).
const LEAST_MTU_V6: u32 = 1280;

/// How long an address may be used, in seconds; `None`: for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lifetimes {
    /// For what is new.
    pub preferred: Option<u32>,
    /// At all.
    pub valid: Option<u32>,
}

/// As Linux says it.
pub(super) fn already(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "ipv4: Address already assigned" } else { "address already assigned" }
}

/// Likewise.
pub(super) fn not_found(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "ipv4: Address not found" } else { "address not found" }
}

impl Interface {
    /// Adds an address, or changes how long it may be used.
    ///
    /// # Errors
    /// EEXIST: it is there, and is to be new. ENOENT: it is not. EINVAL: it cannot be one, or is not valid as long as it is preferred. EACCES: there is to be none of IPv6. ENOBUFS.
    pub fn add_address(&self, prefix: Prefix, lifetimes: Lifetimes, manner: Manner, cx: &Cx) -> Result<(), Refusal> {
        let ip = prefix.address();
        let is_none = ip.is_unspecified() || ip.is_multicast() || ip.is_loopback();
        let too_short = lifetimes.valid == Some(0)
            || lifetimes.valid.is_some_and(|valid| lifetimes.preferred.is_none_or(|preferred| preferred > valid));
        if is_none || too_short {
            return Err(refused(Errno::EINVAL, if is_none { "Invalid address" } else { "Invalid lifetime" }));
        }
        let until = |seconds: Option<u32>| seconds.map(|seconds| now() + Duration::from_secs(seconds.into()));
        let state = if lifetimes.preferred == Some(0) { AddressState::Deprecated } else { AddressState::Preferred };
        let address =
            Address { prefix, state, preferred_until: until(lifetimes.preferred), valid_until: until(lifetimes.valid) };
        {
            let mut state = self.state.lock(cx);
            if ip.is_ipv6() && state.has_no_v6 {
                return Err(refused(Errno::EACCES, "IPv6 is disabled on this device"));
            }
            let known = state.addresses.iter().any(|own| own.prefix.address() == ip);
            if known && !manner.replaces {
                return Err(refused(Errno::EEXIST, already(ip)));
            }
            if !known && !manner.creates {
                return Err(refused(Errno::ENOENT, "Address not found"));
            }
            if state.addresses.iter().count() >= MOST_ADDRESSES || state.addresses.add(address).is_err() {
                return Err(Errno::ENOBUFS.into());
            }
            if ip.is_ipv4() {
                state.stop_dhcp();
            }
        }
        self.addresses_changed(cx);
        Ok(())
    }

    /// Removes an address.
    ///
    /// # Errors
    /// EADDRNOTAVAIL: it is none of its addresses.
    pub fn remove_address(&self, prefix: Prefix, cx: &Cx) -> Result<(), Refusal> {
        {
            let mut state = self.state.lock(cx);
            if !state.addresses.iter().any(|own| own.prefix == prefix) {
                return Err(refused(Errno::EADDRNOTAVAIL, not_found(prefix.address())));
            }
            state.addresses.remove(prefix.address());
            if prefix.address().is_ipv4() {
                state.stop_dhcp();
            }
        }
        self.addresses_changed(cx);
        Ok(())
    }

    /// Lets frames through, or none any more.
    pub fn set_up(&self, is_up: bool, cx: &Cx) {
        if self.is_up.swap(is_up, Ordering::Relaxed) == is_up {
            return;
        }
        if is_up {
            self.begin(cx)
        } else {
            self.end(cx)
        }
        self.addresses_changed(cx);
        route::tell_device(self.index as i32, cx);
    }

    /// It begins to look for addresses, as far as programs leave that to the kernel.
    fn begin(&self, cx: &Cx) {
        let key = key(cx);
        let mut state = self.state.lock(cx);
        let state = &mut *state;
        if state.is_automatic {
            state.dhcp = Some(dhcp::Client::new(now(), self.hardware(), key));
        }
        if !state.has_no_v6 {
            state.autoconfiguration = Some(Autoconfiguration::new(now(), self.hardware(), &mut state.addresses));
        }
    }

    /// It forgets what it has found, and whatever led over it.
    fn end(&self, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            (state.autoconfiguration, state.dhcp) = (None, None);
            state.neighbours = NeighbourCache::new(NeighbourLimits::default());
            state.reassembler = Reassembler::new(ReassemblyLimits::default());
            if state.is_automatic
                && let Some(lease) = state.lease.take()
            {
                state.addresses.remove(lease.address.into());
            }
            state.forget_v6();
        }
        routes::remove_all(|route| route.interface == self.index, cx);
    }

    /// Whether it may have addresses of IPv6.
    pub fn may_have_v6(&self, cx: &Cx) -> bool {
        !self.state.lock(cx).has_no_v6
    }

    /// Has it have addresses of IPv6, or none.
    pub fn set_v6(&self, is_wanted: bool, cx: &Cx) {
        {
            let mut state = self.state.lock(cx);
            let state = &mut *state;
            if state.has_no_v6 != is_wanted {
                return;
            }
            state.has_no_v6 = !is_wanted;
            state.forget_v6();
            let begins = is_wanted && self.is_up();
            state.autoconfiguration =
                begins.then(|| Autoconfiguration::new(now(), self.hardware(), &mut state.addresses));
        }
        if !is_wanted {
            routes::remove_all(|route| route.interface == self.index && route.prefix.address().is_ipv6(), cx);
        }
        self.addresses_changed(cx);
    }

    /// Chooses how many bytes the largest packet has.
    ///
    /// # Errors
    /// EINVAL: fewer than there must be, or more than the card takes.
    pub fn set_mtu(&self, mtu: u32, cx: &Cx) -> Result<(), Refusal> {
        if mtu < LEAST_MTU {
            return Err(refused(Errno::EINVAL, "mtu less than device minimum"));
        }
        if mtu > self.card.mtu().into() {
            return Err(refused(Errno::EINVAL, "mtu greater than device maximum"));
        }
        self.mtu.store(mtu as u16, Ordering::Relaxed);
        if mtu < LEAST_MTU_V6 {
            self.set_v6(false, cx);
        }
        route::tell_device(self.index as i32, cx);
        Ok(())
    }

    /// Chooses its address on the link. The card itself takes what comes for any.
    ///
    /// # Errors
    /// EADDRNOTAVAIL: it is not one device's.
    pub fn set_hardware(&self, address: HardwareAddress, cx: &Cx) -> Result<(), Refusal> {
        let [a, b, c, d, e, f] = address.0;
        let number = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        if number == 0 || !address.is_unicast() {
            return Err(Errno::EADDRNOTAVAIL.into());
        }
        self.hardware.store(number, Ordering::Relaxed);
        if self.is_up() {
            // What it has found was for the old one.
            self.end(cx);
            self.begin(cx);
            self.addresses_changed(cx);
        }
        route::tell_device(self.index as i32, cx);
        Ok(())
    }

    /// Its neighbours: address, device, and what is known.
    pub fn neighbours(&self, cx: &Cx) -> Vec<(IpAddr, Option<HardwareAddress>, Reachability)> {
        self.state.lock(cx).neighbours.iter().collect()
    }

    /// Says which device a neighbour is.
    ///
    /// # Errors
    /// EEXIST, ENOENT: as `manner` says. ENOBUFS.
    pub fn set_neighbour(
        &self,
        address: IpAddr,
        hardware: HardwareAddress,
        known: Reachability,
        manner: Manner,
        cx: &Cx,
    ) -> Result<(), Refusal> {
        let waited = {
            let mut state = self.state.lock(cx);
            let is_known =
                state.neighbours.iter().any(|(own, _, known)| own == address && known != Reachability::Failed);
            if is_known && manner.is_exclusive {
                return Err(Errno::EEXIST.into());
            }
            if !is_known && !manner.creates {
                return Err(Errno::ENOENT.into());
            }
            state.neighbours.set(now(), address, hardware, known).map_err(|_| Errno::ENOBUFS)?
        };
        for frame in waited {
            // One that is lost is sent again by who wants it to arrive.
            let _ = self.send_frame(hardware, frame, cx);
        }
        route::tell_neighbour(self.index as i32, (address, Some(hardware), known), Change::New, cx);
        Ok(())
    }

    /// Forgets a neighbour.
    ///
    /// # Errors
    /// ENOENT: it is not known.
    pub fn remove_neighbour(&self, address: IpAddr, cx: &Cx) -> Result<(), Refusal> {
        let (known, lost) = {
            let mut state = self.state.lock(cx);
            let known = state.neighbours.iter().find(|(own, ..)| *own == address).ok_or(Errno::ENOENT)?;
            (known, state.neighbours.remove(address))
        };
        drop(lost);
        route::tell_neighbour(self.index as i32, known, Change::Gone, cx);
        Ok(())
    }

    /// Its addresses are not as they were: routes by which nobody can be reached any more go, its task looks when something is due, and whoever listens is told.
    fn addresses_changed(&self, cx: &Cx) {
        let own = self.addresses(cx);
        let leads_nowhere = |route: &tcpip::ip::Route| {
            let is_link_local = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
            let has = |ip: IpAddr| own.iter().any(|own| own.prefix.address() == ip);
            let is_near = |ip: IpAddr| is_link_local(ip) || own.iter().any(|own| own.prefix.contains(ip));
            let of_version = |ip: IpAddr| own.iter().any(|own| own.prefix.address().is_ipv4() == ip.is_ipv4());
            route.interface == self.index
                && (route.source.is_some_and(|source| !has(source))
                    || !of_version(route.prefix.address())
                    || route.gateway.is_some_and(|gateway| gateway.is_ipv4() && !is_near(gateway)))
        };
        routes::remove_all(leads_nowhere, cx);
        self.news.wake_all();
        self.tell_addresses(cx);
    }

    /// Tells whoever listens which addresses are new and which are gone.
    pub(super) fn tell_addresses(&self, cx: &Cx) {
        let (old, new) = {
            let mut state = self.state.lock(cx);
            let new: Vec<Prefix> = state.addresses.iter().map(|address| address.prefix).collect();
            if new == state.told {
                return;
            }
            (core::mem::replace(&mut state.told, new.clone()), new)
        };
        for prefix in old.iter().filter(|prefix| !new.contains(prefix)) {
            route::tell_address(self.index as i32, prefix, Change::Gone, cx);
        }
        for prefix in new.iter().filter(|prefix| !old.contains(prefix)) {
            route::tell_address(self.index as i32, prefix, Change::New, cx);
        }
    }
}

impl super::State {
    /// Programs choose its addresses of IPv4 from now on. The one that the kernel has found is as theirs.
    fn stop_dhcp(&mut self) {
        (self.dhcp, self.is_automatic) = (None, false);
    }

    fn forget_v6(&mut self) {
        let all: Vec<IpAddr> = self.addresses.iter().map(|own| own.prefix.address()).filter(IpAddr::is_ipv6).collect();
        for address in all {
            self.addresses.remove(address);
        }
    }
}
