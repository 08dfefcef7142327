//! What streaming rings do.
#![cfg(not(ebb_loom))]

use std::thread::{scope, yield_now};

use ipc::{Endpoint, Error, Geometry, Kind, Message, Packet, Tag, pair};

fn ends(slots: usize) -> (Endpoint, Endpoint) {
    pair(Geometry::new(0, slots).expect("a fit geometry"))
}

fn packet(word: u64) -> Packet {
    let kind = [Kind::Request, Kind::Response, Kind::Plain][word as usize % 3];
    Packet {
        kind,
        cookie: !(word as u32),
        message: Message::new(Tag::new(word as u32 & 0xfffff), &[word, 0, 0, 0, 0, 0, !word]),
    }
}

#[test]
fn messages_arrive_whole_and_in_order_through_many_laps() {
    let (mut a, mut b) = ends(16);
    let mut expected = 0;
    for word in 0..100_000 {
        assert_eq!(a.sender.send(&packet(word)), Ok(()));
        // From one to eight stay in the ring.
        while word - expected >= word % 7 {
            assert_eq!(b.receiver.poll(), Ok(Some(packet(expected))));
            expected += 1;
            if expected > word {
                break;
            }
        }
    }
    while expected < 100_000 {
        assert_eq!(b.receiver.poll(), Ok(Some(packet(expected))));
        expected += 1;
    }
    assert_eq!(b.receiver.poll(), Ok(None));
}

#[test]
fn a_full_ring_takes_nothing_more_and_loses_nothing() {
    let (mut a, mut b) = ends(4);
    for word in 0..4 {
        assert_eq!(a.sender.send(&packet(word)), Ok(()));
    }
    assert_eq!(a.sender.send(&packet(4)), Err(Error::Full));
    for word in 0..4 {
        assert_eq!(b.receiver.poll(), Ok(Some(packet(word))));
    }
    assert_eq!(b.receiver.poll(), Ok(None));
    assert_eq!(a.sender.send(&packet(4)), Ok(()));
    assert_eq!(b.receiver.poll(), Ok(Some(packet(4))));
}

#[test]
fn room_is_told_of_before_the_ring_is_empty() {
    let (mut a, mut b) = ends(16);
    for word in 0..16 {
        assert_eq!(a.sender.send(&packet(word)), Ok(()));
    }
    for word in 0..8 {
        assert_eq!(b.receiver.poll(), Ok(Some(packet(word))));
    }
    assert_eq!(a.sender.send(&packet(16)), Ok(()));
}

#[test]
fn two_ends_whose_rings_are_both_full_go_on_when_one_receives() {
    let (mut a, mut b) = ends(4);
    while a.sender.send(&packet(1)).is_ok() {}
    while b.sender.send(&packet(2)).is_ok() {}
    assert_eq!((a.sender.send(&packet(3)), b.sender.send(&packet(3))), (Err(Error::Full), Err(Error::Full)));
    while b.receiver.poll().expect("alive").is_some() {}
    assert_eq!(a.sender.send(&packet(3)), Ok(()));
}

#[test]
fn the_rest_is_received_after_the_sender_is_gone() {
    let (mut a, mut b) = ends(8);
    assert_eq!(a.sender.send(&packet(1)), Ok(()));
    assert_eq!(a.sender.send(&packet(2)), Ok(()));
    drop(a);
    assert_eq!(b.receiver.poll(), Ok(Some(packet(1))));
    assert_eq!(b.receiver.poll(), Ok(Some(packet(2))));
    assert_eq!(b.receiver.poll(), Err(Error::Closed));
    assert_eq!(b.sender.send(&packet(3)), Err(Error::Closed));
}

#[test]
fn an_end_without_a_ring_sends_and_receives_nothing() {
    let (mut a, mut b) = ends(0);
    assert_eq!(a.sender.send(&packet(1)), Err(Error::Full));
    assert_eq!(b.receiver.poll(), Ok(None));
}

#[test]
fn a_stream_between_threads_is_complete() {
    const MESSAGES: u64 = 200_000;
    let (a, mut b) = ends(64);
    scope(|scope| {
        scope.spawn(move || {
            let mut a = a;
            for word in 0..MESSAGES {
                while a.sender.send(&packet(word)) == Err(Error::Full) {
                    yield_now();
                }
            }
        });
        let mut expected = 0;
        loop {
            match b.receiver.poll() {
                Ok(Some(got)) => {
                    assert_eq!(got, packet(expected));
                    expected += 1;
                }
                Ok(None) => yield_now(),
                Err(error) => break assert_eq!(error, Error::Closed),
            }
        }
        assert_eq!(expected, MESSAGES);
    });
}
