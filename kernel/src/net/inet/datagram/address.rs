//! Binding an endpoint, and connecting it: then it sends there, and gets messages from there only.

use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net;

use super::Endpoint;
use super::endpoint::{Kind, State};
use crate::error::{Errno, Result};
use crate::net::inet::address::{Address, BROADCAST, Version, is_own, route, source_for};
use crate::net::inet::ports::{Bound, Key};
use crate::step::Step;

impl Endpoint {
    /// What a `struct sockaddr` means to it: a socket of AF_INET6 takes those of AF_INET as well.
    ///
    /// # Errors
    /// EINVAL: too short. EAFNOSUPPORT.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Option<Address>> {
        let family = bytes.first_chunk().map(|family| u32::from(u16::from_le_bytes(*family)));
        if self.version == Version::V6 && family == Some(net::AF_INET) { Version::V4 } else { self.version }
            .decode(bytes)
    }

    /// Gives it an address: `user`'s.
    ///
    /// # Errors
    /// EINVAL: it has one. EADDRNOTAVAIL: it is none of this machine's. EADDRINUSE.
    pub fn bind(&self, address: Address, user: u32, cx: &Cx) -> Result<()> {
        let settings = self.settings.lock(cx).clone();
        let may_be_foreign = settings.is_on(net::SOL_IP, net::IP_FREEBIND)
            || settings.is_on(net::SOL_IPV6, net::IPV6_FREEBIND)
            || address.ip.is_multicast()
            || address.ip == BROADCAST;
        if !address.ip.is_unspecified() && !is_own(address.ip) && !may_be_foreign {
            return Err(Errno::EADDRNOTAVAIL);
        }
        let (is_bound, key) = {
            let state = self.state.lock(cx);
            (state.bound.is_some(), Key { ip: address.ip, ..state.key(&settings, user) })
        };
        if is_bound && self.kind != Kind::Raw {
            return Err(Errno::EINVAL);
        }
        if self.kind == Kind::Raw {
            self.state.lock(cx).local.ip = address.ip;
            return Ok(());
        }
        let bound = match address.port {
            0 => self.kind.ports().claim_any(key, cx)?,
            port => self.kind.ports().claim(port, key)?,
        };
        self.take(bound, true, cx).map(|_| ())
    }

    /// It has a port from now on, which it may have got meanwhile otherwise.
    fn take(&self, bound: Bound<Endpoint>, is_chosen: bool, cx: &Cx) -> Result<Address> {
        let mut state = self.state.lock(cx);
        if state.bound.is_some() {
            let local = state.local;
            drop(state);
            return if is_chosen { Err(Errno::EINVAL) } else { Ok(local) };
        }
        bound.reach(self.name, None)?;
        state.local = Address { ip: bound.key().ip, port: bound.port() };
        state.bound = Some(bound);
        state.is_chosen = is_chosen;
        Ok(state.local)
    }

    /// Its address, with a port: it gets one if it has none.
    ///
    /// # Errors
    /// EAGAIN: there is none.
    pub(super) fn local(&self, user: &dyn Fn() -> Result<u32>, cx: &Cx) -> Result<Address> {
        let settings = {
            let state = self.state.lock(cx);
            if state.bound.is_some() {
                return Ok(state.local);
            }
            self.settings.lock(cx).clone()
        };
        let user = user()?;
        let key = self.state.lock(cx).key(&settings, user);
        let bound = self.kind.ports().claim_any(key, cx).map_err(|_| Errno::EAGAIN)?;
        self.take(bound, false, cx)
    }

    /// Has it send to an address, and get messages from there only.
    ///
    /// # Errors
    /// ENETUNREACH; EACCES: a broadcast that was not asked for. EAGAIN: there is no port.
    pub fn connect(&self, to: Address, user: &dyn Fn() -> Result<u32>, cx: &Cx) -> Step<()> {
        let settings = self.settings.lock(cx).clone();
        let to = Address { ip: self.destination(to.ip)?, ..to };
        let own = self.state.lock(cx).local.ip;
        self.version.check_reach(own, settings.is_on(net::SOL_IPV6, net::IPV6_V6ONLY), to.ip)?;
        self.local(user, cx)?;
        let mut state = self.state.lock(cx);
        if state.local.ip.is_unspecified() {
            state.local.ip = source_for(to.ip);
        }
        state.remote = Some(to);
        state.error = None;
        if let Some(bound) = &state.bound {
            bound.reach(self.name, Some(to).filter(|_| self.kind == Kind::Udp))?;
        }
        Ok(())
    }

    /// Has it send to nobody in particular, and get messages from anybody: connect(2) with AF_UNSPEC.
    pub fn disconnect(&self, cx: &Cx) {
        let left = {
            let mut state = self.state.lock(cx);
            state.remote = None;
            state.disconnect(self, self.version)
        };
        drop(left);
    }

    /// Whether what it sends to groups goes to this machine alone.
    pub(super) fn sends_to_loopback(&self) -> bool {
        self.settings.with(|settings| {
            settings.is_on(net::SOL_IP, net::IP_MULTICAST_IF) || settings.is_on(net::SOL_IPV6, net::IPV6_MULTICAST_IF)
        })
    }

    /// Where what is sent to an address arrives.
    ///
    /// # Errors
    /// ENETUNREACH. EACCES: it is a broadcast, and the socket did not say that it wants that.
    pub(super) fn destination(&self, ip: IpAddr) -> Result<IpAddr> {
        if is_own(ip) && ip != BROADCAST {
            return Ok(ip);
        }
        let broadcasts = self.settings.with(|settings| settings.is_on(net::SOL_SOCKET, net::SO_BROADCAST));
        match ip {
            BROADCAST if !broadcasts => Err(Errno::EACCES),
            ip if ip.is_multicast() && self.sends_to_loopback() => Ok(ip),
            ip => route(ip),
        }
    }

    /// Its peer's address.
    ///
    /// # Errors
    /// ENOTCONN.
    pub fn peer_address(&self, cx: &Cx) -> Result<Address> {
        self.state.lock(cx).remote.ok_or(Errno::ENOTCONN)
    }
}

impl State {
    /// Gives back what it has only because it was connected.
    fn disconnect(&mut self, endpoint: &Endpoint, version: Version) -> Option<Bound<Endpoint>> {
        match &self.bound {
            Some(bound) if self.is_chosen => {
                // It was found there before.
                let _ = bound.reach(endpoint.name, None);
                self.local = Address { ip: bound.key().ip, port: bound.port() };
                None
            }
            Some(bound) => {
                bound.hide(endpoint.name);
                self.local = version.unbound();
                self.bound.take()
            }
            None => None,
        }
    }
}
