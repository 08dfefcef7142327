//! Messages as bytes: what a server says, and what a client asks.

use core::net::Ipv4Addr;

use smoltcp::wire::{DhcpMessageType, DhcpOpCode, DhcpPacket, DhcpRepr, EthernetAddress};

use crate::Malformed;
use crate::ethernet::HardwareAddress;
use crate::time::Duration;

/// Name servers that are remembered.
pub const MOST_DNS_SERVERS: usize = 3;
/// What opens the options (RFC 2131, section 3).
const MAGIC: u32 = 0x6382_5363;
/// The longest message that is taken.
const LARGEST_TAKEN: u16 = 1472;

/// Numbers of options (RFC 2132).
mod option {
    pub const MASK: u8 = 1;
    pub const ROUTER: u8 = 3;
    pub const DNS: u8 = 6;
    pub const MTU: u8 = 26;
    pub const LEASE: u8 = 51;
    pub const SERVER: u8 = 54;
    pub const TYPE: u8 = 53;
    pub const RENEWAL: u8 = 58;
    pub const REBINDING: u8 = 59;
    /// What is asked for.
    pub const WANTED: [u8; 6] = [MASK, ROUTER, DNS, MTU, RENEWAL, REBINDING];
}

/// What a server offers or gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// Bits of the prefix of the network's addresses.
    pub prefix_len: u8,
    /// The default router.
    pub router: Option<Ipv4Addr>,
    /// Name servers, in the order in which they are to be asked.
    pub dns: [Option<Ipv4Addr>; MOST_DNS_SERVERS],
    /// The MTU, if the server says one.
    pub mtu: Option<u16>,
    /// The server.
    pub server: Ipv4Addr,
    /// How long it is good; `None`: for ever.
    pub duration: Option<Duration>,
    /// When it is to be renewed, from its beginning (T1).
    pub renew_after: Duration,
    /// When any server is to be asked (T2).
    pub rebind_after: Duration,
}

/// What a server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Offer(Lease),
    Ack(Lease),
    Nak { server: Option<Ipv4Addr> },
}

fn address(data: &[u8]) -> Option<Ipv4Addr> {
    data.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets))
}

fn number(data: &[u8]) -> Option<u32> {
    data.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Reads an answer to the question with such a number of a client. `None`: it is for another.
///
/// # Errors
///
/// A length is wrong, something that must be there is not, or an address is none that a host can have.
pub(super) fn parse(bytes: &[u8], transaction: u32, client: HardwareAddress) -> Result<Option<Answer>, Malformed> {
    let packet = DhcpPacket::new_checked(bytes).map_err(|_| Malformed)?;
    if packet.opcode() != DhcpOpCode::Reply || packet.magic_number() != MAGIC {
        return Err(Malformed);
    }
    if packet.transaction_id() != transaction || packet.client_hardware_address().0 != client.0 {
        return Ok(None);
    }
    let (mut kind, mut server, mut mask, mut router, mut mtu) = (None, None, None, None, None);
    let (mut lease, mut renewal, mut rebinding) = (None, None, None);
    let mut dns = [None; MOST_DNS_SERVERS];
    for option in packet.options() {
        let data = option.data;
        match option.kind {
            option::TYPE => kind = data.first().map(|&kind| DhcpMessageType::from(kind)),
            option::SERVER => server = address(data),
            option::MASK => mask = number(data),
            option::ROUTER => router = address(data).filter(|router| !router.is_unspecified()),
            option::DNS => {
                for (slot, octets) in dns.iter_mut().zip(data.as_chunks::<4>().0) {
                    *slot = Some(Ipv4Addr::from(*octets));
                }
            }
            option::MTU => mtu = data.first_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes)),
            option::LEASE => lease = number(data),
            option::RENEWAL => renewal = number(data),
            option::REBINDING => rebinding = number(data),
            _ => {}
        }
    }
    if kind == Some(DhcpMessageType::Nak) {
        return Ok(Some(Answer::Nak { server }));
    }
    let own = packet.your_ip();
    if own.is_unspecified() || own.is_multicast() || own.is_broadcast() || own.is_loopback() {
        return Err(Malformed);
    }
    let mask = mask.unwrap_or(default_mask(own));
    if mask.leading_ones() + mask.trailing_zeros() != 32 {
        return Err(Malformed);
    }
    let seconds = lease.ok_or(Malformed)?;
    // All ones mean for ever.
    let duration = (seconds != u32::MAX).then(|| Duration::from_secs(u64::from(seconds).max(1)));
    let whole = duration.unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
    let rebind_after = after(rebinding, whole, whole.times(7).part(8));
    let lease = Lease {
        address: own,
        prefix_len: mask.leading_ones() as u8,
        router,
        dns,
        mtu: mtu.filter(|&mtu| mtu >= 68),
        server: server.ok_or(Malformed)?,
        duration,
        renew_after: after(renewal, rebind_after, whole.part(2).min(rebind_after)),
        rebind_after,
    };
    match kind {
        Some(DhcpMessageType::Offer) => Ok(Some(Answer::Offer(lease))),
        Some(DhcpMessageType::Ack) => Ok(Some(Answer::Ack(lease))),
        _ => Err(Malformed),
    }
}

/// A time that a server names, if it is not after `most`; else the usual one.
fn after(seconds: Option<u32>, most: Duration, usual: Duration) -> Duration {
    seconds.map(|seconds| Duration::from_secs(seconds.into())).filter(|&time| time <= most).unwrap_or(usual)
}

/// The mask of an address of a class (RFC 791), where a server names none.
fn default_mask(address: Ipv4Addr) -> u32 {
    match address.octets()[0] {
        0..128 => 0xff00_0000,
        128..192 => 0xffff_0000,
        _ => 0xffff_ff00,
    }
}

/// What a client asks or says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub kind: DhcpMessageType,
    pub transaction: u32,
    pub seconds: u16,
    pub hardware: HardwareAddress,
    /// The address that it has and uses.
    pub own: Option<Ipv4Addr>,
    /// The address that it wants.
    pub wanted: Option<Ipv4Addr>,
    pub server: Option<Ipv4Addr>,
}

impl Request {
    /// Writes it. Returns its length, which is that of a BOOTP message at least.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Malformed> {
        let bytes = out.get_mut(..super::LONGEST_MESSAGE).ok_or(Malformed)?;
        bytes.fill(0);
        let is_question = matches!(self.kind, DhcpMessageType::Discover | DhcpMessageType::Request);
        let repr = DhcpRepr {
            message_type: self.kind,
            transaction_id: self.transaction,
            secs: self.seconds,
            client_hardware_address: EthernetAddress(self.hardware.0),
            client_ip: self.own.unwrap_or(Ipv4Addr::UNSPECIFIED),
            your_ip: Ipv4Addr::UNSPECIFIED,
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: None,
            subnet_mask: None,
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            // Without an address nothing else may arrive.
            broadcast: is_question && self.own.is_none(),
            requested_ip: self.wanted,
            client_identifier: Some(EthernetAddress(self.hardware.0)),
            server_identifier: self.server,
            parameter_request_list: is_question.then_some(&option::WANTED),
            dns_servers: None,
            max_size: is_question.then_some(LARGEST_TAKEN),
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        };
        repr.emit(&mut DhcpPacket::new_unchecked(&mut *bytes)).map_err(|_| Malformed)?;
        Ok(bytes.len())
    }
}
