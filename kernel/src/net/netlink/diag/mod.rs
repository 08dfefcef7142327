//! NETLINK_SOCK_DIAG: the sockets that there are, as ss(8) asks for them: sock_diag(7).
//!
//! | file | what it is |
//! | --- | --- |
//! | `inet` | those of the internet protocols |
//! | `filter` | a program that says which of them are wanted |
//! | `unix` | those between the programs of this machine |
//! | `others` | netlink's own, and packet sockets |

mod filter;
mod inet;
mod others;
mod unix;

use frame::Cx;
use linux_raw_sys::net;

use super::message::{Refusal, Request};
use super::{Answer, Protocol};
use crate::error::Errno;
use crate::net::Shutdown;

/// NETLINK_SOCK_DIAG.
pub struct SockDiag;

/// SOCK_DIAG_BY_FAMILY and SOCK_DESTROY.
const BY_FAMILY: u16 = 20;
const DESTROY: u16 = 21;
const AF_NETLINK: u32 = 16;
const AF_PACKET: u32 = 17;
const AF_MAX: u32 = 46;

impl Protocol for SockDiag {
    fn number(&self) -> u32 {
        4
    }

    fn groups(&self) -> u32 {
        4
    }

    fn handle(&self, request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
        match request.header.kind {
            BY_FAMILY => {}
            DESTROY => return Err(Errno::EOPNOTSUPP.into()),
            _ => return Err(Errno::EINVAL.into()),
        }
        if request.body.len() < 2 {
            return Err(Errno::EINVAL.into());
        }
        match u32::from(request.head::<2>()[0]) {
            net::AF_INET | net::AF_INET6 => inet::answer(request, cx),
            net::AF_UNIX => unix::answer(request, cx),
            AF_NETLINK => others::netlink(request),
            AF_PACKET => others::packet(request),
            AF_MAX.. => Err(Errno::EINVAL.into()),
            _ => Err(Errno::ENOENT.into()),
        }
    }
}

/// A word of a struct.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// Whether an asker who knows a socket's number means this one.
fn is_meant(cookie: u64, asked: [u32; 2]) -> bool {
    /// INET_DIAG_NOCOOKIE.
    const NONE: u32 = u32::MAX;
    asked == [NONE; 2] || asked == [cookie as u32, (cookie >> 32) as u32]
}

/// RCV_SHUTDOWN and SEND_SHUTDOWN.
fn shutdown_bits(shutdown: Shutdown) -> u8 {
    u8::from(shutdown.reading) | u8::from(shutdown.writing) << 1
}

/// What a socket's memory is, as Linux tells it (`SK_MEMINFO_*`): what waits to be received, and the most; to be sent, and the most; what was lost.
fn memory(queues: [u32; 2], buffers: [u32; 2], drops: u32) -> [u32; 9] {
    [queues[0], buffers[0], queues[1], buffers[1], 0, queues[1], 0, 0, drops]
}
