//! Sockets: what a socket of any family offers ([`Socket`], [`message`]), which network devices there are ([`devices`]), and one folder per address family.
//!
//! | family | folder |
//! | --- | --- |
//! | AF_UNIX | [`unix`] |
//! | AF_INET, AF_INET6 | [`inet`] |
//! | AF_NETLINK | [`netlink`] |
//! | AF_PACKET | [`packet`] |

mod cookie;
pub mod counters;
pub mod cursor;
mod device_changes;
pub mod devices;
pub mod filter;
pub mod inet;
pub mod interface;
mod message;
pub mod netlink;
pub mod packet;
pub mod refusal;
pub mod registry;
mod timeouts;
pub mod unix;

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use refs::Waker;

pub use cookie::Cookie;
pub use message::{
    AtFault, Control, Credentials, Files, Gather, Received, Receiving, Scatter, Sending, Sink, Source, read_into,
    receive_all, send_all,
};
pub use timeouts::Timeouts;

use crate::error::{Errno, Result};
use crate::fs::{File, OpenFile, VfsCaller};
use crate::step::Step;
use crate::sysctl::Tunable;
use crate::user_memory::{In, UserMemory, UserSlice};

/// The address families that there are.
const FAMILIES: &[&dyn Family] = &[&unix::Unix, &inet::INET, &inet::INET6, &netlink::Netlink, &packet::PacketFamily];

/// How many connections wait at a listener at most, whatever its program asks for (`net.core.somaxconn`).
pub static SOMAXCONN: Tunable = Tunable::new(4096, 0..=65_535);

/// An address family.
pub trait Family: Sync {
    /// `AF_*`.
    fn number(&self) -> u32;

    /// Makes a socket.
    ///
    /// # Errors
    /// EPROTONOSUPPORT, ESOCKTNOSUPPORT; EACCES, EPERM.
    fn create(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>>;

    /// Makes two sockets that are connected to each other.
    ///
    /// # Errors
    /// As for `create`; EOPNOTSUPP.
    fn pair(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<[Box<dyn File>; 2]>;

    /// The socket that an open file is, if it is one of this family.
    fn socket_of<'a>(&self, open: &'a OpenFile) -> Option<&'a dyn Socket>;
}

/// The family of that number.
///
/// # Errors
/// EAFNOSUPPORT.
pub fn family(number: u32) -> Result<&'static dyn Family> {
    FAMILIES.iter().copied().find(|family| family.number() == number).ok_or(Errno::EAFNOSUPPORT)
}

/// The socket that an open file is.
///
/// # Errors
/// ENOTSOCK.
pub fn socket_of(open: &OpenFile) -> Result<&dyn Socket> {
    FAMILIES.iter().find_map(|family| family.socket_of(open)).ok_or(Errno::ENOTSOCK)
}

/// What is asked of a socket (`SOCK_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Bytes over a connection.
    Stream,
    /// Messages to anybody.
    Datagram,
    /// The protocol below.
    Raw,
    /// Messages over a connection.
    SequencedPacket,
}

/// What the value of an option is for a number that is given with the question.
pub type OptionOfNumber = fn(u32) -> Result<Vec<u8>>;

/// Which directions shutdown(2) ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Nothing is received any more.
    pub reading: bool,
    /// Nothing is sent any more.
    pub writing: bool,
}

/// What calls do with an open socket beside reading and writing it. Each method is a step. Addresses are bytes, as `struct sockaddr` and what is behind it: the
/// family knows what they mean.
pub trait Socket: File {
    /// Gives it an address.
    ///
    /// # Errors
    /// EINVAL: it has one, or this is none. EADDRINUSE and the others of bind(2). `Pause` while another thread binds it.
    fn bind(&self, address: &[u8], me: &dyn VfsCaller, cx: &Cx) -> Step<()>;

    /// Has it accept connections, up to `backlog` of them unaccepted.
    ///
    /// # Errors
    /// Those of listen(2).
    fn listen(&self, backlog: usize, me: &dyn VfsCaller, cx: &Cx) -> Result<()>;

    /// Connects it.
    ///
    /// # Errors
    /// Those of connect(2). `Block` while the other side has no room for it.
    fn connect(&self, address: &[u8], waker: Option<Waker>, me: &dyn VfsCaller, cx: &Cx) -> Step<()>;

    /// What a call says that does not wait until a connection is made which goes on being made. Called once for each such call.
    fn unfinished_connect(&self, _cx: &Cx) -> Errno {
        Errno::EAGAIN
    }

    /// Takes the oldest connection that was not accepted yet: a socket. Its peer's address goes to `tell` first; where that fails the connection stays.
    ///
    /// # Errors
    /// EINVAL: it does not listen. `Block`. Those of `tell`.
    fn accept(&self, waker: Option<Waker>, tell: &mut dyn FnMut(&[u8]) -> Step<()>, cx: &Cx) -> Step<Box<dyn File>>;

    /// It is a file with this number from now on, by which procfs tells whose it is.
    fn note_inode(&self, _number: u64) {}

    /// Its own address.
    fn address(&self, cx: &Cx) -> Vec<u8>;

    /// Its peer's.
    ///
    /// # Errors
    /// ENOTCONN.
    fn peer_address(&self, cx: &Cx) -> Result<Vec<u8>>;

    /// Sends to its peer, or to the address `to`: how many bytes. Of a stream it may be fewer than there are.
    ///
    /// # Errors
    /// Those of send(2). `Block` while there is no room.
    fn send(
        &self,
        from: &mut dyn Source,
        to: Option<&[u8]>,
        sending: &Sending<'_>,
        waker: Option<Waker>,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<usize>;

    /// How many bytes a call that receives waits for, once it has some: fewer come only at the end.
    fn wanted(&self, receiving: &Receiving, _cx: &Cx) -> usize {
        if receiving.waits_for_all() { receiving.room } else { 0 }
    }

    /// Whether MSG_TRUNC has it throw away what it receives.
    fn drops_truncated(&self) -> bool {
        false
    }

    /// Receives bytes into `sink`, and leaves them there where it only peeks.
    ///
    /// # Errors
    /// Those of recv(2). `Block` while there is nothing and more may come.
    fn receive(
        &self,
        sink: &mut Sink<'_>,
        at_fault: AtFault,
        receiving: &Receiving,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received>;

    /// Ends one or both directions.
    ///
    /// # Errors
    /// Those of shutdown(2). `Pause` between two parts of what is long.
    fn shut_down(&self, what: Shutdown, cx: &Cx) -> Step<()>;

    /// Sets an option, whose value it reads itself.
    ///
    /// # Errors
    /// EOPNOTSUPP, ENOPROTOOPT; EINVAL: too short. A fault.
    fn set_option(&self, level: u32, name: u32, value: UserSlice<u8, In>, memory: &UserMemory<'_>, cx: &Cx)
    -> Step<()>;

    /// How an option is answered whose value depends on a number that is given with the question; `None`: as all others.
    fn option_with(&self, _level: u32, _name: u32) -> Option<OptionOfNumber> {
        None
    }

    /// The value of an option.
    ///
    /// # Errors
    /// EOPNOTSUPP, ENOPROTOOPT.
    fn option(&self, level: u32, name: u32, cx: &Cx) -> Result<Vec<u8>>;
}
