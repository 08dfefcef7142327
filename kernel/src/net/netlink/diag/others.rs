//! Netlink's own sockets, and packet sockets.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use frame::Cx;
use zerocopy::IntoBytes;

use super::{AF_NETLINK, AF_PACKET, BY_FAMILY, memory, word};
use crate::error::Errno;
use crate::net::Type;
use crate::net::cursor::Cursor;
use crate::net::netlink::Answer;
use crate::net::netlink::dump::{Dump, Next};
use crate::net::netlink::endpoint::{Endpoint, SOCKETS};
use crate::net::netlink::message::{Asker, Header, Message, NLM_F_MULTI, Refusal, Request};
use crate::net::packet;

/// `struct netlink_diag_req`, `struct packet_diag_req`.
const NETLINK_BYTES: usize = 20;
const PACKET_BYTES: usize = 20;

const PACKET_INFO: u16 = 0;
const PACKET_USER: u16 = 5;
const PACKET_MEMORY: u16 = 6;
const PACKET_SHOW_INFO: u32 = 1;
const PACKET_SHOW_MEMORY: u32 = 0x10;

const MEMORY: u16 = 0;
const GROUPS: u16 = 1;
const SHOW_MEMORY: u32 = 1;
const SHOW_GROUPS: u32 = 2;
const ALL_PROTOCOLS: u8 = 255;

/// Answers a request for sockets of netlink.
///
/// # Errors
/// EINVAL: too short. EOPNOTSUPP: for one of them.
pub fn netlink(request: &Request<'_>) -> Result<Answer, Refusal> {
    if request.body.len() < NETLINK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    if !request.is_dump() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let head = request.head::<NETLINK_BYTES>();
    let (protocol, show) = (head[1], word(&head, 8));
    let cursor = Cursor::default();
    Ok(Answer::Dump(Box::new(OfNetlink { protocol, show, cursor, header: request.header, asker: request.asker })))
}

struct OfNetlink {
    protocol: u8,
    show: u32,
    cursor: Cursor<u64>,
    header: Header,
    asker: Asker,
}

impl Dump for OfNetlink {
    fn next(&mut self, cx: &Cx) -> Next {
        let Some(name) = SOCKETS.next(&mut self.cursor) else { return Next::End };
        let Ok(endpoint) = name.upgrade(cx) else { return Next::Skipped };
        let protocol = endpoint.protocol.number() as u8;
        if self.protocol != ALL_PROTOCOLS && self.protocol != protocol {
            return Next::Skipped;
        }
        let request = Request { header: self.header, body: &[], asker: self.asker };
        Next::Message(of_netlink(&endpoint, self.show, &request, cx))
    }
}

fn of_netlink(endpoint: &Endpoint, show: u32, request: &Request<'_>, cx: &Cx) -> Vec<u8> {
    let told = endpoint.told(cx);
    let kind = if endpoint.kind == Type::Raw { 3 } else { 2 };
    let mut body = [0; 28];
    body[..4].copy_from_slice(&[AF_NETLINK as u8, kind, endpoint.protocol.number() as u8, 0]);
    body[4..8].copy_from_slice(&told.port.to_le_bytes());
    body[16..20].copy_from_slice(&(endpoint.inode.load(Ordering::Relaxed) as u32).to_le_bytes());
    body[20..].copy_from_slice(&endpoint.cookie.get().to_le_bytes());
    let mut message = Message::new(request, BY_FAMILY, NLM_F_MULTI, &body);
    if show & SHOW_GROUPS != 0 && endpoint.protocol.groups() > 0 {
        let words = endpoint.protocol.groups().div_ceil(32).clamp(1, 2) as usize;
        message.add(GROUPS, &told.groups.to_le_bytes()[..4 * words]);
    }
    if show & SHOW_MEMORY != 0 {
        let buffers = [endpoint.buffer.load(Ordering::Relaxed), 212_992];
        message.add(MEMORY, memory([told.used as u32, 0], buffers, told.drops).as_bytes());
    }
    message.finish()
}

/// Answers a request for packet sockets.
///
/// # Errors
/// EINVAL: too short, or for a protocol. EOPNOTSUPP: for one of them.
pub fn packet(request: &Request<'_>) -> Result<Answer, Refusal> {
    let head = request.head::<PACKET_BYTES>();
    if request.body.len() < PACKET_BYTES || head[1] != 0 {
        return Err(Errno::EINVAL.into());
    }
    if !request.is_dump() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let show = word(&head, 8);
    let cursor = Cursor::default();
    Ok(Answer::Dump(Box::new(OfPacket { show, cursor, header: request.header, asker: request.asker })))
}

struct OfPacket {
    show: u32,
    cursor: Cursor<u64>,
    header: Header,
    asker: Asker,
}

impl Dump for OfPacket {
    fn next(&mut self, cx: &Cx) -> Next {
        let Some(name) = packet::SOCKETS.next(&mut self.cursor) else { return Next::End };
        let Ok(endpoint) = name.upgrade(cx) else { return Next::Skipped };
        let request = Request { header: self.header, body: &[], asker: self.asker };
        Next::Message(of_packet(&endpoint, self.show, &request, cx))
    }
}

fn of_packet(endpoint: &packet::Endpoint, show: u32, request: &Request<'_>, cx: &Cx) -> Vec<u8> {
    let told = endpoint.told(cx);
    let kind = if endpoint.kind == Type::Raw { 3 } else { 2 };
    let mut body = [0; 16];
    body[..2].copy_from_slice(&[AF_PACKET as u8, kind]);
    body[2..4].copy_from_slice(&told.protocol.to_le_bytes());
    body[4..8].copy_from_slice(&(endpoint.inode.load(Ordering::Relaxed) as u32).to_le_bytes());
    body[8..].copy_from_slice(&endpoint.cookie.get().to_le_bytes());
    let mut message = Message::new(request, BY_FAMILY, NLM_F_MULTI, &body);
    if show & PACKET_SHOW_INFO != 0 {
        message.add(PACKET_INFO, [told.device, 0, 0, 0, 0, 0].as_bytes());
        message.add(PACKET_USER, &told.user.to_le_bytes());
    }
    if show & PACKET_SHOW_MEMORY != 0 {
        let buffers = [endpoint.buffer.load(Ordering::Relaxed), 212_992];
        message.add(PACKET_MEMORY, memory([told.used as u32, 0], buffers, told.lost).as_bytes());
    }
    message.finish()
}
