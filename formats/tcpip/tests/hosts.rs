//! Two hosts on one wire: all modules together, as a kernel puts them together. Frames are cut and checked by nobody but the hosts.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use tcpip::ethernet::{self, EtherType, Frame, HardwareAddress};
use tcpip::ip::icmp::{self, Message, Problem, Unreachable};
use tcpip::ip::{
    Address, Addresses, Audience, IpHeader, Packet, Prefix, Reassembler, ReassemblyLimits, Route, RouteTable, protocol,
};
use tcpip::neighbour::{Arp, HOP_LIMIT, Ndisc, NeighbourCache, NeighbourLimits, Question, Resolution, solicited_node};
use tcpip::tcp::{Connection, Endpoints, Offload, Opening, Segment, Segmentation, Settings, State, Verdict};
use tcpip::udp::{self, UdpDatagram};
use tcpip::{Checksum, Instant, OutgoingChecksum};

const MTU: usize = 1500;
const ROOM: usize = ethernet::HEADER_BYTES;
const OFFLOAD: Offload = Offload { checksum: OutgoingChecksum::Full, segmentation: Segmentation::None };

struct Host {
    now: Instant,
    device: HardwareAddress,
    addresses: Addresses,
    routes: RouteTable,
    /// What waits is a frame whose destination is not yet written.
    neighbours: NeighbourCache<Vec<u8>>,
    reassembler: Reassembler,
    connection: Option<Connection>,
    wire: VecDeque<Vec<u8>>,
    /// What came: echo replies, datagrams and errors.
    heard: Vec<String>,
}

fn address(version: u8, number: u8) -> IpAddr {
    let text = if version == 4 { format!("10.0.0.{number}") } else { format!("fe80::{number}") };
    text.parse().expect("it is an address")
}

impl Host {
    fn new(number: u8) -> Self {
        let mut host = Host {
            now: Instant::from_nanos(1_000_000_000),
            device: HardwareAddress([2, 0, 0, 0, 0, number]),
            addresses: Addresses::default(),
            routes: RouteTable::default(),
            neighbours: NeighbourCache::new(NeighbourLimits::default()),
            reassembler: Reassembler::new(ReassemblyLimits::default()),
            connection: None,
            wire: VecDeque::new(),
            heard: Vec::new(),
        };
        for (version, len) in [(4, 24), (6, 64)] {
            let prefix = Prefix::new(address(version, number), len);
            host.addresses.add(Address::permanent(prefix)).expect("there is memory");
            let route = Route { prefix, gateway: None, interface: 1, metric: 0, source: None, origin: 0 };
            host.routes.add(route).expect("there is memory");
        }
        host
    }

    fn frame(&mut self, bytes: &[u8]) {
        let frame = Frame::parse(bytes).expect("it is a frame");
        let is_group = frame.destination.0[0] & 1 != 0;
        if frame.destination != self.device && !is_group {
            return;
        }
        if frame.kind != EtherType::Arp {
            return self.packet(frame.payload);
        }
        let message = Arp::parse(frame.payload).expect("it is ARP");
        let addresses = &self.addresses;
        let outcome = self.neighbours.on_arp(self.now, &message, self.device, |own| addresses.has(IpAddr::V4(own)));
        self.release(outcome.released, message.sender.0);
        if let Some(reply) = outcome.reply {
            self.arp(&reply, message.sender.0);
        }
    }

    fn packet(&mut self, bytes: &[u8]) {
        let packet = Packet::parse(bytes, Checksum::Verify).expect("it is right");
        if packet.fragment.is_some() {
            if let Some(datagram) = self.reassembler.push(self.now, &packet) {
                self.whole(&datagram.packet().expect("it is right"), bytes);
            }
        } else {
            self.whole(&packet, bytes);
        }
    }

    fn whole(&mut self, packet: &Packet<'_>, original: &[u8]) {
        let audience = self.addresses.audience(packet.destination);
        if audience == Audience::Other {
            return;
        }
        let (peer, own) = (packet.source, packet.destination);
        match packet.protocol {
            protocol::TCP => {
                let segment = Segment::parse(packet.payload, peer, own, Checksum::Verify).expect("it is right");
                self.segment(peer, own, &segment);
            }
            protocol::UDP => {
                let datagram = UdpDatagram::parse(packet.payload, peer, own, Checksum::Verify).expect("it is right");
                self.heard.push(format!("{} bytes for port {}", datagram.payload.len(), datagram.destination_port));
                if datagram.destination_port == 9 && icmp::may_answer(packet, audience) {
                    let problem = Problem::Unreachable(Unreachable::Port);
                    self.send(peer, icmp_of(own), |out| icmp::error(problem, original, (own, peer), out).unwrap());
                }
            }
            _ => self.icmp(packet),
        }
    }

    fn icmp(&mut self, packet: &Packet<'_>) {
        let (peer, own) = (packet.source, packet.destination);
        match Message::parse(packet, Checksum::Verify).expect("it is right") {
            Message::EchoRequest => {
                self.send(peer, icmp_of(own), |out| icmp::echo_reply(packet, own, out).unwrap());
            }
            Message::EchoReply { id, sequence, data } => {
                self.heard.push(format!("echo {id} {sequence} {}", data.len()));
            }
            Message::Unreachable(reason, quoted) => {
                self.heard.push(format!("{reason:?} unreachable, {:?}", quoted.ports()));
            }
            Message::NeighbourDiscovery => {
                let (Ok(Some(message)), IpAddr::V6(source)) = (Ndisc::parse(packet), peer) else { return };
                let addresses = &self.addresses;
                let is_own = |own: Ipv6Addr| addresses.has(IpAddr::V6(own));
                let outcome = self.neighbours.on_ndisc(self.now, source, &message, self.device, is_own);
                if let Ndisc::Advertisement { hardware: Some(device), .. } = message {
                    self.release(outcome.released, device);
                }
                if let Some((answer, to)) = outcome.reply {
                    let from = self.addresses.source_for(IpAddr::V6(to));
                    let Some(IpAddr::V6(from)) = from else { panic!("it has an address") };
                    self.send(IpAddr::V6(to), protocol::ICMPV6, |out| answer.emit(from, to, out).unwrap());
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn segment(&mut self, peer: IpAddr, own: IpAddr, segment: &Segment<'_>) {
        if self.connection.is_none() {
            let remote = SocketAddr::new(peer, segment.header.source_port);
            let local = SocketAddr::new(own, segment.header.destination_port);
            self.connection = Connection::accept(self.now, &opening(local, remote), segment);
        } else if let Some(connection) = &mut self.connection {
            assert_eq!(connection.on_segment(self.now, segment), Verdict::Taken);
        }
        self.transmit();
    }

    /// Sends all that the connection has to send.
    fn transmit(&mut self) {
        while let Some(mut connection) = self.connection.take() {
            let ends = connection.endpoints();
            let mut segment = vec![0; MTU];
            let sent = connection.transmit(self.now, OFFLOAD, &mut segment);
            self.connection = Some(connection);
            let Some(sent) = sent else { break };
            self.send(ends.remote.ip(), protocol::TCP, |out| {
                out[..sent.len].copy_from_slice(&segment[..sent.len]);
                sent.len
            });
        }
    }

    /// Sends a packet whose payload `fill` writes.
    fn send(&mut self, to: IpAddr, protocol: u8, fill: impl FnOnce(&mut [u8]) -> usize) {
        let mut payload = vec![0; 70_000];
        let len = fill(&mut payload);
        let source = self.addresses.source_for(to).expect("it has an address");
        let hop_limit = if protocol == protocol::ICMPV6 { HOP_LIMIT } else { 64 };
        let header = IpHeader { hop_limit, ..IpHeader::new(source, to, protocol) };
        if header.len_bytes() + len <= MTU {
            return self.send_packet(to, &header, &payload[..len]);
        }
        for (header, range) in header.fragments(len, MTU, 77) {
            self.send_packet(to, &header, &payload[range]);
        }
    }

    fn send_packet(&mut self, to: IpAddr, header: &IpHeader, payload: &[u8]) {
        let at = ROOM + header.len_bytes();
        let mut frame = vec![0; at + payload.len()];
        frame[at..].copy_from_slice(payload);
        header.emit(&mut frame[ROOM..], payload.len()).expect("it fits");
        let group = HardwareAddress::of_group(to);
        if let Some(group) = group {
            return self.put(frame, group);
        }
        let route = self.routes.lookup(to, |_| true).expect("there is a route");
        match self.neighbours.resolve(self.now, route.gateway.unwrap_or(to), frame) {
            Resolution::Send(device, frame) => self.put(frame, device),
            Resolution::Waits(dropped) => assert!(dropped.is_none()),
            Resolution::Unreachable(_) => panic!("{to} does not answer"),
        }
        while let Some(Question { target, .. }) = self.neighbours.next_question() {
            self.ask(target);
        }
    }

    fn ask(&mut self, target: IpAddr) {
        match (target, self.addresses.source_for(target)) {
            (IpAddr::V4(target), Some(IpAddr::V4(own))) => {
                self.arp(&Arp::request((self.device, own), target), HardwareAddress::BROADCAST);
            }
            (IpAddr::V6(target), Some(IpAddr::V6(own))) => {
                let question = Ndisc::Solicitation { target, hardware: Some(self.device) };
                let to = solicited_node(target);
                self.send(IpAddr::V6(to), protocol::ICMPV6, |out| question.emit(own, to, out).unwrap());
            }
            _ => panic!("it has an address of each version"),
        }
    }

    fn arp(&mut self, message: &Arp, to: HardwareAddress) {
        let mut frame = vec![0; ROOM + 28];
        message.emit(&mut frame[ROOM..]).expect("it fits");
        ethernet::emit(&mut frame, to, self.device, EtherType::Arp).expect("it fits");
        self.wire.push_back(frame);
    }

    fn release(&mut self, frames: VecDeque<Vec<u8>>, to: HardwareAddress) {
        for frame in frames {
            self.put(frame, to);
        }
    }

    fn put(&mut self, mut frame: Vec<u8>, to: HardwareAddress) {
        let kind = if frame[ROOM] >> 4 == 4 { EtherType::Ipv4 } else { EtherType::Ipv6 };
        ethernet::emit(&mut frame, to, self.device, kind).expect("it fits");
        assert!(frame.len() <= ROOM + MTU);
        self.wire.push_back(frame);
    }
}

fn icmp_of(own: IpAddr) -> u8 {
    if own.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 }
}

fn opening(local: SocketAddr, remote: SocketAddr) -> Opening {
    Opening {
        endpoints: Endpoints { local, remote },
        sequence: 99,
        timestamp_offset: 0,
        mtu: MTU,
        settings: Settings::default(),
    }
}

/// Carries frames until there are none.
fn carry(hosts: &mut [Host; 2]) {
    loop {
        let frames = [hosts[0].wire.pop_front(), hosts[1].wire.pop_front()];
        if frames.iter().all(Option::is_none) {
            break;
        }
        for (from, frame) in frames.iter().enumerate() {
            if let Some(frame) = frame {
                hosts[1 - from].frame(frame);
            }
        }
    }
}

#[test]
fn pings_are_answered() {
    for version in [4, 6] {
        let mut hosts = [Host::new(1), Host::new(2)];
        let (own, peer) = (address(version, 1), address(version, 2));
        for len in [10, 5000] {
            let data = vec![7; len];
            hosts[0].send(peer, icmp_of(own), |out| icmp::echo_request((own, peer), 5, 6, &data, out).unwrap());
            carry(&mut hosts);
            assert_eq!(hosts[0].heard.pop(), Some(format!("echo 5 6 {len}")), "IPv{version}");
        }
    }
}

#[test]
fn datagrams_arrive_or_an_error_comes_back() {
    for version in [4, 6] {
        let mut hosts = [Host::new(1), Host::new(2)];
        let (own, peer) = (address(version, 1), address(version, 2));
        for port in [53, 9] {
            hosts[0].send(peer, protocol::UDP, |out| {
                udp::emit(out, 3000, (4000, port), own, peer, OutgoingChecksum::Full).unwrap()
            });
            carry(&mut hosts);
            assert_eq!(hosts[1].heard.pop(), Some(format!("3000 bytes for port {port}")));
        }
        // The error quotes the fragment that came last, which has no ports.
        assert!(hosts[0].heard.pop().is_some_and(|heard| heard.starts_with("Port unreachable")));
    }
}

#[test]
fn connections_open_carry_and_close() {
    for version in [4, 6] {
        let mut hosts = [Host::new(1), Host::new(2)];
        let (local, remote) = (SocketAddr::new(address(version, 1), 4000), SocketAddr::new(address(version, 2), 80));
        hosts[0].connection = Some(Connection::connect(hosts[0].now, &opening(local, remote)));
        hosts[0].transmit();
        carry(&mut hosts);
        for (from, len) in [(0, 100_000), (1, 50_000)] {
            let connection = hosts[from].connection.as_mut().unwrap();
            assert_eq!(connection.write(&vec![from as u8; len]), Ok(len));
            connection.shut_writing();
            hosts[from].transmit();
            carry(&mut hosts);
            let mut bytes = vec![9; len + 1];
            let now = hosts[1 - from].now;
            let connection = hosts[1 - from].connection.as_mut().unwrap();
            assert_eq!(connection.read(now, &mut bytes), Ok(len));
            assert!(bytes[..len].iter().all(|&byte| byte == from as u8));
            assert_eq!(connection.read(now, &mut bytes), Ok(0));
        }
        let states = hosts.map(|host| host.connection.unwrap().state());
        assert_eq!(states, [State::TimeWait, State::Closed]);
    }
}
