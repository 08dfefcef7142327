//! Messages without a connection: udp(7), and ICMP as icmp(7) and raw(7) have it.
//!
//! | file | what it is |
//! | --- | --- |
//! | `endpoint` | a socket's end: its address, and what was sent to it |
//! | `address` | binding and connecting it |
//! | `send` | sending: who gets a message |
//! | `network` | to other machines, and from them |
//! | `icmp` | echo requests, and the answers of this machine |
//! | `errors` | what was sent and did not arrive |
//! | `receive` | receiving, and what is told beside the bytes |
//! | `socket` | an endpoint as an open file |
//!
//! A message goes from the sender's memory into the queues of those who get it. Where a queue is full, or the group that pays for it has no budget, the message is lost, as messages are.
//! What was sent to a port that nobody has comes back as an error: see `errors`.
//!
//! Locks: an endpoint's `state`, one at a time.

mod address;
mod endpoint;
mod errors;
mod icmp;
mod network;
mod receive;
mod send;
mod socket;

pub use endpoint::{Endpoint, Kind, count};
pub(super) use errors::{Lost, Reason, did_not_arrive};
pub(super) use network::{control_came, datagram_came};
pub use socket::DatagramSocket;

use refs::WeakRc;

use super::address::Address;
use super::ports::{PortCursor, Ports};

/// Who has which port of UDP.
static UDP: Ports<Endpoint> = Ports::new();
/// Who has which number of echo requests.
static ECHO: Ports<Endpoint> = Ports::new();
/// Who gets all messages of a protocol, whose number stands for a port.
static RAW: Ports<Endpoint> = Ports::new();

/// The endpoint that is reached at the first of two addresses by what comes from the second.
pub fn find(kind: Kind, local: Address, remote: Address) -> Option<WeakRc<Endpoint>> {
    kind.ports().find(local, remote)
}

/// The next endpoint of a kind.
pub fn next(kind: Kind, cursor: &mut PortCursor) -> Option<WeakRc<Endpoint>> {
    kind.ports().next(cursor)
}
