//! Neighbours: RTM_NEWNEIGH and its like.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use frame::Cx;
use linux_raw_sys::net::{AF_INET, AF_INET6};
use tcpip::ethernet::HardwareAddress;
use tcpip::neighbour::Reachability;

use super::{address_of, bytes_of, families, interface_of, manner, word};
use crate::error::Errno;
use crate::net::interface::{self, Interface};
use crate::net::netlink::Answer;
use crate::net::netlink::dump::Listed;
use crate::net::netlink::message::{Message, NLM_F_MULTI, Refusal, Request, refused};

/// RTM_NEWNEIGH.
pub const NEW: u16 = 28;

/// `struct ndmsg`.
const HEAD_BYTES: usize = 12;

const TARGET: u16 = 1;
const HARDWARE: u16 = 2;
const CACHE: u16 = 3;
const DEVICE: u16 = 8;

/// NUD_PERMANENT, and the states that say that a device is known.
const PERMANENT: u16 = 0x80;
const REACHABLE: u16 = 2;
const STALE: u16 = 4;
const VALID: u16 = PERMANENT | 0x40 | REACHABLE | 0x10 | STALE | 8;
/// NTF_PROXY.
const PROXY: u8 = 8;

/// `NUD_*`.
fn number(known: Reachability) -> u16 {
    match known {
        Reachability::Incomplete => 1,
        Reachability::Reachable => REACHABLE,
        Reachability::Stale => STALE,
        Reachability::Delay => 8,
        Reachability::Probe => 0x10,
        Reachability::Failed => 0x20,
        Reachability::Permanent => PERMANENT,
    }
}

/// What is told of a neighbour.
pub fn message(
    start: impl FnOnce(&[u8]) -> Message,
    index: i32,
    (ip, hardware, known): &(IpAddr, Option<HardwareAddress>, Reachability),
) -> Vec<u8> {
    const UNICAST: u8 = 1;
    let (family, ip) = bytes_of(*ip);
    let mut head = [0; HEAD_BYTES];
    head[0] = family as u8;
    head[4..8].copy_from_slice(&index.to_le_bytes());
    head[8..10].copy_from_slice(&number(*known).to_le_bytes());
    head[11] = UNICAST;
    let mut message = start(&head).with(TARGET, &ip);
    if let Some(hardware) = hardware {
        message.add(HARDWARE, &hardware.0);
    }
    message.with(CACHE, &[0; 16]).finish()
}

/// All neighbours of a family, or one.
///
/// # Errors
/// ENODEV, ENOENT: there is none. EINVAL.
pub fn get(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    if !request.is_dump() {
        let (interface, address) = wanted(request)?;
        let known = interface.neighbours(cx).into_iter().find(|(own, ..)| *own == address).ok_or(Errno::ENOENT)?;
        let start = |head: &[u8]| Message::new(request, NEW, 0, head);
        return Ok(Answer::Message(message(start, interface.index as i32, &known)));
    }
    let index = request.attributes(HEAD_BYTES).word(DEVICE)?.unwrap_or(0);
    let mut found = Vec::new();
    for family in families(request) {
        for interface in interface::all().filter(|interface| index == 0 || interface.index == index) {
            let own = interface.neighbours(cx).into_iter().filter(|(ip, ..)| bytes_of(*ip).0 == family);
            found.extend(own.map(|known| (interface.index as i32, known)));
        }
    }
    let (header, asker) = (request.header, request.asker);
    let messages = found.into_iter().map(move |(index, known)| {
        let request = Request { header, body: &[], asker };
        message(|head| Message::new(&request, NEW, NLM_F_MULTI, head), index, &known)
    });
    Ok(Answer::Dump(Box::new(Listed(messages))))
}

/// Which neighbour a request is about.
///
/// # Errors
/// EINVAL: it does not say. ENODEV. EOPNOTSUPP: one for whom this machine would answer.
fn wanted(request: &Request<'_>) -> Result<(&'static Interface, IpAddr), Refusal> {
    if request.body.len() < HEAD_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let head = request.head::<HEAD_BYTES>();
    let target = request.attributes(HEAD_BYTES).get(TARGET);
    let target = target.ok_or(refused(Errno::EINVAL, "Network address not specified"))?;
    let family = u32::from(head[0]);
    if !matches!(family, AF_INET | AF_INET6) {
        return Err(Errno::EAFNOSUPPORT.into());
    }
    if head[10] & PROXY != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let index = word(&head, 4) as i32;
    if index == 0 {
        return Err(refused(Errno::EINVAL, "No device specified"));
    }
    let interface = interface_of(index).ok_or(Errno::ENODEV)?;
    Ok((interface, address_of(family, target)?))
}

/// Says which device a neighbour is.
///
/// # Errors
/// Those of [`wanted`]; EINVAL: not which. EEXIST, ENOENT, ENOBUFS.
pub fn add(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    let (interface, address) = wanted(request)?;
    let head = request.head::<HEAD_BYTES>();
    let state = u16::from_le_bytes([head[8], head[9]]);
    let hardware = request.attributes(HEAD_BYTES).get(HARDWARE).and_then(|bytes| bytes.first_chunk::<6>());
    let hardware = HardwareAddress(*hardware.ok_or(refused(Errno::EINVAL, "Invalid link address"))?);
    let known = match state {
        PERMANENT => Reachability::Permanent,
        REACHABLE => Reachability::Reachable,
        state if state & VALID != 0 => Reachability::Stale,
        _ => return Err(refused(Errno::EINVAL, "Invalid state")),
    };
    interface.set_neighbour(address, hardware, known, manner(request), cx).map(|()| Answer::Done)
}

/// Forgets a neighbour.
///
/// # Errors
/// Those of [`wanted`]; ENOENT.
pub fn remove(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    let (interface, address) = wanted(request)?;
    interface.remove_neighbour(address, cx).map(|()| Answer::Done)
}
