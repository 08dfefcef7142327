//! What SACK, time stamps, window scaling and SYN cookies bring: against a peer whose segments are written by hand.

#[expect(dead_code, reason = "only the addresses are used")]
mod link;

use tcpip::tcp::{
    Connection, Endpoints, Header, Offload, Opening, Options, Segment, Segmentation, Settings, State, Timestamps,
    Verdict, cookie, initial_sequence,
};
use tcpip::{Checksum, Duration, Instant, Key, OutgoingChecksum};

const OUR_ISN: u32 = 1_000_000;
const THEIR_ISN: u32 = 2_000_000;
const MSS: usize = 1000;
const ROUND_TRIP: Duration = Duration::from_millis(100);
const KEY: Key = Key([3, 4]);

/// A connection and the clock; the peer has SACK, time stamps and windows of 1 MiB, and an MSS of 1012 bytes, of which stamps take 12.
struct Rig {
    now: Instant,
    connection: Connection,
    /// The stamp that the peer echoes.
    echo: u32,
}

/// A segment that was sent: where it begins, from the first byte on, its length, and its SACK blocks.
type Sent = (u32, usize, Vec<(u32, u32)>);

fn opening() -> Opening {
    Opening {
        endpoints: Endpoints { local: link::address(0), remote: link::address(1) },
        sequence: OUR_ISN,
        timestamp_offset: 0,
        mtu: 1500,
        settings: Settings { no_delay: true, ..Settings::default() },
    }
}

impl Rig {
    fn new() -> Self {
        let now = Instant::from_nanos(5_000_000_000);
        let mut rig = Rig { now, connection: Connection::connect(now, &opening()), echo: 0 };
        assert!(rig.transmit().is_some());
        rig.now = rig.now + ROUND_TRIP;
        let options = Options {
            mss: Some(MSS as u16 + 12),
            window_scale: Some(4),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1000, echo: rig.echo }),
            ..Options::default()
        };
        let header = Header { syn: true, acknowledgment: Some(OUR_ISN + 1), window: u16::MAX, options, ..rig.header() };
        rig.feed(Header { sequence: THEIR_ISN, ..header }, 0);
        assert_eq!(rig.connection.state(), State::Established);
        assert_eq!(rig.transmit(), Some((0, 0, vec![])));
        rig
    }

    fn header(&self) -> Header {
        Header {
            source_port: 4001,
            destination_port: 4000,
            sequence: THEIR_ISN + 1,
            acknowledgment: Some(OUR_ISN + 1),
            window: u16::MAX,
            options: Options {
                timestamps: Some(Timestamps { value: self.now.millis() as u32, echo: self.echo }),
                ..Options::default()
            },
            ..Header::default()
        }
    }

    fn feed(&mut self, header: Header, len: usize) {
        let payload = vec![b'x'; len];
        let verdict = self.connection.on_segment(self.now, &Segment { header, payload: &payload });
        assert_eq!(verdict, Verdict::Taken);
    }

    fn transmit(&mut self) -> Option<Sent> {
        let mut packet = [0; 2000];
        let offload = Offload { checksum: OutgoingChecksum::Full, segmentation: Segmentation::None };
        let sent = self.connection.transmit(self.now, offload, &mut packet)?;
        let (source, destination) = (link::address(0).ip(), link::address(1).ip());
        let segment = Segment::parse(&packet[..sent.len], source, destination, Checksum::Verify).expect("it is right");
        self.echo = segment.header.options.timestamps.map_or(0, |stamps| stamps.value);
        let block = |(start, end): (u32, u32)| (start - THEIR_ISN - 1, end - THEIR_ISN - 1);
        let blocks = segment.header.options.sack.iter().flatten().map(|&both| block(both)).collect();
        Some((segment.header.sequence.wrapping_sub(OUR_ISN + 1), segment.payload.len(), blocks))
    }

    /// The places of all segments that are sent now.
    fn sent(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.transmit()).map(|(at, ..)| at).collect()
    }

    /// The peer acknowledges all before `ack`, and has these blocks, in thousands of bytes.
    fn ack(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let mut header = self.header();
        header.acknowledgment = Some(OUR_ISN + 1 + 1000 * ack);
        let at = |thousand: u32| OUR_ISN + 1 + 1000 * thousand;
        for (slot, &(start, end)) in header.options.sack.iter_mut().zip(blocks) {
            *slot = Some((at(start), at(end)));
        }
        self.feed(header, 0);
    }

    /// Data of the peer's comes. What is sent for it.
    fn data(&mut self, at: u32, len: usize) -> Option<Sent> {
        let header = self.header();
        self.feed(Header { sequence: header.sequence + at, ..header }, len);
        self.transmit()
    }

    fn pass(&mut self, duration: Duration) {
        self.now = self.now + duration;
        if self.connection.deadline().is_some_and(|at| at <= self.now) {
            self.connection.on_deadline(self.now);
        }
    }
}

#[test]
fn what_comes_out_of_order_is_told_the_latest_first() {
    let mut rig = Rig::new();
    assert_eq!(rig.data(1000, 500), Some((0, 0, vec![(1000, 1500)])));
    assert_eq!(rig.data(3000, 500), Some((0, 0, vec![(3000, 3500), (1000, 1500)])));
    assert_eq!(rig.data(5000, 500), Some((0, 0, vec![(5000, 5500), (3000, 3500), (1000, 1500)])));
    assert_eq!(rig.data(1500, 100), Some((0, 0, vec![(1000, 1600), (5000, 5500), (3000, 3500)])));
    assert_eq!(rig.data(0, 1000), Some((0, 0, vec![(5000, 5500), (3000, 3500)])));
}

#[test]
fn what_comes_twice_is_told() {
    let mut rig = Rig::new();
    rig.data(0, 1000);
    // RFC 2883, section 4.
    assert_eq!(rig.data(0, 500), Some((0, 0, vec![(0, 500)])));
    rig.data(2000, 500);
    assert_eq!(rig.data(2100, 100), Some((0, 0, vec![(2100, 2200), (2000, 2500)])));
    assert_eq!(rig.data(2500, 100), Some((0, 0, vec![(2000, 2600)])));
}

#[test]
fn old_time_stamps_are_refused() {
    let mut rig = Rig::new();
    rig.data(0, 10);
    let mut header = rig.header();
    header.options.timestamps = Some(Timestamps { value: rig.now.millis() as u32 - 50, echo: rig.echo });
    header.sequence += 10;
    rig.feed(header, 10);
    assert_eq!(rig.transmit(), Some((0, 0, vec![])), "it is answered");
    assert_eq!(rig.connection.readable_bytes(), 10, "and not taken");
    // RFC 7323, section 3.2: one without a stamp is dropped.
    header.options.timestamps = None;
    rig.feed(header, 10);
    assert_eq!((rig.transmit(), rig.connection.readable_bytes()), (None, 10));
    // RFC 7323, section 5.5: after 24 days the clock may have gone round.
    rig.now = rig.now + Duration::from_secs(25 * 24 * 3600);
    header.options.timestamps = Some(Timestamps { value: 7, echo: rig.echo });
    rig.feed(header, 10);
    assert_eq!(rig.connection.readable_bytes(), 20);
}

#[test]
fn a_gap_is_repaired_within_a_round_trip() {
    let mut rig = Rig::new();
    rig.connection.write(&[0; 10_000]).unwrap();
    assert_eq!(rig.sent(), [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]);
    rig.now = rig.now + ROUND_TRIP;
    rig.ack(1, &[]);
    rig.ack(1, &[(2, 3)]);
    rig.ack(1, &[(2, 4)]);
    assert_eq!(rig.sent(), [], "it may only be late");
    rig.ack(1, &[(2, 5)]);
    assert_eq!(rig.sent(), [1000], "three segments were sent after it");
    assert!(rig.connection.info().is_recovering);
    rig.ack(1, &[(2, 10)]);
    rig.now = rig.now + ROUND_TRIP;
    rig.ack(10, &[]);
    let info = rig.connection.info();
    assert_eq!((info.is_recovering, info.bytes_retransmitted), (false, 1000));
    assert!((6500..=7700).contains(&info.congestion_window), "{info:?}");
}

#[test]
fn a_lost_repair_is_repaired() {
    let mut rig = Rig::new();
    rig.connection.write(&[0; 20_000]).unwrap();
    assert_eq!(rig.sent().len(), 10);
    rig.now = rig.now + ROUND_TRIP;
    rig.ack(0, &[(1, 4)]);
    assert_eq!(rig.sent(), [0]);
    rig.now = rig.now + Duration::from_millis(10);
    rig.ack(0, &[(1, 10)]);
    let new = rig.sent();
    assert!(new.contains(&10_000), "{new:?}");
    // What was sent after the repair arrives, and the repair does not.
    rig.now = rig.now + ROUND_TRIP;
    rig.ack(0, &[(1, 11)]);
    let again = rig.sent();
    if !again.contains(&0) {
        rig.pass(Duration::from_millis(50));
        assert!(rig.sent().contains(&0), "{:?}", rig.connection.info());
    }
    assert_eq!(rig.connection.info().backoff, 0, "no time-out was needed");
}

#[test]
fn a_lost_tail_is_probed() {
    let mut rig = Rig::new();
    rig.connection.write(&[0; 3000]).unwrap();
    assert_eq!(rig.sent(), [0, 1000, 2000]);
    rig.pass(Duration::from_millis(199));
    assert_eq!(rig.sent(), []);
    // Twice the round trip (RFC 8985, section 7.2).
    rig.pass(Duration::from_millis(1));
    assert_eq!(rig.sent(), [2000]);
    rig.now = rig.now + ROUND_TRIP;
    rig.ack(0, &[(2, 3)]);
    assert_eq!(rig.sent(), [0], "both are lost, and one may go for the one that arrived");
    rig.now = rig.now + ROUND_TRIP;
    rig.ack(1, &[(2, 3)]);
    assert_eq!(rig.sent(), [1000]);
    assert_eq!(rig.connection.info().backoff, 0);
}

#[test]
fn a_spurious_time_out_is_undone() {
    let mut rig = Rig::new();
    rig.connection.write(&[0; 10_000]).unwrap();
    rig.sent();
    let original = rig.echo;
    let before = rig.connection.info().congestion_window;
    // The network stands still for a second.
    let mut again = vec![];
    for _ in 0..100 {
        rig.pass(Duration::from_millis(10));
        again.extend(rig.sent());
    }
    assert!(again.contains(&0), "{again:?}");
    assert_eq!(rig.connection.info().congestion_window, MSS);
    // The originals arrive: the echo is older than the retransmission.
    rig.echo = original;
    rig.ack(2, &[]);
    let info = rig.connection.info();
    assert!(info.congestion_window >= before && !info.is_recovering && info.lost == 0, "{info:?}");
}

#[test]
fn a_peer_that_throws_away_what_it_had_is_served() {
    let mut rig = Rig::new();
    rig.connection.write(&[0; 3000]).unwrap();
    rig.sent();
    rig.now = rig.now + ROUND_TRIP;
    rig.ack(1, &[(2, 3)]);
    rig.pass(Duration::from_millis(30));
    rig.sent();
    // It acknowledges the second, and not the third, which it had said it has.
    rig.ack(2, &[]);
    let mut again = rig.sent();
    for _ in 0..100 {
        rig.pass(Duration::from_millis(10));
        again.extend(rig.sent());
    }
    assert!(again.contains(&2000), "{again:?}");
}

#[test]
fn windows_are_scaled() {
    let rig = Rig::new();
    let info = rig.connection.info();
    assert_eq!((info.send_scale, info.receive_scale, info.send_window), (4, 7, 65_535), "a SYN's is not");
    let mut rig = rig;
    rig.ack(0, &[]);
    assert_eq!(rig.connection.info().send_window, 65_535 << 4);
}

/// The SYN of a client, and what it answers to a SYN and ACK.
fn handshake(with_stamps: bool) -> (Header, impl Fn(&Header) -> Header) {
    let options = Options {
        mss: Some(1400),
        window_scale: Some(9),
        sack_permitted: true,
        timestamps: with_stamps.then_some(Timestamps { value: 500, echo: 0 }),
        ..Options::default()
    };
    let ports = Header { source_port: 4001, destination_port: 4000, ..Header::default() };
    let syn = Header { sequence: THEIR_ISN, syn: true, window: 60_000, options, ..ports };
    let answer = move |syn_ack: &Header| {
        let stamps = syn_ack.options.timestamps.map(|stamps| Timestamps { value: 501, echo: stamps.value });
        Header {
            sequence: syn_ack.acknowledgment.expect("it acknowledges"),
            acknowledgment: Some(syn_ack.sequence.wrapping_add(1)),
            window: 60_000,
            options: Options { timestamps: stamps, ..Options::default() },
            ..ports
        }
    };
    (syn, answer)
}

#[test]
fn a_cookie_brings_back_what_the_listener_forgot() {
    let listener = cookie::Listener { mtu: 1500, window: 65_000, window_scale: 7, timestamp_offset: 99 };
    let endpoints = opening().endpoints;
    for with_stamps in [true, false] {
        let now = Instant::from_nanos(900_000_000_000);
        let (syn, answer) = handshake(with_stamps);
        let syn = Segment { header: syn, payload: &[] };
        let syn_ack = cookie::encode(&KEY, now, &endpoints, &listener, &syn).expect("it is a SYN");
        assert_eq!(syn_ack.options.sack_permitted, with_stamps);
        let ack = answer(&syn_ack);
        let ack = Segment { header: ack, payload: b"hello" };
        let later = now + Duration::from_secs(60);
        let mut connection = cookie::decode(&KEY, later, &opening(), &ack).expect("the cookie is good");
        assert_eq!(connection.on_segment(later, &ack), Verdict::Taken);
        assert_eq!((connection.state(), connection.readable_bytes()), (State::Established, 5));
        let info = connection.info();
        assert_eq!((info.sack, info.timestamps), (with_stamps, with_stamps));
        assert_eq!(info.send_scale, if with_stamps { 9 } else { 0 });
        assert_eq!(info.send_mss, if with_stamps { 1388 } else { 1400 });
        // Not for long, not with another key, not for another client, and not if it was changed.
        let much_later = now + Duration::from_secs(300);
        assert!(cookie::decode(&KEY, much_later, &opening(), &ack).is_none());
        assert!(cookie::decode(&Key([3, 5]), later, &opening(), &ack).is_none());
        let mut other = opening();
        other.endpoints.remote.set_port(4002);
        assert!(cookie::decode(&KEY, later, &other, &ack).is_none());
        let changed = Header { acknowledgment: ack.header.acknowledgment.map(|ack| ack ^ 1 << 20), ..ack.header };
        assert!(cookie::decode(&KEY, later, &opening(), &Segment { header: changed, payload: &[] }).is_none());
        let changed = Header { sequence: ack.header.sequence + 1, ..ack.header };
        assert!(cookie::decode(&KEY, later, &opening(), &Segment { header: changed, payload: &[] }).is_none());
    }
}

#[test]
fn numbers_of_connections_after_one_another_do_not_overlap() {
    let endpoints = opening().endpoints;
    let now = Instant::from_nanos(1_000_000_000);
    let first = initial_sequence(&KEY, now, &endpoints);
    let next = initial_sequence(&KEY, now + Duration::from_secs(60), &endpoints);
    assert!(next.wrapping_sub(first) < 1 << 31 && next != first);
}
