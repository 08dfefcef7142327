//! [`PacketSocket`]: an endpoint as an open file, and [`PacketFamily`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::FIONREAD;
use linux_raw_sys::net;
use refs::{StrongRc, TempRc, Waker};
use tcpip::ethernet::HEADER_BYTES;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::endpoint::{self, ADDRESS_BYTES, AF_PACKET, Endpoint, encode, interface_of};
use super::ring::{HEADER_BYTES as RING_HEADER_BYTES, Shape};
use super::seen::{Checksum, ETHERNET, LOOPBACK};
use crate::credentials::Capability;
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd, OpenFile, VfsCaller};
use crate::memory::Mappable;
use crate::net::devices;
use crate::net::filter::{Filter, Instruction, MOST_INSTRUCTIONS};
use crate::net::interface::{Interface, Refused};
use crate::net::{
    AtFault, Control, Family, OptionOfNumber, Received, Receiving, Sending, Shutdown, Sink, Socket, Source, Timeouts,
    Type, read_into,
};
use crate::reclaim::Held;
use crate::step::Step;
use crate::time::clock::TimeVal;
use crate::user_memory::{Argument, In, UserIn, UserMemory, UserSlice};

/// AF_PACKET.
pub struct PacketFamily;

const SOL_PACKET: u32 = 263;
const ADD_MEMBERSHIP: u32 = 1;
const DROP_MEMBERSHIP: u32 = 2;
const RX_RING: u32 = 5;
const STATISTICS: u32 = 6;
const AUXDATA: u32 = 8;
const ORIGDEV: u32 = 9;
const VERSION: u32 = 10;
const HDRLEN: u32 = 11;
const RESERVE: u32 = 12;
const IGNORE_OUTGOING: u32 = 23;
/// TPACKET_V2: the only kind of ring.
const V2: u32 = 1;
/// The most room before a frame.
const MOST_RESERVED: u32 = 1024;

/// PACKET_MR_MULTICAST, PACKET_MR_PROMISC, PACKET_MR_ALLMULTI, PACKET_MR_UNICAST.
const MEMBERSHIPS: core::ops::RangeInclusive<u16> = 0..=3;

/// Options that are on or off, a bit each.
const WANTS_AUXDATA: u32 = 1;
const WANTS_TIME: u32 = 2;
const WANTS_NANOSECONDS: u32 = 4;
const WANTS_ORIGIN: u32 = 8;
const IS_V2: u32 = 16;

/// An open socket: it owns its endpoint.
pub struct PacketSocket {
    endpoint: StrongRc<Endpoint>,
    timeouts: Timeouts,
    options: AtomicU32,
    /// PACKET_RESERVE.
    reserved: AtomicU32,
}

/// `struct sock_fprog`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Program {
    len: u16,
    padding: [u8; 6],
    instructions: UserIn<Instruction>,
}

impl Family for PacketFamily {
    fn number(&self) -> u32 {
        AF_PACKET.into()
    }

    fn create(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<Box<dyn File>> {
        let user = {
            let credentials = me.credentials(cx)?.lock(cx);
            if !credentials.has(Capability::NetRaw) {
                return Err(Errno::EPERM);
            }
            credentials.users().effective.number()
        };
        if !matches!(kind, Type::Raw | Type::Datagram) {
            return Err(Errno::ESOCKTNOSUPPORT);
        }
        let endpoint = Endpoint::new(kind, user, &me.payer(cx)?)?;
        endpoint.get(cx).bind(u16::from_be(protocol as u16), 0, cx)?;
        Ok(Box::new(PacketSocket {
            endpoint,
            timeouts: Timeouts::default(),
            options: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
        }))
    }

    fn pair(&self, kind: Type, protocol: u32, me: &dyn VfsCaller, cx: &Cx) -> Result<[Box<dyn File>; 2]> {
        drop(self.create(kind, protocol, me, cx)?);
        Err(Errno::EOPNOTSUPP)
    }

    fn socket_of<'a>(&self, open: &'a OpenFile) -> Option<&'a dyn Socket> {
        open.kind::<PacketSocket>().map(|socket| socket as &dyn Socket)
    }
}

/// What a `struct sockaddr_ll` says: what is carried, over which device, to whom there.
struct Target {
    protocol: u16,
    device: u32,
    hardware: [u8; 6],
}

/// # Errors
/// EINVAL: it is too short, or of another family.
fn decode(bytes: &[u8]) -> Result<Target> {
    let head = bytes.first_chunk::<12>().ok_or(Errno::EINVAL)?;
    if u16::from_le_bytes([head[0], head[1]]) != AF_PACKET {
        return Err(Errno::EINVAL);
    }
    let mut hardware = [0; 6];
    let given = &bytes[12..];
    let len = given.len().min(6).min(usize::from(head[11]));
    hardware[..len].copy_from_slice(&given[..len]);
    Ok(Target {
        protocol: u16::from_be_bytes([head[2], head[3]]),
        device: u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
        hardware,
    })
}

impl PacketSocket {
    fn endpoint<'cx>(&'cx self, cx: &'cx Cx) -> TempRc<'cx, Endpoint> {
        self.endpoint.get(cx)
    }

    fn is_on(&self, option: u32) -> bool {
        self.options.load(Ordering::Relaxed) & option != 0
    }

    fn put(&self, option: u32, is_on: bool) {
        if is_on {
            self.options.fetch_or(option, Ordering::Relaxed);
        } else {
            self.options.fetch_and(!option, Ordering::Relaxed);
        }
    }

    fn receive(&self, sink: &mut Sink<'_>, receiving: &Receiving, waker: Option<Waker>, cx: &Cx) -> Step<Received> {
        let endpoint = self.endpoint(cx);
        let message = endpoint.receive(sink, receiving, waker, cx)?;
        let time = message.time;
        let mut control = Vec::new();
        let (seconds, rest) = ((time / 1_000_000_000).to_le_bytes(), time % 1_000_000_000);
        if self.is_on(WANTS_NANOSECONDS) {
            let data = [seconds, rest.to_le_bytes()].concat();
            control.push(Control { level: net::SOL_SOCKET, kind: net::SO_TIMESTAMPNS_OLD, data });
        } else if self.is_on(WANTS_TIME) {
            let data = [seconds, (rest / 1000).to_le_bytes()].concat();
            control.push(Control { level: net::SOL_SOCKET, kind: net::SO_TIMESTAMP_OLD, data });
        }
        if self.is_on(WANTS_AUXDATA) {
            /// TP_STATUS_USER and TP_STATUS_CSUMNOTREADY.
            const USER: u32 = 1;
            const CHECKSUM_IS_LEFT: u32 = 8;
            let network = if endpoint.kind == Type::Raw { HEADER_BYTES as u16 } else { 0 };
            let left = if message.checksum == Checksum::Left { CHECKSUM_IS_LEFT } else { 0 };
            let words = [USER | left, message.frame_len as u32, message.len as u32];
            let data = [words.as_bytes(), [0, network, 0, 0].as_bytes()].concat();
            control.push(Control { level: SOL_PACKET, kind: AUXDATA, data });
        }
        let from = message.address.to_vec();
        Ok(Received { copied: message.copied, len: message.len, from, control, ..Received::default() })
    }

    fn send(&self, from: &mut dyn Source, to: Option<&[u8]>, cx: &Cx) -> Step<usize> {
        let endpoint = self.endpoint(cx);
        let told = endpoint.told(cx);
        let target = match to {
            Some(bytes) => decode(bytes)?,
            None => Target { protocol: told.protocol, device: told.device, hardware: [0; 6] },
        };
        if to.is_none() && endpoint.kind == Type::Datagram && told.device == 0 {
            return Err(Errno::ENXIO.into());
        }
        let interface: &'static Interface = interface_of(target.device)?;
        if !interface.is_up() {
            return Err(Errno::ENETDOWN.into());
        }
        let head = if endpoint.kind == Type::Raw { 0 } else { HEADER_BYTES };
        let len = from.remaining();
        if len > usize::from(interface.mtu()) + HEADER_BYTES - head {
            return Err(Errno::EMSGSIZE.into());
        }
        if head + len < HEADER_BYTES {
            return Err(Errno::EINVAL.into());
        }
        let mut frame = Vec::new();
        frame.try_reserve_exact(head + len).map_err(|_| Errno::ENOBUFS)?;
        if head > 0 {
            frame.extend_from_slice(&target.hardware);
            frame.extend_from_slice(&interface.hardware().0);
            frame.extend_from_slice(&target.protocol.to_be_bytes());
        }
        while frame.len() < head + len {
            // It goes whole or not at all: this says which page is missing.
            let rest = head + len - frame.len();
            frame.extend_from_slice(&from.take(rest)?);
        }
        match interface.send_made(&frame, cx) {
            Ok(()) => Ok(len),
            Err(Refused::Full) => Err(Errno::ENOBUFS.into()),
            Err(Refused::TooLarge) => Err(Errno::EMSGSIZE.into()),
            Err(Refused::Gone) => Err(Errno::ENETDOWN.into()),
        }
    }

    /// The options of its own level.
    fn set_own(&self, name: u32, value: UserSlice<u8, In>, memory: &UserMemory<'_>, cx: &Cx) -> Step<()> {
        let endpoint = self.endpoint(cx);
        match name {
            RX_RING => {
                let words = words::<4>(value, memory)?;
                if !self.is_on(IS_V2) {
                    return Err(Errno::EINVAL.into());
                }
                let reserved = self.reserved.load(Ordering::Relaxed);
                let [block_bytes, blocks, slot_bytes, slots] = words;
                endpoint.set_ring(Shape { block_bytes, blocks, slot_bytes, slots, reserved }, cx)?;
            }
            ADD_MEMBERSHIP | DROP_MEMBERSHIP => {
                // `struct packet_mreq`. The card gives everything that comes anyway.
                let [device, rest, ..] = words::<4>(value, memory)?;
                if devices::all(cx).iter().all(|one| one.index as u32 != device) {
                    return Err(Errno::ENODEV.into());
                }
                if !MEMBERSHIPS.contains(&(rest as u16)) {
                    return Err(Errno::EINVAL.into());
                }
            }
            AUXDATA => self.put(WANTS_AUXDATA, words::<1>(value, memory)?[0] != 0),
            ORIGDEV => self.put(WANTS_ORIGIN, words::<1>(value, memory)?[0] != 0),
            VERSION => match words::<1>(value, memory)? {
                _ if endpoint.ring.is_there() => return Err(Errno::EBUSY.into()),
                [V2] => self.put(IS_V2, true),
                _ => return Err(Errno::EINVAL.into()),
            },
            RESERVE => match words::<1>(value, memory)? {
                _ if endpoint.ring.is_there() => return Err(Errno::EBUSY.into()),
                [reserved] if reserved <= MOST_RESERVED => self.reserved.store(reserved, Ordering::Relaxed),
                _ => return Err(Errno::EINVAL.into()),
            },
            IGNORE_OUTGOING => match words::<1>(value, memory)? {
                [is_on @ 0..=1] => endpoint.ignore_outgoing(is_on == 1, cx),
                _ => return Err(Errno::EINVAL.into()),
            },
            _ => return Err(Errno::ENOPROTOOPT.into()),
        }
        Ok(())
    }
}

/// The words of an option's value.
///
/// # Errors
/// EINVAL: there are fewer. A fault.
fn words<const N: usize>(value: UserSlice<u8, In>, memory: &UserMemory<'_>) -> Step<[u32; N]> {
    let mut words = [0_u32; N];
    if value.len() < size_of_val(&words) {
        return Err(Errno::EINVAL.into());
    }
    memory.read_into(value, words.as_mut_bytes())?;
    Ok(words)
}

impl Socket for PacketSocket {
    fn bind(&self, address: &[u8], _me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        if address.len() < ADDRESS_BYTES {
            return Err(Errno::EINVAL.into());
        }
        let target = decode(address)?;
        if target.device != 0 && devices::all(cx).iter().all(|one| one.index as u32 != target.device) {
            return Err(Errno::ENODEV.into());
        }
        let endpoint = self.endpoint(cx);
        let protocol = if target.protocol != 0 { target.protocol } else { endpoint.told(cx).protocol };
        Ok(endpoint.bind(protocol, target.device, cx)?)
    }

    fn listen(&self, _backlog: usize, _me: &dyn VfsCaller, _cx: &Cx) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn connect(&self, _address: &[u8], _waker: Option<Waker>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn accept(&self, _waker: Option<Waker>, _tell: &mut dyn FnMut(&[u8]) -> Step<()>, _cx: &Cx) -> Step<Box<dyn File>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn note_inode(&self, number: u64) {
        self.endpoint.with(|endpoint| endpoint.note_inode(number));
    }

    fn address(&self, cx: &Cx) -> Vec<u8> {
        let told = self.endpoint(cx).told(cx);
        let (hardware, own) = match interface_of(told.device) {
            Ok(interface) => (Some(ETHERNET), interface.hardware().0),
            Err(_) if told.device == devices::INDEX as u32 => (Some(LOOPBACK), [0; 6]),
            Err(_) => (None, [0; 6]),
        };
        let mut address = encode(told.protocol, told.device, hardware);
        address[12..18].copy_from_slice(&own);
        let len = if hardware.is_some() { 18 } else { 12 };
        address[..len].to_vec()
    }

    fn peer_address(&self, _cx: &Cx) -> Result<Vec<u8>> {
        Err(Errno::EOPNOTSUPP)
    }

    fn send(
        &self,
        from: &mut dyn Source,
        to: Option<&[u8]>,
        _sending: &Sending<'_>,
        _waker: Option<Waker>,
        _me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<usize> {
        PacketSocket::send(self, from, to, cx)
    }

    fn receive(
        &self,
        sink: &mut Sink<'_>,
        _at_fault: AtFault,
        receiving: &Receiving,
        waker: Option<Waker>,
        cx: &Cx,
    ) -> Step<Received> {
        PacketSocket::receive(self, sink, receiving, waker, cx)
    }

    fn wanted(&self, _receiving: &Receiving, _cx: &Cx) -> usize {
        0
    }

    fn shut_down(&self, _what: Shutdown, _cx: &Cx) -> Step<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn set_option(
        &self,
        level: u32,
        name: u32,
        value: UserSlice<u8, In>,
        memory: &UserMemory<'_>,
        cx: &Cx,
    ) -> Step<()> {
        if level == SOL_PACKET {
            return self.set_own(name, value, memory, cx);
        }
        if level != net::SOL_SOCKET {
            return Err(Errno::ENOPROTOOPT.into());
        }
        if let Some(timeout) = self.timeouts.of(name) {
            let mut time = TimeVal::default();
            if value.len() < size_of_val(&time) {
                return Err(Errno::EINVAL.into());
            }
            memory.read_into(value, time.as_mut_bytes())?;
            return Ok(timeout.set(time)?);
        }
        let endpoint = self.endpoint(cx);
        if name == net::SO_ATTACH_FILTER {
            let mut bytes = [0; size_of::<Program>()];
            if value.len() != bytes.len() {
                return Err(Errno::EINVAL.into());
            }
            memory.read_into(value, &mut bytes)?;
            if endpoint.is_filter_locked(cx) {
                return Err(Errno::EPERM.into());
            }
            let program = Program::read_from_bytes(&bytes).map_err(|_| Errno::EINVAL)?;
            let len = usize::from(program.len);
            if len == 0 || len > MOST_INSTRUCTIONS {
                return Err(Errno::EINVAL.into());
            }
            let instructions = memory.read_slice(program.instructions.slice(len))?;
            return Ok(endpoint.set_filter(Some(Filter::new(instructions)?), cx)?);
        }
        let [number] = words::<1>(value, memory)?;
        match name {
            net::SO_DETACH_FILTER => endpoint.set_filter(None, cx)?,
            net::SO_LOCK_FILTER if number != 0 => endpoint.lock_filter(cx),
            net::SO_LOCK_FILTER if endpoint.is_filter_locked(cx) => return Err(Errno::EPERM.into()),
            net::SO_RCVBUF | net::SO_RCVBUFFORCE => {
                let bytes = number.min(endpoint::DEFAULT_BUFFER).saturating_mul(2).max(2304);
                endpoint.buffer.store(bytes, Ordering::Relaxed);
            }
            net::SO_TIMESTAMP_OLD => self.put(WANTS_TIME, number != 0),
            net::SO_TIMESTAMPNS_OLD => self.put(WANTS_NANOSECONDS, number != 0),
            // What is sent is with the card at once, and goes to all.
            net::SO_SNDBUF
            | net::SO_SNDBUFFORCE
            | net::SO_BROADCAST
            | net::SO_PRIORITY
            | net::SO_REUSEADDR
            | net::SO_LOCK_FILTER => {}
            _ => return Err(Errno::ENOPROTOOPT.into()),
        }
        Ok(())
    }

    fn option_with(&self, level: u32, name: u32) -> Option<OptionOfNumber> {
        let header_bytes = |version| match version {
            V2 => Ok((RING_HEADER_BYTES as u32).to_le_bytes().to_vec()),
            _ => Err(Errno::EINVAL),
        };
        (level == SOL_PACKET && name == HDRLEN).then_some(header_bytes)
    }

    fn option(&self, level: u32, name: u32, cx: &Cx) -> Result<Vec<u8>> {
        if level == net::SOL_SOCKET
            && let Some(timeout) = self.timeouts.of(name)
        {
            return Ok(timeout.get().as_bytes().to_vec());
        }
        let endpoint = self.endpoint(cx);
        let told = endpoint.told(cx);
        let flag = |option| u32::from(self.is_on(option));
        let value = match (level, name) {
            (net::SOL_SOCKET, net::SO_TYPE) if endpoint.kind == Type::Raw => net::SOCK_RAW,
            (net::SOL_SOCKET, net::SO_TYPE) => net::SOCK_DGRAM,
            (net::SOL_SOCKET, net::SO_DOMAIN) => AF_PACKET.into(),
            (net::SOL_SOCKET, net::SO_PROTOCOL) => told.protocol.to_be().into(),
            (net::SOL_SOCKET, net::SO_ERROR | net::SO_ACCEPTCONN) => 0,
            (net::SOL_SOCKET, net::SO_SNDBUF) => endpoint::DEFAULT_BUFFER,
            (net::SOL_SOCKET, net::SO_RCVBUF) => endpoint.buffer.load(Ordering::Relaxed),
            (net::SOL_SOCKET, net::SO_LOCK_FILTER) => endpoint.is_filter_locked(cx).into(),
            (net::SOL_SOCKET, net::SO_TIMESTAMP_OLD) => flag(WANTS_TIME),
            (net::SOL_SOCKET, net::SO_TIMESTAMPNS_OLD) => flag(WANTS_NANOSECONDS),
            (net::SOL_SOCKET, net::SO_COOKIE) => return Ok(endpoint.cookie.get().to_le_bytes().to_vec()),
            (SOL_PACKET, STATISTICS) => {
                let [seen, lost] = endpoint.take_statistics(cx);
                return Ok([seen, lost].as_bytes().to_vec());
            }
            (SOL_PACKET, AUXDATA) => flag(WANTS_AUXDATA),
            (SOL_PACKET, ORIGDEV) => flag(WANTS_ORIGIN),
            (SOL_PACKET, VERSION) => flag(IS_V2),
            (SOL_PACKET, RESERVE) => self.reserved.load(Ordering::Relaxed),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(value.to_le_bytes().to_vec())
    }
}

impl File for PacketSocket {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Socket
    }

    fn kernel_bytes(&self, cx: &Cx) -> usize {
        self.endpoint(cx).kernel_bytes(cx)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn release(&self, cx: &Cx) -> bool {
        self.endpoint(cx).close(cx);
        false
    }

    fn time_limit(&self, interest: Events) -> Option<u64> {
        self.timeouts.limit(interest)
    }

    fn keeps_messages(&self, _cx: &Cx) -> bool {
        true
    }

    fn signals_broken_pipe(&self, _cx: &Cx) -> bool {
        false
    }

    fn mappable<'a>(&'a self, cx: &'a Cx) -> Mappable<'a> {
        let ring = &self.endpoint.get(cx).into_ref().ring;
        if ring.is_there() { Mappable::Pages(ring.pages()) } else { Mappable::No }
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let receiving = Receiving { flags: 0, room: to.remaining() };
        read_into(to, me, cx, |sink, _| PacketSocket::receive(self, sink, &receiving, None, cx))
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        PacketSocket::send(self, from, None, cx)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.endpoint(cx).poll(waker, cx) & interest
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if request != FIONREAD {
            return devices::ioctl(request, argument, me, cx);
        }
        let waiting = self.endpoint(cx).waiting_bytes(cx) as i32;
        me.memory(cx)?.write(argument.output::<i32>(), &waiting)?;
        Ok(0)
    }
}
