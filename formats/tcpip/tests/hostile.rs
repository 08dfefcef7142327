//! Hostile packets: none makes a parser or a state machine panic, and no segment makes a connection accept a byte that is out of order.

#[expect(dead_code, reason = "only the random numbers and the addresses are used")]
mod link;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use link::Random;
use tcpip::dhcp::Client;
use tcpip::ethernet::{EtherType, Frame, HardwareAddress};
use tcpip::ip::icmp::{self, Message};
use tcpip::ip::{Addresses, IpHeader, Packet, Reassembler, ReassemblyLimits, protocol};
use tcpip::neighbour::{Arp, Autoconfiguration, Ndisc, NeighbourCache, NeighbourLimits};
use tcpip::tcp::{
    Blocked, Connection, Endpoints, Header, Offload, Opening, Options, Segment, Segmentation, Settings, State,
    Timestamps, Verdict, cookie,
};
use tcpip::udp::{self, UdpDatagram};
use tcpip::{Checksum, Duration, Instant, Key, OutgoingChecksum};

const DEVICE: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
const OFFLOAD: Offload = Offload { checksum: OutgoingChecksum::Full, segmentation: Segmentation::ByDevice };

/// The byte of the peer's stream at a place, counted from its initial number.
fn byte_at(place: u32) -> u8 {
    (place ^ place >> 9).wrapping_mul(77) as u8
}

/// A segment of a peer that began at `isn`, near where a connection is, or far from it.
fn segment(random: &mut Random, isn: u32, near: u32, ack_near: u32, payload: &mut Vec<u8>) -> Header {
    let around = |random: &mut Random, near: u32| match random.below(4) {
        0 => near,
        1 => near.wrapping_add(random.below(3000) as u32).wrapping_sub(1500),
        2 => near.wrapping_add(random.below(200_000) as u32).wrapping_sub(100_000),
        _ if random.happens(100) => random.next() as u32,
        _ => near.wrapping_add(random.below(20) as u32).wrapping_sub(10),
    };
    let sequence = around(random, near);
    let len = if random.happens(700) { random.below(2000) as usize } else { 0 };
    payload.clear();
    payload.extend((0..len as u32).map(|at| byte_at(sequence.wrapping_add(at).wrapping_sub(isn))));
    let mut sack = [None; 3];
    for block in &mut sack {
        if random.happens(200) {
            let start = around(random, ack_near);
            *block = Some((start, start.wrapping_add(random.below(5000) as u32)));
        }
    }
    Header {
        source_port: 4001,
        destination_port: 4000,
        sequence,
        acknowledgment: random.happens(950).then(|| around(random, ack_near)),
        syn: random.happens(10),
        fin: random.happens(3),
        rst: random.happens(3),
        push: random.happens(300),
        window: if random.happens(100) { 0 } else { random.next() as u16 },
        options: Options {
            timestamps: random.happens(900).then(|| Timestamps {
                value: random.below(100) as u32,
                echo: random.next() as u32 >> random.below(32),
            }),
            sack,
            ..Options::default()
        },
    }
}

fn opened(random: &mut Random, now: Instant) -> Connection {
    let settings = Settings {
        receive_initial: 1 + random.below(100_000) as usize,
        receive_limit: 1 + random.below(1_000_000) as usize,
        send_limit: 1 + random.below(300_000) as usize,
        time_wait: Duration::from_secs(5),
        ..Settings::default()
    };
    let opening = Opening {
        endpoints: Endpoints { local: link::address(0), remote: link::address(1) },
        sequence: random.next() as u32,
        timestamp_offset: random.next() as u32,
        mtu: random.below(70_000) as usize,
        settings,
    };
    Connection::connect(now, &opening)
}

#[test]
fn random_segments_never_put_bytes_out_of_order() {
    let mut read_in_all = 0;
    for seed in 0..400 {
        let mut random = Random(seed);
        let mut now = Instant::from_nanos(random.below(1 << 40));
        let mut connection = opened(&mut random, now);
        let isn = random.next() as u32;
        let (mut near, mut ack_near, mut read) = (isn, 0, 0);
        let (mut packet, mut payload) = (vec![0; 70_000], Vec::new());
        for step in 0..300 {
            let mut sent_last = None;
            while let Some(sent) = connection.transmit(now, OFFLOAD, &mut packet) {
                let (source, destination) = (link::address(0).ip(), link::address(1).ip());
                let segment = Segment::parse(&packet[..sent.len], source, destination, Checksum::Verify)
                    .expect("what is sent is right");
                sent_last = Some(segment.header.sequence.wrapping_add(segment.sequence_len() as u32));
                near = segment.header.acknowledgment.unwrap_or(near);
            }
            ack_near = sent_last.unwrap_or(ack_near);
            let mut header = segment(&mut random, isn, near, ack_near, &mut payload);
            if step == 0 && random.happens(900) {
                header = Header {
                    sequence: isn,
                    acknowledgment: Some(ack_near),
                    syn: true,
                    fin: false,
                    rst: false,
                    options: Options {
                        mss: random.happens(800).then(|| random.next() as u16),
                        window_scale: random.happens(800).then(|| random.below(15) as u8),
                        sack_permitted: random.happens(800),
                        timestamps: random.happens(500).then_some(Timestamps { value: 0, echo: 0 }),
                        ..Options::default()
                    },
                    ..header
                };
                near = isn.wrapping_add(1);
            }
            // Another SYN would open another stream.
            header.syn &= connection.state() != State::SynSent || header.sequence == isn;
            let verdict = connection.on_segment(now, &Segment { header, payload: &payload });
            if matches!(verdict, Verdict::Reopen) {
                break;
            }
            let mut at = read;
            let result = connection.read_with(now, random.below(50_000) as usize, |bytes| {
                for &byte in bytes {
                    assert_eq!(byte, byte_at(at + 1), "seed {seed}, step {step}, byte {at}");
                    at += 1;
                }
                bytes.len()
            });
            read = at;
            assert!(connection.held_bytes() < 4_000_000, "memory is bounded");
            match random.below(30) {
                0 => connection.shut_writing(),
                1 if random.happens(50) => connection.close(now),
                2..=8 => {
                    let _: Result<usize, Blocked> = connection.write(&payload);
                }
                9 => now = now + Duration::from_millis(random.below(2000)),
                10 => connection.on_path_mtu(now, random.below(2000) as usize, random.next() as u32),
                11 => connection.settings_mut().no_delay ^= true,
                12 if result.is_err() => {
                    connection.take_error();
                }
                _ => {}
            }
            if let Some(at) = connection.deadline().filter(|_| random.happens(300)) {
                now = now.max(at);
                connection.on_deadline(now);
            }
        }
        read_in_all += read;
    }
    assert!(read_in_all > 1_000_000, "something arrives: {read_in_all}");
}

/// All that a host does with frames.
struct Host {
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
    fn new() -> Self {
        let now = Instant::default();
        let mut addresses = Addresses::default();
        let autoconfiguration = Autoconfiguration::new(now, DEVICE, &mut addresses);
        let mut random = Random(1);
        Host {
            now,
            cache: NeighbourCache::new(NeighbourLimits { entries: 16, waiting: 2 }),
            addresses,
            autoconfiguration,
            reassembler: Reassembler::new(ReassemblyLimits { bytes: 200_000, ..ReassemblyLimits::default() }),
            dhcp: Client::new(now, DEVICE, Key([1, 2])),
            connections: (0..4).map(|_| opened(&mut random, now)).collect(),
            out: vec![0; 70_000],
        }
    }

    fn frame(&mut self, bytes: &[u8]) {
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
        let endpoints = self.connections[0].endpoints();
        let opening = Opening { endpoints, sequence: 7, timestamp_offset: 0, mtu: 1500, settings: Settings::default() };
        let listener = cookie::Listener { mtu: 1500, window: 65_000, window_scale: 7, timestamp_offset: 0 };
        cookie::encode(&Key([1, 2]), self.now, &endpoints, &listener, segment);
        assert!(cookie::decode(&Key([1, 2]), self.now, &opening, segment).is_none(), "a cookie was guessed");
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
fn whole_frames(host: &mut Host) -> Vec<Vec<u8>> {
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
        let header = Header { syn: false, acknowledgment: Some(9), sequence: 1, options, ..header };
        let len = header.emit(&mut out, 500, ends.0, ends.1, OutgoingChecksum::Full).unwrap();
        add(kind, &wrap(ends, protocol::TCP, 64, &out[..len]));
        let dhcp = host.dhcp.transmit(host.now, &mut out[8..]).map_or(300, |sent| sent.len);
        // From a server's side.
        out[8] = 2;
        let len = udp::emit(&mut out, dhcp, (67, 68), ends.0, ends.1, OutgoingChecksum::Full).unwrap();
        add(kind, &wrap(ends, protocol::UDP, 64, &out[..len]));
        for (header, range) in IpHeader::new(ends.0, ends.1, protocol::UDP).fragments(len, 200, 77) {
            let mut packet = vec![0; header.len_bytes() + range.len()];
            packet[header.len_bytes()..].copy_from_slice(&out[range.clone()]);
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

fn damage(random: &mut Random, whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
            2 => bytes[at] = random.next() as u8,
            3 => {
                let other = random.below(bytes.len() as u64) as usize;
                let len = (bytes.len() - other).min(bytes.len() - at).min(8);
                bytes.copy_within(other..other + len, at);
            }
            4 => bytes.truncate(at.max(1)),
            _ => bytes.extend_from_slice(&random.next().to_le_bytes()),
        }
    }
    bytes
}

#[test]
fn damaged_frames_do_no_harm() {
    let mut host = Host::new();
    let frames = whole_frames(&mut host);
    let mut random = Random(7);
    for round in 0..100_000 {
        let frame = &frames[random.below(frames.len() as u64) as usize];
        let bytes = if random.happens(50) { frame.clone() } else { damage(&mut random, frame) };
        host.frame(&bytes);
        if round % 1000 == 0 {
            host = Host { now: host.now, ..Host::new() };
        }
    }
}

#[test]
fn random_bytes_do_no_harm() {
    let mut host = Host::new();
    let mut random = Random(8);
    for _ in 0..50_000 {
        let mut bytes: Vec<u8> = (0..random.below(120)).map(|_| random.next() as u8).collect();
        if bytes.len() > 40 && random.happens(900) {
            bytes[12..14].copy_from_slice(&[[8, 0], [8, 6], [0x86, 0xdd]][random.below(3) as usize]);
            bytes[14] = [0x45, 0x46, 0x60, 0x4f][random.below(4) as usize];
            bytes[23] = [1, 6, 17, 58][random.below(4) as usize];
            bytes[20] = [0, 6, 17, 58, 43, 44, 60][random.below(7) as usize];
        }
        host.frame(&bytes);
    }
}
