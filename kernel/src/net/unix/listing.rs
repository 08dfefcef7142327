//! The sockets that there are, for procfs and sock_diag(7). Connections that were not accepted yet have no inode and are told of with their listener only.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use refs::WeakRc;

use super::Address;
use super::endpoint::Role;
use super::{Endpoint, Kind};
use crate::net::Shutdown;
use crate::net::registry::Registry;

/// All open sockets, by their inodes.
pub static SOCKETS: Registry<Endpoint> = Registry::new();

/// A socket of the family, by name.
pub type Name = WeakRc<Endpoint>;

/// What one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no peer.
    Unconnected,
    /// It has one.
    Connected,
    /// It accepts connections.
    Listening,
}

/// Of those who wait to be accepted so many are told at most.
const MOST_WAITING: usize = 4096;

/// A socket.
pub struct Row {
    /// `SOCK_*`.
    pub kind: u8,
    /// What it does.
    pub state: State,
    /// Its address, without the family.
    pub name: Option<Vec<u8>>,
    /// The number of its inode.
    pub inode: u64,
    /// Its number among all sockets.
    pub cookie: u64,
    /// The number of its peer's inode; 0: nobody has accepted that yet.
    pub peer: Option<u64>,
    /// How many bytes wait, or connections; how many bytes wait at its peer, or how many connections may wait.
    pub queues: [u32; 2],
    /// Which directions are ended.
    pub shutdown: Shutdown,
    /// Whose it is.
    pub user: u32,
}

/// What is told of a socket; `None` if it is gone, or left of a table that has ended.
pub fn row(name: Name, cx: &Cx) -> Option<Row> {
    let endpoint = name.upgrade(cx).ok()?;
    if endpoint.inbox.lock(cx).is_left() {
        return None;
    }
    let (state, address, shutdown, user, peer, connections) = {
        let state = endpoint.state.lock(cx);
        let (what, peer, connections) = match &state.role {
            Role::Connected(connected) => (State::Connected, Some(connected.peer), [0; 2]),
            Role::Listening(listener) => {
                let connections = [listener.waiting().count() as u32, listener.backlog() as u32];
                (State::Listening, None, connections)
            }
            Role::Init | Role::Connecting | Role::Closed => (State::Unconnected, None, [0; 2]),
        };
        (what, state.address.clone(), state.shutdown, state.credentials.uid, peer, connections)
    };
    let waits_at = |name: &Name| name.upgrade(cx).ok().map_or(0, |other| other.inbox.lock(cx).bytes() as u32);
    let queues = match state {
        State::Listening => connections,
        _ => {
            // One after the other: it may be its own peer, and another lists the two the other way round.
            let own = endpoint.inbox.lock(cx).bytes() as u32;
            [own, peer.as_ref().map_or(0, waits_at)]
        }
    };
    Some(Row {
        kind: match endpoint.kind {
            Kind::Stream => 1,
            Kind::Datagram => 2,
            Kind::SequencedPacket => 5,
        },
        state,
        name: address.as_ref().map(|address| Address::encode(Some(address)).split_off(2)),
        inode: endpoint.inode.load(Ordering::Relaxed),
        cookie: endpoint.cookie.get(),
        peer: peer.and_then(|peer| inode_of(peer, cx)),
        queues,
        shutdown,
        user,
    })
}

/// The inodes of those who wait to be accepted by a listener; as many as there is memory for.
pub fn waiting(listener: Name, cx: &Cx) -> Vec<u32> {
    let (mut backlog, mut inodes) = (Vec::new(), Vec::new());
    if backlog.try_reserve_exact(MOST_WAITING).is_err() || inodes.try_reserve_exact(MOST_WAITING).is_err() {
        return inodes;
    }
    if let Ok(endpoint) = listener.upgrade(cx)
        && let Role::Listening(listener) = &endpoint.state.lock(cx).role
    {
        backlog.extend(listener.waiting().take(MOST_WAITING));
    }
    for waiting in backlog {
        let client = waiting.upgrade(cx).ok().and_then(|waiting| waiting.peer(cx));
        inodes.extend(client.and_then(|client| inode_of(client, cx)).map(|inode| inode as u32));
    }
    inodes
}

fn inode_of(name: Name, cx: &Cx) -> Option<u64> {
    name.upgrade(cx).ok().map(|endpoint| endpoint.inode.load(Ordering::Relaxed))
}
