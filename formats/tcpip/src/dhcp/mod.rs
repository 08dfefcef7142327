//! DHCP for IPv4 (RFC 2131, RFC 2132): an address from a server, and what else a host must know to use the network.
//!
//! [`Client`] is the state machine of one interface. Its messages are the payload of UDP datagrams between [`CLIENT_PORT`] and [`SERVER_PORT`].

mod client;
mod message;

pub use client::{Client, Event, Outgoing};
pub use message::{Lease, MOST_DNS_SERVERS};

/// The port of clients.
pub const CLIENT_PORT: u16 = 68;
/// The port of servers.
pub const SERVER_PORT: u16 = 67;
/// Bytes of the longest message that is sent.
pub const LONGEST_MESSAGE: usize = 300;
