//! The protocols of the internet as state machines: what a packet, a moment or a program's call does, and what is to be sent.
//!
//! All is pure: no device, no clock, no lock, no global state. Time comes in as a value, packets as slices, and packets go out into buffers of the caller. Every byte
//! of a packet is untrusted. Each call does a bounded amount of work, memory is bounded by limits that the caller gives, and the lack of it is an error.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`ethernet`] | frames |
//! | [`neighbour`] | ARP, neighbour discovery, and addresses that a host makes itself |
//! | [`ip`] | packets, fragments, ICMP, routes, addresses |
//! | [`udp`] | datagrams |
//! | [`dhcp`] | an address from a server |
//! | [`tcp`] | a connection, from its SYN to the end of TIME-WAIT |
//!
//! The layouts of headers are `smoltcp::wire`'s.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod checksum;
pub mod dhcp;
pub mod ethernet;
pub mod ip;
pub mod neighbour;
mod siphash;
pub mod tcp;
mod time;
pub mod udp;

pub use checksum::{Checksum, OutgoingChecksum, complete as complete_checksum};
pub use siphash::Key;
pub use time::{Duration, Instant};

/// A packet does not keep to its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// There is no memory. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;
