//! What the host (`tools/guest`) and the agent that is process 1 in the guest (`user/agent`) say to each other.
//!
//! They share one line, a port of a virtual console where the guest's kernel has such, else a serial port: bytes arrive in order, but a kernel under development may lose some or add some. So
//!
//! - [`wire`] puts every message in a frame with its length and a checksum, and finds the first frame behind stray bytes;
//! - [`message`] gives the frames their meaning: [`ToGuest`] and [`ToHost`];
//! - [`flow`] says how many bytes may be under way, so that no side ever has to throw bytes away.
//!
//! A session: the guest sends [`ToHost::Ready`] through the line that it has chosen. Then, any number of times: the host sends [`ToGuest::Start`], both
//! exchange the program's streams, and the guest closes the run with [`ToHost::Exited`] or [`ToHost::StartError`]. At
//! last the host sends [`ToGuest::Shutdown`] and the machine powers off.

#![forbid(unsafe_code)]

pub mod flow;
pub mod message;
pub mod wire;

pub use message::{
    Exit, GroupFiles, GroupLimits, OutputFrame, OutputStream, StandardInput, Start, StartError, ToGuest, ToHost,
};
pub use wire::{Decoder, Frame, WireError};
