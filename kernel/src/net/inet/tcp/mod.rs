//! Connections: tcp(7).
//!
//! ```text
//!   OpenFile --> TcpSocket --StrongRc--> Endpoint --Peer: WeakRc--> Endpoint <--StrongRc-- TcpSocket
//!                                          | input: what was sent to it       (or in a listener's queue)
//!                                          ` Listener: connections that were not accepted yet, and who waits to be let in
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `endpoint` | what every endpoint has, and what is ready |
//! | `connect`, `listener` | how it gets its address, its peer, or its connections |
//! | `transfer`, `urgent` | sending and receiving; the urgent byte |
//! | `close` | shutting down, closing, and what a peer learns of that |
//! | `peer` | the other end, an endpoint of this machine |
//! | `remote` | the other end's stand-in where that is another machine |
//! | `connections` | which connections there are, by their two addresses |
//! | `frames` | its segments, as packet sockets see them |
//! | `time_wait` | what is left of connections that ended here first |
//! | `options`, `info`, `socket` | an endpoint as an open file |
//!
//! Where both ends of a connection are on this machine no packets are made: what an end sends lies in its peer's `input` when send(2) returns. An end keeps for itself what it was told of the other
//! (the end of its bytes, a reset), so it needs nobody when the other is gone. What an end sends to a peer that is gone resets the connection, as the answer of a machine would that knows
//! nothing of it.
//!
//! Locks: an endpoint's `state`. Of two at once only when a connection is made: the listener's, then that of the end that connects, which is none.

mod close;
mod connect;
mod connections;
mod endpoint;
mod frames;
mod info;
mod listener;
mod options;
mod peer;
mod remote;
mod socket;
pub mod time_wait;
mod transfer;
mod urgent;

pub use endpoint::{Endpoint, TcpState, count};
pub(super) use remote::{card_has_room, segment_came, start, too_big, unreachable};
pub use socket::TcpSocket;

use refs::WeakRc;

use super::address::Address;
use super::ports::{PortCursor, Ports};
use crate::net::cursor::Cursor;

/// Who has which port.
static PORTS: Ports<Endpoint> = Ports::new();

/// The connection with these two ends, or the listener at the first where the second is none.
pub fn find(local: Address, remote: Address) -> Option<WeakRc<Endpoint>> {
    if remote.port == 0 { PORTS.find(local, remote) } else { connections::find(local, remote) }
}

/// The next endpoint that listens.
pub fn next_listener(cursor: &mut PortCursor) -> Option<WeakRc<Endpoint>> {
    PORTS.next(cursor)
}

/// The next endpoint that has a connection.
pub fn next_connection(cursor: &mut Cursor<(Address, Address)>) -> Option<WeakRc<Endpoint>> {
    connections::next(cursor)
}
