//! Round trips and streams between two threads on two cores, in cycles of the time-stamp counter per message: call lines, our
//! rings, tasks on call lines, and a channel laid out like fipc (two rings of slots that the receiver frees one by one), in turns
//! in one process. Medians of batches of 1000, and the median over the rounds.
//!
//! `cargo run --release -p ebb-ipc --example rtt [rounds]`

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;

use ipc::{Endpoint, Error, Geometry, Kind, Message, Packet, Tag, pair};
use tasks::rt;

const BATCH: usize = 1000;
const BATCHES: usize = 120;
/// All that one side sends.
const ALL: usize = BATCH * BATCHES;

fn main() {
    let rounds = std::env::args().nth(1).map_or(9, |n| n.parse().expect("a number of rounds"));
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    let mut add = |name: String, cycles: f64| match rows.iter_mut().find(|row| row.0 == name) {
        Some(row) => row.1.push(cycles),
        None => rows.push((name, vec![cycles])),
    };
    for _ in 0..rounds {
        for window in [1, 4, 16, 64] {
            add(format!("call lines, {window:2} in flight"), call_lines(window));
            add(format!("two rings,  {window:2} in flight"), two_rings(window));
            add(format!("fipc-like,  {window:2} in flight"), fipc_like(window));
            add(format!("tasks,      {window:2} in flight"), tasks(window));
        }
        add("one ring, one way".into(), stream());
    }
    for (name, mut times) in rows {
        times.sort_by(f64::total_cmp);
        println!("{name:28} {:8.1}  (least {:.1})", times[times.len() / 2], times[0]);
    }
}

/// Keeps the calling thread on a core, before all that is not urgent, where the system allows it.
fn pin(core: usize) {
    // SAFETY: `set` and `param` are plain data that the calls only read.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
        let param = libc::sched_param { sched_priority: 1 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &param);
    }
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction; it touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Notes the time after each batch, and gives the median of the ticks per operation.
struct Batches {
    last: u64,
    times: Vec<f64>,
}

impl Batches {
    fn new() -> Self {
        Batches { last: ticks(), times: Vec::with_capacity(BATCHES) }
    }

    #[inline(always)]
    fn done(&mut self, operations: usize) {
        if operations.is_multiple_of(BATCH) {
            let now = ticks();
            self.times.push((now - self.last) as f64 / BATCH as f64);
            self.last = now;
        }
    }

    fn median(mut self) -> f64 {
        self.times.sort_by(f64::total_cmp);
        self.times[self.times.len() / 2]
    }
}

/// Runs the two sides on two cores and gives what the first says.
fn on_two_cores(a: impl FnOnce() -> f64 + Send, b: impl FnOnce() + Send) -> f64 {
    let ready = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(1);
            ready.store(true, Release);
            b();
        });
        let measured = scope.spawn(move || {
            while !ready.load(Acquire) {
                thread::yield_now();
            }
            pin(0);
            a()
        });
        measured.join().expect("no panic")
    })
}

/// The same with the two ends of a channel. The second side ends when it finds the channel closed.
fn both(a: impl FnOnce(&mut Endpoint) -> f64 + Send, b: impl FnOnce(&mut Endpoint) + Send) -> f64 {
    let (mut end_a, mut end_b) = pair(Geometry::default());
    on_two_cores(
        move || {
            let time = a(&mut end_a);
            drop(end_a);
            time
        },
        move || b(&mut end_b),
    )
}

/// Tasks that call, one call each at a time; the other side answers without tasks.
fn tasks(window: usize) -> f64 {
    let (near, far) = ipc::rpc::pair(Geometry::default());
    on_two_cores(
        move || {
            rt::run(|cx| {
                let port = near.port();
                let (left, batches) = (Cell::new(ALL), Cell::new(Some(Batches::new())));
                rt::finish_async(cx, |scope, cx| {
                    for _ in 0..window {
                        let (port, left, batches) = (&port, &left, &batches);
                        scope.spawn_async(cx, move |cx| {
                            while left.get() > 0 {
                                left.set(left.get() - 1);
                                port.call_async(cx, &Message::new(Tag::new(1), &[1, 2])).expect("alive");
                                if left.get().is_multiple_of(BATCH) {
                                    let mut now = batches.take().expect("put back");
                                    now.done(0);
                                    batches.set(Some(now));
                                }
                            }
                        });
                    }
                });
                batches.take().expect("put back").median()
            })
        },
        move || {
            rt::run(|cx| {
                let port = far.port();
                while let Ok(request) = port.recv_async(cx) {
                    let answer = request.message;
                    let _ = request.reply_async(cx, &answer);
                }
            });
        },
    )
}

fn call_lines(window: usize) -> f64 {
    both(
        |end| {
            let mut batches = Batches::new();
            let mut calls = std::collections::VecDeque::new();
            let mut sent = 0;
            for received in 0..ALL as u64 {
                while calls.len() < window && sent < ALL as u64 {
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
                batches.done(received as usize + 1);
            }
            batches.median()
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
            let mut batches = Batches::new();
            let mut sent = 0;
            for received in 0..ALL {
                while sent < ALL && sent - received < window {
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
                batches.done(received + 1);
            }
            batches.median()
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
            let mut batches = Batches::new();
            for i in 0..ALL as u64 {
                let message = Message::new(Tag::new(1), &[i]);
                while end.sender.send(&Packet { kind: Kind::Plain, cookie: 0, message }) == Err(Error::Full) {
                    std::hint::spin_loop();
                }
                batches.done(i as usize + 1);
            }
            batches.median()
        },
        |end| {
            let mut expected = 0;
            while let Ok(packet) = end.receiver.poll() {
                let Some(packet) = packet else { continue };
                assert_eq!(packet.message.words[0], expected);
                expected += 1;
            }
            assert_eq!(expected, ALL as u64);
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
    on_two_cores(
        move || {
            let mut batches = Batches::new();
            let (mut sent, mut received) = (0, 0);
            while received < ALL {
                while sent < ALL && sent - received < window {
                    let number = sent as u64;
                    put(&there, &mut sent, [number, 1, 0, 0, 0, 0, 0]);
                }
                let expected = received as u64 + 1;
                assert_eq!(take(&back, &mut received)[0], expected);
                batches.done(received);
            }
            batches.median()
        },
        move || {
            let (mut taken, mut sent) = (0, 0);
            for _ in 0..ALL {
                let words = take(&their_there, &mut taken);
                put(&their_back, &mut sent, [words[0] + words[1], 0, 0, 0, 0, 0, 0]);
            }
        },
    )
}
