//! Neighbours: which device on the link has an IP address, by ARP for IPv4 and by neighbour discovery for IPv6; and the addresses that a host makes itself.
//!
//! A packet to a neighbour goes to [`NeighbourCache::resolve`], which gives the device, or keeps the packet until it is known. Then
//! [`next_question`](NeighbourCache::next_question) says what to ask, as an [`Arp`] or [`Ndisc`] message; what comes back goes to
//! [`on_arp`](NeighbourCache::on_arp) or [`on_ndisc`](NeighbourCache::on_ndisc), which return the packets that waited, and an answer to send.

mod arp;
mod cache;
mod ndisc;
mod slaac;

pub use arp::{ARP_BYTES, Arp, ArpKind, ArpOutcome};
pub use cache::{Evidence, NeighbourCache, NeighbourLimits, Question, Reachability, Resolution};
pub use ndisc::{
    ALL_NODES, ALL_ROUTERS, AdvertisedPrefix, HOP_LIMIT, LONGEST_NDISC, Ndisc, NdiscOutcome, RouterAdvertisement,
    solicited_node,
};
pub use slaac::Autoconfiguration;
