//! IP of both versions: which packet came for whom, and the header of one that goes out.
//!
//! A packet goes through [`Packet::parse`]; if it is a fragment, through a [`Reassembler`]; [`Addresses::audience`] says whether it is for this host; then its
//! protocol is asked for what to do. One that goes out is looked up in the [`RouteTable`], gets a source by [`Addresses::source_for`], and an [`IpHeader`].

mod address;
mod header;
pub mod icmp;
mod limit;
mod packet;
mod reassembly;
mod route;

pub use address::{Address, AddressState, Addresses, Audience};
pub use header::IpHeader;
pub use limit::ErrorLimit;
pub use packet::{Fragment, Packet};
pub use reassembly::{Datagram, Reassembler, ReassemblyLimits};
pub use route::{Prefix, Route, RouteTable};

pub use crate::checksum::protocol;
