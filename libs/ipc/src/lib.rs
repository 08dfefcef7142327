#![doc = include_str!("../README.md")]
//!
//! # Panics
//!
//! What serves a request may panic. The request is refused, so that its caller does not wait for ever, and the panic goes on: out of
//! `linux::Connection::serve`, after which the connection can be served again; or to the block of `rpc::dispatch_async`, as from any
//! other task. What is called for a peer's death or ring (`linux::watch`) is not called again once it has panicked; other peers are
//! watched as before. The peer notices nothing but the refusal.
#![no_std]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod atomic;
mod barrier;
mod call;
mod channel;
mod error;
mod link;
#[cfg(all(feature = "std", target_os = "linux", not(any(ebb_loom, ebb_shuttle))))]
pub mod linux;
mod message;
mod region;
mod ring;
#[cfg(all(feature = "tasks", not(ebb_loom)))]
pub mod rpc;
mod wait;

pub use call::{Call, Callee, Caller, Request};
pub use channel::{Endpoint, Geometry, Side, pair};
pub use error::Error;
pub use link::{Link, WeakLink};
pub use message::{Kind, Message, Tag, Words};
pub use region::{Line, Region};
pub use ring::{Packet, Receiver, Sender};
pub use wait::{Doorbell, Patience, Waiter};
