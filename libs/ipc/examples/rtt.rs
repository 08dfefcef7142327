//! Round trips and streams between two threads, in nanoseconds per message: call lines, our rings, and a channel laid out like
//! fipc (two rings of slots that the receiver frees one by one), all in one process, in turns.
//!
//! `cargo run --release -p ebb-ipc --example rtt [rounds]`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread;
use std::time::Instant;

use ipc::{Endpoint, Error, Geometry, Kind, Message, Packet, Tag, pair};

const BATCH: usize = 20_000;

fn main() {
    let rounds = std::env::args().nth(1).map_or(9, |n| n.parse().expect("a number of rounds"));
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    let mut add = |name: String, ns: f64| match rows.iter_mut().find(|row| row.0 == name) {
        Some(row) => row.1.push(ns),
        None => rows.push((name, vec![ns])),
    };
    for _ in 0..rounds {
        for window in [1, 4, 16, 64] {
            add(format!("call lines, {window:2} in flight"), call_lines(window));
            add(format!("two rings,  {window:2} in flight"), two_rings(window));
            add(format!("fipc-like,  {window:2} in flight"), fipc_like(window));
        }
        add("one ring, one way".into(), stream());
    }
    for (name, mut times) in rows {
        times.sort_by(f64::total_cmp);
        println!("{name:28} {:8.1} ns  (least {:.1})", times[times.len() / 2], times[0]);
    }
}

fn timed(operations: usize, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// Runs both sides at once and gives the nanoseconds per operation of the first.
fn both(a: impl FnOnce(&mut Endpoint) + Send, b: impl FnOnce(&mut Endpoint) + Send) -> f64 {
    let (mut end_a, mut end_b) = pair(Geometry::default());
    thread::scope(|scope| {
        scope.spawn(move || b(&mut end_b));
        let time = timed(BATCH, || a(&mut end_a));
        // The other side ends when it finds the channel closed.
        drop(end_a);
        time
    })
}

fn call_lines(window: usize) -> f64 {
    both(
        |end| {
            let mut calls = std::collections::VecDeque::new();
            let mut sent = 0;
            for received in 0..BATCH as u64 {
                while calls.len() < window && sent < BATCH as u64 {
                    calls.push_back(end.caller.post(&Message::new(Tag::new(1), &[sent, 1])).expect("posted"));
                    sent += 1;
                }
                let call = calls.pop_front().expect("one is outstanding");
                let answer = loop {
                    if let Some(answer) = end.caller.poll(&call).expect("alive") {
                        break answer;
                    }
                    std::hint::spin_loop();
                };
                assert_eq!(answer.words[0], received + 1);
            }
        },
        |end| {
            loop {
                match end.callee.poll() {
                    Ok(Some(request)) => {
                        let answer = Message::new(Tag::new(2), &[request.message.words[0] + request.message.words[1]]);
                        end.callee.reply(request, &answer).expect("our own request");
                    }
                    Ok(None) => std::hint::spin_loop(),
                    Err(_) => break,
                }
            }
        },
    )
}

fn two_rings(window: usize) -> f64 {
    both(
        |end| {
            let mut sent = 0;
            for received in 0..BATCH {
                while sent < BATCH && sent - received < window {
                    let message = Message::new(Tag::new(1), &[sent as u64, 1]);
                    end.sender.send(&Packet { kind: Kind::Request, cookie: 0, message }).expect("room");
                    sent += 1;
                }
                let answer = loop {
                    if let Some(answer) = end.receiver.poll().expect("alive") {
                        break answer;
                    }
                    std::hint::spin_loop();
                };
                assert_eq!(answer.message.words[0], received as u64 + 1);
            }
        },
        |end| {
            loop {
                match end.receiver.poll() {
                    Ok(Some(request)) => {
                        let words = request.message.words;
                        let message = Message::new(Tag::new(2), &[words[0] + words[1]]);
                        end.sender.send(&Packet { kind: Kind::Response, cookie: 0, message }).expect("room");
                    }
                    Ok(None) => std::hint::spin_loop(),
                    Err(_) => break,
                }
            }
        },
    )
}

fn stream() -> f64 {
    both(
        |end| {
            for i in 0..BATCH as u64 {
                let message = Message::new(Tag::new(1), &[i]);
                while end.sender.send(&Packet { kind: Kind::Plain, cookie: 0, message }) == Err(Error::Full) {
                    std::hint::spin_loop();
                }
            }
        },
        |end| {
            let mut expected = 0;
            while let Ok(packet) = end.receiver.poll() {
                let Some(packet) = packet else { continue };
                assert_eq!(packet.message.words[0], expected);
                expected += 1;
            }
            assert_eq!(expected, BATCH as u64);
        },
    )
}

#[repr(align(64))]
struct Slot {
    status: AtomicU64,
    words: [AtomicU64; 7],
}

fn ring() -> Arc<Vec<Slot>> {
    Arc::new((0..128).map(|_| Slot { status: AtomicU64::new(0), words: Default::default() }).collect())
}

fn put(ring: &[Slot], at: &mut usize, words: [u64; 7]) {
    let slot = &ring[*at & 127];
    while slot.status.load(Acquire) != 0 {
        std::hint::spin_loop();
    }
    for (place, word) in slot.words.iter().zip(words) {
        place.store(word, Relaxed);
    }
    slot.status.store(1, Release);
    *at += 1;
}

fn take(ring: &[Slot], at: &mut usize) -> [u64; 7] {
    let slot = &ring[*at & 127];
    while slot.status.load(Acquire) != 1 {
        std::hint::spin_loop();
    }
    let words = std::array::from_fn(|i| slot.words[i].load(Relaxed));
    slot.status.store(0, Release);
    *at += 1;
    words
}

fn fipc_like(window: usize) -> f64 {
    let (there, back) = (ring(), ring());
    let (their_there, their_back) = (there.clone(), back.clone());
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut taken, mut sent) = (0, 0);
            for _ in 0..BATCH {
                let words = take(&their_there, &mut taken);
                put(&their_back, &mut sent, [words[0] + words[1], 0, 0, 0, 0, 0, 0]);
            }
        });
        timed(BATCH, || {
            let (mut sent, mut received) = (0, 0);
            while received < BATCH {
                while sent < BATCH && sent - received < window {
                    let number = sent as u64;
                    put(&there, &mut sent, [number, 1, 0, 0, 0, 0, 0]);
                }
                let expected = received as u64 + 1;
                assert_eq!(take(&back, &mut received)[0], expected);
            }
        })
    })
}
