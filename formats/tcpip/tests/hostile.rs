//! Hostile packets: none makes a parser or a state machine panic, and no segment makes a connection accept a byte that is out of order.

mod host;
#[expect(dead_code, reason = "only the random numbers and the addresses are used")]
mod link;

use host::{Host, feed, whole_frames};
use link::Random;
use tcpip::tcp::{
    Blocked, Connection, Endpoints, Header, Offload, Opening, Options, Segment, Segmentation, Settings, State,
    Timestamps, Verdict,
};
use tcpip::{Checksum, Duration, Instant, OutgoingChecksum};

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

#[test]
fn whole_frames_are_understood() {
    let mut host = Host::new();
    let frames = whole_frames(&mut Host::new());
    for frame in frames.iter().chain(&frames) {
        host.frame(frame);
    }
    assert_eq!(host.has_understood(), [true; 5]);
}

#[test]
fn damaged_frames_and_noise_do_no_harm() {
    let mut host = Host::new();
    let frames = whole_frames(&mut host);
    let mut random = Random(7);
    for round in 0..150_000 {
        feed(&mut host, &frames, &mut |limit| random.below(limit));
        if round % 1000 == 0 {
            host = Host::new();
        }
    }
}
