//! What sock_diag(7) tells of a socket: more than [`listing`](super::listing) does, of one at a time.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::net;

use super::address::{Address, Version};
use super::datagram::{self, Kind};
use super::listing::{Listing, Name};
use super::options::MOST_BUFFER;
use super::settings::Settings;
use super::tcp::{self, time_wait};
use crate::net::Shutdown;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its host.
    pub ip: IpAddr,
    /// Its port; of a socket of all messages the number of the protocol.
    pub port: u16,
}

/// What is told of it.
pub struct Details {
    /// `AF_*`.
    pub family: u32,
    /// The state of its connection.
    pub state: u8,
    /// Its own end, and its peer's.
    pub local: End,
    /// Likewise.
    pub remote: End,
    /// How much waits to be received, or how many connections; and how much to be sent, or how many connections may wait.
    pub queues: [u32; 2],
    /// Whose it is.
    pub user: u32,
    /// The number of its inode; 0: it waits to be accepted.
    pub inode: u64,
    /// Its number among all sockets.
    pub cookie: u64,
    /// Which directions are ended.
    pub shutdown: Shutdown,
    /// Its program has chosen its port.
    pub is_chosen: bool,
    /// Its settings: IP_TOS, IPV6_TCLASS, SO_MARK, IPV6_V6ONLY.
    pub class_v4: u8,
    /// Likewise.
    pub class_v6: u8,
    /// Likewise.
    pub mark: u32,
    /// Likewise.
    pub only_v6: bool,
    /// SO_RCVBUF and SO_SNDBUF.
    pub buffers: [u32; 2],
    /// How many messages were lost.
    pub drops: u32,
    /// For how many nanoseconds it goes on, if it is what is left of a connection.
    pub left: Option<u64>,
    /// The congestion control that was chosen.
    pub congestion_control: &'static [u8],
}

fn end(address: Address) -> End {
    End { ip: address.ip, port: address.port }
}

impl Listing {
    /// The socket with these ends, if there is one.
    pub fn find(self, local: End, remote: End) -> Option<Name> {
        let (local, remote) =
            (Address { ip: local.ip, port: local.port }, Address { ip: remote.ip, port: remote.port });
        match self {
            Listing::Tcp => {
                let left = || time_wait::find(&(local, remote)).map(|told| Name::TimeWait(told.ends));
                tcp::find(local, remote).map(Name::Tcp).or_else(left)
            }
            Listing::Datagram(kind) => datagram::find(kind, local, remote).map(Name::Datagram),
        }
    }
}

impl Name {
    /// What is told of it; `None` if it is gone.
    pub fn details(self, cx: &Cx) -> Option<Details> {
        match self {
            Name::Tcp(name) => Some(name.upgrade(cx).ok()?.details(cx)),
            Name::TimeWait(ends) => {
                let told = time_wait::find(&ends)?;
                let of_nobody = with_settings(&Settings::default(), told.version, [0; 2]);
                let (local, remote) = (end(ends.0), end(ends.1));
                Some(Details { state: told.state as u8, local, remote, left: Some(told.left), ..of_nobody })
            }
            Name::Datagram(name) => Some(name.upgrade(cx).ok()?.details(cx)),
        }
    }

    /// `struct tcp_info`, of a connection.
    pub fn info(self, cx: &Cx) -> Option<Vec<u8>> {
        match self {
            Name::Tcp(name) => Some(name.upgrade(cx).ok()?.info(cx)),
            Name::TimeWait(_) | Name::Datagram(_) => None,
        }
    }
}

/// What all sockets' settings say.
fn with_settings(settings: &Settings, version: Version, defaults: [i32; 2]) -> Details {
    let number = |level, name, default| settings.set_value(level, name).unwrap_or(default);
    Details {
        family: version.number(),
        state: 0,
        local: end(version.unbound()),
        remote: end(version.unbound()),
        queues: [0; 2],
        user: 0,
        inode: 0,
        cookie: 0,
        shutdown: Shutdown { reading: false, writing: false },
        is_chosen: false,
        class_v4: number(net::SOL_IP, net::IP_TOS, 0) as u8,
        class_v6: number(net::SOL_IPV6, net::IPV6_TCLASS, 0) as u8,
        mark: number(net::SOL_SOCKET, net::SO_MARK, 0) as u32,
        only_v6: settings.is_on(net::SOL_IPV6, net::IPV6_V6ONLY),
        buffers: [
            number(net::SOL_SOCKET, net::SO_RCVBUF, defaults[0]) as u32,
            number(net::SOL_SOCKET, net::SO_SNDBUF, defaults[1]) as u32,
        ],
        drops: 0,
        left: None,
        congestion_control: b"",
    }
}

impl tcp::Endpoint {
    fn details(&self, cx: &Cx) -> Details {
        let settings = self.settings.lock(cx).clone();
        let (state, local, remote) = self.tcp_state(cx);
        let (shutdown, is_chosen) = self.chosen(cx);
        Details {
            state: state as u8,
            local: end(local),
            remote: end(remote.unwrap_or(self.version.unbound())),
            queues: self.queues(cx),
            user: self.user(cx),
            inode: self.inode.load(Ordering::Relaxed),
            cookie: self.cookie.get(),
            shutdown,
            is_chosen,
            congestion_control: self.congestion_control(cx),
            ..with_settings(&settings, self.version, [131_072, 16_384])
        }
    }
}

impl datagram::Endpoint {
    fn details(&self, cx: &Cx) -> Details {
        let settings = self.settings.lock(cx).clone();
        let (mut local, remote, waiting) = self.addresses(cx);
        let (shutdown, is_chosen, number) = self.chosen(cx);
        if self.kind == Kind::Raw {
            local.port = number;
        }
        let state = if remote.is_some() { tcp::TcpState::Established } else { tcp::TcpState::Close };
        Details {
            state: state as u8,
            local: end(local),
            remote: end(remote.unwrap_or(self.version.unbound())),
            queues: [waiting as u32, 0],
            user: self.user(cx),
            inode: self.inode.load(Ordering::Relaxed),
            cookie: self.cookie.get(),
            shutdown,
            is_chosen,
            ..with_settings(&settings, self.version, [MOST_BUFFER as i32; 2])
        }
    }
}
