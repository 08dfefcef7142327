//! ICMP of both versions (RFC 792, RFC 4443): echoes, and errors that are sent and received.
//!
//! An error quotes the beginning of the packet that caused it. Whoever gets one must find in it what he has sent, else it may be forged. How many errors are
//! sent in a second is the caller's to limit.

use core::net::IpAddr;

use smoltcp::wire::{Icmpv4Packet, Icmpv6Packet, Ipv4Packet, Ipv6Packet};

use crate::Malformed;
use crate::checksum::{self, Checksum, OutgoingChecksum, protocol, sum};

use super::address::Audience;
use super::packet::Packet;

/// Bytes before the data of an echo, or before what an error quotes.
const HEADER_BYTES: usize = 8;
/// Bytes of the longest error with its IP header: of IPv4 (RFC 1812, section 4.3.2.3) and IPv6 (RFC 4443, section 2.4).
const LONGEST_V4_ERROR: usize = 576;
const LONGEST_V6_ERROR: usize = 1280;

/// Types and codes of IPv4.
mod v4 {
    pub const ECHO_REPLY: u8 = 0;
    pub const UNREACHABLE: u8 = 3;
    pub const ECHO_REQUEST: u8 = 8;
    pub const TIME_EXCEEDED: u8 = 11;
    pub const PARAMETER_PROBLEM: u8 = 12;
    pub const SOURCE_QUENCH: u8 = 4;
    pub const REDIRECT: u8 = 5;
    pub const NETWORK: u8 = 0;
    pub const HOST: u8 = 1;
    pub const PROTOCOL: u8 = 2;
    pub const PORT: u8 = 3;
    pub const TOO_BIG: u8 = 4;
    pub const PROHIBITED: u8 = 13;
}

/// Types and codes of IPv6.
pub(super) mod v6 {
    pub const UNREACHABLE: u8 = 1;
    pub const TOO_BIG: u8 = 2;
    pub const TIME_EXCEEDED: u8 = 3;
    pub const FIRST_INFORMATION: u8 = 128;
    pub const ECHO_REQUEST: u8 = 128;
    pub const ECHO_REPLY: u8 = 129;
    pub const NO_ROUTE: u8 = 0;
    pub const PROHIBITED: u8 = 1;
    pub const ADDRESS: u8 = 3;
    pub const PORT: u8 = 4;
    pub const PARAMETER_PROBLEM: u8 = 4;
    pub const UNKNOWN_HEADER: u8 = 1;
    pub const ROUTER_SOLICITATION: u8 = 133;
    pub const REDIRECT: u8 = 137;
}

/// The beginning of a packet that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// Who sent it: this host, if the error is true.
    pub source: IpAddr,
    /// For whom it was.
    pub destination: IpAddr,
    /// Its protocol.
    pub protocol: u8,
    /// The first bytes of its payload: eight, if the error is true.
    pub payload: &'a [u8],
}

impl<'a> Quoted<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Quoted<'a>, Malformed> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) if bytes.len() >= 20 => {
                let view = Ipv4Packet::new_unchecked(bytes);
                let payload = bytes.get(usize::from(view.header_len()).max(20)..).ok_or(Malformed)?;
                let (source, destination) = (IpAddr::V4(view.src_addr()), IpAddr::V4(view.dst_addr()));
                Ok(Quoted { source, destination, protocol: view.next_header().into(), payload })
            }
            Some(6) if bytes.len() >= 40 => {
                let view = Ipv6Packet::new_unchecked(bytes);
                let (source, destination) = (IpAddr::V6(view.src_addr()), IpAddr::V6(view.dst_addr()));
                Ok(Quoted { source, destination, protocol: view.next_header().into(), payload: &bytes[40..] })
            }
            _ => Err(Malformed),
        }
    }

    /// The ports of its sender and receiver, of TCP and UDP.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let ([a, b, c, d], _) = self.payload.split_first_chunk()?;
        Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
    }

    /// The sequence number, of TCP.
    pub fn sequence(&self) -> Option<u32> {
        self.payload.get(4..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// Why something cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// There is no route.
    Network,
    /// The host does not answer.
    Host,
    /// It does not know the protocol.
    Protocol,
    /// Nobody listens there.
    Port,
    /// It is not allowed.
    Prohibited,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// To be answered with [`echo_reply`].
    EchoRequest,
    /// The answer to an echo: its identifier, its number and its data.
    EchoReply {
        /// Of the program that asked.
        id: u16,
        /// Of the question.
        sequence: u16,
        /// The same as in the question.
        data: &'a [u8],
    },
    /// A packet did not arrive.
    Unreachable(Unreachable, Quoted<'a>),
    /// A packet did not fit: the MTU that would, in bytes; zero if the router does not say.
    TooBig(usize, Quoted<'a>),
    /// A packet went through too many routers, or was not reassembled in time.
    TimeExceeded(Quoted<'a>),
    /// For the [neighbour cache](crate::neighbour): RFC 4861.
    NeighbourDiscovery,
    /// Something else that is of no use here.
    Other,
}

impl<'a> Message<'a> {
    /// Reads the message in a packet of ICMP.
    ///
    /// # Errors
    ///
    /// It is of no protocol of these, a length is wrong, or the checksum is.
    pub fn parse(packet: &Packet<'a>, checksum: Checksum) -> Result<Message<'a>, Malformed> {
        let bytes = packet.payload;
        match (packet.source, packet.protocol) {
            (IpAddr::V4(_), protocol::ICMP) => {
                let view = Icmpv4Packet::new_checked(bytes).map_err(|_| Malformed)?;
                if checksum == Checksum::Verify && sum(bytes) != 0xffff {
                    return Err(Malformed);
                }
                Message::parse_v4(view.msg_type().into(), view.msg_code(), bytes)
            }
            (IpAddr::V6(_), protocol::ICMPV6) => {
                let view = Icmpv6Packet::new_checked(bytes).map_err(|_| Malformed)?;
                let is_right = checksum::is_right(packet.source, packet.destination, protocol::ICMPV6, bytes);
                if checksum == Checksum::Verify && !is_right {
                    return Err(Malformed);
                }
                Message::parse_v6(view.msg_type().into(), view.msg_code(), bytes)
            }
            _ => Err(Malformed),
        }
    }

    fn parse_v4(kind: u8, code: u8, bytes: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed)?;
        let [.., high, low] = *header;
        Ok(match (kind, code) {
            (v4::ECHO_REQUEST, 0) => Message::EchoRequest,
            (v4::ECHO_REPLY, 0) => echo_reply_of(header, rest),
            (v4::UNREACHABLE, v4::TOO_BIG) => {
                Message::TooBig(usize::from(u16::from_be_bytes([high, low])), Quoted::parse(rest)?)
            }
            (v4::UNREACHABLE, code) => {
                let reason = match code {
                    v4::NETWORK | 6 | 11 => Unreachable::Network,
                    v4::PROTOCOL => Unreachable::Protocol,
                    v4::PORT => Unreachable::Port,
                    9 | 10 | v4::PROHIBITED => Unreachable::Prohibited,
                    _ => Unreachable::Host,
                };
                Message::Unreachable(reason, Quoted::parse(rest)?)
            }
            (v4::TIME_EXCEEDED, _) => Message::TimeExceeded(Quoted::parse(rest)?),
            _ => Message::Other,
        })
    }

    fn parse_v6(kind: u8, code: u8, bytes: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed)?;
        let [.., a, b, c, d] = *header;
        Ok(match (kind, code) {
            (v6::ECHO_REQUEST, 0) => Message::EchoRequest,
            (v6::ECHO_REPLY, 0) => echo_reply_of(header, rest),
            (v6::TOO_BIG, _) => {
                let mtu = u32::from_be_bytes([a, b, c, d]).min(u32::from(u16::MAX));
                Message::TooBig(mtu as usize, Quoted::parse(rest)?)
            }
            (v6::UNREACHABLE, code) => {
                let reason = match code {
                    v6::NO_ROUTE => Unreachable::Network,
                    v6::PORT => Unreachable::Port,
                    v6::PROHIBITED | 5 | 6 => Unreachable::Prohibited,
                    _ => Unreachable::Host,
                };
                Message::Unreachable(reason, Quoted::parse(rest)?)
            }
            (v6::PARAMETER_PROBLEM, v6::UNKNOWN_HEADER) => {
                Message::Unreachable(Unreachable::Protocol, Quoted::parse(rest)?)
            }
            (v6::TIME_EXCEEDED, _) => Message::TimeExceeded(Quoted::parse(rest)?),
            (v6::ROUTER_SOLICITATION..=v6::REDIRECT, 0) => Message::NeighbourDiscovery,
            _ => Message::Other,
        })
    }
}

fn echo_reply_of<'a>(header: &[u8; HEADER_BYTES], data: &'a [u8]) -> Message<'a> {
    let [.., a, b, c, d] = *header;
    Message::EchoReply { id: u16::from_be_bytes([a, b]), sequence: u16::from_be_bytes([c, d]), data }
}

/// Writes the answer to an echo request that came, from `source`. Returns its length.
///
/// # Errors
///
/// It is no echo request, or `out` is too short.
pub fn echo_reply(request: &Packet<'_>, source: IpAddr, out: &mut [u8]) -> Result<usize, Malformed> {
    if Message::parse(request, Checksum::Trust)? != Message::EchoRequest {
        return Err(Malformed);
    }
    let len = request.payload.len();
    let out = out.get_mut(..len).ok_or(Malformed)?;
    out.copy_from_slice(request.payload);
    out[0] = if source.is_ipv4() { v4::ECHO_REPLY } else { v6::ECHO_REPLY };
    seal(out, source, request.source);
    Ok(len)
}

/// Writes an echo request. Returns its length.
///
/// # Errors
///
/// `out` is too short.
pub fn echo_request(
    ends: (IpAddr, IpAddr),
    id: u16,
    sequence: u16,
    data: &[u8],
    out: &mut [u8],
) -> Result<usize, Malformed> {
    let len = HEADER_BYTES + data.len();
    let out = out.get_mut(..len).ok_or(Malformed)?;
    let kind = if ends.0.is_ipv4() { v4::ECHO_REQUEST } else { v6::ECHO_REQUEST };
    let ([a, b], [c, d]) = (id.to_be_bytes(), sequence.to_be_bytes());
    out[..HEADER_BYTES].copy_from_slice(&[kind, 0, 0, 0, a, b, c, d]);
    out[HEADER_BYTES..].copy_from_slice(data);
    seal(out, ends.0, ends.1);
    Ok(len)
}

/// An error to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Its destination cannot be reached.
    Unreachable(Unreachable),
    /// It does not fit through a link with such an MTU.
    TooBig(u16),
    /// Its fragments did not all come in time, or it went through too many routers.
    TimeExceeded,
}

/// Whether a packet may be answered with an error (RFC 1122, section 3.2.2; RFC 4443, section 2.4): one for this host alone, from one host, that is neither an error
/// itself nor a later fragment.
pub fn may_answer(packet: &Packet<'_>, audience: Audience) -> bool {
    let kind = packet.payload.first().copied();
    let is_error = match packet.protocol {
        protocol::ICMP => matches!(
            kind,
            None | Some(v4::UNREACHABLE | v4::TIME_EXCEEDED | v4::PARAMETER_PROBLEM | v4::SOURCE_QUENCH | v4::REDIRECT)
        ),
        protocol::ICMPV6 => kind.is_none_or(|kind| kind < v6::FIRST_INFORMATION || kind == v6::REDIRECT),
        _ => false,
    };
    audience == Audience::Unicast
        && !is_error
        && !packet.source.is_unspecified()
        && packet.fragment.is_none_or(|fragment| fragment.offset == 0)
}

/// Writes an error about a packet whose bytes, with the IP header, are `original`: from `ends.0` to `ends.1`. Returns its length.
///
/// # Errors
///
/// `out` is too short for the longest one: 556 bytes for IPv4, 1240 for IPv6.
pub fn error(problem: Problem, original: &[u8], ends: (IpAddr, IpAddr), out: &mut [u8]) -> Result<usize, Malformed> {
    let (source, destination) = ends;
    let is_v4 = source.is_ipv4();
    let (kind, code, word) = match (problem, is_v4) {
        (Problem::Unreachable(reason), true) => {
            let code = match reason {
                Unreachable::Network => v4::NETWORK,
                Unreachable::Host => v4::HOST,
                Unreachable::Protocol => v4::PROTOCOL,
                Unreachable::Port => v4::PORT,
                Unreachable::Prohibited => v4::PROHIBITED,
            };
            (v4::UNREACHABLE, code, 0)
        }
        // The number is where the unknown header is named: the one of IPv6 itself, as no other is looked into here.
        (Problem::Unreachable(Unreachable::Protocol), false) => (v6::PARAMETER_PROBLEM, v6::UNKNOWN_HEADER, 6),
        (Problem::Unreachable(reason), false) => {
            let code = match reason {
                Unreachable::Network => v6::NO_ROUTE,
                Unreachable::Prohibited => v6::PROHIBITED,
                Unreachable::Port => v6::PORT,
                Unreachable::Host | Unreachable::Protocol => v6::ADDRESS,
            };
            (v6::UNREACHABLE, code, 0)
        }
        (Problem::TooBig(mtu), true) => (v4::UNREACHABLE, v4::TOO_BIG, u32::from(mtu)),
        (Problem::TooBig(mtu), false) => (v6::TOO_BIG, 0, u32::from(mtu)),
        (Problem::TimeExceeded, true) => (v4::TIME_EXCEEDED, 1, 0),
        (Problem::TimeExceeded, false) => (v6::TIME_EXCEEDED, 1, 0),
    };
    let longest = if is_v4 { LONGEST_V4_ERROR - 20 } else { LONGEST_V6_ERROR - 40 };
    let quoted = original.len().min(longest - HEADER_BYTES);
    let len = HEADER_BYTES + quoted;
    let out = out.get_mut(..len).ok_or(Malformed)?;
    out[..HEADER_BYTES].fill(0);
    (out[0], out[1]) = (kind, code);
    out[4..HEADER_BYTES].copy_from_slice(&word.to_be_bytes());
    out[HEADER_BYTES..].copy_from_slice(&original[..quoted]);
    seal(out, source, destination);
    Ok(len)
}

/// Writes the checksum into a message.
///
/// # Panics
///
/// The message has no room for one: fewer than four bytes.
pub fn seal(message: &mut [u8], source: IpAddr, destination: IpAddr) {
    message[2..4].fill(0);
    let checksum = if source.is_ipv4() {
        !sum(message)
    } else {
        checksum::compute(OutgoingChecksum::Full, source, destination, protocol::ICMPV6, message)
    };
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::IpHeader;
    use super::*;

    const ENDS: [(&str, &str); 2] = [("10.0.0.1", "10.0.0.2"), ("fe80::1", "fe80::2")];

    fn packet(ends: (IpAddr, IpAddr), message: &[u8]) -> Packet<'_> {
        let protocol = if ends.0.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        Packet {
            source: ends.0,
            destination: ends.1,
            protocol,
            hop_limit: 64,
            traffic_class: 0,
            fragment: None,
            payload: message,
        }
    }

    #[test]
    fn echoes_are_answered_with_their_data() {
        for (one, other) in ENDS {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            let (mut request, mut reply) = ([0; 64], [0; 64]);
            let len = echo_request((one, other), 7, 9, b"data", &mut request).unwrap();
            let request = packet((one, other), &request[..len]);
            assert_eq!(Message::parse(&request, Checksum::Verify), Ok(Message::EchoRequest));
            let len = echo_reply(&request, other, &mut reply).unwrap();
            let reply = packet((other, one), &reply[..len]);
            let expected = Message::EchoReply { id: 7, sequence: 9, data: b"data" };
            assert_eq!(Message::parse(&reply, Checksum::Verify), Ok(expected));
        }
    }

    #[test]
    fn errors_quote_what_they_are_about() {
        for (one, other) in ENDS {
            let (one, other): (IpAddr, IpAddr) = (one.parse().unwrap(), other.parse().unwrap());
            let mut original = [0; 2000];
            let header = IpHeader::new(one, other, protocol::TCP);
            let at = header.len_bytes();
            original[at..at + 8].copy_from_slice(&[0, 80, 1, 0, 0, 0, 0, 5]);
            header.emit(&mut original, 1500).unwrap();
            for problem in [
                Problem::Unreachable(Unreachable::Port),
                Problem::TooBig(1300),
                Problem::TimeExceeded,
                Problem::Unreachable(Unreachable::Network),
                Problem::Unreachable(Unreachable::Protocol),
            ] {
                let mut out = [0; 1400];
                let len = error(problem, &original[..1500 + at], (other, one), &mut out).unwrap();
                assert!(len <= 1240);
                let got = Message::parse(&packet((other, one), &out[..len]), Checksum::Verify).unwrap();
                let quoted = match (problem, got) {
                    (Problem::Unreachable(sent), Message::Unreachable(got, quoted)) if sent == got => quoted,
                    (Problem::TooBig(mtu), Message::TooBig(got, quoted)) if usize::from(mtu) == got => quoted,
                    (Problem::TimeExceeded, Message::TimeExceeded(quoted)) => quoted,
                    _ => panic!("{problem:?} became {got:?}"),
                };
                assert_eq!((quoted.source, quoted.destination, quoted.protocol), (one, other, protocol::TCP));
                assert_eq!((quoted.ports(), quoted.sequence()), (Some((80, 256)), Some(5)));
                assert!(!may_answer(&packet((other, one), &out[..len]), Audience::Unicast), "no error about an error");
            }
        }
    }
}
