//! The sockets that there are, for procfs and sock_diag(7): one after another.

use core::sync::atomic::Ordering;

use frame::Cx;
use refs::WeakRc;

use super::address::{Address, Version, as_v6};
use super::datagram::{self, Kind};
use super::ports::PortCursor;
use super::tcp::{self, time_wait};
use crate::net::cursor::Cursor;

/// A socket, by name.
#[derive(Clone, Copy)]
pub enum Name {
    /// A listener or a connection.
    Tcp(WeakRc<tcp::Endpoint>),
    /// What is left of a connection that ended here first, and of its socket nothing.
    TimeWait(time_wait::Ends),
    /// A socket of messages.
    Datagram(WeakRc<datagram::Endpoint>),
}

/// How far a list was gone through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    ports: PortCursor,
    connections: Cursor<(Address, Address)>,
    time_waits: Cursor<u64>,
}

/// What procfs tells of a socket.
pub struct Row {
    /// Its family.
    pub family: Family,
    /// Its address, and that of its peer, as 32-bit words of the machine: of IPv4 the first one only ([`Family::words`]).
    pub local: [u32; 4],
    /// Likewise.
    pub remote: [u32; 4],
    /// Its port, and its peer's.
    pub ports: [u16; 2],
    /// The state of its connection.
    pub state: u8,
    /// How many bytes, or connections, wait.
    pub waiting: usize,
    /// Whose it is.
    pub user: u32,
    /// The number of its inode; 0: it waits to be accepted.
    pub inode: u64,
    /// For how many nanoseconds what is left of a connection goes on.
    pub left: Option<u64>,
}

/// What is listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Listeners and connections.
    Tcp,
    /// Sockets of messages.
    Datagram(Kind),
}

/// Of which family.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Family(Version);

/// AF_INET.
pub const V4: Family = Family(Version::V4);
/// AF_INET6.
pub const V6: Family = Family(Version::V6);

impl Family {
    /// How many words an address has.
    pub fn words(self) -> usize {
        match self.0 {
            Version::V4 => 1,
            Version::V6 => 4,
        }
    }
}

fn words(version: Version, address: Address) -> [u32; 4] {
    let octets = as_v6(address.ip).octets();
    let skipped = if version == Version::V4 { 12 } else { 0 };
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(octets[skipped..].chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}

impl Listing {
    /// The next socket, or what is left of one.
    pub fn next(self, place: &mut Place) -> Option<Name> {
        match self {
            Listing::Tcp => tcp::next_listener(&mut place.ports)
                .or_else(|| tcp::next_connection(&mut place.connections))
                .map(Name::Tcp)
                .or_else(|| time_wait::next(&mut place.time_waits).map(Name::TimeWait)),
            Listing::Datagram(kind) => datagram::next(kind, &mut place.ports).map(Name::Datagram),
        }
    }
}

impl Name {
    /// The family of a socket; `None` if it is gone.
    pub fn family(self, cx: &Cx) -> Option<Family> {
        Some(Family(match self {
            Name::Tcp(name) => name.upgrade(cx).ok()?.version,
            Name::TimeWait(_) => return None,
            Name::Datagram(name) => name.upgrade(cx).ok()?.version,
        }))
    }

    /// What procfs tells of it; `None` if it is gone.
    pub fn row(self, cx: &Cx) -> Option<Row> {
        let mut left = None;
        let (version, local, remote, state, waiting, user, inode) = match self {
            Name::Tcp(name) => {
                let endpoint = name.upgrade(cx).ok()?;
                let (state, local, remote) = endpoint.tcp_state(cx);
                let inode = endpoint.inode.load(Ordering::Relaxed);
                (endpoint.version, local, remote, state, endpoint.waiting(cx), endpoint.user(cx), inode)
            }
            Name::TimeWait(ends) => {
                let told = time_wait::find(&ends)?;
                left = Some(told.left);
                (told.version, ends.0, Some(ends.1), told.state, 0, 0, 0)
            }
            Name::Datagram(name) => {
                let endpoint = name.upgrade(cx).ok()?;
                let (local, remote, waiting) = endpoint.addresses(cx);
                // As on Linux, which tells these states by the names of TCP's.
                let state = if remote.is_some() { tcp::TcpState::Established } else { tcp::TcpState::Close };
                let inode = endpoint.inode.load(Ordering::Relaxed);
                (endpoint.version, local, remote, state, waiting, endpoint.user(cx), inode)
            }
        };
        let remote = remote.unwrap_or(version.unbound());
        Some(Row {
            family: Family(version),
            local: words(version, local),
            remote: words(version, remote),
            ports: [local.port, remote.port],
            state: state as u8,
            waiting,
            user,
            inode,
            left,
        })
    }
}
