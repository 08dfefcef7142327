//! The sockets that there are, for procfs: some at a time.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::WeakRc;

use super::address::{Address, Version, as_v6};
use super::datagram::{self, Kind};
use super::tcp;

/// A socket.
pub struct Row {
    /// Its address, and that of its peer, as 32-bit words of the machine: one for IPv4, four for IPv6.
    pub local: Vec<u32>,
    /// Likewise.
    pub remote: Vec<u32>,
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

fn words(version: Version, address: Address) -> Vec<u32> {
    let octets = as_v6(address.ip).octets();
    let skipped = if version == Version::V4 { 12 } else { 0 };
    octets[skipped..].chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect()
}

impl Listing {
    /// How many parts the list has.
    pub fn parts(self) -> usize {
        match self {
            Listing::Tcp => tcp::PARTS,
            Listing::Datagram(_) => datagram::PARTS,
        }
    }

    /// How many sockets of a family are in one of its parts.
    pub fn count(self, part: usize, family: Family, cx: &Cx) -> usize {
        match self {
            Listing::Tcp => {
                let is_it = |name: &WeakRc<tcp::Endpoint>| name.upgrade(cx).is_ok_and(|one| one.version == family.0);
                tcp::of_part(part).iter().filter(|name| is_it(name)).count()
            }
            Listing::Datagram(kind) => {
                let is_it =
                    |name: &WeakRc<datagram::Endpoint>| name.upgrade(cx).is_ok_and(|one| one.version == family.0);
                datagram::of_part(kind, part).iter().filter(|name| is_it(name)).count()
            }
        }
    }

    /// One of its parts.
    pub fn part(self, part: usize, family: Family, cx: &Cx) -> Vec<Row> {
        match self {
            Listing::Tcp => rows(&tcp::of_part(part), family, cx, |endpoint: &tcp::Endpoint, cx| {
                let (state, local, remote) = endpoint.tcp_state(cx);
                (
                    endpoint.version,
                    local,
                    remote,
                    state as u8,
                    endpoint.waiting(cx),
                    endpoint.user(cx),
                    endpoint.inode.load(Ordering::Relaxed),
                )
            }),
            Listing::Datagram(kind) => {
                rows(&datagram::of_part(kind, part), family, cx, |endpoint: &datagram::Endpoint, cx| {
                    let (local, remote, waiting) = endpoint.addresses(cx);
                    // As on Linux, which tells these states by the names of TCP's.
                    let state = if remote.is_some() { tcp::TcpState::Established } else { tcp::TcpState::Close };
                    (
                        endpoint.version,
                        local,
                        remote,
                        state as u8,
                        waiting,
                        endpoint.user(cx),
                        endpoint.inode.load(Ordering::Relaxed),
                    )
                })
            }
        }
    }
}

fn rows<T: Send + Sync + 'static>(
    names: &[WeakRc<T>],
    family: Family,
    cx: &Cx,
    of: impl Fn(&T, &Cx) -> (Version, Address, Option<Address>, u8, usize, u32, u64),
) -> Vec<Row> {
    let mut rows = Vec::new();
    for endpoint in names.iter().filter_map(|name| name.upgrade(cx).ok()) {
        let (version, local, remote, state, waiting, user, inode) = of(&endpoint, cx);
        let remote = remote.unwrap_or(version.unbound());
        if version == family.0 && rows.try_reserve(1).is_ok() {
            let ports = [local.port, remote.port];
            rows.push(Row {
                local: words(version, local),
                remote: words(version, remote),
                ports,
                state,
                waiting,
                user,
                inode,
            });
        }
    }
    rows
}
