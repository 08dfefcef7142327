//! Sockets between the programs of this machine: unix(7).
//!
//! ```text
//!   OpenFile --> Socket --StrongRc--> Endpoint <---WeakRc---> Endpoint <--StrongRc-- Socket <-- OpenFile
//!                                        | inbox: what was sent to it            (its peer)
//!                                        ` backlog: connected endpoints that were not accepted yet
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `endpoint` | what every endpoint has, and what is ready |
//! | `init`, `listener`, `connected` | what it does before it has a peer, while it listens, with a peer |
//! | `inbox`, `room`, `address` | what was sent to it, what is about to come, where it is reached |
//! | `socket` | an endpoint as an open file, and the family |
//! | [`listing`] | the sockets that there are |
//! | `garbage` | sockets in messages that nobody can receive |
//!
//! An [`Endpoint`] is one end of a connection, a listener, or a datagram socket. It owns what was sent to it and was not read yet; whom it sends
//! to it knows by name only. So when a socket is closed its endpoint dies at once, and with it everything in its inbox; the peer, and
//! whoever waits on it, is woken by that death. Descriptors in flight (SCM_RIGHTS) belong to the inbox they are in.
//!
//! Locks: an endpoint's `state` and `inbox` are locked one at a time, and (but for connect(2), see `init`) never those of two endpoints together; wakers are called with neither.

mod address;
mod connected;
mod endpoint;
pub mod garbage;
mod inbox;
mod init;
mod listener;
pub mod listing;
mod room;
mod socket;

use address::Address;
use endpoint::{Endpoint, Kind};
pub use socket::Unix;
use socket::UnixSocket;
