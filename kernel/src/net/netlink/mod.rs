//! AF_NETLINK: netlink(7), of which there is NETLINK_ROUTE, rtnetlink(7): what devices, addresses and routes there are.
//!
//! | file | what it is |
//! | --- | --- |
//! | `route` | what is asked, and the answers |
//! | `socket` | a socket, with the answers that wait in it, and the family |
//!
//! A socket owns the answers that wait in it and were not read yet. Each is made when it is asked for, in the step that asks; only its own program puts any into it, so nobody else is
//! told of its end, which frees [`MOST_ANSWERS`](socket::MOST_ANSWERS) answers at most.
//!
//! Locks: a socket's `state`.

mod route;
mod socket;

pub use socket::Netlink;
