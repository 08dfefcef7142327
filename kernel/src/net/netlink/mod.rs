//! AF_NETLINK: netlink(7): programs ask the kernel in messages, and are told of changes.
//!
//! | file | what it is |
//! | --- | --- |
//! | `message` | messages: headers, attributes, what an asker is told of an error |
//! | `dump` | all that there is of a kind, made a piece at a time |
//! | `endpoint` | a socket's end: its port, its groups, what waits in it |
//! | `socket` | an endpoint as an open file, and the family |
//! | [`route`] | NETLINK_ROUTE, rtnetlink(7): devices, addresses, routes, neighbours |
//! | [`diag`] | NETLINK_SOCK_DIAG, sock_diag(7): the sockets that there are |
//! | `generic` | NETLINK_GENERIC: which families it has |
//! | `uevent` | NETLINK_KOBJECT_UEVENT: devices that come and go |
//!
//! A request is answered in the step that sends it; a dump is made as it is received. What waits in a socket belongs to it, and is charged to its group. Of what finds no room in it the program is told by
//! ENOBUFS.
//!
//! Locks: an endpoint's `state`, then who has which port, or who listens.

pub mod diag;
mod dump;
pub mod endpoint;
mod generic;
mod message;
pub mod route;
mod socket;
mod uevent;

pub use socket::{Netlink, deliver, is_one};

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;

use self::dump::Dump;
use self::message::{Refusal, Request};

/// The protocols that there are.
const PROTOCOLS: &[&dyn Protocol] = &[&route::Route, &diag::SockDiag, &uevent::Uevent, &generic::Generic];

/// What a socket talks to.
pub trait Protocol: Sync {
    /// `NETLINK_*`.
    fn number(&self) -> u32;

    /// How many groups can be listened to: 64 at most.
    fn groups(&self) -> u32;

    /// Does what is asked.
    ///
    /// # Errors
    /// Why not: EOPNOTSUPP, EINVAL, EPERM and what the protocol has.
    fn handle(&self, request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal>;
}

/// What comes of a request.
pub enum Answer {
    /// It is done.
    Done,
    /// It is done, and this is what was asked for.
    Message(Vec<u8>),
    /// It is answered with several messages.
    Dump(Box<dyn Dump>),
}
