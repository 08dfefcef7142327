//! A peer that writes whatever it likes into the shared memory, while this side works: nothing panics, no answer is taken for
//! another, every loop ends.
#![cfg(not(ebb_loom))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ipc::{Call, Endpoint, Error, Geometry, Kind, Message, Packet, Region, Tag};

/// A generator of numbers (xorshift), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A word such as one who knows the protocol and wants to do harm would write.
    fn word(&mut self, region: &Region) -> u64 {
        let kind = self.below(4);
        let short = self.below(20);
        let number = self.below(40);
        match self.below(8) {
            0 => self.next(),
            1 => 0,
            2 => u64::MAX,
            3 => self.below(200),
            // What stands somewhere else, or nearly.
            4 => region.word(self.below(region.len_lines() as u64 * 8) as usize).load(Ordering::Relaxed),
            5 => {
                let word = region.word(self.below(region.len_lines() as u64 * 8) as usize).load(Ordering::Relaxed);
                word ^ 1 << self.below(64)
            }
            _ => kind | short << 2 | self.below(4) << 12 | number << 32,
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    requests: u64,
    packets: u64,
    corrupt: u64,
    closed: u64,
    full: u64,
    nothing: u64,
}

impl Seen {
    fn error(&mut self, error: Error) -> bool {
        match error {
            Error::Corrupt => self.corrupt += 1,
            Error::Closed => self.closed += 1,
            Error::Full => self.full += 1,
            Error::Refused => self.answers += 1,
            other => panic!("{other} is not the peer's doing"),
        }
        !matches!(error, Error::Full | Error::Refused)
    }
}

/// Uses all parts of an end for a while; true once the channel is dead.
fn work(end: &mut Endpoint, calls: &mut Vec<Call>, random: &mut Random, seen: &mut Seen) -> bool {
    let mut dead = false;
    let message = Message::new(Tag::new(random.below(1 << 20) as u32), &[random.next()]);
    match end.caller.post(&message) {
        Ok(call) => {
            assert!(!calls.contains(&call), "a call's name was given twice");
            calls.push(call);
        }
        Err(error) => dead |= seen.error(error),
    }
    assert!(calls.len() <= end.caller.capacity());
    calls.retain(|call| match end.caller.poll(call) {
        Ok(Some(_)) => {
            seen.answers += 1;
            assert_eq!(end.caller.poll(call), Err(Error::Stale), "one call, two answers");
            false
        }
        Ok(None) => {
            seen.nothing += 1;
            true
        }
        Err(Error::Refused) => false,
        Err(error) => {
            dead |= seen.error(error);
            true
        }
    });
    match end.callee.poll() {
        Ok(Some(request)) => {
            seen.requests += 1;
            end.callee.reply(request, &message).expect("it was taken here");
        }
        Ok(None) => seen.nothing += 1,
        Err(error) => dead |= seen.error(error),
    }
    match end.sender.send(&Packet { kind: Kind::Plain, cookie: 1, message }) {
        Ok(()) => {}
        Err(error) => dead |= seen.error(error),
    }
    match end.receiver.poll() {
        Ok(Some(_)) => seen.packets += 1,
        Ok(None) => seen.nothing += 1,
        Err(error) => dead |= seen.error(error),
    }
    dead
}

#[test]
fn nothing_worse_than_an_error_happens_when_single_words_are_forged() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut seen = Seen::default();
    for _ in 0..3000 {
        let geometry = Geometry::new(4, 4).expect("fits");
        let region = Region::on_the_heap(geometry.len_lines());
        let mut end = Endpoint::create(&region, geometry).expect("large enough");
        let mut honest = Endpoint::open(&region).expect("our own");
        let (mut calls, mut honest_calls) = (Vec::new(), Vec::new());
        for step in 0..40 {
            // The peer is honest for a while, so that there is a state worth spoiling.
            if step < 20 {
                work(&mut honest, &mut honest_calls, &mut random, &mut Seen::default());
            } else {
                let word = random.below(region.len_lines() as u64 * 8) as usize;
                region.word(word).store(random.word(&region), Ordering::Relaxed);
            }
            if work(&mut end, &mut calls, &mut random, &mut seen) {
                break;
            }
        }
    }
    assert!(seen.corrupt > 500 && seen.closed > 100 && seen.answers > 1000 && seen.requests > 1000, "{seen:?}");
}

#[test]
fn nothing_worse_than_an_error_happens_while_a_thread_scribbles() {
    let mut random = Random(0x0123_4567_89ab_cdef);
    let mut seen = Seen::default();
    let geometry = Geometry::new(8, 8).expect("fits");
    for seed in 1..60 {
        let region = Region::on_the_heap(geometry.len_lines());
        let mut end = Endpoint::create(&region, geometry).expect("large enough");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (stop, region) = (&stop, &region);
            scope.spawn(move || {
                let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed << 20);
                while !stop.load(Ordering::Relaxed) {
                    let word = random.below(region.len_lines() as u64 * 8) as usize;
                    region.word(word).store(random.word(region), Ordering::Release);
                }
            });
            let mut calls = Vec::new();
            // Random words hit the peer's own "closed" sooner or later, if nothing else.
            for step in 0u64.. {
                work(&mut end, &mut calls, &mut random, &mut seen);
                if step > 400 && end.link.check().is_err() {
                    break;
                }
                if step % 50 == 0 {
                    thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
    assert!(seen.corrupt > 0 && seen.corrupt + seen.closed >= 59, "{seen:?}");
}

#[test]
fn a_request_on_a_line_that_is_being_served_ends_the_channel() {
    let geometry = Geometry::new(4, 0).expect("fits");
    let region = Region::on_the_heap(geometry.len_lines());
    let mut end = Endpoint::create(&region, geometry).expect("large enough");
    // Lines on which B asks begin after line 10 and A's four.
    let line = |index: usize| (10 + 4 + index) * 8;
    let request = |following: u64, number: u64| 1 | following << 2 | number << 32;
    region.word(line(0)).store(request(1, 1), Ordering::Relaxed);
    let first = end.callee.poll().expect("right so far").expect("a request");
    // The second says that the third comes on line 0, which is not answered yet.
    region.word(line(1)).store(request(0, 2), Ordering::Relaxed);
    assert_eq!(end.callee.poll().err(), Some(Error::Corrupt));
    assert_eq!(end.callee.poll().err(), Some(Error::Corrupt), "the channel stays dead");
    assert!(end.callee.reply(first, &Message::default()).is_ok());
}

#[test]
fn a_cursor_beyond_what_was_sent_ends_the_channel() {
    for told in [5, u64::MAX, 1 << 40] {
        let geometry = Geometry::new(0, 4).expect("fits");
        let region = Region::on_the_heap(geometry.len_lines());
        let mut end = Endpoint::create(&region, geometry).expect("large enough");
        let packet = Packet { kind: Kind::Plain, cookie: 0, message: Message::default() };
        for _ in 0..4 {
            assert_eq!(end.sender.send(&packet), Ok(()));
        }
        region.word(8 * 8).store(told, Ordering::Relaxed);
        assert_eq!(end.sender.send(&packet), Err(Error::Corrupt));
    }
}
