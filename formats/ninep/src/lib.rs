//! The messages of 9P2000.L, by which a client uses the files of a server: [the protocol](https://github.com/chaos/diod/blob/master/protocol.md).
//!
//! All is pure: a [`Request`] becomes bytes, and the bytes of a reply become what they say. A message is its length (4 bytes), its kind (1), a *tag* (2) that the reply repeats, and its fields, all little-endian. A *fid* is the client's
//! number for a file of the server's; a [`Qid`] is the server's number for it.
//!
//! Every byte of a reply is untrusted: lengths are compared with what there is, a name is never empty, longer than 255 bytes, or one that leads elsewhere.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `request` | [`Request`]: what is asked |
//! | `reply` | [`Reply`]: what is answered |
//! | `entries` | [`entries`]: the names of a directory, as a reply brings them |
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod entries;
mod reply;
mod request;

pub use entries::{Entry, entries};
pub use reply::{Attributes, Error, Qid, Reply, Space, Time};
pub use request::{NO_TAG, Request, SetAttributes, SetTime};

/// The version of the protocol.
pub const VERSION: &[u8] = b"9P2000.L";
/// Bytes of a message before its fields.
pub const HEADER_BYTES: usize = 7;
/// Bytes before the data of a reply to [`Request::Read`] or [`Request::List`], and of a reply that is an error.
pub const DATA_AT: usize = HEADER_BYTES + 4;
/// The longest name.
pub const LONGEST_NAME: usize = 255;
/// The longest target of a symbolic link.
pub const LONGEST_TARGET: usize = 4095;

/// Whether a name is one that a directory can have.
pub fn is_name(name: &[u8]) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && !matches!(name, b"." | b"..")
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}
