//! Transfers over a link that does harm: every byte arrives, once and in order, and nothing stands still for longer than a time-out allows.

mod link;

use link::{Link, Outcome, Program, Scenario, run};
use tcpip::tcp::{Segmentation, Settings};
use tcpip::{Duration, Instant};

const MILLION: u64 = 1_000_000;

fn sends(bytes: u64) -> Program {
    Program { sends: bytes, ..Program::default() }
}

/// Megabits in a second.
fn goodput(bytes: u64, outcome: &Outcome) -> f64 {
    bytes as f64 * 8.0 * 1000.0 / outcome.took.nanos() as f64
}

fn report(name: &str, bytes: u64, outcome: &Outcome) {
    println!("{name}: {:.1} Mbit/s, {outcome:?}", goodput(bytes, outcome));
}

#[test]
fn a_clean_link_is_filled() {
    for segmentation in [Segmentation::None, Segmentation::ByDevice] {
        let outcome = run(Scenario { programs: [sends(20 * MILLION), sends(0)], segmentation, ..Scenario::default() });
        report("clean", 20 * MILLION, &outcome);
        // 100 Mbit/s less headers.
        assert!(goodput(20 * MILLION, &outcome) > 80.0, "{outcome:?}");
    }
}

#[test]
fn a_long_fat_link_is_filled() {
    for (lost, least) in [(0, 300.0), (1, 30.0)] {
        let link = Link {
            latency: Duration::from_millis(25),
            bandwidth: 125_000_000,
            queue: 3_000_000,
            lost,
            ..Link::default()
        };
        let settings = Settings { send_limit: 20_000_000, receive_limit: 20_000_000, ..Settings::default() };
        let bytes = if lost == 0 { 100 * MILLION } else { 20 * MILLION };
        let programs = [Program { settings, ..sends(bytes) }, Program { settings, ..sends(0) }];
        let segmentation = Segmentation::ByDevice;
        let outcome = run(Scenario { link, programs, segmentation, ..Scenario::default() });
        report("long and fat", bytes, &outcome);
        assert!(goodput(bytes, &outcome) > least, "{outcome:?}");
    }
}

#[test]
fn a_lossy_link_loses_nothing_in_the_end() {
    for (seed, lost, jitter) in [(1, 10, 0), (2, 10, 5), (3, 30, 0), (4, 30, 20), (5, 100, 3), (6, 200, 0), (7, 1, 2)] {
        for segmentation in [Segmentation::None, Segmentation::ByDevice] {
            let link =
                Link { lost, jitter: Duration::from_millis(jitter), doubled: 10, corrupted: 5, ..Link::default() };
            let bytes = if lost >= 100 { 300_000 } else { 3 * MILLION };
            let programs = [sends(bytes), sends(bytes / 2)];
            let outcome = run(Scenario { seed, link, programs, segmentation, ..Scenario::default() });
            report(&format!("lost {lost} jitter {jitter}"), bytes, &outcome);
            let limit = if lost >= 200 {
                15_000
            } else if lost >= 100 {
                4_000
            } else {
                1_000
            };
            assert!(outcome.stall <= Duration::from_millis(limit), "{outcome:?}");
        }
    }
}

#[test]
fn small_losses_cost_little() {
    let link = Link { lost: 1, queue: 1_000_000, ..Link::default() };
    let outcome = run(Scenario { link, programs: [sends(20 * MILLION), sends(0)], ..Scenario::default() });
    report("one of a thousand lost", 20 * MILLION, &outcome);
    assert!(goodput(20 * MILLION, &outcome) > 30.0, "{outcome:?}");
    assert!(outcome.stall < Duration::from_millis(100), "no time-out: {outcome:?}");
}

#[test]
fn reordering_alone_is_not_taken_for_loss() {
    let link = Link { jitter: Duration::from_millis(4), ..Link::default() };
    let outcome = run(Scenario { link, programs: [sends(10 * MILLION), sends(0)], ..Scenario::default() });
    report("reordered", 10 * MILLION, &outcome);
    assert!(outcome.retransmitted < MILLION, "{outcome:?}");
}

#[test]
fn peers_without_options_are_served() {
    for (seed, lost) in [(1, 0), (2, 5), (3, 20), (4, 100)] {
        let link = Link { lost, doubled: 5, corrupted: 5, ..Link::default() };
        let bytes = MILLION / 2;
        let outcome =
            run(Scenario { seed, link, programs: [sends(bytes), sends(bytes)], is_plain: true, ..Scenario::default() });
        report(&format!("plain, lost {lost}"), bytes, &outcome);
        assert!(outcome.stall <= Duration::from_secs(4), "{outcome:?}");
    }
}

#[test]
fn sequence_numbers_wrap() {
    for sequence in [u32::MAX, u32::MAX - 1000, u32::MAX / 2 - 5000, u32::MAX - 500_000] {
        let link = Link { lost: 10, doubled: 5, jitter: Duration::from_millis(3), ..Link::default() };
        let scenario = Scenario {
            link,
            programs: [sends(MILLION), sends(MILLION)],
            sequences: [sequence, sequence ^ 0x8000_0000],
            ..Scenario::default()
        };
        run(scenario);
    }
}

#[test]
fn a_reader_that_stops_is_waited_for() {
    let slow = |read, reads_from| Program {
        read,
        reads_from: Instant::from_nanos(0) + Duration::from_secs(reads_from),
        ..Program::default()
    };
    for (reader, bytes, limit) in [
        (slow((usize::MAX, Duration::ZERO), 31), 3 * MILLION, 40_000),
        (slow((1000, Duration::from_millis(5)), 0), MILLION / 2, 1_000),
        (slow((1, Duration::from_micros(100)), 0), 30_000, 1_000),
        (slow((300_000, Duration::from_secs(4)), 0), 3 * MILLION, 5_000),
    ] {
        for lost in [0, 20] {
            let link = Link { lost, ..Link::default() };
            let outcome = run(Scenario { link, programs: [sends(bytes), reader], ..Scenario::default() });
            report("slow reader", bytes, &outcome);
            assert!(outcome.stall <= Duration::from_millis(limit), "{outcome:?}");
        }
    }
}

#[test]
fn tiny_buffers_are_enough() {
    for (send_limit, receive) in [(1, 1), (1, 5000), (5000, 1), (3000, 3000), (100, 536), (65536, 1448)] {
        let settings = Settings { send_limit, receive_initial: receive, receive_limit: receive, ..Settings::default() };
        let bytes = if send_limit.min(receive) == 1 { 300 } else { 100_000 };
        let program = Program { sends: bytes, settings, ..Program::default() };
        for lost in [0, 10] {
            let link = Link { lost, ..Link::default() };
            let outcome = run(Scenario { link, programs: [program, program], ..Scenario::default() });
            report(&format!("buffers of {send_limit} and {receive}"), bytes, &outcome);
        }
    }
}

#[test]
fn small_writes_are_joined_unless_that_is_not_wanted() {
    let packets = |no_delay, cork| {
        let settings = Settings { no_delay, cork, ..Settings::default() };
        let write = (10, Duration::from_millis(1));
        let program = Program { sends: 2000, write, settings, ..Program::default() };
        run(Scenario { programs: [program, sends(0)], ..Scenario::default() }).packets
    };
    let (nagle, no_delay, cork) = (packets(false, false), packets(true, false), packets(false, true));
    assert!(no_delay >= 200 && nagle < 60 && cork <= nagle, "{nagle} {no_delay} {cork}");
}

#[test]
fn both_ends_may_open_at_once() {
    for (seed, lost) in [(1, 0), (2, 100), (3, 300)] {
        let link = Link { lost, ..Link::default() };
        let programs = [sends(10_000), sends(20_000)];
        run(Scenario { seed, link, programs, opens_at_once: true, ..Scenario::default() });
    }
}

#[test]
fn many_seeds_end_well() {
    for seed in 0..150 {
        let mut random = link::Random(seed);
        let link = Link {
            latency: Duration::from_micros(random.below(60_000)),
            jitter: Duration::from_micros(random.below(30_000)),
            lost: random.below(80),
            doubled: random.below(50),
            corrupted: random.below(30),
            bandwidth: 100_000 + random.below(20_000_000),
            queue: 10_000 + random.below(300_000),
        };
        let program = |random: &mut link::Random| {
            let receive = 1000 + random.below(200_000) as usize;
            Program {
                sends: random.below(200_000),
                write: (1 + random.below(20_000) as usize, Duration::from_micros(random.below(300))),
                read: (1 + random.below(50_000) as usize, Duration::from_micros(random.below(300))),
                settings: Settings {
                    send_limit: 1000 + random.below(200_000) as usize,
                    receive_initial: receive,
                    receive_limit: receive + random.below(200_000) as usize,
                    no_delay: random.happens(500),
                    cork: random.happens(200),
                    quick_ack: random.happens(200),
                    ..Settings::default()
                },
                ..Program::default()
            }
        };
        let programs = [program(&mut random), program(&mut random)];
        let outcome = run(Scenario {
            seed,
            link,
            programs,
            mtu: 576 + random.below(1000) as usize,
            segmentation: if random.happens(500) { Segmentation::ByDevice } else { Segmentation::None },
            joins: random.happens(300),
            sequences: [random.next() as u32, random.next() as u32],
            is_plain: random.happens(200),
            opens_at_once: random.happens(100),
        });
        assert!(outcome.stall < Duration::from_secs(8), "seed {seed}: {outcome:?}");
    }
}
