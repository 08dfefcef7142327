//! Devices: RTM_NEWLINK and its like.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use tcpip::ethernet::HardwareAddress;

use super::{LOWER_UP, interface_of, word};
use crate::error::Errno;
use crate::net::devices::{self, Device};
use crate::net::netlink::Answer;
use crate::net::netlink::dump::Listed;
use crate::net::netlink::message::{Attributes, Message, NLM_F_EXCL, NLM_F_MULTI, Refusal, Request, refused};

/// RTM_NEWLINK.
pub const NEW: u16 = 16;

/// `struct ifinfomsg`.
const HEAD_BYTES: usize = 16;

const ADDRESS: u16 = 1;
const BROADCAST: u16 = 2;
const NAME: u16 = 3;
const MTU: u16 = 4;
const QDISC: u16 = 6;
const STATS: u16 = 7;
/// IFLA_MASTER and IFLA_LINKINFO: what these say is not there.
const CANNOT: [u16; 1] = [10];
const KIND: u16 = 18;
const LOOPBACK_STAYS: &str = "The loopback device stays as it is";
const QUEUE_LENGTH: u16 = 13;
const STATE: u16 = 16;
const MODE: u16 = 17;
const STATS64: u16 = 23;
const GROUP: u16 = 27;
const PROMISCUITY: u16 = 30;
const TX_QUEUES: u16 = 31;
const RX_QUEUES: u16 = 32;
const CARRIER: u16 = 33;
const MIN_MTU: u16 = 50;
const MAX_MTU: u16 = 51;

/// What is told of a device.
pub fn message(start: impl FnOnce(&[u8]) -> Message, device: &Device) -> Vec<u8> {
    /// IF_OPER_UNKNOWN, IF_OPER_DOWN and IF_OPER_UP.
    const UNKNOWN: u8 = 0;
    const DOWN: u8 = 2;
    const UP: u8 = 6;
    let is_up = device.is_up();
    let mut body = [0_u8; HEAD_BYTES];
    body[2..4].copy_from_slice(&device.hardware.to_le_bytes());
    body[4..8].copy_from_slice(&device.index.to_le_bytes());
    let flags = u32::from(device.flags) | if is_up { LOWER_UP } else { 0 };
    body[8..12].copy_from_slice(&flags.to_le_bytes());
    let is_loopback = device.is_loopback();
    let (queue, broadcast) = if is_loopback { (&b"noqueue\0"[..], [0; 6]) } else { (&b"fq_codel\0"[..], [0xff; 6]) };
    let state = match (is_loopback, is_up) {
        (true, _) => UNKNOWN,
        (false, true) => UP,
        (false, false) => DOWN,
    };
    let word = |value: u32| value.to_le_bytes();
    let (counts, counts64) = statistics(device);
    start(&body)
        .with(NAME, &[device.name.as_bytes(), &[0]].concat())
        .with(QUEUE_LENGTH, &devices::QUEUE_LENGTH.to_le_bytes())
        .with(STATE, &[state])
        .with(MODE, &[0])
        .with(MTU, &device.mtu.to_le_bytes())
        .with(MIN_MTU, &word(if is_loopback { 0 } else { devices::LEAST_MTU }))
        .with(MAX_MTU, &word(device.most_mtu))
        .with(GROUP, &[0; 4])
        .with(PROMISCUITY, &word(0))
        .with(TX_QUEUES, &word(1))
        .with(RX_QUEUES, &word(1))
        .with(CARRIER, &[u8::from(is_up)])
        .with(QDISC, queue)
        .with(ADDRESS, &device.address)
        .with(BROADCAST, &broadcast)
        .with(STATS64, &counts64)
        .with(STATS, &counts)
        .finish()
}

/// `struct rtnl_link_stats`, and the same with words of 64 bits: frames, bytes, errors and losses, of both directions.
fn statistics(device: &Device) -> (Vec<u8>, Vec<u8>) {
    const COUNTS: usize = 24;
    let [received, sent] = device.traffic();
    let mut counts = [0_u64; COUNTS];
    counts[..8].copy_from_slice(&[
        received.frames,
        sent.frames,
        received.bytes,
        sent.bytes,
        0,
        0,
        received.dropped,
        sent.dropped,
    ]);
    let short = counts.iter().flat_map(|count| (*count as u32).to_le_bytes()).collect();
    (short, counts.iter().flat_map(|count| count.to_le_bytes()).collect())
}

/// Which of the devices a request for one is for.
pub fn named<'a>(devices: &'a [Device], request: &Request<'_>) -> Option<&'a Device> {
    let index = word(&request.head::<HEAD_BYTES>(), 4) as i32;
    if index != 0 {
        return devices.iter().find(|device| device.index == index);
    }
    let name = attributes(request).get(NAME)?;
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    devices.iter().find(|device| device.name.as_bytes() == name)
}

fn attributes<'a>(request: &Request<'a>) -> Attributes<'a> {
    Attributes::new(request.body.get(HEAD_BYTES..).unwrap_or_default())
}

/// All devices, or one.
///
/// # Errors
/// ENODEV.
pub fn get(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    let devices = devices::all(cx);
    if request.is_dump() {
        let of_device = |device: &Device| message(|body| Message::new(request, NEW, NLM_F_MULTI, body), device);
        let messages: Vec<Vec<u8>> = devices.iter().map(of_device).collect();
        return Ok(Answer::Dump(Box::new(Listed(messages.into_iter()))));
    }
    let device = named(&devices, request).ok_or(Errno::ENODEV)?;
    Ok(Answer::Message(message(|body| Message::new(request, NEW, 0, body), device)))
}

/// Changes a device: whether it is up, the largest packet, its address on the link.
///
/// # Errors
/// ENODEV: there is none, and none can be made. EOPNOTSUPP: something else is to be changed, or the loopback device. EINVAL, EADDRNOTAVAIL: it cannot be so.
pub fn set(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    /// IFF_UP.
    const UP: u32 = 1;
    if request.body.len() < HEAD_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let head = request.head::<HEAD_BYTES>();
    let (flags, mask) = (word(&head, 8), word(&head, 12));
    let devices = devices::all(cx);
    let attributes = attributes(request);
    let Some(device) = named(&devices, request) else {
        let makes = attributes.get(KIND).is_some() && word(&head, 4) == 0;
        return Err(if makes { refused(Errno::EOPNOTSUPP, "Unknown device type") } else { Errno::ENODEV.into() });
    };
    if request.header.flags & NLM_F_EXCL != 0 && request.header.kind == NEW {
        return Err(Errno::EEXIST.into());
    }
    let mtu = attributes.word(MTU)?;
    let hardware = attributes.get(ADDRESS);
    let name = attributes.get(NAME).map(|name| name.strip_suffix(&[0]).unwrap_or(name));
    let is_renamed = name.is_some_and(|name| name != device.name.as_bytes());
    if is_renamed || attributes.clone().any(|(kind, _)| CANNOT.contains(&kind)) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    // Without a mask all flags count (rtnl_dev_combine_flags).
    let is_up = (mask == 0 && flags != 0 || mask & UP != 0).then_some(flags & UP != 0);
    let Some(interface) = interface_of(device.index) else {
        let stays = is_up != Some(false)
            && mtu.is_none_or(|mtu| mtu == device.mtu as u32)
            && hardware.is_none_or(|hardware| hardware == device.address);
        return if stays { Ok(Answer::Done) } else { Err(refused(Errno::EOPNOTSUPP, LOOPBACK_STAYS)) };
    };
    if let Some(hardware) = hardware {
        let address = hardware.first_chunk().ok_or(Errno::EINVAL)?;
        interface.set_hardware(HardwareAddress(*address), cx)?;
    }
    if let Some(mtu) = mtu {
        interface.set_mtu(mtu, cx)?;
    }
    if let Some(is_up) = is_up {
        interface.set_up(is_up, cx);
    }
    Ok(Answer::Done)
}
