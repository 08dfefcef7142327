//! A host that does with frames all that the engine can do, frames of all kinds, and what damages them. Its tests and `ebb-fuzz` feed it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tcpip::dhcp::Client;
use tcpip::ethernet::{EtherType, Frame, HardwareAddress};
use tcpip::ip::icmp::{self, Message};
use tcpip::ip::{Addresses, IpHeader, Packet, Reassembler, ReassemblyLimits, protocol};
use tcpip::neighbour::{Arp, Autoconfiguration, Ndisc, NeighbourCache, NeighbourLimits};
use tcpip::tcp::{
    Connection, Endpoints, Header, Offload, Opening, Options, Segment, Segmentation, Settings, State, Timestamps,
    cookie,
};
use tcpip::udp::{self, UdpDatagram};
use tcpip::{Checksum, Duration, Instant, Key, OutgoingChecksum};

const DEVICE: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
const OFFLOAD: Offload = Offload { checksum: OutgoingChecksum::Full, segmentation: Segmentation::ByDevice };

/// A number below another, which is not zero, from whatever makes random numbers.
pub trait Below: FnMut(u64) -> u64 {}

impl<F: FnMut(u64) -> u64> Below for F {}

fn opening() -> Opening {
    Opening {
        endpoints: Endpoints { local: ([10, 0, 0, 1], 4000).into(), remote: ([10, 0, 0, 2], 4001).into() },
        sequence: 7,
        timestamp_offset: 0,
        mtu: 1500,
        settings: Settings::default(),
    }
}

/// All that a host does with frames.
pub struct Host {
    now: Instant,
    cache: NeighbourCache<u32>,
    addresses: Addresses,
    autoconfiguration: Autoconfiguration,
    reassembler: Reassembler,
    dhcp: Client,
    connections: Vec<Connection>,
    out: Vec<u8>,
}

impl Host {
    /// One that knows nothing.
    pub fn new() -> Self {
        let now = Instant::default();
        let mut addresses = Addresses::default();
        let autoconfiguration = Autoconfiguration::new(now, DEVICE, &mut addresses);
        Host {
            now,
            cache: NeighbourCache::new(NeighbourLimits { entries: 16, waiting: 2 }),
            addresses,
            autoconfiguration,
            reassembler: Reassembler::new(ReassemblyLimits { bytes: 200_000, ..ReassemblyLimits::default() }),
            dhcp: Client::new(now, DEVICE, Key([1, 2])),
            connections: vec![Connection::connect(now, &opening())],
            out: vec![0; 70_000],
        }
    }

    /// What it has understood: a connection is open, it has a lease, it has made an address, and it knows its neighbours of both versions.
    pub fn has_understood(&self) -> [bool; 5] {
        let is_open = |connection: &Connection| connection.state() == State::Established;
        let knows =
            |is_v4: bool| self.cache.iter().any(|(address, device, _)| address.is_ipv4() == is_v4 && device.is_some());
        [
            self.connections.iter().any(is_open),
            self.dhcp.lease().is_some(),
            self.addresses.iter().count() > 1,
            knows(true),
            knows(false),
        ]
    }

    /// A frame comes.
    pub fn frame(&mut self, bytes: &[u8]) {
        self.now = self.now + Duration::from_millis(7);
        let Ok(frame) = Frame::parse(bytes) else { return };
        match frame.kind {
            EtherType::Arp => {
                if let Ok(message) = Arp::parse(frame.payload) {
                    self.cache.on_arp(self.now, &message, DEVICE, |address| address.octets()[3] == 1);
                }
            }
            EtherType::Ipv4 | EtherType::Ipv6 => self.ip(frame.payload),
            EtherType::Other(_) => {}
        }
        while self.cache.next_question().is_some() {}
        self.cache.on_deadline(self.now, |_, _| {});
        self.autoconfiguration.on_deadline(self.now, &mut self.addresses);
        while self.autoconfiguration.next_message(self.now, &self.addresses).is_some() {}
    }

    fn ip(&mut self, bytes: &[u8]) {
        let Ok(packet) = Packet::parse(bytes, Checksum::Trust) else { return };
        if packet.fragment.is_some() {
            if let Some(datagram) = self.reassembler.push(self.now, &packet)
                && let Ok(packet) = datagram.packet()
            {
                self.transport(&packet, bytes);
            }
            assert!(self.reassembler.held_bytes() <= 200_000);
        } else {
            self.transport(&packet, bytes);
        }
    }

    fn transport(&mut self, packet: &Packet<'_>, original: &[u8]) {
        let audience = self.addresses.audience(packet.destination);
        let ends = (packet.destination, packet.source);
        if icmp::may_answer(packet, audience) {
            let problem = icmp::Problem::Unreachable(icmp::Unreachable::Port);
            icmp::error(problem, original, ends, &mut self.out).expect("there is room");
        }
        match packet.protocol {
            protocol::TCP => {
                if let Ok(segment) = Segment::parse(packet.payload, ends.1, ends.0, Checksum::Trust) {
                    self.tcp(&segment);
                }
            }
            protocol::UDP => {
                if let Ok(datagram) = UdpDatagram::parse(packet.payload, ends.1, ends.0, Checksum::Trust) {
                    let _ = self.dhcp.on_message(self.now, datagram.payload);
                }
            }
            _ => {
                if let Ok(message) = Message::parse(packet, Checksum::Trust) {
                    self.icmp(packet, message);
                }
            }
        }
        self.cache.resolve(self.now, packet.source, 1);
        self.dhcp.on_deadline(self.now);
        self.dhcp.transmit(self.now, &mut self.out);
    }

    fn tcp(&mut self, segment: &Segment<'_>) {
        let endpoints = opening().endpoints;
        let listener = cookie::Listener { mtu: 1500, window: 65_000, window_scale: 7, timestamp_offset: 0 };
        cookie::encode(&Key([1, 2]), self.now, &endpoints, &listener, segment);
        assert!(cookie::decode(&Key([1, 2]), self.now, &opening(), segment).is_none(), "a cookie was guessed");
        for connection in &mut self.connections {
            connection.on_segment(self.now, segment);
            while connection.transmit(self.now, OFFLOAD, &mut self.out).is_some() {}
            let mut sink = [0; 4096];
            while connection.read(self.now, &mut sink).is_ok_and(|count| count > 0) {}
            let _ = connection.write(&sink);
            connection.on_deadline(self.now);
        }
    }

    fn icmp(&mut self, packet: &Packet<'_>, message: Message<'_>) {
        match message {
            Message::EchoRequest => {
                icmp::echo_reply(packet, packet.destination, &mut self.out).expect("there is room");
            }
            Message::TooBig(mtu, quoted) => {
                for connection in &mut self.connections {
                    connection.on_path_mtu(self.now, mtu, quoted.sequence().unwrap_or(0));
                }
            }
            Message::NeighbourDiscovery => {
                let IpAddr::V6(source) = packet.source else { return };
                let Ok(Some(message)) = Ndisc::parse(packet) else { return };
                self.cache.on_ndisc(self.now, source, &message, DEVICE, |address| address.octets()[15] == 1);
                self.autoconfiguration.on_claim(source, &message, &mut self.addresses);
                if let Ndisc::RouterAdvertisement(advertisement) = &message {
                    self.autoconfiguration.on_advertisement(self.now, advertisement, &mut self.addresses);
                }
            }
            _ => {}
        }
    }
}

/// Frames that are right, of all kinds.
pub fn whole_frames(host: &mut Host) -> Vec<Vec<u8>> {
    let v4 = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    let v6: (IpAddr, IpAddr) = ("fe80::2".parse().unwrap(), "fe80::1".parse().unwrap());
    let mut frames = Vec::new();
    let mut add = |kind: EtherType, payload: &[u8]| {
        let mut frame = vec![0; 14 + payload.len()];
        frame[14..].copy_from_slice(payload);
        tcpip::ethernet::emit(&mut frame, DEVICE, HardwareAddress([2, 0, 0, 0, 0, 2]), kind).unwrap();
        frames.push(frame);
    };
    let wrap = |ends: (IpAddr, IpAddr), protocol: u8, hop_limit: u8, payload: &[u8]| {
        let header = IpHeader { hop_limit, ..IpHeader::new(ends.0, ends.1, protocol) };
        let mut packet = vec![0; header.len_bytes() + payload.len()];
        packet[header.len_bytes()..].copy_from_slice(payload);
        header.emit(&mut packet, payload.len()).unwrap();
        packet
    };
    let mut message = [0; 28];
    Arp::request((HardwareAddress([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2)), Ipv4Addr::new(10, 0, 0, 1))
        .emit(&mut message)
        .unwrap();
    add(EtherType::Arp, &message);
    for (ends, kind) in [(v4, EtherType::Ipv4), (v6, EtherType::Ipv6)] {
        let mut out = [0; 2000];
        let len = icmp::echo_request(ends, 1, 2, b"data", &mut out).unwrap();
        let icmp_protocol = if ends.0.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
        add(kind, &wrap(ends, icmp_protocol, 64, &out[..len]));
        let len = icmp::error(icmp::Problem::TooBig(900), &[0x45; 100], ends, &mut out).unwrap();
        add(kind, &wrap(ends, icmp_protocol, 64, &out[..len]));
        let options = Options {
            mss: Some(1000),
            window_scale: Some(3),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            ..Options::default()
        };
        let header = Header { source_port: 4001, destination_port: 4000, syn: true, options, ..Header::default() };
        let len = header.emit(&mut out, 0, ends.0, ends.1, OutgoingChecksum::Full).unwrap();
        add(kind, &wrap(ends, protocol::TCP, 64, &out[..len]));
        let options = Options {
            sack: [Some((1, 2)), Some((5, 900)), None],
            timestamps: options.timestamps,
            ..Options::default()
        };
        let header = Header { syn: false, acknowledgment: Some(8), sequence: 1, options, ..header };
        let len = header.emit(&mut out, 500, ends.0, ends.1, OutgoingChecksum::Full).unwrap();
        add(kind, &wrap(ends, protocol::TCP, 64, &out[..len]));
        let mut len = 0;
        for kind_of_answer in [2, 5] {
            let (question, answer) = out.split_at_mut(1000);
            host.now = host.now + Duration::from_secs(100);
            let sent = host.dhcp.transmit(host.now, question).expect("it asks again and again");
            let message = &mut answer[8..][..sent.len];
            message.copy_from_slice(&question[..sent.len]);
            // From a server's side.
            message[0] = 2;
            message[16..20].copy_from_slice(&[10, 0, 0, 9]);
            let options = [
                [53, 1, kind_of_answer, 0, 0, 0],
                [54, 4, 10, 0, 0, 2],
                [51, 4, 0, 0, 1, 0],
                [1, 4, 255, 255, 255, 0],
                [3, 4, 10, 0, 0, 2],
                [6, 4, 8, 8, 8, 8],
            ];
            message[240..276].copy_from_slice(options.as_flattened());
            message[276..].fill(255);
            len = udp::emit(answer, sent.len, (67, 68), ends.0, ends.1, OutgoingChecksum::Full).unwrap();
            add(kind, &wrap(ends, protocol::UDP, 64, &answer[..len]));
        }
        for (header, range) in IpHeader::new(ends.0, ends.1, protocol::UDP).fragments(len, 200, 77) {
            let mut packet = vec![0; header.len_bytes() + range.len()];
            packet[header.len_bytes()..].copy_from_slice(&out[1000..][range.clone()]);
            header.emit(&mut packet, range.len()).unwrap();
            add(kind, &packet);
        }
    }
    let (IpAddr::V6(source), IpAddr::V6(own)) = v6 else { unreachable!() };
    let hardware = Some(DEVICE);
    for message in [
        Ndisc::Solicitation { target: own, hardware },
        Ndisc::Advertisement { target: source, hardware, is_solicited: true, overrides: true },
        Ndisc::RouterSolicitation { hardware },
    ] {
        let mut out = [0; 64];
        let len = message.emit(source, own, &mut out).unwrap();
        add(EtherType::Ipv6, &wrap(v6, protocol::ICMPV6, 255, &out[..len]));
    }
    let mut advertisement = vec![134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 2];
    advertisement.extend([5, 1, 0, 0, 0, 0, 5, 220, 3, 4, 64, 0xc0, 0, 0, 9, 9, 0, 0, 8, 8, 0, 0, 0, 0]);
    advertisement.extend("2001:db8::".parse::<Ipv6Addr>().unwrap().octets());
    add(EtherType::Ipv6, &wrap(v6, protocol::ICMPV6, 255, &advertisement));
    frames
}

/// A frame that was damaged anywhere.
pub fn damaged(whole: &[u8], below: &mut impl Below) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..1 + below(4) {
        let at = below(bytes.len() as u64) as usize;
        match below(6) {
            0 => bytes[at] ^= 1 << below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5) as usize],
            2 => bytes[at] = below(256) as u8,
            3 => {
                let other = below(bytes.len() as u64) as usize;
                let len = (bytes.len() - other).min(bytes.len() - at).min(8);
                bytes.copy_within(other..other + len, at);
            }
            4 => bytes.truncate(at.max(1)),
            _ => bytes.extend((0..8).map(|_| below(256) as u8)),
        }
    }
    bytes
}

/// Random bytes, most of which look a little like a packet.
pub fn noise(below: &mut impl Below) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..below(120)).map(|_| below(256) as u8).collect();
    if bytes.len() > 40 && below(10) > 0 {
        bytes[12..14].copy_from_slice(&[[8, 0], [8, 6], [0x86, 0xdd]][below(3) as usize]);
        bytes[14] = [0x45, 0x46, 0x60, 0x4f][below(4) as usize];
        bytes[23] = [1, 6, 17, 58][below(4) as usize];
        bytes[20] = [0, 6, 17, 58, 43, 44, 60][below(7) as usize];
    }
    bytes
}

/// Feeds one of `frames` that was damaged, a whole one now and then, or noise. What was fed.
pub fn feed(host: &mut Host, frames: &[Vec<u8>], below: &mut impl Below) -> Vec<u8> {
    let frame = &frames[below(frames.len() as u64) as usize];
    let bytes = match below(30) {
        0 => frame.clone(),
        1..=10 => noise(below),
        _ => damaged(frame, below),
    };
    host.frame(&bytes);
    bytes
}
